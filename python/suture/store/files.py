# SPDX-License-Identifier: Apache-2.0
"""This module writes files of a store atomically, through a temporary file that is flushed and renamed, and locks parts of a store
between processes."""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = ".suture"  # folder of a store for all that is no case


def manifests(store: Path) -> Path:
    """Returns the folder of manifests of a store."""
    return store / FOLDER / "manifests"


def work(store: Path, name: str) -> Path:
    """Returns the folder for temporary files of the holder of a lock."""
    return store / FOLDER / "work" / name


def json_bytes(record: Any) -> bytes:
    """Returns JSON with sorted keys, the same bytes for equal records."""
    return (json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n").encode()


def now(store: Path, name: str) -> int:
    """Returns the time by the clock of the file system, in ns, while the lock `name` is held."""
    clock = work(store, name) / "clock"
    clock.parent.mkdir(parents=True, exist_ok=True)
    clock.write_bytes(b" ")
    return clock.stat().st_mtime_ns


def write(store: Path, name: str, path: Path, data: bytes, modified: int | None = None) -> None:
    """Writes a file of a store atomically, while the lock `name` is held. `modified` is its time of modification in ns; None: now. File
    systems of other owners do not allow that, and keep the time of writing."""
    temporary = work(store, name) / "file"
    temporary.parent.mkdir(parents=True, exist_ok=True)
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        if modified is not None:
            with contextlib.suppress(PermissionError):
                os.utime(temporary, ns=(modified, modified))
        os.fsync(file.fileno())
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(temporary, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flushes a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Flushes every file and folder below a folder to the disk."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(root) / name)
        sync(Path(root))


def remove(path: Path) -> None:
    """Removes a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def lock(store: Path, name: str, wait: bool = True) -> Iterator[bool]:
    """Holds a lock of a store and its work folder. The lock is released if its process dies.

    Parameters
    ----------
    store : Path
        The store.
    name : str
        Name of the lock, such as that of a case.
    wait : bool, default True
        Whether to wait for another process that holds the lock.

    Yields
    ------
    bool
        Whether the lock is held. Then the work folder is empty, and is removed at the end.
    """
    path = store / FOLDER / "locks" / name
    handle = _locked(path, wait)
    if handle is None:
        yield False
        return
    folder = work(store, name)
    try:
        remove(folder)
        yield True
    finally:
        with contextlib.suppress(OSError):
            remove(folder)
        path.unlink(missing_ok=True)  # while nobody else can hold it
        os.close(handle)


def _locked(path: Path, wait: bool) -> int | None:
    """Returns the descriptor of a locked file, None if another process holds it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if os.path.samestat(os.stat(path), os.fstat(handle)):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except FileNotFoundError:  # its last holder removed it
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def sweep(store: Path) -> None:
    """Removes work folders and locks of processes that died."""
    for kind in ("work", "locks"):
        folder = store / FOLDER / kind
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(os.listdir(folder)):
            with lock(store, name, wait=False):
                pass
