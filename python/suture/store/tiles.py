# SPDX-License-Identifier: Apache-2.0
"""A tile is a position of a slide with tissue, at several magnifications."""
from __future__ import annotations

import hashlib
import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from ..errors import Error
from ..operations.kinds import shown
from .arrays import LazyArray
from .case import Case, StoredCase
from .settings import NEAR, listed, resolutions, whole


@dataclass(frozen=True)
class Box:
    """A box of pixels of a level of a slide.

    Attributes
    ----------
    level : int
        The level.
    low, high : (int, int)
        Corners along (y, x): the box begins at `low` and ends before `high`.

    Examples
    --------
    >>> suture.store.Box(level=0, low=(0, 256), high=(256, 512)).low
    (0, 256)
    """

    level: int
    low: tuple[int, int]
    high: tuple[int, int]


@dataclass(frozen=True)
class Tile:
    """One position of a slide, at several magnifications.

    Attributes
    ----------
    case : str
        Name of the slide.
    boxes : tuple of Box
        A box for each magnification, in the order of `mpp`, all with the same center.
    tissue : float
        Share of tissue in the first box.
    labels : tuple of float
        Share of each label in the first box, from label 0; () without a label map. It is computed from cells of about 8
        micrometers, so that it may include labels just outside the box.

    Examples
    --------
    >>> box = suture.store.Box(level=0, low=(0, 256), high=(256, 512))
    >>> suture.store.Tile(case="slide_3", boxes=(box,), tissue=.9).id
    'slide_3@0:0,256'
    """

    case: str
    boxes: tuple[Box, ...]
    tissue: float
    labels: tuple[float, ...] = ()

    @property
    def id(self) -> str:
        """Identifies the tile: the name of the slide, and level and corner of the first box. Draws depend on it."""
        first = self.boxes[0]
        return f"{self.case}@{first.level}:{first.low[0]},{first.low[1]}"


