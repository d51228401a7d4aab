# SPDX-License-Identifier: Apache-2.0
"""A task names a case and the files that it is made of."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Task:
    """A case that is to be made.

    name    name of the case
    kind    "scan": files of volumes, one for each channel; "series" or "enhanced": DICOM; "slide"
    files   paths of the source, in order
    labels  path of the label map; None without one
    bytes   size of all files
    """

    name: str
    kind: str
    files: tuple[str, ...]
    labels: str | None = None
    bytes: int = 0

    @property
    def what(self) -> str:
        """Returns the text that messages about the case begin with."""
        return f"suture: store: case {self.name!r}"

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Task:
        return Task(**{**record, "files": tuple(record["files"])})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def printable(name: str) -> str:
    """Returns a printable form of a file name, whatever its bytes are."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
