# SPDX-License-Identifier: Apache-2.0
"""Fits compute statistics that normalization needs. operations/results.py defines their results."""
from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..arrays.batch import Items
from ..arrays.dlpack import stream_of
from ..backend.call import IMAGES, LABELS, call_function, element_type, executor_of, function_source
from ..arguments import check_calls_in
from ..errors import Error
from ..operations.kinds import shown
from ..operations.results import (COLOR_SPACES, STAIN_BASIS_BYTES, ColorMomentsFit, IntensityRange, LandmarkMap, Moments,
                                  Percentiles, Sharpness, StainBasis, Tally, Threshold, results_from_json)
from .axes import whole_numbers

_COUNTED = ("int8", "uint8", "int16", "uint16")
_TILES = ("uint8", "float32", "float16", "bfloat16")


# These classes select the voxels of a fit.


@dataclass(frozen=True)
class above:
    """Selects voxels above a threshold.

    Parameters
    ----------
    threshold : float
        Values greater than this are selected.

    Examples
    --------
    >>> st.above(-300)
    above(threshold=-300)
    """

    threshold: float


@dataclass(frozen=True)
class inside:
    """Selects voxels where a mask is not 0.

    Parameters
    ----------
    masks : arrays
        One mask for each image, of its extents and on its device.

    Examples
    --------
    >>> scan = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    >>> mask = np.zeros((1, 2, 2, 2), np.uint8)
    >>> mask[0, 1] = 1
    >>> st.fit_moments([scan], where=st.inside([mask]))[0].mean
    5.5
    """

    masks: Any


@dataclass(frozen=True)
class labeled:
    """Selects voxels of some labels.

    Parameters
    ----------
    maps : arrays
        One label map for each image, of its extents and on its device.
    labels : sequence of int
        Labels whose voxels are selected.
    classes : int
        Number of classes, at most 256; voxels with a label outside 0 .. classes - 1 are counted as undeclared.

    Examples
    --------
    >>> labels = np.array([0, 1, 1, 2], np.uint8).reshape(1, 1, 1, 4)
    >>> st.labeled([labels], labels=[1, 2], classes=3).labels
    [1, 2]
    """

    maps: Any
    labels: Sequence[int]
    classes: int = 256


R = TypeVar("R")


@dataclass(frozen=True)
class _Selection:
    """The C++ type of a selection, and the inputs, numbers and lists that it reads."""

    cpp: str
    maps: tuple[Items, ...] = ()
    numbers: tuple[float, ...] = ()
    lists: tuple[np.ndarray, ...] = ()


def _selection_of(where: Any, layout: str | None, stream: int | None) -> _Selection:
    if where is None:
        return _Selection("suture::everything")
    if isinstance(where, str) and where == "nonzero":
        return _Selection("suture::nonzero")
    if isinstance(where, above):
        return _Selection("suture::above", numbers=(where.threshold,))
    if isinstance(where, inside):
        maps = Items(where.masks, "inside: masks", layout, stream)
        return _Selection(f"suture::inside_selection<{element_type(maps, LABELS)}>", (maps,))
    if isinstance(where, labeled):
        maps = Items(where.maps, "labeled: maps", layout, stream)
        return _Selection(f"suture::labeled_selection<{element_type(maps, LABELS)}>", (maps,), (where.classes,),
                          (whole_numbers(where.labels, "suture: labeled: labels", np.int32),))
    raise Error(f'suture: fit: where: expected None, "nonzero", above(...), inside(...) or labeled(...), got {shown(where)}. Pass '
                "inside(masks) for masks")


def _run(name: str, items: Items, template: Sequence[str], selection: _Selection, numbers: Sequence[float], count: int,
         size: int) -> np.ndarray:
    """Runs the fit `name` and returns rows of `size` bytes, one for each result."""
    cuda = items.first.on_cuda
    made = function_source("abi/fit", f"suture::abi::{name}<{', '.join([*template, executor_of(cuda)])}>", name, cuda)
    out = np.zeros((count, size), np.uint8)
    call_function(made, numbers=[*selection.numbers, *numbers], lists=selection.lists, results=[out],
                  inputs=[items, *selection.maps], stream=items.stream)
    return out


