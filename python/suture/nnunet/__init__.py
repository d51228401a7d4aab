# SPDX-License-Identifier: Apache-2.0
"""Trainers for nnU-Net v2 augment by suture and read only the voxels that a patch needs.

    nnUNet_extTrainer=$(python -m suture.nnunet) nnUNetv2_train DATASET CONFIGURATION FOLD -tr nnUNetTrainerSuture

nnU-Net 2.8 and newer look into that folder. With any version, `python -m suture.nnunet train` replaces nnUNetv2_train, and
`python -m suture.nnunet predict` replaces nnUNetv2_predict, with the same arguments.
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
