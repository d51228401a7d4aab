# SPDX-License-Identifier: Apache-2.0
"""These functions make, clean and measure masks. They take lists or one stacked array, and return the same, of the library and on
the device of the input."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import check_calls_in
from ..arrays.batch import Items
from ..arrays.dlpack import stream_of
from ..backend.call import IMAGES, LABELS, call_function, element_type
from ..backend.plain import call_plain
from ..errors import Error
from ..operations.generated import crop, pad
from ..operations.kinds import shown
from ..operations.operation import Operation
from ..pipeline.identity import check_draws, ids_of
from .axes import voxels_zyx, whole_numbers
from .mask_runs import BYTES, check_bool, choice_number, copied, mask_source, run_on_masks


@dataclass(frozen=True)
class LargestComponent:
    """The largest component of a mask.

    Attributes
    ----------
    empty : bool
        Whether no voxel of the mask is set.
    voxels : int
        Voxels of the component, 0 where the mask is empty.

    Examples
    --------
    >>> st.LargestComponent(empty=False, voxels=12)
    LargestComponent(empty=False, voxels=12)
    """

    empty: bool
    voxels: int


@dataclass(frozen=True)
class BoundingBox:
    """The smallest box that holds the foreground of an image.

    Attributes
    ----------
    empty : bool
        Whether there is no foreground.
    first, last : (int, int, int)
        First and last voxel of the box along (z, y, x).

    Examples
    --------
    >>> st.BoundingBox(empty=False, first=(0, 2, 3), last=(9, 7, 8))
    BoundingBox(empty=False, first=(0, 2, 3), last=(9, 7, 8))
    """

    empty: bool
    first: tuple[int, int, int]
    last: tuple[int, int, int]


@dataclass(frozen=True)
class TissueMask:
    """Statistics of a tissue mask.

    Attributes
    ----------
    empty : bool
        Whether there is no tissue.
    threshold : int
        Otsu's threshold; -1 for the rule "luminosity".
    pixels : int
        Pixels of the mask.

    Examples
    --------
    >>> st.TissueMask(empty=False, threshold=178, pixels=1200).pixels
    1200
    """

    empty: bool
    threshold: int
    pixels: int


# Names of the values of C++ enumerations, from 0; those of CONNECTIVITY begin at 1.
CONNECTIVITY = ("faces", "edges", "corners")
_HOLES = ("volume", "slices")
_TISSUE = ("gray", "saturation", "luminosity")
_LARGEST = (np.uint32, 2)


def body_mask(images: Any, *, threshold: float = -300.0, opening_radius: int = 0,
              layout: str | None = None) -> tuple[Any, list[LargestComponent]]:
    """Masks the patient in CT volumes: without air and, with an opening, without the table.

    Parameters
    ----------
    images : arrays
        CT volumes of one channel, in HU.
    threshold : float
        Voxels above this are body.
    opening_radius : int
        Radius of an opening in voxels, 0 to 63; 0 means none.
    layout : str, optional
        Layout of the arrays, such as "ZYX".

    Returns
    -------
    masks : arrays
        uint8 masks of 0 and 1, of the library and on the device of the images.
    found : list of LargestComponent
        The component of each mask before its holes were filled.

    Raises
    ------
    Error
        If images have several channels, or a parameter is out of range.

    Examples
    --------
    >>> scan = np.full((1, 4, 6, 6), -1000, np.float32)
    >>> scan[0, :, 1:5, 1:5] = 40
    >>> masks, found = st.body_mask([scan])
    >>> int(masks[0].sum()), found[0].voxels
    (64, 64)
    """
    masks, found = run_on_masks("body_mask", images, "uint8", [threshold, opening_radius], result=_LARGEST, layout=layout)
    return masks, [LargestComponent(bool(s), int(n)) for s, n in found]


def bounding_box(images: Any, *, threshold: float = 0.0, layout: str | None = None) -> list[BoundingBox]:
    """Finds the smallest box that holds all voxels with any channel above a threshold.

    Parameters
    ----------
    images : arrays
        Images of any number of channels.
    threshold : float
        Voxels above this are inside.
    layout : str, optional
        Layout of the arrays.

    Returns
    -------
    list of BoundingBox
        One for each image.

    Raises
    ------
    Error
        If the threshold is no number.

    Examples
    --------
    >>> scan = np.zeros((1, 4, 6, 6), np.float32)
    >>> scan[0, 1:3, 2, 4] = 7
    >>> st.bounding_box([scan])
    [BoundingBox(empty=False, first=(1, 2, 4), last=(2, 2, 4))]
    """
    _, found = run_on_masks("bounding_box", images, None, [threshold], result=(np.int32, 7), layout=layout)
    return [BoundingBox(bool(f[0]), (int(f[1]), int(f[2]), int(f[3])), (int(f[4]), int(f[5]), int(f[6]))) for f in found]


def crop_foreground(found: BoundingBox, extents: Sequence[int], *, margin: Any = 0, divisible_by: Any = 1,
                    allow_smaller: bool = True) -> list[Operation]:
    """Makes the geometry that crops an image to a bounding box.

    Parameters
    ----------
    found : BoundingBox
        Box of the foreground; an empty one keeps the whole image.
    extents : sequence of int
        Voxels of the image along (z, y, x).
    margin : int or axes
        Voxels added on both sides.
    divisible_by : int or axes
        Each size is increased to a multiple of this; half of the added voxels, rounded down, come before the first. 0 and 1
        leave the size as it is.
    allow_smaller : bool
        Whether the box is clipped to the image. Otherwise it may extend beyond, and the image is padded.

    Returns
    -------
    list of Operation
        A crop, after a pad if the box extends beyond the image.

    Raises
    ------
    Error
        If there are not three extents, the bounding box does not lie within them, or a margin or divisor is not in 0 .. 2^21.

    Examples
    --------
    >>> found = st.BoundingBox(empty=False, first=(1, 2, 3), last=(2, 4, 5))
    >>> st.crop_foreground(found, (8, 8, 8), margin=1)
    [crop(start=dict(z=0, y=1, x=2), size=dict(z=4, y=5, x=5))]
    """
    what = "suture: crop_foreground"
    voxels = whole_numbers(extents, f"{what}: extents", np.int64).tolist()
    if len(voxels) != 3:
        raise Error(f"{what}: extents: expected voxels along (z, y, x), got {shown(extents)}. Pass (1, y, x) for a plane")
    start, size = np.zeros(3, np.int64), np.zeros(3, np.int64)
    call_plain("crop_foreground", numbers=[*voxels, bool(found.empty), *found.first, *found.last,
                                           *voxels_zyx(margin, f"{what}: margin", "start"),
                                           *voxels_zyx(divisible_by, f"{what}: divisible_by", "start"), bool(allow_smaller)],
               results=[start, size])
    before = [max(-s, 0) for s in start.tolist()]
    after = [max(s + n - e, 0) for s, n, e in zip(start.tolist(), size.tolist(), voxels)]
    names = "zyx"
    steps: list[Operation] = []
    if any(before) or any(after):
        steps.append(pad(before=dict(zip(names, before)), after=dict(zip(names, after))))
    inside = [s + b for s, b in zip(start.tolist(), before)]
    return [*steps, crop(start=dict(zip(names, inside)), size=dict(zip(names, size.tolist())))]


def label_components(masks: Any, *, connectivity: str = "faces", layout: str | None = None) -> tuple[Any, list[int]]:
    """Numbers connected components 1, 2, ... in the order of their first voxels.

    Parameters
    ----------
    masks : arrays
        Masks of one channel; a voxel is set where it is not 0.
    connectivity : {"faces", "edges", "corners"}
        Voxels that are neighbors: those that share a face, an edge, or a corner.
    layout : str, optional
        Layout of the arrays.

    Returns
    -------
    maps : arrays
        int32 label maps, of the library and on the device of the masks.
    counts : list of int
        Number of components of each mask.

    Raises
    ------
    Error
        If masks have several channels, or the connectivity does not exist.

    Examples
    --------
    >>> mask = np.array([1, 1, 0, 1], np.uint8).reshape(1, 1, 1, 4)
    >>> maps, counts = st.label_components([mask])
    >>> maps[0].ravel().tolist(), counts
    ([1, 1, 0, 2], [2])
    """
    k = choice_number(connectivity, CONNECTIVITY, "label_components: connectivity") + 1
    maps, counts = run_on_masks("label_components", masks, "int32", [k], result=(np.uint32, 1), layout=layout)
    return maps, [int(n) for n, in counts]


def keep_largest_component(masks: Any, *, connectivity: str = "faces",
                           layout: str | None = None) -> tuple[Any, list[LargestComponent]]:
    """Keeps the largest connected component of each mask.

    Parameters
    ----------
    masks, connectivity, layout
        As in `label_components`.

    Returns
    -------
    kept : arrays
        uint8 masks of 0 and 1, of the library and on the device of the masks.
    found : list of LargestComponent
        The component of each mask.

    Raises
    ------
    Error
        If masks have several channels, or the connectivity does not exist.

    Examples
    --------
    >>> mask = np.array([1, 1, 0, 1], np.uint8).reshape(1, 1, 1, 4)
    >>> kept, found = st.keep_largest_component([mask])
    >>> kept[0].ravel().tolist(), found[0].voxels
    ([1, 1, 0, 0], 2)
    """
    k = choice_number(connectivity, CONNECTIVITY, "keep_largest_component: connectivity") + 1
    kept, found = run_on_masks("keep_largest_component", masks, "uint8", [k], result=_LARGEST, layout=layout)
    return kept, [LargestComponent(bool(s), int(n)) for s, n in found]


def remove_small_components(masks: Any, *, least: int, connectivity: str = "faces", layout: str | None = None) -> Any:
    """Removes connected components of fewer voxels than `least`.

    Parameters
    ----------
    masks, connectivity, layout
        As in `label_components`.
    least : int
        Voxels of the smallest component that is kept.

    Returns
    -------
    arrays
        uint8 masks of 0 and 1, of the library and on the device of the masks.

    Raises
    ------
    Error
        If masks have several channels, the connectivity does not exist, or `least` is negative.

    Examples
    --------
    >>> mask = np.array([1, 1, 0, 1], np.uint8).reshape(1, 1, 1, 4)
    >>> st.remove_small_components([mask], least=2)[0].ravel().tolist()
    [1, 1, 0, 0]
    """
    k = choice_number(connectivity, CONNECTIVITY, "remove_small_components: connectivity") + 1
    return run_on_masks("remove_small_components", masks, "uint8", [k, least], layout=layout)[0]


def fill_holes(masks: Any, *, enclosed: str = "volume", layout: str | None = None) -> Any:
    """Fills enclosed background.

    Parameters
    ----------
    masks : arrays
        Masks of one channel; a voxel is set where it is not 0.
    enclosed : {"volume", "slices"}
        "volume" for background enclosed in 3D, "slices" for background enclosed within its slice along z, whatever the order of
        the axes. In a mask of one slice, such as a 2D one, only "slices" fills holes.
    layout : str, optional
        Layout of the arrays.

    Returns
    -------
    arrays
        uint8 masks of 0 and 1, of the library and on the device of the masks.

    Raises
    ------
    Error
        If masks have several channels, or `enclosed` is another name.

    Examples
    --------
    >>> ring = np.ones((1, 3, 3, 3), np.uint8)
    >>> ring[0, 1, 1, 1] = 0
    >>> int(st.fill_holes([ring])[0].sum())
    27
    """
    return run_on_masks("fill_holes", masks, "uint8", [choice_number(enclosed, _HOLES, "fill_holes: enclosed")], layout=layout)[0]


def tissue_mask(tiles: Any, *, rule: str = "gray", luminosity: float = 80.0, least_size: int = 0, dilation_radius: int = 0,
                layout: str | None = None) -> tuple[Any, list[TissueMask]]:
    """Masks tissue on thumbnails of slides.

    Parameters
    ----------
    tiles : arrays
        uint8 thumbnails of three channels: red, green, blue.
    rule : {"gray", "saturation", "luminosity"}
        Rule of the mask: the first two use Otsu's threshold.
    luminosity : float
        With "luminosity", L* of CIE Lab below which a pixel is tissue.
    least_size : int
        Least pixels of a component; smaller ones are removed.
    dilation_radius : int
        Radius in pixels of a final dilation, 0 to 63.
    layout : str, optional
        Layout of the arrays, such as "NHWC".

    Returns
    -------
    masks : arrays
        uint8 masks of 0 and 1, of the library and on the device of the tiles.
    found : list of TissueMask
        Threshold and number of pixels of each mask.

    Raises
    ------
    Error
        If tiles are not uint8 with three channels, or a parameter is out of range.

    Examples
    --------
    >>> slide = np.full((8, 8, 3), 240, np.uint8)
    >>> slide[2:4, 2:6] = (180, 90, 140)
    >>> masks, found = st.tissue_mask([slide], layout="HWC")
    >>> found[0].pixels
    8
    """
    numbers = [choice_number(rule, _TISSUE, "tissue_mask: rule"), luminosity, least_size, dilation_radius]
    masks, found = run_on_masks("tissue_mask", tiles, "uint8", numbers, result=(np.int32, 3), layout=layout, types=BYTES)
    return masks, [TissueMask(bool(s), int(t), int(n)) for s, t, n in found]


def _disturb(name: str, maps: Any, labels: Sequence[int], numbers: Sequence[float], seed: int, epoch: int, ids: Any,
             layout: str | None) -> Any:
    seed, epoch = check_draws(seed, epoch, f"suture: {name}")
    given = Items(maps, name, layout, stream_of(maps))
    element = element_type(given, LABELS)
    copies, items = copied(given, name, layout)
    call_function(mask_source(name, [element], items.first.on_cuda), numbers=numbers, lists=[whole_numbers(labels, f"suture: {name}: labels", np.int32)],
                  changed=[items], seed=seed, epoch=epoch, ids=ids_of(ids, items.count), stream=items.stream)
    return copies


def random_binary_operation(maps: Any, *, labels: Sequence[int], ids: Any, seed: int = 0, epoch: int = 0, probability: float = .4,
                            label_probability: float = .5, radius: tuple[int, int] = (1, 8), layout: str | None = None) -> Any:
    """Returns copies of label maps in which random labels are dilated, eroded, closed or opened, as nnU-Net does for a cascade.

    Parameters
    ----------
    maps : arrays
        Label maps of one channel.
    labels : sequence of int
        Labels that may change.
    ids : sequence
        Persistent ids of the samples, which the draws depend on.
    seed, epoch : int
        The draws depend on both: a seed in 0 .. 2^64 - 1, and an epoch in 0 .. 2^32 - 1.
    probability, label_probability : float
        Probability that a sample is changed, and that a label of such a sample is.
    radius : (int, int)
        Least and greatest radius of the ball, within 1 to 63.
    layout : str, optional
        Layout of the arrays.

    Returns
    -------
    arrays
        Label maps of the same element type, library and device.

    Raises
    ------
    Error
        If a label is 0, listed twice or not in the range of the element type, or a parameter is out of range.

    Examples
    --------
    >>> labels = np.zeros((1, 8, 8, 8), np.uint8)
    >>> labels[0, 2:6, 2:6, 2:6] = 1
    >>> changed, = st.random_binary_operation([labels], labels=[1], ids=["case 1"], probability=1, label_probability=1)
    >>> changed.shape, int(labels.sum())     # the labels that were given stay as they are
    ((1, 8, 8, 8), 64)
    """
    smallest, largest = radius
    return _disturb("random_binary_operation", maps, labels, [probability, label_probability, smallest, largest], seed, epoch,
                    ids, layout)


def random_component_removal(maps: Any, *, labels: Sequence[int], ids: Any, seed: int = 0, epoch: int = 0,
                             probability: float = .2, label_probability: float = .5, largest_share: float = .15,
                             layout: str | None = None) -> Any:
    """Returns copies of label maps in which a component of random labels is removed, as nnU-Net does for a cascade.

    Parameters
    ----------
    maps, labels, ids, seed, epoch, probability, label_probability, layout
        As in `random_binary_operation`.
    largest_share : float
        Only components of fewer voxels than this share of the volume are removed.

    Returns
    -------
    arrays
        Label maps of the same element type, library and device.

    Raises
    ------
    Error
        If a label is 0, listed twice or not in the range of the element type, or a parameter is out of range.

    Examples
    --------
    >>> labels = np.zeros((1, 8, 8, 8), np.uint8)
    >>> labels[0, 1, 1, 1] = 1
    >>> changed, = st.random_component_removal([labels], labels=[1], ids=["case 1"], probability=1, label_probability=1)
    >>> int(changed.sum())
    0
    """
    return _disturb("random_component_removal", maps, labels, [probability, label_probability, largest_share], seed, epoch,
                    ids, layout)


def mask_image(label_maps: Any, images: Any, *, below: int = 0, value: float = 0.0, channels: Sequence[int] = (),
               layout: str | None = None) -> Any:
    """Returns copies of images with one value wherever the label is below a limit, as nnU-Net masks its inputs.

    Parameters
    ----------
    label_maps : arrays
        Label maps of one channel, of the extents of the images.
    images : arrays
        Images.
    below : int
        Voxels with a label below this are masked.
    value : float
        Value of masked voxels.
    channels : sequence of int
        Channels that are masked; all if empty.
    layout : str, optional
        Layout of the arrays.

    Returns
    -------
    arrays
        Images of the same element type, library and device.

    Raises
    ------
    Error
        If there is not one label map for each image, extents differ, the value is not finite, or neither 0 nor 1 for images of
        bool, or a channel is above 63 or is none of an image.

    Examples
    --------
    >>> labels = np.array([0, 1, 1, 0], np.uint8).reshape(1, 1, 1, 4)
    >>> image = np.array([5, 6, 7, 8], np.float32).reshape(1, 1, 1, 4)
    >>> st.mask_image([labels], [image], below=1, value=-1)[0].ravel().tolist()
    [-1.0, 6.0, 7.0, -1.0]
    """
    stream = stream_of(images)
    maps = Items(label_maps, "mask_image: label maps", layout, stream)
    given = Items(images, "mask_image: images", layout, stream)
    types = [element_type(maps, LABELS), element_type(given, IMAGES)]
    check_bool(given, value, "suture: mask_image: value")
    copies, items = copied(given, "mask_image: images", layout)
    call_function(mask_source("mask_image", types, items.first.on_cuda), numbers=[below, value],
                  lists=[whole_numbers(channels, "suture: mask_image: channels", np.int64)], inputs=[maps], changed=[items], stream=stream)
    return copies


__all__ = ["BoundingBox", "LargestComponent", "TissueMask", "body_mask", "bounding_box", "crop_foreground", "fill_holes",
           "keep_largest_component", "label_components", "mask_image", "random_binary_operation", "random_component_removal",
           "remove_small_components", "tissue_mask"]
check_calls_in(globals())
