# SPDX-License-Identifier: Apache-2.0
"""This module maps points and boxes by the coordinate maps of a plan, to its outputs and back, and images back."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from ..arrays.batch import read_layout
from ..arrays.dlpack import array_of, is_torch, numbers_of, voxels_of
from ..arrays.memory import on_stream
from ..arrays.volume import Grid, Volume, volumes_on
from ..backend.encode import Encoder
from ..backend.plain import call_plain
from ..errors import Error
from ..operations.kinds import shown
from ..operations.operation import Operation
from ..operations.templates import cast, sampling
from .roles import check_keys

if TYPE_CHECKING:
    from .plan import Plan
    from .roles import boxes, points


class CGeometry(ctypes.Structure):
    """Has the layout of abi::geometry."""

    _fields_ = [("first", ctypes.c_void_p), ("bytes", ctypes.c_int64), ("samples", ctypes.c_int64)]


# Layouts of the structs of plan/point_map.hpp, whose sizes abi/points.hpp checks.
_POINT = np.dtype((np.float64, 3))
_BOX = np.dtype([("low", _POINT), ("high", _POINT)], align=True)
_RESULTS = {
    "points_to_output": np.dtype([("point", _POINT), ("residual", np.float64), ("converged", np.bool_), ("valid", np.bool_)], align=True),
    "points_to_source": np.dtype([("point", _POINT), ("valid", np.bool_)], align=True),
    "boxes_to_output": np.dtype([("clipped", _BOX), ("unclipped", _BOX), ("visible", np.float64), ("converged", np.bool_),
                                 ("valid", np.bool_)], align=True),
    "boxes_to_source": np.dtype([("envelope", _BOX), ("valid", np.bool_)], align=True)}


def maps_of(plan: Plan) -> CGeometry:
    """Returns the coordinate maps of a plan, valid as long as the plan."""
    planned = next(iter(plan._planned.values()))
    maps = CGeometry()
    planned.compiled.geometry(planned.handle, ctypes.addressof(maps))
    return maps


@dataclass(frozen=True)
class MovedBoxes:
    """The boxes of a sample that are still visible.

    boxes      clipped to the output, in the format of the input
    whole      the same boxes before clipping
    visible    share of the volume of each that lies within the output
    index      position of each among the input boxes
    converged  whether each was located to 1e-6 voxel; False where the deformation could not be inverted, as where it folds
    """

    boxes: np.ndarray
    whole: np.ndarray
    visible: np.ndarray
    index: np.ndarray
    converged: np.ndarray


def _rows(plan: Plan, given: Any, what: str, width: int) -> tuple[np.ndarray, np.ndarray]:
    if len(given) != plan.size:
        raise Error(f"{what}: lists of {len(given)} samples, the batch has {plan.size}")
    rows, offsets = [], [0]
    for i, each in enumerate(given):
        a = numbers_of(each, what, np.float64)
        if a.size == 0:
            a = a.reshape(0, width)
        if a.ndim != 2 or a.shape[1] != width:
            raise Error(f"{what}: sample {i} has the shape {a.shape}, rows of {width} numbers are needed")
        rows.append(a)
        offsets.append(offsets[-1] + len(a))
    return np.concatenate(rows) if rows else np.zeros((0, width)), np.array(offsets, np.int64)


def _to_zyx(rows: np.ndarray, order: str) -> np.ndarray:
    """Reorders columns to (z, y, x), for points or for two corners whose axes `order` names. In 2D, z is 0 for points, and boxes
    extend from 0 to 1."""
    corners = [rows[:, k:k + len(order)] for k in range(0, rows.shape[1], len(order))]
    made = []
    for n, corner in enumerate(corners):
        named = dict(zip(order, corner.T))
        z = named.get("z", np.full(len(rows), float(n) if len(corners) == 2 else 0.0))
        made += [z, named["y"], named["x"]]
    return np.ascontiguousarray(np.stack(made, 1)) if len(rows) else np.zeros((0, 3 * len(corners)))


def _from_zyx(rows: np.ndarray, order: str) -> np.ndarray:
    """Reorders columns (z, y, x), of points or of two corners, to the axes that `order` names."""
    columns = [k + "zyx".index(c) for k in range(0, rows.shape[1], 3) for c in order]
    return rows[:, columns]


def _move(plan: Plan, name: str, rows: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Maps points (z, y, x), or boxes with a low and a high corner, by a function of abi/points.hpp and the maps of a plan."""
    if plan.on_cuda and any(getattr(op, "control_values", ()) for op in next(iter(plan.pipeline.images.values()))):
        raise Error("suture: elastic: points and boxes are moved on the host, and control_values of this plan lie on the GPU; "
                    "plan the batch on the CPU for them")
    out = np.zeros(len(rows), _RESULTS[name])
    call_plain(name, lists=[(maps_of(plan), 1), np.ascontiguousarray(rows), offsets], results=[out])
    return out


