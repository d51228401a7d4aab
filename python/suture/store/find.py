# SPDX-License-Identifier: Apache-2.0
"""This module finds the cases of a folder: volumes by the endings of files, DICOM and slides by their content."""
from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import Error
from . import scans
from .task import Task, printable

_CHANNEL = re.compile(r"(.+)_(\d{4})")
_PICTURES = (".png", ".tif", ".tiff")  # label maps of slides


@dataclass
class Found:
    """The cases that a folder holds.

    tasks    the cases, by name
    failed   a sentence for each case, file or folder that cannot be used
    skipped  files in formats that are not read, and label maps without a case
    """

    tasks: dict[str, Task] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The names of all cases of the folder, also of those that cannot be used and are told of by the name of a file."""
        return {*self.tasks, *self.failed, *(scans.stem(Path(failed).name) for failed in self.failed)}


def find(source: str | os.PathLike[str], labels: str | os.PathLike[str] | None) -> Found:
    """Finds the cases below a folder, or the case of a file.

    Raises
    ------
    Error
        If there is no such folder, or nothing in it can become a case.
    """
    root = Path(source)
    if not root.exists():
        raise Error(f"suture: store: source: expected a folder of scans, got {str(root)!r}, which is not there")
    found = Found()
    paths = [root] if root.is_file() else sorted(_files(root, found))
    volumes, dicom, slides = defaultdict(list), [], []
    base = root.parent if root.is_file() else root
    for path in paths:
        kind = _kind(path, base, found)
        if kind == "scan":
            volumes[scans.stem(path.name)].append(path)
        elif kind == "dicom":
            dicom.append(path)
        elif kind == "slide":
            slides.append(path)
        elif kind == "other":
            found.skipped.append(_shown(path, base))
    named: dict[str, list[Task]] = defaultdict(list)
    for name, group in _channels(volumes, found.failed).items():
        for files in group:
            named[name].append(Task(name, "scan", tuple(map(str, files))))
    for path in slides:
        named[path.stem].append(Task(path.stem, "slide", (str(path),)))
    if dicom:
        from .dicom import series

        for task in series(dicom, base, found.failed):
            named[task.name].append(task)
    for name in sorted(named):
        _add(found, name, named[name])
    if labels is not None:
        _match(found, Path(labels))
    if not found.tasks and not found.failed:
        raise Error(f"suture: store: source: expected NIfTI files, DICOM series or slides, got none in {str(root)!r}")
    return found


def _shown(path: Path, base: Path) -> str:
    """Returns a printable form of a path below the source, whatever its bytes are."""
    return printable(os.path.relpath(path, base))


def _files(root: Path, found: Found) -> Iterator[Path]:
    """Yields all files below a folder, through symbolic links, each folder once."""
    pending, seen = [(root, frozenset({_identity(root)}))], set()
    while pending:
        folder, above = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda e: e.name)
        except OSError as problem:
            found.failed[_shown(folder, root)] = f"suture: store: {_shown(folder, root)}: expected a readable folder, got {problem.strerror}"
            continue
        for entry in entries:
            path = Path(entry.path)
            try:
                if not entry.is_dir():
                    os.stat(path)
                    yield path
                    continue
                own = _identity(path)
            except OSError as problem:
                found.failed[_shown(path, root)] = (f"suture: store: {_shown(path, root)}: expected a readable file, got "
                                                    f"{problem.strerror}. Repair or remove it")
                continue
            if own in above:
                found.failed[_shown(path, root)] = (f"suture: store: {_shown(path, root)}: expected a folder, got a link "
                                                    "that leads back to a folder above it. Remove the link")
            elif own not in seen:
                seen.add(own)
                pending.append((path, above | {own}))


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _kind(path: Path, base: Path, found: Found) -> str:
    """Returns scan, dicom, slide or other, or failed if the file cannot be read."""
    if scans.is_scan(path.name):
        return "scan"
    try:
        with open(path, "rb") as file:
            head = file.read(132)
    except OSError as problem:
        found.failed[_shown(path, base)] = f"suture: store: {_shown(path, base)}: expected a readable file, got {problem.strerror}"
        return "failed"
    if head[128:132] == b"DICM":
        return "dicom"
    from .pyramid import is_slide

    return "slide" if is_slide(path, head) else "other"


def _channels(volumes: dict[str, list[Path]], failed: dict[str, str]) -> dict[str, list[list[Path]]]:
    """Groups files by case. If all names are as in nnU-Net, case_0000, case_0001 and so on, these are channels of one case. If a case has
    all channels that occur, another one that lacks some has failed."""
    parts = {name: _CHANNEL.fullmatch(name) for name in volumes}
    if not volumes or not all(parts.values()):
        return {name: [[path] for path in paths] for name, paths in volumes.items()}
    cases: dict[str, dict[int, list[Path]]] = defaultdict(dict)
    for name, match in parts.items():
        assert match is not None
        cases[match[1]].setdefault(int(match[2]), []).extend(volumes[name])
    every = range(max(k for channels in cases.values() for k in channels) + 1)
    if not any(len(channels) == len(every) for channels in cases.values()):
        return {name: [[path] for path in paths] for name, paths in volumes.items()}
    for name in [name for name, channels in cases.items() if len(channels) < len(every)]:
        channels, shown = cases.pop(name), printable(name)
        lacking = [k for k in every if k not in channels]
        failed[shown] = (f"suture: store: case {shown!r}: expected {len(every)} channels, as other cases have, got no {shown}_{lacking[0]:04d}"
                         f"{f' and {len(lacking) - 1} others' * (len(lacking) > 1)}. Add the file, or leave the case out")
    return {name: [[channels[k][0] for k in sorted(channels)], *([path] for k in channels for path in channels[k][1:])]
            for name, channels in cases.items()}


def _add(found: Found, name: str, tasks: list[Task]) -> None:
    """Adds a case, or the reason why it is refused."""
    shown = printable(name)
    if len(tasks) > 1:
        places = " and ".join(sorted(printable(task.files[0]) for task in tasks)[:3])
        found.failed[shown] = f"suture: store: case {shown!r}: expected one of this name, got {places}. Rename one of them"
    elif shown != name:
        found.failed[shown] = f"suture: store: case {shown!r}: expected a name in UTF-8, got other bytes. Rename the file"
    elif name.startswith((".", "__")) or name == "zarr.json" or any(ord(c) < 32 for c in name) or len(name.encode()) > 200:
        found.failed[shown] = (f"suture: store: case {shown!r}: expected a name of at most 200 bytes, without control "
                               "characters, that does not begin with \".\" or \"__\", which Zarr reserves. Rename the file")
    else:
        task = tasks[0]
        found.tasks[name] = replace(task, bytes=sum(os.path.getsize(file) for file in task.files))


def _match(found: Found, labels: Path) -> None:
    """Assigns each case the label map of its name: a volume for a scan, a picture for a slide."""
    if not labels.is_dir():
        raise Error(f"suture: store: labels: expected a folder of label maps, got {str(labels)!r}")
    maps: dict[str, list[Path]] = defaultdict(list)
    pictures: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(_files(labels, found)):
        if scans.is_scan(path.name):
            maps[scans.stem(path.name)].append(path)
        elif path.suffix.lower() in _PICTURES:
            pictures[path.stem].append(path)
    known = found.names
    found.skipped += sorted(printable(str(path)) for kind in (maps, pictures) for name in kind.keys() - known for path in kind[name])
    for name, task in sorted(found.tasks.items()):
        given = (pictures if task.kind == "slide" else maps).get(name, [])
        if len(given) == 1:
            found.tasks[name] = replace(task, labels=str(given[0]))
            continue
        del found.tasks[name]
        found.failed[name] = (f"suture: store: case {name!r}: expected one label map of its name in {str(labels)!r}, got "
                              f"{len(given) or 'none'}. Name it {name}{'.png' if task.kind == 'slide' else '.nii.gz'}")
