# SPDX-License-Identifier: Apache-2.0
"""The images of a batch as views: one stacked array, or a list with an array or a Volume for each sample."""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from .dlpack import CUDA, CUDA_MANAGED, SIZES, Array, array_of
from .errors import Error
from .volume import Grid, Volume

_VIEW = struct.Struct("<Q8q15d")  # abi::array
VIEW_BYTES = _VIEW.size
_PLACE = {"z": 0, "y": 1, "x": 2}
_PLAIN = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
_LETTERS = {"D": "z", "H": "y", "W": "x", "Z": "z", "Y": "y", "X": "x", "C": "c", "N": "n"}


def read_layout(layout: str) -> str:
    """ "NHWC" as "nyxc"."""
    try:
        letters = "".join(_LETTERS[c] for c in layout.upper())
    except KeyError:
        letters = ""
    if not letters or len(set(letters)) != len(letters) or not {"y", "x"} <= set(letters) or "n" in letters[1:]:
        raise Error(f'suture: layout {layout!r} is none: letters of N, C, D or Z, H or Y, W or X, as in "NCDHW" or "NHWC"')
    return letters


def spatial_order(letters: str) -> str:
    """The order of the spatial axes in a layout."""
    return "".join(c for c in letters if c in "zyx")


class Items:
    """What a batch has under one key.

    letters   the layout of an item, "czyx" say
    records   abi::array of every sample, or of the first, as bytes
    step      from sample to sample, in bytes, where there is one record
    """

    __slots__ = ("count", "letters", "dtype", "device", "library", "records", "arrays", "volumes", "stacked", "step",
                 "grids", "channels", "order")

    def __init__(self, given: Any, key: str, layout: str | None, stream: int | None) -> None:
        what = f"suture: {key}"
        self.grids: list[Grid] | None = None
        self.volumes = False
        self.step = 0
        first = given
        if isinstance(given, (list, tuple)):
            if not given:
                raise Error(f"{what}: the batch is empty")
            first = given[0]
            self.stacked = False
        elif isinstance(given, Volume):
            given, first, self.stacked = [given], given, False
        else:
            self.stacked = True
        if isinstance(first, Volume):
            self._read_volumes(given, what, stream)
        else:
            self._read_arrays(given, what, layout, stream)

    def _read_volumes(self, given: Sequence[Volume], what: str, stream: int | None) -> None:
        self.volumes = True
        self.grids, self.arrays, records = [], [], []
        axes, with_channels = given[0].axes, len(given[0].array.shape) > len(given[0].axes)
        self.letters = ("c" if with_channels else "") + axes
        for i, volume in enumerate(given):
            if not isinstance(volume, Volume):
                raise Error(f"{what}: sample {i} is no Volume as the first is")
            if volume.axes != axes or (len(volume.array.shape) > len(axes)) != with_channels:
                raise Error(f"{what}: sample {i} has the axes {volume.axes!r} and shape {tuple(volume.array.shape)}, "
                            f"the first {axes!r} and {tuple(given[0].array.shape)}")
            a = array_of(volume.array, what, stream)
            g = volume.grid
            self.arrays.append(a)
            self.grids.append(g)
            records.append(_record(a.pointer, a.shape, a.strides, self.letters, (*g.spacing, *g.origin, *g.direction)))
        self._finish(records, what)

    def _read_arrays(self, given: Any, what: str, layout: str | None, stream: int | None) -> None:
        if self.stacked:
            a = array_of(given, what, stream)
            letters = read_layout(layout) if layout else None
            if letters is None:
                if len(a.shape) != 5:
                    raise Error(f"{what}: an array of shape {tuple(a.shape)} may be read in several ways; say layout= "
                                '("NCHW", say), or give (sample, channel, z, y, x)')
                letters = "nczyx"
            if "n" not in letters:
                letters = "n" + letters
            if len(a.shape) != len(letters):
                raise Error(f"{what}: an array of shape {tuple(a.shape)} has not the layout {letters!r}")
            if a.shape[0] == 0:
                raise Error(f"{what}: the batch is empty")
            self.letters, self.arrays = letters[1:], [a]
            self.step = a.strides[0] * SIZES[a.dtype]
            self._finish([_record(a.pointer, a.shape[1:], a.strides[1:], self.letters, _PLAIN)], what)
            self.count = a.shape[0]
            return
        letters = read_layout(layout).removeprefix("n") if layout else None
        self.arrays, records = [], []
        for i, each in enumerate(given):
            if isinstance(each, Volume):
                raise Error(f"{what}: sample {i} is a Volume, the first is not")
            a = array_of(each, what, stream)
            if letters is None:
                if len(a.shape) != 4:
                    raise Error(f"{what}: sample {i} of shape {tuple(a.shape)} may be read in several ways; say layout= "
                                '("HWC" or "ZYX", say), give a Volume, or (channel, z, y, x)')
                letters = "czyx"
            if len(a.shape) != len(letters):
                raise Error(f"{what}: sample {i} of shape {tuple(a.shape)} has not the layout {letters!r}")
            self.arrays.append(a)
            records.append(_record(a.pointer, a.shape, a.strides, letters, _PLAIN))
        self.letters = letters or "czyx"
        self._finish(records, what)

    def _finish(self, records: list[bytes], what: str) -> None:
        first = self.arrays[0]
        for i, a in enumerate(self.arrays):
            if a.dtype != first.dtype:
                raise Error(f"{what}: sample {i} is {a.dtype}, the first {first.dtype}")
            if a.device != first.device:
                raise Error(f"{what}: sample {i} is on {device_name(a.device)}, the first on {device_name(first.device)}")
        self.count, self.records = len(records), b"".join(records)
        self.dtype, self.device, self.library = first.dtype, first.device, first.library
        c = self.letters.find("c")
        self.channels = first.shape[-len(self.letters):][c] if c >= 0 else 1
        self.order = spatial_order(self.letters)


