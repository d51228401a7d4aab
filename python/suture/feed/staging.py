# SPDX-License-Identifier: Apache-2.0
"""This module manages memory for the boxes of batches in preparation: bounded in bytes, reused, and granted in order."""
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
    """Returns the size of the buffer for a number of bytes: at most a quarter or 64 kB more, so that buffers can be reused."""
    step = max(1 << max((size - 1).bit_length() - 3, 0), _LEAST)
    return -(-size // step) * step


class MemoryShort(Error):
    """A sample or a batch needs more memory than the feed may use."""


class Stopped(Exception):
    """The feed was closed while somebody waited for memory."""


class Staging:
    """Buffers and a count of other memory, which together never exceed a number of bytes.

    Every unit of work asks once, with a ticket of its own: the tickets 0, 1, 2, ... are served in that order. What comes first
    therefore never waits for what comes later, and work that was granted its memory asks for no more: nothing can lock up.

    Parameters
    ----------
    limit : int
        The most bytes.
    make : callable
        make(size) returns memory of so many bytes as an array of uint8, pinned say.
    """

    def __init__(self, limit: int, make: Callable[[int], Any]) -> None:
        self.limit, self._make = limit, make
        self.used = self.most = 0  # bytes in use; the most that were ever in use or kept for reuse
        self._idle: dict[int, list[Any]] = {}
        self._idle_bytes = 0
        self._next = 0
        self._done: set[int] = set()  # tickets that were given up ahead of their turn
        self._stopped = False
        self._changed = threading.Condition()

    def grant(self, ticket: int, sizes: Sequence[int], held: int, done: Callable[[], int], what: str) -> list[Any]:
        """Waits for its turn and for memory.

        Parameters
        ----------
        ticket : int
            The number of the unit.
        sizes : sequence of int
            Bytes of each buffer.
        held : int
            Bytes that the unit takes besides, until `release(held)`.
        done : callable
            Returns the bytes that finished units of the same batch hold until the batch is complete.
        what : str
            How messages begin.

        Returns
        -------
        list of arrays
            A buffer for each size, at least that large. `give` takes them back.

        Raises
        ------
        MemoryShort
            If the unit, with what its batch holds, needs more than the limit.
        Stopped
            If `stop` is called meanwhile.
        """
        need = sum(map(rounded, sizes)) + held
        with self._changed:
            while not self._stopped and (ticket != self._next or self.used + need > self.limit):
                if ticket == self._next and self.used <= done():  # no one else will return memory
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
        return [self._make(rounded(size)) if buffer is None else buffer for size, buffer in zip(sizes, taken)]

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
        while self._next in self._done:
            self._done.discard(self._next)
            self._next += 1

    def skip(self, ticket: int) -> None:
        """Gives up the turn of a unit that has not asked, since it failed."""
        with self._changed:
            if ticket == self._next:
                self._advance()
            elif ticket > self._next:
                self._done.add(ticket)
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
        """Frees bytes that were held besides buffers."""
        with self._changed:
            self.used -= held
            self._changed.notify_all()

    def stop(self) -> None:
        """Wakes everybody up, and grants nothing more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def plain(size: int) -> Any:
    """Allocates memory of the process."""
    return np.empty(size, np.uint8)


def pinned(size: int) -> Any:
    """Allocates pinned memory, from which a GPU copies while the processor goes on."""
    import torch

    return torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy()
