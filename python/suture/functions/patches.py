# SPDX-License-Identifier: Apache-2.0
"""Where patches are cut, and what becomes of them: by class, on grids, put together again; tiles of slides."""
from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..backend import call as functions
from ..backend import jit
from ..arrays.batch import Items, output_bound
from ..backend.encode import CPP_TYPES, Encoder
from ..arrays.dlpack import array_of, check_dense, dense, empty_like_library, stream_of
from ..errors import Error
from ..operations.crop_by_class import crop_by_class
from ..operations.operation import AxisIntegers, canonical

STATUS = ("chosen", "class_absent", "anywhere", "empty")


@dataclass(frozen=True)
class Choice:
    """Where a patch begins along (z, y, x), which voxel it is about (-1: none), of which class, and why."""

    start: tuple[int, int, int]
    voxel: int
    of_class: int
    status: str


def _size(value: Any, what: str) -> tuple[int, int, int]:
    return Encoder("zyx", {}, 1).triple(canonical("extent3", value, what, False), "size", what)


@dataclass(frozen=True, kw_only=True)
class pos_neg_patch:
    """About foreground with probability positive / (positive + negative), else about background (MONAI
    RandCropByPosNegLabel)."""

    size: Any
    positive: float = 1.0
    negative: float = 1.0


@dataclass(frozen=True, kw_only=True)
class class_balanced_patch:
    """About a voxel of a class drawn by ratio; without ratios every class but 0 alike (MONAI RandCropByLabelClasses)."""

    size: Any
    ratios: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class oversampled_patch:
    """About a class with `probability`, else anywhere, also beyond the volume (nnU-Net)."""

    size: Any
    margin: Any = 0
    probability: float = 0.33


@dataclass(frozen=True, kw_only=True)
class weighted_patch:
    """About a voxel in proportion to its weight, a map of uint8 or uint16 (MONAI RandWeightedCrop)."""

    size: Any


def _rule(rule: Any, what: str) -> tuple[str, list[float], list[tuple[Any, int]]]:
    """C++ of a rule, from number 0 and list 0 on."""
    size = _size(rule.size, what)
    if isinstance(rule, pos_neg_patch):
        return ("suture::pos_neg_patch{.size = v.x(@), .positive = v.f(@ + 3), .negative = v.f(@ + 4)}",
                [*size, rule.positive, rule.negative], [])
    if isinstance(rule, class_balanced_patch):
        ratios = np.array(list(rule.ratios), np.float32)
        return "suture::class_balanced_patch{.size = v.x(@), .ratios = v.s<float>(#)}", [*size], [(ratios, len(ratios))]
    if isinstance(rule, oversampled_patch):
        margin = Encoder("zyx", {}, 1).triple(canonical("extent3", rule.margin, what, False), "start", what)
        return ("suture::oversampled_patch{.size = v.x(@), .margin = v.x(@ + 3), .probability = v.f(@ + 6)}",
                [*size, *margin, rule.probability], [])
    if isinstance(rule, weighted_patch):
        return "suture::weighted_patch{}", [*size], []
    raise Error(f"{what}: {rule!r} is no rule: pos_neg_patch, class_balanced_patch, oversampled_patch, weighted_patch")


