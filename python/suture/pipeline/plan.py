# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a chain for each image over one shared geometry, and what moves along: labels, boxes, points."""
from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..backend import jit
from ..arrays.batch import VIEW_BYTES, Items, bound_of, first_extents, item_shape, output_bound, unpack_grids
from ..backend.encode import CPP_TYPES, Encoded, Encoder, ReadByKernels
from ..backend.request import Request
from ..arrays.cuda import DeviceArray
from ..arrays.dlpack import Array, array_of, device_name, empty_like_library, memory_like, stream_of
from ..errors import Error
from ..operations.templates import DTYPES, dtype_name
from .identity import Repeats, check_draws, ids_of, told
from ..operations.operation import Operation, chain_of, operation_from_json
from ..arrays.volume import Grid, Volume

_MAIN = os.getpid()
# Geometry that leaves a size that does not depend on the input.
_FIXED = {"crop", "center_crop", "random_crop", "crop_at", "crop_or_pad", "crop_by_class"}
# Geometry that leaves the size as it is.
_KEEPS = {"identity", "flip", "random_flip", "affine", "affine_matrix", "random_affine", "random_scale", "elastic",
          "random_elastic"}


@dataclass(frozen=True)
class labels:
    """A label map that moves along: integers, read by the rule `labels` of sampling.

    dtype    what is stored: None keeps the type, "int64" is what cross entropy wants
    convert  remap, one_hot or regions, applied as labels are stored
    levels   scales of deep supervision, each one number or one for each axis; the result is a list, the full map first
    assume_integral   float labels on a GPU are taken for whole numbers without looking
    """

    dtype: Any = None
    convert: Operation | None = None
    levels: tuple[Any, ...] = ()
    assume_integral: bool = False

    def __post_init__(self) -> None:
        if self.dtype is not None:
            object.__setattr__(self, "dtype", dtype_name(self.dtype, "suture: labels: dtype", ("int64", "bool")))
        if self.convert is not None and getattr(self.convert, "_role", "") != "label":
            raise Error(f"suture: labels: convert {self.convert!r} is none of remap, one_hot, regions")
        from ..operations.operation import canonical

        object.__setattr__(self, "levels", tuple(canonical("point3", s, "suture: labels: levels", False) for s in self.levels))


@dataclass(frozen=True)
class boxes:
    """Boxes that move along, edge coordinates: voxel i covers [i, i + 1). `format` names the columns, "zyxzyx": the low
    corner, then the high one."""

    format: str = "zyxzyx"
    least_visible: float = 0.0
    least_thickness: float = 1.0

    def __post_init__(self) -> None:
        if self.format not in ("zyxzyx", "xyzxyz", "yxyx", "xyxy"):
            raise Error(f'suture: boxes: format {self.format!r} is none of "zyxzyx", "xyzxyz", "yxyx", "xyxy"')


@dataclass(frozen=True)
class points:
    """Points that move along: continuous indices in voxels (unit="index") or millimeters, LPS (unit="mm"), columns as
    `format` names them."""

    unit: str = "index"
    format: str = "zyx"

    def __post_init__(self) -> None:
        if self.unit not in ("index", "mm"):
            raise Error(f'suture: points: unit {self.unit!r} is neither "index" nor "mm"')
        if self.format not in ("zyx", "xyz", "yx", "xy"):
            raise Error(f'suture: points: format {self.format!r} is none of "zyx", "xyz", "yx", "xy"')


def default_threads() -> int:
    """0, all of OpenMP, in the process that imported this; one in its workers, which share the processor."""
    if os.getpid() != _MAIN or multiprocessing.parent_process() is not None:
        return 1
    return 0


