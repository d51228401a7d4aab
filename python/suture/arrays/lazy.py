# SPDX-License-Identifier: Apache-2.0
"""This module defines arrays whose voxels are read box by box on request."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..errors import Error
from .dlpack import CPU, CUDA, SIZES, Array, as_numpy, bfloat16
from .reuse import empty


@runtime_checkable
class Source(Protocol):
    """An array that is read box by box, such as one of a store, a file of Blosc2 or a memory map.

    shape         (axes) or (channel, axes), as an array in memory would have it
    dtype         name of the element type, such as "int16"
    class_index   bytes of the ClassIndex of a label map; None if there is none

    Several threads may read at once.
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
            Memory that is written: of this dtype, with any strides, and of the shape of the box, after the channels if there
            are any.

        Raises
        ------
        Error
            If the voxels cannot be read, or differ from those that were stored.
        """


def is_source(x: Any) -> bool:
    """Tests whether the voxels of an object are read box by box."""
    return hasattr(x, "read") and hasattr(x, "class_index")


class MemorySource:
    """A Source of an array in host memory."""

    def __init__(self, array: Any, what: str) -> None:
        self.array = as_numpy(array, what)
        self.shape, self.dtype = self.array.shape, element_name(self.array.dtype, what)
        self.class_index: bytes | None = None

    def read(self, low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
        """Copies a box."""
        inside: Any = (..., *(slice(a, b) for a, b in zip(low, high)))
        np.copyto(out, self.array[inside])


def element_name(dtype: Any, what: str) -> str:
    """Returns the name of an element type, and refuses types that are not read."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in SIZES:
        raise Error(f"{what}: expected elements of {', '.join(SIZES)}, got {name}. Store them as another type")
    return name


def numpy_type(name: str, what: str) -> Any:
    """Returns NumPy's type for the name of an element type."""
    return np.dtype(bfloat16(what) if name == "bfloat16" else name)


def place(shape: tuple[int, ...], dtype: str, device: Any) -> Array:
    """Returns the description of an array without memory: of NumPy, or of torch on a device."""
    if device is None:
        return Array(0, shape, (0,) * len(shape), dtype, (CPU, 0), True, None, "numpy")
    import torch

    nothing = torch.empty(0, device=device)
    where = (CUDA, nothing.device.index or 0) if nothing.is_cuda else (CPU, 0)
    return Array(0, shape, (0,) * len(shape), dtype, where, True, nothing, "torch")


def read_box(source: Source, low: Sequence[int], high: Sequence[int], what: str, out: np.ndarray | None = None) -> np.ndarray:
    """Reads a box along the spatial axes of a source, in the order of its shape.

    Parameters
    ----------
    source : Source
        The source.
    low, high : sequence of int
        Voxels from `low` up to, and without, `high`.
    what : str
        How messages begin.
    out : numpy.ndarray, optional
        Array of the box's shape that is written, instead of a new one.

    Returns
    -------
    numpy.ndarray
        The voxels, with the channels that the source has.
    """
    if out is None:
        channels = tuple(source.shape[:len(source.shape) - len(low)])
        out = empty((*channels, *(b - a for a, b in zip(low, high))), numpy_type(element_name(source.dtype, what), what))
    source.read(tuple(low), tuple(high), out)
    return out


def read_whole(source: Source, axes: str, what: str) -> np.ndarray:
    """Reads all voxels of a source."""
    spatial = tuple(source.shape[-len(axes):])
    return read_box(source, (0,) * len(spatial), spatial, what)


def in_order(zyx: Sequence[int], order: str) -> tuple[int, ...]:
    """Reorders numbers along (z, y, x) to the order of an array's axes."""
    return tuple(zyx["zyx".index(axis)] for axis in order)


def as_tensor(box: np.ndarray, dtype: str) -> Any:
    """Returns a tensor of torch over the memory of a box."""
    import torch

    return torch.from_numpy(box.view(np.int16)).view(torch.bfloat16) if dtype == "bfloat16" else torch.from_numpy(box)


def on_device(box: np.ndarray, like: Array) -> Any:
    """Returns a box as an array like another: unchanged for NumPy, else a tensor on the device of `like`."""
    if like.library == "numpy":
        return box
    return as_tensor(box, like.dtype).to(like.owner.device)
