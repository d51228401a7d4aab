# SPDX-License-Identifier: Apache-2.0
"""What nnU-Net finds in the folder that nnUNet_extTrainer names."""
from suture.nnunet.trainer import nnUNetTrainerSuture, nnUNetTrainerSutureDeterministic

__all__ = ["nnUNetTrainerSuture", "nnUNetTrainerSutureDeterministic"]
