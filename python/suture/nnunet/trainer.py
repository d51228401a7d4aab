# SPDX-License-Identifier: Apache-2.0
"""These trainers for nnU-Net 2.7 and 2.8 run its default augmentation by suture and read only the voxels that patches need.
Everything else is nnU-Net's."""
from __future__ import annotations

import os
from typing import Any

import torch
from batchgenerators.dataloading.multi_threaded_augmenter import MultiThreadedAugmenter
from batchgenerators.dataloading.single_threaded_augmenter import SingleThreadedAugmenter
from batchgeneratorsv2.transforms.spatial.mirroring import MirrorTransform
from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
from batchgeneratorsv2.transforms.utils.deep_supervision_downsampling import DownsampleSegForDSTransform
from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTansform
from nnunetv2.training.dataloading.nnunet_dataset import infer_dataset_class
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from nnunetv2.utilities.default_n_proc_DA import get_allowed_n_proc_DA
from torch import distributed

from ..errors import Error
from ..store import open as open_store
from .feed import PatchFeed
from .loader import Order, SutureLoader
from .patches import Patches


class nnUNetTrainerSuture(nnUNetTrainer):  # type: ignore[misc]
    """A trainer whose batches do not depend on the number of workers or GPUs, or on interruptions, but on `seed`.

    Attributes
    ----------
    seed : int
        Seed of all draws; a subclass may change it.

    Examples
    --------
    >>> class OtherSeed(suture.nnunet.trainer.nnUNetTrainerSuture):
    ...     seed = 7
    """

    seed = 42
    dataset_class: Any

    def _set_batch_size_and_oversample(self) -> None:
        self.oversample_of_batch = self.oversample_foreground_percent  # of the global batch; nnU-Net then sets that of this rank
        super()._set_batch_size_and_oversample()

    def get_dataloaders(self) -> tuple[Any, Any]:
        """Makes the loaders of training and validation, in this process or with workers."""
        if self.dataset_class is None:
            self.dataset_class = infer_dataset_class(self.preprocessed_dataset_folder)
        configuration, labels = self.configuration_manager, self.label_manager
        patch = configuration.patch_size
        scales = self._get_deep_supervision_scales()
        rotation, dummy_2d, enlarged, mirrored = self.configure_rotation_dummyDA_mirroring_and_inital_patch_size()
        roles = dict(is_cascaded=self.is_cascaded, foreground_labels=labels.foreground_labels,
                     regions=labels.foreground_regions if labels.has_regions else None, ignore_label=labels.ignore_label)
        stock = self.get_training_transforms(patch, rotation, scales, mirrored, dummy_2d,
                                             use_mask_for_norm=configuration.use_mask_for_norm, **roles)
        rest = _after_augmentation(stock)
        fused = all(type(t) in (RemoveLabelTansform, DownsampleSegForDSTransform) for t in rest)
        patches = Patches(patch, levels=scales) if fused else Patches(patch, outside=-1)
        if list(enlarged) != list(patches.enlarged[-len(patch):]):
            raise Error(f"suture: nnunet: this nnU-Net enlarges patches of {list(patch)} to {list(enlarged)}, the augmentation "
                        f"of 2.7 and 2.8 to {list(patches.enlarged)}: train with nnUNetTrainer")
        patches.build()
        training, validation = self.get_tr_and_val_datasets()
        workers = get_allowed_n_proc_DA()
        validated = self.get_validation_transforms(scales, **roles)
        return self._loaders(self._loader(training, enlarged, patches, None if fused else ComposeTransforms(rest), workers),
                             self._loader(validation, patch, None, validated, (workers + 1) // 2), patches, fused)

    def _loaders(self, training: SutureLoader, validation: SutureLoader, patches: Patches, fused: bool) -> tuple[Any, Any]:
        """Returns the loaders of training and validation that nnU-Net iterates.

        patches   makes the training patches
        fused     whether the label maps of `patches` are final, so that no transform of nnU-Net follows
        """
        return self._in_workers(training), self._in_workers(validation)

    def _loader(self, data: Any, cut: Any, patches: Patches | None, transforms: Any, workers: int) -> SutureLoader:
        sizes = self._samples_of_ranks()
        low = sum(sizes[:self.local_rank])
        batches = self.num_iterations_per_epoch if patches else self.num_val_iterations_per_epoch
        order = Order(self.seed, batches, self.current_epoch * batches, range(low, low + self.batch_size), sum(sizes),
                      "training" if patches else "validation")
        oversample = self.oversample_of_batch if patches else self.oversample_foreground_percent
        return SutureLoader(data, self.batch_size, cut, self.configuration_manager.patch_size, self.label_manager, order=order,
                            patches=patches, oversample=oversample, workers=workers, transforms=transforms,
                            probabilistic_oversampling=self.probabilistic_oversampling)

    def _in_workers(self, loader: SutureLoader) -> Any:
        workers = loader.workers
        if workers == 0:
            return SingleThreadedAugmenter(loader, None)
        # MultiThreadedAugmenter reads the queues of its workers in turn, so that batches come in order.
        return MultiThreadedAugmenter(loader, None, workers, num_cached_per_queue=2, seeds=None,
                                      pin_memory=self.device.type == "cuda", wait_time=.002)

    def _samples_of_ranks(self) -> list[int]:
        if not self.is_ddp:
            return [self.batch_size]
        world, whole = distributed.get_world_size(), self.configuration_manager.batch_size
        return [whole // world + (1 if rank < whole % world else 0) for rank in range(world)]


class nnUNetTrainerSutureFeed(nnUNetTrainerSuture):
    """A trainer with the same batches, made by threads of its process in place of worker processes, and on the GPU if it trains there.

    Attributes
    ----------
    threads : int or None
        Threads that make batches; None: as many as nnU-Net's workers for augmentation, at most as many as usable processors.
    store : path, Cohort or None
        A store with the preprocessed cases; None: nnU-Net's preprocessed files.

    Examples
    --------
    >>> class FromStore(suture.nnunet.trainer.nnUNetTrainerSutureFeed):
    ...     store = "/data/preprocessed.zarr"
    """

    threads: int | None = None
    store: Any = None

    def _loaders(self, training: SutureLoader, validation: SutureLoader, patches: Patches, fused: bool) -> tuple[Any, Any]:
        store = open_store(self.store) if isinstance(self.store, (str, os.PathLike)) else self.store
        threads = self.threads or max(1, min(training.workers, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 8))
        if self.device.type == "cuda":
            patches.build("cuda")
        feeds = (PatchFeed(training, patches, device=self.device, threads=threads, training=True, store=store, transforms=training.transforms),
                 PatchFeed(validation, patches, device=self.device, threads=max(1, threads // 2), training=False, store=store,
                           transforms=None if fused else validation.transforms))
        self.print_to_log_file(f"suture: {threads} threads of this process make batches on {self.device.type}, from "
                               + ("nnU-Net's preprocessed files" if self.store is None else str(self.store)))
        return feeds

    def run_training(self) -> None:
        try:
            super().run_training()
        finally:
            self._close()

    def on_train_epoch_end(self, train_outputs: Any) -> None:
        super().on_train_epoch_end(train_outputs)
        recent = self.dataloader_train.statistics().steps[-self.num_iterations_per_epoch:]
        waited, whole = sum(s.wait for s in recent), sum(s.between for s in recent)
        self.print_to_log_file(f"suture: waited for batches {waited:.1f} s of {whole:.1f} s")

    def on_train_end(self) -> None:
        super().on_train_end()
        self._close()

    def _close(self) -> None:
        for feed in (self.dataloader_train, self.dataloader_val):
            if isinstance(feed, PatchFeed):
                feed.close()


class nnUNetTrainerSutureDeterministic(nnUNetTrainerSuture):
    """A trainer with seeded initial weights and torch's deterministic operations, where there are any.

    Trainings on equal machines end with the same weights. Everything else is as in nnUNetTrainerSuture.

    Examples
    --------
    >>> issubclass(suture.nnunet.trainer.nnUNetTrainerSutureDeterministic, suture.nnunet.trainer.nnUNetTrainerSuture)
    True
    """

    def initialize(self) -> None:
        torch.manual_seed(self.seed)
        super().initialize()

    def on_train_start(self) -> None:
        super().on_train_start()
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
        torch.use_deterministic_algorithms(True, warn_only=True)


def _after_augmentation(transforms: Any) -> list[Any]:
    """Returns the training transforms after nnU-Net's augmentation, which ends with mirroring."""
    each = list(transforms.transforms)
    last = [i for i, t in enumerate(each) if isinstance(t, MirrorTransform)]
    if not last:
        raise Error("suture: nnunet: the transforms of this trainer do not mirror, so they are not nnU-Net's default augmentation: "
                    "train with nnUNetTrainer")
    return each[last[-1] + 1:]


__all__ = ["nnUNetTrainerSuture", "nnUNetTrainerSutureDeterministic", "nnUNetTrainerSutureFeed"]
