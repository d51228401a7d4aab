# SPDX-License-Identifier: Apache-2.0
"""This module makes cases of slides: a pyramid with a tissue mask, stains and a label map."""
from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from . import arrays, ome
from .make_maps import write_maps
from .pyramid import BLOCK, Level, Pyramid, grid_of, level_for, pixels, pyramid
from .settings import LABEL_COUNTS, VERSION, Settings
from .slide_labels import label_map, of_level, per_cell
from .stains import fit_stains
from .task import Task

_MASK_UM = 8.0  # micrometers per pixel of tissue masks
_LEAST_CHROMA = 8  # least chroma of tissue: Otsu's threshold is lower in slides without tissue
LABELS = "labels"  # name of the label map in the group of label maps


def tissue_mask(slide: Pyramid, what: str) -> tuple[np.ndarray, Grid]:
    """Returns the tissue mask at about 8 micrometers per pixel: where the difference of the largest and the smallest of red, green and
    blue is above Otsu's threshold and above _LEAST_CHROMA."""
    level = level_for(slide, max(_MASK_UM, slide.mpp[1]), what)
    chroma = np.empty(level.extents, np.uint8)
    for y in range(0, level.extents[0], BLOCK):
        for x in range(0, level.extents[1], BLOCK):
            rgb = pixels(slide, level, (y, x), (min(y + BLOCK, level.extents[0]), min(x + BLOCK, level.extents[1])))
            chroma[y:y + BLOCK, x:x + BLOCK] = rgb.max(axis=2) - rgb.min(axis=2)
    counts = np.bincount(chroma.ravel(), minlength=256)
    return (chroma > max(_otsu(counts), _LEAST_CHROMA)).astype(np.uint8), grid_of(slide, level)


def _otsu(counts: np.ndarray) -> int:
    """Returns the level that maximizes the variance between the two classes of a histogram (N. Otsu, IEEE Trans. SMC 9, 1979)."""
    below, moment = np.cumsum(counts), np.cumsum(counts * np.arange(len(counts)))
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (moment[-1] * below - moment * below[-1]).astype(np.float64) ** 2 / (below * above).astype(np.float64)
    return int(np.argmax(np.nan_to_num(between, nan=-1, posinf=-1)))


def write_labels(folder: Path, path: str, slide: Pyramid, levels: Sequence[Level], settings: Settings, what: str,
                 threads: int | None) -> dict[str, Any]:
    """Writes the label map of a slide for each of its levels, and the number of pixels of each label in every cell. Returns their
    entries in the attributes of the case."""
    given, scale = label_map(path, slide.extents[0], what)
    group, grids = folder / "labels" / LABELS, [grid_of(slide, level) for level in levels]
    for k, level in enumerate(levels):
        chunk = arrays.chunks_of(level.extents, settings.tile, 2)
        shard = [c * min(8, math.ceil(n / c)) for n, c in zip(level.extents, chunk)]

        def block(low: tuple[int, ...], high: tuple[int, ...], level: Level = level) -> np.ndarray:
            return of_level(given, level.scale / scale, low, high)

        arrays.write_blocks(group / str(k), level.extents, "uint8", block, names=["y", "x"], chunk=chunk, shard=shard,
                            profile=settings.profile, threads=threads)
    ome.write_group(group, {"ome": {"version": ome.VERSION, "multiscales": [ome.multiscales(LABELS, grids, "yx", channels=False,
                                                                                          unit="micrometer")],
                                    "image-label": {"source": {"image": "../../"}}}})
    side = max(scale, _MASK_UM / slide.mpp[1])  # pixels of level 0 along a cell
    counts = per_cell(given, side / scale)
    height, width = next(iter(counts.values())).shape
    chunk = (1, *arrays.chunks_of((height, width), settings.tile, 2))

    def counted(low: tuple[int, ...], _: tuple[int, ...]) -> np.ndarray | None:
        return counts[low[0]][None] if low[0] in counts else None

    arrays.write_blocks(folder / LABEL_COUNTS, (max(counts) + 1, height, width), "int32", counted, names=["label", "y", "x"], chunk=chunk,
                        shard=[1, *(math.ceil(n / c) * c for n, c in zip((height, width), chunk[1:]))], profile=settings.profile, threads=threads)
    cells = grid_of(slide, Level(0, side, (height, width), side, 0.0))
    return {"labels": {"path": f"labels/{LABELS}", "grid": grids[0].to_json(), "counts": {"path": LABEL_COUNTS, "grid": cells.to_json()}},
            "classes": {str(label): int(each.sum(dtype=np.int64)) for label, each in counts.items()}}


def write_slide(folder: Path, task: Task, settings: Settings, source: dict[str, Any], threads: int | None) -> None:
    """Writes a slide into the folder of a case."""
    with pyramid(task.files[0], task.what, settings.assume_mpp) as slide:
        levels = ([level_for(slide, mpp, task.what) for mpp in settings.mpp] if settings.mpp
                  else [Level(k, 1.0, e, s, slide.mpp[1] * s) for k, (e, s) in enumerate(zip(slide.extents, slide.scales))])
        for k, level in enumerate(levels):
            shape = (3, *level.extents)
            chunk = arrays.chunks_of(shape, settings.tile, 2)
            shard = [chunk[0], *(c * min(8, math.ceil(n / c)) for n, c in zip(level.extents, chunk[1:]))]

            def block(low: tuple[int, ...], high: tuple[int, ...], level: Level = level) -> np.ndarray:
                return np.moveaxis(pixels(slide, level, low[1:], high[1:]), -1, 0)

            arrays.write_blocks(folder / str(k), shape, "uint8", block, names=["c", "y", "x"], chunk=chunk, shard=shard,
                                profile=settings.profile,
                                threads=threads)
        mask, coarse = tissue_mask(slide, task.what)
        stains = fit_stains(slide, mask, task.what)
        grids, mpps = [grid_of(slide, level) for level in levels], [level.mpp for level in levels]
        known = {} if task.labels is None else write_labels(folder, task.labels, slide, levels, settings, task.what, threads)
    write_maps(folder, {"tissue": (mask, coarse)}, settings, threads, axes="yx", chunk=settings.tile, unit="micrometer",
               beside=[LABELS] if known else [])
    own = {
        "store": VERSION, "kind": "slide", "source": {**source, "dtype": "uint8"}, "grid": grids[0].to_json(), "mpp": mpps,
        "levels": [grid.to_json() for grid in grids], "mask": {"path": "labels/tissue", "grid": coarse.to_json()},
        "fingerprint": {"shape": [3, *levels[0].extents], "mpp": mpps, "tissue": float(np.count_nonzero(mask) / mask.size),
                        "stains": stains.to_json()},
        **known,
    }
    ome.write_group(folder, {"ome": {"version": ome.VERSION, "multiscales": [ome.multiscales(task.name, grids, "yx", channels=True,
                                                                                           unit="micrometer")]}, "suture": own})
