# SPDX-License-Identifier: Apache-2.0
"""This module writes sharded, compressed Zarr arrays by tensorstore, and reads boxes of them into given memory."""
from __future__ import annotations

import errno
import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import index_of
from ..arrays.volume import Grid
from ..errors import Error
from ..operations.kinds import shown

# Most bytes of a Blosc block. If a chunk is one block that fits the L2 cache, it decodes a third faster than in the blocks of
# 128 kB that Blosc chooses for zstd, and is slightly smaller.
_BLOCK = 1 << 19
PROFILES = {"small": ("zstd", 3), "fast": ("lz4", 5)}  # codec and level of Blosc
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "float16", "float32")
_REMOTE = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "fuse", "9p", "afs", "wekafs", "pvfs", "virtiofs")


def _tensorstore() -> Any:
    try:
        import tensorstore
    except ImportError:
        raise Error("suture: store: expected tensorstore to be installed. pip install 'suture[store]'") from None
    return tensorstore


def file_system(path: Path) -> str:
    """Returns the type of the file system of a path, such as "ext4", or "" if it is unknown."""
    place, found = os.path.realpath(path), ("", "")
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                _, point, kind = line.split(" ")[:3]
                point = point.replace("\\040", " ")
                inside = place == point or place.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(found[0]):
                    found = point, kind
    except OSError:
        pass
    return found[1]


def io_mode(path: Path, io: str) -> str:
    """Returns how the files below a path are read.

    Parameters
    ----------
    path : Path
        A store.
    io : {"auto", "plain", "memmap", "direct"}
        "auto" is "memmap" on a local file system, else "plain": if a server removes a file, access to its memory map ends the
        process.

    Returns
    -------
    str
        "plain", "memmap" or "direct".

    Raises
    ------
    Error
        If io is none of these, or "direct" on a file system that refuses direct reads.
    """
    if io not in ("auto", "plain", "memmap", "direct"):
        raise Error(f'suture: store: io: expected "auto", "plain", "memmap" or "direct", got {io!r}')
    if io == "direct":
        _check_direct(path)
    if io != "auto":
        return io
    kind = file_system(path)
    return "plain" if not kind or any(kind.startswith(name) for name in _REMOTE) else "memmap"


def _check_direct(path: Path) -> None:
    """Refuses a store whose file system cannot open a file for direct reads."""
    first = next((Path(root) / name for root, _, names in os.walk(path) for name in sorted(names)), None)
    if first is None:
        return
    try:
        if not hasattr(os, "O_DIRECT"):
            raise OSError(errno.EINVAL, "no direct reads on this system")
        os.close(os.open(first, os.O_RDONLY | os.O_DIRECT))
    except OSError as problem:
        raise Error(f"suture: store: io: expected a file system with direct reads at {path}, got {file_system(path) or 'another'}, which refuses "
                    f"them ({problem.strerror}). Open it with io=\"auto\"") from None


@functools.cache
def context(mode: str, threads: int | None = None) -> Any:
    """Returns a context of tensorstore, which arrays share. `threads` is the number of decoding threads; None: one per processor."""
    spec: dict[str, Any] = {"cache_pool": {"total_bytes_limit": 0},
                            "file_io_mode": {"mode": "default" if mode == "plain" else mode}}
    if threads is not None:
        spec["data_copy_concurrency"] = {"limit": threads}
    return _tensorstore().Context(spec)


def chunks_of(shape: Sequence[int], chunk: int, axes: int) -> tuple[int, ...]:
    """Returns the extents of a chunk along the axes of an array. Chunks of volumes have one channel, those of slides all channels.

    `chunk` is the extent along each spatial axis, and `axes` is their number, 3 for volumes and 2 for slides.
    """
    channels = tuple(1 if axes == 3 else n for n in shape[:len(shape) - axes])
    return (*channels, *(min(chunk, int(n)) for n in shape[len(shape) - axes:]))


def create(path: Path, shape: Sequence[int], dtype: str, *, names: Sequence[str], chunk: Sequence[int], shard: Sequence[int],
           profile: str, threads: int | None) -> Any:
    """Makes a sharded array of Zarr v3 and opens it for writing."""
    codec, level = PROFILES[profile]
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    size = np.dtype(dtype).itemsize
    blosc = {"name": "blosc", "configuration": {"cname": codec, "clevel": level, "shuffle": "bitshuffle", "typesize": size,
                                                "blocksize": min(math.prod(chunk) * size, _BLOCK)}}
    sharding = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": list(chunk), "codecs": [little, blosc], "index_codecs": [little, {"name": "crc32c"}],
        "index_location": "end"}}
    metadata = {"shape": list(shape), "data_type": dtype, "dimension_names": list(names), "fill_value": 0, "codecs": [sharding],
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shard)}},
                "chunk_key_encoding": {"name": "default"}}
    return _tensorstore().open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}, "metadata": metadata},
                               create=True, context=context("plain", threads)).result()


