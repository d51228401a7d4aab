# SPDX-License-Identifier: Apache-2.0
"""This module describes the arrays of a batch for C++: one stacked array, or a list with an array or a Volume for each sample."""
from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .dlpack import SIZES, Array, alike, array_of, device_name, steps_of
from ..errors import Error
from .files import is_image
from .lazy import MemorySource, Source, element_name, is_source, place
from .volume import Grid, Volume, channels_last

_VIEW = struct.Struct("<Q14q15d")  # abi::array
VIEW_BYTES = _VIEW.size
_POINTER, _SHAPE, _PLACE_OF = struct.Struct("<Q"), struct.Struct("<14q"), struct.Struct("<15d")
_EXTENTS_AT, _STEPS_AT, _BOX_AT, _PLACE_AT = 8, 32, 72, 120  # offsets in bytes of members of abi::array
_MOST_KEPT = 4096  # layouts whose records are cached
_AXIS = {"z": 0, "y": 1, "x": 2}
_UNPLACED = _PLACE_OF.pack(1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1)  # spacing, origin and direction of arrays without a grid
_NAMES = {"n": "N", "c": "C", "z": "D", "y": "H", "x": "W"}  # of axes, in messages
_LETTERS = {"D": "z", "H": "y", "W": "x", "Z": "z", "Y": "y", "X": "x", "C": "c", "N": "n"}


@lru_cache(maxsize=256)
def read_layout(layout: str) -> str:
    """Translates a layout such as "NHWC" to letters of axes, "nyxc"."""
    try:
        letters = "".join(_LETTERS[c] for c in layout.upper())
    except KeyError:
        letters = ""
    if not letters or len(set(letters)) != len(letters) or not {"y", "x"} <= set(letters) or "n" in letters[1:]:
        raise Error(f'suture: layout {layout!r} is none: letters of N, C, D or Z, H or Y, W or X, as in "NCDHW" or "NHWC"')
    return letters


@lru_cache(maxsize=256)
def spatial_order(letters: str) -> str:
    """Returns the order of the spatial axes in a layout."""
    return "".join(c for c in letters if c in "zyx")


KNOWN: set[type] = {np.ndarray, Volume}  # classes that read_images leaves as they are; more are added as they are seen


_LISTS = (list, tuple)
IN_MEMORY: set[type] = {np.ndarray}  # classes of arrays in memory, which are no Source; more are added as they are seen


def read_images(given: Any) -> Any:
    """Returns what a batch has under a key, in which paths and images of nibabel and SimpleITK become Volumes."""
    first = given[0] if isinstance(given, (list, tuple)) and given else given
    if is_image(first):
        return [Volume.of(each) for each in given] if first is not given else [Volume.of(given)]
    KNOWN.add(type(first))
    return given