class Pipeline:
    """Value operations of each image over one geometry, and the roles of everything else in a batch.

    Pipeline(image=[window(center=40, width=400), random_crop(size=96)], seg=labels())

    layout   of arrays, where shapes could be read in several ways: "NHWC", "NCHW", "ZYX"
    A list is the chain of an image; labels(...), boxes(...) and points(...) move along.
    """

    def __init__(self, *, layout: str | None = None, **roles: Any) -> None:
        self.layout = layout
        self.images: dict[str, tuple[Operation, ...]] = {}
        self.labels: dict[str, labels] = {}
        self.boxes: dict[str, boxes] = {}
        self.points: dict[str, points] = {}
        for key, role in roles.items():
            if role is None:
                continue
            if isinstance(role, labels):
                self.labels[key] = role
            elif isinstance(role, boxes):
                self.boxes[key] = role
            elif isinstance(role, points):
                self.points[key] = role
            else:
                self.images[key] = chain_of(role)
        if not self.images:
            raise Error("suture: Pipeline: there is no image; give the chain of one, image=[...]")
        if layout is not None:
            from ..arrays.batch import read_layout

            read_layout(layout)
        chains = list(self.images.items())
        for key, chain in chains:
            for i, op in enumerate(chain):
                if op._role == "label":
                    raise Error(f"suture: Pipeline: {key}: {op.name} converts labels: {key}=labels(convert={op.name}(...))")
                if op.name == "cast" and i + 1 < len(chain):
                    raise Error(f"suture: Pipeline: {key}: cast is the last of a chain, behind it is {chain[i + 1].name}")
            if geometry_of(chain) != geometry_of(chains[0][1]):
                raise Error(f"suture: Pipeline: {key} and {chains[0][0]} have different geometry, and one batch moves through "
                            f"one: {[o.name for o in geometry_of(chain)]} and {[o.name for o in geometry_of(chains[0][1])]}")
        for op in chains[0][1]:
            if op.name == "crop_by_class" and op.labels not in self.labels:  # type: ignore[attr-defined]
                raise Error(f"suture: Pipeline: crop_by_class reads {op.labels!r}, "  # type: ignore[attr-defined]
                            "which is no labels(...) of the pipeline")
        self._compiled: dict[Any, _Compiled] = {}
        self._encoded: dict[Any, Encoded] = {}
        self._varying = {key: any(_varies(op) for op in chain) for key, chain in chains}
        self._fixed = self._is_fixed()
        self.is_random = any(_draws(op) for _, chain in chains for op in chain)
        self._repeats = Repeats()

    # A pipeline is its roles: it is pickled, copied and compared by them.

    def roles(self) -> dict[str, Any]:
        return {**self.images, **self.labels, **self.boxes, **self.points}

    def __reduce__(self) -> Any:
        return _remade, (self.layout, self.roles())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and (self.layout, self.roles()) == (other.layout, other.roles())

    def __hash__(self) -> int:
        return hash((self.layout, tuple(self.images.items())))

    def __repr__(self) -> str:
        parts = [f"layout={self.layout!r}"] if self.layout else []
        return f"Pipeline({', '.join([*parts, *(f'{k}={list(v) if isinstance(v, tuple) else v!r}' for k, v in self.roles().items())])})"

    @property
    def fixed_size(self) -> bool:
        """Whether all samples come out in one shape, whatever goes in: the result is then one array."""
        return self._fixed

    def _is_fixed(self) -> bool:
        fixed = False
        for op in geometry_of(next(iter(self.images.values()))):
            if op.name in _FIXED:
                fixed = True
            elif op.name in _KEEPS or op.name == "sampling" or (op.name == "pad" and fixed):
                continue
            elif op.name == "pad_to" and fixed:
                continue
            else:
                fixed = False
        return fixed

    def plan(self, batch: Any, *, seed: int = 0, epoch: int | None = None, ids: Any = None, training: bool = True,
             threads: int | None = None, same_ids: bool = False, stream: int | None = None) -> Plan:
        """Draws and checks for a batch; run() of what it returns makes the voxels.

        ids     of the samples, strings or whole numbers; those of batch["id"] where none are given
        epoch   that of the draws, 0 by default; a warning says once when a sample comes back and no epoch was named
        """
        check_draws(seed, epoch or 0)
        made = Plan(self, batch, seed, epoch or 0, ids, training, threads, same_ids, stream)
        if epoch is None and training and made.ids and self.is_random:
            self._repeats.look(seed, made.ids, "Pass epoch=, or use suture.Augment and its set_epoch")
        return made

    def __call__(self, batch: Any, *, out: Any = None, **settings: Any) -> Any:
        """plan(batch, ...).run(out)"""
        return self.plan(batch, **settings).run(out)

    def to_json(self) -> dict[str, Any]:
        """Everything that makes the pipeline, of what JSON has."""
        roles: dict[str, Any] = {}
        for key, chain in self.images.items():
            roles[key] = [op.to_json() for op in chain]
        for key, role in self.labels.items():
            roles[key] = {"labels": {"dtype": role.dtype, "convert": role.convert and role.convert.to_json(),
                                     "levels": [dict(s) if isinstance(s, Mapping) else s for s in role.levels],
                                     "assume_integral": role.assume_integral}}
        for key, box in self.boxes.items():
            roles[key] = {"boxes": vars(box)}
        for key, point in self.points.items():
            roles[key] = {"points": vars(point)}
        return {"layout": self.layout, "roles": roles}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Pipeline:
        made: dict[str, Any] = {}
        for key, role in record["roles"].items():
            if isinstance(role, list):
                made[key] = [operation_from_json(op) for op in role]
            elif "labels" in role:
                given = dict(role["labels"])
                given["convert"] = given["convert"] and operation_from_json(given["convert"])
                given["levels"] = tuple(tuple(s) if isinstance(s, list) else s for s in given["levels"])
                made[key] = labels(**given)
            elif "boxes" in role:
                made[key] = boxes(**role["boxes"])
            else:
                made[key] = points(**role["points"])
        return Pipeline(layout=record["layout"], **made)

    def sources(self, *, device: str = "cpu", order: str = "zyx", **dtypes: str) -> list[jit.Source]:
        """The C++ of each image, for the types of its inputs: sources(image="int16", seg="uint8")."""
        made = []
        for k, key in enumerate(self.images):
            encoded = self.encode(key, order, None, 1)
            kinds = tuple((_stored_label(dtypes.get(n, "uint8")), role) for n, role in self.labels.items()) if k == 0 else ()
            made.append(self._source(key, encoded, dtypes.get(key, "float32"), kinds, device != "cpu"))
        return made

    def build(self, *, device: str = "cpu", order: str = "zyx", **dtypes: str) -> None:
        """Compiles ahead what a batch of these types needs: build(image="int16", seg="uint8", device="cuda")."""
        unknown = set(dtypes) - set(self.images) - set(self.labels)
        if unknown:
            raise Error(f"suture: build: {', '.join(sorted(unknown))} are no images or labels of the pipeline")
        for source in self.sources(device=device, order=order,
                                   **{k: dtype_name(v, f"suture: build: {k}", ("int64", "bool")) for k, v in dtypes.items()}):
            jit.build(source)

    def encode(self, key: str, order: str, values: Mapping[str, Any] | None, samples: int,
               items: Mapping[str, Items] | None = None) -> Encoded:
        """The chain of an image as C++ and numbers; without values, as far as its type goes."""
        chain = self.images[key]
        varies = self._varying[key]
        at = (key, order)
        if not varies and at in self._encoded:
            return self._encoded[at]
        encoder = Encoder(order, values, samples, items)
        encoder.out.expression = encoder.chain([op for op in chain])
        conversions = []
        if key == next(iter(self.images)):
            for role in self.labels.values():
                conversions.append("suture::as_finished{}" if role.convert is None else encoder.operation(role.convert))
        encoder.out.headers |= _headers((*chain, *(r.convert for r in self.labels.values() if r.convert)))
        encoder.out.expression += "\0" + "\0".join(conversions)
        if not varies:
            self._encoded[at] = encoder.out
        return encoder.out

    def output_dtype(self, key: str) -> str:
        chain = self.images[key]
        return chain[-1].to if chain and chain[-1].name == "cast" else "float32"  # type: ignore[attr-defined]

    def _source(self, key: str, encoded: Encoded, dtype: str, kinds: Sequence[tuple[str, labels]], cuda: bool) -> jit.Source:
        if dtype not in DTYPES and dtype != "bool":
            raise Error(f"suture: {key}: images of {dtype} are not read; float32, float16, bfloat16, int8 to int32, uint8, "
                        "uint16 and bool are. Pass a.astype(numpy.float32)")
        expression, *conversions = encoded.expression.split("\0")
        types = [f"suture::abi::image_slot<{CPP_TYPES[dtype]}, {CPP_TYPES[self.output_dtype(key)]}>"]
        made = ["{}"]
        for (stored, role), conversion in zip(kinds, conversions):
            kept = role.dtype in (None, stored) and role.convert is None
            out = stored if role.dtype is None else role.dtype
            if not kept and role.convert is None:
                conversion = "suture::remap{}"
                encoded.headers.add("ops/label/remap.hpp")
            slot = "level_slot" if role.levels else "label_slot"
            types.append(f"suture::abi::{slot}<{CPP_TYPES[stored]}, {CPP_TYPES[out]}, decltype({_unnumbered(conversion)})>")
            made.append(f"{{{conversion}}}" if not role.levels else f"{{{{{conversion}}}}}")
        return jit.Source(_module_text(expression, types, made, encoded, cuda),
                          f"{key}: " + " | ".join(op.name for op in self.images[key]), cuda)


