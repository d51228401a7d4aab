# SPDX-License-Identifier: Apache-2.0
"""This module allocates arrays of the same library and on the same device as given arrays."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import Error
from .cuda import DeviceArray, current
from .dlpack import Array, array_of, bfloat16, is_dense
from .reuse import LEAST, empty


def empty_like_library(library: str, shape: tuple[int, ...], dtype: str, like: Array, what: str) -> Any:
    """Allocates a dense array of a library, on the device of `like`."""
    if library == "torch":
        import torch

        kind = getattr(torch, dtype)
        if like.on_cuda:
            return torch.empty(shape, dtype=kind, device=like.owner.device)
        bytes_ = kind.itemsize * math.prod(shape)
        if bytes_ < LEAST:
            return torch.empty(shape, dtype=kind)
        return torch.from_numpy(empty((bytes_,), np.uint8)).view(kind).view(shape)
    if like.on_cuda:
        if library == "cupy":
            import cupy

            with current(like.device[1]):
                return cupy.empty(shape, dtype)
        return DeviceArray(shape, dtype, like.device[1])
    return empty(shape, bfloat16(what) if dtype == "bfloat16" else dtype)


def memory_like(like: Array, size: int, stream: int | None) -> tuple[Any, int]:
    """Allocates bytes by the library and on the device of an array. Returns the array that owns them, and their address."""
    what = "suture: workspace"
    memory = empty_like_library(like.library, (max(size, 1),), "uint8", like, what)
    return memory, array_of(memory, what, stream).pointer


def copy_of(a: Array, what: str, stream: int | None) -> Any:
    """Returns a writable copy of an array, of the same library and on the same device."""
    if a.library == "torch":
        return a.owner.detach().clone()
    if not a.on_cuda:
        return np.array(a.owner if a.library == "numpy" else np.from_dlpack(a.owner[0]), copy=True)
    if a.library == "cupy":
        with current(a.device[1]):
            return a.owner[0].copy()
    if not is_dense(a):
        raise Error(f"{what}: strides {a.strides} of an array {a.shape} on a GPU are not dense; pass a copy")
    return DeviceArray.copy(a, stream or 0)
