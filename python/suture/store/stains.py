# SPDX-License-Identifier: Apache-2.0
"""This module fits the stains of a slide, hematoxylin and eosin, over tiles of its tissue."""
from __future__ import annotations

import numpy as np

from ..functions.fits import StainBasis, fit_macenko
from .pyramid import Pyramid, level_for, pixels

_MPP = 1.0  # micrometers per pixel of the tiles
_SIZE = 256  # pixels of a tile
_LEAST_TISSUE = .5  # least share of tissue of a tile; if no tile has it, those with the most are used
_TILES = 64  # most tiles, evenly spaced among those with tissue


def fit_stains(slide: Pyramid, mask: np.ndarray, what: str) -> StainBasis:
    """Fits the stains of a slide by Macenko's method.

    Parameters
    ----------
    slide : Pyramid
        The slide.
    mask : numpy.ndarray
        Its mask of tissue, (y, x).
    what : str
        The text that messages begin with.

    Returns
    -------
    StainBasis
        The stains of all tiles together; its status is "too_little_tissue" if they have too few pixels of tissue.
    """
    level = level_for(slide, max(_MPP, slide.mpp[1]), what)
    corners = [(y, x) for y in range(0, level.extents[0], _SIZE) for x in range(0, level.extents[1], _SIZE)]
    tissue = np.array([_share(mask, level.extents, corner) for corner in corners])
    chosen = np.flatnonzero(tissue >= min(_LEAST_TISSUE, tissue.max()))
    if len(chosen) > _TILES:
        chosen = chosen[np.arange(_TILES) * len(chosen) // _TILES]
    tiles = []
    for k in chosen:
        low = corners[k]
        high = [min(corner + _SIZE, n) for corner, n in zip(low, level.extents)]
        tiles.append(np.ascontiguousarray(pixels(slide, level, low, high)))
    found: StainBasis = fit_macenko(tiles, layout="HWC", together=True)
    return found


def _share(mask: np.ndarray, extents: tuple[int, int], corner: tuple[int, int]) -> float:
    """Returns the share of tissue of a tile, by the pixels of the mask that it overlaps."""
    low = [c * n // e for c, n, e in zip(corner, mask.shape, extents)]
    high = [-(-min(c + _SIZE, e) * n // e) for c, n, e in zip(corner, mask.shape, extents)]
    return float(mask[low[0]:high[0], low[1]:high[1]].mean())


__all__ = ["fit_stains"]
