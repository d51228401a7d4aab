# SPDX-License-Identifier: Apache-2.0
"""This module computes statistics of a case: intensities, the number of voxels of each label, and the body mask."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from .scans import Scan

_MASK_MM = 4.0  # approximate spacing of body masks


def intensities(values: np.ndarray, scaling: tuple[float, float] | None) -> dict[str, Any]:
    """Computes exact statistics of all finite values of one channel, with the names of nnU-Net.

    Parameters
    ----------
    values : numpy.ndarray
        Stored values, of any shape.
    scaling : tuple of float, optional
        Slope and intercept to apply to the values.

    Returns
    -------
    dict
        count, mean, std (with ddof 0), min, max, median, percentile_00_5 and percentile_99_5, and nonfinite, the number of values
        that are not finite, if there are any. Without finite values the count alone, 0.
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
        total = sum(int(v) * int(c) for v, c in zip(each, counts))  # exact, since Python's whole numbers do not overflow
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
    """Returns the distinct values in increasing order, and the number of each. `first` is the least."""
    if int(values.max()) - first < 1 << 22:
        counts = np.zeros(int(values.max()) - first + 1, np.int64)
        for k in range(0, values.size, 1 << 22):  # part by part, to bound the memory of int64
            part = np.bincount(values[k:k + (1 << 22)].astype(np.int64) - first)
            counts[:part.size] += part
        present = np.flatnonzero(counts)
        return present + first, counts[present]
    return np.unique(values, return_counts=True)


def _percentile(each: np.ndarray, cumulated: np.ndarray, n: int, p: float) -> float:
    """Returns percentile p of n values, as numpy.percentile interpolates it."""
    at = (n - 1) * p / 100
    low, high = (int(each[np.searchsorted(cumulated, k, side="right")]) for k in (math.floor(at), math.ceil(at)))
    return low + (high - low) * (at - math.floor(at))


def classes(labels: np.ndarray) -> dict[str, int]:
    """Counts the voxels of each label."""
    each, counts = _counted(labels.ravel(), int(labels.min()))
    return {str(int(label)): int(count) for label, count in zip(each, counts)}


def fingerprint(scan: Scan, labels: np.ndarray | None) -> dict[str, Any]:
    """Returns the fingerprint of a case, as nnU-Net has it: shape, spacing, and intensities of each channel, of all voxels and of those
    with a label above 0."""
    channels = scan.data if scan.data.ndim == 4 else scan.data[None]
    found: dict[str, Any] = {"shape": list(scan.data.shape), "spacing": list(scan.grid.spacing),
                             "intensities": [intensities(c, scan.scaling) for c in channels]}
    if labels is not None:
        marked = labels > 0
        found["foreground_intensities"] = [intensities(c[marked], scan.scaling) for c in channels]
    return found


def body_mask(scan: Scan) -> tuple[np.ndarray, Grid]:
    """Returns the body mask on every k-th voxel, about 4 mm apart, and its grid. The mask is the largest component above a threshold.

    Holes are filled plane by plane along the first axis, since the lungs may extend to the end of a scan. The threshold is -300 if
    there are values below -500, as in CT, and otherwise Otsu's.
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
