# SPDX-License-Identifier: Apache-2.0
"""suture: medical image preprocessing and augmentation in one pass, the same bits on every machine."""
from . import fits as _fits
from . import inference as _inference
from . import masks as _masks
from . import patches as _patches
from .augment import Augment
from .digests import digest
from .errors import CompileError, Error
from .expressions import value
from .own_cpp import value_cpp
from .extra_operations import cast, per_channel, sampling
from .fits import *  # noqa: F403
from .identity import sample_id
from .inference import *  # noqa: F403
from .masks import *  # noqa: F403
from .operation import IMAGENET, STAIN_REFERENCE, ChannelStatistics, ColorMoments, StainReference, per_sample
from .operations import *  # noqa: F403
from .operations import __all__ as _operations
from .patches import *  # noqa: F403
from .pipeline import Pipeline, Plan, boxes, labels, points
from . import recipes
from .recipes import nnunet_cut_out
from .replay import replay
from .volume import Grid, Volume

__version__ = "0.1.0"
__all__ = ["IMAGENET", "Augment", "STAIN_REFERENCE", "ChannelStatistics", "ColorMoments", "CompileError", "Error", "Grid", "Pipeline",
           "Plan", "StainReference", "Volume", "boxes", "cast", "digest", "labels", "nnunet_cut_out", "per_channel", "per_sample", "points", "recipes", "replay",
           "sample_id", "sampling", "value", "value_cpp", *_operations, *_fits.__all__, *_masks.__all__, *_patches.__all__, *_inference.__all__]
