# SPDX-License-Identifier: Apache-2.0
"""This module makes the class indexes that crop_by_class draws voxels from, and keeps those used last. A label map on the CPU is
recognized by a hash of its content, a torch tensor on a GPU by its identity and its version counter."""
from __future__ import annotations

import os
import struct
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.batch import VIEW_BYTES, Items
from ..arrays.dlpack import SIZES
from ..arrays.lazy import MemorySource, Source, is_source, read_box
from ..arrays.volume import Volume
from ..backend import plain
from ..backend.call import call_function, executor_of, function_source
from ..backend.encode import CPP_TYPES
from ..backend.request import Request
from ..backend.threads import threads_of
from ..arguments import check_calls
from ..errors import Error
from ..operations.crop_by_class import crop_by_class
from ..operations.operation import Operation
from .whole_labels import no_whole_number

MOST_KEPT = 512  # class indexes that are kept


@check_calls
class ClassIndex:
    """The runs of equal labels of a map, from which crop_by_class draws voxels without reading the map.

    A store keeps its bytes beside the labels. With every rule of crop_by_class and every conversion of labels, the same voxels
    are drawn from it as from the map. In C++ it is a label_runs; a class_index there is for one rule.

    Parameters
    ----------
    stored : bytes
        Bytes that to_bytes returned. They are not checked here; from_bytes does.

    Examples
    --------
    >>> labels = np.zeros((2, 3, 4), np.uint8)
    >>> labels[1, 2] = 5
    >>> index = st.ClassIndex.of(st.Volume(labels, axes="zyx"))
    >>> index.counts()
    {0: 20, 5: 4}
    >>> st.ClassIndex.from_bytes(index.to_bytes()) == index
    True
    """

    def __init__(self, stored: bytes) -> None:
        self._stored = stored

    @staticmethod
    def of(labels: Any, *, axes: str = "zyx") -> ClassIndex:
        """Makes the index of a label map, reading every voxel, slab by slab.

        Parameters
        ----------
        labels : Volume, Source or array
            Labels of one channel: whole numbers that an int32 holds, of an element type that batches may have (docs/python.md).
        axes : str, default "zyx"
            The order of the axes of a Source or an array.

        Returns
        -------
        ClassIndex
            The index of all labels of the map.

        Raises
        ------
        Error
            If the map has no voxels or more than 4294967295, several channels, more than 65536 labels, labels that no int32
            holds, or an element type that is not read.
        """
        if isinstance(labels, Volume):
            labels, axes = labels.array, labels.axes
        return ClassIndex(_stored_of(labels if is_source(labels) else MemorySource(labels, "suture: ClassIndex"), axes))

    def to_bytes(self) -> bytes:
        """Returns the bytes to be stored; include/suture/patch/label_runs.hpp describes them.

        Returns
        -------
        bytes
            The index, for from_bytes.
        """
        return self._stored

    @staticmethod
    def from_bytes(stored: bytes) -> ClassIndex:
        """Reads the index out of bytes that were stored.

        Parameters
        ----------
        stored : bytes
            Bytes that to_bytes returned.

        Returns
        -------
        ClassIndex
            The same index.

        Raises
        ------
        Error
            If the bytes are not those of an index.
        """
        made = ClassIndex(bytes(stored))
        _index_from_runs(made._stored, Classes(1))
        return made

    def counts(self) -> dict[int, int]:
        """Counts the voxels of each label.

        Returns
        -------
        dict
            The number of voxels by label.
        """
        labels, runs = (_HEAD.unpack_from(self._stored)[k] for k in (2, 6))
        at = _HEAD.size
        values, lengths = np.frombuffer(self._stored, "<i4", labels, at), np.frombuffer(self._stored, "<u4", runs, at + 4 * labels)
        places = np.frombuffer(self._stored, "<u2", runs, at + 4 * (labels + runs))
        return dict(zip(values.tolist(), np.bincount(places, lengths, labels).astype(np.int64).tolist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassIndex) and self._stored == other._stored

    def __hash__(self) -> int:
        return hash(self._stored)


_HEAD = struct.Struct("<8sII3qQ")
_LETTERS, _VERSION, _MOST_LABELS, _SLAB = b"sutureCI", 1, 65536, 1 << 24


def _stored_of(source: Source, axes: str) -> bytes:
    """Returns the runs of labels of a source as bytes, with z as the slowest and x as the fastest axis. The source is read slab by
    slab."""
    what = "suture: ClassIndex"
    shape = tuple(source.shape)
    channel: Any = (0,) if len(shape) == len(axes) + 1 and shape[0] == 1 else ()
    shape = shape[len(channel):]
    if len(shape) != len(axes):
        raise Error(f"{what}: expected a label map of one channel with the axes {axes!r}, got shape {tuple(source.shape)}. "
                    "Index one channel")
    named = dict(zip(axes, shape))
    extents = tuple(int(named.get(k, 1)) for k in "zyx")
    if not 0 < np.prod([float(n) for n in extents]) <= 0xffffffff:
        raise Error(f"{what}: expected 1 to 4294967295 voxels, got extents {extents}")
    slowest = "z" if "z" in axes else "y"
    order = tuple(axes.index(k) for k in "zyx" if k in axes)
    planes = max(_SLAB // max(int(np.prod(shape)) // named[slowest], 1), 1)
    values: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    for begin in range(0, named[slowest], planes):
        end = min(begin + planes, named[slowest])
        low = [begin if k == slowest else 0 for k in axes]
        high = [end if k == slowest else n for k, n in zip(axes, shape)]
        box = read_box(source, low, high, what)[channel].transpose(order)
        flat = box.reshape(-1)
        starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
        values.append(flat[starts])
        lengths.append(np.diff(starts, append=flat.size))
    value, length = np.concatenate(values), np.concatenate(lengths)
    with np.errstate(invalid="ignore"):
        label = value.astype(np.int32)
    if not np.array_equal(label, value):
        raise no_whole_number(value[label != value][0], what)
    first = np.concatenate([[0], np.flatnonzero(label[1:] != label[:-1]) + 1])  # joins a run that continues in the next slab
    label, length = label[first], np.add.reduceat(length, first)
    labels, place = np.unique(label, return_inverse=True)
    if len(labels) > _MOST_LABELS:
        raise Error(f"{what}: expected at most {_MOST_LABELS} labels, got {len(labels)}")
    return b"".join([_HEAD.pack(_LETTERS, _VERSION, len(labels), *extents, len(label)), labels.astype("<i4").tobytes(),
                     length.astype("<u4").tobytes(), place.astype("<u2").tobytes()])


class ClassIndexHandle:
    """Owns a suture::class_index, the voxels of each class for one rule, and deletes it when it is garbage-collected."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        weakref.finalize(self, _free, plain.function("free_class_indexes"), handle)


def _free(function: Any, handle: int) -> None:
    request = Request(lists=[np.array([handle], np.uint64)])  # keeps its memory alive during the call
    function(request.address)


@dataclass(frozen=True)
class Classes:
    """The classes of a label map.

    count       how many classes there are: 2 with foreground
    foreground  class 1 is every label above 0, class 0 the rest
    table       pairs (old, new) of labels that are changed before classes are counted, as by remap; None: no label changes
    others      new label of those that the table does not name; None: they do not change
    """

    count: int
    foreground: bool = False
    table: tuple[tuple[int, int], ...] | None = None
    others: int | None = None


def classes_of(op: crop_by_class, convert: Operation | None) -> Classes:
    """Returns the classes that crop_by_class counts in a label map that labels(convert=...) stores.

    Raises
    ------
    Error
        If ratios or oversample would count classes of regions, which may overlap.
    """
    given: Any = convert
    if given is None or op.choose == "given" or given.name == "one_hot":
        return Classes(op.class_count, op.by_foreground)
    if given.name == "remap":
        return Classes(op.class_count, op.by_foreground, tuple(given.table.items()), given.others)
    if not op.by_foreground:
        raise Error(f"suture: crop_by_class: choose: expected \"given\" with {'ratios' if op.ratios else 'oversample'} and "
                    "labels(convert=regions(...)), whose regions may overlap, got \"converted\". choose=\"given\" draws by the "
                    "labels of the batch; positive and negative draw by what any region holds")
    return Classes(2, True, tuple((label, 1) for label in sorted({n for labels in given.sets for n in labels})), 0)


# Class indexes in the order of their last use, each with a weak reference to the tensor that owns the map, None without one.
_kept: dict[Any, tuple[ClassIndexHandle, Any]] = {}
_keeping = threading.Lock()  # guards _kept, which several operations change in turn


def _forget_lock() -> None:
    """Replaces the lock in a child made by fork, since another thread may have held it."""
    global _keeping
    _keeping = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def _used(key: Any, owner: Any) -> ClassIndexHandle | None:
    """Returns the class index of a key, which becomes the last used; None if there is none, or that of another owner."""
    with _keeping:
        known = _kept.pop(key, None)
        if known is None or (owner is not None and known[1]() is not owner):
            return None
        _kept[key] = known
        return known[0]


def _keep(key: Any, index: ClassIndexHandle, owner: Any) -> None:
    """Keeps a class index, and forgets those that were used least recently."""
    with _keeping:
        _kept.pop(key, None)
        _kept[key] = index, None if owner is None else weakref.ref(owner)
        last = [_kept.pop(next(iter(_kept))) for _ in range(len(_kept) - MOST_KEPT)]
    del last  # is freed without the lock


def indexes_of(items: Items, classes: Classes, threads: int | None = None) -> list[ClassIndexHandle]:
    """Returns the class index of each sample. Maps on the CPU with equal content, type and extents share one."""
    if items.sources is not None:
        return [_of_source(items, i, classes) for i in range(items.count)]
    keys = _keys(items, classes, threads)
    found: list[ClassIndexHandle | None] = []
    for key, owner in keys:
        found.append(None if key is None else _used(key, owner))
    new: dict[Any, int] = {}  # first sample of each new key
    for i, (key, _) in enumerate(keys):
        if found[i] is None:
            new.setdefault(("sample", i) if key is None else key, i)
    if new:
        first = list(new.values())
        for i, index in zip(first, _made(items, first, classes)):
            found[i] = index
            key, owner = keys[i]
            if key is not None:
                _keep(key, index, owner)
    return [each if each is not None else found[new[keys[i][0]]] for i, each in enumerate(found)]  # type: ignore[misc]


def _keys(items: Items, classes: Classes, threads: int | None) -> list[tuple[Any, Any]]:
    """Returns for each label map the key of its class index, None if the index cannot be reused, and the tensor that owns a map on
    a GPU, None on the CPU."""
    if items.first.on_cuda:
        return [_key_on_cuda(items, i, classes) for i in range(items.count)]
    records = [record(items, i) for i in range(items.count)]
    each = list(dict.fromkeys(records))  # samples may share a map
    hashes = np.zeros(len(each), np.uint64)
    plain.call_plain("content_hash", numbers=[SIZES[items.dtype]], inputs=[(b"".join(each), len(each), 0)], results=[hashes],
                     samples=len(each), threads=threads_of(threads))
    known = dict(zip(each, hashes.tolist()))
    return [((known[r], items.dtype, r[8:32], classes), None) for r in records]


def _key_on_cuda(items: Items, i: int, classes: Classes) -> tuple[Any, Any]:
    """Returns the key of a label map on a GPU, from the identity and the version counter of its tensor, and the tensor."""
    a = items.array(i)
    try:
        version = a.owner._version
        weakref.ref(a.owner)
    except (AttributeError, RuntimeError, TypeError):  # it is no tensor, or a tensor of inference_mode, which has no counter
        return None, None
    return (id(a.owner), version, record(items, i), items.dtype, classes), a.owner


def record(items: Items, i: int) -> bytes:
    """Returns the abi::array of sample i."""
    if not items.stacked:
        return items.records[VIEW_BYTES * i:VIEW_BYTES * (i + 1)]
    return bytes((items.first.pointer + i * items.step).to_bytes(8, "little") + items.records[8:])


def _made(items: Items, samples: Sequence[int], classes: Classes) -> list[ClassIndexHandle]:
    """Makes the class indexes of some samples."""
    some = Items.__new__(Items)
    some.records, some.step, some.count = b"".join(record(items, i) for i in samples), 0, len(samples)
    some.first, some.device, some.what = items.first, items.device, items.what
    cuda = items.first.on_cuda
    made = function_source("abi/patch", f"suture::abi::index_classes<{CPP_TYPES[items.dtype]}, {executor_of(cuda)}>",
                           "index_classes", cuda)
    numbers, lists = _encoded(classes)
    handles = np.zeros(len(samples), np.uint64)
    call_function(made, numbers=numbers, lists=lists, results=[handles], inputs=[some], stream=items.stream)
    return [ClassIndexHandle(int(handle)) for handle in handles]


def _encoded(classes: Classes) -> tuple[list[float], list[np.ndarray]]:
    """Returns the classes as the numbers and lists that index_classes of abi/patch.hpp reads."""
    numbers: list[float] = [classes.count, classes.foreground, classes.table is not None]
    if classes.table is None:
        return numbers, []
    return [*numbers, classes.others is not None, classes.others or 0], [np.array(classes.table, np.int32).reshape(-1, 2)]


# Bytes of the ClassIndex of sources without a stored one, by the identity of the source and the order of its axes, each with a
# weak reference to the source.
_read: dict[tuple[int, str], tuple[Any, bytes]] = {}


def _of_source(items: Items, i: int, classes: Classes) -> ClassIndexHandle:
    """Returns the class index of a map that is read box by box, from the ClassIndex that is stored with it. Without one, all voxels
    are read, once in the life of the source."""
    assert items.sources is not None
    source: Any = items.sources[i]
    stored = source.class_index
    if stored is None:
        owner = getattr(source, "owner", source)
        at = id(owner), items.order
        known = _read.get(at)
        if known is None or known[0]() is not owner:
            known = (lambda: None), _stored_of(source, items.order)
            try:
                known = weakref.ref(owner), known[1]
                weakref.finalize(owner, _read.pop, at, None)
                _read[at] = known
            except TypeError:  # it allows no weak references, so it is read each time
                pass
        stored = known[1]
    key = "stored", hash(stored), len(stored), classes
    found = _used(key, None)
    if found is None:
        what = f"{items.what}: sample {i}: class index"
        index, extents = _index_from_runs(stored, classes)
        named = dict(zip(items.order, items.sources[i].shape[-len(items.order):]))
        expected = tuple(named.get(k, 1) for k in "zyx")
        if extents != expected:
            raise Error(f"{what}: expected one of a map of the extents {expected}, got one of {extents}. Make it again from the "
                        "label map")
        found = index
        _keep(key, index, None)
    return found


def _index_from_runs(stored: bytes, classes: Classes) -> tuple[ClassIndexHandle, tuple[int, ...]]:
    """Returns the class index for one rule, made from the bytes of a ClassIndex, and the extents of the map along (z, y, x)."""
    numbers, lists = _encoded(classes)
    handle, extents = np.zeros(1, np.uint64), np.zeros(3, np.int64)
    plain.call_plain("index_from_runs", numbers=numbers, lists=[np.frombuffer(stored, np.uint8), *lists], results=[handle, extents])
    return ClassIndexHandle(int(handle[0])), tuple(extents.tolist())
