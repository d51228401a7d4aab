# SPDX-License-Identifier: Apache-2.0
"""A manifest has the SHA-256 of every file of a case and of every chunk within its shards."""
from __future__ import annotations

import hashlib
import itertools
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Error
from . import files
from .arrays import json_object

VERSION = 1
_ABSENT = 0xFFFFFFFFFFFFFFFF
Identity = tuple[int, int, int]


def identity_of(status: os.stat_result) -> Identity:
    """Returns what changes if a file is replaced or written."""
    return status.st_ino, status.st_size, status.st_ctime_ns


def make(folder: Path, name: str) -> dict[str, Any]:
    """Makes the manifest of a case in a folder.

    Returns
    -------
    dict
        "files": by the path of each file within the case, "bytes" and "sha256". For a shard also "chunks", in the order of its
        index: [offset, bytes, sha256], or null for a chunk of zeros, which is not stored. "zarr_checksum" is the digest of the
        folder that the package zarr-checksum defines.
    """
    try:
        from zarr_checksum.tree import ZarrChecksumTree
    except ImportError:
        raise Error("suture: store: expected zarr-checksum to be installed. pip install 'suture[store]'") from None

    tree, found = ZarrChecksumTree(), {}
    for path in tree_of(folder):
        file = folder / path
        record, md5 = describe(file, shard_chunks(folder, path))
        found[path] = record
        tree.add_leaf(path=Path(path), size=record["bytes"], digest=md5)
    return {"suture_store": VERSION, "case": name, "files": found, "zarr_checksum": str(tree.process())}


def tree_of(folder: Path) -> list[str]:
    """Returns the paths of all files below a folder, in order."""
    return sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder) for name in names)


def shard_chunks(folder: Path, path: str) -> int:
    """Returns the number of chunks of a file if it is a shard, else 0. `path` is relative to the folder of the case."""
    array = array_of(path)
    if array is None:
        return 0
    return int(array_layout(folder / array)["chunks"])


def array_of(path: str) -> str | None:
    """Returns the array that a file is a shard of, by its path within the case; None for other files."""
    head, found, _ = path.partition("/c/")
    return head if found else None


def array_layout(path: Path) -> dict[str, Any]:
    """Reads the shape of an array that the store wrote, the extents of its shards and chunks, and the chunks of a shard.

    Raises
    ------
    Error
        If the store did not write such an array.
    """
    record = json_object(path / "zarr.json")
    try:
        shape, shard = list(record["shape"]), list(record["chunk_grid"]["configuration"]["chunk_shape"])
        chunk = list(record["codecs"][0]["configuration"]["chunk_shape"])
        grid = [s // c for s, c in zip(shard, chunk)]
        if not len(shape) == len(shard) == len(chunk) or not all(type(n) is int and n > 0 for n in (*shape, *shard, *grid)):
            raise ValueError
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError):
        raise Error(f"suture: store: {path}: expected an array that the store wrote, got another. suture store repair makes the case again") from None
    return {"shape": shape, "shard": shard, "chunk": chunk, "grid": grid, "chunks": math.prod(grid)}


def describe(file: Path, chunks: int) -> tuple[dict[str, Any], str]:
    """Returns the record of a file for a manifest, and its MD5. `chunks` is the number of chunks of a shard, else 0."""
    with open(file, "rb") as handle:
        size = os.fstat(handle.fileno()).st_size
        record: dict[str, Any] = {"bytes": size}
        if not size:
            return {**record, "sha256": hashlib.sha256().hexdigest()}, hashlib.md5(usedforsecurity=False).hexdigest()
        with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            record["sha256"] = hashlib.sha256(view).hexdigest()
            md5 = hashlib.md5(view, usedforsecurity=False).hexdigest()
            if chunks:
                record["chunks"] = [None if place is None else [*place,
                                                                hashlib.sha256(view[place[0]:place[0] + place[1]]).hexdigest()]
                                    for place in shard_index(view, chunks)]
    return record, md5


def shard_index(data: Any, chunks: int) -> list[tuple[int, int] | None]:
    """Returns offset and size of each chunk of a shard, by the index at its end, which a CRC follows."""
    index = np.frombuffer(data[len(data) - 16 * chunks - 4:len(data) - 4], "<u8").reshape(-1, 2)
    found: list[tuple[int, int] | None] = [None if int(offset) == _ABSENT else (int(offset), int(size)) for offset, size in index]
    return found


