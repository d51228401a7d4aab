# SPDX-License-Identifier: Apache-2.0
"""What moves by the maps of a plan beside images: points and boxes, there and back, and images on the way back."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..backend import call as functions
from ..arrays.batch import read_layout
from ..backend.encode import Encoder
from ..errors import Error
from ..operations.templates import cast, sampling
from ..operations.operation import Operation
from ..arrays.volume import Grid, Volume

if TYPE_CHECKING:
    from ..pipeline.plan import Plan
    from ..pipeline.roles import boxes, points


class CGeometry(ctypes.Structure):
    """abi::geometry"""

    _fields_ = [("first", ctypes.c_void_p), ("bytes", ctypes.c_int64), ("samples", ctypes.c_int64)]


def maps_of(plan: Plan) -> CGeometry:
    """Where the maps of a plan lie; they live as long as it does."""
    planned = next(iter(plan._planned.values()))
    maps = CGeometry()
    planned.compiled.geometry(planned.handle, ctypes.addressof(maps))
    return maps


@dataclass(frozen=True)
class MovedBoxes:
    """The boxes of a sample that are still seen.

    boxes    within the output, in the format they came in
    whole    the same before they were clipped to the output
    visible  the share of each that is within
    index    which of the boxes given each was
    """

    boxes: np.ndarray
    whole: np.ndarray
    visible: np.ndarray
    index: np.ndarray


def _rows(plan: Plan, given: Any, what: str, width: int) -> tuple[np.ndarray, np.ndarray]:
    if len(given) != plan.size:
        raise Error(f"{what}: lists of {len(given)} samples, the batch has {plan.size}")
    rows, offsets = [], [0]
    for i, each in enumerate(given):
        a = np.asarray(each, np.float64)
        if a.size == 0:
            a = a.reshape(0, width)
        if a.ndim != 2 or a.shape[1] != width:
            raise Error(f"{what}: sample {i} has the shape {a.shape}, rows of {width} numbers are needed")
        rows.append(a)
        offsets.append(offsets[-1] + len(a))
    return np.concatenate(rows) if rows else np.zeros((0, width)), np.array(offsets, np.int64)


def _zyx(rows: np.ndarray, order: str) -> np.ndarray:
    """Columns named by `order`, once or twice, as (z, y, x)."""
    flat = len(order) == 2
    corners = [rows[:, k:k + len(order)] for k in range(0, rows.shape[1], len(order))]
    made = []
    for n, corner in enumerate(corners):
        named = dict(zip(order, corner.T))
        z = named.get("z", np.full(len(rows), float(n) if len(corners) == 2 else 0.0))
        made += [z, named["y"], named["x"]]
    del flat
    return np.ascontiguousarray(np.stack(made, 1)) if len(rows) else np.zeros((0, 3 * len(corners)))


def _named(rows: np.ndarray, order: str) -> np.ndarray:
    columns = [k + "zyx".index(c) for k in range(0, rows.shape[1], 3) for c in order]
    return rows[:, columns]


def _move(plan: Plan, rows: np.ndarray, offsets: np.ndarray, result: str, given: str, width: int) -> np.ndarray:
    if plan.on_cuda and any(getattr(op, "control_values", ()) for op in next(iter(plan.pipeline.images.values()))):
        raise Error("suture: elastic: points and boxes are moved on the host, and control_values of this plan lie on the GPU; "
                    "plan the batch on the CPU for them")
    out = np.zeros((max(len(rows), 1), width))
    name = "to_source" if result.startswith("source") else "to_output"
    body = f"""abi::move_rows<suture::{result}, suture::{given}>(v.s<abi::geometry>(0)[0], v.s<double>(1), v.s<std::int64_t>(2),
        "{name}", const_cast<double*>(v.s<double>(3).data()));"""
    made = functions.source(body, ["abi/points.hpp"], f"{name} of {given}")
    functions.call(made, lists=[(maps_of(plan), 1), (np.ascontiguousarray(rows), rows.size), (offsets, len(offsets)),
                                (out, out.size)])
    return out[:len(rows)]


def _in_index(grid: Grid, rows: np.ndarray) -> np.ndarray:
    m = np.array(grid.direction).reshape(3, 3) * np.array(grid.spacing)
    made: np.ndarray = np.linalg.solve(m, (rows - np.array(grid.origin)).T).T
    return made


def _in_mm(grid: Grid, rows: np.ndarray) -> np.ndarray:
    m = np.array(grid.direction).reshape(3, 3) * np.array(grid.spacing)
    made: np.ndarray = rows @ m.T + np.array(grid.origin)
    return made


def _source_grids(plan: Plan) -> list[Grid]:
    items = next(iter(plan.items.values()))
    if items.grids is None:
        raise Error("suture: points in mm: the batch has arrays without spacing; give Volumes")
    return items.grids


def _points(plan: Plan, given: Any, role: points, forward: bool) -> list[np.ndarray]:
    rows, offsets = _rows(plan, given, "suture: points", len(role.format))
    rows = _zyx(rows, role.format)
    grids = (_source_grids(plan) if forward else plan.grids) if role.unit == "mm" else []
    for grid, a, b in zip(grids, offsets[:-1], offsets[1:]):
        rows[a:b] = _in_index(grid, rows[a:b])
    moved = _move(plan, rows, offsets, "located_point" if forward else "source_point", "point3", 6)
    made = []
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        part = moved[a:b, :3]
        if role.unit == "mm":
            part = _in_mm(plan.grids[i] if forward else _source_grids(plan)[i], part)
        made.append(_named(part, role.format))
    return made


def points_to_output(plan: Plan, given: Any, role: points) -> list[np.ndarray]:
    """Where points of the source appear in the output: an array for each sample."""
    return _points(plan, given, role, True)


def points_to_source(plan: Plan, given: Any, role: points) -> list[np.ndarray]:
    """Where points of the output are read in the source."""
    return _points(plan, given, role, False)


def boxes_to_output(plan: Plan, given: Any, role: boxes) -> list[MovedBoxes]:
    """Where boxes of the source appear in the output, without those that are not seen enough of."""
    order = role.format[:len(role.format) // 2]
    rows, offsets = _rows(plan, given, "suture: boxes", len(role.format))
    moved = _move(plan, _zyx(rows, order), offsets, "box_result", "box", 15)
    made = []
    for a, b in zip(offsets[:-1], offsets[1:]):
        part = moved[a:b]
        thickness = part[:, 3:6] - part[:, 0:3]
        keep = (part[:, 12] > 0) & (part[:, 12] >= role.least_visible)
        keep &= (thickness >= role.least_thickness - 2e-6).all(1)
        index = np.flatnonzero(keep)
        made.append(MovedBoxes(_named(part[keep, :6], order), _named(part[keep, 6:12], order), part[keep, 12], index))
    return made


def boxes_to_source(plan: Plan, given: Any, role: boxes) -> list[np.ndarray]:
    """The envelopes in the source of boxes of the output; they may leave it."""
    order = role.format[:len(role.format) // 2]
    rows, offsets = _rows(plan, given, "suture: boxes", len(role.format))
    moved = _move(plan, _zyx(rows, order), offsets, "source_box", "box", 15)
    return [_named(moved[a:b, :6], order) for a, b in zip(offsets[:-1], offsets[1:])]


Back = Literal["linear", "nearest"]  # how voxels are brought back


@dataclass(frozen=True)
class inverse_of(Operation):
    """The way back of a plan. Made by Plan.inverse."""

    geometry: Any
    elastic: bool

    _role: ClassVar[str] = "geometry"
    _gives_size: ClassVar[str] = "varying"
    _header: ClassVar[str] = "plan/inverse.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (("geometry", "maps"), ("elastic", "flag"))

    varies = True

    def encode(self, encoder: Encoder) -> str:
        """Appends one abi::geometry."""
        encoder.out.headers |= self.headers()
        encoder.list((self.geometry, 1))
        return f"suture::inverse_{'elastic' if self.elastic else 'affine'}"


def inverse(plan: Plan, batch: Any, outside: float, coverage: bool, interpolation: Back = "linear") -> Any:
    """See Plan.inverse."""
    bare = not isinstance(batch, Mapping)
    given: Mapping[str, Any] = {next(iter(plan.pipeline.images)): batch} if bare else batch
    elastic = any(op.name in ("elastic", "random_elastic") for op in next(iter(plan.pipeline.images.values())))
    results = {}
    for key, value in given.items():
        values, covered = _brought_back(plan, type(plan.pipeline), key, value, outside, elastic, coverage, interpolation)
        results[key] = (values, covered) if coverage else values
    return results[next(iter(results))] if bare else results


def _brought_back(plan: Plan, make: Any, key: str, value: Any, outside: float, elastic: bool,
                  coverage: bool, interpolation: Back) -> tuple[Any, Any]:
    items = plan.items.get(key, next(iter(plan.items.values())))
    each: Sequence[Any] = [getattr(v, "array", v) for v in value]
    if len(each) != plan.size:
        raise Error(f"suture: inverse: {key}: {len(each)} samples, the plan has {plan.size}")
    last = items.letters.endswith("c")
    order = plan.order
    layout = None
    if last:
        layout = items.letters.upper()
        read_layout(layout)
    else:
        each = [Volume(a, axes=order, grid=_with_extents(plan.grids[i], a.shape[-len(order):], order))
                for i, a in enumerate(each)]

    def back(images: Any, fill: float, dtype: str) -> Any:
        chain = [inverse_of(maps_of(plan), elastic), sampling(value=fill, interpolation=interpolation), cast(dtype)]
        made = make(layout=layout, image=chain).plan({"image": images}, threads=plan.threads, stream=plan.stream).run()["image"]
        if not items.volumes:
            return [getattr(m, "array", m) for m in made]
        return [Volume(m.array, axes=order, grid=g) for m, g in zip(made, items.grids or [])]

    from ..arrays.dlpack import array_of

    dtype = array_of(getattr(each[0], "array", each[0]), f"suture: inverse: {key}").dtype
    values = back(each, outside, dtype)
    if not coverage:
        return values, None
    ones = [Volume(np.ones(v.array.shape[-len(order):], np.float32), axes=order, grid=v.grid) for v in each]
    return values, back(ones, 0.0, "float32")


def _with_extents(grid: Grid, shape: Sequence[int], order: str) -> Grid:
    n = dict(zip(order, shape))
    return Grid((n.get("z", 1), n["y"], n["x"]), grid.spacing, grid.origin, grid.direction)
