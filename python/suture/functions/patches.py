# SPDX-License-Identifier: Apache-2.0
"""These functions choose patches by class or on grids, and merge patches to volumes."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.batch import Items, output_bound
from ..arrays.dlpack import array_of, check_dense, dense, stream_of
from ..arrays.memory import empty_like_library
from ..backend.call import IMAGES, call_function, element_type, executor_of, function_source
from ..backend.plain import call_plain
from ..arguments import check_calls_in
from ..errors import Error
from ..operations.crop_by_class import crop_by_class
from ..pipeline.identity import check_draws, ids_of
from .axes import shares_zyx, voxels_zyx, whole_numbers

MAPS = ("int8", "uint8", "int16", "uint16", "int32", "bool")  # labels have at most 32 bits
WEIGHTS = ("uint8", "uint16")
STATUS = ("chosen", "class_absent", "anywhere", "empty")  # suture::patch_status
_CHOICE = np.dtype([("start", np.int64, 3), ("voxel", np.int64), ("of_class", np.int32), ("status", np.int32)])


@dataclass(frozen=True)
class Choice:
    """Start of a patch that select_patches drew.

    Attributes
    ----------
    start : (int, int, int)
        First voxel of the patch along (z, y, x).
    voxel : int
        Index in memory order (z slowest) of the voxel that the patch is about; -1 for none.
    of_class : int
        Class of that voxel; -1 for none.
    status : {"chosen", "class_absent", "anywhere", "empty"}
        chosen: about a voxel; class_absent: about a voxel, but a class with a ratio has none; anywhere: by probability or flag;
        empty: no class has a voxel.

    Examples
    --------
    >>> st.Choice(start=(6, 0, 3), voxel=580, of_class=1, status="chosen").start
    (6, 0, 3)
    """

    start: tuple[int, int, int]
    voxel: int
    of_class: int
    status: str


@dataclass(frozen=True, kw_only=True)
class pos_neg_patch:
    """Draws patches about foreground or background (MONAI RandCropByPosNegLabel).

    Parameters
    ----------
    size : int or one for each axis
        Voxels of a patch.
    positive, negative : float
        Weights: a patch is about foreground with probability positive / (positive + negative).

    Examples
    --------
    >>> st.pos_neg_patch(size=96, positive=3)
    pos_neg_patch(size=96, positive=3, negative=1.0)
    """

    size: Any
    positive: float = 1.0
    negative: float = 1.0


@dataclass(frozen=True, kw_only=True)
class class_balanced_patch:
    """Draws patches about a voxel of a class that is drawn by ratio (MONAI RandCropByLabelClasses).

    Parameters
    ----------
    size : int or one for each axis
        Voxels of a patch.
    ratios : tuple of float
        Weights of the classes 0, 1, ...; by default equal for all classes but 0.

    Examples
    --------
    >>> st.class_balanced_patch(size=96, ratios=(1, 1, 3))
    class_balanced_patch(size=96, ratios=(1, 1, 3))
    """

    size: Any
    ratios: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class oversampled_patch:
    """Draws patches about a class with a probability, else anywhere; patches may extend beyond the volume (nnU-Net), so that
    crop_at needs may_leave=True.

    Parameters
    ----------
    size : int or one for each axis
        Voxels of a patch.
    margin : int or one for each axis
        Voxels by which the volume counts as padded along each axis, on both sides together.
    probability : float
        Share of the patches that are about a class.

    Examples
    --------
    >>> st.oversampled_patch(size=128)
    oversampled_patch(size=128, margin=0, probability=0.33)
    """

    size: Any
    margin: Any = 0
    probability: float = 0.33


@dataclass(frozen=True, kw_only=True)
class weighted_patch:
    """Draws patches about a voxel in proportion to its weight, a map of uint8 or uint16 (MONAI RandWeightedCrop).

    Parameters
    ----------
    size : int or one for each axis
        Voxels of a patch.

    Examples
    --------
    >>> st.weighted_patch(size=96)
    weighted_patch(size=96)
    """

    size: Any


_RULES = {pos_neg_patch: "suture::pos_neg_patch", class_balanced_patch: "suture::class_balanced_patch",
          oversampled_patch: "suture::oversampled_patch", weighted_patch: "suture::weighted_patch"}


def _rule(rule: Any, what: str) -> tuple[list[float], list[np.ndarray]]:
    """Returns the numbers and lists of a rule."""
    size: list[float] = [*voxels_zyx(rule.size, what)]
    if isinstance(rule, pos_neg_patch):
        return [*size, rule.positive, rule.negative], []
    if isinstance(rule, class_balanced_patch):
        return size, [np.array(list(rule.ratios), np.float32)]
    if isinstance(rule, oversampled_patch):
        return [*size, *voxels_zyx(rule.margin, what, "start"), rule.probability], []
    return size, []


def select_patches(maps: Any, rule: Any, *, ids: Any, classes: int | None = None, images: Any = None, image_threshold: float = 0.0,
                   patches: int = 1, seed: int = 0, epoch: int = 0, forced: Sequence[bool] | None = None, ordinal: int = 0,
                   layout: str | None = None) -> list[Choice]:
    """Draws the starts of patches of each sample by a rule, from label maps or weights.

    Parameters
    ----------
    maps : list of arrays or Volumes, or one stacked array
        Label maps; weights of uint8 or uint16 for `weighted_patch`.
    rule : pos_neg_patch, class_balanced_patch, oversampled_patch or weighted_patch
        How a patch is drawn.
    ids : sequence of int or str
        Persistent id of each sample, which the draws depend on.
    classes : int, optional
        Number of classes, for `class_balanced_patch` and `oversampled_patch`; labels are 0 .. classes - 1.
    images : as maps, optional
        With `pos_neg_patch`: background voxels are only those where the image is above `image_threshold`.
    image_threshold : float
        See `images`.
    patches : int
        Number of patches of each sample.
    seed, epoch : int
        The draws depend on both: a seed in 0 .. 2^64 - 1, and an epoch in 0 .. 2^32 - 1.
    forced : sequence of bool, optional
        One flag for each sample in place of a draw: True for patches about a class, False for patches anywhere.
    ordinal : int
        Number, 0 to 15, that makes the draws of several selections on the same samples differ.
    layout : str, optional
        Layout of arrays, where shapes could be read in several ways.

    Returns
    -------
    list of Choice
        Patch p of sample i is result i * patches + p. The starts are along (z, y, x), for crop_at.

    Raises
    ------
    Error
        If there is not one image for each map, the seed or the epoch is out of its range, a rule that needs `classes` does not
        get it, ratios are negative or not one for each class, or a patch is larger than a volume (except with oversampled_patch).

    Examples
    --------
    >>> labels = np.zeros((1, 9, 9, 9), np.uint8)
    >>> labels[0, 7, 1, 4] = 1
    >>> chosen, = st.select_patches([labels], st.class_balanced_patch(size=3), classes=2, ids=["case 1"])
    >>> chosen.start, chosen.of_class, chosen.status
    ((6, 0, 3), 1, 'chosen')
    """
    what = "suture: select_patches"
    if type(rule) not in _RULES:
        raise Error(f"{what}: {rule!r} is no rule: pos_neg_patch, class_balanced_patch, oversampled_patch, weighted_patch")
    seed, epoch = check_draws(seed, epoch, what)
    stream = stream_of(maps)
    items = Items(maps, "maps", layout, stream)
    inputs = [items]
    numbers, lists = _rule(rule, what)
    image = "void"
    if images is not None:
        if not isinstance(rule, pos_neg_patch):
            raise Error(f"{what}: images: expected none with {type(rule).__name__}, got some. Only pos_neg_patch reads them")
        inputs.append(Items(images, "images", layout, stream))
        image = element_type(inputs[1], IMAGES)
        numbers.append(image_threshold)
    if isinstance(rule, (class_balanced_patch, oversampled_patch)):
        if classes is None:
            raise Error(f"{what}: classes must be given, how many there are")
        numbers.append(classes)
    cuda = items.first.on_cuda
    labels = element_type(items, WEIGHTS if isinstance(rule, weighted_patch) else MAPS)
    made = function_source("abi/patch", f"suture::abi::select_patches<{_RULES[type(rule)]}, {labels}, {image}, {executor_of(cuda)}>",
                           "select_patches", cuda)
    if not 1 <= patches <= 65535:
        raise Error(f"{what}: patches: expected 1 to 65535, got {patches}")
    out = np.zeros(items.count * patches, _CHOICE)
    flags = np.array([] if forced is None else [bool(f) for f in forced], np.uint8)
    call_function(made, numbers=[*numbers, patches, ordinal], lists=[*lists, flags], results=[out], inputs=inputs, seed=seed,
                  epoch=epoch, ids=ids_of(ids, items.count), stream=stream)
    return [Choice((int(c["start"][0]), int(c["start"][1]), int(c["start"][2])), int(c["voxel"]), int(c["of_class"]),
                   STATUS[c["status"]]) for c in out]


def count_classes(maps: Any, *, classes: int, layout: str | None = None) -> np.ndarray:
    """Counts the voxels of each class of label maps.

    Parameters
    ----------
    maps : list of arrays or Volumes, or one stacked array
        Label maps of one channel.
    classes : int
        Number of classes, 0 .. classes - 1. Other labels are not counted.
    layout : str, optional
        Layout of arrays, where shapes could be read in several ways.

    Returns
    -------
    numpy.ndarray
        Counts, (sample, class) of uint64.

    Raises
    ------
    Error
        If there are fewer than 1 or more than 1024 classes, or a map has several channels.

    Examples
    --------
    >>> labels = np.array([0, 2, 2, 1], np.uint8).reshape(1, 1, 1, 4)
    >>> st.count_classes([labels], classes=3).tolist()
    [[1, 1, 2]]
    """
    stream = stream_of(maps)
    items = Items(maps, "maps", layout, stream)
    if not 1 <= classes <= 1024:
        raise Error(f"suture: count_classes: classes: expected 1 to 1024, got {classes}")
    cuda = items.first.on_cuda
    out = np.zeros((items.count, classes), np.uint64)
    made = function_source("abi/patch", f"suture::abi::count_classes<{element_type(items, MAPS)}, {executor_of(cuda)}>",
                           "count_classes", cuda)
    call_function(made, numbers=[classes], results=[out.reshape(-1)], inputs=[items], stream=stream)
    return out


# These functions make grids of patches, and merge patches to volumes.


@dataclass(frozen=True)
class PatchGrid:
    """Patches that cover a volume: all combinations of a start along each axis, (z, y, x), x fastest.

    Attributes
    ----------
    image : (int, int, int)
        Extents of the volume.
    size : (int, int, int)
        Voxels of a patch.
    starts : three tuples of int
        Starts along each axis.

    Examples
    --------
    >>> grid = st.PatchGrid(image=(1, 4, 6), size=(1, 4, 4), starts=((0,), (0,), (0, 2)))
    >>> len(grid), grid[1]
    (2, (0, 0, 2))
    """

    image: tuple[int, int, int]
    size: tuple[int, int, int]
    starts: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.starts[0]) * len(self.starts[1]) * len(self.starts[2])

    def __getitem__(self, p: int) -> tuple[int, int, int]:
        """Returns the start of patch p."""
        if not 0 <= p < len(self):
            raise IndexError(p)
        y, x = len(self.starts[1]), len(self.starts[2])
        return self.starts[0][p // (y * x)], self.starts[1][p // x % y], self.starts[2][p % x]


def _grid(name: str, image: Sequence[int], size: Any, numbers: Sequence[float]) -> PatchGrid:
    n = tuple(whole_numbers(image, f"suture: {name}: image", np.int64).tolist())
    if len(n) != 3:
        raise Error(f"suture: {name}: extents {n} are not three, along (z, y, x)")
    s = voxels_zyx(size, f"suture: {name}: size")
    given = [*n, *s, *numbers]
    counts = np.zeros(3, np.int64)
    call_plain(name, numbers=given, results=[counts])  # how many there are
    starts = [np.zeros(count, np.int64) for count in counts]
    call_plain(name, numbers=given, results=[counts, *starts])
    return PatchGrid(n, s, tuple(tuple(along.tolist()) for along in starts))  # type: ignore[arg-type]


def dense_patch_grid(image: Sequence[int], size: Any, *, overlap: Any = 0.25) -> PatchGrid:
    """Places patches on a volume as MONAI's sliding_window_inference does.

    Parameters
    ----------
    image : sequence of int
        Extents of the volume along (z, y, x).
    size : int or one for each axis
        Voxels of a patch.
    overlap : float or one for each axis
        Overlap of neighboring patches as a share of the patch, from 0 to below 1.

    Returns
    -------
    PatchGrid
        The grid. The last patch along each axis ends with the volume.

    Raises
    ------
    Error
        If an extent is no whole number, a patch is larger than the volume, or the overlap is not in [0, 1).

    Examples
    --------
    >>> grid = st.dense_patch_grid((8, 8, 8), 4, overlap=0)
    >>> len(grid), grid.starts[0]
    (8, (0, 4))
    """
    return _grid("dense_patch_grid", image, size, shares_zyx(overlap, "suture: dense_patch_grid: overlap", "overlap"))


def sliding_window_grid(image: Sequence[int], size: Any, *, step: float = 0.5) -> PatchGrid:
    """Places the fewest evenly spaced patches that are at most size * step apart, as nnU-Net does.

    Parameters
    ----------
    image : sequence of int
        Extents of the volume along (z, y, x).
    size : int or one for each axis
        Voxels of a patch.
    step : float
        Largest distance of neighboring patches as a share of the patch, above 0 and at most 1. Where size * step is below
        one voxel, starts repeat, as they do in nnU-Net.

    Returns
    -------
    PatchGrid
        The grid.

    Raises
    ------
    Error
        If an extent is no whole number, a patch is larger than the volume, or the step is not in (0, 1] or so small that an
        axis has more than 2^27 patches.

    Examples
    --------
    >>> grid = st.sliding_window_grid((8, 8, 8), 4)
    >>> len(grid), grid.starts[0]
    (27, (0, 2, 4))
    """
    return _grid("sliding_window_grid", image, size, [step])


WINDOWS = ("constant", "gaussian", "nnunet")  # abi::window_kind


def window_number(window: str, what: str) -> int:
    """Returns the value of a window in abi::window_kind."""
    if window not in WINDOWS:
        raise Error(f"{what}: window {window!r} is none of {', '.join(WINDOWS)}")
    return WINDOWS.index(window)


def _dense_items(given: Any, key: str, layout: str, stream: int, dtype: str | None = None) -> Items:
    items = Items(dense(given, dtype), key, layout, stream)
    check_dense(items.first, items.what, dtype)
    return items


def reassemble(grid: PatchGrid, patches: Any, *, window: str = "gaussian", coverage: Any = None, outside: float = 0.0) -> Any:
    """Merges overlapping patches to a volume, whose voxels are weighted means of the patches that cover them.

    Parameters
    ----------
    grid : PatchGrid
        Grid of the patches.
    patches : array
        All patches of the grid, (patch, channel, z, y, x).
    window : {"constant", "gaussian", "nnunet"}
        Weights of the voxels of a patch; "gaussian" is MONAI's.
    coverage : array, optional
        Share of each voxel that a patch covers, (patch, z, y, x) from 0 to 1.
    outside : float
        With coverage: value of voxels that no patch covers.

    Returns
    -------
    array
        Volume (channel, z, y, x) of float32, of the library of the patches and on their device.

    Raises
    ------
    Error
        If patches or coverage do not fit the grid, or there is no such window.

    Examples
    --------
    >>> grid = st.sliding_window_grid((4, 4, 6), 4)
    >>> patches = np.ones((len(grid), 1, 4, 4, 4), np.float32)
    >>> volume = st.reassemble(grid, patches)
    >>> volume.shape, bool(np.allclose(volume, 1))
    ((1, 4, 4, 6), True)
    """
    what = "suture: reassemble"
    kind = window_number(window, what)
    stream = stream_of(patches)
    inputs = [_dense_items(patches, "patches", "NCZYX", stream)]
    a = inputs[0].first
    if a.shape[0] != len(grid) or a.shape[2:] != grid.size:
        raise Error(f"{what}: patches of shape {a.shape}, ({len(grid)}, channels, *{grid.size}) is what the grid has")
    if coverage is not None:
        inputs.append(_dense_items(coverage, "coverage", "NZYX", stream, "float32"))
        if inputs[1].first.shape != (len(grid), *grid.size):
            raise Error(f"{what}: coverage of shape {inputs[1].first.shape}, ({len(grid)}, *{grid.size}) is what the grid has")
    out = empty_like_library(a.library, (a.shape[1], *grid.image), "float32", a, what, stream)
    covered = "false" if coverage is None else "true"
    made = function_source("abi/patch", f"suture::abi::reassemble<{element_type(inputs[0], IMAGES)}, {covered}, {executor_of(a.on_cuda)}>",
                           "reassemble", a.on_cuda)
    call_function(made, numbers=[*grid.image, *grid.size, len(grid), kind, outside], samples=1, inputs=inputs, stream=stream,
                  lists=[np.array(s, np.int64) for s in grid.starts],
                  outputs=[output_bound([array_of(out, what, stream)], "czyx", False)])
    return out


def average(restored: Any, coverage: Any, *, outside: float, least: float = 1e-3) -> tuple[Any, Any]:
    """Averages predictions that Plan.inverse has mapped back, weighted by how far each covers a voxel.

    Parameters
    ----------
    restored : array
        Predictions (volume, channel, z, y, x), as Plan.inverse returns them with `outside` 0.
    coverage : array
        Share of each voxel that a prediction covers, (volume, z, y, x).
    outside : float
        Value of voxels whose sum of coverages is below `least`.
    least : float
        Least sum of coverages of a mean.

    Returns
    -------
    mean : array
        Sum of the predictions over the sum of their coverages, (channel, z, y, x) of float32.
    covered : array
        Sum of the coverages, (z, y, x), 0 where the mean is `outside`. Both are of the library of the predictions.

    Raises
    ------
    Error
        If the shapes do not fit each other, or `least` is not positive.

    Examples
    --------
    >>> restored = np.array([[2, 4], [6, 0]], np.float32).reshape(2, 1, 1, 1, 2)
    >>> coverage = np.array([[1, 1], [1, 0]], np.float32).reshape(2, 1, 1, 2)
    >>> mean, covered = st.average(restored, coverage, outside=0)
    >>> mean.ravel().tolist(), covered.ravel().tolist()
    ([4.0, 4.0], [2.0, 1.0])
    """
    what = "suture: average"
    stream = stream_of(restored)
    inputs = [_dense_items(restored, "restored", "NCZYX", stream), _dense_items(coverage, "coverage", "NZYX", stream, "float32")]
    a = inputs[0].first
    if inputs[1].first.shape != (a.shape[0], *a.shape[2:]):
        raise Error(f"{what}: volumes of shape {a.shape} with coverages of shape {inputs[1].first.shape}; "
                    "(volume, channel, z, y, x) and (volume, z, y, x) are needed")
    out, covered = (empty_like_library(a.library, shape, "float32", a, what, stream) for shape in (a.shape[1:], a.shape[2:]))
    made = function_source("abi/patch", f"suture::abi::average<{element_type(inputs[0], IMAGES)}, {executor_of(a.on_cuda)}>",
                           "average", a.on_cuda)
    call_function(made, numbers=[a.shape[0], least, outside], samples=1, inputs=inputs, stream=stream,
                  outputs=[output_bound([array_of(out, what, stream)], "czyx", False),
                           output_bound([array_of(covered, what, stream)], "zyx", False)])
    return out, covered


__all__ = ["Choice", "PatchGrid", "average", "class_balanced_patch", "count_classes", "crop_by_class", "dense_patch_grid",
           "oversampled_patch", "pos_neg_patch", "reassemble", "select_patches", "sliding_window_grid", "weighted_patch"]
check_calls_in(globals())