class Items:
    """The arrays that a batch has under one key.

    sources   a Source for each sample, if voxels are read box by box; the records then have no addresses
    letters   axes of a sample, such as "czyx"
    stacked   whether one array has all samples along its first axis
    records   abi::array of every sample, or of the first sample of a stacked array, as bytes
    step      bytes from one sample to the next in a stacked array
    placed    whether all samples are Volumes of known spacing
    first     the stacked array, or that of the first sample; those of others may differ in shape, strides and address
    """

    __slots__ = ("count", "letters", "dtype", "device", "library", "records", "first", "volumes", "stacked", "step",
                 "sources", "grids", "channels", "order", "placed", "what", "_plain", "_known", "stream")

    def __init__(self, given: Any, key: str, layout: str | None, stream: int | None, lazy: bool = False,
                 device: Any = None, one_channel: bool = False) -> None:
        """Reads what a batch has under a key.

        lazy         whether Volumes of a Source are accepted
        device       device of torch for the boxes of a Source; None: they are NumPy arrays
        one_channel  whether arrays may leave the channel axis out, as label maps do
        """
        what = f"suture: {key}"
        self.sources: list[Source] | None = None
        self.what, self.stream = what, stream
        self.grids: list[Grid] | None = None
        self.volumes = self.stacked = self.placed = False
        self.step = 0
        if type(given[0] if type(given) in _LISTS and given else given) not in KNOWN:
            given = read_images(given)
        if isinstance(given, Volume):
            given = [given]
        if not isinstance(given, (list, tuple)):
            self._read_stacked(given, layout, one_channel)
        elif not given:
            raise Error(f"{what}: the batch is empty")
        elif isinstance(given[0], Volume):
            self._read_volumes(given, lazy, device)
        else:
            self._read_arrays(given, layout, one_channel)
        self.dtype, self.device, self.library = self.first.dtype, self.first.device, self.first.library
        self.order = spatial_order(self.letters)
        c = self.letters.find("c")
        self.channels = self.first.shape[-len(self.letters):][c] if c >= 0 else 1
        if self.channels >= 8 and not self.volumes and not (layout and len(self.letters) == 4):
            self._check_channels(c)

    def _check_channels(self, c: int) -> None:
        """Refuses arrays whose layout is probably wrong: with many channels, and few voxels along the axis at the other end. Stated
        layouts of 3D arrays are not examined, since patches with a channel for each class may be thin. Those of 2D arrays are, since
        every 2D array needs one."""
        letters, shape = self.letters, self.first.shape[-len(self.letters):]
        if channels_last(shape if c == 0 else shape[::-1]) and c in (0, len(letters) - 1):
            turned = letters[1:] + "c" if c == 0 else "c" + letters[:-1]
            names, other = "".join(_NAMES[x] for x in letters), "".join(_NAMES[x] for x in turned)
            raise Error(f"{self.what}: layout: expected samples with the axes ({', '.join(names)}), got shape {tuple(shape)}, "
                        f"{self.channels} channels of a few voxels. Say layout={'N' + other!r} if it has the axes ({', '.join(other)})"
                        + (f", or layout={'N' + names!r} if it does not" if len(letters) == 4 else ", or pass Volumes if it does not"))

    @property
    def arrays(self) -> list[Array]:
        """Arrays of all samples, or the one array that holds them all."""
        if self.stacked:
            return [self.first]
        return [self.array(i) for i in range(self.count)]

    def array(self, i: int) -> Array:
        """Returns the array of sample i, or the one array that holds all samples."""
        if self.stacked:
            return self.first
        return self._known.get(i) or array_of(self._plain[i], self.what, self.stream)

    def _read_stacked(self, given: Any, layout: str | None, one_channel: bool) -> None:
        what, a = self.what, array_of(given, self.what, self.stream)
        letters = read_layout(layout) if layout else None
        if one_channel and len(a.shape) != 5:
            axes = "nczyx" if letters is None else letters if "n" in letters else "n" + letters
            if len(a.shape) == len(axes) - 1 and "c" in axes:
                a = array_of(_with_channel(given, axes.index("c")), what, self.stream)
        if letters is None:
            if len(a.shape) != 5:
                raise Error(f"{what}: an array of shape {tuple(a.shape)} may be read in several ways; say layout= "
                            '("NCHW", say), or give (sample, channel, z, y, x), or a list of Volumes')
            letters = "nczyx"
        if "n" not in letters:
            letters = "n" + letters
        if len(a.shape) != len(letters):
            raise _wrong_rank(what, "array", a.shape, letters)
        if a.shape[0] == 0:
            raise Error(f"{what}: the batch is empty")
        self.stacked, self.first, self.letters, self.count = True, a, letters[1:], a.shape[0]
        self.step = a.strides[0] * SIZES[a.dtype]
        self.records = _record(a.pointer, a.shape[1:], a.strides[1:], self.letters)

    def _read_volumes(self, given: Sequence[Volume], lazy: bool, device: Any) -> None:
        what, axes = self.what, given[0].axes
        rank = len(given[0].array.shape)
        self.letters = axes if rank == len(axes) else "c" + axes
        for i, volume in enumerate(given):
            if type(volume) is not Volume and not isinstance(volume, Volume):
                raise Error(f"{what}: sample {i} is no Volume as the first is. Make all of them Volumes, or none")
            if volume.axes != axes or len(volume.array.shape) != rank:
                raise Error(f"{what}: sample {i} has the axes {volume.axes!r} and shape {tuple(volume.array.shape)}, "
                            f"the first {axes!r} and {tuple(given[0].array.shape)}. with_axes({axes!r}) gives a Volume these axes")
        self.volumes, self.grids, self.placed = True, [v.grid for v in given], all([v.placed for v in given])
        arrays = [v.array for v in given]
        kinds = set(map(type, arrays))
        if not kinds <= IN_MEMORY:
            IN_MEMORY.update(type(a) for a in arrays if not is_source(a))
        if not kinds <= IN_MEMORY:
            if not lazy:
                raise Error(f"{what}: expected voxels in memory, got a Volume that is read box by box. Pass "
                            "Volume(numpy.asarray(v), axes=v.axes, grid=v.grid)")
            self._read_sources(arrays, [g.place for g in self.grids], device)
        else:
            self._read_each(arrays, [g.place for g in self.grids])

    def _read_sources(self, given: Sequence[Any], places: Sequence[bytes], device: Any) -> None:
        """Describes Volumes of which some are read box by box; those in memory are then read so as well."""
        what = self.what
        self.sources = sources = [each if is_source(each) else MemorySource(each, what) for each in given]
        dtype = element_name(sources[0].dtype, what)
        for i, each in enumerate(sources):
            if element_name(each.dtype, what) != dtype:
                raise Error(f"{what}: sample {i} is {each.dtype}, the first {sources[0].dtype}. Convert them to one type, or call for each")
        self._plain, self.count = tuple(sources), len(sources)
        self.first = place(tuple(sources[0].shape), dtype, device)
        self._known = {0: self.first}
        nothing = (0,) * len(self.letters)
        self.records = b"".join(_record(0, tuple(each.shape), nothing, self.letters, place=at) for each, at in zip(sources, places))

    def box_record(self, i: int, box: Any, low: Sequence[int], stream: int | None) -> bytes:
        """Returns the abi::array of sample i of which only a box is in memory, with the extents of the whole sample.

        Parameters
        ----------
        i : int
            The sample.
        box : array
            The voxels, with the axes of the sample.
        low : sequence of int
            First voxel of the box along (z, y, x).
        stream : int, optional
            CUDA stream that reads the box.

        Returns
        -------
        bytes
            The record.

        Raises
        ------
        Error
            If the box has another type, device or number of axes than the sample.
        """
        what = f"{self.what}: sample {i}: box"
        a = array_of(box, what, stream)
        if a.dtype != self.dtype:
            raise Error(f"{what}: expected {self.dtype}, got {a.dtype}")
        if a.device != self.device:
            raise Error(f"{what}: expected it on {device_name(self.device)}, got it on {device_name(a.device)}")
        if len(a.shape) != len(self.letters):
            raise Error(f"{what}: expected the axes {self.letters!r}, got shape {tuple(a.shape)}")
        there = _record(a.pointer, a.shape, a.strides, self.letters)
        record = self.records if self.stacked else self.records[VIEW_BYTES * i:VIEW_BYTES * (i + 1)]
        return (there[:_EXTENTS_AT] + record[_EXTENTS_AT:_STEPS_AT] + there[_STEPS_AT:_BOX_AT]
                + _BOX.pack(*low, *first_extents(there)) + record[_PLACE_AT:])

    def _read_arrays(self, given: Sequence[Any], layout: str | None, one_channel: bool) -> None:
        what = self.what
        self.letters = letters = read_layout(layout).removeprefix("n") if layout else "czyx"
        for i, each in enumerate(given):
            if type(each) is Volume:
                raise Error(f"{what}: sample {i} is a Volume, the first is not. Make all of them Volumes, or none")
        c = letters.find("c") if one_channel else -1
        if c >= 0 and all(len(getattr(each, "shape", ())) == len(letters) - 1 for each in given):
            given = [_with_channel(each, c) for each in given]
        shapes = self._read_each(given, None)
        rank = len(letters)
        if any([len(shape) != rank for shape in shapes]):
            i, shape = next((i, tuple(shape)) for i, shape in enumerate(shapes) if len(shape) != rank)
            if layout:
                raise _wrong_rank(what, f"sample {i}", shape, letters)
            raise Error(f"{what}: sample {i} of shape {shape} may be read in several ways; say layout= (\"HWC\" or \"ZYX\", say), "
                        "give a Volume, or (channel, z, y, x)")

    def _read_each(self, plain: Sequence[Any], places: Sequence[bytes] | None) -> list[tuple[int, ...]]:
        self._plain, self.count = tuple(plain), len(plain)  # a copy, since the caller may change the list
        self.first = array_of(plain[0], self.what, self.stream)
        self._known = {0: self.first}
        what, letters = self.what, self.letters
        found = alike(plain, self._known, what, self.stream)
        if places is None:
            records = [_record(pointer, shape, strides, letters, kind, what) for pointer, shape, strides, kind in found]
        else:
            records = [_record(pointer, shape, strides, letters, kind, what, place)
                       for (pointer, shape, strides, kind), place in zip(found, places)]
        self.records = b"".join(records)
        return [each[1] for each in found]


