# SPDX-License-Identifier: Apache-2.0
"""Voxels that stay where they are stored until a box of them is asked for."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Source(Protocol):
    """An array that is read box by box: a case of a store, a file of Blosc2, a memory map.

    shape         (axes) or (channel, axes), as an array in memory would have it
    dtype         name of the element type, "int16" say
    class_index   where the voxels of each label lie, as ClassIndex.to_bytes gives it; None where nobody has counted them

    Threads may read at once.
    """

    shape: tuple[int, ...]
    dtype: str
    class_index: bytes | None

    def read(self, low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
        """Reads the voxels from `low` up to, and without, `high`, all channels of them.

        Parameters
        ----------
        low, high : sequence of int
            A box along the spatial axes, in the order of `shape`, within the array and not empty.
        out : numpy.ndarray
            Memory that is written: of this dtype, of the box's shape with the channels, if there are any, before it. Its
            strides are any.

        Raises
        ------
        Error
            If the voxels cannot be read, or are not those that were stored.
        """
