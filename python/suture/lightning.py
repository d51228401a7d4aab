# SPDX-License-Identifier: Apache-2.0
"""This module has the parts of suture for Lightning: a mixin that augments training batches, and a callback for epoch and state.

    class Scans(suture.lightning.AugmentedData, LightningDataModule):
        def __init__(self):
            super().__init__()
            self.augment = suture.torch.Augment(train, seed=42)
        ...
    data = Scans()
    Trainer(callbacks=[suture.lightning.AugmentState(data.augment)]).fit(model, data)
"""
from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .arguments import check_calls_in
from .pipeline import augment
from .torch import move

if TYPE_CHECKING:
    from lightning.pytorch import Callback
elif "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback


class AugmentedData:
    """Augments the batches of training on the device that they were moved to.

    It is a mixin, listed before LightningDataModule or LightningModule. Batches of validation, test and prediction, and those of
    the sanity check, are not augmented.

    Attributes
    ----------
    augment : suture.torch.Augment or None
        Augments training batches; None changes no batch.
    evaluated : bool
        Whether the pipeline runs on all other batches in evaluation mode; otherwise they are unchanged.

    Examples
    --------
    >>> class Scans(suture.lightning.AugmentedData):     # and LightningDataModule
    ...     def __init__(self):
    ...         self.augment = suture.torch.Augment(st.Pipeline(image=[st.random_crop(size=8)]), seed=42)
    >>> Scans().augment.seed
    42
    """

    augment: augment.Augment | None = None
    evaluated: bool = False
    trainer: Any

    def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
        """Moves a batch as Lightning does, with its Volumes.

        Parameters
        ----------
        batch : Any
            The batch.
        device : torch.device
            The device of the trainer.
        dataloader_idx : int
            Number of the loader.

        Returns
        -------
        Any
            The batch on the device.
        """
        given = move(batch, device) if isinstance(batch, Mapping) else batch
        return super().transfer_batch_to_device(given, device, dataloader_idx)  # type: ignore[misc]

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Augments a batch in training.

        Parameters
        ----------
        batch : Any
            The batch on the device.
        dataloader_idx : int
            Number of the loader.

        Returns
        -------
        Any
            The augmented batch; outside training, the batch as `evaluated` says.
        """
        batch = super().on_after_batch_transfer(batch, dataloader_idx)  # type: ignore[misc]
        if self.augment is None:
            return batch
        if self.trainer is not None and self.trainer.training:
            return self.augment(batch)
        return self.augment(batch, training=False) if self.evaluated else batch


class AugmentState(Callback):  # type: ignore[misc]
    """Sets the epoch, rank and world of an Augment from the trainer, and saves its state in checkpoints.

    The state holds seed, epoch and step, so that the batches of a resumed run are bit-identical.

    Parameters
    ----------
    augment : Augment
        The pipeline of training.

    Examples
    --------
    >>> aug = suture.torch.Augment(st.Pipeline(image=[st.random_crop(size=8)]), seed=42)
    >>> suture.lightning.AugmentState(aug).state_dict()
    {'seed': 42, 'epoch': 0, 'step': 0, 'batch': 0}
    """

    def __init__(self, augment: augment.Augment) -> None:
        super().__init__()
        self.augment = augment

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.augment.rank, self.augment.world = trainer.global_rank, trainer.world_size
        self.augment._process = os.getpid()  # a rank counts its steps, also one that was spawned

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.augment.set_epoch(trainer.current_epoch)

    def state_dict(self) -> dict[str, int]:
        return self.augment.state_dict()

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        self.augment.load_state_dict(state_dict)


__all__ = ["AugmentState", "AugmentedData"]

check_calls_in(globals())
