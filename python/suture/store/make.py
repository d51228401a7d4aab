# SPDX-License-Identifier: Apache-2.0
"""This module makes a case: it is read from its source, written to a work folder, hashed, and moved into the store atomically."""
from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Error
from ..pipeline.class_index import ClassIndex
from . import arrays, describe, files, ome, scans
from .arrays import sentence
from .make_maps import write_maps
from .manifest import Manifest, make
from .settings import CLASS_INDEX, VERSION, Settings
from .task import Task

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_LABELS = 1024  # of a plausible label map; atlases of the brain have a few hundred, and a CT has thousands of values


def make_case(store: Path, task: Task, settings: Settings, threads: int | None = None, *, again: bool = False,
              expected: str | None = None) -> str:
    """Makes a case, unless the store has it and its source is unchanged.

    Parameters
    ----------
    store : Path
        The store.
    task : Task
        The case.
    settings : Settings
        The layout of the store.
    threads : int, optional
        Number of encoding threads; None: one per processor.
    again : bool, default False
        Whether to make the case even if the store has it.
    expected : str, optional
        SHA-256 that the manifest must have; if it has another, the case is refused.

    Returns
    -------
    str
        "built" or "reused".

    Raises
    ------
    Error
        If the source cannot be read, is not one volume, or the disk is full. The store is then unchanged.
    """
    lock = f"case {task.name}"
    try:
        with files.lock(store, lock):
            if not again and _is_current(store, task):
                return "reused"
            folder = files.work(store, lock) / "new"
            folder.mkdir(parents=True)
            _fill(folder, task, settings, threads)
            files.sync_tree(folder)
            manifest = files.json_bytes(make(folder, task.name))
            if expected is not None and hashlib.sha256(manifest).hexdigest() != expected:
                raise Error(f"{task.what}: expected the source to give the manifest {expected[:12]}, got another: the source "
                            "has changed, or the version of suture or of the libraries that read and compress it. Run suture store remove "
                            "for the case, then suture store build")
            _move(store, task.name, folder, manifest, lock)
            return "built"
    except OSError as problem:
        raise Error(_message(task.what, problem)) from None
    except MemoryError:
        raise Error(f"{task.what}: expected memory for the whole volume, got none. Use fewer workers") from None


def doubt(store: Path, task: Task) -> str | None:
    """Returns a sentence on a case of the store whose label map has so many labels that it may be a scan; None for others."""
    if task.labels is None:
        return None
    known = json.loads((store / task.name / "zarr.json").read_bytes())["attributes"]["suture"].get("classes", {})
    if len(known) <= _MOST_LABELS:
        return None
    return (f"{task.what}: labels: expected at most {_MOST_LABELS} different labels, got {len(known)} in {task.labels}. The case is in the store; "
            "if its scan and its label map are swapped, name them right and run the same command again")


def _message(what: str, problem: OSError) -> str:
    """Returns the message for a failed system call."""
    if problem.errno in _FULL:
        return f"{what}: expected room on the disk, got {os.strerror(problem.errno or 0)!r}. Free some and run the same command again"
    return f"{what}: expected readable and writable files, got {sentence(problem)}"


def _move(store: Path, name: str, folder: Path, manifest: bytes, lock: str) -> None:
    """Moves a case into the store after its manifest, so that no case is ever without one."""
    files.write(store, lock, files.manifests(store) / f"{name}.json", manifest)
    place, old = store / name, folder.with_name("old")
    if place.exists():
        os.rename(place, old)
    os.rename(folder, place)
    files.sync(store)
    files.remove(old)


def _is_current(store: Path, task: Task) -> bool:
    """Tests whether the store has the complete case, made from this source. Files that were not written, moved or replaced since the
    case was made are compared by name and size alone."""
    path = files.manifests(store) / f"{task.name}.json"
    try:
        manifest = Manifest(store, task.name)
        if next(manifest.problems(), None) is not None:
            return False
        root = (store / task.name / "zarr.json").read_bytes()
        if hashlib.sha256(root).hexdigest() != manifest.files["zarr.json"]["sha256"]:
            return False
        source = json.loads(root)["attributes"]["suture"]["source"]
        made = path.stat().st_mtime_ns
    except (Error, OSError, ValueError, KeyError):
        return False
    try:
        given, given_labels = _files(task)
        known, known_labels = source["files"], [*([source["labels"]] if "labels" in source else []), *source.get("labels_data", [])]
        if (len(given), len(given_labels)) != (len(known), len(known_labels)):
            return False
        for name, record in zip([*given, *given_labels], [*known, *known_labels]):
            status = os.stat(name)
            if (os.path.basename(name), status.st_size) != (record["name"], record["bytes"]):
                return False
            times = [status.st_mtime_ns, status.st_ctime_ns]
            if task.kind in ("series", "enhanced"):  # their folder may be replaced as a whole
                times.append(os.stat(os.path.dirname(os.path.abspath(name))).st_ctime_ns)
            if max(times) >= made and file_record(name)["sha256"] != record["sha256"]:
                return False
    except OSError:
        return False
    return True


