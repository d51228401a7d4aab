# SPDX-License-Identifier: Apache-2.0
"""Masks: made, cleaned, measured. Images and masks are given and returned as lists, or as one stacked array, of the library
and on the device that they came from."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backend import call as functions
from ..arrays.batch import Items, output_bound
from ..backend.encode import CPP_TYPES, Encoder
from ..arrays.dlpack import array_of, copy_of, empty_like_library, stream_of
from ..backend.plain import call_plain
from ..errors import Error
from .axes import voxels_zyx
from ..operations.operation import Operation, canonical
from ..operations.generated import crop, pad
from ..arrays.volume import Volume


@dataclass(frozen=True)
class LargestComponent:
    """The largest component of a mask; `voxels` is 0 where the mask is empty."""

    empty: bool
    voxels: int


@dataclass(frozen=True)
class BoundingBox:
    """Voxels first .. last along (z, y, x), both inside."""

    empty: bool
    first: tuple[int, int, int]
    last: tuple[int, int, int]


@dataclass(frozen=True)
class TissueMask:
    """How a tissue mask came about: the level of Otsu, -1 for the rule luminosity, and its pixels."""

    empty: bool
    threshold: int
    pixels: int


CONNECTIVITY = ("faces", "edges", "corners")
SHAPES = ("box", "cross", "ball")


def _choice(value: str, names: Sequence[str], what: str) -> int:
    if value not in names:
        raise Error(f"suture: {what}: {value!r} is none of {', '.join(names)}")
    return names.index(value)


def _outputs(items: Items, dtype: str) -> tuple[Any, tuple[bytes, int, int]]:
    """Arrays of one channel, of the shapes, the library and the device of the inputs."""
    letters, like = items.letters, items.first
    plain = []
    for a in [like] if items.stacked else items.arrays:
        shape = list(a.shape)
        if "c" in letters:
            shape[letters.index("c") - len(letters)] = 1
        plain.append(empty_like_library(like.library, tuple(shape), dtype, like, items.what))
    bound = output_bound([array_of(p, items.what, items.stream) for p in plain], letters, items.stacked)
    if items.stacked:
        return plain[0], bound
    return _as_given(items, plain), bound


def _as_given(items: Items, arrays: list[Any]) -> list[Any]:
    """Volumes for Volumes."""
    if items.volumes and items.grids:
        return [Volume(a, axes=items.order, grid=g) for a, g in zip(arrays, items.grids)]
    return arrays


def _copied(items: Items, name: str, layout: str | None) -> tuple[Any, Items]:
    """Copies of images, which are then changed where they lie."""
    copies = [copy_of(a, items.what, items.stream) for a in ([items.first] if items.stacked else items.arrays)]
    given = copies[0] if items.stacked else _as_given(items, copies)
    return given, Items(given, name, layout, items.stream)


def _needs(name: str) -> str:
    """C++ of the bytes that an operation on masks works in."""
    return f"suture::workspace_bytes(suture::mask_work::{name}{{}}, in)"


def _run(name: str, header: str, given: Any, code: str, out_dtype: str | None, result: tuple[str, Any, int] | None = None, *,
         layout: str | None, numbers: Sequence[float] = (), start: str = "", workspace: str = "") -> tuple[Any, np.ndarray]:
    """What is written of each image, and what is found: (C++ type, element type, elements of one)."""
    items = given if isinstance(given, Items) else Items(given, name, layout, stream_of(given))
    output, bound = (None, []) if out_dtype is None else _outputs(items, out_dtype)
    lines = [f"const auto in = abi::views_of<const {CPP_TYPES[items.dtype]}>(r, 0);"]
    if out_dtype is not None:
        lines.append(f"const auto out = abi::views_of<{CPP_TYPES[out_dtype]}>(r, 1);")
    cpp, kind, elements = result or ("", np.uint8, 0)
    found = np.zeros((items.count, elements), kind)
    made = functions.executor_source(name, code, items.first.on_cuda, host=[header], device=["mask/loops.cuh"],
                                     start="\n    ".join([*lines, start]).rstrip(), result=cpp, workspace=workspace or _needs(name))
    functions.call_there(made, numbers=numbers, lists=[(found, items.count)] if result else [], inputs=[items],
                         outputs=[bound] if bound else [], stream=items.stream)
    return output, found


_LARGEST = ("suture::largest_component_result", np.uint32, 2)


def body_mask(images: Any, *, threshold: float = -300.0, opening_radius: int = 0,
              layout: str | None = None) -> tuple[Any, list[LargestComponent]]:
    """The patient in CT volumes, without air and, with an opening, without table: uint8 masks, and what was found."""
    masks, found = _run("body_mask", "mask/body_mask.hpp", images,
                        "suture::body_mask(exec, in, out, results, {.threshold = v.f(0), .opening_radius = v.l(1)});", "uint8",
                        _LARGEST, layout=layout, numbers=[threshold, opening_radius])
    return masks, [LargestComponent(bool(s), int(n)) for s, n in found]


def bounding_box(images: Any, *, threshold: float = 0.0, layout: str | None = None) -> list[BoundingBox]:
    """The smallest box of every voxel with any channel above a threshold."""
    _, found = _run("bounding_box", "mask/bounding_box.hpp", images, "suture::bounding_box(exec, in, results, v.f(0));", None,
                    ("suture::bounding_box_result", np.int32, 7), layout=layout, numbers=[threshold])
    return [BoundingBox(bool(f[0]), (int(f[1]), int(f[2]), int(f[3])), (int(f[4]), int(f[5]), int(f[6]))) for f in found]


def crop_foreground(found: BoundingBox, extents: Sequence[int], *, margin: Any = 0, divisible_by: Any = 1,
                    allow_smaller: bool = True) -> list[Operation]:
    """The geometry that crops an image of so many voxels along (z, y, x) to a bounding box: box_crop, which may leave it.

    margin         voxels added on both sides
    divisible_by   each size is raised to a multiple, half of what is added in front
    allow_smaller  the box ends where the image does; without, it may leave the image
    """
    what = "suture: crop_foreground"
    numbers = [*extents, found.empty, *found.first, *found.last, *voxels_zyx(margin, f"{what}: margin", "start"),
               *voxels_zyx(divisible_by, f"{what}: divisible_by", "start"), allow_smaller]
    places, sizes = np.zeros((1, 3), np.int64), np.zeros((1, 3), np.int64)
    call_plain("crop_foreground", numbers=numbers, results=[places, sizes])
    start, size = places[0].tolist(), sizes[0].tolist()
    before = [max(-s, 0) for s in start]
    after = [max(s + n - e, 0) for s, n, e in zip(start, size, extents)]
    names = "zyx"
    steps: list[Operation] = []
    if any(before) or any(after):
        steps.append(pad(before=dict(zip(names, before)), after=dict(zip(names, after))))
    return [*steps, crop(start=dict(zip(names, [s + b for s, b in zip(start, before)])), size=dict(zip(names, size)))]


def label_components(masks: Any, *, connectivity: str = "faces", layout: str | None = None) -> tuple[Any, list[int]]:
    """Connected components numbered 1, 2, ... in the order of their first voxels: int32 maps, and how many there are."""
    k = _choice(connectivity, CONNECTIVITY, "label_components: connectivity") + 1
    maps, counts = _run("label_components", "mask/components.hpp", masks,
                        "suture::label_components(exec, in, out, v.e<suture::connectivity>(0), results);", "int32",
                        ("std::uint32_t", np.uint32, 1), layout=layout, numbers=[k])
    return maps, [int(n) for n, in counts]


def keep_largest_component(masks: Any, *, connectivity: str = "faces",
                           layout: str | None = None) -> tuple[Any, list[LargestComponent]]:
    """1 where the largest connected component is, else 0."""
    k = _choice(connectivity, CONNECTIVITY, "keep_largest_component: connectivity") + 1
    kept, found = _run("keep_largest_component", "mask/components.hpp", masks,
                       "suture::keep_largest_component(exec, in, out, v.e<suture::connectivity>(0), results);", "uint8", _LARGEST,
                       layout=layout, numbers=[k])
    return kept, [LargestComponent(bool(s), int(n)) for s, n in found]


def remove_small_components(masks: Any, *, least: int, connectivity: str = "faces", layout: str | None = None) -> Any:
    """Keeps the connected components of at least `least` voxels."""
    k = _choice(connectivity, CONNECTIVITY, "remove_small_components: connectivity") + 1
    return _run("remove_small_components", "mask/components.hpp", masks,
                "suture::remove_small_components(exec, in, out, v.e<suture::connectivity>(0), v.l(1));", "uint8",
                layout=layout, numbers=[k, least])[0]


def fill_holes(masks: Any, *, enclosed: str = "volume", layout: str | None = None) -> Any:
    """Fills background that is enclosed in all directions ("volume"), or within its slice across z ("slices")."""
    items = masks[0] if isinstance(masks, (list, tuple)) else masks
    if enclosed == "slices" and isinstance(items, Volume) and items.axes[0] != "z":
        raise Error(f"suture: fill_holes: slices are those along the first axis, and that of {items.axes!r} is not z; "
                    "pass arrays whose first axis is z")
    k = _choice(enclosed, ("volume", "slices"), "fill_holes: enclosed")
    return _run("fill_holes", "mask/fill_holes.hpp", masks, "suture::fill_holes(exec, in, out, v.e<suture::hole_filling>(0));",
                "uint8", layout=layout, numbers=[k])[0]


def _morphology(name: str, masks: Any, shape: str, radius: Any, border_value: bool, layout: str | None) -> Any:
    r = Encoder("zyx", {}, 1).triple(canonical("extent3", radius, f"suture: {name}: radius", False), "radius", f"suture: {name}")
    return _run(name, "mask/morphology.hpp", masks,
                f"suture::{name}(exec, in, out, {{v.e<suture::element_shape>(0), v.x(1)}}, v.b(4));", "uint8", layout=layout,
                numbers=[_choice(shape, SHAPES, f"{name}: shape"), *r, border_value])[0]


def binary_erosion(masks: Any, *, shape: str = "cross", radius: Any = 1, border_value: bool = False, layout: str | None = None) -> Any:
    """1 where every voxel of the element is set; `radius` by the name of the axis where it differs."""
    return _morphology("binary_erosion", masks, shape, radius, border_value, layout)


def binary_dilation(masks: Any, *, shape: str = "cross", radius: Any = 1, border_value: bool = False, layout: str | None = None) -> Any:
    """1 where any voxel of the element is set."""
    return _morphology("binary_dilation", masks, shape, radius, border_value, layout)


def binary_opening(masks: Any, *, shape: str = "cross", radius: Any = 1, border_value: bool = False, layout: str | None = None) -> Any:
    """Erosion, then dilation."""
    return _morphology("binary_opening", masks, shape, radius, border_value, layout)


def binary_closing(masks: Any, *, shape: str = "cross", radius: Any = 1, border_value: bool = False, layout: str | None = None) -> Any:
    """Dilation, then erosion."""
    return _morphology("binary_closing", masks, shape, radius, border_value, layout)


def _gray(name: str, images: Any, shape: str, radius: Any, border_value: float | None, layout: str | None) -> Any:
    items = Items(images, name, layout, stream_of(images))
    r = Encoder("zyx", {}, 1).triple(canonical("extent3", radius, f"suture: {name}: radius", False), "radius", f"suture: {name}")
    if items.channels != 1:
        raise Error(f"suture: {name}: images have {items.channels} channels; one is needed")
    return _run(name, "mask/gray_morphology.hpp", items,
                f"suture::{name}(exec, in, out, element, v.b(4) ? std::optional<double>(v.d(5)) : std::nullopt);", items.dtype,
                start="const suture::structuring_element element{v.e<suture::element_shape>(0), v.x(1)};",
                workspace=f"suture::workspace_bytes(suture::mask_work::{name}{{element}}, in)", layout=layout,
                numbers=[_choice(shape, SHAPES, f"{name}: shape"), *r, border_value is not None, border_value or 0.0])[0]


def gray_erosion(images: Any, *, shape: str = "cross", radius: Any = 1, border_value: float | None = None,
                 layout: str | None = None) -> Any:
    """The least value of the element; voxels outside are left out, or are `border_value`."""
    return _gray("gray_erosion", images, shape, radius, border_value, layout)


def gray_dilation(images: Any, *, shape: str = "cross", radius: Any = 1, border_value: float | None = None,
                  layout: str | None = None) -> Any:
    """The greatest value of the element."""
    return _gray("gray_dilation", images, shape, radius, border_value, layout)


def tissue_mask(tiles: Any, *, rule: str = "gray", luminosity: float = 80.0, least_size: int = 0, dilation_radius: int = 0,
                layout: str | None = None) -> tuple[Any, list[TissueMask]]:
    """Tissue on thumbnails of slides, uint8 RGB: masks, and how they came about."""
    masks, found = _run("tissue_mask", "mask/tissue_mask.hpp", tiles,
                        "suture::tissue_mask(exec, in, out, results, {.rule = v.e<suture::tissue_rule>(0), .luminosity = v.f(1), "
                        ".least_size = v.l(2), .dilation_radius = v.l(3)});", "uint8",
                        ("suture::tissue_mask_result", np.int32, 3), layout=layout,
                        numbers=[_choice(rule, ("gray", "saturation", "luminosity"), "tissue_mask: rule"), luminosity, least_size,
                                 dilation_radius])
    return masks, [TissueMask(bool(s), int(t), int(n)) for s, t, n in found]


def _disturb(name: str, members: str, maps: Any, labels: Sequence[int], numbers: Sequence[float], seed: int, epoch: int,
             ids: Any, layout: str | None) -> Any:
    from ..pipeline.identity import ids_of

    given, items = _copied(Items(maps, name, layout, stream_of(maps)), name, layout)
    wanted = np.array(list(labels), np.int32)
    start = f"""const auto in = abi::views_of<{CPP_TYPES[items.dtype]}>(r, 0);
    const suture::{name} rule{{.labels = v.s<std::int32_t>(0), {members}}};"""
    body = """suture::disturb_labels(exec, rule, in, {.seed = r.seed, .epoch = r.epoch,
        .sample_ids = {r.sample_ids, static_cast<std::size_t>(r.samples)}});"""
    made = functions.executor_source(name, body, items.first.on_cuda, host=["mask/label_perturbation.hpp"], device=["mask/loops.cuh"],
                                     start=start, workspace=_needs("disturb_labels"))
    functions.call_there(made, numbers=numbers, lists=[(wanted, len(wanted))], inputs=[items], seed=seed, epoch=epoch,
                         ids=ids_of(ids, items.count), stream=items.stream)
    return given


def random_binary_operation(maps: Any, *, labels: Sequence[int], ids: Any, seed: int = 0, epoch: int = 0, probability: float = .4,
                            label_probability: float = .5, radius: tuple[int, int] = (1, 8), layout: str | None = None) -> Any:
    """Copies of label maps whose labels are grown, shrunk, closed or opened by chance, as nnU-Net does for a cascade."""
    return _disturb("random_binary_operation", ".probability = v.f(0), .label_probability = v.f(1), .smallest_radius = v.l(2), "
                    ".largest_radius = v.l(3)", maps, labels, [probability, label_probability, *radius], seed, epoch, ids, layout)


def random_component_removal(maps: Any, *, labels: Sequence[int], ids: Any, seed: int = 0, epoch: int = 0, probability: float = .2,
                             label_probability: float = .5, largest_share: float = .15, layout: str | None = None) -> Any:
    """Copies of label maps that miss a component of some labels by chance."""
    return _disturb("random_component_removal", ".probability = v.f(0), .label_probability = v.f(1), .largest_share = v.d(2)", maps,
                    labels, [probability, label_probability, largest_share], seed, epoch, ids, layout)


def mask_image(label_maps: Any, images: Any, *, below: int = 0, value: float = 0.0, channels: Sequence[int] = (),
               layout: str | None = None) -> Any:
    """Copies of images that read `value` where the label is below `below`, in all channels or in some (nnU-Net)."""
    stream = stream_of(images)
    maps = Items(label_maps, "mask_image: label maps", layout, stream)
    given, items = _copied(Items(images, "mask_image: images", layout, stream), "mask_image: images", layout)
    wanted = np.array(list(channels), np.int64)
    start = f"""const auto images = abi::views_of<{CPP_TYPES[items.dtype]}>(r, 0);
    const auto maps = abi::views_of<const {CPP_TYPES[maps.dtype]}>(r, 1);"""
    body = """suture::mask_image(exec, maps, images, {.below = v.i(0), .value = v.f(1), .channels = v.s<std::int64_t>(0)});"""
    made = functions.executor_source("mask_image", body, items.first.on_cuda, host=["mask/mask_image.hpp"], device=["mask/loops.cuh"],
                                     start=start)
    functions.call_there(made, numbers=[below, value], lists=[(wanted, len(wanted))], inputs=[items, maps], stream=stream)
    return given


__all__ = ["BoundingBox", "LargestComponent", "TissueMask", "binary_closing", "binary_dilation", "binary_erosion",
           "binary_opening", "body_mask", "bounding_box", "crop_foreground", "fill_holes", "gray_dilation", "gray_erosion",
           "keep_largest_component", "label_components", "mask_image", "random_binary_operation", "random_component_removal",
           "remove_small_components", "tissue_mask"]
