# SPDX-License-Identifier: Apache-2.0
"""The one argument of a compiled function: numbers, lists, arrays and results, each with its size."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

VERSION = 2  # abi::version


class CArray(ctypes.Structure):
    """abi::bound: the views of an image or label map, one for each sample or one with a step between samples."""

    _fields_ = [("arrays", ctypes.c_char_p), ("count", ctypes.c_int64), ("step", ctypes.c_int64)]


class CList(ctypes.Structure):
    """abi::list and abi::result: memory, the number of its elements, and the bytes of one."""

    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_int64), ("size", ctypes.c_int64)]


class CRequest(ctypes.Structure):
    """abi::request"""

    _fields_ = [("version", ctypes.c_uint32), ("bytes", ctypes.c_uint32),
                ("numbers", ctypes.c_void_p), ("number_count", ctypes.c_int64),
                ("lists", ctypes.c_void_p), ("list_count", ctypes.c_int64),
                ("inputs", ctypes.c_void_p), ("input_count", ctypes.c_int64),
                ("outputs", ctypes.c_void_p), ("output_count", ctypes.c_int64),
                ("results", ctypes.c_void_p), ("result_count", ctypes.c_int64),
                ("samples", ctypes.c_int64), ("sample_ids", ctypes.c_void_p), ("id_count", ctypes.c_int64),
                ("seed", ctypes.c_uint64), ("epoch", ctypes.c_uint32), ("image", ctypes.c_uint32),
                ("evaluation", ctypes.c_int32), ("threads", ctypes.c_int32), ("same_ids", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64)]


def address_of(memory: Any) -> int:
    """Where a NumPy array, device memory or a ctypes object begins."""
    if isinstance(memory, np.ndarray):
        return int(memory.__array_interface__["data"][0])
    if hasattr(memory, "pointer"):
        return int(memory.pointer)
    return ctypes.addressof(memory)


def elements(memory: Any, count: int | None = None, size: int | None = None) -> tuple[int, int, int]:
    """(address, count, bytes of one) for CList. Rows of a two-dimensional NumPy array are its elements."""
    if count is None:
        count = len(memory)
    if size is None:
        if isinstance(memory, np.ndarray):
            size = memory.itemsize * int(np.prod(memory.shape[1:], dtype=np.int64))
        else:
            size = ctypes.sizeof(memory) // max(count, 1)
    return address_of(memory), count, size


class Lists:
    """The table of lists of a request, made once for requests that read the same lists."""

    __slots__ = ("table", "address", "count", "kept")

    def __init__(self, lists: Sequence[Any]) -> None:
        rows = [elements(*each) if isinstance(each, tuple) else elements(each) for each in lists]
        self.table = (CList * len(rows))(*rows)
        self.address = ctypes.addressof(self.table) if rows else None
        self.count, self.kept = len(rows), list(lists)


class Request:
    """An abi::request together with the memory that it refers to, which lives as long as this.

    numbers   float64, in the order in which the function reads them
    lists     what is read: NumPy arrays, or (memory, count, bytes of an element); or Lists of them
    results   what is written: NumPy arrays
    inputs, outputs   as bound_of and output_bound of arrays.batch give them
    """

    __slots__ = ("c", "address", "_kept")

    def __init__(self, *, numbers: Any = (), lists: Sequence[Any] | Lists = (), results: Sequence[Any] = (),
                 inputs: Sequence[tuple[Any, int, int]] = (), outputs: Sequence[tuple[Any, int, int]] = (), samples: int = 0,
                 ids: Any = None, seed: int = 0, epoch: int = 0, image: int = 0, evaluation: bool = False, threads: int = 0,
                 same_ids: bool = False, stream: int = 0, workspace: tuple[int, int] = (0, 0)) -> None:
        kept: list[Any] = []
        self._kept = kept
        values = numbers if isinstance(numbers, np.ndarray) else np.array(numbers, np.float64)
        if ids is not None and not isinstance(ids, ctypes.Array):
            ids = (ctypes.c_uint64 * len(ids))(*ids)
        kept += [values, ids, lists, results, inputs, outputs]

        def table(cls: Any, rows: Any) -> int | None:
            if not rows:
                return None
            made = (cls * len(rows))(*rows)
            kept.append(made)
            return ctypes.addressof(made)

        read = lists if isinstance(lists, Lists) else Lists(lists)
        kept.append(read)
        written = [elements(*each) if isinstance(each, tuple) else elements(each) for each in results]
        self.c = CRequest(VERSION, ctypes.sizeof(CRequest), address_of(values) if len(values) else None, len(values),
                          read.address, read.count, table(CArray, inputs), len(inputs), table(CArray, outputs), len(outputs),
                          table(CList, written), len(written), samples, None if ids is None else ctypes.addressof(ids),
                          0 if ids is None else len(ids), seed, epoch, image, evaluation, threads, same_ids, 0, stream or None,
                          workspace[0] or None, workspace[1])
        self.address = ctypes.addressof(self.c)
