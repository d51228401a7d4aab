# SPDX-License-Identifier: Apache-2.0
"""The version of the package is that of the C++ headers, in suture/base/config.hpp."""
import re
from pathlib import Path


def header_folders() -> tuple[Path, Path]:
    """Returns the folders that may have the headers.

    Returns
    -------
    tuple of Path
        The folder in an installed package, and the folder in a checkout.
    """
    here = Path(__file__).resolve().parent
    return here / "include", here.parent.parent / "include"


def _read() -> str:
    for folder in header_folders():
        file = folder / "suture/base/config.hpp"
        if file.is_file():
            numbers = dict(re.findall(r"^#define SUTURE_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$", file.read_text("utf-8"), re.M))
            return ".".join(numbers[part] for part in ("MAJOR", "MINOR", "PATCH"))
    raise ImportError("suture: the headers are missing from the package: install it again, pip install --force-reinstall suture")


__version__ = _read()
