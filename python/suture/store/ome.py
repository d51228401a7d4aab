# SPDX-License-Identifier: Apache-2.0
"""This module writes metadata of OME-Zarr 0.5 by the models of ngff-zarr, so that other programs can read a case."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from ..errors import Error
from .files import json_bytes

VERSION = "0.5"


def multiscales(name: str, grids: Sequence[Grid], axes: str, *, channels: bool, unit: str = "millimeter") -> dict[str, Any]:
    """Returns an entry of "multiscales" for the arrays "0", "1" and so on.

    Parameters
    ----------
    name : str
        Name of the image.
    grids : sequence of Grid
        Grid of each level, in LPS millimeters.
    axes : {"zyx", "yx"}
        Spatial axes of the arrays.
    channels : bool
        Whether a channel axis comes first.
    unit : {"millimeter", "micrometer"}
        Unit of scale and translation.

    Returns
    -------
    dict
        The entry, with the anatomical orientation of each axis (RFC-4) where there are three.
    """
    try:
        from ngff_zarr.rfc4 import itk_direction_to_anatomical_orientation
        from ngff_zarr.structural_validation import validate_structural
        from ngff_zarr.v04.zarr_metadata import Axis, Dataset, Scale, Translation
        from ngff_zarr.v05.zarr_metadata import Metadata
    except ImportError:
        raise Error("suture: store: expected ngff-zarr to be installed. pip install 'suture[store]'") from None

    direction, factor = np.array(grids[0].direction).reshape(3, 3), 1000.0 if unit == "micrometer" else 1.0
    own: list[Any] = [Axis(name="c", type="channel")] if channels else []
    for letter in axes:
        column = direction[::-1, "zyx".index(letter)]  # (x, y, z) components, as ITK has them
        orientation = itk_direction_to_anatomical_orientation(column.tolist()) if len(axes) == 3 else None
        own.append(Axis(name=letter, type="space", unit=unit, orientation=orientation))
    first, datasets = 3 - len(axes), []
    for level, grid in enumerate(grids):
        scale = [*[1.0] * channels, *(v * factor for v in grid.spacing[first:])]
        translation = [*[0.0] * channels, *(v * factor for v in grid.origin[first:])]
        datasets.append(Dataset(path=str(level), coordinateTransformations=[Scale(scale=scale),
                                                                            Translation(translation=translation)]))
    metadata = Metadata(axes=own, datasets=datasets, coordinateTransformations=None, name=name)
    validate_structural(metadata, version=VERSION)
    record: dict[str, Any] = _without_none(asdict(metadata))
    record.pop("extra", None)
    return record


def _without_none(record: Any) -> Any:
    """Removes members that are None, which OME-Zarr does not write."""
    if isinstance(record, dict):
        return {key: _without_none(value) for key, value in record.items() if value is not None}
    if isinstance(record, list):
        return [_without_none(value) for value in record]
    return record


def write_group(path: Path, attributes: dict[str, Any]) -> None:
    """Writes a group of Zarr v3 with its attributes."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "zarr.json").write_bytes(json_bytes({"zarr_format": 3, "node_type": "group", "attributes": attributes}))