def select_patches(maps: Any, rule: Any, *, ids: Any, classes: int | None = None, images: Any = None, image_threshold: float = 0.0,
                   patches: int = 1, seed: int = 0, epoch: int = 0, forced: Sequence[bool] | None = None, ordinal: int = 0,
                   layout: str | None = None) -> list[Choice]:
    """Where `patches` patches of each sample begin, drawn by the rule from label maps (or weights): patch p of sample i
    is result i * patches + p. The starts are along (z, y, x), for crop_at.

    classes  how many there are, of class_balanced_patch and oversampled_patch; labels are 0 .. classes - 1
    images   with pos_neg_patch: background only where the image is above image_threshold
    forced   one flag for each sample, in place of the rule's probability
    """
    from ..pipeline.identity import ids_of

    what = "suture: select_patches"
    stream = stream_of(maps)
    items = Items(maps, "maps", layout, stream)
    inputs = [items]
    code, numbers, lists = _rule(rule, what)
    code = code.replace("@", "0").replace("#", "2")
    labels = f"abi::views_of<const {CPP_TYPES[items.dtype]}>(r, 0)"
    if isinstance(rule, pos_neg_patch):
        made = f"suture::foreground_background({labels})"
        if images is not None:
            inputs.append(Items(images, "images", layout, stream))
            made = (f"suture::foreground_background({labels}, abi::views_of<const {CPP_TYPES[inputs[1].dtype]}>(r, 1), "
                    f"v.f({len(numbers)}))")
            numbers.append(image_threshold)
    elif isinstance(rule, weighted_patch):
        made = f"suture::weight_map({labels}, v.x(0))"
    else:
        if classes is None:
            raise Error(f"{what}: classes must be given, how many there are")
        made = f"suture::label_classes({labels}, v.i({len(numbers)}))"
        numbers.append(classes)
    at = len(numbers)
    numbers += [patches, ordinal]
    out = np.zeros((items.count * patches, 5), np.int64)
    flags = np.array([] if forced is None else [bool(f) for f in forced], np.uint8)
    body = f"""suture::count_classes(exec, map, table);
    suture::select_patches(exec, {code}, map, table,
        {{.seed = r.seed, .epoch = r.epoch, .sample_ids = {{r.sample_ids, static_cast<std::size_t>(r.samples)}},
         .patches = v.i({at}), .forced = v.s<std::uint8_t>(1), .ordinal = static_cast<std::uint16_t>(v.i({at + 1}))}}, results);"""
    source = functions.executor_source(
        "select_patches", body, items.first.on_cuda, host=["patch/select_patches.hpp"], device=["patch/select_patches.cuh"],
        start=f"const auto map = {made};\n    static_assert(sizeof(suture::patch_choice) == 40);", result="suture::patch_choice",
        table="suture::class_counts_bytes(map)")
    functions.call_there(source, numbers=numbers, lists=[(out, len(out)), (flags, len(flags)), *lists], inputs=inputs, seed=seed,
                         epoch=epoch, ids=ids_of(ids, items.count), stream=stream)
    chosen = []
    for row in out:
        of_class, status = np.array([row[4]], np.int64).view(np.int32)
        chosen.append(Choice((int(row[0]), int(row[1]), int(row[2])), int(row[3]), int(of_class), STATUS[status]))
    return chosen


def _index_source(dtype: str, foreground: bool, cuda: bool, name: str, body: str) -> jit.Source:
    """Of a body that finds `indexes`, one for each label map."""
    made = "foreground_background(views)" if foreground else "label_classes(views, v.i(0))"
    start = f"const auto views = abi::views_of<const {CPP_TYPES[dtype]}>(r, 0);"
    return functions.executor_source(name, f"auto indexes = suture::index_classes(exec, suture::{made});\n    {body}", cuda,
                                     host=["patch/class_index.hpp"], device=["patch/class_index.cuh"], start=start)


def count_classes(maps: Any, *, classes: int, layout: str | None = None) -> np.ndarray:
    """How many voxels of each class 0 .. classes - 1 each map has: (sample, class) of uint64."""
    stream = stream_of(maps)
    items = Items(maps, "maps", layout, stream)
    out = np.zeros((items.count, classes), np.uint64)
    body = """auto* out = const_cast<std::uint64_t*>(v.s<std::uint64_t>(0).data());
    for (const auto& index : indexes)
      for (std::int32_t c = 0; c < v.i(0); ++c) *out++ = index.total(c);"""
    functions.call_there(_index_source(items.dtype, False, items.first.on_cuda, "count_classes", body), numbers=[classes],
                         lists=[(out, out.size)], inputs=[items], stream=stream)
    return out


# crop_by_class: an index for each case, made once.


class _Index:
    """A class_index in C++, freed with this."""

    def __init__(self, module: jit.Module, handle: int) -> None:
        self.handle = handle
        free = module.function("suture_free_index", ctypes.c_void_p)
        free.restype = None
        weakref.finalize(self, free, handle)


_kept: OrderedDict[Any, tuple[_Index, Any]] = OrderedDict()
_MOST_KEPT = 512
_MAKE_INDEXES = """auto** out = const_cast<suture::class_index**>(v.s<suture::class_index*>(0).data());
    auto* foreground = const_cast<std::uint8_t*>(v.s<std::uint8_t>(1).data());
    for (auto& index : indexes) {
      *foreground++ = std::any_of(index.totals() + 1, index.totals() + index.classes(), [](std::uint64_t n) { return n > 0; });
      *out++ = new suture::class_index(std::move(index));
    }"""