def _fit(name: str, images: Any, unpack: Callable[[bytes], R], size: int, *, template: Sequence[str] = (),
         types: Sequence[str] = IMAGES, numbers: Sequence[float] = (), pooled: bool | None = None, where: Any = None,
         layout: str | None = None) -> list[R]:
    """Runs a fit and returns its results. A fit without the parameter `pooled` (None) has one result for each image."""
    items = images if isinstance(images, Items) else Items(images, "images", layout, stream_of(images))
    element = element_type(items, types)
    selection = _selection_of(where, layout, items.stream)
    count = items.count * (items.channels if pooled is False else 1)
    if pooled is not None:
        numbers = [*numbers, pooled]
    rows = _run(name, items, [*template, element, selection.cpp], selection, numbers, count, size)
    return [unpack(row.tobytes()) for row in rows]


def fit_moments(images: Any, *, ddof: int = 0, pooled: bool = False, where: Any = None,
                layout: str | None = None) -> list[Moments]:
    """Computes mean, standard deviation, minimum and maximum exactly.

    Parameters
    ----------
    images : arrays
        A list of arrays or volumes, or one stacked array.
    ddof : int
        0 or 1; the variance is divided by the number of voxels less this.
    pooled : bool
        Whether an image has one result for all channels together.
    where : optional
        Voxels that are used: None for all, "nonzero", `above`, `inside` or `labeled`.
    layout : str, optional
        Layout of the arrays, such as "NHWC".

    Returns
    -------
    list of Moments
        One for each image and channel, channels fastest, or one for each image if pooled.

    Raises
    ------
    Error
        If `ddof` is neither 0 nor 1, or masks do not match the images.

    Examples
    --------
    >>> scan = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    >>> found, = st.fit_moments([scan])
    >>> found.mean, found.minimum, found.maximum, found.tally.count
    (3.5, 0.0, 7.0, 8)
    >>> st.z_score(fitted=[found]).name
    'z_score'
    """
    return _fit("fit_moments", images, Moments.unpack, Moments._format.size, numbers=[ddof], pooled=bool(pooled), where=where,
                layout=layout)


def fit_percentiles(images: Any, *, q: Sequence[float], pooled: bool = False, where: Any = None,
                    layout: str | None = None) -> list[Percentiles]:
    """Computes exact percentiles, equal to those of numpy.percentile.

    Parameters
    ----------
    images : arrays
        A list of arrays or volumes, or one stacked array.
    q : sequence of float
        1 to 32 percentiles in [0, 100].
    pooled, where, layout
        As in `fit_moments`.

    Returns
    -------
    list of Percentiles
        One for each image and channel, channels fastest, or one for each image if pooled.

    Raises
    ------
    Error
        If there are none or more than 32 percentiles, or one is outside [0, 100].

    Examples
    --------
    >>> scan = np.arange(-1, 101, dtype=np.float32).reshape(1, 1, 1, 102)
    >>> found, = st.fit_percentiles([scan], q=(0, 50, 100), where=st.above(-0.5))
    >>> found.value
    (0.0, 50.0, 100.0)
    """
    n = len(q)
    if not 1 <= n <= 32:
        raise Error(f"suture: fit_percentiles: {n} percentiles, 1 to 32 are possible")
    return _fit("fit_percentiles", images, lambda d: Percentiles.unpack(d, n), struct.calcsize(Percentiles.layout(n)),
                template=[str(n)], numbers=q, pooled=bool(pooled), where=where, layout=layout)


def fit_range(images: Any, *, lower: float = 0.0, upper: float = 100.0, pooled: bool = False, where: Any = None,
              layout: str | None = None) -> list[IntensityRange]:
    """Computes the interval between two percentiles.

    Parameters
    ----------
    images : arrays
        A list of arrays or volumes, or one stacked array.
    lower, upper : float
        Percentiles in [0, 100]; 0 and 100 are minimum and maximum.
    pooled, where, layout
        As in `fit_moments`.

    Returns
    -------
    list of IntensityRange
        One for each image and channel, channels fastest, or one for each image if pooled.

    Raises
    ------
    Error
        If a percentile is outside [0, 100], or `lower` is not below `upper`.

    Examples
    --------
    >>> scan = np.arange(101, dtype=np.float32).reshape(1, 1, 1, 101)
    >>> found, = st.fit_range([scan], lower=5, upper=95)
    >>> found.low, found.high
    (5.0, 95.0)
    """
    return _fit("fit_range", images, IntensityRange.unpack, IntensityRange._format.size, numbers=[lower, upper],
                pooled=bool(pooled), where=where, layout=layout)


