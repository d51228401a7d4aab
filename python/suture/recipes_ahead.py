# SPDX-License-Identifier: Apache-2.0
"""This module runs the published recipes, and functions that users call beside them, on small arrays, so that
`suture build --recipes` compiles all modules that they need. Other sizes, spacings and probabilities need no other modules."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from . import recipes
from .arrays.batch import Items
from .backend import call, jit
from .functions import fits, inference, masks, morphology, patches, tiles
from .pipeline.class_index import Classes, indexes_of
from .pipeline.pipeline import Pipeline
from .pipeline.roles import labels
from .arrays.volume import Volume

IDS = ["case 1", "case 2"]
SMALL = dict(z=8, y=8, x=8)
SPACING = dict(z=1.0, y=1.0, x=1.0)


def _volumes(channels: int, dtype: str, extent: int = 24) -> tuple[list[Volume], list[Volume]]:
    """Returns two volumes with values everywhere, and label maps with two classes beside the background."""
    shape = (channels, extent, extent, extent)
    values = (np.arange(np.prod(shape), dtype=np.int64) * 37 % 401 - 100).reshape(shape).astype(dtype)
    labels_of = np.zeros(shape[1:], np.uint8)
    labels_of[8:16, 8:16, 8:16] = 1
    labels_of[10:14, 10:14, 10:14] = 2
    return [Volume(values, axes="zyx", spacing=SPACING) for _ in IDS], [Volume(labels_of, axes="zyx", spacing=SPACING) for _ in IDS]


def _starts(rule: Any, maps: list[Volume]) -> list[Any]:
    return [chosen.start for chosen in patches.select_patches(maps, rule, classes=3, ids=IDS, seed=1)]


def _ct() -> tuple[Pipeline, dict[str, Any]]:
    images, maps = _volumes(1, "int16")
    return Pipeline(image=recipes.ct_patches(SMALL), seg=labels()), {"image": images, "seg": maps}


def _nnunet(version: str) -> Callable[[], tuple[Pipeline, dict[str, Any]]]:
    def made() -> tuple[Pipeline, dict[str, Any]]:
        images, maps = _volumes(1, "float32")
        maps = [Volume(m.array.astype(np.int16), axes="zyx", spacing=SPACING) for m in maps]
        rule = patches.oversampled_patch(size=recipes.nnunet_shape(SMALL, SPACING)["enlarged"], probability=1 / 3)
        return (recipes.nnunet(patch=SMALL, spacing_mm=SPACING, version=version),
                {"image": images, "seg": maps, "starts": _starts(rule, maps)})
    return made


def _brats() -> tuple[Pipeline, dict[str, Any]]:
    images, maps = _volumes(4, "float32")
    chain = recipes.monai_brats(SMALL)
    return Pipeline(image=chain, seg=labels(convert=recipes.BRATS_REGIONS_1_2_4)), {"image": images, "seg": maps}


def _preprocess(chain: Callable[[], Any]) -> Callable[[], tuple[Pipeline, dict[str, Any]]]:
    def made() -> tuple[Pipeline, dict[str, Any]]:
        images, maps = _volumes(1, "int16")
        return Pipeline(image=chain(), seg=labels()), {"image": images, "seg": maps}
    return made


def _training(chain: Callable[[], Any], rule: Any) -> Callable[[], tuple[Pipeline, dict[str, Any]]]:
    def made() -> tuple[Pipeline, dict[str, Any]]:
        images, maps = _volumes(1, "float32", 96)  # the recipe of the spleen crops patches of this size
        chosen = patches.select_patches(maps, rule, images=images, ids=IDS, seed=1)
        return (Pipeline(image=chain(), seg=labels()),
                {"image": images, "seg": maps, "starts": [c.start for c in chosen]})
    return made


def _tiles() -> tuple[Pipeline, dict[str, Any]]:
    pixels = (np.arange(2 * 16 * 16 * 3) * 29 % 256).astype(np.uint8).reshape(2, 16, 16, 3)
    return Pipeline(image=recipes.wsi_tiles(), layout="NHWC"), {"image": pixels}


RECIPES: dict[str, Callable[[], tuple[Pipeline, dict[str, Any]]]] = {
    "ct_patches": _ct, "nnunet 2.8": _nnunet("2.8"), "nnunet 2.3": _nnunet("2.3"), "monai_brats": _brats,
    "monai_spleen_preprocess": _preprocess(recipes.monai_spleen_preprocess),
    "monai_spleen_training": _training(recipes.monai_spleen_training, patches.pos_neg_patch(size=96)),
    "monai_colon_preprocess": _preprocess(recipes.monai_colon_preprocess),
    "monai_colon_training": _training(recipes.monai_colon_training, patches.pos_neg_patch(size=SMALL)),
    "wsi_tiles": _tiles,
}


def run_small(device: str = "cpu") -> Iterator[tuple[str, Any]]:
    """Yields the name of each recipe and its output for a small batch. On "cuda" recipes are only compiled, and outputs are None."""
    for name, make in RECIPES.items():
        pipeline, batch = make()
        if device == "cpu":
            yield name, pipeline({**batch, "id": IDS}, seed=1)
            continue
        flat = name == "wsi_tiles"
        types = {k: str(v.dtype if flat else v[0].array.dtype) for k, v in batch.items() if k in ("image", "seg")}
        pipeline.build(device=device, order="yx" if flat else "zyx", **types)
        yield name, None


# These functions depend on no element type. One module, that of abi/plain.hpp, has all of them.

_SLIDE = tiles.SlideLayout((tiles.SlideLevel(64, 96),), .5)
_TISSUE = np.ones((16, 24), np.uint8)

PLAIN: dict[str, Callable[[], Any]] = {
    "crop_foreground": lambda: masks.crop_foreground(masks.BoundingBox(False, (1, 1, 1), (4, 4, 4)), (6, 7, 8)),
    "dense_patch_grid": lambda: patches.dense_patch_grid((9, 9, 9), 4),
    "grid_tiles": lambda: tiles.grid_tiles(_SLIDE, _TISSUE, size=16, mpp=.5),
    "nnunet_shape": lambda: recipes.nnunet_shape(SMALL, dict(z=1, y=1, x=1)),
    "random_tiles": lambda: tiles.random_tiles(_SLIDE, _TISSUE, slide_id="slide", count=2, size=16, mpp=.5),
    "sliding_window": lambda: inference.sliding_window(lambda window: window, np.zeros((1, 9, 9, 9), np.float32), size=4),
    "sliding_window_grid": lambda: patches.sliding_window_grid((9, 9, 9), 4),
}


def _functions() -> dict[str, Callable[[], Any]]:
    """Returns calls by name and element type, for the usual types of scans, tiles and label maps."""
    made: dict[str, Callable[[], Any]] = {}

    def add(function: Callable[..., Any], dtype: str, *given: Any, **settings: Any) -> None:
        made[f"{function.__name__} {dtype}"] = lambda: function(*given, **settings)

    for dtype in ("uint8", "int16", "float32"):
        volume = (np.arange(9 * 9 * 9, dtype=np.int64) * 37 % 101).reshape(1, 9, 9, 9).astype(dtype)
        grid = patches.PatchGrid((9, 9, 9), (9, 9, 9), ((0,), (0,), (0,)))
        for fit in (fits.fit_moments, fits.fit_range):
            add(fit, dtype, [volume])
        add(fits.fit_percentiles, dtype, [volume], q=(1, 99))
        add(masks.bounding_box, dtype, [volume])
        add(patches.reassemble, dtype, grid, volume[None])
        add(patches.average, dtype, volume[None], np.ones((1, 9, 9, 9), np.float32), outside=0)
        if dtype != "uint8":
            add(masks.body_mask, dtype, [volume])
    for dtype in ("uint8", "int16"):
        maps = _volumes(1, "float32")[1]
        labels_of = [Volume(m.array.astype(dtype), axes="zyx") for m in maps]
        for one in (masks.label_components, masks.keep_largest_component, masks.fill_holes, morphology.binary_erosion, morphology.binary_dilation,
                    morphology.binary_opening, morphology.binary_closing):
            add(one, dtype, labels_of)
        add(masks.remove_small_components, dtype, labels_of, least=2)
        add(patches.count_classes, dtype, labels_of, classes=3)
        for rule in (patches.class_balanced_patch(size=8), patches.oversampled_patch(size=8)):
            made[f"select_patches {type(rule).__name__} {dtype}"] = partial(patches.select_patches, labels_of, rule, classes=3, ids=IDS)
        made[f"select_patches pos_neg_patch {dtype}"] = partial(patches.select_patches, labels_of, patches.pos_neg_patch(size=8), ids=IDS)
        made[f"crop_by_class {dtype}"] = partial(indexes_of, Items(labels_of, "maps", None, None), Classes(3))
    tile = (np.arange(16 * 16 * 3) * 29 % 256).astype(np.uint8).reshape(16, 16, 3)
    add(masks.tissue_mask, "uint8", [tile], layout="HWC")
    add(fits.fit_otsu, "uint8", [tile[..., :1]], layout="HWC")
    add(fits.fit_macenko, "uint8", [tile], layout="HWC")
    add(fits.fit_color_moments, "uint8", [tile], layout="HWC")
    return made


FUNCTIONS = _functions()


def run_functions(device: str = "cpu") -> Iterator[tuple[str, Any]]:
    """Yields the name of each call and its result on the CPU. On "cuda" its modules are compiled for the GPU too.

    Parameters
    ----------
    device : str
        "cpu" or "cuda". A call runs on the CPU in both cases, which shows the modules that it loads.
    """
    for name, function in {**PLAIN, **FUNCTIONS}.items():
        with jit.loads() as seen:
            made = function()
        if device != "cpu":
            for source in filter(call.runs_where_arrays_lie, seen):
                jit.build(call.device_source(source))
        yield name, made
