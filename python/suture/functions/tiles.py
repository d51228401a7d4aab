# SPDX-License-Identifier: Apache-2.0
"""These functions list tiles of slides with tissue, on a grid or at random."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import check_calls_in
from ..arrays.batch import Items
from ..arrays.dlpack import as_numpy
from ..backend.plain import call_plain
from ..errors import Error
from ..pipeline.identity import check_draws, ids_of


@dataclass(frozen=True)
class SlideLevel:
    """A level of a slide.

    Parameters
    ----------
    height, width : int
        Pixels of the level.
    downsample : float
        Pixels of level 0 along one pixel of this level.

    Examples
    --------
    >>> st.SlideLevel(250, 500, 4.0)
    SlideLevel(height=250, width=500, downsample=4.0)
    """

    height: int
    width: int
    downsample: float = 1.0


@dataclass(frozen=True)
class SlideLayout:
    """The levels of a slide and its resolution.

    Parameters
    ----------
    levels : tuple of SlideLevel
        Levels of the slide, the largest first.
    mpp : float
        Micrometers per pixel of level 0.

    Examples
    --------
    >>> slide = st.SlideLayout(levels=(st.SlideLevel(1000, 2000), st.SlideLevel(250, 500, 4.0)), mpp=0.25)
    >>> slide.levels[1].width
    500
    """

    levels: tuple[SlideLevel, ...]
    mpp: float


@dataclass(frozen=True)
class Tile:
    """A square of a slide to read, and to scale to the size of a tile.

    Attributes
    ----------
    y, x : int
        First pixel, in pixels of level 0.
    level : int
        Level to read from.
    size : int
        Pixels of that level to read along each axis.
    scale : float
        Pixels to read along one pixel of the tile.
    tissue : float
        Share of the tile that is tissue.

    Examples
    --------
    >>> slide = st.SlideLayout((st.SlideLevel(512, 512),), mpp=0.5)
    >>> st.grid_tiles(slide, np.ones((8, 8)), size=512)
    [Tile(y=0, x=0, level=0, size=512, scale=1.0, tissue=1.0)]
    """

    y: int
    x: int
    level: int
    size: int
    scale: float
    tissue: float


_LEVEL = np.dtype([("height", np.int64), ("width", np.int64), ("downsample", np.float64)])
_TILE = np.dtype([("y", np.int64), ("x", np.int64), ("level", np.int32), ("size", np.int64), ("scale", np.float64),
                  ("tissue", np.float64)], align=True)


def _tiles(name: str, slide: SlideLayout, mask: Any, numbers: Sequence[float], **draws: Any) -> list[Tile]:
    plain = mask if isinstance(mask, (list, tuple)) else as_numpy(mask, f"suture: {name}: mask")
    values = np.asarray(plain)
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise Error(f"suture: {name}: mask: expected numbers, got NaN at {tuple(int(k[0]) for k in np.nonzero(np.isnan(values)))}. Pass "
                    "numpy.nan_to_num(mask) if there is no tissue")
    tissue = np.ascontiguousarray(values != 0, np.uint8)
    if tissue.ndim != 2:
        raise Error(f"suture: {name}: a mask of shape {tissue.shape}; (y, x) is needed")
    items = Items([tissue], "mask", "HW", None)
    levels = np.array([(each.height, each.width, each.downsample) for each in slide.levels], _LEVEL)
    given = dict(numbers=[slide.mpp, *numbers], lists=[levels], inputs=[(items.records, 1, 0)], samples=1, **draws)
    count = np.zeros(1, np.int64)
    call_plain(name, results=[count], **given)  # how many there are
    out = np.zeros(count[0], _TILE)
    call_plain(name, results=[count, out], **given)
    return [Tile(*row) for row in out.tolist()]


def grid_tiles(slide: SlideLayout, mask: Any, *, size: int = 256, stride: int = 0, mpp: float = 0.5, least_tissue: float = 0.5,
               partial: bool = False) -> list[Tile]:
    """Lists the tiles of a grid over a slide that have enough tissue, row by row.

    Parameters
    ----------
    slide : SlideLayout
        Levels and resolution of the slide.
    mask : array
        Tissue mask (y, x) of the whole slide, with no more pixels than level 0; tissue is where it is not 0.
    size : int
        Pixels of a tile along an axis, at `mpp`.
    stride : int
        Pixels from one tile to the next, at `mpp`; 0 means `size`.
    mpp : float
        Micrometers per pixel of a tile.
    least_tissue : float
        Share of a tile that must be tissue, 0 to 1.
    partial : bool
        Whether tiles may extend beyond the bottom and right edges of the slide.

    Returns
    -------
    list of Tile
        The tiles.

    Raises
    ------
    Error
        If the mask does not have the aspect ratio of the slide or has NaN, or a parameter is out of its range.

    Examples
    --------
    >>> slide = st.SlideLayout((st.SlideLevel(512, 1024),), mpp=0.5)
    >>> mask = np.zeros((8, 16), np.uint8)
    >>> mask[:, :8] = 1
    >>> [(tile.y, tile.x) for tile in st.grid_tiles(slide, mask, size=256)]
    [(0, 0), (0, 256), (256, 0), (256, 256)]
    """
    return _tiles("grid_tiles", slide, mask, [size, stride, mpp, least_tissue, partial])


def random_tiles(slide: SlideLayout, mask: Any, *, slide_id: Any, count: int, seed: int = 0, epoch: int = 0, size: int = 256,
                 mpp: float = 0.5, least_tissue: float = 0.5) -> list[Tile]:
    """Draws tiles about random points, uniformly over the tissue.

    Parameters
    ----------
    slide, mask, size, mpp, least_tissue
        As in `grid_tiles`.
    slide_id : int or str
        Persistent id of the slide; the draws depend on it.
    count : int
        Number of tiles.
    seed, epoch : int
        The draws depend on both: a seed in 0 .. 2^64 - 1, and an epoch in 0 .. 2^32 - 1.

    Returns
    -------
    list of Tile
        `count` tiles, or fewer where too little tissue is found.

    Raises
    ------
    Error
        As `grid_tiles`, and if `count` is negative, or the seed or the epoch is out of its range.

    Examples
    --------
    >>> slide = st.SlideLayout((st.SlideLevel(2048, 2048),), mpp=0.5)
    >>> tiles = st.random_tiles(slide, np.ones((32, 32)), slide_id="slide 1", count=3, size=256)
    >>> [tile.size for tile in tiles]
    [256, 256, 256]
    """
    seed, epoch = check_draws(seed, epoch, "suture: random_tiles")
    return _tiles("random_tiles", slide, mask, [size, 0, mpp, least_tissue, False, count], seed=seed, epoch=epoch,
                  ids=ids_of([slide_id], 1))


__all__ = ["SlideLayout", "SlideLevel", "Tile", "grid_tiles", "random_tiles"]
check_calls_in(globals())