def fit_landmarks(images: Any, *, q: Sequence[float], target: Sequence[float], pooled: bool = False, where: Any = None,
                  layout: str | None = None) -> list[LandmarkMap]:
    """Computes the piecewise linear map from percentiles to target values.

    Parameters
    ----------
    images : arrays
        A list of arrays or volumes, or one stacked array.
    q : sequence of float
        2 to 32 increasing percentiles in [0, 100].
    target : sequence of float
        As many increasing values.
    pooled, where, layout
        As in `fit_moments`.

    Returns
    -------
    list of LandmarkMap
        One for each image and channel, channels fastest, or one for each image if pooled.

    Raises
    ------
    Error
        If the two differ in length, have fewer than 2 or more than 32 elements, or one does not increase.

    Examples
    --------
    >>> scan = np.arange(101, dtype=np.float32).reshape(1, 1, 1, 101)
    >>> found, = st.fit_landmarks([scan], q=(0, 50, 100), target=(0, 10, 100))
    >>> found.source, found.target
    ((0.0, 50.0, 100.0), (0.0, 10.0, 100.0))
    """
    n = len(q)
    if n != len(target) or not 2 <= n <= 32:
        raise Error(f"suture: fit_landmarks: {n} percentiles for {len(target)} targets; 2 to 32 of each are needed")
    return _fit("fit_landmarks", images, lambda d: LandmarkMap.unpack(d, n), struct.calcsize(LandmarkMap.layout(n)),
                template=[str(n)], numbers=[*q, *target], pooled=bool(pooled), where=where, layout=layout)


_OTSU_RULES = ("scikit_image", "opencv")  # suture::otsu_rule


def fit_otsu(images: Any, *, rule: str = "scikit_image", pooled: bool = False, where: Any = None,
             layout: str | None = None) -> list[Threshold]:
    """Computes Otsu's threshold.

    Parameters
    ----------
    images : arrays
        A list of arrays or volumes, or one stacked array.
    rule : {"scikit_image", "opencv"}
        Library whose histogram is used; "opencv" is for uint8 and uint16.
    pooled, where, layout
        As in `fit_moments`.

    Returns
    -------
    list of Threshold
        One for each image and channel, channels fastest, or one for each image if pooled.

    Raises
    ------
    Error
        If the rule does not exist, or is not defined for the type of the images.

    Examples
    --------
    >>> image = np.array([10, 12, 11, 200, 210, 205], np.uint8).reshape(1, 1, 2, 3)
    >>> found, = st.fit_otsu([image], rule="opencv")
    >>> 12 <= found.value < 200
    True
    """
    if rule not in _OTSU_RULES:
        raise Error(f"suture: fit_otsu: rule {rule!r} is neither scikit_image nor opencv")
    return _fit("fit_otsu", images, Threshold.unpack, Threshold._format.size, numbers=[_OTSU_RULES.index(rule)],
                pooled=bool(pooled), where=where, layout=layout)


def fit_sharpness(tiles: Any, *, layout: str | None = None) -> list[Sharpness]:
    """Computes the variance of the Laplacian, and mean and standard deviation of the gray level.

    Parameters
    ----------
    tiles : arrays
        uint8 tiles of one or three channels.
    layout : str, optional
        Layout of the arrays, such as "NHWC".

    Returns
    -------
    list of Sharpness
        One for each tile.

    Raises
    ------
    Error
        If tiles are not uint8, or have another number of channels or several slices.

    Examples
    --------
    >>> flat, = st.fit_sharpness([np.full((16, 16, 3), 200, np.uint8)], layout="HWC")
    >>> flat.mean, flat.laplacian_variance, flat.quality()
    (200.0, 0.0, 'blank')
    """
    items = Items(tiles, "fit_sharpness: tiles", layout, stream_of(tiles))
    element_type(items, ("uint8",))
    rows = _run("fit_sharpness", items, [], _Selection(""), [], items.count, Sharpness._format.size)
    return [Sharpness.unpack(row.tobytes()) for row in rows]


