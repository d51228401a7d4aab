# SPDX-License-Identifier: Apache-2.0
"""This module describes a case before training: intensities, the number of voxels of each label, and the mask of the body."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from .scans import Scan

_MASK_MM = 4.0  # approximate spacing of body masks


def intensities(values: np.ndarray, scaling: tuple[float, float] | None) -> dict[str, Any]:
    """Computes statistics of the intensities of one channel, named as nnU-Net names them: exact, of all finite values.

    Parameters
    ----------
    values : numpy.ndarray
        Stored values, of any shape.
    scaling : tuple of float, optional
        Slope and intercept of them.

    Returns
    -------
    dict
        count, mean, std (of the values themselves, ddof 0), min, max, median, percentile_00_5, percentile_99_5 and, where there
        are any, how many are nonfinite. Only a count of 0 where there is no value.
    """
    values = values.ravel()
    nonfinite = 0
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        nonfinite = int(values.size - np.count_nonzero(finite))
        values = values[finite] if nonfinite else values
    found: dict[str, Any] = {"count": int(values.size)}
    if nonfinite:
        found["nonfinite"] = nonfinite
    if not values.size:
        return found
    if values.dtype.kind == "f":
        wide = values.astype(np.float64)
        mean = float(wide.mean())
        std = float(np.sqrt(np.square(wide - mean).mean()))
        low, p05, median, p995, high = (float(v) for v in np.percentile(wide, (0, .5, 50, 99.5, 100)))
    else:
        first = int(values.min())
        each, counts = _counted(values, first)
        n = int(values.size)
        total = sum(int(v) * int(c) for v, c in zip(each, counts))  # whole numbers of any length: exact
        squares = sum(int(v) ** 2 * int(c) for v, c in zip(each, counts))
        mean, std = total / n, math.sqrt((n * squares - total * total) / n ** 2)
        low, p05, median, p995, high = (_percentile(each, np.cumsum(counts), n, p) for p in (0, .5, 50, 99.5, 100))
    slope, intercept = scaling or (1.0, 0.0)
    if slope < 0:
        low, p05, p995, high = high, p995, p05, low
    return {**found, "mean": mean * slope + intercept, "std": std * abs(slope), "min": low * slope + intercept,
            "max": high * slope + intercept,
            "median": median * slope + intercept, "percentile_00_5": p05 * slope + intercept,
            "percentile_99_5": p995 * slope + intercept}


def _counted(values: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the whole numbers that occur, in order, and how often each does."""
    if int(values.max()) - first < 1 << 22:
        counts = np.zeros(int(values.max()) - first + 1, np.int64)
        for k in range(0, values.size, 1 << 22):  # a bounded part at a time as int64
            part = np.bincount(values[k:k + (1 << 22)].astype(np.int64) - first)
            counts[:part.size] += part
        present = np.flatnonzero(counts)
        return present + first, counts[present]
    return np.unique(values, return_counts=True)


def _percentile(each: np.ndarray, cumulated: np.ndarray, n: int, p: float) -> float:
    """Returns the percentile that numpy.percentile gives, between two order statistics."""
    at = (n - 1) * p / 100
    low, high = (int(each[np.searchsorted(cumulated, k, side="right")]) for k in (math.floor(at), math.ceil(at)))
    return low + (high - low) * (at - math.floor(at))


def classes(labels: np.ndarray) -> dict[str, int]:
    """Counts the voxels of each label."""
    each, counts = _counted(labels.ravel(), int(labels.min()))
    return {str(int(label)): int(count) for label, count in zip(each, counts)}


def fingerprint(scan: Scan, labels: np.ndarray | None) -> dict[str, Any]:
    """Returns the numbers that plans are made of, as nnU-Net's fingerprint of a case has them: shape, spacing, and intensities of each channel, of
    all voxels and of those that a label above 0 marks."""
    channels = scan.data if scan.data.ndim == 4 else scan.data[None]
    found: dict[str, Any] = {"shape": list(scan.data.shape), "spacing": list(scan.grid.spacing),
                             "intensities": [intensities(c, scan.scaling) for c in channels]}
    if labels is not None:
        marked = labels > 0
        found["foreground_intensities"] = [intensities(c[marked], scan.scaling) for c in channels]
    return found


def body_mask(scan: Scan) -> tuple[np.ndarray, Grid]:
    """Returns the mask of the body on every k-th voxel, about 4 mm apart: the largest component above a threshold, its holes filled
    plane by plane along the first axis, since the lungs may reach the end of a scan.

    The threshold is -300 where air lies below -500, as in CT, and Otsu's elsewhere.
    """
    import SimpleITK as sitk

    grid = scan.grid
    step = [max(1, round(_MASK_MM / s)) for s in grid.spacing]
    some = (scan.data[0] if scan.data.ndim == 4 else scan.data)[tuple(slice(None, None, k) for k in step)].astype(np.float32)
    if scan.scaling is not None:
        some = some * np.float32(scan.scaling[0]) + np.float32(scan.scaling[1])
    some = np.nan_to_num(some, nan=float(np.nanmin(some)) if np.isfinite(some).any() else 0, posinf=0, neginf=0)
    image = sitk.GetImageFromArray(some)
    if some.min() < -500:
        mask = image > -300
    elif some.min() == some.max():
        mask = image > np.inf
    else:
        mask = sitk.OtsuThreshold(image, 0, 1)
    parts = sitk.RelabelComponent(sitk.ConnectedComponent(mask), sortByObjectSize=True)
    body = sitk.GetArrayFromImage(parts == 1)
    mask = np.stack([sitk.GetArrayFromImage(sitk.BinaryFillhole(sitk.GetImageFromArray(plane))) for plane in body])
    spacing = tuple(s * k for s, k in zip(grid.spacing, step))
    coarse = Grid(mask.shape, spacing, grid.origin, grid.direction)  # type: ignore[arg-type]
    return np.ascontiguousarray(mask.astype(np.uint8)), coarse