def _is_record(path: str, record: Any) -> bool:
    """Tests whether an entry of a manifest is as `make` writes it, with a path within the case."""
    def counts(*values: Any) -> bool:
        return all(type(value) is int and value >= 0 for value in values)

    chunks = record.get("chunks", [])
    return (".." not in Path(path).parts and not Path(path).is_absolute() and counts(record["bytes"]) and isinstance(record["sha256"], str)
            and isinstance(chunks, list) and record["bytes"] >= (16 * len(chunks) + 4 if chunks else 0)
            and all(each is None or (len(each) == 3 and counts(*each[:2]) and isinstance(each[2], str)) for each in chunks))


class Manifest:
    """The manifest of a case.

    data      bytes of the manifest
    identity  identity of its file, just before it was read
    sha256    SHA-256 of these bytes, which identifies the case
    """

    def __init__(self, store: Path, name: str) -> None:
        self.store, self.name = store, name
        self.path = files.manifests(store) / f"{name}.json"
        try:
            self.identity = identity_of(os.stat(self.path))
            self.data = self.path.read_bytes()
        except FileNotFoundError:
            raise Error(f"suture: store: case {name!r}: expected its manifest, got none. Open the store again if the case was "
                        "removed; else run suture store build again") from None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """The contents of the manifest.

        Raises
        ------
        Error
            If it is no manifest of this case, or one of another version.
        """
        try:
            record = json.loads(self.data)
            version, listed = record["suture_store"], record["files"]
            if record["case"] != self.name or not all(_is_record(path, each) for path, each in listed.items()):
                raise KeyError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Error(f"suture: store: case {self.name!r}: expected a manifest, got other text in {self.path}. "
                        "Run suture store repair") from None
        if version != VERSION:
            raise Error(f"suture: store: case {self.name!r}: expected a manifest of version {VERSION}, got {version}. "
                        "Build the store again, or use the version of suture that wrote it")
        known: Mapping[str, Any] = record
        return known

    @property
    def files(self) -> Mapping[str, Any]:
        """The record of each file, by its path within the case."""
        found: Mapping[str, Any] = self.record["files"]
        return found

    @property
    def bytes(self) -> int:
        """Bytes of all files of the case."""
        return sum(record["bytes"] for record in self.files.values())

    def problems(self, prefix: str = "") -> Iterator[str]:
        """Yields a phrase for each file that is missing or has another size, without reading files."""
        for path, record in self.files.items():
            if path.startswith(prefix):
                try:
                    size = os.stat(self.store / self.name / path).st_size
                except OSError:
                    yield f"{'shard' if 'chunks' in record else 'file'} {path} is missing"
                    continue
                if size != record["bytes"]:
                    yield f"{path} has {size} bytes in place of {record['bytes']}"

    def damage(self) -> list[str]:
        """Reads every byte and returns a phrase for each file that differs from the manifest, with the positions of damaged chunks."""
        folder, found = self.store / self.name, []
        for path, record in self.files.items():
            try:
                now, _ = describe(folder / path, 0)
            except OSError:
                found.append(f"{'shard' if 'chunks' in record else 'file'} {path} is missing")
                continue
            if now["sha256"] == record["sha256"]:
                continue
            where = []
            for k, chunk in enumerate(record.get("chunks", ())):
                if chunk is not None and not _same(folder / path, chunk):
                    where.append(self.place(path, k))
            if where:
                found.append(f"chunk{'s' * (len(where) > 1)} {', '.join(where[:4])}{' and others' * (len(where) > 4)} of {path} "
                             f"{'have' if len(where) > 1 else 'has'} not the hash of the manifest")
            elif now["bytes"] != record["bytes"]:
                found.append(f"{path} has {now['bytes']} bytes in place of {record['bytes']}")
            else:
                found.append(f"{path} has not the hash of the manifest")
        listed = set(self.files)
        found += [f"{path} is not in the manifest" for path in tree_of(folder) if path not in listed]
        return found

    def place(self, path: str, k: int) -> str:
        """Returns the first voxel of chunk k of a shard, along the axes of its array."""
        array = array_of(path)
        assert array is not None
        layout = array_layout(self.store / self.name / array)
        shard = [int(v) for v in path[len(array) + 3:].split("/")]
        inner = np.unravel_index(k, layout["grid"])
        return "(" + ", ".join(str(s * n + int(i) * c) for s, n, i,
                               c in zip(shard, layout["shard"], inner, layout["chunk"])) + ")"


def _same(file: Path, chunk: Sequence[Any]) -> bool:
    """Tests whether a chunk of a shard has its hash."""
    offset, size, sha256 = chunk
    with open(file, "rb") as handle:
        handle.seek(offset)
        return hashlib.sha256(handle.read(size)).hexdigest() == str(sha256)