def _white_of(tiles: Any, items: Items, given: float | None, name: str, parameter: str, layout: str | None) -> float:
    """Returns the value of white, 255 by default. For float tiles with no value above 1 it has to be given."""
    if given is not None or not items.dtype.endswith(("float16", "float32")):
        return 255.0 if given is None else given
    found = [m for m in fit_moments(tiles, pooled=True, layout=layout) if m.status != "empty"]
    if not found or not 0 < max(m.maximum for m in found) <= 1:
        return 255.0
    low, high = min(m.minimum for m in found), max(m.maximum for m in found)
    raise Error(f"suture: {name}: {parameter}: expected the value that means white, got none for {items.dtype} tiles with values "
                f"in {low:.6g} .. {high:.6g}. Pass {parameter}=1 if white is 1, or {parameter}=255 if it is 255")


def fit_color_moments(tiles: Any, *, space: str = "lab", ddof: int = 0, white: float | None = None, where: Any = None,
                      layout: str | None = None) -> list[ColorMomentsFit]:
    """Computes mean and standard deviation of colors, by channel of a color space.

    Parameters
    ----------
    tiles : arrays
        Tiles of three channels: red, green, blue.
    space : {"lab", "ruderman", "hed", "hsv"}
        Color space of the result.
    ddof : int
        0 or 1; the variance is divided by the number of pixels less this.
    white : float, optional
        Value of white, 255 by default. Float tiles with no value above 1 need it.
    where, layout
        As in `fit_moments`; colors are selected by `inside` or `labeled`.

    Returns
    -------
    list of ColorMomentsFit
        One for each tile.

    Raises
    ------
    Error
        If the space does not exist, tiles do not have three channels, or float tiles in 0 .. 1 come without `white`.

    Examples
    --------
    >>> white = np.full((16, 16, 3), 255, np.uint8)
    >>> found, = st.fit_color_moments([white], layout="HWC")
    >>> found.space, [round(v, 3) for v in found.standard_deviation]
    ('lab', [0.0, 0.0, 0.0])
    """
    if space not in COLOR_SPACES:
        raise Error(f"suture: fit_color_moments: space {space!r} is none of lab, ruderman, hed, hsv")
    _check_color_selection(where, "fit_color_moments")
    items = Items(tiles, "fit_color_moments: tiles", layout, stream_of(tiles))
    white = _white_of(tiles, items, white, "fit_color_moments", "white", layout)
    return _fit("fit_color_moments", items, lambda d: ColorMomentsFit.unpack(d, space), ColorMomentsFit._format.size,
                template=[f"suture::{space}"], numbers=[ddof, white], where=where, layout=layout)


def _check_color_selection(where: Any, name: str) -> None:
    if where is not None and not isinstance(where, (inside, labeled)):
        raise Error(f"suture: {name}: where: expected None, inside(...) or labeled(...), got {where!r}. Colors are selected by "
                    "masks or labels")


# Parameters in the order in which abi::fit_macenko reads them, and modes in the order of abi::stain_library.
_MACENKO = ("least_density", "luminosity", "centered", "alpha", "concentration_percentile", "concentrations_of_all", "penalty",
            "refinements", "sparsity", "least_pixels", "least_share", "single_stain_ratio", "single_stain_angle", "together",
            "full_scale")
_MODES = ("standard", "torchstain", "torchstain_torch", "matlab", "henorm", "monai", "cucim", "staintools", "tiatoolbox",
          "vahadane")


