# SPDX-License-Identifier: Apache-2.0
"""suture has trainers for nnU-Net v2 that augment with it and read only what a patch needs.

    nnUNet_extTrainer=$(python -m suture.nnunet) nnUNetv2_train DATASET CONFIGURATION FOLD -tr nnUNetTrainerSuture

nnU-Net 2.8 and newer look into that folder. Before 2.8 there is `python -m suture.nnunet train` in place of nnUNetv2_train,
and `python -m suture.nnunet predict` in place of nnUNetv2_predict, with the same arguments; newer ones may be called so too.
"""
from __future__ import annotations

from pathlib import Path

TRAINERS = ("nnUNetTrainerSuture", "nnUNetTrainerSutureDeterministic", "nnUNetTrainerSutureFeed",
            "nnUNetTrainerSutureEfficient")


def trainer_folder() -> Path:
    """Returns the folder that the environment variable nnUNet_extTrainer has to name.

    Returns
    -------
    Path
        The folder of the trainers for nnU-Net 2.8 and newer.

    Examples
    --------
    >>> suture.nnunet.trainer_folder().name
    'external'
    """
    return Path(__file__).resolve().parent / "external"


__all__ = ["TRAINERS", "trainer_folder"]
