# SPDX-License-Identifier: Apache-2.0
"""This module presents tiles of slides as cases: one position at several magnifications, each of which is an image of the
pipeline."""
from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.volume import Volume
from ..errors import Error
from ..pipeline.pipeline import Pipeline


def is_tiles(cohort: Any) -> bool:
    """Tests whether a cohort is a sequence of tiles, as the store lists them."""
    return isinstance(cohort, Sequence) and hasattr(cohort, "arrays") and hasattr(cohort, "mpp")


def for_magnifications(pipeline: Pipeline, cohort: Any) -> Pipeline:
    """Returns the pipeline with an image for each magnification of tiles. The chain of a single image, such as "rgb", becomes that
    of "rgb_0.5", "rgb_1" and so on. All tiles have one size, so that their outputs are stacked. For other cohorts, returns the
    pipeline unchanged."""
    if not is_tiles(cohort):
        return pipeline
    roles = pipeline.roles()
    if len(pipeline.images) != len(cohort.mpp):
        if len(pipeline.images) != 1:
            raise Error(f"suture: feed: expected a pipeline of one image, or of one for each of {len(cohort.mpp)} magnifications, got "
                        f"{len(pipeline.images)}")
        (key, chain), = pipeline.images.items()
        del roles[key]
        roles = {**{f"{key}_{mpp:g}": list(chain) for mpp in cohort.mpp}, **roles}
    made = Pipeline(layout=pipeline.layout, **roles)
    made.fixed_size = True
    return made


class TileCase:
    """A tile as a case, with an image for each magnification and the label map of the first.

    name         id of the tile: its slide and position
    slide        case of the slide
    tile         the Tile of the store
    fingerprint  fingerprint of the slide
    """

    def __init__(self, tiles: Any, tile: Any, slide: Any, keys: Sequence[str]) -> None:
        self.name, self.tile, self.slide = tile.id, tile, slide
        self.fingerprint: Mapping[str, Any] = getattr(slide, "fingerprint", None) or {}
        self._tiles, self._keys = tiles, keys

    def volume(self, member: str) -> Volume:
        """Returns the image of a key of the pipeline, or the label map."""
        keys = list(self._keys)
        if member == "image" and len(keys) == 1:
            member = keys[0]
        if member in keys:
            array = self._tiles.arrays(self.tile)[keys.index(member)]
        elif member == "labels":
            array = self._tiles.labels(self.tile)
        else:
            raise Error(f"suture: feed: {member}: expected one of the images of a tile, {', '.join(keys)}, or its labels")
        return Volume(array, axes=array.axes, grid=array.grid)


class TileCases:
    """The tiles of a cohort by number."""

    def __init__(self, tiles: Any, keys: Sequence[str]) -> None:
        self._tiles, self._keys = tiles, keys
        self._slides: Mapping[str, Any] = tiles._cases
        self.names = [tile.id for tile in tiles]
        known = {name: str(getattr(self._slides[name], "sha256", "")) for name in sorted({tile.case for tile in tiles})}
        self.ratios: Sequence[float] = getattr(tiles, "ratios", ())
        self.sha256 = hashlib.sha256("\0".join([*(f"{n} {s}" for n, s in known.items()), *self.names]).encode()).hexdigest()

    def showing(self) -> list[NDArray[np.int64]]:
        """Returns for each label the numbers of the tiles that show it, in the order of `ratios`; none where the ratio is 0.

        Raises
        ------
        Error
            If a label is drawn that no tile shows.
        """
        found = [self._tiles.showing(label) if ratio else np.zeros(0, np.int64) for label, ratio in enumerate(self.ratios)]
        for label, (ratio, numbers) in enumerate(zip(self.ratios, found)):
            if ratio and not len(numbers):
                raise Error(f"suture: feed: ratios: expected tiles that show label {label}, got none of {len(self.names)}. Set its ratio to 0, "
                            "or lower least_label")
        return found

    def __getitem__(self, number: int) -> TileCase:
        tile = self._tiles[number]
        return TileCase(self._tiles, tile, self._slides[tile.case], self._keys)
