# SPDX-License-Identifier: Apache-2.0
"""This module computes digests of samples, equal to those of the C++ library."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .dlpack import as_numpy, is_torch, voxels_of
from .files import in_native_order
from ..arguments import check_calls
from ..errors import Error


def _mix(h: np.ndarray) -> np.ndarray:
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = h ^ (h >> np.uint64(31))
    return mixed


@check_calls
def digest(sample: Any) -> int:
    """Computes a number of 64 bits that depends on every bit of a sample and equals suture::digest in C++.

    Parameters
    ----------
    sample : array or Volume
        One sample in host memory, (channel, z, y, x) or (z, y, x).

    Returns
    -------
    int
        The digest. Samples with the same bits of elements in the same order have the same one, whatever their type, shape and
        byte order.

    Raises
    ------
    Error
        If the array is not in host memory, or its elements have other than 1, 2, 4 or 8 bytes.

    Examples
    --------
    >>> scan = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    >>> st.digest(scan) == st.digest(scan.copy()), st.digest(scan) == st.digest(scan + 1)
    (True, False)
    """
    given: Any = voxels_of(sample)
    if is_torch(given) and given.dtype == sys.modules["torch"].bfloat16:
        given = given.view(sys.modules["torch"].int16)  # the same bits, of a type that NumPy has
    array = as_numpy(given, "suture: digest")
    if array.dtype.hasobject or array.itemsize not in (1, 2, 4, 8):
        raise Error(f"suture: digest: expected elements of 1, 2, 4 or 8 bytes, got {array.dtype}. Pass a.astype(numpy.float32)")
    bits = in_native_order(np.ascontiguousarray(array)).ravel().view(f"u{array.itemsize}").astype(np.uint64)
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for first in range(0, bits.size, 1 << 20):
            part = bits[first:first + (1 << 20)]
            index = np.arange(first, first + part.size, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
            total = total + _mix(_mix(index) ^ part).sum(dtype=np.uint64)
        return int(_mix(np.array([total], np.uint64))[0])
