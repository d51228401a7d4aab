# SPDX-License-Identifier: Apache-2.0
"""A request is the only argument of a compiled function: numbers, lists, arrays and results, each with its size."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

VERSION = 3  # abi::version


class CArray(ctypes.Structure):
    """Has the layout of abi::bound: the views of an image or label map, one for each sample, or one and the bytes between samples."""

    _fields_ = [("arrays", ctypes.c_char_p), ("count", ctypes.c_int64), ("step", ctypes.c_int64)]


class CList(ctypes.Structure):
    """Has the layout of abi::list and abi::result: memory, the number of its elements, and the bytes of one."""

    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_int64), ("size", ctypes.c_int64)]


class CRequest(ctypes.Structure):
    """Has the layout of abi::request. ctypes keeps the table alive that a pointer field is set to."""

    _fields_ = [("version", ctypes.c_uint32), ("bytes", ctypes.c_uint32),
                ("numbers", ctypes.c_void_p), ("number_count", ctypes.c_int64),
                ("lists", ctypes.POINTER(CList)), ("list_count", ctypes.c_int64),
                ("inputs", ctypes.POINTER(CArray)), ("input_count", ctypes.c_int64),
                ("outputs", ctypes.POINTER(CArray)), ("output_count", ctypes.c_int64),
                ("results", ctypes.POINTER(CList)), ("result_count", ctypes.c_int64),
                ("samples", ctypes.c_int64), ("sample_ids", ctypes.POINTER(ctypes.c_uint64)), ("id_count", ctypes.c_int64),
                ("seed", ctypes.c_uint64), ("epoch", ctypes.c_uint32), ("image", ctypes.c_uint32),
                ("evaluation", ctypes.c_int32), ("threads", ctypes.c_int32), ("same_ids", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64)]


_BYTES = ctypes.sizeof(CRequest)


def address_of(memory: Any) -> int:
    """Returns the address of a NumPy array, device memory or a ctypes object."""
    if isinstance(memory, np.ndarray):
        return int(memory.__array_interface__["data"][0])
    if hasattr(memory, "pointer"):
        return int(memory.pointer)
    return ctypes.addressof(memory)


def elements(memory: Any, count: int | None = None, size: int | None = None) -> tuple[int, int, int]:
    """Returns (address, count, bytes of an element) for CList. The rows of a two-dimensional NumPy array are its elements."""
    if count is None:
        count = len(memory)
    if size is None:
        if isinstance(memory, np.ndarray):
            size = memory.nbytes // len(memory) if len(memory) else memory.itemsize
        else:
            size = ctypes.sizeof(memory) // max(count, 1)
    return address_of(memory), count, size


class Lists:
    """A table of lists or results, which several requests can share."""

    __slots__ = ("table", "count", "kept")

    def __init__(self, rows: Sequence[Any]) -> None:
        read = [elements(*each) if isinstance(each, tuple) else elements(each) for each in rows]
        table: Any = CList * len(read)
        self.table, self.count, self.kept = table(*read), len(read), rows


class Request:
    """An abi::request, which keeps the memory alive that it points to. Only numbers are copied.

    numbers   float64, in the order in which the function reads them
    lists     memory that is read: NumPy arrays or (memory, count, bytes of an element), or Lists of them
    results   memory that is written, in the same forms
    inputs, outputs   arrays, as bound_of and output_bound of arrays.batch return them
    """

    __slots__ = ("c", "address", "_kept")

    def __init__(self, *, numbers: Any = (), lists: Sequence[Any] | Lists = (), results: Sequence[Any] | Lists = (),
                 inputs: Sequence[tuple[Any, int, int]] = (), outputs: Sequence[tuple[Any, int, int]] = (), samples: int = 0,
                 ids: Any = None, seed: int = 0, epoch: int = 0, image: int = 0, evaluation: bool = False, threads: int = 0,
                 same_ids: bool = False, stream: int = 0, workspace: tuple[int, int] = (0, 0)) -> None:
        values = numbers if type(numbers) is np.ndarray else np.array(numbers, np.float64)
        read: Lists = lists if type(lists) is Lists else Lists(lists) if lists else _NONE  # type: ignore[arg-type]
        written: Lists = results if type(results) is Lists else Lists(results) if results else _NONE  # type: ignore[arg-type]
        if ids is not None and not isinstance(ids, ctypes.Array):
            ids = (ctypes.c_uint64 * len(ids))(*ids)
        bound, places = len(inputs), len(outputs)
        bounds: Any = CArray * bound
        places_of: Any = CArray * places
        self._kept = (values, read, written, inputs, outputs)
        self.c = CRequest(VERSION, _BYTES, values.__array_interface__["data"][0] if values.size else None, values.size,
                          read.table, read.count, bounds(*inputs), bound, places_of(*outputs), places,
                          written.table, written.count, samples, ids, 0 if ids is None else len(ids), seed, epoch, image, evaluation,
                          threads, same_ids, 0, stream or None, workspace[0] or None, workspace[1])
        self.address = ctypes.addressof(self.c)


_NONE = Lists(())
