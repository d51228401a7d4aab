# SPDX-License-Identifier: Apache-2.0
"""Metrics of a segmentation: Dice of each class, and lesions found, missed and invented."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..functions.masks import label_components


@dataclass(frozen=True)
class Lesions:
    """Counts of connected components (faces) of a class.

    A true lesion is found where any predicted voxel lies in it. A predicted lesion is false where no voxel of it lies in a
    true one.
    """

    true: int
    found: int
    predicted: int
    false: int

    def to_json(self) -> dict[str, int]:
        return {"true": self.true, "found": self.found, "predicted": self.predicted, "false": self.false}


def dice(predicted: np.ndarray, truth: np.ndarray, of_class: int) -> float | None:
    """Dice coefficient of a class, 2 |P and T| / (|P| + |T|); None where neither has a voxel of it."""
    p, t = predicted == of_class, truth == of_class
    total = int(p.sum()) + int(t.sum())
    return 2 * int((p & t).sum()) / total if total else None


def lesions(predicted: np.ndarray, truth: np.ndarray, of_class: int, least: int = 2) -> Lesions:
    """Compares the connected components of a class.

    Parameters
    ----------
    predicted, truth : numpy.ndarray
        Label maps of the same three axes.
    of_class : int
        The class of lesions.
    least : int
        Components of fewer voxels are not counted.

    Returns
    -------
    Lesions
        The counts.
    """
    p, t = _components(predicted == of_class), _components(truth == of_class)
    large_p, large_t = _at_least(p, least), _at_least(t, least)
    return Lesions(true=len(large_t), found=len(large_t & _numbers(t[p > 0])), predicted=len(large_p),
                   false=len(large_p - _numbers(p[t > 0])))


def _components(mask: np.ndarray) -> np.ndarray:
    """Numbers of the connected components of a mask, from 1 on; 0 outside."""
    made: Any = label_components([np.ascontiguousarray(mask, np.uint8)], layout="ZYX")[0]
    return np.asarray(made[0])


def _numbers(components: np.ndarray) -> set[int]:
    return set(np.unique(components[components > 0]).tolist())


def _at_least(components: np.ndarray, least: int) -> set[int]:
    """Numbers of the components that have so many voxels."""
    counts = np.bincount(components.ravel())
    return {int(k) for k in np.flatnonzero(counts >= least) if k}


__all__ = ["Lesions", "dice", "lesions"]
