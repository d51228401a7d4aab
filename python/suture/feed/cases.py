# SPDX-License-Identifier: Apache-2.0
"""This module makes batches for a pipeline from the cases of a cohort: a store, or a dict or list of cases."""
from __future__ import annotations

import hashlib
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..arrays.lazy import MemorySource, is_source
from ..arrays.volume import Volume
from ..errors import Error
from ..operations.kinds import PerSample, shown
from ..pipeline.pipeline import Pipeline
from .cache import Cache, CachedSource
from .order import Balance
from .tiles import TileCases, is_tiles

_MOST_OPEN = 256  # cases


class Cases:
    """The cases of a cohort by number: those of a mapping in the order of their names, those of a list in its order.

    Parameters
    ----------
    cohort : Mapping or list
        Cases by name, or a list of them. A case has volume(member), as those of a store, or is a dict of Volumes.
    pipeline : Pipeline
        The pipeline of the batches.
    keys : dict
        The member of a case for a key of the pipeline, if it is not the default one, as in Feed.
    extra : callable, optional
        extra(name, case) returns a dict of what else the pipeline needs of a case, as per_sample names it.
    """

    def __init__(self, cohort: Any, pipeline: Pipeline, keys: Mapping[str, str], extra: Callable[[str, Any], Mapping[str, Any]] | None) -> None:
        what = "suture: feed"
        if isinstance(cohort, Mapping):
            for name in cohort:
                if not isinstance(name, str):
                    raise Error(f"{what}: cohort: expected names of cases that are strings, got {shown(name)}")
            self.names = sorted(cohort)
            self._keys: Sequence[Any] = self.names
        elif is_tiles(cohort):
            cohort = TileCases(cohort, list(pipeline.images))
            self.names, self._keys = cohort.names, range(len(cohort.names))
        elif isinstance(cohort, (list, tuple)):
            self.names, self._keys = [_name_of(case, i) for i, case in enumerate(cohort)], range(len(cohort))
            if len(set(self.names)) != len(self.names):
                raise Error(f"{what}: cohort: expected cases of different names, got one twice. Name them apart")
        else:
            raise Error(f"{what}: cohort: expected a mapping of cases or a list of them, got {shown(cohort)}")
        if not self.names:
            raise Error(f"{what}: cohort: expected one case or more, got none")
        arrays = (*pipeline.images, *pipeline.labels)
        for key in keys:
            if key not in arrays:
                raise Error(f"{what}: keys: expected some of {', '.join(arrays)}, got {shown(key)}")
        self._cohort, self._pipeline, self._extra = cohort, pipeline, extra
        self._member = {key: keys.get(key) for key in arrays}
        self._value_keys = sorted({*_per_sample_of(pipeline), *pipeline.boxes, *pipeline.points})
        self._open: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._guard = threading.Lock()
        self.cache: Cache | None = None  # of decoded chunks

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sha256(self) -> str:
        """The hash of the cohort, or of its names if it has none, as files of other programs."""
        try:
            known = getattr(self._cohort, "sha256", None)
        except Error:
            known = None
        if isinstance(known, str):
            return known
        return hashlib.sha256("\0".join(self.names).encode()).hexdigest()

    def balance(self, draws: int) -> Balance | None:
        """Returns the balance of tiles by their labels, or None if there are no ratios. A pass has `draws` positions for each tile."""
        if not isinstance(self._cohort, TileCases) or not self._cohort.ratios:
            return None
        return Balance([numbers * draws for numbers in self._cohort.showing()], self._cohort.ratios, len(self) * draws)

    def may_be_cached(self) -> bool:
        """Tests whether the first case identifies its voxels, so that cached ones can be recognized."""
        return isinstance(getattr(self._cohort[self._keys[0]], "sha256", None), str)

    def batch(self, number: int) -> dict[str, Any]:
        """Returns a case as a batch of one sample, without its id. No voxels are read.

        Raises
        ------
        Error
            If the case lacks something that the pipeline needs.
        """
        with self._guard:
            known = self._open.get(number)
            if known is not None:
                self._open.move_to_end(number)
                return known
        made = self._made(number)
        with self._guard:
            self._open[number] = made
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return made

    def _made(self, number: int) -> dict[str, Any]:
        name, case = self.names[number], self._cohort[self._keys[number]]
        made: dict[str, Any] = {key: [self._volume(case, key)] for key in self._member}
        if self._value_keys:
            extra = {} if self._extra is None else self._extra(name, case)
            made.update({key: [self._value(case, key, extra)] for key in self._value_keys})
        return made

    def _volume(self, case: Any, key: str) -> Volume:
        member = self._member[key]
        if isinstance(case, Mapping):
            if member is None:
                member = key if key in case else self._default(key)
            if member not in case:
                raise Error(f"suture: feed: {key}: expected the case to have {member!r}, got {', '.join(map(str, case))}. Say the "
                            f"member of a case: keys={{{key!r}: ...}}")
            volume = case[member]
        elif not hasattr(case, "volume"):
            raise Error(f"suture: feed: {key}: expected a case with volume(member), or a dict of Volumes, got {type(case).__name__}. Pass "
                        f"{{{key!r}: suture.Volume(array, axes=..., spacing=...)}}")
        else:
            volume = case.volume(member or self._default(key))
        if not isinstance(volume, Volume):
            raise Error(f"suture: feed: {key}: expected a Volume, which says its axes, got {type(volume).__name__}. Pass "
                        "suture.Volume(array, axes=..., spacing=...)")
        if is_source(volume.array):
            return self._cached(case, member or self._default(key), volume)
        return volume.of_array(MemorySource(volume.array, f"suture: feed: {key}"))

    def _cached(self, case: Any, member: str, volume: Volume) -> Volume:
        """Returns a Volume that reads through the cache, if the case has a hash and the array has chunks."""
        source: Any = volume.array
        if self.cache is None or not isinstance(getattr(case, "sha256", None), str) or not hasattr(source, "chunk"):
            return volume
        return volume.of_array(CachedSource(source, f"{case.sha256} {member} {source.dtype}", self.cache))

    def _default(self, key: str) -> str:
        if key in self._pipeline.labels:
            return "labels"
        return "image" if len(self._pipeline.images) == 1 else key

    def _value(self, case: Any, key: str, extra: Mapping[str, Any]) -> Any:
        """Returns the value of a case that per_sample(key) names."""
        if key in extra:
            return extra[key]
        places = [case] if isinstance(case, Mapping) else [getattr(case, "fingerprint", None), getattr(case, "__dict__", None)]
        for place in places:
            if isinstance(place, Mapping) and key in place:
                return place[key]
        if inspect.ismemberdescriptor(getattr(type(case), key, None)) and hasattr(case, key):  # a member of __slots__
            return getattr(case, key)
        raise Error(f"suture: feed: {key}: expected the case to have it, as the pipeline names it, got none. Pass extra=, which "
                    f"returns {{{key!r}: ...}} for a case")


def _name_of(case: Any, i: int) -> str:
    if isinstance(case, Mapping) and isinstance(case.get("id"), str):
        return str(case["id"])
    name = getattr(case, "name", None)
    return name if isinstance(name, str) else str(i)


def _per_sample_of(pipeline: Pipeline) -> set[str]:
    """Returns the keys of a batch that per_sample names in a pipeline."""
    return {value.key for chain in pipeline.images.values() for op in chain for value in _values_of(op) if isinstance(value, PerSample)}


def _values_of(op: Any) -> list[Any]:
    found: list[Any] = []
    for each in fields(op):
        value = getattr(op, each.name)
        found += [value, *(_values_of(value) if hasattr(value, "__dataclass_fields__") and not isinstance(value, PerSample) else [])]
    return found
