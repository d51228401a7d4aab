# SPDX-License-Identifier: Apache-2.0
"""Where the voxels of each class of a label map lie: made once for a case, and found again by what the map holds."""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.batch import VIEW_BYTES, Items
from ..arrays.dlpack import SIZES
from ..backend import plain
from ..backend.call import call_function, executor_of, function_source
from ..backend.encode import CPP_TYPES
from ..backend.request import Request
from ..backend.threads import threads_of
from ..errors import Error
from ..operations.crop_by_class import crop_by_class
from ..operations.operation import Operation

MOST_KEPT = 512


class ClassIndex:
    """A suture::class_index, freed with this."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        weakref.finalize(self, _free, plain.function("free_class_indexes"), handle)


def _free(function: Any, handle: int) -> None:
    function(Request(lists=[np.array([handle], np.uint64)]).address)


@dataclass(frozen=True)
class Classes:
    """What counts as a class of a label map.

    count       how many classes there are: 2 with foreground
    foreground  class 1 is every label above 0, class 0 the rest
    table       labels that become others first, as remap has them; None: labels are taken as they are
    others      what labels become that the table does not name; None: they stay
    """

    count: int
    foreground: bool = False
    table: tuple[tuple[int, int], ...] | None = None
    others: int | None = None


def classes_of(op: crop_by_class, convert: Operation | None) -> Classes:
    """What crop_by_class counts in a label map that labels(convert=...) stores.

    Raises
    ------
    Error
        If classes are asked for by ratios or oversample, and regions may overlap.
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


_kept: dict[Any, tuple[ClassIndex, Any]] = {}  # the one used last stands last


def indexes_of(items: Items, classes: Classes, threads: int | None = None) -> list[ClassIndex]:
    """The index of each sample; what was made before of a map that holds the same is used again."""
    keys = _keys(items, classes, threads)
    found: list[ClassIndex | None] = []
    for key, owner in keys:
        known = None if key is None else _kept.pop(key, None)
        if known is not None and (owner is None or known[1]() is owner):
            _kept[key] = known
            found.append(known[0])
        else:
            found.append(None)
    new: dict[Any, int] = {}  # the first sample of each
    for i, (key, _) in enumerate(keys):
        if found[i] is None:
            new.setdefault(("sample", i) if key is None else key, i)
    if new:
        first = list(new.values())
        for i, index in zip(first, _made(items, first, classes)):
            found[i] = index
            key, owner = keys[i]
            if key is not None:
                _kept[key] = index, None if owner is None else weakref.ref(owner)
        while len(_kept) > MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
    return [each if each is not None else found[new[keys[i][0]]] for i, each in enumerate(found)]  # type: ignore[misc]


def _keys(items: Items, classes: Classes, threads: int | None) -> list[tuple[Any, Any]]:
    """What each label map is known by, and the object that a GPU's belongs to; None: it is not known again."""
    if items.first.on_cuda:
        return [_counted(items, i, classes) for i in range(items.count)]
    records = [record(items, i) for i in range(items.count)]
    each = list(dict.fromkeys(records))  # one map may stand many times
    hashes = np.zeros(len(each), np.uint64)
    plain.call_plain("content_hash", numbers=[SIZES[items.dtype]], inputs=[(b"".join(each), len(each), 0)], results=[hashes],
                     samples=len(each), threads=threads_of(threads))
    known = dict(zip(each, hashes.tolist()))
    return [((known[r], items.dtype, r[8:32], classes), None) for r in records]


def _counted(items: Items, i: int, classes: Classes) -> tuple[Any, Any]:
    """Of memory on a GPU: torch counts what is written to a tensor."""
    a = items.array(i)
    try:
        version = a.owner._version
        weakref.ref(a.owner)
    except (AttributeError, RuntimeError, TypeError):  # no tensor, or one of inference_mode
        return None, None
    return (id(a.owner), version, record(items, i), items.dtype, classes), a.owner


def record(items: Items, i: int) -> bytes:
    """abi::array of sample i."""
    if not items.stacked:
        return items.records[VIEW_BYTES * i:VIEW_BYTES * (i + 1)]
    return bytes((items.first.pointer + i * items.step).to_bytes(8, "little") + items.records[8:])


def _made(items: Items, samples: Sequence[int], classes: Classes) -> list[ClassIndex]:
    """New indexes of some samples."""
    some = Items.__new__(Items)
    some.records, some.step, some.count = b"".join(record(items, i) for i in samples), 0, len(samples)
    some.first, some.device, some.what = items.first, items.device, items.what
    cuda = items.first.on_cuda
    made = function_source("abi/patch", f"suture::abi::index_classes<{CPP_TYPES[items.dtype]}, {executor_of(cuda)}>",
                           "index_classes", cuda)
    numbers: list[float] = [classes.count, classes.foreground, classes.table is not None]
    lists = []
    if classes.table is not None:
        numbers += [classes.others is not None, classes.others or 0]
        lists.append(np.array(classes.table, np.int32).reshape(-1, 2))
    handles = np.zeros(len(samples), np.uint64)
    call_function(made, numbers=numbers, lists=lists, results=[handles], inputs=[some], stream=items.stream)
    return [ClassIndex(int(handle)) for handle in handles]

