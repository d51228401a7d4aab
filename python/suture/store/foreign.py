# SPDX-License-Identifier: Apache-2.0
"""Files that others made, read as they are: Zarr v2 and v3, nnU-Net's preprocessed cases, folders of NIfTI files."""
from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from ..errors import Error
from . import arrays, scans
from .arrays import LazyArray, ZarrArray
from .case import Case

_MOST_KEPT = 1 << 30  # bytes of whole volumes that are kept, of files that only are read as a whole


class _Kept:
    """Volumes of files that can only be read as a whole, the last used of them."""

    def __init__(self) -> None:
        self._lock, self._volumes = threading.Lock(), OrderedDict[Any, np.ndarray]()

    def __call__(self, key: Any, read: Callable[[], np.ndarray]) -> np.ndarray:
        with self._lock:
            known = self._volumes.pop(key, None)
            if known is not None:
                self._volumes[key] = known
                return known
        made = read()
        with self._lock:
            self._volumes[key] = made
            while sum(v.nbytes for v in self._volumes.values()) > _MOST_KEPT and len(self._volumes) > 1:
                self._volumes.popitem(last=False)
        return made


_kept = _Kept()


class FileArray(LazyArray):
    """An array of a file that something else than tensorstore reads.

    part    called for an array whose slices are read, once in each thread
    """

    def __init__(self, what: str, shape: Sequence[int], dtype: str, axes: str, grid: Grid, part: Callable[[], Any]) -> None:
        self._said, self.shape, self.dtype, self.axes, self.grid = what, tuple(int(n) for n in shape), dtype, axes, grid
        self._part = part

    @property
    def _what(self) -> str:
        return self._said

    def _read(self, box: Sequence[tuple[int, int]], out: np.ndarray) -> None:
        try:
            out[...] = self._part()[tuple(slice(a, b) for a, b in box)]
        except (OSError, ValueError, RuntimeError, EOFError) as problem:
            if isinstance(problem, Error):
                raise
            raise Error(f"{self._said}: expected readable voxels, got {arrays.sentence(problem)}. Copy the file again from where it came") from None


class FileCase(Case):
    """A case of files of others; what is asked for is opened when it is.

    image, labels    called for the arrays
    """

    def __init__(self, name: str, image: Callable[[], LazyArray], labels: Callable[[], LazyArray] | None = None,
                 fingerprint: Callable[[], Mapping[str, Any]] | None = None) -> None:
        self.name, self._image, self._labels, self._fingerprint = name, image, labels, fingerprint

    @cached_property
    def image(self) -> LazyArray:  # type: ignore[override]
        return self._image()

    @cached_property
    def labels(self) -> LazyArray | None:  # type: ignore[override]
        return None if self._labels is None else self._labels()

    @cached_property
    def fingerprint(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {} if self._fingerprint is None else self._fingerprint()


def cases_of(root: Path, mode: str, threads: int | None) -> dict[str, Case]:
    """The cases of a folder that is no store of suture.

    Raises
    ------
    Error
        If there is none.
    """
    names = sorted(os.listdir(root)) if root.is_dir() else [root.name]
    base = root if root.is_dir() else root.parent
    found: dict[str, Case] = {}
    for name in names:
        if scans.is_scan(name):
            case = scans.stem(name)
            if case in found:
                raise Error(f"suture: store: case {case!r}: expected one of this name in {root}, got two. Rename one of them")
            found[case] = _scan(base / name, case)
    if not found:
        raise Error(f"suture: store: path: expected a store, or NIfTI, b2nd, npz or Zarr files, got none in {str(root)!r}")
    return found


def _scan(path: Path, name: str) -> Case:
    """A volume of a file; of compressed ones the whole is read, and kept for a while."""
    what = f"suture: store: case {name!r}"

    def image() -> LazyArray:
        key = (os.path.realpath(path), os.stat(path).st_mtime_ns, os.stat(path).st_size)
        scan = scans.read(path, what)
        if scan.scaling is not None:
            scan.data = arrays.scaled(scan.data, *scan.scaling)
        first, again = scan.data, lambda: _whole(path, what)
        return FileArray(what, first.shape, first.dtype.name, "zyx", scan.grid, lambda: _kept(key, again))

    return FileCase(name, image)


def _whole(path: Path, what: str) -> np.ndarray:
    scan = scans.read(path, what)
    return scan.data if scan.scaling is None else arrays.scaled(scan.data, *scan.scaling)
