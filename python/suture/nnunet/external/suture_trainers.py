# SPDX-License-Identifier: Apache-2.0
"""nnU-Net finds these trainers in the folder that nnUNet_extTrainer names."""
from suture.nnunet.efficient import nnUNetTrainerSutureEfficient
from suture.nnunet.trainer import nnUNetTrainerSuture, nnUNetTrainerSutureDeterministic, nnUNetTrainerSutureFeed

__all__ = ["nnUNetTrainerSuture", "nnUNetTrainerSutureDeterministic", "nnUNetTrainerSutureEfficient", "nnUNetTrainerSutureFeed"]