def _unnumbered(conversion: str) -> str:
    """The type of a conversion is that before its braces."""
    return conversion.split("{", 1)[0] + "{}"


def _remade(layout: str | None, roles: dict[str, Any]) -> Pipeline:
    return Pipeline(layout=layout, **roles)


def geometry_of(chain: Sequence[Operation]) -> tuple[Operation, ...]:
    """What of a chain moves voxels, and how they are sampled."""
    return tuple(op for op in chain if op._role == "geometry" or op.name == "sampling")


def _varies(op: Any) -> bool:
    from ..operations.operation import PerSample

    return op.name in ("crop_by_class", "inverse_of") or any(isinstance(getattr(op, f), PerSample) for f, _ in op._fields if f)


def _draws(op: Any) -> bool:
    """Whether an operation draws anything."""
    return op._random or op.name == "crop_by_class" or (op.name == "per_channel" and _draws(op.operation))


def _headers(operations: Sequence[Any]) -> set[str]:
    headers = {op._header for op in operations if op._header}
    for op in operations:
        if op.name == "per_channel":
            headers |= _headers([op.operation])
        if op.name in ("reinhard", "random_stain_na"):
            headers.add("color/color_space.hpp")
    return headers


def _module_text(expression: str, types: Sequence[str], made: Sequence[str], encoded: Encoded,
                 cuda: bool) -> str:
    includes = ["suture/abi/lists.hpp", "suture/abi/planned_batch.hpp", "suture/ops/geometry/identity.hpp",
                *(["suture/exec/cuda/architecture.cuh", "suture/exec/cuda/run.cuh"] if cuda else ["suture/exec/cpu/run.hpp"]),
                *(f"suture/{h}" for h in encoded.headers)]
    executor = ("suture::cuda{static_cast<cudaStream_t>(r.stream), "
                "{static_cast<std::byte*>(r.workspace), static_cast<std::size_t>(r.workspace_bytes)}}" if cuda else
                "suture::cpu{.threads = r.threads}")
    slots = ",\n    ".join(types)
    values = ", ".join(f"{t}{m}" for t, m in zip(types, made))
    return f"""// A chain of suture, compiled for Python.
{"".join(f"#include <{i}>{chr(10)}" for i in sorted(set(includes)))}#include <memory>
{"".join(encoded.files)}
namespace {{
namespace abi = suture::abi;
using suture::operator|;  // for chains that begin with types of their own
{"".join(d + chr(10) for d in encoded.definitions)}
auto chain_of([[maybe_unused]] const abi::numbers& v) {{
  return suture::as_chain({expression});
}}
using batch = abi::planned_batch<decltype(chain_of(std::declval<const abi::numbers&>())),
    {slots}>;
}}  // namespace

SUTURE_ABI const char* suture_error() {{ return abi::last_error().c_str(); }}
SUTURE_ABI int suture_plan(const abi::request* request, void** made, abi::array* out) {{
  return abi::guarded([&] {{
    const abi::request& r = *request;
    const abi::numbers v(r);
    auto planned = std::make_unique<batch>(chain_of(v), r, {values});
    planned->write_grids(out);
    *made = planned.release();
  }});
}}
SUTURE_ABI int suture_workspace(void* made, const abi::request* request, std::uint64_t* bytes) {{
  return abi::guarded([&] {{
    auto& planned = *static_cast<batch*>(made);
    planned.take(*request);
    *bytes = planned.bound([](const auto& plan, const auto&... pairs) {{ return suture::workspace_bytes(plan, pairs...); }});
  }});
}}
SUTURE_ABI int suture_run(void* made, const abi::request* request) {{
  return abi::guarded([&] {{
    const abi::request& r = *request;
    auto& planned = *static_cast<batch*>(made);
    planned.take(r);
    planned.bound([&](const auto& plan, const auto&... pairs) {{ suture::run({executor}, plan, pairs...); }});
  }});
}}
SUTURE_ABI int suture_drawn(void* made, const char** text) {{
  static thread_local std::string drawn;
  return abi::guarded([&] {{
    drawn = abi::drawn_text(static_cast<batch*>(made)->plan());
    *text = drawn.c_str();
  }});
}}
SUTURE_ABI void suture_geometry(void* made, abi::geometry* out) {{
  const auto maps = static_cast<batch*>(made)->plan().geometry();
  *out = {{maps.first, static_cast<std::int64_t>(maps.step), static_cast<std::int64_t>(maps.size())}};
}}
SUTURE_ABI void suture_free(void* made) {{ delete static_cast<batch*>(made); }}
"""