class Check:
    """Tests whether the files of a box are those of the case that was opened, around each read of the box.

    A file that is gone reads as zeros, and files of a case that is made again may go at any time. So a reader calls this before and
    after it reads, and reads again if the answers differ.

    manifest  manifest of the case
    array     path of the array within the case
    hashes    whether chunks are compared with the manifest; each is hashed once, and again if its file was replaced
    """

    def __init__(self, manifest: Manifest, array: str, hashes: bool) -> None:
        self.manifest, self.array, self.hashes = manifest, array, hashes
        self._layout = array_layout(manifest.store / manifest.name / array)
        self._manifest = manifest.identity
        self._known: dict[tuple[str, int], Identity] = {}

    def __call__(self, box: Sequence[tuple[int, int]]) -> list[Identity | None]:
        """Returns what identifies the manifest and the shards of a box along all axes; None for a shard of zeros, which is not stored.

        Raises
        ------
        Error
            If the case was made anew, a shard is missing or has another size, or a chunk has another hash.
        """
        self._check_case()
        shards = {path: self._shard(path) for path in self._shards(box)}
        if self.hashes:
            for path, k in self._chunks(box):
                identity = shards[path]
                if identity is not None and self._known.get((path, k)) != identity:
                    self._verify(path, k)
                    self._known[path, k] = identity
        return [self._manifest, *shards.values()]

    def _check_case(self) -> None:
        """Refuses another manifest than that of the opened case. A case has its manifest before its files are replaced."""
        path, name = self.manifest.path, self.manifest.name
        try:
            found = identity_of(os.stat(path))
        except OSError:
            raise Error(f"suture: store: case {name!r}: expected its manifest in {path}, got none: the case was removed. Open the store again") from None
        if found == self._manifest:
            return
        now = Manifest(self.manifest.store, name)
        if now.sha256 != self.manifest.sha256:
            raise Error(f"suture: store: case {name!r}: expected the case that was opened, {self.manifest.sha256[:12]}, got {now.sha256[:12]}: it "
                        "was made anew meanwhile. Open the store again")
        self._manifest = now.identity

    def _shards(self, box: Sequence[tuple[int, int]]) -> Iterator[str]:
        """Yields the paths of the shards of a box, within the case."""
        for shard in itertools.product(*(range(a // s, (b - 1) // s + 1) for (a, b), s in zip(box, self._layout["shard"]))):
            yield f"{self.array}/c/" + "/".join(map(str, shard))

    def _chunks(self, box: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int]]:
        """Yields the chunks of a box, each as the path of its shard and its number within it."""
        layout = self._layout
        for chunk in itertools.product(*(range(a // c, (b - 1) // c + 1) for (a, b), c in zip(box, layout["chunk"]))):
            path = f"{self.array}/c/" + "/".join(str(c // g) for c, g in zip(chunk, layout["grid"]))
            yield path, int(np.ravel_multi_index([c % g for c, g in zip(chunk, layout["grid"])], layout["grid"]))

    def _shard(self, path: str) -> Identity | None:
        """Returns what identifies a shard, after a check that it is there with the size of the manifest."""
        record = self.manifest.files.get(path)
        try:
            status = os.stat(self.manifest.store / self.manifest.name / path)
        except OSError:
            if record is None:  # a shard of zeros is not written
                return None
            raise self._error(f"shard {path} is missing") from None
        if record is None:
            raise self._error(f"shard {path} is not in the manifest")
        if status.st_size != record["bytes"]:
            raise self._error(f"{path} has {status.st_size} bytes in place of {record['bytes']}")
        return identity_of(status)

    def _verify(self, path: str, k: int) -> None:
        """Compares a chunk with the manifest, or the place of a chunk of zeros in the index of its shard."""
        record = self.manifest.files[path]
        file, chunk = self.manifest.store / self.manifest.name / path, record["chunks"][k]
        try:
            if chunk is not None:
                problem = "" if _same(file, chunk) else f"chunk {self.manifest.place(path, k)} of {path} has not the hash of the manifest"
            else:
                with open(file, "rb") as handle:
                    handle.seek(record["bytes"] - 16 * len(record["chunks"]) - 4 + 16 * k)
                    absent = handle.read(16) == b"\xff" * 16
                problem = "" if absent else f"the index of {path} is not that of the manifest"
        except OSError:
            problem = f"shard {path} is missing"
        if problem:
            raise self._error(problem)

    def _error(self, problem: str) -> Error:
        return Error(f"suture: store: case {self.manifest.name!r}: expected chunks as they were stored, but {problem}. suture store repair makes "
                     "the case again")
