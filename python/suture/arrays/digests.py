# SPDX-License-Identifier: Apache-2.0
"""Digests of samples, the numbers that the C++ library prints."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Error


def _mix(h: np.ndarray) -> np.ndarray:
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = h ^ (h >> np.uint64(31))
    return mixed


def digest(sample: Any) -> int:
    """A 64-bit number of the bits of one sample in host memory, (channel, z, y, x) or (z, y, x): suture::digest."""
    array = np.asarray(getattr(sample, "array", sample))
    if array.itemsize not in (1, 2, 4, 8):
        raise Error(f"suture: digest: elements of {array.itemsize} bytes are none of the library's")
    bits = np.ascontiguousarray(array).ravel().view(f"u{array.itemsize}").astype(np.uint64)
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for first in range(0, bits.size, 1 << 20):
            part = bits[first:first + (1 << 20)]
            index = np.arange(first, first + part.size, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
            total = total + _mix(_mix(index) ^ part).sum(dtype=np.uint64)
        return int(_mix(np.array([total], np.uint64))[0])