class _Compiled:
    """The functions of a module of a chain."""

    __slots__ = ("module", "plan", "run", "workspace", "drawn", "geometry", "free", "slots")

    def __init__(self, source: jit.Source, slots: int) -> None:
        self.module = module = jit.load(source)
        p = ctypes.c_void_p
        self.plan = module.function("suture_plan", p, p, p)
        self.run = module.function("suture_run", p, p)
        self.workspace = module.function("suture_workspace", p, p, p)
        self.drawn = module.function("suture_drawn", p, p)
        self.geometry = module.function("suture_geometry", p, p)
        self.free = module.function("suture_free", p)
        self.free.restype = self.geometry.restype = None
        self.slots = slots


@dataclass
class _Planned:
    """A plan of one image in C++, freed with this."""

    compiled: _Compiled
    handle: int
    kept: list[Any] = field(default_factory=list)

    def __del__(self) -> None:
        if self.handle:
            self.compiled.free(self.handle)


# What labels of a type are read as, where it is another.
_STORED = {"bool": "uint8", "int64": "int32", "float32": "int32", "float64": "int32", "float16": "int32", "bfloat16": "int32"}


def _stored_label(dtype: str) -> str:
    return _STORED.get(dtype, dtype)


def _whole(array: Any, key: str, i: int, assume: bool) -> Any:
    """Labels of float or int64 as int32, once."""
    what = f"suture: {key}: sample {i}"
    if isinstance(array, Volume):
        return Volume(_whole(array.array, key, i, assume), axes=array.axes, grid=array.grid)
    known = array_of(array, what)
    if _stored_label(known.dtype) != "int32" or known.dtype == "int32":
        return array
    if known.library == "torch":
        import torch

        if known.on_cuda and not assume and known.dtype != "int64":
            raise Error(f"{what}: labels are {known.dtype} on a GPU, and looking whether they are whole numbers would make it "
                        "wait; pass integers, or labels(assume_integral=True)")
        whole = array.to(torch.int32)
        if not known.on_cuda and not torch.equal(whole.to(array.dtype), array):
            bad = array[whole.to(array.dtype) != array].flatten()[0].item()
            raise Error(f"{what}: label {bad} is no whole number of 32 bits")
        return whole
    if known.library == "numpy":
        whole = np.empty(array.shape, np.int32)
        with np.errstate(invalid="ignore"):
            np.copyto(whole, array, casting="unsafe")
        if not np.array_equal(whole, array):
            raise Error(f"{what}: label {array[whole != array].flat[0]} is no whole number of 32 bits")
        return whole
    raise Error(f"{what}: labels of {known.dtype} are not read; pass integers of 32 bits or fewer")


