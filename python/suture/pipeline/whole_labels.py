# SPDX-License-Identifier: Apache-2.0
"""This module converts label maps of float or int64 to int32, and refuses values that int32 does not represent. On a GPU the
extremes of maps of int64 are computed while the batch is planned, and waited for at the end. Maps that are read box by box are
converted box by box."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays.dlpack import array_of
from ..arrays.lazy import Source, read_box
from ..arrays.volume import Volume
from ..errors import Error
from .roles import stored_label

Extremes = tuple[str, Any, Any]  # of labels of int64 on a GPU: how a message about them begins, their least and their greatest


def whole_labels(given: Any, key: str, assume: bool, unchecked: list[Extremes]) -> Any:
    """Returns the label maps of a batch, in which those of float or int64 are int32.

    `assume` is labels(assume_integral=...). What `check_extremes` has to look at is appended to `unchecked`.
    """
    first = given[0] if isinstance(given, (list, tuple)) and given else given
    if not _is_converted(getattr(getattr(first, "array", first), "dtype", None)):
        return given
    if isinstance(given, (list, tuple)):
        return [_whole(each, key, i, assume, unchecked) for i, each in enumerate(given)]
    return _whole(given, key, 0, assume, unchecked)


def check_extremes(unchecked: Sequence[Extremes]) -> None:
    """Refuses labels that int32 does not represent, after waiting once for the extremes of all maps."""
    import torch

    values = torch.stack([value for _, *extremes in unchecked for value in extremes]).tolist()
    for (what, *_), *extremes in zip(unchecked, values[::2], values[1::2]):
        for label in extremes:
            if not -1 << 31 <= label < 1 << 31:
                raise Error(f"{what}: label {label} is no whole number of 32 bits")


@lru_cache(maxsize=64)
def _is_converted(dtype: Any) -> bool:
    name = str(dtype).removeprefix("torch.")
    return name != "int32" and stored_label(name) == "int32"


def _whole(array: Any, key: str, i: int, assume: bool, unchecked: list[Extremes]) -> Any:
    what = f"suture: {key}: sample {i}"
    if isinstance(array, Volume) and array.is_lazy:
        return array.of_array(WholeLabels(array.array, what))
    if isinstance(array, Volume):
        return array.of_array(_whole(array.array, key, i, assume, unchecked))
    known = array_of(array, what)
    if not _is_converted(known.dtype):
        return array
    if known.library == "torch":
        import torch

        if known.on_cuda and not assume and known.dtype != "int64":
            raise Error(f"{what}: labels are {known.dtype} on a GPU, and looking whether they are whole numbers would make it "
                        "wait; pass integers, or labels(assume_integral=True)")
        if known.on_cuda and not assume and array.numel():
            unchecked.append((what, *torch.aminmax(array)))
        if not known.on_cuda and array.is_floating_point():
            return torch.from_numpy(_whole((array.float() if known.dtype == "bfloat16" else array).numpy(), key, i, assume, unchecked))
        whole = array.to(torch.int32)
        if not known.on_cuda and not torch.equal(whole.to(array.dtype), array):
            bad = array[whole.to(array.dtype) != array].flatten()[0].item()
            raise Error(f"{what}: label {bad} is no whole number of 32 bits")
        return whole
    if known.library == "numpy":
        whole = np.empty(array.shape, np.int32)
        _convert(array, whole, what)
        return whole
    raise Error(f"{what}: labels of {known.dtype} are not read; pass integers of 32 bits or fewer")


def _convert(array: np.ndarray, whole: np.ndarray, what: str) -> None:
    """Writes labels as int32. NumPy compares int32 and floats as float64, to which no infinity and no rounded label is equal."""
    with np.errstate(invalid="ignore"):
        np.copyto(whole, array, casting="unsafe")
    if not np.array_equal(whole, array):
        raise Error(f"{what}: label {array[whole != array].flat[0]} is no whole number of 32 bits")


class WholeLabels:
    """Reads a Source of labels of float or int64 as int32."""

    def __init__(self, source: Source, what: str) -> None:
        self.source, self.what = source, what
        self.shape, self.dtype = tuple(source.shape), "int32"
        self.owner = source  # by which class_index recognizes the voxels, since this object is made anew for each batch

    @property
    def class_index(self) -> bytes | None:
        """The class index of the source, which is valid since the conversion changes no label."""
        return self.source.class_index

    def read(self, low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
        """Reads and converts a box."""
        _convert(read_box(self.source, low, high, self.what), out, self.what)
