# SPDX-License-Identifier: Apache-2.0
"""This module loads compiled chains, makes plans with them, and makes the arrays that plans write to."""
from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays.batch import VIEW_BYTES, Items, item_shape, letters_out, output_bound
from ..arrays.cuda import current
from ..arrays.dlpack import Array, array_of, device_name, voxels_of
from ..arrays.memory import empty_like_library, memory_like
from ..arrays.volume import Grid, volumes_on
from ..backend import jit
from ..backend.encode import Encoded, chain_type
from ..backend.request import Request
from ..errors import Error


def module_text(encoded: Encoded, slots: Sequence[str], cuda: bool) -> str:
    """Returns the C++ source of the module of a chain: includes, and one macro with its type.

    All names come from fixed tables, so that no text of a user becomes code, with one exception: headers of value_cpp, and their
    structs and members, which value_cpp has checked.
    """
    names = {"abi/chain.cuh" if cuda else "abi/chain.hpp", "ops/geometry/identity.hpp", *encoded.headers}
    lines = [f"#include <suture/{name}>" for name in sorted(names)]
    lines += [f'#include "{path}"  // {digest}' for path, digest in encoded.own_files]
    return "\n".join([*lines, f"SUTURE_ABI_CHAIN({', '.join([chain_type(encoded.types), *slots])})", ""])


class Compiled:
    """The functions that the compiled module of a chain exports: see abi/chain.hpp."""

    __slots__ = ("module", "plan", "run", "workspace", "drawn", "geometry", "source_boxes", "whole_source", "free")

    def __init__(self, source: jit.Source) -> None:
        self.module = module = jit.load(source)
        p = ctypes.c_void_p
        self.plan = module.function("suture_plan", p, p)
        self.run = module.function("suture_run", p, p)
        self.workspace = module.function("suture_workspace", p, p, p)
        self.drawn = module.function("suture_drawn", p, p)
        self.geometry = module.function("suture_geometry", p, p)
        self.source_boxes = module.function("suture_source_boxes", p, p)
        self.whole_source = module.function("suture_whole_source", p, p)
        self.free = module.function("suture_free", p)
        self.free.restype = self.geometry.restype = None


@dataclass
class Planned:
    """Owns the C++ plan of one image key for all samples of a batch, and frees it. Several threads may run it at once."""

    compiled: Compiled
    handle: int
    grids: Any  # abi::array of each output
    kept: list[Any] = field(default_factory=list)  # memory that the plan points to
    workspace: Any = None  # of the last run on a GPU, which may not have finished

    @staticmethod
    def make(compiled: Compiled, samples: int, kept: list[Any], **parts: Any) -> Planned:
        """Makes a plan. `parts` are parts of its Request, and `kept` is what they point to besides."""
        handle, grids = ctypes.c_void_p(), (ctypes.c_char * (samples * VIEW_BYTES))()
        request = Request(results=[(grids, samples, VIEW_BYTES)], samples=samples, **parts)
        compiled.module.check(compiled.plan(request.address, ctypes.addressof(handle)))
        return Planned(compiled, handle.value or 0, grids, [request, *kept])

    def run(self, like: Array, stream: int | None, **parts: Any) -> None:
        """Computes the voxels. On a GPU they are queued on `stream`, and the library of `like` allocates the workspace.

        `parts` are parts of the Request: inputs, outputs, and one list with the number of levels of the image and of each label
        map.
        """
        parts["stream"] = stream or 0
        if not like.on_cuda:
            made = Request(**parts)  # keeps its memory alive during the call
            self.compiled.module.check(self.compiled.run(self.handle, made.address))
            return
        with current(like.device[1]):
            need, asked = ctypes.c_uint64(), Request(**parts)
            self.compiled.module.check(self.compiled.workspace(self.handle, asked.address, ctypes.addressof(need)))
            workspace, pointer = memory_like(like, need.value, stream)
            made = Request(**{**parts, "workspace": (pointer, need.value)})
            self.workspace = workspace
            self.compiled.module.check(self.compiled.run(self.handle, made.address))

    def source_boxes(self, samples: int) -> np.ndarray:
        """Returns the box of the source that each sample reads: its start and its size along (z, y, x)."""
        boxes = np.zeros((samples, 6), np.int64)
        request = Request(results=[boxes], samples=samples)
        self.compiled.module.check(self.compiled.source_boxes(self.handle, request.address))
        return boxes

    def whole_source(self) -> str:
        """Returns the reason why samples need their whole source; an empty text if a box is enough."""
        text = ctypes.c_char_p()
        self.compiled.module.check(self.compiled.whole_source(self.handle, ctypes.addressof(text)))
        return (text.value or b"").decode()

    def drawn(self) -> list[list[dict[str, Any]]]:
        """Returns the draws of the random operations of each sample."""
        text = ctypes.c_char_p()
        self.compiled.module.check(self.compiled.drawn(self.handle, ctypes.addressof(text)))
        return json.loads(text.value or b"[]")  # type: ignore[no-any-return]

    def __del__(self) -> None:
        if self.handle:
            self.compiled.free(self.handle)


