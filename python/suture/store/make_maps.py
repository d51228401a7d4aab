# SPDX-License-Identifier: Apache-2.0
"""This module writes label maps and masks of a case, beside its image."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..arrays.volume import Grid
from . import arrays, ome
from .settings import Settings


def write_maps(folder: Path, maps: Mapping[str, tuple[np.ndarray, Grid]], settings: Settings, threads: int | None, *, axes: str,
               chunk: int, unit: str = "millimeter", beside: Sequence[str] = ()) -> None:
    """Writes label maps to the group "labels" of an image, as OME-Zarr defines. `beside` names those that were written before."""
    ome.write_group(folder / "labels", {"ome": {"version": ome.VERSION, "labels": sorted([*maps, *beside])}})
    for name, (data, grid) in maps.items():
        arrays.write(folder / "labels" / name / "0", data, names=list(axes), chunk=arrays.chunks_of(data.shape, chunk, len(axes)),
                     profile=settings.profile, threads=threads)
        ome.write_group(folder / "labels" / name, {"ome": {
            "version": ome.VERSION, "multiscales": [ome.multiscales(name, [grid], axes, channels=False, unit=unit)],
            "image-label": {"source": {"image": "../../"}}}})