def _with_channel(array: Any, place: int) -> Any:
    """Inserts a channel axis of one element into an array, without a copy."""
    return array[(slice(None),) * place + (None,)]


def _wrong_rank(what: str, given: str, shape: Sequence[int], letters: str) -> Error:
    """Returns the error for an array whose number of axes is not that of its layout."""
    name = "".join(_NAMES[c] for c in letters)
    c = letters.find("c")
    if len(shape) == len(letters) - 1 and c >= 0:
        index = "..., None" if c == len(letters) - 1 else ":, " * c + "None"
        way = f"Add the channel axis, as {given.split()[0]}[{index}] does"
    else:
        way = "Say the layout that it has: letters of N, C, D, H and W, such as 'NCDHW', 'NHWC' or 'HW'"
    return Error(f"{what}: layout: expected {given} with the axes ({', '.join(name)}), as layout {name!r} says, got shape "
                 f"{tuple(shape)}. {way}")


_shapes: dict[Any, bytes] = {}  # the middle of records, by shape, strides, axes and element type


def _record(pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], letters: str, kind: str = "", what: str = "",
            place: bytes = _UNPLACED) -> bytes:
    """Returns an array as the bytes of an abi::array. Strides are in elements, or in bytes if `kind` names the element type.
    The part that depends on shape and strides is cached, since batches repeat their shapes."""
    at = (shape, strides, letters, kind)
    middle = _shapes.get(at)
    if middle is None:
        if kind:
            strides = steps_of(strides, kind, what)
        extents, steps, channels, channel_step = [1, 1, 1], [0, 0, 0], 1, 0
        for n, s, letter in zip(shape, strides, letters):
            if letter == "c":
                channels, channel_step = n, s
            else:
                k = _AXIS[letter]
                extents[k], steps[k] = n, s
        if len(_shapes) >= _MOST_KEPT:
            _shapes.clear()
        middle = _shapes[at] = _SHAPE.pack(*extents, *steps, channels, channel_step, 0, 0, 0, 0, 0, 0)
    return _POINTER.pack(pointer) + middle + place


