# SPDX-License-Identifier: Apache-2.0
"""This module allocates arrays of the same library and on the same device as given arrays."""
from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..errors import Error
from .cuda import DeviceArray, current
from .dlpack import Array, array_of, bfloat16, is_dense
from .reuse import LEAST, empty


def torch_stream(stream: int | None, device: Any) -> AbstractContextManager[Any]:
    """Makes a stream the current one of torch on a device; none is the default stream."""
    import torch

    if torch.cuda.current_stream(device).cuda_stream == (stream or 0):
        return nullcontext()
    made: AbstractContextManager[Any] = torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device) if stream
                                                          else torch.cuda.default_stream(device))
    return made


def on_stream(like: Array, stream: int | None) -> AbstractContextManager[Any]:
    """Makes a stream the current one of the library of an array on a GPU, so that what the library allocates there belongs to it.

    The allocators of torch and CuPy reuse memory in the order of the stream on which it was allocated. On another stream they would
    hand out memory that earlier work still uses."""
    if like.on_cuda and like.library == "torch":
        return torch_stream(stream, like.owner.device)
    return _cupy_stream(stream or 0, like.device[1]) if like.on_cuda and like.library == "cupy" else nullcontext()


@contextmanager
def _cupy_stream(stream: int, device: int) -> Iterator[None]:
    """Makes a stream of a device the current one of CuPy, and the device the current one."""
    import cupy

    with current(device):
        if int(cupy.cuda.get_current_stream().ptr) == stream:
            yield
            return
        with cupy.cuda.ExternalStream(stream, device) if stream else cupy.cuda.Stream.null:
            yield


def empty_like_library(library: str, shape: tuple[int, ...], dtype: str, like: Array, what: str, stream: int | None) -> Any:
    """Allocates a dense array of a library, on the device of `like`, for work on a stream."""
    if library == "torch":
        import torch

        kind = getattr(torch, dtype)
        if like.on_cuda:
            with on_stream(like, stream):
                return torch.empty(shape, dtype=kind, device=like.owner.device)
        bytes_ = kind.itemsize * math.prod(shape)
        if bytes_ < LEAST:
            return torch.empty(shape, dtype=kind)
        return torch.from_numpy(empty((bytes_,), np.uint8)).view(kind).view(shape)
    if like.on_cuda:
        if library == "cupy":
            import cupy

            with on_stream(like, stream):
                return cupy.empty(shape, dtype)
        return DeviceArray(shape, dtype, like.device[1], stream or 0)
    return empty(shape, bfloat16(what) if dtype == "bfloat16" else dtype)


def memory_like(like: Array, size: int, stream: int | None) -> tuple[Any, int]:
    """Allocates bytes by the library and on the device of an array. Returns the array that owns them, and their address."""
    what = "suture: workspace"
    memory = empty_like_library(like.library, (max(size, 1),), "uint8", like, what, stream)
    return memory, array_of(memory, what, stream).pointer


def copy_of(a: Array, what: str, stream: int | None) -> Any:
    """Returns a writable copy of an array, of the same library and on the same device."""
    if a.library == "torch":
        with on_stream(a, stream):
            return a.owner.detach().clone()
    if not a.on_cuda:
        return np.array(a.owner if a.library == "numpy" else np.from_dlpack(a.owner[0]), copy=True)
    if a.library == "cupy":
        with on_stream(a, stream):
            return a.owner[0].copy()
    if not is_dense(a):
        raise Error(f"{what}: strides {a.strides} of an array {a.shape} on a GPU are not dense; pass a copy")
    return DeviceArray.copy(a, stream or 0)