def device_name(device: tuple[int, int]) -> str:
    """Of a device as DLPack numbers it."""
    return f"cuda:{device[1]}" if device[0] in (CUDA, CUDA_MANAGED) else "the CPU"


def _record(pointer: int, shape: Sequence[int], strides: Sequence[int], letters: str, place: Sequence[float]) -> bytes:
    extents, steps, channels, channel_step = [1, 1, 1], [0, 0, 0], 1, 0
    for n, s, letter in zip(shape, strides, letters):
        if letter == "c":
            channels, channel_step = n, s
        else:
            k = _PLACE[letter]
            extents[k], steps[k] = n, s
    return _VIEW.pack(pointer, *extents, *steps, channels, channel_step, *place)


def item_shape(extents: Sequence[int], channels: int, letters: str) -> tuple[int, ...]:
    """The shape of an item of so many voxels along (z, y, x)."""
    return tuple([channels if c == "c" else extents[_PLACE[c]] for c in letters])


def output_bound(arrays: list[Array], letters: str, stacked: bool) -> tuple[bytes, int, int]:
    """Records of outputs, how many there are, and the step between samples."""
    if stacked:
        a = arrays[0]
        return _record(a.pointer, a.shape[1:], a.strides[1:], letters, _PLAIN), 1, a.strides[0] * SIZES[a.dtype]
    return b"".join(_record(a.pointer, a.shape, a.strides, letters, _PLAIN) for a in arrays), len(arrays), 0


class CBound(ctypes.Structure):
    """abi::bound"""

    _fields_ = [("arrays", ctypes.c_char_p), ("count", ctypes.c_int64), ("step", ctypes.c_int64)]


def bound_of(items: Items) -> tuple[bytes, int, int]:
    """Records of inputs, how many there are, and the step between samples."""
    return items.records, len(items.records) // VIEW_BYTES, items.step


def first_extents(buffer: Any) -> tuple[int, int, int]:
    """Of the first of abi::array records."""
    return _EXTENTS.unpack_from(buffer, 8)


_EXTENTS = struct.Struct("<3q")


def unpack_grids(buffer: Any, count: int) -> list[Grid]:
    """Grids out of abi::array records."""
    grids = []
    for values in _VIEW.iter_unpack(bytes(buffer)[: count * VIEW_BYTES]):
        grids.append(Grid(values[1:4], values[9:12], values[12:15], values[15:24]))
    return grids