def _corners(boxes_of: np.ndarray) -> np.ndarray:
    return np.concatenate([boxes_of["low"], boxes_of["high"]], 1)


def _in_index(grid: Grid, rows: np.ndarray) -> np.ndarray:
    m = np.array(grid.direction).reshape(3, 3) * np.array(grid.spacing)
    made: np.ndarray = np.linalg.solve(m, (rows - np.array(grid.origin)).T).T
    return made


def _in_mm(grid: Grid, rows: np.ndarray) -> np.ndarray:
    m = np.array(grid.direction).reshape(3, 3) * np.array(grid.spacing)
    made: np.ndarray = rows @ m.T + np.array(grid.origin)
    return made


def source_grids(plan: Plan) -> list[Grid]:
    """Returns the grids of the first image, by which points in millimeters are placed."""
    items = next(iter(plan.items.values()))
    if items.grids is None or not items.placed:
        given = "arrays, which have none" if items.grids is None else "a Volume without one"
        raise Error(f"suture: points: unit: expected the spacing of {plan.first_key} for points in millimeters, got {given}. Pass "
                    'Volume(array, axes="zyx", spacing=dict(z=..., y=..., x=...)), or points(unit="index")')
    return items.grids


def _points(plan: Plan, given: Any, role: points, forward: bool) -> list[np.ndarray]:
    rows, offsets = _rows(plan, given, "suture: points", len(role.format))
    rows = _to_zyx(rows, role.format)
    grids = (source_grids(plan) if forward else plan.grids) if role.unit == "mm" else []
    for grid, a, b in zip(grids, offsets[:-1], offsets[1:]):
        rows[a:b] = _in_index(grid, rows[a:b])
    results = _move(plan, "points_to_output" if forward else "points_to_source", rows, offsets)
    moved = results["point"]
    if forward:
        moved[~results["converged"]] = np.nan
    made = []
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        part = moved[a:b]
        if role.unit == "mm":
            part = _in_mm(plan.grids[i] if forward else source_grids(plan)[i], part)
        made.append(_from_zyx(part, role.format))
    return made


def points_to_output(plan: Plan, given: Any, role: points) -> list[np.ndarray]:
    """Maps points of the source into the output: an array for each sample. Points that could not be located are NaN."""
    return _points(plan, given, role, True)


def points_to_source(plan: Plan, given: Any, role: points) -> list[np.ndarray]:
    """Maps points of the output into the source."""
    return _points(plan, given, role, False)