def write(path: Path, data: np.ndarray, *, names: Sequence[str], chunk: Sequence[int], profile: str,
          threads: int | None = None) -> None:
    """Writes an array as one shard, in one transaction, so that equal arrays give equal files."""
    shard = [math.ceil(n / c) * c for n, c in zip(data.shape, chunk)]
    array = create(path, data.shape, data.dtype.name, names=names, chunk=chunk, shard=shard, profile=profile, threads=threads)
    with _tensorstore().Transaction() as transaction:
        array.with_transaction(transaction)[...].write(data).result()


def write_blocks(path: Path, shape: Sequence[int], dtype: str, block: Callable[[tuple[int, ...], tuple[int, ...]], np.ndarray | None], *,
                 names: Sequence[str], chunk: Sequence[int], shard: Sequence[int], profile: str,
                 threads: int | None = None) -> None:
    """Writes an array shard by shard; block(low, high) returns the voxels of one, None if they are 0, which are not stored."""
    array = create(path, shape, dtype, names=names, chunk=chunk, shard=shard, profile=profile, threads=threads)
    for place in np.ndindex(*(math.ceil(n / s) for n, s in zip(shape, shard))):
        low = tuple(p * s for p, s in zip(place, shard))
        high = tuple(min(a + s, n) for a, s, n in zip(low, shard, shape))
        voxels = block(low, high)
        if voxels is None:
            continue
        with _tensorstore().Transaction() as transaction:
            array.with_transaction(transaction)[tuple(slice(a, b) for a, b in zip(low, high))].write(voxels).result()


def _index(what: str, value: Any) -> int:
    """Returns a whole number of an index, and refuses anything else."""
    number = None if isinstance(value, (bool, np.bool_)) else index_of(value)
    if number is None:
        raise IndexError(f"{what}: index: expected whole numbers, slices of them and an ellipsis, got {shown(value)}. Index the array that [...] "
                         "returns")
    return number


