# SPDX-License-Identifier: Apache-2.0
"""This module reads parameters of functions, such as those with a value for each axis."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backend.encode import Encoder
from ..operations.kinds import sequence, whole
from ..operations.operation import canonical


def voxels_zyx(value: Any, what: str, name: str = "size", order: str = "zyx") -> tuple[int, int, int]:
    """Reads whole numbers along (z, y, x), from one for all axes, one for each in the given order, or by name."""
    return Encoder(order, {}, 1).triple(canonical("extent3", value, what), name, what)


def shares_zyx(value: Any, what: str, name: str) -> tuple[float, float, float]:
    """Reads numbers along (z, y, x), from one for all axes, one for each, or by name."""
    return Encoder("zyx", {}, 1).triple(canonical("point3", value, what), name, what)


def whole_numbers(values: Sequence[int], what: str, dtype: Any) -> np.ndarray:
    """Converts a list to an array of a whole-number type, and refuses numbers that the type does not hold."""
    bounds = np.iinfo(dtype)
    return np.array([whole(v, what, int(bounds.min), int(bounds.max)) for v in sequence(values, what)], dtype)
