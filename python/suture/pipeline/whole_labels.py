# SPDX-License-Identifier: Apache-2.0
"""This module converts label maps of float or int64 to int32, and refuses values that int32 does not represent. On a GPU the
extremes of maps of int64 are computed while the batch is planned, and waited for at the end. Maps that are read box by box are
converted box by box."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays.dlpack import array_of, voxels_of
from ..arrays.lazy import Source, read_box
from ..arrays.memory import torch_stream
from ..arrays.volume import Volume
from ..errors import Error
from .roles import stored_label

Extremes = tuple[str, Any, Any]  # of labels of int64 on a GPU: how a message about them begins, the least and the greatest of each sample


def whole_labels(given: Any, key: str, assume: bool, unchecked: list[Extremes], stream: int | None = None) -> Any:
    """Returns the label maps of a batch, in which those of float or int64 are int32.

    `assume` is labels(assume_integral=...). What `check_extremes` has to look at is appended to `unchecked`. `stream` is that of the
    plan, on which maps of a GPU are read.
    """
    first = given[0] if isinstance(given, (list, tuple)) and given else given
    if not _is_converted(getattr(voxels_of(first), "dtype", None)):
        return given
    if isinstance(given, (list, tuple)):
        return [_whole(each, key, i, assume, unchecked, stream) for i, each in enumerate(given)]
    return _whole(given, key, 0 if isinstance(given, Volume) else None, assume, unchecked, stream)


def check_extremes(unchecked: Sequence[Extremes], stream: int | None = None) -> None:
    """Refuses labels that int32 does not represent, after waiting once for the extremes of all maps, on the stream of the plan."""
    import torch

    with torch_stream(stream, unchecked[0][1].device):
        values = torch.cat([value.reshape(-1) for _, *extremes in unchecked for value in extremes]).tolist()
    for what, least, _ in unchecked:
        count = least.numel()
        for i in range(count):
            for label in (values[i], values[count + i]):
                if not -1 << 31 <= label < 1 << 31:
                    raise no_whole_number(label, f"{what}: sample {i}" if least.dim() else what)
        values = values[2 * count:]


def whole_box(box: Any, key: str, i: int, assume: bool, stream: int | None) -> Any:
    """Returns a box of label map i, which Plan.run was given, as int32. On a GPU its values are not examined, since a run does not
    wait."""
    what = f"suture: {key}: sample {i}: box"
    known = array_of(box, what)
    if known.on_cuda and not assume and _is_converted(known.dtype):
        raise Error(f"{what}: expected int32 on a GPU, got {known.dtype}, and looking whether int32 has its labels would make the run wait. "
                    "Pass int32, or labels(assume_integral=True)")
    return _whole(box, key, i, assume, [], stream)


def no_whole_number(label: Any, what: str) -> Error:
    return Error(f"{what}: labels: expected whole numbers of 32 bits, got {label}. Renumber them, or pass a soft map as an image")


@lru_cache(maxsize=64)
def _is_converted(dtype: Any) -> bool:
    name = str(dtype).removeprefix("torch.")
    return name != "int32" and stored_label(name) == "int32"


def _whole(array: Any, key: str, i: int | None, assume: bool, unchecked: list[Extremes], stream: int | None) -> Any:
    """Returns the label map of sample i, or a stacked array of all label maps if i is None, as int32."""
    what = f"suture: {key}" if i is None else f"suture: {key}: sample {i}"
    if isinstance(array, Volume) and array.is_lazy:
        return array.of_array(WholeLabels(array.array, what))
    if isinstance(array, Volume):
        return array.of_array(_whole(array.array, key, i, assume, unchecked, stream))
    known = array_of(array, what)
    if not _is_converted(known.dtype):
        return array
    if known.library == "torch":
        import torch

        if known.on_cuda:
            with torch_stream(stream, array.device):
                return _whole_on_gpu(array, known.dtype, what, i is None, assume, unchecked)
        if array.is_floating_point():
            values = (array.float() if known.dtype == "bfloat16" else array).numpy()
            return torch.from_numpy(_whole(values, key, i, assume, unchecked, stream))
        whole = array.to(torch.int32)
        if not torch.equal(whole.to(array.dtype), array):
            at = tuple((whole.to(array.dtype) != array).nonzero()[0].tolist())
            raise no_whole_number(array[at].item(), f"{what}: sample {at[0]}" if i is None and at else what)
        return whole
    if known.library == "numpy":
        whole = np.empty(array.shape, np.int32)
        _convert(array, whole, what, i is None)
        return whole
    raise Error(f"{what}: labels of {known.dtype} are not read; pass integers of 32 bits or fewer")


def _whole_on_gpu(array: Any, dtype: str, what: str, stacked: bool, assume: bool, unchecked: list[Extremes]) -> Any:
    """Returns label maps of a GPU as int32, on the current stream of torch."""
    import torch

    if not assume and dtype != "int64":
        raise Error(f"{what}: labels are {dtype} on a GPU, and looking whether they are whole numbers would make it wait; pass integers, "
                    "or labels(assume_integral=True)")
    if not assume and array.numel():
        maps = array.as_subclass(torch.Tensor)
        unchecked.append((what, *(torch.aminmax(maps.flatten(1), dim=1) if stacked and maps.dim() > 1 else torch.aminmax(maps))))
    return array.to(torch.int32)


def _convert(array: np.ndarray, whole: np.ndarray, what: str, stacked: bool = False) -> None:
    """Writes labels as int32. The first axis of `stacked` arrays counts samples. NumPy compares int32 and floats as float64, to
    which no infinity and no rounded label is equal."""
    with np.errstate(invalid="ignore"):
        np.copyto(whole, array, casting="unsafe")
    if not np.array_equal(whole, array):
        at = tuple(np.argwhere(whole != array)[0].tolist())
        raise no_whole_number(array[at], f"{what}: sample {at[0]}" if stacked and at else what)


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