def boxes_to_output(plan: Plan, given: Any, role: boxes) -> list[MovedBoxes]:
    """Maps boxes of the source into the output and drops those that are hardly visible."""
    order = role.format[:len(role.format) // 2]
    rows, offsets = _rows(plan, given, "suture: boxes", len(role.format))
    moved = _move(plan, "boxes_to_output", _to_zyx(rows, order), offsets)
    made = []
    for a, b in zip(offsets[:-1], offsets[1:]):
        part = moved[a:b]
        clipped, visible = part["clipped"], part["visible"]
        keep = (visible > 0) & (visible >= role.least_visible)
        thickness = (clipped["high"] - clipped["low"])[:, ["zyx".index(name) for name in order]]  # in 2D without z, where it is 1
        keep &= (thickness >= role.least_thickness - 2e-6).all(1)
        index = np.flatnonzero(keep)
        made.append(MovedBoxes(_from_zyx(_corners(clipped)[keep], order), _from_zyx(_corners(part["unclipped"])[keep], order),
                               visible[keep], index, part["converged"][keep]))
    return made


def boxes_to_source(plan: Plan, given: Any, role: boxes) -> list[np.ndarray]:
    """Returns for each box of the output its envelope in the source, which may extend beyond the source."""
    order = role.format[:len(role.format) // 2]
    rows, offsets = _rows(plan, given, "suture: boxes", len(role.format))
    moved = _corners(_move(plan, "boxes_to_source", _to_zyx(rows, order), offsets)["envelope"])
    return [_from_zyx(moved[a:b], order) for a, b in zip(offsets[:-1], offsets[1:])]


Back = Literal["linear", "nearest"]  # interpolation of Plan.inverse


@dataclass(frozen=True)
class inverse_of(Operation):
    """The inverse of a plan's geometry, from Plan.inverse."""

    geometry: Any
    elastic: bool

    _role: ClassVar[str] = "geometry"
    _gives_size: ClassVar[str] = "varying"
    _header: ClassVar[str] = "plan/inverse.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (("geometry", "maps"), ("elastic", "flag"))

    varies = True

    def encode(self, encoder: Encoder) -> str:
        """Appends the maps, an abi::geometry."""
        encoder.out.headers |= self.headers()
        encoder.rows((self.geometry, 1))
        return f"suture::inverse_{'elastic' if self.elastic else 'affine'}"


def inverse(plan: Plan, batch: Any, outside: float, coverage: bool, interpolation: Back | Mapping[str, Back] = "linear") -> Any:
    """Implements Plan.inverse."""
    bare = not isinstance(batch, Mapping)
    given: Mapping[str, Any] = {next(iter(plan.pipeline.images)): batch} if bare else batch
    check_keys(given, plan.items, "suture: inverse", "Name the key of the image or label map whose grid it returns to")
    by_key = interpolation if isinstance(interpolation, Mapping) else dict.fromkeys(plan.items, interpolation)
    check_keys(by_key, plan.items, "suture: inverse: interpolation", "Name keys of the batch")
    for name in by_key.values():
        if name not in get_args(Back):
            raise Error(f'suture: inverse: interpolation: expected "linear" or "nearest", got {shown(name)}. Pass one of them, or a dict of them by key')
    elastic = any(op.name in ("elastic", "random_elastic") for op in next(iter(plan.pipeline.images.values())))
    results = {}
    with on_stream(plan.items[plan.first_key].first, plan.stream):  # for conversions of types, before and after the run
        for key, value in given.items():
            values, covered = _brought_back(plan, key, value, outside, elastic, coverage, by_key.get(key, "linear"))
            results[key] = (values, covered) if coverage else values
    return results[next(iter(results))] if bare else results


# Types that arrays are converted to, by those that a chain cannot write. Results are converted back.
_READ_AS = {"bool": "uint8", "int64": "int32", "float64": "float32"}
_MOST_EXACT = 1 << 24  # images are sampled in float32, which represents every whole number up to this one


def _as_type(array: Any, dtype: str, what: str) -> Any:
    """Converts a NumPy, torch or CuPy array to another type."""
    if is_torch(array):
        import torch

        return array.to(getattr(torch, dtype))
    if not hasattr(array, "astype"):
        raise Error(f"{what}: expected float32, float16 or integers of 32 bits or fewer from {type(array).__name__}, which "
                    f"cannot be converted here. Convert it to {dtype}")
    return array.astype(dtype)


def _readable(array: Any, what: str) -> tuple[Any, str]:
    """Returns an array in a type that images can have, and the type that it had before."""
    dtype = array_of(array, what).dtype
    if dtype in ("int32", "int64") and hasattr(array, "min") and 0 not in array.shape:
        low, high = int(array.min()), int(array.max())
        if max(-low, high) > _MOST_EXACT:
            raise Error(f"{what}: expected whole numbers within {-_MOST_EXACT} to {_MOST_EXACT}, which float32 holds, got {low} to "
                        f"{high}. Renumber the labels")
    return (_as_type(array, _READ_AS[dtype], what) if dtype in _READ_AS else array), dtype


def _listed(value: Any, order: str, what: str) -> list[Any]:
    """Returns the samples of a key of Plan.inverse, one for a Volume alone."""
    try:
        samples = [value] if isinstance(value, Volume) else list(value)
    except TypeError:
        raise Error(f"{what}: expected a Volume, or a list or array with each sample, got {shown(value)}. Pass [array]") from None
    for each in samples:
        if isinstance(each, Volume) and each.axes != order:
            raise Error(f"{what}: expected the axes {order!r} of the plan, got {each.axes!r}. Pass volume.with_axes({order!r})")
    return samples


def _brought_back(plan: Plan, key: str, value: Any, outside: float, elastic: bool, coverage: bool,
                  interpolation: Back) -> tuple[Any, Any]:
    items, what = plan.items[key], f"suture: inverse: {key}"
    given = [_readable(voxels_of(v), what) for v in _listed(value, items.order, what)]
    if len(given) != plan.size:
        raise Error(f"{what}: {len(given)} samples, the plan has {plan.size}")
    dtype = given[0][1]
    if any(each != dtype for _, each in given):
        raise Error(f"{what}: expected one type for all samples, got {', '.join(sorted({each for _, each in given}))}")
    whole = dtype in ("bool", "int64") or (key in plan.pipeline.labels and "float" not in dtype)
    if interpolation == "linear" and whole:
        raise Error(f'{what}: interpolation: expected "nearest" for label maps and masks, got "linear" for {dtype}. Pass '
                    'interpolation="nearest", or probabilities in a float type')
    arrays = [array for array, _ in given]
    place = items.letters.find("c") - len(items.letters)  # of the channel axis, counted from the end
    by_layout = "c" in items.letters[1:]  # else channels come first, as in a Volume
    order = plan.order
    layout = None
    each: Sequence[Any] = arrays
    if by_layout:
        layout = items.letters.upper()
        read_layout(layout)
    else:
        each = [Volume(a, axes=order, grid=_with_extents(plan.grids[i], a.shape[-len(order):], order))
                for i, a in enumerate(arrays)]

    def back(images: Any, fill: float, kept: str) -> Any:
        read = _READ_AS.get(kept, kept)
        chain = [inverse_of(maps_of(plan), elastic), sampling(value=fill, interpolation=interpolation), cast(read)]
        made = type(plan.pipeline)(layout=layout, image=chain).plan({"image": images}, threads=plan.threads, stream=plan.stream)
        out = [voxels_of(m) for m in made.run()["image"]]
        if kept != read:
            out = [_as_type(m, kept, what) for m in out]
        if not items.volumes:
            return out
        return volumes_on(out, order, items.grids or [], items.placed)

    values = back(each, outside, dtype)
    if not coverage:
        return values, None
    if by_layout:
        ones: list[Any] = [np.ones([1 if k - len(a.shape) == place else n for k, n in enumerate(a.shape)], np.float32) for a in arrays]
    else:
        ones = [Volume(np.ones(v.array.shape[-len(order):], np.float32), axes=order, grid=v.grid) for v in each]
    return values, back(ones, 0.0, "float32")


def _with_extents(grid: Grid, shape: Sequence[int], order: str) -> Grid:
    n = dict(zip(order, shape))
    return Grid((n.get("z", 1), n["y"], n["x"]), grid.spacing, grid.origin, grid.direction)
