# SPDX-License-Identifier: Apache-2.0
"""suture: medical image preprocessing and augmentation in one pass, the same bits on every machine."""
from .functions import fits as _fits
from .functions import inference as _inference
from .functions import masks as _masks
from .functions import morphology as _morphology
from .functions import patches as _patches
from .functions import tiles as _tiles
from .pipeline.augment import Augment
from .pipeline.class_index import ClassIndex
from .arrays.digests import digest
from .errors import CompileError, Error
from .operations.value import value
from .operations.value_cpp import value_cpp
from .operations.templates import cast, per_channel, sampling
from .functions.fits import *  # noqa: F403
from .pipeline.identity import sample_id
from .functions.inference import *  # noqa: F403
from .functions.masks import *  # noqa: F403
from .functions.morphology import *  # noqa: F403
from .operations.operation import IMAGENET, STAIN_REFERENCE, ChannelStatistics, ColorMoments, StainReference, per_sample
from .operations.generated import *  # noqa: F403
from .operations.generated import __all__ as _operations
from .functions.patches import *  # noqa: F403
from .functions.tiles import *  # noqa: F403
from .pipeline.pipeline import Pipeline
from .pipeline.plan import Plan
from .pipeline.roles import boxes, labels, points
from . import recipes
from .contact_sheet import Sheet, show
from .recipes import nnunet_cut_out
from .pipeline.replay import replay
from .arrays.volume import Grid, Volume
from .version import __version__

__all__ = ["IMAGENET", "STAIN_REFERENCE", "Augment", "ChannelStatistics", "ClassIndex", "ColorMoments", "CompileError", "Error", "Grid",
           "Pipeline", "Plan", "Sheet", "StainReference", "Volume", "boxes", "cast", "digest", "labels", "nnunet_cut_out",
           "per_channel", "per_sample", "points", "recipes", "replay", "sample_id", "sampling", "show", "value", "value_cpp",
           *_operations, *_fits.__all__, *_inference.__all__, *_masks.__all__, *_morphology.__all__, *_patches.__all__,
           *_tiles.__all__]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    """Suggests the nearest name, or the name here for one of another library, when an attribute is missing."""
    import difflib

    from .operations.operation import elsewhere

    here = elsewhere(name)
    if name in ("demo", "feed", "lightning", "monai", "nnunet", "store", "torch"):
        way = f"Import it: import suture.{name}"
    elif here:
        way = f"Here it is {here}"
    else:
        near = difflib.get_close_matches(name, __all__, 3, 0.5)
        way = f"Nearest are {', '.join(near)}" if near else "docs/operations.md has all operations"
    raise AttributeError(f"suture: expected a name of the package, got {name!r}. {way}")
