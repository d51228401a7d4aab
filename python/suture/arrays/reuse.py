# SPDX-License-Identifier: Apache-2.0
"""This module reuses the memory of outputs that are no longer referenced.

The operating system clears each page of new memory on first access, which takes longer than most chains. A training loop that
keeps one batch while the next is made needs two blocks for all of its batches.
"""
from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

LEAST = 1 << 18  # bytes of the smallest block; for less, the C library reuses memory itself
MOST = 1 << 30  # most bytes of unused blocks; the least recently used are freed first
_ALIGNMENT = 64  # a cache line


class Pool:
    """Lends blocks of memory as arrays, and takes a block back when the last view of it is gone."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self.unused = most, 0
        self._blocks: OrderedDict[int, list[np.ndarray]] = OrderedDict()
        self._lock = threading.Lock()

    def empty(self, bytes_: int) -> np.ndarray:
        """Lends an array of uint8 with arbitrary content.

        Parameters
        ----------
        bytes_ : int
            Number of bytes.

        Returns
        -------
        numpy.ndarray
            The array, which begins at a cache line.
        """
        size = _rounded(bytes_)
        with self._lock:
            blocks = self._blocks.get(size)
            memory = blocks.pop() if blocks else None
            if memory is not None:
                self.unused -= size
                self._blocks.move_to_end(size)
        if memory is None:
            memory = np.empty(size + _ALIGNMENT, np.uint8)
        return np.asarray(_Lent(self, memory, size))[:bytes_]

    def take_back(self, memory: np.ndarray, size: int) -> None:
        """Keeps a block for reuse after its last view is gone.

        A destructor calls this at any time, even while this thread holds the lock. If the lock is taken, the block is freed.
        """
        if size > self.most or not self._lock.acquire(blocking=False):
            return
        try:
            self._blocks.setdefault(size, []).append(memory)
            self._blocks.move_to_end(size)
            self.unused += size
            while self.unused > self.most:
                oldest, blocks = next(iter(self._blocks.items()))
                if blocks:
                    blocks.pop(0)
                    self.unused -= oldest
                if not blocks:
                    del self._blocks[oldest]
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Frees all blocks that are not lent and replaces the lock, which another thread may have held before a fork."""
        self._blocks, self._lock, self.unused = OrderedDict(), threading.Lock(), 0


class _Lent:
    """The owner of a lent array: NumPy keeps it as long as a view lives."""

    __slots__ = ("__array_interface__", "_memory", "_pool", "_size")

    def __init__(self, pool: Pool, memory: np.ndarray, size: int) -> None:
        self._pool, self._memory, self._size = pool, memory, size
        begin = -(-memory.ctypes.data // _ALIGNMENT) * _ALIGNMENT
        self.__array_interface__: dict[str, Any] = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (begin, False)}

    def __del__(self) -> None:
        self._pool.take_back(self._memory, self._size)


def _rounded(bytes_: int) -> int:
    """Rounds a number of bytes up to the size of a block, so that outputs of similar size share blocks. Pages that are never
    accessed take no memory."""
    step = max(1 << max(bytes_.bit_length() - 4, 0), 4096)
    return -(-bytes_ // step) * step


_pool = Pool()
os.register_at_fork(after_in_child=_pool.forget)


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Returns a dense array with arbitrary content, from reused memory.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    dtype : dtype
        Its type.

    Returns
    -------
    numpy.ndarray
        The array.
    """
    dtype = np.dtype(dtype)
    bytes_ = dtype.itemsize
    for n in shape:
        bytes_ *= n
    if bytes_ < LEAST:
        return np.empty(shape, dtype)
    array: np.ndarray = _pool.empty(bytes_).view(dtype).reshape(shape)
    return array


__all__ = ["LEAST", "MOST", "Pool", "empty"]
