# SPDX-License-Identifier: Apache-2.0
"""nnU-Net's data loader with an order of its own: which samples a batch has follows from its number, not from who reads."""
from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader
from threadpoolctl import threadpool_limits

from ..pipeline.identity import sample_id
from .patches import Cut, Patches, with_channel


@dataclass(frozen=True)
class Order:
    """The numbers that decide which samples a process reads, and what they draw.

    seed     of the run
    batches  of an epoch
    first    the batch that comes first: past those of the epochs that are done
    places   of this process in a batch of all of them
    total    samples in a batch of all of them
    name     so that training and validation differ
    """

    seed: int
    batches: int
    first: int
    places: Sequence[int]
    total: int
    name: str


def seed_of(*key: Any) -> int:
    """A seed of NumPy's and torch's generators that follows from a key."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:4], "little")


@contextlib.contextmanager
def drawing(*key: Any) -> Iterator[None]:
    """NumPy's and torch's generators, which nnU-Net draws from, seeded by a key and afterwards as they were."""
    seed = seed_of(*key)
    before, before_torch = np.random.get_state(), torch.random.get_rng_state()
    np.random.seed(seed)
    torch.random.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)
        torch.random.set_rng_state(before_torch)


class SutureLoader(nnUNetDataLoader):  # type: ignore[misc]
    """Batches in the order of an Order, by any number n of workers of a MultiThreadedAugmenter, each of which makes every
    n-th batch.

    patches   makes the patches; None: as nnU-Net does, with `transforms`
    oversample  nnU-Net's share of samples with foreground, of a whole batch
    transforms  with patches: what nnU-Net does after augmentation, on one sample; None: nothing is left to do
    """

    def __init__(self, *given: Any, order: Order, patches: Patches | None, oversample: float, workers: int, **named: Any) -> None:
        super().__init__(*given, oversample_foreground_percent=oversample, **named)
        self.order, self.patches, self.oversample = order, patches, oversample
        self.workers, self.number_of_threads_in_multithreaded = workers, max(workers, 1)
        self._made = 0

    def generate_train_batch(self) -> dict[str, Any]:
        number = self.order.first + self._made * self.number_of_threads_in_multithreaded + self.thread_id
        self._made += 1
        if self.patches is None:
            with drawing(self.order.seed, self.order.name, number, tuple(self.order.places)):
                return super().generate_train_batch()  # type: ignore[no-any-return]
        return self._augmented(number, self.patches)

    def _augmented(self, number: int, patches: Patches) -> dict[str, Any]:
        keys, cuts, ids = [], [], []
        for place in self.order.places:
            position = number * self.order.total + place
            with drawing(self.order.seed, self.order.name, position):
                key, cut = self._chosen(place)
            keys.append(key)
            cuts.append(cut)
            ids.append(sample_id(key, draw=position + 1))
        epoch = number // self.order.batches
        images, targets = patches(cuts, ids, seed=self.order.seed, epoch=epoch)
        data, target = torch.from_numpy(images), [torch.from_numpy(t) for t in targets]
        if self.transforms is not None:
            draws = drawing(self.order.seed, "transforms", number, tuple(self.order.places))
            with torch.no_grad(), threadpool_limits(limits=1, user_api=None), draws:
                data, target = self.finished(self.transforms, data, target[0])
        return {"data": data, "target": target if len(target) > 1 else target[0], "keys": keys}

    def _chosen(self, place: int) -> tuple[str, Cut]:
        """A case and where its enlarged patch begins, as nnU-Net draws them."""
        key = str(np.random.choice(self.indices, p=self.sampling_probabilities))
        data, labels, previous, properties = self._data.load_case(key)
        start, _ = self.get_bbox(data.shape[1:], self.with_foreground(place), properties["class_locations"])
        return key, Cut(data, [labels] if previous is None else [labels, with_channel(previous)], start)

    def with_foreground(self, place: int, draws: Any = np.random) -> bool:
        """Whether a sample has to show foreground: by its place in the batch of all processes, or as it draws."""
        if self.get_do_oversample == self._probabilistic_oversampling:
            return bool(draws.uniform() < self.oversample)
        return not place < round(self.order.total * (1 - self.oversample))

    @staticmethod
    def finished(transforms: Any, data: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """A batch after what nnU-Net does with each sample, with the label maps of all levels."""
        made = [transforms(image=image, segmentation=labels) for image, labels in zip(data, target)]
        levels = [m["segmentation"] if isinstance(m["segmentation"], list) else [m["segmentation"]] for m in made]
        return torch.stack([m["image"] for m in made]), [torch.stack(list(level)) for level in zip(*levels)]


__all__ = ["Order", "SutureLoader", "drawing"]