def _files(task: Task) -> tuple[list[str], list[str]]:
    """Returns the files of the source of a case, and those of its label map; with a header also those of its voxels."""
    if task.kind != "scan":
        return list(task.files), [task.labels] if task.labels else []
    return [part for name in task.files for part in scans.parts(name)], scans.parts(task.labels) if task.labels else []


def file_record(name: str) -> dict[str, Any]:
    """Returns name, bytes and SHA-256 of a file of a source."""
    with open(name, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"name": os.path.basename(name), "bytes": os.fstat(file.fileno()).st_size, "sha256": digest}


def _fill(folder: Path, task: Task, settings: Settings, threads: int | None) -> None:
    """Writes a case into a folder."""
    own, labels = _files(task)
    source: dict[str, Any] = {"files": [file_record(name) for name in own]}
    if labels:
        source["labels"] = file_record(labels[0])
    if labels[1:]:
        source["labels_data"] = [file_record(name) for name in labels[1:]]
    try:
        if task.kind == "slide":
            from .slides import write_slide

            write_slide(folder, task, settings, source, threads)
        else:
            _write_volume(folder, task, settings, source, threads)
    except (ValueError, RuntimeError) as problem:
        if isinstance(problem, Error):
            raise
        full = next((n for n in _FULL if os.strerror(n) in str(problem)), None)  # tensorstore's errors are ValueErrors
        if full is None:
            raise Error(f"{task.what}: expected to write it, got {sentence(problem)}") from None
        raise OSError(full, os.strerror(full)) from None


def _read(task: Task) -> scans.Scan:
    if task.kind == "scan":
        return scans.channels(task.files, task.what)
    from .dicom import read_enhanced, read_series

    return read_enhanced(task.files[0], task.what) if task.kind == "enhanced" else read_series(task.files, task.what)


def _write_volume(folder: Path, task: Task, settings: Settings, source: dict[str, Any], threads: int | None) -> None:
    scan = _read(task)
    labels = None if task.labels is None else scans.labels(task.labels, scan, task.what)
    channels = scan.data.ndim == 4
    names = ["c", "z", "y", "x"][0 if channels else 1:]
    chunk = arrays.chunks_of(scan.data.shape, settings.chunk, 3)
    arrays.write(folder / "0", scan.data, names=names, chunk=chunk, profile=settings.profile, threads=threads)
    mask, coarse = describe.body_mask(scan)
    maps = {"body": (mask, coarse)}
    own = {
        "store": VERSION, "kind": "volume", "source": {**source, **scan.source}, "grid": scan.grid.to_json(),
        "affine_ras": scan.affine.tolist(), "scaling": scan.scaling,
        "fingerprint": describe.fingerprint(scan, None if labels is None else labels.data),
        "mask": {"path": "labels/body", "grid": coarse.to_json()},
    }
    if labels is not None:
        own["classes"] = describe.classes(labels.data)
        own["labels"] = {"path": "labels/labels", "grid": scan.grid.to_json()}
        index = np.frombuffer(ClassIndex.of(labels.data).to_bytes(), np.uint8)
        arrays.write(folder / CLASS_INDEX, index, names=["byte"], chunk=[min(len(index), 1 << 20)], profile=settings.profile,
                     threads=threads)
        maps["labels"] = labels.data, scan.grid
    write_maps(folder, maps, settings, threads, axes="zyx", chunk=settings.chunk)
    ome.write_group(folder, {"ome": {"version": ome.VERSION, "multiscales": [ome.multiscales(task.name, [scan.grid], "zyx", channels=channels)]},
                             "suture": own})
