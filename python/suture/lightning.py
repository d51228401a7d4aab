# SPDX-License-Identifier: Apache-2.0
"""This module brings suture to Lightning: a mixin augments the batches of training, and a callback keeps epoch and state.

    class Scans(suture.lightning.AugmentedData, LightningDataModule):
        def __init__(self):
            super().__init__()
            self.augment = suture.torch.Augment(train, seed=42)
        ...
    data = Scans()
    Trainer(callbacks=[suture.lightning.AugmentState(data.augment)]).fit(model, data)
"""
from __future__ import annotations

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

    It is a base class that stands beside and before LightningDataModule or LightningModule. Batches of validation, test and
    prediction are not augmented, nor are those of the check before training.

    Attributes
    ----------
    augment : suture.torch.Augment or None
        The pipeline of training; None leaves every batch alone.
    evaluated : bool
        Whether all other batches go through the same pipeline in evaluation mode, instead of being left alone.

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
        """Moves a batch as Lightning does, and Volumes too.

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
        """Augments the batch of a step while the trainer trains.

        Parameters
        ----------
        batch : Any
            The batch on the device.
        dataloader_idx : int
            Number of the loader.

        Returns
        -------
        Any
            The augmented batch; outside training as `evaluated` says.
        """
        batch = super().on_after_batch_transfer(batch, dataloader_idx)  # type: ignore[misc]
        if self.augment is None:
            return batch
        if self.trainer is not None and self.trainer.training:
            return self.augment(batch)
        return self.augment(batch, training=False) if self.evaluated else batch


class AugmentState(Callback):  # type: ignore[misc]
    """Gives an Augment the epoch and the ranks of the trainer, and keeps its state in checkpoints.

    The state is seed, epoch and step, so that a resumed run has identical bits.

    Parameters
    ----------
    augment : Augment
        The pipeline of training.

    Examples
    --------
    >>> aug = suture.torch.Augment(st.Pipeline(image=[st.random_crop(size=8)]), seed=42)
    >>> suture.lightning.AugmentState(aug).state_dict()
    {'seed': 42, 'epoch': 0, 'step': 0}
    """

    def __init__(self, augment: augment.Augment) -> None:
        super().__init__()
        self.augment = augment

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.augment.rank, self.augment.world = trainer.global_rank, trainer.world_size

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.augment.set_epoch(trainer.current_epoch)

    def state_dict(self) -> dict[str, int]:
        return self.augment.state_dict()

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        self.augment.load_state_dict(state_dict)


__all__ = ["AugmentState", "AugmentedData"]

check_calls_in(globals())
