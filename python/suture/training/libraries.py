# SPDX-License-Identifier: Apache-2.0
"""This module imports PyTorch and the parts of MONAI that a training uses; if one is missing, the error says how to install
it."""
from __future__ import annotations

from ..errors import Error

try:
    import torch
    from monai.losses import DiceCELoss
    from monai.networks.nets import UNet
except ImportError as problem:
    raise Error(f"suture: train: {str(problem.name).partition('.')[0]} is not installed: pip install torch monai nibabel") from None

__all__ = ["DiceCELoss", "UNet", "torch"]
