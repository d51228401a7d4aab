# SPDX-License-Identifier: Apache-2.0
"""Slides: pyramids of OpenSlide and TIFF, with the tissue mask beside them."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import Error
from .settings import Settings
from .task import Task


def is_slide(path: Path, head: bytes) -> bool:
    return False


def write_slide(folder: Path, task: Task, settings: Settings, source: dict[str, Any], threads: int | None) -> None:
    """Writes a slide into the folder of a case."""
    raise Error(f"{task.what}: expected a volume, got a slide")
