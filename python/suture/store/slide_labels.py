# SPDX-License-Identifier: Apache-2.0
"""This module reads label maps of slides, pictures of one channel with the resolution of the slide or a lower one."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import Error
from .arrays import sentence

_PIXELS = 1 << 20  # pixels of a label map that are counted together, about


def label_map(path: str, extents: tuple[int, int], what: str) -> tuple[np.ndarray, float]:
    """Reads the label map of a slide.

    Parameters
    ----------
    path : str
        A PNG or TIFF of one channel, whose values are labels. The finest level of a pyramid is read.
    extents : (int, int)
        Height and width of level 0 of the slide.
    what : str
        Words that errors begin with.

    Returns
    -------
    numpy.ndarray of uint8, float
        The labels (y, x), and the pixels of level 0 along one pixel of the map.

    Raises
    ------
    Error
        If the file cannot be read, has several channels or numbers above 255, or shows another area than the slide.
    """
    try:
        data = _read(path, (extents[0] + 1) * (extents[1] + 1))
    except Exception as problem:  # Pillow, tifffile and its codecs raise errors of many kinds
        raise Error(f"{what}: labels: expected a readable PNG or TIFF at {path}, got {sentence(problem)}") from None
    if data.dtype == np.bool_:
        data = data.astype(np.uint8)
    if data.ndim != 2 or not data.size or data.dtype.kind not in "iu":
        raise Error(f"{what}: labels: expected one channel of whole numbers in {path}, got {data.dtype} of shape {data.shape}. Write the "
                    "numbers of the labels, not their colors")
    low, high = int(data.min()), int(data.max())
    if low < 0 or high > 255:
        raise Error(f"{what}: labels: expected numbers from 0 to 255 in {path}, got {low if low < 0 else high}. Number the labels from 0 on")
    scale = extents[0] / data.shape[0]
    if abs(data.shape[1] * scale - extents[1]) > max(scale, extents[1] / data.shape[1]):
        raise Error(f"{what}: labels: expected the {extents[0]} x {extents[1]} pixels of the slide, or as many times fewer along both axes, "
                    f"got {data.shape[0]} x {data.shape[1]} in {path}. Draw them on the whole slide")
    return np.ascontiguousarray(data, np.uint8), scale


def _read(path: str, most: int) -> np.ndarray:
    """Reads a PNG or TIFF. A PNG of more than `most` pixels is refused if Pillow's limit against decompression bombs refuses it."""
    if path.lower().endswith(".png"):
        from PIL import Image, PngImagePlugin

        with PngImagePlugin.PngImageFile(path) as picture:  # Image.open compares even a map of the slide's size with that limit
            limit = Image.MAX_IMAGE_PIXELS
            if limit is not None and picture.width * picture.height > max(most, 2 * limit):
                raise ValueError(f"{picture.height} x {picture.width} pixels, which are more than the slide has")
            return np.asarray(picture)
    import tifffile

    with tifffile.TiffFile(path) as file:
        return np.asarray(file.series[0].levels[0].asarray())


def of_level(labels: np.ndarray, ratio: float, low: Sequence[int], high: Sequence[int]) -> np.ndarray:
    """Returns the labels at the centers of the pixels `low` to `high` of a level. `ratio` is the pixels of the map along one pixel of
    the level."""
    y, x = (np.minimum(((np.arange(a, b) + .5) * ratio).astype(np.int64), n - 1) for a, b, n in zip(low, high, labels.shape))
    found: np.ndarray = labels[y[:, None], x]
    return found


def per_cell(labels: np.ndarray, side: float) -> dict[int, np.ndarray]:
    """Counts the pixels of each label in square cells.

    Parameters
    ----------
    labels : numpy.ndarray of uint8
        The label map (y, x).
    side : float
        Pixels of the map along a cell, at least 1.

    Returns
    -------
    dict of numpy.ndarray of int32
        Counts (y, x) of each label that occurs, in increasing order. A pixel belongs to the cell that has its center.
    """
    shape = tuple(max(1, math.ceil(n / side - 1e-9)) for n in labels.shape)
    out: dict[int, np.ndarray] = {}
    columns = np.minimum(((np.arange(labels.shape[1]) + .5) / side).astype(np.int64), shape[1] - 1)
    together = max(1, _PIXELS // labels.shape[1])
    for first in range(0, labels.shape[0], together):
        some = labels[first:first + together]
        rows = np.minimum(((np.arange(first, first + len(some)) + .5) / side).astype(np.int64), shape[0] - 1)
        low, high = int(rows[0]), int(rows[-1]) + 1
        present = np.flatnonzero(np.bincount(some.ravel(), minlength=256))
        index = np.zeros(256, np.int64)
        index[present] = np.arange(len(present))
        places = (index[some] * (high - low) + (rows - low)[:, None]) * shape[1] + columns
        counts = np.bincount(places.ravel(), minlength=len(present) * (high - low) * shape[1]).reshape(len(present), high - low, shape[1])
        for label, own in zip(present.tolist(), counts):
            out.setdefault(label, np.zeros(shape, np.int32))[low:high] += own.astype(np.int32)
    return dict(sorted(out.items()))
