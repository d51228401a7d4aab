# SPDX-License-Identifier: Apache-2.0
"""This module computes metrics: Dice of each class, true and false lesions, and kappa of grades."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..functions.masks import label_components


@dataclass(frozen=True)
class Lesions:
    """Counts of lesions, the connected components (by faces) of a class.

    A true lesion is found if any voxel of it is predicted. A predicted lesion is false if no voxel of it is true.

    Attributes
    ----------
    true, found : int
        Number of lesions in the truth, and of those that were found.
    predicted, false : int
        Number of predicted lesions, and of those that are false.

    Examples
    --------
    >>> suture.training.metrics.Lesions(true=3, found=2, predicted=4, false=2).to_json()
    {'true': 3, 'found': 2, 'predicted': 4, 'false': 2}
    """

    true: int
    found: int
    predicted: int
    false: int

    def to_json(self) -> dict[str, int]:
        """Writes the counts as plain values.

        Returns
        -------
        dict
            The counts by name.
        """
        return {"true": self.true, "found": self.found, "predicted": self.predicted, "false": self.false}


def dice(predicted: np.ndarray, truth: np.ndarray, of_class: int) -> float | None:
    """Computes the Dice coefficient of a class, 2 |P and T| / (|P| + |T|).

    Parameters
    ----------
    predicted, truth : numpy.ndarray
        Label maps of the same shape.
    of_class : int
        The class.

    Returns
    -------
    float or None
        The coefficient; None where neither map has a voxel of the class.

    Examples
    --------
    >>> suture.training.metrics.dice(np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]), of_class=1)
    0.6666666666666666
    """
    p, t = predicted == of_class, truth == of_class
    total = int(p.sum()) + int(t.sum())
    return 2 * int((p & t).sum()) / total if total else None


def lesions(predicted: np.ndarray, truth: np.ndarray, of_class: int, least: int = 2) -> Lesions:
    """Compares the lesions of a prediction with those of the truth.

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

    Examples
    --------
    >>> truth = np.zeros((4, 4, 4), np.uint8)
    >>> truth[0, 0, :2] = truth[3, 3, :2] = 1
    >>> predicted = np.zeros((4, 4, 4), np.uint8)
    >>> predicted[0, 0, :2] = 1
    >>> suture.training.metrics.lesions(predicted, truth, of_class=1)
    Lesions(true=2, found=1, predicted=1, false=0)
    """
    p, t = _components(predicted == of_class), _components(truth == of_class)
    large_p, large_t = _at_least(p, least), _at_least(t, least)
    return Lesions(true=len(large_t), found=len(large_t & _numbers(t[p > 0])), predicted=len(large_p),
                   false=len(large_p - _numbers(p[t > 0])))


def _components(mask: np.ndarray) -> np.ndarray:
    """Numbers the connected components of a mask from 1 on; the background is 0."""
    made: Any = label_components([np.ascontiguousarray(mask, np.uint8)], layout="ZYX")[0]
    return np.asarray(made[0])


def _numbers(components: np.ndarray) -> set[int]:
    return set(np.unique(components[components > 0]).tolist())


def _at_least(components: np.ndarray, least: int) -> set[int]:
    """Returns the numbers of the components of at least `least` voxels."""
    counts = np.bincount(components.ravel())
    return {int(k) for k in np.flatnonzero(counts >= least) if k}


def mean_dice(cases: Mapping[str, Any]) -> dict[str, float | None]:
    """Computes the mean Dice coefficient of each class over the cases that have it.

    Parameters
    ----------
    cases : mapping
        For each case its metrics: "dice" is the coefficient of each class, None where the case has none.

    Returns
    -------
    dict
        The mean of each class; None where no case has it.

    Examples
    --------
    >>> suture.training.metrics.mean_dice({"a": {"dice": {"liver": .5, "lesion": None}}, "b": {"dice": {"liver": 1.0, "lesion": None}}})
    {'liver': 0.75, 'lesion': None}
    """
    out: dict[str, float | None] = {}
    for label in next(iter(cases.values()))["dice"] if cases else ():
        known = [case["dice"][label] for case in cases.values() if case["dice"][label] is not None]
        out[label] = sum(known) / len(known) if known else None
    return out


def weighted_kappa(counts: np.ndarray) -> float | None:
    """Computes Cohen's kappa with quadratic weights.

    It is 1 for complete agreement, and 0 for agreement as by chance (J. Cohen, Psychological Bulletin 70(4), 1968).

    Parameters
    ----------
    counts : numpy.ndarray
        Number of pairs of grades, by the true grade (row) and the predicted grade (column).

    Returns
    -------
    float or None
        Kappa; None if only one grade occurs, for which it is not defined.

    Examples
    --------
    >>> suture.training.metrics.weighted_kappa(np.diag([3, 4, 5]))
    1.0
    """
    seen = np.asarray(counts, np.float64)
    weights = np.subtract.outer(np.arange(len(seen)), np.arange(len(seen))) ** 2
    by_chance = (weights * np.outer(seen.sum(1), seen.sum(0))).sum()
    return float(1 - (weights * seen).sum() * seen.sum() / by_chance) if by_chance else None


__all__ = ["Lesions", "dice", "lesions", "mean_dice", "weighted_kappa"]