def fit_macenko(tiles: Any, *, mode: str = "standard", layout: str | None = None, where: Any = None, **changed: float) -> Any:
    """Estimates the stains of tiles of H&E (Macenko et al. 2009; mode "vahadane" factorizes).

    Parameters
    ----------
    tiles : arrays
        uint8 or float tiles of three channels: red, green, blue.
    mode : str
        Library whose arithmetic is used: "standard", "torchstain", "torchstain_torch", "matlab", "henorm", "monai", "cucim",
        "staintools", "tiatoolbox" or "vahadane".
    layout : str, optional
        Layout of the arrays, such as "NHWC".
    where : optional
        Pixels that are used: None for all, `inside` or `labeled`.
    **changed : float
        Parameters of fit_macenko in C++, in place of those of the mode: alpha, least_density, single_stain_angle,
        full_scale, together, ... Float tiles with no value above 1 need full_scale, the value of white.

    Returns
    -------
    list of StainBasis, or StainBasis
        One for each tile; with together=True one for all tiles of a slide.

    Raises
    ------
    Error
        If the mode or a parameter does not exist or is out of range, or float tiles in 0 .. 1 come without `full_scale`.

    Examples
    --------
    >>> white = np.full((16, 16, 3), 255, np.uint8)
    >>> found, = st.fit_macenko([white], layout="HWC")
    >>> found.status
    'too_little_tissue'
    """
    if mode not in _MODES:
        raise Error(f"suture: fit_macenko: mode {mode!r} is none of {', '.join(_MODES)}")
    for name in changed:
        if name not in _MACENKO:
            raise Error(f"suture: fit_macenko: there is no parameter {name!r}; it has {', '.join(_MACENKO)}")
    _check_color_selection(where, "fit_macenko")
    items = Items(tiles, "fit_macenko: tiles", layout, stream_of(tiles))
    element = element_type(items, _TILES)
    changed["full_scale"] = _white_of(tiles, items, changed.get("full_scale"), "fit_macenko", "full_scale", layout)
    numbers: list[float] = [_MODES.index(mode)]
    for name in _MACENKO:
        numbers += [name in changed, changed.get(name, 0.0)]
    selection = _selection_of(where, layout, items.stream)
    together = bool(changed.get("together", False))
    rows = _run("fit_macenko", items, [element, selection.cpp], selection, numbers, 1 if together else items.count,
                STAIN_BASIS_BYTES)
    fitted = [StainBasis.unpack(row.tobytes()) for row in rows]
    return fitted[0] if together else fitted


def fit_histogram(images: Any, *, pooled: bool = False, where: Any = None, layout: str | None = None) -> list[np.ndarray]:
    """Counts every value of an 8- or 16-bit image.

    Parameters
    ----------
    images : arrays
        Images of int8, uint8, int16 or uint16.
    pooled, where, layout
        As in `fit_moments`.

    Returns
    -------
    list of numpy.ndarray
        Counts of uint64, for all values of the type in increasing order: one array for each image and channel, channels
        fastest, or one for each image if pooled.

    Raises
    ------
    Error
        If images have another type.

    Examples
    --------
    >>> counts, = st.fit_histogram([np.array([3, 3, 5], np.uint8).reshape(1, 1, 1, 3)])
    >>> counts.shape, counts[:6].tolist()
    ((256,), [0, 0, 0, 2, 0, 1])
    """
    items = Items(images, "images", layout, stream_of(images))
    if items.dtype not in _COUNTED:
        raise Error(f"suture: fit_histogram: images of {items.dtype}; 8- and 16-bit integers are counted")
    bins = 1 << (8 if items.dtype.endswith("8") else 16)
    return _fit("fit_histogram", items, lambda d: np.frombuffer(d, np.uint64)[:bins].copy(), 8 * (bins + 32),
                pooled=bool(pooled), types=_COUNTED, where=where, layout=layout)


__all__ = ["ColorMomentsFit", "IntensityRange", "LandmarkMap", "Moments", "Percentiles", "Sharpness", "StainBasis", "Tally",
           "Threshold", "above", "fit_color_moments", "fit_histogram", "fit_landmarks", "fit_macenko", "fit_moments", "fit_otsu",
           "fit_percentiles", "fit_range", "fit_sharpness", "inside", "labeled", "results_from_json"]

check_calls_in(globals())
