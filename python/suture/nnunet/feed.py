# SPDX-License-Identifier: Apache-2.0
"""This feed makes nnU-Net's patches in threads of the training process; nnU-Net's rules choose the cases and patches."""
from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import torch
from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader
from threadpoolctl import threadpool_limits

from ..errors import Error
from ..feed.feed import Feed
from ..feed.loading import Pending, Sample
from ..pipeline.identity import sample_id
from .loader import SutureLoader, drawing, seed_of
from .patches import Cut, Patches, with_channel

_END = 1 << 48  # steps, in effect without end: nnU-Net ends a training
_AHEAD = 4  # batches that are prepared in advance


class _NumPy:
    """The module numpy with a generator of its own as `random`, so that threads do not share NumPy's global state."""

    def __init__(self, random: np.random.RandomState) -> None:
        self.random = random

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _box_of(draws: np.random.RandomState) -> Any:
    """Returns nnU-Net's function that chooses the position of a patch, drawing from a given generator."""
    stock = nnUNetDataLoader.get_bbox
    return FunctionType(stock.__code__, {**stock.__globals__, "np": _NumPy(draws)}, stock.__name__, stock.__defaults__)


class PatchFeed(Feed):
    """Batches of nnU-Net's patches, with the order and the bits of a SutureLoader, for any number of threads.

    Parameters
    ----------
    loader : SutureLoader
        Loader with the order, which chooses cases and patches.
    patches : Patches
        Makes the patches.
    device : torch.device
        Device of the batches.
    threads : int
        Threads that make them.
    training : bool
        Whether patches are augmented.
    store : mapping, optional
        The preprocessed cases by name, as `suture.store.open` gives them, to read voxels from instead of nnU-Net's files.
    transforms : optional
        Transforms of nnU-Net after augmentation.

    Raises
    ------
    Error
        If the store lacks a case.

    Examples
    --------
    >>> feed = PatchFeed(loader, patches, device=torch.device("cuda"), threads=8, training=True)  # doctest: +SKIP
    >>> batch = next(feed)  # doctest: +SKIP
    """

    def __init__(self, loader: SutureLoader, patches: Patches, *, device: Any, threads: int, training: bool, store: Any = None,
                 transforms: Any = None) -> None:
        self._loader, self._patches, self._store, self._transforms = loader, patches, store, transforms
        order = loader.order
        first, labels, previous, _ = loader._data.load_case(loader.indices[0])
        maps = labels.shape[0] + (previous is not None)
        patch, enlarged = math.prod(patches.patch), math.prod(patches.enlarged)
        sample = first.shape[0] * 4 * (enlarged + patch) + maps * 2 * (enlarged + 2 * patch)
        super().__init__(dict.fromkeys(loader.indices), patches.pipeline, batch=len(order.places), seed=order.seed,
                         device="cuda" if str(device).startswith("cuda") else "cpu", threads=threads, cache=0, rank=0, world=1, bar=False,
                         memory=max(1 << 28, _AHEAD * 2 * len(order.places) * sample), steps_per_epoch=order.batches, training=training)
        self._step = order.first
        self._returned = 0.0  # time at which the previous batch was returned; 0 before the first
        if store is not None:
            missing = sorted(set(loader.indices) - set(store))
            if missing:
                raise Error(f"suture: nnunet: store: expected the preprocessed cases, got none of {', '.join(missing[:5])}. Build the store "
                            "from the folder of this configuration")

    def _batches(self, first: int, end: int) -> Iterator[Pending]:
        order = self._loader.order
        for step in range(first, end):
            yield Pending(step, [self._at(step, place, order.total) for place in order.places])

    def _at(self, step: int, place: int, total: int) -> Sample:
        """Returns one sample. Its case is drawn now, its patch when a thread opens the case."""
        loader, position = self._loader, step * total + place
        seed = seed_of(loader.order.seed, loader.order.name, position)

        def name_of(draws: np.random.RandomState) -> str:
            return str(draws.choice(loader.indices, p=loader.sampling_probabilities))

        def made() -> dict[str, Any]:
            draws = np.random.RandomState(seed)
            return self._patches.sample(self._cut(name_of(draws), place, draws))

        name = name_of(np.random.RandomState(seed))
        return Sample(name, sample_id(name, draw=position + 1), step // loader.order.batches, made)

    def _cut(self, name: str, place: int, draws: np.random.RandomState) -> Cut:
        """Returns the enlarged patch of a sample at the position that nnU-Net draws. In validation nnU-Net draws the patch itself, and the
        enlarged patch is centered on it."""
        loader, patches = self._loader, self._patches
        image, labels, previous, properties = loader._data.load_case(name)
        if self._store is not None:
            image, labels = self._stored(name, "image", image.shape), self._stored(name, "labels", labels.shape)
        foreground = loader.with_foreground(place, draws)
        start, _ = _box_of(draws)(loader, image.shape[1:], foreground, properties["class_locations"])
        if not self.training:
            start = [s - (e - p) // 2 for s, e, p in zip(start, patches.enlarged, patches.patch)]
        return Cut(image, [labels] if previous is None else [labels, with_channel(previous)], start)

    def _stored(self, name: str, member: str, shape: Sequence[int]) -> Any:
        """Returns an array of the store, (channel, z, y, x)."""
        array = getattr(self._store[name], member)
        if array is None or tuple(array.shape) not in (tuple(shape), tuple(shape[1:]) if shape[0] == 1 else ()):
            found = "none" if array is None else f"the shape {tuple(array.shape)}"
            raise Error(f"suture: nnunet: store: expected {member} of the shape {tuple(shape)} of case {name!r}, as nnU-Net preprocessed it, got "
                        f"{found}. Build the store from the folder of this configuration")
        return array if len(array.shape) == 4 else with_channel(array)

    def __next__(self) -> dict[str, Any]:
        """Returns the next batch as nnU-Net's trainer expects it."""
        step, order = self._step, self._loader.order
        if step % order.batches == 0:  # the time since the previous batch includes validation
            self._returned = time.perf_counter()
        made = self._next(_END, self._returned or time.perf_counter())
        self._returned = time.perf_counter()
        data, target = self._patches.image(made["image"]), self._patches.targets(made)
        if self._transforms is not None:
            where = data.device
            with torch.no_grad(), threadpool_limits(limits=1, user_api=None), drawing(order.seed, "transforms", step, tuple(order.places)):
                data, target = self._loader.finished(self._transforms, data.cpu(), target[0].cpu())
            data, target = data.to(where), [level.to(where) for level in target]
        return {"data": data, "target": target if len(target) > 1 else target[0], "keys": made["id"]}


__all__ = ["PatchFeed"]
