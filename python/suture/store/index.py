# SPDX-License-Identifier: Apache-2.0
"""The index of a store is one file, which `open` reads. It lists the cases with hash and size of their manifests, and has the hash of
the data set."""
from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from ..errors import Error
from . import files
from .manifest import Manifest

_FILE = "cases.json"


def _manifests(store: Path) -> Path:
    """Returns the folder of manifests of a store, or refuses a store without one."""
    folder = files.manifests(store)
    if not folder.is_dir():
        raise Error(f"suture: store: expected the manifests of a store in {folder}, got no such folder. Copy the whole store again, with its "
                    "hidden folder, or run suture store build")
    return folder


def listed(store: Path) -> set[str]:
    """Returns the names of the cases that have a manifest."""
    return {name[:-len(".json")] for name in os.listdir(_manifests(store)) if name.endswith(".json")}


def cases_of(store: Path) -> list[str]:
    """Returns the names of the complete cases of a store."""
    return sorted(listed(store) & set(os.listdir(store)))


def named(store: Path) -> set[str]:
    """Returns the names of all cases that a store has or should have: those with a manifest, with a folder, or in the index."""
    return listed(store) | {e.name for e in os.scandir(store) if e.is_dir() and e.name != files.FOLDER} | set(written_index(store))


def hash_of(hashes: Mapping[str, str]) -> str:
    """Returns the hash of a data set: SHA-256 of "NAME SHA256\\n" of each case, in the order of names."""
    return hashlib.sha256("".join(f"{name} {hashes[name]}\n" for name in sorted(hashes)).encode()).hexdigest()


def write_index(store: Path, unchanged: Collection[str] = ()) -> str:
    """Writes the index of the present cases of a store, and returns the hash of the data set.

    The time of modification of the index is the time when the cases were listed, so that `read_index` sees if another process added
    one before the index was written. Hashes of manifests are taken from the previous index, except for manifests that it lacks, or
    whose size, time of modification or time of renaming says that they changed since its cases were listed. Cases of `unchanged`,
    such as those whose repair was refused, keep their hashes even so."""
    with files.lock(store, "store"):
        known, since = _read(store)
        begin = files.now(store, "store")
        if begin <= _changed(store):  # the clock goes in steps, and a case that was added in this one is not told from a later one
            time.sleep(.02)
            begin = files.now(store, "store")
        hashes: dict[str, str] = {}
        sizes: dict[str, int] = {}
        folder = str(_manifests(store))
        for name in cases_of(store):
            status = os.stat(f"{folder}/{name}.json")
            same = name in known and known[name][1] == status.st_size and max(status.st_mtime_ns, status.st_ctime_ns) < since
            if same or (name in known and name in unchanged):
                hashes[name], sizes[name] = known[name]
            else:
                hashes[name], sizes[name] = Manifest(store, name).sha256, status.st_size
        record = {"cases": {name: [hashes[name], sizes[name]] for name in hashes}, "sha256": hash_of(hashes)}
        files.write(store, "store", store / files.FOLDER / _FILE, files.json_bytes(record), begin)
    return hash_of(hashes)


def _changed(store: Path) -> int:
    """Returns the last time, in ns, at which a case or a manifest was added, removed or replaced."""
    return max(os.stat(folder).st_mtime_ns for folder in (store, _manifests(store)))


def _read(store: Path) -> tuple[dict[str, tuple[str, int]], int]:
    """Returns hash and size of each manifest by the index, and the time when its cases were listed, in ns; ({}, 0) if it is
    damaged."""
    path = store / files.FOLDER / _FILE
    try:
        listed_at = os.stat(path).st_mtime_ns
        record = json.loads(path.read_bytes())
        cases = {name: (str(sha256), int(size)) for name, (sha256, size) in record["cases"].items()}
        if hash_of({name: sha256 for name, (sha256, _) in cases.items()}) != record["sha256"]:
            return {}, 0
        return cases, listed_at
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return {}, 0


def written_index(store: Path) -> dict[str, str]:
    """Returns the hash of each manifest by the index; empty if the index is damaged."""
    return {name: sha256 for name, (sha256, _) in _read(store)[0].items()}


def read_index(store: Path) -> dict[str, str]:
    """Returns the hash of the manifest of each case of a store.

    Only the index is read if no case and no manifest was added, removed or replaced since its cases were listed. Otherwise, as after an
    interrupted build, the cases are listed, and manifests that the index lacks are hashed."""
    known, since = _read(store)
    if known and _changed(store) < since:
        return {name: sha256 for name, (sha256, _) in known.items()}
    return {name: known[name][0] if name in known else Manifest(store, name).sha256 for name in cases_of(store)}
