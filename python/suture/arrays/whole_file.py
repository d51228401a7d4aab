# SPDX-License-Identifier: Apache-2.0
"""This module writes files atomically: under another name in the same folder, flushed to the disk, then renamed."""
from __future__ import annotations

import contextlib
import os
import tempfile
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
    handle, beside = tempfile.mkstemp(ending, f".{where.name.removesuffix(ending)}.", where.parent)
    os.close(handle)
    try:
        yield beside
        written = os.open(beside, os.O_RDONLY)
        try:
            os.fsync(written)
        finally:
            os.close(written)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)  # as the umask says; only the owner may read files of mkstemp
        os.replace(beside, where)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