def item_shape(extents: Sequence[int], channels: int, letters: str) -> tuple[int, ...]:
    """Returns the shape of an item with these extents along (z, y, x)."""
    return tuple([channels if c == "c" else extents[_AXIS[c]] for c in letters])


def letters_out(letters: str, channels: int, stacked: bool) -> str:
    """Returns the layout of an output item."""
    return "c" + letters if "c" not in letters and (stacked or channels > 1) else letters


def output_bound(arrays: list[Array], letters: str, stacked: bool) -> tuple[bytes, int, int]:
    """Returns the records of outputs, their number, and the step between samples in bytes."""
    if stacked:
        a = arrays[0]
        return _record(a.pointer, a.shape[1:], a.strides[1:], letters), 1, a.strides[0] * SIZES[a.dtype]
    return b"".join(_record(a.pointer, a.shape, a.strides, letters) for a in arrays), len(arrays), 0


def bound_of(items: Items) -> tuple[bytes, int, int]:
    """Returns the records of inputs, their number, and the step between samples in bytes."""
    return items.records, len(items.records) // VIEW_BYTES, items.step


def first_extents(buffer: Any) -> tuple[int, int, int]:
    """Returns the extents in the first of some abi::array records."""
    return _EXTENTS.unpack_from(buffer, _EXTENTS_AT)


_EXTENTS, _BOX = struct.Struct("<3q"), struct.Struct("<6q")


def unpack_grids(buffer: Any, count: int) -> list[Grid]:
    """Returns the grids in abi::array records."""
    grids = []
    for values in _VIEW.iter_unpack(bytes(buffer)[: count * VIEW_BYTES]):
        grids.append(Grid(values[1:4], values[15:18], values[18:21], values[21:30]))
    return grids
