# SPDX-License-Identifier: Apache-2.0
"""Settings describe the layout of a store. Its root has them, for all of its cases."""
from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..arguments import index_of
from ..errors import Error
from ..operations.kinds import shown
from . import files
from .arrays import PROFILES

VERSION = 1
CLASS_INDEX = "class_index"  # array of a volume with the bytes of its ClassIndex
LABEL_COUNTS = "label_counts"  # array of a slide with the number of pixels of each label in each cell
NEAR = .02  # largest relative difference of two resolutions that count as equal


def whole(value: Any, what: str, least: int, most: int | None = None, way: str = "") -> int:
    """Returns a whole number of Python, NumPy or torch as an int.

    Raises
    ------
    Error
        If it is anything else, or below `least` or above `most`; `way` says what to do.
    """
    number = None if isinstance(value, bool) else index_of(value)
    if number is None or number < least or (most is not None and number > most):
        raise Error(f"{what}: expected a whole number from {least} {'on' if most is None else f'to {most}'}, got {shown(value)}{way and f'. {way}'}")
    return number


def micrometers(value: Any, what: str) -> float:
    """Returns a number of micrometers per pixel.

    Raises
    ------
    Error
        If it is no number, not finite, or not above 0.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < math.inf:
        raise Error(f"{what}: expected micrometers a pixel, a number above 0, got {shown(value)}. Pass 0.5, say")
    return float(value)


def resolutions(given: Any, what: str) -> tuple[float, ...]:
    """Returns the micrometers per pixel of one level or of several, from a number, a sequence or an array.

    Raises
    ------
    Error
        If there are none, or one is no number above 0.
    """
    values = listed(given)
    return tuple(micrometers(value, what) for value in values) if values else (micrometers(given, what),)


def listed(given: Any) -> list[Any] | None:
    """Returns the elements of a sequence, an array or a tensor; None for anything else, as a text, whose characters are no numbers, or a
    set, which has no order."""
    values = given.tolist() if hasattr(given, "tolist") else given
    return list(values) if isinstance(values, Sequence) and not isinstance(values, (str, bytes)) else None


@dataclass(frozen=True)
class Settings:
    """The layout of a store.

    chunk       voxels of a chunk along each axis of a volume
    tile        pixels of a chunk along each axis of a slide
    profile     "small" or "fast", the codec
    mpp         micrometers per pixel of the levels of slides; (): the levels of the source
    assume_mpp  micrometers per pixel of slides that do not state it; None: they are refused
    """

    chunk: int = 64
    tile: int = 512
    profile: str = "small"
    mpp: tuple[float, ...] = ()
    assume_mpp: float | None = None

    def __post_init__(self) -> None:
        for name in ("chunk", "tile"):
            value = getattr(self, name)
            object.__setattr__(self, name, whole(value, f"suture: store: {name}", 8, 1024, "64 suits boxes of 160, 32 those up to 128"))
        if self.profile not in PROFILES:
            raise Error(f'suture: store: profile: expected "small" or "fast", got {self.profile!r}')
        if any(not m > 0 for m in self.mpp) or list(self.mpp) != sorted(set(self.mpp)):
            raise Error(f"suture: store: mpp: expected increasing micrometers a pixel, got {self.mpp}")

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Settings:
        return Settings(**{**record, "mpp": tuple(record["mpp"])})

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "mpp": list(self.mpp)}


def stored(store: Path) -> Settings | None:
    """Reads the settings of a store; None if there is no store of suture.

    Raises
    ------
    Error
        If it is of another version.
    """
    if not (store / files.FOLDER).is_dir():
        return None
    try:
        record = json.loads((store / "zarr.json").read_bytes())["attributes"]["suture"]
        version = record["store"]
    except (OSError, ValueError, KeyError, TypeError):
        raise Error(f"suture: store: expected the root of a store in {store}, got none. Run suture store build again, which "
                    "makes it") from None
    if version != VERSION:
        raise Error(f"suture: store: expected a store of version {VERSION}, got version {version} in {store}. "
                    "Build it again, or use the version of suture that wrote it")
    try:
        return Settings.from_json(record["settings"])
    except (KeyError, TypeError):
        raise Error(f"suture: store: expected the settings of a store in {store}, got {record.get('settings')!r}. Build it "
                    "again") from None


def prepare(store: Path, settings: Settings) -> None:
    """Makes the root of a store, or refuses one that has other settings."""
    if store.exists() and not store.is_dir():
        raise Error(f"suture: store: out: expected a folder, got the file {store}")
    if store.is_dir() and not (store / files.FOLDER).is_dir() and any(store.iterdir()):
        raise Error(f"suture: store: out: expected a store or an empty folder, got other files in {store}. Name a new folder")
    files.manifests(store).mkdir(parents=True, exist_ok=True)
    with files.lock(store, "store"):
        if (store / "zarr.json").is_file():
            there = stored(store)
            if there != settings:
                raise Error(f"suture: store: expected the settings that {store} was built with, {there}, got {settings}. "
                            "Give the same ones, or name a new folder")
            return
        root = {"zarr_format": 3, "node_type": "group", "attributes": {"suture": {"store": VERSION,
                                                                                  "settings": settings.to_json()}}}
        files.write(store, "store", store / "zarr.json", files.json_bytes(root))