# Of each class the first and the last voxel, and those beside them, which are of another.
_LOOK_AGAIN = """auto* unchanged = const_cast<std::uint8_t*>(v.s<std::uint8_t>(1).data());
    const auto maps = abi::views_of<const @>(r, 0);
    for (const suture::class_index* index : v.s<const suture::class_index*>(0)) {
      const auto& map = maps[static_cast<std::size_t>(unchanged - v.s<std::uint8_t>(1).data())];
      const suture::extent3& n = map.grid.extents;
      const auto is_of = [&](std::int64_t at, std::int32_t c) {
        if (at < 0 || at >= n[0] * n[1] * n[2]) return false;
        const auto label = map.data[at / (n[1] * n[2]) * map.stride[0] + at / n[2] % n[1] * map.stride[1] + at % n[2] * map.stride[2]];
        return v.b(1) ? label != 0 : label == c;
      };
      bool same = index != nullptr && index->extents() == n;
      for (std::int32_t c = 1; same && c < index->classes(); ++c) {
        if (index->total(c) == 0) continue;
        const std::int64_t first = index->voxel(c, 0), last = index->voxel(c, index->total(c) - 1);
        same = is_of(first, c) && !is_of(first - 1, c) && is_of(last, c) && !is_of(last + 1, c);
      }
      *unchanged++ = same;
    }"""


@lru_cache(maxsize=None)
def _look_again(dtype: str) -> jit.Source:
    return functions.source(_LOOK_AGAIN.replace("@", CPP_TYPES[dtype]), ["patch/class_index.hpp"], "a look at label maps")


def _seen_as(items: Items, i: int, classes: int, foreground: bool) -> tuple[Any, Any]:
    """The object that holds the labels of sample i, and what they are known by. torch counts what is written to a tensor."""
    a = items.array(i)
    owner = a.owner[0] if isinstance(a.owner, tuple) else a.owner
    try:
        version = getattr(owner, "_version", 0)
    except RuntimeError:  # of inference_mode
        version = 0
    return owner, (id(owner), version, a.pointer + (i * items.step if items.stacked else 0), a.shape, a.strides, classes, foreground)


def _indexes_of(items: Items, classes: int, foreground: bool) -> list[_Index]:
    """One for each sample; of an array that was seen before and holds the same, what was made then."""
    seen = [_seen_as(items, i, classes, foreground) for i in range(items.count)]
    found: list[_Index | None] = []
    for owner, key in seen:
        known = _kept.get(key)
        found.append(known[0] if known is not None and known[1]() is owner else None)
    if any(found) and not items.first.on_cuda:
        unchanged = np.zeros(items.count, np.uint8)
        functions.call(_look_again(items.dtype), numbers=[classes, foreground], inputs=[items],
                       lists=[(np.array([f.handle if f else 0 for f in found], np.uint64), items.count), (unchanged, items.count)])
        found = [f if same else None for f, same in zip(found, unchanged)]
    made: list[_Index] = []
    for i, (index, (owner, key)) in enumerate(zip(found, seen)):
        if index is None:
            index, worth_keeping = _index_of(items, i, classes, foreground)
            if worth_keeping:
                with contextlib.suppress(TypeError):  # what cannot be referred to weakly
                    _kept[key] = (index, weakref.ref(owner))
        if key in _kept:
            _kept.move_to_end(key)
        made.append(index)
    while len(_kept) > _MOST_KEPT:
        _kept.popitem(last=False)
    return made


def _index_of(items: Items, i: int, classes: int, foreground: bool) -> tuple[_Index, bool]:
    """Of sample i, and whether it has any class but 0: without one, nothing would tell that it changes."""
    a = items.array(i)
    source = _index_source(items.dtype, foreground, a.on_cuda, "index_classes", _MAKE_INDEXES)
    source = jit.Source(source.text + "SUTURE_ABI void suture_free_index(void* index) { "
                        "delete static_cast<suture::class_index*>(index); }\n", source.what, source.cuda)
    out, worth_keeping = np.zeros(1, np.uint64), np.zeros(1, np.uint8)
    one = Items.__new__(Items)
    one.records = items.records[:192] if items.stacked else items.records[192 * i:192 * (i + 1)]
    if items.stacked:
        one.records = (a.pointer + i * items.step).to_bytes(8, "little") + one.records[8:]
    one.step, one.count, one.first, one.device, one.what = 0, 1, a, a.device, items.what
    functions.call_there(source, numbers=[classes], lists=[(out, 1), (worth_keeping, 1)], inputs=[one], stream=items.stream)
    return _Index(jit.load(source), int(out[0])), bool(worth_keeping[0])


