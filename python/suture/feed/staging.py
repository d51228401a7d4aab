# SPDX-License-Identifier: Apache-2.0
"""This module bounds the memory of batches in preparation. It reuses buffers for boxes, and grants memory in a fixed order."""
from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import Error

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_LEAST = 1 << 16


def bytes_of(given: Any, what: str) -> int:
    """Reads a number of bytes, given as a number or as "4 GB"."""
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", given) if isinstance(given, str) else None
    if found is None or found[2].lower() not in _UNITS or float(found[1]) <= 0:
        raise Error(f'{what}: expected bytes, as 4000000000 or "4 GB", got {given!r}')
    return int(float(found[1]) * _UNITS[found[2].lower()])


def rounded(size: int) -> int:
    """Returns the size of the buffer for a number of bytes. It is larger by at most a quarter or 64 kB, so that buffers of similar size
    can be reused."""
    step = max(1 << max((size - 1).bit_length() - 3, 0), _LEAST)
    return -(-size // step) * step


class MemoryShort(Error):
    """Raised if a sample, with the finished samples of its batch, needs more memory than the feed may use."""


class Stopped(Exception):
    """Raised in a thread that asks for memory after the feed was closed."""


class Staging:
    """A pool of buffers and a count of other memory, which together never exceed a limit.

    A unit of work is one sample, or a batch whose samples run together. It asks for memory at most once, with its own ticket, and
    the tickets 0, 1, 2, ... are served in this order. No unit waits for memory of a later one, so that no deadlock can occur.

    Parameters
    ----------
    limit : int
        The most bytes.
    make : callable
        make(size) allocates that many bytes and returns them as an array of uint8: `plain` or `pinned`.
    """

    def __init__(self, limit: int, make: Callable[[int], Any]) -> None:
        self.limit, self._make = limit, make
        self.used = self.most = 0  # bytes in use; the most that were ever in use or kept for reuse
        self._idle: dict[int, list[Any]] = {}
        self._idle_bytes = 0
        self._next = 0
        self._skipped: set[int] = set()  # tickets above _next that will not be used
        self._stopped = False
        self._changed = threading.Condition()

    def grant(self, ticket: int, sizes: Sequence[int], held: int, done: Callable[[], int], what: str) -> list[Any]:
        """Waits until all earlier tickets are served and the memory is free, and takes it.

        Parameters
        ----------
        ticket : int
            Ticket of the unit.
        sizes : sequence of int
            Bytes of each buffer.
        held : int
            Bytes of the outputs of the unit, which are counted until `release(held)`.
        done : callable
            Returns the bytes that finished units of the same batch hold. They are released only after the batch is complete, so
            that waiting for them would never end.
        what : str
            Words that errors begin with.

        Returns
        -------
        list of arrays
            A buffer for each size, at least that large. `give` takes them back.

        Raises
        ------
        MemoryShort
            If the unit and the finished units of its batch need more than the limit.
        Stopped
            If `stop` was called.
        Exception
            What `make` raises. The unit then has no memory.
        """
        need = sum(map(rounded, sizes)) + held
        with self._changed:
            while not self._stopped and (ticket != self._next or self.used + need > self.limit):
                if ticket == self._next and self.used <= done():  # all memory in use is of this batch
                    short = -(-(self.used + need) // 10**6)
                    raise MemoryShort(f"{what}: memory: expected at least {short} MB for it and what its batch holds, got {self.limit // 10**6} "
                                      "MB for boxes and batches. Give the feed more memory=, or take smaller batches")
                self._changed.wait()
            if self._stopped:
                raise Stopped
            self.used += need
            self._advance()
            taken = [self._take(rounded(size)) for size in sizes]
            self._trim()
            self.most = max(self.most, self.used + self._idle_bytes)
            self._changed.notify_all()
        try:
            return [self._make(rounded(size)) if buffer is None else buffer for size, buffer in zip(sizes, taken)]
        except BaseException:  # the buffers of this unit are freed
            self.release(need)
            raise

    def _take(self, size: int) -> Any:
        ready = self._idle.get(size)
        if not ready:
            return None
        self._idle_bytes -= size
        return ready.pop()

    def _trim(self) -> None:
        """Frees unused buffers as far as the limit requires."""
        while self.used + self._idle_bytes > self.limit:
            size = next(size for size, ready in self._idle.items() if ready)
            self._take(size)

    def _advance(self) -> None:
        self._next += 1
        while self._next in self._skipped:
            self._skipped.discard(self._next)
            self._next += 1

    def skip(self, ticket: int) -> None:
        """Marks the ticket of a unit as used. Every unit calls this when it ends, so that one that failed before it asked for memory
        does not block later ones. After a grant it has no effect."""
        with self._changed:
            if ticket == self._next:
                self._advance()
            elif ticket > self._next:
                self._skipped.add(ticket)
            self._changed.notify_all()

    def give(self, buffers: Sequence[Any]) -> None:
        """Returns buffers to the pool."""
        with self._changed:
            for buffer in buffers:
                size = int(buffer.size)
                self.used -= size
                self._idle.setdefault(size, []).append(buffer)
                self._idle_bytes += size
            self._changed.notify_all()

    def release(self, held: int) -> None:
        """Subtracts bytes that `grant` counted as held."""
        with self._changed:
            self.used -= held
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends every present and later `grant` with Stopped."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def plain(size: int) -> Any:
    """Allocates pageable host memory."""
    return np.empty(size, np.uint8)


def pinned(size: int) -> Any:
    """Allocates pinned host memory, from which copies to a GPU are asynchronous."""
    import torch

    return torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy()