class Plan:
    """A batch that was drawn and checked. run() makes its voxels, as often as it is called, the same."""

    def __init__(self, pipeline: Pipeline, batch: Any, seed: int, epoch: int, ids: Any, training: bool,
                 threads: int | None, same_ids: bool, stream: int | None) -> None:
        self.pipeline, self.seed, self.epoch, self.training = pipeline, seed, epoch, training
        self.threads = default_threads() if threads is None else threads
        self._same_ids = same_ids
        self._bare = not isinstance(batch, Mapping)
        if isinstance(batch, Mapping):
            self._batch: Mapping[str, Any] = batch
        elif len(pipeline.roles()) == 1:
            self._batch = {next(iter(pipeline.images)): batch}
        else:
            raise Error(f"suture: the batch is a {type(batch).__name__}, the pipeline has {', '.join(pipeline.roles())}; "
                        "give a dict")
        batch = self._batch
        for key in pipeline.roles():
            if key not in batch:
                raise Error(f"suture: the batch has no {key!r}, which the pipeline has")
        self.stream = stream if stream is not None else stream_of(batch[next(iter(pipeline.images))])
        self.items: dict[str, Items] = {}
        for key in pipeline.images:
            self.items[key] = Items(batch[key], key, pipeline.layout, self.stream)
        for key, role in pipeline.labels.items():
            given = batch[key]
            items = Items(given, key, pipeline.layout, self.stream)
            if _STORED.get(items.dtype) == "int32":
                if isinstance(given, (list, tuple)):
                    given = [_whole(each, key, i, role.assume_integral) for i, each in enumerate(given)]
                else:
                    given = _whole(given, key, 0, role.assume_integral)
                items = Items(given, key, pipeline.layout, self.stream)
            self.items[key] = items
        first_key = next(iter(pipeline.images))
        first = self.items[first_key]
        self.size = first.count
        for key, items in self.items.items():
            if items.count != first.count:
                raise Error(f"suture: {key}: {items.count} samples, {first_key} has {first.count}")
            if items.device != first.device:
                raise Error(f"suture: {key}: on {device_name(items.device)}, {first_key} on {device_name(first.device)}; one batch lies on one")
            if items.order != first.order:
                raise Error(f"suture: {key}: axes {items.order!r}, {first_key} has {first.order!r}")
        self.order = first.order
        self.on_cuda = first.first.on_cuda
        self._given_ids = ids if ids is not None else batch.get("id")
        self.ids = None if self._given_ids is None else ids_of(self._given_ids, self.size)
        self._ids = None if self.ids is None else (ctypes.c_uint64 * self.size)(*self.ids)
        self._planned: dict[str, _Planned] = {}
        self._grids: list[Grid] | None = None
        self._out_buffer: Any = None
        for k, key in enumerate(pipeline.images):
            self._plan_image(k, key)

    def _request(self, image: int, encoded: Encoded, bounds: list[tuple[bytes, int, int]], kept: list[Any]) -> Request:
        if encoded.array is None:
            encoded.array = np.array(encoded.numbers, np.float64)
        lists = encoded.lists
        if self.on_cuda:
            lists = [(DeviceArray.of(m), n, m.itemsize) if isinstance(m, ReadByKernels) else (m, n) for m, n in lists]
        made = Request(numbers=encoded.array, lists=lists, inputs=bounds, samples=self.size, ids=self._ids, seed=self.seed,
                       epoch=self.epoch, image=image, evaluation=not self.training, threads=self.threads, stream=self.stream or 0,
                       same_ids=self._same_ids)
        kept += [made, encoded]
        return made

    def _plan_image(self, k: int, key: str) -> None:
        pipeline, items = self.pipeline, self.items[key]
        encoded = pipeline.encode(key, self.order, self._batch, self.size, self.items if self.training else None)
        maps = [self.items[n] for n in pipeline.labels] if k == 0 else []
        at = (key, encoded.expression, items.dtype, self.on_cuda, *[_STORED.get(m.dtype, m.dtype) for m in maps])
        compiled = pipeline._compiled.get(at)
        if compiled is None:
            kinds = [(_stored_label(m.dtype), role) for m, role in zip(maps, pipeline.labels.values())]
            source = pipeline._source(key, encoded, items.dtype, kinds, self.on_cuda)
            compiled = pipeline._compiled[at] = _Compiled(source, 1 + len(kinds))
        kept: list[Any] = [self.items]
        request = self._request(k, encoded, [bound_of(items), *[bound_of(m) for m in maps]], kept)
        handle = ctypes.c_void_p()
        out = (ctypes.c_char * (self.size * VIEW_BYTES))()
        try:
            compiled.module.check(compiled.plan(request.address, ctypes.addressof(handle), ctypes.addressof(out)))
        except Error as problem:
            raise Error(told(str(problem), self.ids, self._given_ids, key, pipeline.layout)) from None
        self._planned[key] = _Planned(compiled, handle.value or 0, kept)
        if k == 0:
            self._out_buffer = out

    def __repr__(self) -> str:
        return (f"Plan of {self.size} samples, seed={self.seed}, epoch={self.epoch}, training={self.training}: "
                + ", ".join(f"{key} ({items.dtype}, {items.letters})" for key, items in self.items.items()))

    @property
    def grids(self) -> list[Grid]:
        """What comes out of each sample, and where it lies."""
        if self._grids is None:
            self._grids = unpack_grids(self._out_buffer.raw, self.size)
        return self._grids

    def run(self, out: Any = None) -> Any:
        """The voxels: a dict as the batch was, an array alone where it was one.

        out   arrays to write to, by key, instead of new ones
        """
        pipeline = self.pipeline
        stacked = pipeline.fixed_size
        extents = [first_extents(self._out_buffer)] if stacked else [g.extents for g in self.grids]
        made: dict[str, Any] = dict(self._batch)
        out = {} if out is None else out
        if not isinstance(out, Mapping):
            out = {next(iter(pipeline.images)): out}
        for k, key in enumerate(pipeline.images):
            items = self.items[key]
            outputs = [self._output(items, key, pipeline.output_dtype(key), items.channels, extents, stacked, out.get(key))]
            made[key] = outputs[0].value
            levels = [0]
            if k == 0:
                for name, role in pipeline.labels.items():
                    items = self.items[name]
                    dtype = role.dtype or ("bool" if items.dtype == "bool" and role.convert is None
                                           else _stored_label(items.dtype))
                    channels = _channels_of(role, items.channels)
                    given = out.get(name)
                    values = []
                    for n, scale in enumerate((None, *role.levels)):
                        sizes = extents if scale is None else [_level_extents(e, scale, self.order) for e in extents]
                        place = given[n] if given is not None and role.levels else given
                        one = self._output(items, name, dtype, channels, sizes, stacked, place, scale)
                        outputs.append(one)
                        values.append(one.value)
                    levels.append(len(role.levels))
                    made[name] = values if role.levels else values[0]
            self._run_image(k, key, outputs, levels)
        for name, box in pipeline.boxes.items():
            from ..functions import geometry

            made[name] = geometry.boxes_to_output(self, self._batch[name], box)
        for name, point in pipeline.points.items():
            from ..functions import geometry

            made[name] = geometry.points_to_output(self, self._batch[name], point)
        return made[next(iter(pipeline.images))] if self._bare else made

    def _run_image(self, k: int, key: str, outputs: list[_Output], levels: list[int]) -> None:
        planned = self._planned[key]
        compiled = planned.compiled
        def request(workspace: tuple[int, int]) -> Request:
            return Request(lists=[np.array(levels, np.int64)], outputs=[o.bound for o in outputs], samples=self.size, seed=self.seed,
                           epoch=self.epoch, image=k, evaluation=not self.training, threads=self.threads, same_ids=True,
                           stream=self.stream or 0, workspace=workspace)

        there = (0, 0)
        if self.on_cuda:
            bytes_needed, asked = ctypes.c_uint64(), request(there)
            compiled.module.check(compiled.workspace(planned.handle, asked.address, ctypes.addressof(bytes_needed)))
            workspace, pointer = memory_like(self.items[key].first, bytes_needed.value, self.stream)
            there = (pointer, bytes_needed.value)
            planned.kept.append(workspace)
        made = request(there)  # held while it is read
        compiled.module.check(compiled.run(planned.handle, made.address))

    def _output(self, items: Items, key: str, dtype: str, channels: int, extents: Sequence[Sequence[int]], stacked: bool,
                given: Any, scale: Any = None) -> _Output:
        letters = items.letters
        if "c" not in letters and (stacked or channels > 1):
            letters = "c" + letters
        like = items.first
        what = f"suture: {key}: out"
        arrays: list[Array]
        if stacked:
            shape = (self.size, *item_shape(extents[0], channels, letters))
            value = empty_like_library(like.library, shape, dtype, like, what) if given is None else given
            arrays = [array_of(value, what, self.stream) if given is None else self._checked(value, shape, dtype, like, what)]
        else:
            shapes = [item_shape(e, channels, letters) for e in extents]
            if given is None:
                plain = [empty_like_library(like.library, s, dtype, like, what) for s in shapes]
                arrays = [array_of(a, what, self.stream) for a in plain]
            else:
                plain = list(given)
                if len(plain) != self.size:
                    raise Error(f"{what}: {len(plain)} arrays for {self.size} samples")
                arrays = [self._checked(getattr(a, "array", a), s, dtype, like, what) for a, s in zip(plain, shapes)]
            value = plain
            if items.volumes and given is None:
                grids = self.grids if scale is None else [_level(g, scale, self.order) for g in self.grids]
                value = [Volume(a, axes=items.order, grid=g) for a, g in zip(plain, grids)]
        return _Output(value, arrays, output_bound(arrays, letters, stacked))

    def _checked(self, value: Any, shape: tuple[int, ...], dtype: str, like: Array, what: str) -> Array:
        a = array_of(value, what, self.stream)
        if a.shape != shape:
            raise Error(f"{what}: shape {tuple(a.shape)}, {shape} is what comes out")
        if a.dtype != dtype:
            raise Error(f"{what}: {a.dtype}, {dtype} is what comes out")
        if a.readonly:
            raise Error(f"{what}: the array is read-only")
        if a.device != like.device:
            raise Error(f"{what}: on {device_name(a.device)}, the batch on {device_name(like.device)}")
        return a

    def drawn(self, key: str | None = None) -> list[list[dict[str, Any]]]:
        """For each sample what every random operation of an image drew, by name; "not drawn" where it is off."""
        planned = self._planned[key or next(iter(self.pipeline.images))]
        text = ctypes.c_char_p()
        planned.compiled.module.check(planned.compiled.drawn(planned.handle, ctypes.addressof(text)))
        return json.loads(text.value or b"[]")  # type: ignore[no-any-return]

    def inverse(self, batch: Any, *, outside: float = 0.0, coverage: bool = False,
                interpolation: Literal["linear", "nearest"] = "linear") -> Any:
        """Brings what was made of the outputs, probabilities say, back to where the batch lies.

        outside        the value of what the outputs do not cover
        coverage       how far each voxel is covered, 0 to 1, beside it: (values, coverages)
        interpolation  "linear", or "nearest" for label maps
        """
        from ..functions import geometry

        return geometry.inverse(self, batch, outside, coverage, interpolation)

    def record(self, out: Any) -> Any:
        """What was drawn and made, to be stored and replayed: see replay."""
        from .replay import record_of

        return record_of(self, out)