class Tiles(Sequence[Tile]):
    """The tiles of the slides of a cohort, slide by slide and row by row. The list is the same on every machine.

    Parameters
    ----------
    cases : mapping of Case
        The slides by name.
    size, mpp, least_tissue, per_slide, step, seed, ratios, least_label
        As in Cohort.tiles, which makes them.

    Raises
    ------
    Error
        If a parameter is out of its range, a case is no slide, or it has no level of a magnification.

    Examples
    --------
    >>> tiles = cohort.tiles(size=256, mpp=(0.5, 2), least_tissue=.5)  # doctest: +SKIP
    >>> tiles[0].id, [array.shape for array in tiles.arrays(tiles[0])]  # doctest: +SKIP
    ('slide_3@0:0,256', [(3, 256, 256), (3, 256, 256)])
    """

    def __init__(self, cases: Mapping[str, Case], size: int, mpp: float | Sequence[float], least_tissue: float, per_slide: int | None,
                 step: int | None, seed: int, ratios: Sequence[float] = (), least_label: float = 0.0) -> None:
        what = "suture: store: tiles"
        size = whole(size, f"{what}: size", 1)
        per_slide = None if per_slide is None else whole(per_slide, f"{what}: per_slide", 1, way="None takes all tiles")
        step = None if step is None else whole(step, f"{what}: step", 1, way="None takes the size")
        least_tissue = _part(least_tissue, f"{what}: least_tissue")
        self._cases, self.size, self.mpp = cases, size, resolutions(mpp, f"{what}: mpp")
        given = listed(ratios)
        if given is None or any(not isinstance(ratio, numbers.Real) or not 0 <= float(ratio) < math.inf for ratio in given) or (given and not any(given)):
            raise Error(f"{what}: ratios: expected a sequence of numbers from 0 on, and one above 0, got {shown(ratios)}. Pass the weight of label 0 "
                        "first")
        self.ratios, self.least_label = tuple(float(ratio) for ratio in given), _part(least_label, f"{what}: least_label")
        if self.ratios:
            bare = next((name for name in cases if self._slide(name).label_counts is None), None)
            if bare is not None:
                raise Error(f"suture: store: case {bare!r}: expected a label map, by which ratios balances tiles, got none. Build the store "
                            "with labels=")
        self._tiles = [tile for name in cases for tile in self._of(name, least_tissue, per_slide, size if step is None else step, seed)]

    def _slide(self, name: str) -> StoredCase:
        case = self._cases[name]
        if not isinstance(case, StoredCase) or not case.mpp:
            raise Error(f"suture: store: case {name!r}: expected a slide of a store, got {case!r}. Build one of the slides")
        return case

    def _of(self, name: str, least: float, most: int | None, step: int, seed: int) -> list[Tile]:
        """Lists the tiles of a slide: boxes within it, on a grid of the first magnification, with enough tissue."""
        case, size = self._slide(name), self.size
        levels = [self._level(case, mpp) for mpp in self.mpp]
        shapes = [case.levels[k].shape[1:] for k in levels]
        ratios = [case.mpp[k] / case.mpp[levels[0]] for k in levels]
        found = []
        assert case.mask is not None
        in_tissue, counts = _Sums(np.asarray(case.mask[...]), case.mask.grid), case.label_counts
        of_label = {} if counts is None else {label: _Sums(counts[label], counts.grid) for label in case.classes or {}}
        several = 0 if counts is None else len(counts)
        for y in range(0, shapes[0][0] - size + 1, step):
            for x in range(0, shapes[0][1] - size + 1, step):
                boxes = []
                for k, (height, width), ratio in zip(levels, shapes, ratios):
                    low = tuple(round((v + size / 2) / ratio - size / 2) for v in (y, x))
                    if min(low) < 0 or low[0] + size > height or low[1] + size > width:
                        break
                    boxes.append(Box(k, (low[0], low[1]), (low[0] + size, low[1] + size)))
                if len(boxes) < len(levels):
                    continue
                inside, area = in_tissue(case.levels[levels[0]], boxes[0])
                if inside / area >= least:
                    pixels = {label: sums(case.levels[levels[0]], boxes[0])[0] for label, sums in of_label.items()}
                    every = max(sum(pixels.values()), 1)
                    shares = tuple(pixels[label] / every if label in pixels else 0.0 for label in range(several))
                    found.append(Tile(name, tuple(boxes), inside / area, shares))
        if most is not None and len(found) > most:
            kept = sorted(found, key=lambda tile: hashlib.sha256(f"{seed} {tile.id}".encode()).digest())[:most]
            found = sorted(kept, key=lambda tile: tile.boxes[0].low)
        return found

    @staticmethod
    def _level(case: StoredCase, mpp: float) -> int:
        near = [k for k, m in enumerate(case.mpp) if abs(m / mpp - 1) <= NEAR]
        if not near:
            have = ", ".join(f"{m:g}" for m in case.mpp)
            raise Error(f"suture: store: tiles: mpp: expected levels of case {case.name!r}, which are of {have} micrometers "
                        f"a pixel, got {mpp:g}. Build the store with that mpp")
        return near[0]

    def arrays(self, tile: Tile) -> list[LazyArray]:
        """Returns the pixels of a tile, which are read on request.

        Parameters
        ----------
        tile : Tile
            One of the tiles.

        Returns
        -------
        list of LazyArray
            Pixels (3, y, x) of each magnification.
        """
        case = self._slide(tile.case)
        return [case.levels[box.level].window(box.low, box.high) for box in tile.boxes]

    def labels(self, tile: Tile) -> LazyArray:
        """Returns the label map of a tile at its first magnification, which is read on request.

        Parameters
        ----------
        tile : Tile
            The tile.

        Returns
        -------
        LazyArray
            Labels (y, x) as whole numbers.

        Raises
        ------
        Error
            If the slide has no label map.
        """
        case, box = self._slide(tile.case), tile.boxes[0]
        if not case.label_levels:
            raise Error(f"suture: store: case {tile.case!r}: expected a label map, got none. Build the store with labels=")
        return case.label_levels[box.level].window(box.low, box.high)

    def showing(self, label: int) -> np.ndarray:
        """Returns the indices of the tiles that show a label: at least `least_label` of their pixels, and at least one.

        Parameters
        ----------
        label : int
            The label.

        Returns
        -------
        numpy.ndarray of int64
            Indices in this sequence.
        """
        return np.array([k for k, tile in enumerate(self._tiles) if len(tile.labels) > label and tile.labels[label] >= self.least_label
                         and tile.labels[label] > 0], np.int64)

    def __getitem__(self, i):  # type: ignore[no-untyped-def]  # int or slice
        return self._tiles[i]

    def __len__(self) -> int:
        return len(self._tiles)

    def __iter__(self) -> Iterator[Tile]:
        return iter(self._tiles)

    def __repr__(self) -> str:
        return f"Tiles({len(self)} of {self.size} pixels at {', '.join(f'{m:g}' for m in self.mpp)} micrometers a pixel)"


def _part(value: Any, what: str) -> float:
    """Returns a number from 0 to 1, and refuses anything else."""
    if not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
        raise Error(f"{what}: expected a part from 0 to 1, got {shown(value)}. Pass 0.5, say")
    return float(value)


class _Sums:
    """Sums of a map of cells over boxes of a slide, from a summed-area table."""

    def __init__(self, cells: np.ndarray, grid: Grid) -> None:
        self._grid = grid
        self._sums = np.pad(cells.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))

    def __call__(self, level: LazyArray, box: Box) -> tuple[int, int]:
        """Returns the sum over a box of a level, rounded to whole cells, and the number of cells."""
        lows, highs = [], []
        for axis in (0, 1):
            k = 1 + axis
            scale, n = level.grid.spacing[k] / self._grid.spacing[k], self._grid.extents[k]
            lows.append(min(max(round(box.low[axis] * scale), 0), n - 1))
            highs.append(min(max(round(box.high[axis] * scale), lows[-1] + 1), n))
        s = self._sums
        inside = s[highs[0], highs[1]] - s[lows[0], highs[1]] - s[highs[0], lows[1]] + s[lows[0], lows[1]]
        return int(inside), (highs[0] - lows[0]) * (highs[1] - lows[1])
