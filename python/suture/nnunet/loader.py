# SPDX-License-Identifier: Apache-2.0
"""This data loader of nnU-Net chooses the samples of a batch by the number of the batch, whichever worker makes it."""
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
    """The settings that determine the samples of a process and their draws.

    Attributes
    ----------
    seed : int
        Seed of the run.
    batches : int
        Batches of an epoch.
    first : int
        Number of the first batch: those of finished epochs come before it.
    places : sequence of int
        Positions of the samples of this process in the global batch.
    total : int
        Samples in the global batch, of all processes.
    name : str
        Name on which draws depend, so that training and validation differ.

    Examples
    --------
    >>> suture.nnunet.loader.Order(seed=42, batches=250, first=0, places=range(2), total=2, name="training").total
    2
    """

    seed: int
    batches: int
    first: int
    places: Sequence[int]
    total: int
    name: str


def seed_of(*key: Any) -> int:
    """Returns a seed for the generators of NumPy and torch: a hash of a key."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:4], "little")


@contextlib.contextmanager
def drawing(*key: Any) -> Iterator[None]:
    """Seeds the global generators of NumPy and torch, which nnU-Net draws from, by a key, and restores them at the end.

    Parameters
    ----------
    *key : Any
        Values whose repr is the same in every process.

    Yields
    ------
    None
        The body draws from the seeded generators.

    Examples
    --------
    >>> with suture.nnunet.loader.drawing(42, "case 17"):
    ...     first = np.random.random()
    >>> with suture.nnunet.loader.drawing(42, "case 17"):
    ...     np.random.random() == first
    True
    """
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
    """Loads batches as an Order says, with any number n of workers, each of which makes every n-th batch.

    The workers are those of a MultiThreadedAugmenter.

    Parameters
    ----------
    *given, **named
        As nnUNetDataLoader has them.
    order : Order
        The order of the batches.
    patches : Patches or None
        Makes and augments the patches, on which `transforms` then run, those of nnU-Net that follow its augmentation. None: nnU-Net makes
        the patches, and `transforms` are all of its transforms.
    oversample : float
        Share of samples with foreground in a batch of all processes.
    workers : int
        Number of workers; 0 makes batches in this process.

    Examples
    --------
    >>> loader = suture.nnunet.trainer.nnUNetTrainerSuture(plans, "3d_fullres", 0, dataset).get_dataloaders()  # doctest: +SKIP
    """

    def __init__(self, *given: Any, order: Order, patches: Patches | None, oversample: float, workers: int, **named: Any) -> None:
        super().__init__(*given, oversample_foreground_percent=oversample, **named)
        self.order, self.patches, self.oversample = order, patches, oversample
        self.workers, self.number_of_threads_in_multithreaded = workers, max(workers, 1)
        self._made = 0

    def generate_train_batch(self) -> dict[str, Any]:
        """Makes the next batch of this worker."""
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
        """Returns the name of a case and its enlarged patch, as nnU-Net draws them."""
        key = str(np.random.choice(self.indices, p=self.sampling_probabilities))
        data, labels, previous, properties = self._data.load_case(key)
        start, _ = self.get_bbox(data.shape[1:], self.with_foreground(place), properties["class_locations"])
        return key, Cut(data, [labels] if previous is None else [labels, with_channel(previous)], start)

    def with_foreground(self, place: int, draws: Any = np.random) -> bool:
        """Tests whether a patch has to be about foreground: by its position in the global batch, or by a draw.

        Parameters
        ----------
        place : int
            Position of the sample in the global batch.
        draws : generator
            Generator of NumPy to draw from.

        Returns
        -------
        bool
            Whether the patch is about foreground.
        """
        if self.get_do_oversample == self._probabilistic_oversampling:
            return bool(draws.uniform() < self.oversample)
        return not place < round(self.order.total * (1 - self.oversample))

    @staticmethod
    def finished(transforms: Any, data: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Applies the transforms of nnU-Net to each sample of a batch.

        Parameters
        ----------
        transforms : callable
            Transforms of one sample.
        data, target : torch.Tensor
            Images and label maps of the batch.

        Returns
        -------
        data : torch.Tensor
            The images.
        target : list of torch.Tensor
            The label maps of all levels.
        """
        made = [transforms(image=image, segmentation=labels) for image, labels in zip(data, target)]
        levels = [m["segmentation"] if isinstance(m["segmentation"], list) else [m["segmentation"]] for m in made]
        return torch.stack([m["image"] for m in made]), [torch.stack(list(level)) for level in zip(*levels)]


__all__ = ["Order", "SutureLoader", "drawing"]