# Grids of patches, and volumes out of them.


@dataclass(frozen=True)
class PatchGrid:
    """Patches that cover a volume: all combinations of a start along each axis, (z, y, x), x fastest."""

    image: tuple[int, int, int]
    size: tuple[int, int, int]
    starts: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.starts[0]) * len(self.starts[1]) * len(self.starts[2])

    def __getitem__(self, p: int) -> tuple[int, int, int]:
        """Where patch p begins."""
        if not 0 <= p < len(self):
            raise IndexError(p)
        y, x = len(self.starts[1]), len(self.starts[2])
        return self.starts[0][p // (y * x)], self.starts[1][p // x % y], self.starts[2][p % x]


def _grid(code: str, name: str, image: Sequence[int], size: Any, numbers: Sequence[float]) -> PatchGrid:
    n = tuple(int(k) for k in image)
    if len(n) != 3:
        raise Error(f"suture: {name}: extents {n} are not three, along (z, y, x)")
    s = _size(size, f"suture: {name}: size")
    out = np.zeros(3 + sum(n) + 3, np.int64)
    body = f"""const auto grid = {code};
    auto* out = const_cast<std::int64_t*>(v.s<std::int64_t>(0).data());
    for (int k = 0; k < 3; ++k) {{
      *out++ = grid.along(k);
      for (const std::int64_t start : grid.starts[k]) *out++ = start;
    }}"""
    functions.call(functions.source(body, ["patch/patch_grid.hpp"], name), numbers=[*n, *s, *numbers], lists=[(out, out.size)])
    starts, at = [], 0
    for _ in range(3):
        count = int(out[at])
        starts.append(tuple(int(k) for k in out[at + 1:at + 1 + count]))
        at += 1 + count
    return PatchGrid(n, s, tuple(starts))  # type: ignore[arg-type]


def dense_patch_grid(image: Sequence[int], size: Any, *, overlap: Any = 0.25) -> PatchGrid:
    """Patches over extents along (z, y, x), as MONAI's sliding_window_inference lays them."""
    o = Encoder("zyx", {}, 1).triple(canonical("point3", overlap, "suture: dense_patch_grid: overlap", False), "overlap", "suture")
    return _grid("suture::dense_patch_grid(v.x(0), v.x(3), v.p(6))", "dense_patch_grid", image, size, o)


def sliding_window_grid(image: Sequence[int], size: Any, *, step: float = 0.5) -> PatchGrid:
    """The fewest patches no more than size * step apart, evenly spread, as nnU-Net lays them."""
    return _grid("suture::sliding_window_grid(v.x(0), v.x(3), v.d(6))", "sliding_window_grid", image, size, [step])


WINDOWS = {"constant": "constant_window", "gaussian": "gaussian_window", "nnunet": "sliding_window_gaussian"}


def _dense_items(given: Any, key: str, layout: str, stream: int, dtype: str | None = None) -> Items:
    items = Items(dense(given, dtype), key, layout, stream)
    check_dense(items.first, items.what, dtype)
    return items


def reassemble(grid: PatchGrid, patches: Any, *, window: str = "gaussian", coverage: Any = None, outside: float = 0.0) -> Any:
    """A volume (channel, z, y, x) of float32 from its patches (patch, channel, z, y, x), of their library and on their
    device: every voxel the weighted mean of the patches that cover it. window "constant", "gaussian" (MONAI) or "nnunet"; coverage (patch, z, y, x), where patches cover
    their voxels in part."""
    if window not in WINDOWS:
        raise Error(f"suture: reassemble: window {window!r} is none of {', '.join(WINDOWS)}")
    what = "suture: reassemble"
    stream = stream_of(patches)
    inputs = [_dense_items(patches, "patches", "NCZYX", stream)]
    a = inputs[0].first
    if a.shape[0] != len(grid) or a.shape[2:] != grid.size:
        raise Error(f"{what}: patches of shape {a.shape}, ({len(grid)}, channels, *{grid.size}) is what the grid has")
    extra, tail = "", ");"
    if coverage is not None:
        inputs.append(_dense_items(coverage, "coverage", "NZYX", stream, "float32"))
        if inputs[1].first.shape != (len(grid), *grid.size):
            raise Error(f"{what}: coverage of shape {inputs[1].first.shape}, ({len(grid)}, *{grid.size}) is what the grid has")
        extra, tail = "{abi::views_of<const float>(r, 1)[0].data, 1, 0, v.l(7)}, ", ", 0, v.f(8));"
    out = empty_like_library(a.library, (a.shape[1], *grid.image), "float32", a, what)
    start = f"""suture::patch_grid grid{{v.x(0), v.x(3), {{}}}};
    for (int k = 0; k < 3; ++k) {{
      const auto starts = v.s<std::int64_t>(k);
      grid.starts[k].assign(starts.begin(), starts.end());
    }}
    const suture::patch_tensor<{CPP_TYPES[a.dtype]}> patches{{abi::views_of<const {CPP_TYPES[a.dtype]}>(r, 0)[0].data, v.l(6), 0, v.l(7)}};"""
    body = f"""suture::reassemble(exec, grid, suture::{WINDOWS[window]}(grid.size), patches, {extra}
                       abi::views_of<float>(r, {len(inputs)})[0]{tail}"""
    source = functions.executor_source("reassemble", body, a.on_cuda, host=["patch/reassemble.hpp"], device=["patch/reassemble.cuh"],
                                       start=start, workspace="suture::workspace_bytes(grid)")
    functions.call_there(source, numbers=[*grid.image, *grid.size, a.shape[1], len(grid), outside], samples=1, inputs=inputs,
                         lists=[(np.array(s, np.int64), len(s)) for s in grid.starts], stream=stream,
                         outputs=[output_bound([array_of(out, what, stream)], "czyx", False)])
    return out


def average(restored: Any, coverage: Any, *, outside: float, least: float = 1e-3) -> tuple[Any, Any]:
    """The mean of predictions (volume, channel, z, y, x) that were brought back, and how far it is covered: sum of the
    volumes over the sum of their coverages (volume, z, y, x). Both are of the library that the predictions came from."""
    what = "suture: average"
    stream = stream_of(restored)
    inputs = [_dense_items(restored, "restored", "NCZYX", stream), _dense_items(coverage, "coverage", "NZYX", stream, "float32")]
    a = inputs[0].first
    if inputs[1].first.shape != (a.shape[0], *a.shape[2:]):
        raise Error(f"{what}: volumes of shape {a.shape} with coverages of shape {inputs[1].first.shape}; "
                    "(volume, channel, z, y, x) and (volume, z, y, x) are needed")
    out, covered = (empty_like_library(a.library, shape, "float32", a, what) for shape in (a.shape[1:], a.shape[2:]))
    body = f"""suture::average(exec,
        suture::patch_tensor<{CPP_TYPES[a.dtype]}>{{abi::views_of<const {CPP_TYPES[a.dtype]}>(r, 0)[0].data, v.l(0), 0, v.l(1)}},
        suture::patch_tensor<float>{{abi::views_of<const float>(r, 1)[0].data, 1, 0, v.l(1)}}, abi::views_of<float>(r, 2)[0],
        {{.least = v.f(2), .outside = v.f(3)}}, abi::views_of<float>(r, 3)[0]);"""
    source = functions.executor_source("average", body, a.on_cuda, host=["patch/average.hpp"], device=["patch/average.cuh"])
    functions.call_there(source, numbers=[a.shape[1], a.shape[0], least, outside], samples=1, inputs=inputs, stream=stream,
                         outputs=[output_bound([array_of(out, what, stream)], "czyx", False),
                                  output_bound([array_of(covered, what, stream)], "zyx", False)])
    return out, covered


# Tiles of slides.


@dataclass(frozen=True)
class SlideLevel:
    """A level of a slide; `downsample` is pixels of level 0 for one of this."""

    height: int
    width: int
    downsample: float = 1.0


@dataclass(frozen=True)
class SlideLayout:
    """The levels of a slide, the largest first, and micrometers for a pixel of level 0."""

    levels: tuple[SlideLevel, ...]
    mpp: float


@dataclass(frozen=True)
class Tile:
    """A square to read: `size` pixels of `level` from level-0 pixel (y, x) on; `scale` of them for one of the tile."""

    y: int
    x: int
    level: int
    size: int
    scale: float
    tissue: float


def _layout(slide: SlideLayout) -> tuple[str, list[float], list[tuple[Any, int]]]:
    flat = np.array([[level.height, level.width, level.downsample] for level in slide.levels], np.float64)
    code = """suture::slide_layout slide{{}, v.d(0)};
    const auto levels = v.s<double>(0);
    for (std::size_t k = 0; k + 2 < levels.size(); k += 3)
      slide.levels.push_back({static_cast<std::int64_t>(levels[k]), static_cast<std::int64_t>(levels[k + 1]), levels[k + 2]});
    """
    return code, [slide.mpp], [(flat, flat.size)]


def _tiles(code: str, name: str, slide: SlideLayout, mask: Any, options: Sequence[float], room: int, more: Sequence[float] = (),
           seed: int = 0, epoch: int = 0, ids: Any = None) -> list[Tile]:
    start, numbers, lists = _layout(slide)
    tissue = np.ascontiguousarray(mask, np.uint8)
    if tissue.ndim != 2:
        raise Error(f"suture: {name}: a mask of shape {tissue.shape}; (y, x) is needed")
    out = np.zeros((room, 6), np.float64)
    count = np.zeros(1, np.int64)
    items = Items([tissue], "mask", "HW", None)
    body = f"""{start}const suture::mask_area area(slide, abi::views_of<const std::uint8_t>(r, 0)[0]);
    const suture::tile_options options{{v.l(1), v.l(2), v.d(3), v.d(4), v.b(5)}};
    const auto tiles = {code};
    auto* out = const_cast<double*>(v.s<double>(1).data());
    const auto room = static_cast<std::size_t>(v.s<double>(1).size()) / 6;
    *const_cast<std::int64_t*>(v.s<std::int64_t>(2).data()) = static_cast<std::int64_t>(tiles.size());
    for (std::size_t i = 0; i < tiles.size() && i < room; ++i) {{
      const auto& t = tiles[i];
      const double row[6] = {{static_cast<double>(t.region.y), static_cast<double>(t.region.x), static_cast<double>(t.region.level),
                             static_cast<double>(t.region.size), t.region.scale, t.tissue}};
      for (int k = 0; k < 6; ++k) out[6 * i + static_cast<std::size_t>(k)] = row[k];
    }}"""
    functions.call(functions.source(body, ["patch/tile_list.hpp"], name), numbers=[*numbers, *options, *more],
                   lists=[*lists, (out, out.size), (count, 1)], inputs=[items], seed=seed, epoch=epoch, ids=ids)
    if count[0] > room:
        return _tiles(code, name, slide, mask, options, int(count[0]), more, seed, epoch, ids)
    return [Tile(int(t[0]), int(t[1]), int(t[2]), int(t[3]), float(t[4]), float(t[5])) for t in out[:count[0]]]


def grid_tiles(slide: SlideLayout, mask: Any, *, size: int = 256, stride: int = 0, mpp: float = 0.5, least_tissue: float = 0.5,
               partial: bool = False) -> list[Tile]:
    """The tiles of a grid over a slide with enough tissue, by rows. `mask` (y, x) covers the whole slide."""
    return _tiles("suture::grid_tiles(slide, area, options)", "grid_tiles", slide, mask, [size, stride, mpp, least_tissue, partial],
                  4096)


def random_tiles(slide: SlideLayout, mask: Any, *, slide_id: Any, count: int, seed: int = 0, epoch: int = 0, size: int = 256,
                 mpp: float = 0.5, least_tissue: float = 0.5) -> list[Tile]:
    """`count` tiles about places drawn uniformly from the tissue; fewer where too little of it is found."""
    from ..pipeline.identity import ids_of

    return _tiles("suture::random_tiles(slide, area, options, {r.seed, r.epoch, r.sample_ids[0], v.l(6)})", "random_tiles", slide,
                  mask, [size, 0, mpp, least_tissue, False], max(count, 1), [count], seed, epoch, ids_of([slide_id], 1))


__all__ = ["Choice", "PatchGrid", "SlideLayout", "SlideLevel", "Tile", "average", "class_balanced_patch", "count_classes",
           "crop_by_class", "dense_patch_grid", "grid_tiles", "oversampled_patch", "pos_neg_patch", "random_tiles", "reassemble",
           "select_patches", "sliding_window_grid", "weighted_patch"]
