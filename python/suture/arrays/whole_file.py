# SPDX-License-Identifier: Apache-2.0
"""This module writes files atomically: under another name in the same folder, flushed to the disk, then renamed."""
from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], ending: str = "") -> Iterator[str]:
    """Yields the name of a file to write, which is renamed to `path` when the block ends.

    Parameters
    ----------
    path : path
        The file. An existing one is replaced once the new one is complete, and is unchanged if the block fails.
    ending : str, optional
        Ending of the yielded name, for libraries that choose a format by it.

    Yields
    ------
    str
        Name of an empty file in the folder of `path`, which is renamed or removed at the end.

    Raises
    ------
    OSError
        If the folder cannot be written to, or the disk is full.
    """
    where = Path(path)
    beside = str(where.parent / f".{where.name.removesuffix(ending)}.{secrets.token_urlsafe(6)}{ending}")
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # less the umask; tempfile lets only the owner read its files
    try:
        yield beside
        written = os.open(beside, os.O_RDONLY)
        try:
            os.fsync(written)
        finally:
            os.close(written)
        os.replace(beside, where)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
