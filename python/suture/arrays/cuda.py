# SPDX-License-Identifier: Apache-2.0
"""This module calls the functions of the CUDA runtime that suture needs where neither torch nor CuPy allocates."""
from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from .dlpack import CUDA, SIZES, Array, capsule_of, dense_strides
from ..errors import Error


@lru_cache(maxsize=None)
def library() -> Any:
    """Loads libcudart by name, which finds one that is loaded or on the loader's path, else from NVIDIA's wheels."""
    names = ["libcudart.so.13", "libcudart.so.12"]
    for folder in sys.path:
        names += [os.path.join(folder, f"nvidia/{n}/lib/libcudart.so.{v}")
                  for n, v in (("cu13", 13), ("cuda_runtime", 13), ("cuda_runtime", 12))]
    for name in names:
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    raise Error("suture: the CUDA runtime is not found: install torch with CUDA, or pip install 'suture[cuda]', or set "
                "LD_LIBRARY_PATH to where libcudart.so is")


def check(status: int, what: str) -> None:
    """Raises a RuntimeError if a function of the runtime returned an error."""
    if status:
        name = library().cudaGetErrorString
        name.restype = ctypes.c_char_p
        raise RuntimeError(f"suture: {what}: {name(status).decode()}")


def device_count() -> int:
    """Returns the number of CUDA devices, 0 without a driver or the runtime."""
    try:
        count = ctypes.c_int()
        return count.value if library().cudaGetDeviceCount(ctypes.byref(count)) == 0 else 0
    except Error:
        return 0


def architecture(device: int | None = None) -> str | None:
    """Returns the architecture of a device, such as sm_80, by default of the current one; None without a device."""
    if device is None:
        if device_count() == 0:
            return None
        now = ctypes.c_int()
        check(library().cudaGetDevice(ctypes.byref(now)), "cudaGetDevice")
        device = now.value
    return _architecture(library(), device)


@lru_cache(maxsize=None)
def _architecture(runtime: Any, device: int) -> str:
    """Returns the architecture of a device, which each plan asks for."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    # cudaDevAttrComputeCapabilityMajor and Minor
    check(runtime.cudaDeviceGetAttribute(ctypes.byref(major), 75, ctypes.c_int(device)), "cudaDeviceGetAttribute")
    check(runtime.cudaDeviceGetAttribute(ctypes.byref(minor), 76, ctypes.c_int(device)), "cudaDeviceGetAttribute")
    return f"sm_{major.value}{minor.value}"


def current(device: int) -> AbstractContextManager[Any]:
    """Makes a device the current one of this thread until the end of a block.

    torch does it if it uses CUDA, since it returns to a device without making a context there, which would take memory.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        made: AbstractContextManager[Any] = torch.cuda.device(device)
        return made
    return _current(device)


@contextmanager
def _current(device: int) -> Iterator[None]:
    before = ctypes.c_int()
    check(library().cudaGetDevice(ctypes.byref(before)), "cudaGetDevice")
    if before.value == device:
        yield
        return
    check(library().cudaSetDevice(device), "cudaSetDevice")
    try:
        yield
    finally:
        library().cudaSetDevice(before.value)


def synchronize(stream: int = 0) -> None:
    """Waits for a stream."""
    check(library().cudaStreamSynchronize(ctypes.c_void_p(stream)), "cudaStreamSynchronize")


def _make_wait(consumer: int, producer: int) -> None:
    """Makes a stream wait for the work that another one has got, without making the host wait."""
    event = ctypes.c_void_p()
    check(library().cudaEventCreateWithFlags(ctypes.byref(event), ctypes.c_uint(2)), "cudaEventCreateWithFlags")  # cudaEventDisableTiming
    try:
        check(library().cudaEventRecord(event, ctypes.c_void_p(producer)), "cudaEventRecord")
        check(library().cudaStreamWaitEvent(ctypes.c_void_p(consumer), event, ctypes.c_uint(0)), "cudaStreamWaitEvent")
    finally:
        library().cudaEventDestroy(event)


class DeviceArray:
    """A dense array that owns device memory, for programs without torch or CuPy. It exports DLPack.

    stream    CUDA stream of the work that writes it, which has to exist as long as the array is handed to others
    """

    def __init__(self, shape: tuple[int, ...], dtype: str, device: int, stream: int = 0) -> None:
        self.shape, self.dtype, self.device, self.stream = tuple(shape), dtype, device, stream
        self.nbytes = int(np.prod(self.shape, dtype=np.int64)) * SIZES[dtype]
        pointer = ctypes.c_void_p()
        with current(device):
            check(library().cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(max(self.nbytes, 1))), "cudaMalloc")
        self.pointer = pointer.value or 0
        self._free = library().cudaFree

    @staticmethod
    def of(host: np.ndarray, device: int) -> DeviceArray:
        """Copies an array of the host to a device."""
        dense = np.ascontiguousarray(host)
        made = DeviceArray(dense.shape, dense.dtype.name, device)
        with current(device):
            check(library().cudaMemcpy(ctypes.c_void_p(made.pointer), ctypes.c_void_p(dense.ctypes.data),
                                       ctypes.c_size_t(made.nbytes), 1), "cudaMemcpy")
            synchronize()  # cudaMemcpy may return before the device has pageable memory
        return made

    @staticmethod
    def copy(dense: Array, stream: int) -> DeviceArray:
        """Copies a dense array of the device, on a stream."""
        made = DeviceArray(dense.shape, dense.dtype, dense.device[1], stream)
        with current(made.device):  # on whose stream 0 the copy is, if `stream` is 0
            check(library().cudaMemcpyAsync(ctypes.c_void_p(made.pointer), ctypes.c_void_p(dense.pointer),
                                            ctypes.c_size_t(made.nbytes), 3, ctypes.c_void_p(stream)), "cudaMemcpyAsync")
        return made

    def numpy(self) -> np.ndarray:
        """Returns a copy in host memory, after waiting for the device."""
        made = np.empty(self.shape, self.dtype)
        with current(self.device):  # whose stream 0 the copy follows
            check(library().cudaMemcpy(ctypes.c_void_p(made.ctypes.data), ctypes.c_void_p(self.pointer),
                                       ctypes.c_size_t(self.nbytes), 2), "cudaMemcpy")
        return made

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        """Exports the array. A stream of the consumer is made to wait for the work that writes the array: None and 1 are the default
        stream, 2 is that of the thread, and with -1 nothing waits, as DLPack numbers them."""
        consumer = 1 if stream is None else stream
        if type(consumer) is not int or consumer < -1 or consumer == 0:
            raise Error(f"suture: __dlpack__: stream: expected None, -1 or a CUDA stream above 0, got {stream!r}. Pass 1 for the default stream")
        if consumer not in (-1, self.stream or 1):
            with current(self.device):  # of the streams and the event
                _make_wait(consumer, self.stream)
        return capsule_of(self.pointer, self.shape, dense_strides(self.shape), self.dtype, (CUDA, self.device), self)

    def __del__(self) -> None:
        if getattr(self, "pointer", 0):
            self._free(ctypes.c_void_p(self.pointer))
