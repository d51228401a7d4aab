# SPDX-License-Identifier: Apache-2.0
"""The index of a store: its cases and the hashes of their manifests, so that opening reads one file."""
from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from . import files
from .manifest import Manifest


def listed(store: Path) -> set[str]:
    """The names of the cases that have a manifest."""
    return {name[:-len(".json")] for name in os.listdir(files.manifests(store)) if name.endswith(".json")}


def cases_of(store: Path) -> list[str]:
    """The names of the cases that are in a store as a whole."""
    return sorted(listed(store) & set(os.listdir(store)))


def hash_of(hashes: Mapping[str, str]) -> str:
    """The hash of a data set: SHA-256 of "NAME SHA256\\n" of each case, in the order of names."""
    return hashlib.sha256("".join(f"{name} {hashes[name]}\n" for name in sorted(hashes)).encode()).hexdigest()


def write_index(store: Path) -> str:
    """Writes the index of a store as it is now; returns the hash of the data set."""
    with files.lock(store, "store"):
        hashes = {name: Manifest(store, name).sha256 for name in cases_of(store)}
        files.write(store, "store", store / files.FOLDER / "cases.json", files.json_bytes(hashes))
    return hash_of(hashes)


def written_index(store: Path) -> dict[str, str]:
    """The index as it was written last; empty where it cannot be read."""
    try:
        hashes: dict[str, str] = json.loads((store / files.FOLDER / "cases.json").read_bytes())
        return hashes
    except (OSError, ValueError):
        return {}


def read_index(store: Path) -> dict[str, str]:
    """The hash of the manifest of each case of a store."""
    names, hashes = cases_of(store), written_index(store)
    if sorted(hashes) != names:  # a build that was ended
        hashes = {name: Manifest(store, name).sha256 for name in names}
    return hashes