class LazyArray:
    """An array whose voxels are read box by box on request. Several threads may read at once.

    Attributes
    ----------
    shape : tuple of int
        (axes) or (channel, axes).
    dtype : str
        Name of the element type that is read.
    axes : str
        Order of the spatial axes: "zyx" for volumes, "yx" for slides.
    grid : Grid
        Position of the voxels in space.
    class_index : bytes or None
        Bytes of the ClassIndex of a label map; None if there is none.
    placed : bool
        False if the file has no metadata of spacing and position.

    Examples
    --------
    >>> image = suture.store.open("cohort.zarr")["case_0007"].image  # doctest: +SKIP
    >>> image[100:164, 200:264, 200:264].shape  # doctest: +SKIP
    (64, 64, 64)
    """

    shape: tuple[int, ...]
    dtype: str
    axes: str
    grid: Grid
    class_index: bytes | None = None
    placed: bool = True

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the whole array in memory."""
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def spacing(self) -> dict[str, float]:
        """The distance of neighboring voxels in millimeters, by axis."""
        return dict(zip("zyx", self.grid.spacing))

    @property
    def affine_ras(self) -> np.ndarray:
        """The 4 x 4 matrix from the indices of the array, in its own order, to RAS millimeters."""
        return self.grid.affine_ras(self.axes)

    def read(self, low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
        """Reads the voxels from `low` up to, and without, `high`, all channels of them.

        Parameters
        ----------
        low, high : sequence of int
            A box along the spatial axes, in the order of `shape`, within the array and not empty.
        out : numpy.ndarray
            Memory that is written: of this dtype, with any strides, and of the shape of the box, after the channels if there
            are any.

        Raises
        ------
        Error
            If the box leaves the array, `out` does not fit, or the voxels cannot be read or differ from those that were stored.
        """
        box, channels = self._checked(low, high), self.shape[:len(self.shape) - len(self.axes)]
        shape = (*channels, *(b - a for a, b in box))
        if out.shape != shape or out.dtype != np.dtype(self.dtype):
            raise Error(f"{self._what}: out: expected {self.dtype} of shape {shape}, got {out.dtype} of {out.shape}")
        self._read((*((0, c) for c in channels), *box), out)

    def _checked(self, low: Sequence[int], high: Sequence[int]) -> tuple[tuple[int, int], ...]:
        spatial = self.shape[len(self.shape) - len(self.axes):]
        box = tuple((index_of(a), index_of(b)) for a, b in zip(low, high))
        found = tuple((a, b) for (a, b), n in zip(box, spatial) if a is not None and b is not None and 0 <= a < b <= n)
        if not len(low) == len(high) == len(spatial) == len(found):
            raise Error(f"{self._what}: box: expected one of whole numbers within {spatial} and not empty, got {tuple(low)} to {tuple(high)}")
        return found

    @property
    def _what(self) -> str:
        return "suture: store"

    def _read(self, box: Sequence[tuple[int, int]], out: np.ndarray) -> None:
        """Reads a box within the array along all axes, those of channels included."""
        raise NotImplementedError

    def window(self, low: Sequence[int], high: Sequence[int]) -> LazyArray:
        """Returns a box of the array, with all channels, as a lazy array on the grid of the box.

        Parameters
        ----------
        low, high : sequence of int
            The box along the spatial axes, from `low` up to, and without, `high`.

        Returns
        -------
        LazyArray
            The box.

        Raises
        ------
        Error
            If the box leaves the array.
        """
        return _Window(self, self._checked(low, high))

    def __getitem__(self, key: Any) -> np.ndarray:
        """Reads by basic indexing of NumPy: whole numbers, slices with a positive step, and an ellipsis."""
        keys = key if isinstance(key, tuple) else (key,)
        dots = [at for at, k in enumerate(keys) if k is Ellipsis]
        if len(dots) > 1:
            raise IndexError(f"{self._what}: index: expected at most one ellipsis, got {len(dots)}")
        for at in dots:
            keys = (*keys[:at], *[slice(None)] * (self.ndim - len(keys) + 1), *keys[at + 1:])
        if len(keys) > self.ndim:
            raise IndexError(f"{self._what}: expected at most {self.ndim} indices, got {len(keys)}")
        keys = (*keys, *[slice(None)] * (self.ndim - len(keys)))
        box, after = [], []
        for k, n in zip(keys, self.shape):
            ends = [_index(self._what, end) for end in (k.start, k.stop, k.step) if end is not None] if isinstance(k, slice) else []
            if isinstance(k, slice):
                if k.step is not None and ends[-1] < 1:
                    raise IndexError(f"{self._what}: expected a positive step, got {k.step}")
                a, b, step = k.indices(n)
                box.append((a, max(a, b)))
                after.append(slice(None, None, step))
            else:
                i = _index(self._what, k)
                if not -n <= i < n:
                    raise IndexError(f"{self._what}: index {i} is not within {n}")
                box.append((i % n, i % n + 1))
                after.append(0)  # type: ignore[arg-type]
        out = np.empty([b - a for a, b in box], self.dtype)
        if out.size:
            self._read(box, out)
        return out[tuple(after)]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self[...], dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape}, {self.dtype}, spacing={self.spacing})"


class _Window(LazyArray):
    """A box of another array."""

    def __init__(self, whole: LazyArray, box: Sequence[tuple[int, int]]) -> None:
        axes, channels = whole.axes, whole.shape[:len(whole.shape) - len(whole.axes)]
        self._whole, self._low = whole, (*(0 for _ in channels), *(a for a, _ in box))
        self.shape, self.dtype, self.axes = (*channels, *(b - a for a, b in box)), whole.dtype, axes
        self.placed = whole.placed
        moved = dict(zip(axes, (a for a, _ in box)))
        start, grid = np.array([moved.get(k, 0) for k in "zyx"]), whole.grid
        extents = dict(zip(axes, self.shape[len(channels):]))
        origin = np.array(grid.origin) + np.array(grid.direction).reshape(3, 3) @ (start * np.array(grid.spacing))
        self.grid = Grid((extents.get("z", 1), extents["y"], extents["x"]), grid.spacing,
                         (float(origin[0]), float(origin[1]), float(origin[2])),
                         grid.direction)

    @property
    def _what(self) -> str:
        return self._whole._what

    def _read(self, box: Sequence[tuple[int, int]], out: np.ndarray) -> None:
        self._whole._read([(a + s, b + s) for (a, b), s in zip(box, self._low)], out)


class ZarrArray(LazyArray):
    """An array in Zarr v2 or v3, as tensorstore reads it.

    path      folder of the array
    what      words that errors begin with, with the name of the case
    scaling   (slope, intercept) for stored whole numbers, which are then read as float32; None: they are read as stored
    check     called with a box along all axes before and after it is read: returns what identifies the files of the box, and raises if
              they are not those that were stored
    """

    def __init__(self, path: Path, what: str, *, axes: str, grid: Grid, mode: str, threads: int | None = None,
                 scaling: tuple[float, float] | None = None,
                 check: Callable[[Sequence[tuple[int, int]]], Any] | None = None) -> None:
        self.path, self._prefix, self.axes, self.grid, self._scaling, self._check = path, what, axes, grid, scaling, check
        self._context = context(mode, threads)
        self._opened = opened(path, what, self._context)
        self.shape = tuple(int(n) for n in self._opened.shape)
        self.stored_dtype = self._opened.dtype.name
        self.dtype = "float32" if scaling else self.stored_dtype

    @property
    def _what(self) -> str:
        return self._prefix

    @property
    def scaling(self) -> tuple[float, float] | None:
        """Slope and intercept for the stored whole numbers; None if they are read as stored."""
        return self._scaling

    @property
    def chunk(self) -> tuple[int, ...]:
        """Extents of a chunk, which is decoded as a whole, along all axes."""
        return tuple(int(n) for n in self._opened.chunk_layout.read_chunk.shape)

    def read_stored(self, box: Sequence[tuple[int, int]], out: np.ndarray) -> None:
        """Reads a box along all axes as it is stored, without slope and intercept."""
        check = self._check
        if check is None:
            problem = self._try(box, out)
        else:
            files: Any = None
            for _ in range(8):  # once, unless files are replaced meanwhile
                if files == (now := check(box)):
                    break
                files, problem = now, self._try(box, out)
            else:
                problem = OSError("files that change while they are read")
        if problem is not None:
            where = ", ".join(f"{a}:{b}" for a, b in box)
            raise Error(f"{self._prefix}: expected readable chunks at [{where}], got {sentence(problem)}. "
                        "suture store verify names what is damaged, suture store repair makes it again")

    def _try(self, box: Sequence[tuple[int, int]], out: np.ndarray) -> Exception | None:
        """Reads a box along all axes as it is stored, and returns the problem of tensorstore, if there is one."""
        ts = _tensorstore()
        try:
            source = self._opened[tuple(slice(a, b) for a, b in box)]
            ts.array(out, context=self._context).write(source).result()
        except (ValueError, OSError, RuntimeError, NotImplementedError) as problem:
            return problem
        return None

    def _read(self, box: Sequence[tuple[int, int]], out: np.ndarray) -> None:
        if self._scaling is None:
            self.read_stored(box, out)
            return
        stored = np.empty(out.shape, self.stored_dtype)
        self.read_stored(box, stored)
        out[...] = scaled(stored, *self._scaling)


def scaled(stored: np.ndarray, slope: float, intercept: float) -> np.ndarray:
    """Returns stored * slope + intercept as float32, computed in float64."""
    return (stored * np.float64(slope) + np.float64(intercept)).astype(np.float32)


def opened(path: Path, what: str, context: Any) -> Any:
    """Opens an array of Zarr v2 or v3 for reading."""
    driver = "zarr3" if (path / "zarr.json").is_file() else "zarr"
    try:
        return _tensorstore().open({"driver": driver, "kvstore": {"driver": "file", "path": str(path)}}, open=True, read=True,
                                   context=context, recheck_cached_metadata=False, recheck_cached_data=False).result()
    except (ValueError, OSError, RuntimeError, NotImplementedError) as problem:
        raise Error(f"{what}: expected an array of Zarr at {path}, got {sentence(problem)}") from None


def sentence(problem: BaseException) -> str:
    """Returns the message of a library in one line, without its source positions and file contents."""
    text = " ".join(str(problem).split(" [")[0].split())
    return text[:300].rstrip(" .") or type(problem).__name__


def attributes(path: Path) -> Mapping[str, Any]:
    """Reads the attributes of a group or an array of Zarr v3, or of v2; empty if there are none.

    Raises
    ------
    Error
        If the file has no attributes as Zarr writes them.
    """
    for name in ("zarr.json", ".zattrs"):
        if (path / name).is_file():
            record = json_object(path / name)
            found = record.get("attributes", {}) if name == "zarr.json" else record
            if not isinstance(found, dict):
                raise Error(f"suture: store: {path / name}: expected attributes of Zarr, got {type(found).__name__}. Copy the file again")
            return found
    return {}


def json_object(path: Path) -> dict[str, Any]:
    """Reads the object that a file of JSON holds.

    Raises
    ------
    Error
        If it holds anything else, or cannot be read.
    """
    import json

    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise Error(f"suture: store: {path}: expected JSON, got {sentence(problem)}. Copy the file again") from None
    if not isinstance(record, dict):
        raise Error(f"suture: store: {path}: expected an object of JSON, got {type(record).__name__}. Copy the file again")
    return record