@dataclass
class _Output:
    value: Any
    arrays: list[Array]
    bound: tuple[bytes, int, int]


def _channels_of(role: labels, channels: int) -> int:
    op: Any = role.convert
    if op is None or op.name == "remap":
        return channels
    extra = op.ignore is not None
    if op.name == "one_hot":
        return int(op.classes - (0 if op.background else 1) + extra)
    return len(op.sets) + int(extra)


def _level_extents(full: Sequence[int], scale: Any, order: str) -> tuple[int, ...]:
    s = Encoder(order, {}, 1).triple(scale, "scale", "suture: labels: levels")
    extents = tuple(round(n * k) for n, k in zip(full, s))
    if min(extents) < 1 or max(s) > 1:
        raise Error(f"suture: labels: levels: scale {scale} of {tuple(full)} leaves {extents}")
    return extents


def _level(grid: Grid, scale: Any, order: str) -> Grid:
    """A smaller grid over the same box; sizes are rounded half to even."""
    extents = _level_extents(grid.extents, scale, order)
    ratio = [n / e for n, e in zip(grid.extents, extents)]
    direction = np.array(grid.direction).reshape(3, 3)
    first = direction @ (np.array(grid.spacing) * [0.5 * r - 0.5 for r in ratio]) + np.array(grid.origin)
    return Grid(extents, tuple(a * b for a, b in zip(grid.spacing, ratio)), tuple(float(v) for v in first),  # type: ignore
                grid.direction)


__all__ = ["Pipeline", "Plan", "boxes", "labels", "points"]
