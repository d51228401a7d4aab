# SPDX-License-Identifier: Apache-2.0
"""This cache holds decoded chunks of a cohort in the shared memory of a machine, for all ranks on it.

A chunk is a file in /dev/shm, written under another name and then renamed, so that a reader finds it complete or not at all. Its
writers need no lock that a killed process could leave behind. A chunk stays until the last process that uses the cache ends, and
a full cache stores no more. Evicting would be useless, since a random order through a larger cohort would evict every chunk before
its next use (J. Mohan et al., "Analyzing and mitigating data stalls in DNN training", VLDB 2021). Each process counts only the
bytes that it stored, against a limit of its own."""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import math
import mmap
import os
import shutil
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.lazy import Source, numpy_type

_ROOT = Path("/dev/shm")
_counts = threading.local()


def counted() -> tuple[int, int]:
    """Returns how many chunks this thread found in caches and how many it missed since the last call."""
    found = getattr(_counts, "hits", 0), getattr(_counts, "misses", 0)
    _counts.hits = _counts.misses = 0
    return found


def _count(hits: int, misses: int) -> None:
    _counts.hits = getattr(_counts, "hits", 0) + hits
    _counts.misses = getattr(_counts, "misses", 0) + misses


class Cache:
    """The cache of a cohort on this machine.

    Parameters
    ----------
    name : str
        Hash of the cohort. Processes that give the same name share the cache.
    limit : int
        The most bytes that this process stores.
    root : Path
        Folder of all caches, on a file system in memory.
    """

    def __init__(self, name: str, limit: int, root: Path = _ROOT) -> None:
        self.limit, self.used = limit, 0
        self._root, self._owner = root, os.getpid()
        self._guard = threading.Lock()
        self._number = itertools.count()
        self._turns = [threading.Lock() for _ in range(64)]
        self.folder: Path | None = None
        self._lock = -1
        prefix = f"suture-{os.getuid()}-"
        try:
            _sweep(root, prefix)
            self._open(root / (prefix + hashlib.sha256(name.encode()).hexdigest()[:32]))
        except OSError:  # no such file system, or not writable: nothing is cached
            self.folder = None

    def _open(self, folder: Path) -> None:
        while True:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
                raise PermissionError("a folder of somebody else")
            try:
                lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:  # removed meanwhile
                continue
            fcntl.flock(lock, fcntl.LOCK_SH)
            try:
                if os.stat(folder / "lock").st_ino == os.fstat(lock).st_ino:
                    self.folder, self._lock = folder, lock
                    return
            except FileNotFoundError:
                pass
            os.close(lock)

    @property
    def has_room(self) -> bool:
        """Whether the cache accepts chunks."""
        return self.folder is not None and self.used < self.limit

    def get(self, key: str, dtype: Any, shape: Sequence[int]) -> np.ndarray | None:
        """Returns a chunk, or None if the cache does not have it."""
        if self.folder is None:
            return None
        try:
            file = os.open(self.folder / key, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            size = math.prod(shape) * dtype.itemsize
            if os.fstat(file).st_size != size:
                return None
            return np.frombuffer(mmap.mmap(file, size, access=mmap.ACCESS_READ), dtype).reshape(shape)
        finally:
            os.close(file)

    def turn(self, key: str) -> threading.Lock:
        """Returns the lock that a thread holds while it reads a chunk and stores it, so that threads of this process decode it once."""
        return self._turns[hash(key) % len(self._turns)]

    def put(self, key: str, chunk: np.ndarray) -> None:
        """Stores a chunk if there is room; once one does not fit, the cache accepts no more from this process."""
        with self._guard:
            if self.folder is None or self.used + chunk.nbytes > self.limit:
                self.limit = min(self.limit, self.used)
                return
            self.used += chunk.nbytes
        partial = self.folder / f".{os.getpid()}-{next(self._number)}"
        try:
            with partial.open("xb") as file:
                np.ascontiguousarray(chunk).tofile(file)
            partial.replace(self.folder / key)
        except OSError:  # the file system is full: no more chunks are stored
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            with self._guard:
                self.used -= chunk.nbytes
                self.limit = self.used

    def close(self) -> None:
        """Stops using the cache. The last process that uses it removes it."""
        folder, self.folder = self.folder, None
        if folder is None or self._owner != os.getpid():
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # others use it
        finally:
            os.close(self._lock)


def _sweep(root: Path, prefix: str) -> None:
    """Removes caches that no living process uses."""
    for folder in root.glob(prefix + "*"):
        try:
            if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
                continue
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(lock)


class CachedSource:
    """A Source that reads its chunks through a cache, and stores them there while there is room.

    Parameters
    ----------
    source : Source
        Source whose attribute `chunk` has the extents of a chunk along all axes.
    key : str
        Identifies the voxels among those of all arrays of the cohort.
    cache : Cache
        The cache.
    """

    def __init__(self, source: Any, key: str, cache: Cache) -> None:
        self.source: Source = source
        self.owner = source
        self.shape, self.dtype = tuple(source.shape), str(source.dtype)
        self._chunk = tuple(int(n) for n in source.chunk)
        self._key, self._cache = hashlib.sha256(key.encode()).hexdigest()[:32], cache

    @property
    def class_index(self) -> bytes | None:
        return self.source.class_index

    def read(self, low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
        """Reads a box from chunks, or in one piece if the cache is full and has none of them."""
        cache, spatial = self._cache, len(low)
        if cache.folder is None:
            self.source.read(low, high, out)
            return
        extents, chunk = self.shape[-spatial:], self._chunk[-spatial:]
        channels = self.shape[:len(self.shape) - spatial]
        dtype = np.dtype(numpy_type(self.dtype, "suture: feed"))
        missing, hits = [], 0
        for at in itertools.product(*(range(a // c, -(-b // c)) for a, b, c in zip(low, high, chunk))):
            first = [k * c for k, c in zip(at, chunk)]
            last = [min(f + c, n) for f, c, n in zip(first, chunk, extents)]
            here = cache.get(self._name(at), dtype, (*channels, *(b - a for a, b in zip(first, last))))
            if here is None:
                missing.append((at, first, last))
                continue
            hits += 1
            _copy(here, first, last, low, high, out)
        _count(hits, len(missing))
        if missing and not hits and not cache.has_room:
            self.source.read(low, high, out)
            return
        for at, first, last in missing:
            if cache.has_room:
                name, shape = self._name(at), (*channels, *(b - a for a, b in zip(first, last)))
                with cache.turn(name):
                    made = cache.get(name, dtype, shape)
                    if made is None:
                        made = np.empty(shape, dtype)
                        self.source.read(first, last, made)
                        cache.put(name, made)
                _copy(made, first, last, low, high, out)
            else:
                begin = [max(a, b) for a, b in zip(first, low)]
                end = [min(a, b) for a, b in zip(last, high)]
                inside: Any = (..., *(slice(a - o, b - o) for a, b, o in zip(begin, end, low)))
                self.source.read(begin, end, out[inside])

    def _name(self, at: Sequence[int]) -> str:
        return f"{self._key}-{'_'.join(map(str, at))}"


def _copy(chunk: np.ndarray, first: Sequence[int], last: Sequence[int], low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
    """Copies the voxels that a chunk and a box share."""
    begin = [max(a, b) for a, b in zip(first, low)]
    end = [min(a, b) for a, b in zip(last, high)]
    to: Any = (..., *(slice(a - o, b - o) for a, b, o in zip(begin, end, low)))
    of: Any = (..., *(slice(a - o, b - o) for a, b, o in zip(begin, end, first)))
    np.copyto(out[to], chunk[of])