@dataclass
class Output:
    """The output of a key: what the user gets, its arrays, and their records for C++, as output_bound returns them."""

    value: Any
    arrays: list[Array]
    bound: tuple[bytes, int, int]


@dataclass
class OutputMaker:
    """Allocates the arrays that a plan writes to, or checks arrays that the caller gave for that.

    size      number of samples
    stream    CUDA stream
    stacked   whether all samples are in one array
    """

    size: int
    stream: int | None
    stacked: bool

    def make(self, items: Items, key: str, dtype: str, channels: int, extents: Sequence[Sequence[int]], given: Any,
             grids: Sequence[Grid] | None) -> Output:
        """Returns the output of a key, with Volumes on `grids` if these are given.

        `extents` are those of each output along (z, y, x); if outputs are stacked, the first alone is read. `given` is the
        output of the caller; None allocates it.
        """
        letters = letters_out(items.letters, channels, self.stacked)
        what = f"suture: {key}: out"
        if self.stacked:
            value, arrays = self._stacked(items, what, dtype, (self.size, *item_shape(extents[0], channels, letters)), given)
        else:
            value, arrays = self._listed(items, what, dtype, [item_shape(e, channels, letters) for e in extents], given)
            if grids is not None and given is None:
                value = volumes_on(value, items.order, grids, items.placed)
        return Output(value, arrays, output_bound(arrays, letters, self.stacked))

    def _stacked(self, items: Items, what: str, dtype: str, shape: tuple[int, ...], given: Any) -> tuple[Any, list[Array]]:
        like = items.first
        if given is not None:
            return given, [self._checked(given, shape, dtype, like, what)]
        value = empty_like_library(like.library, shape, dtype, like, what, self.stream)
        return value, [array_of(value, what, self.stream)]

    def _listed(self, items: Items, what: str, dtype: str, shapes: Sequence[tuple[int, ...]], given: Any) -> tuple[Any, list[Array]]:
        like = items.first
        if given is None:
            plain = [empty_like_library(like.library, s, dtype, like, what, self.stream) for s in shapes]
            return plain, [array_of(a, what, self.stream) for a in plain]
        plain = list(given)
        if len(plain) != self.size:
            raise Error(f"{what}: {len(plain)} arrays for {self.size} samples")
        return plain, [self._checked(voxels_of(a), s, dtype, like, what) for a, s in zip(plain, shapes)]

    def _checked(self, value: Any, shape: tuple[int, ...], dtype: str, like: Array, what: str) -> Array:
        a = array_of(value, what, self.stream)
        if a.shape != shape:
            raise Error(f"{what}: expected the shape {shape}, got {tuple(a.shape)}. Leave out= away, or pass one of that shape")
        if a.dtype != dtype:
            raise Error(f"{what}: expected {dtype}, got {a.dtype}. Leave out= away, or pass one of {dtype}")
        if a.readonly:
            raise Error(f"{what}: the array is read-only")
        if a.device != like.device:
            raise Error(f"{what}: on {device_name(a.device)}, the batch on {device_name(like.device)}")
        return a
