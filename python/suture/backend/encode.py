# SPDX-License-Identifier: Apache-2.0
"""A chain as a C++ expression whose numbers come from an array: the expression is a type, the numbers are not."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import Error
from ..operations.operation import Axes, Operation, PerSample
from ..operations.generated import CHOICES

CPP_TYPES = {"int8": "std::int8_t", "uint8": "std::uint8_t", "int16": "std::int16_t", "uint16": "std::uint16_t",
             "int32": "std::int32_t", "int64": "std::int64_t", "float16": "suture::half", "bfloat16": "suture::bfloat16",
             "float32": "float", "bool": "std::uint8_t"}

# What an axis gets that a dict does not name; None: it has to be named. Fields that are not here: 0.
_UNNAMED = {"size": None, "scale": 1.0, "sigma": 0.0, "control_spacing_mm": None, "max_displacement_mm": 0.0}
# What the missing axis of a 2D image gets.
_FLAT = {"size": 1, "control_spacing_mm": 32.0, "scale": 1.0, "sigma": 0.0}


class ReadByKernels(np.ndarray[Any, Any]):
    """Memory that a list refers to and the executor reads when it runs: a GPU gets a copy of its own."""


@dataclass
class Encoded:
    """An expression and what it reads."""

    expression: str = ""
    headers: set[str] = field(default_factory=set)
    definitions: list[str] = field(default_factory=list)  # types that the expression is made of
    files: list[str] = field(default_factory=list)  # C++ of users, ahead of all else
    numbers: list[float] = field(default_factory=list)
    lists: list[tuple[Any, int]] = field(default_factory=list)  # memory that is kept, and how many elements
    kept: Any = None  # what else the lists refer to
    array: Any = None  # the numbers, once they lie in memory


class Encoder:
    """Writes operations as C++ and collects their numbers.

    order   the order of the array's axes, by which tuples are read: "zyx", "xyz", "yx" or "xy"
    values  what comes with the batch, for per_sample; None where there is no batch yet
    items   the arrays of the batch that crop_by_class may read; none in evaluation
    """

    def __init__(self, order: str, values: Mapping[str, Any] | None, samples: int,
                 items: Mapping[str, Any] | None = None) -> None:
        self.order, self.values, self.samples, self.items = order, values or {}, samples, items or {}
        self.ahead = values is None
        self.out = Encoded()

    def number(self, *values: float) -> int:
        at = len(self.out.numbers)
        self.out.numbers.extend(float(v) for v in values)
        return at

    def memory(self, data: Any, count: int) -> int:
        self.out.lists.append((data, count))
        return len(self.out.lists) - 1

    def chain(self, operations: Sequence[Operation]) -> str:
        return " | ".join(self.operation(op) for op in operations) or "suture::identity{}"

    def operation(self, op: Operation) -> str:
        special = getattr(self, "_write_" + op.name, None)
        if special is not None:
            return str(special(op))
        return f"suture::{op.name}{{{self.members(op)}}}"

    def members(self, op: Operation) -> str:
        parts = []
        for name, kind in op._fields:
            if name:
                parts += [f".{member} = {code}" for member, code in self.member(op, name, kind)]
        return ", ".join(parts)

    def member(self, op: Operation, name: str, kind: str) -> list[tuple[str, str]]:
        value = getattr(op, name)
        what = f"suture: {op.name}: {name}"
        if kind in ("float32", "float64", "int32", "int64", "flag"):
            letter = {"float32": "f", "float64": "d", "int32": "i", "int64": "l", "flag": "b"}[kind]
            return [(name, f"v.{letter}({self.number(value)})")]
        if kind.startswith("choice:"):
            if (kind, value) == ("choice:affine_convention", "monai") and self.order[0] == "x":
                value = "monai_xyz"  # MONAI counts the axes of the array, whatever they are
            i = self.number(CHOICES[kind[7:]].index(value))
            return [(name, f"v.e<suture::{kind[7:]}>({i})")]
        if kind == "interval":
            return [(name, "suture::interval(v.f({0}), v.f({1}))".format(*self.two(_ends(value, False))))]
        if kind == "value_range":
            return [(name, "suture::value_range(v.f({0}), v.f({1}))".format(*self.two(_ends(value, True))))]
        if kind == "integer_interval":
            return [(name, "suture::integer_interval(v.i({0}), v.i({1}))".format(*self.two(_ends(value, False))))]
        if kind == "axis_ranges":
            ends = self.ranges(value, name, what)
            codes = ["suture::value_range(v.f({0}), v.f({1}))".format(*self.two(e)) for e in ends]
            return [(name, f"suture::axis_ranges({', '.join(codes)})")]
        if kind in ("point3", "extent3", "axis_values", "floats3", "flags3", "int3"):
            i = self.number(*self.triple(value, name, what))
            code = {"point3": f"v.p({i})", "extent3": f"v.x({i})",
                    "axis_values": f"suture::axis_values(v.d({i}), v.d({i + 1}), v.d({i + 2}))",
                    "floats3": f"{{v.f({i}), v.f({i + 1}), v.f({i + 2})}}",
                    "flags3": f"{{v.b({i}), v.b({i + 1}), v.b({i + 2})}}",
                    "int3": f"{{v.i({i}), v.i({i + 1}), v.i({i + 2})}}"}[kind]
            return [(name, code)]
        if kind in ("axis_order", "axis_pair"):
            axes = [self.axis(a, what) for a in value]
            if kind == "axis_order" and self.order == "xyz":
                axes.reverse()
            i = self.number(*axes)
            return [(name, "{" + ", ".join(f"v.i({i + k})" for k in range(len(axes))) + "}")]
        if kind.startswith("floats:"):
            i = self.number(*value)
            letter = "f"
            return [(name, "{" + ", ".join(f"v.{letter}({i + k})" for k in range(len(value))) + "}")]
        if kind == "shears":
            i = self.number(*(reversed(value) if self.order == "xyz" else value))
            return [(name, "{{" + ", ".join(f"v.d({i + k})" for k in range(6)) + "}}")]
        if kind == "matrix3":
            rows = np.array(value, np.float64)
            if self.order == "xyz":
                rows = rows[::-1, ::-1]
            return [(name, f"v.m({self.number(*rows.ravel())})")]
        if kind == "stain_matrix":
            return [(name, self.stains(value))]
        if kind == "stain_reference":
            i = self.number(*value.max_concentration)
            return [(name, f"{{{self.stains(value.stains)}, {{v.d({i}), v.d({i + 1})}}}}")]
        if kind == "channel_statistics":
            i = self.number(*value.mean, *value.standard_deviation)
            return [(name, f"{{{{v.f({i}), v.f({i + 1}), v.f({i + 2})}}, {{v.f({i + 3}), v.f({i + 4}), v.f({i + 5})}}}}")]
        if kind == "color_target":
            i = self.number(*value.mean, *value.standard_deviation)
            return [(name, f"{{.mean = {{v.d({i}), v.d({i + 1}), v.d({i + 2})}}, "
                           f".standard_deviation = {{v.d({i + 3}), v.d({i + 4}), v.d({i + 5})}}}}")]
        if kind == "color_table":
            if value not in COLOR_TABLES:
                raise Error(f"{what}: {value!r} is none of {', '.join(COLOR_TABLES)}")
            return [(name, f"suture::{value}")]
        if kind == "grid":
            grid = getattr(value, "grid", value)
            i = self.number(*grid.extents, *grid.spacing, *grid.origin, *grid.direction)
            return [(name, f"v.g({i})")]
        if kind == "optional_int":
            i = self.number(0.0, 0.0) if value is None else self.number(1.0, value)
            return [(name, f"v.o({i})")]
        if kind == "given_floats":
            floats = np.array(value, np.float32).view(ReadByKernels)
            if len(value):
                self.check_control_values(op, floats, what)
            return [(name, f"v.s<float>({self.memory(floats, len(value))})")]
        if kind == "float_list":
            at = self.memory(np.array(value, np.float32), len(value))
            array = {"floating": "decltype(suture::histogram_shift::floating)",
                     "coefficients": "decltype(suture::bias_field::coefficients)"}[name]
            members = [(name, f'v.a<{array}>({at}, "{op.name}")')]
            if name == "floating":
                members.append(("count", f"static_cast<std::int32_t>(v.s<float>({at}).size())"))
            return members
        if kind == "holes":
            boxes = np.array([[*self.triple(start, "start", what), *self.triple(size, "size", what)]
                              for start, size in value], np.int64).reshape(-1, 6)
            at = self.memory(boxes, len(value))
            return [(name, f'v.a<decltype(suture::{op.name}::{name})>({at}, "{op.name}")'),
                    ("count", f"static_cast<std::int32_t>(v.s<std::int64_t>({at}).size())")]
        if kind == "regions":
            flat = [len(value), *(n for labels in value for n in (len(labels), *labels))]
            return [(name, f"suture::abi::regions_of(v.s<std::int32_t>({self.memory(np.array(flat, np.int32), len(flat))}))")]
        if kind == "label_changes":
            flat = [n for change in value.items() for n in change]
            at = self.memory(np.array(flat, np.int32), len(value))
            return [(name, f"suture::abi::changes_of(v.s<suture::label_change>({at}))")]
        if kind == "color_steps":
            i = self.number(*(("brightness", "contrast", "saturation", "hue").index(s) for s in value))
            return [(name, "{" + ", ".join(f"v.e<suture::color_step>({i + k})" for k in range(4)) + "}")]
        if kind == "starts":
            return [(name, f"v.s<suture::extent3>({self.starts(value, what)})")]
        if kind.startswith("results:"):
            return [(name, self.results(op, value, kind[8:], what))]
        raise Error(f"{what}: parameters of the kind {kind} are not there yet")

    def check_control_values(self, op: Any, values: np.ndarray, what: str) -> None:
        """What lies beyond max_displacement_mm would be held to it without a word."""
        if values.size % 3:
            return  # C++ has a sentence for it
        components = np.abs(values).reshape(3, -1)
        for axis, most, bound in zip("zyx", np.nanmax(components, 1, initial=0.0),
                                     self.triple(op.max_displacement_mm, "max_displacement_mm", what)):
            if most > bound:
                raise Error(f"{what}: {most:g} mm along {axis} is more than max_displacement_mm {bound:g}; state the largest "
                            "magnitude there")

    def two(self, ends: tuple[float, float]) -> tuple[int, int]:
        i = self.number(*ends)
        return i, i + 1

    def stains(self, rows: Any) -> str:
        i = self.number(*(v for row in rows for v in row))
        return "{{" + ", ".join(f"{{v.d({i + 2 * r}), v.d({i + 2 * r + 1})}}" for r in range(3)) + "}}"

    def axis(self, name: str | int, what: str) -> int:
        if isinstance(name, str):
            return "zyx".index(name)
        if len(self.order) != 3:
            raise Error(f"{what}: name the axes of a 2D image, y and x")
        return "zyx".index(self.order[name])

    def triple(self, value: Any, name: str, what: str) -> tuple[Any, Any, Any]:
        """Along (z, y, x)."""
        if isinstance(value, Axes):
            missing = _UNNAMED.get(name, 0)
            if len(self.order) == 2 and "z" not in value and name in _FLAT:
                value = {**value, "z": _FLAT[name]}
            if missing is None and len(value) < 3:
                raise Error(f"{what}: {value!r} does not name {', '.join(k for k in 'zyx' if k not in value)}")
            return value.get("z", missing), value.get("y", missing), value.get("x", missing)
        if isinstance(value, tuple):
            if len(value) != len(self.order):
                raise Error(f"{what}: {value!r} has {len(value)} values for an array of the axes {self.order!r}")
            named = dict(zip(self.order, value))
            named.setdefault("z", _FLAT.get(name, _UNNAMED.get(name) or 0))
            return named["z"], named["y"], named["x"]
        if len(self.order) == 2 and name in ("size", "extents"):
            return 1, value, value
        return value, value, value

    def ranges(self, value: Any, name: str, what: str) -> list[tuple[float, float]]:
        """(low, high) along (z, y, x)."""
        if isinstance(value, tuple) and len(value) == 2 and not isinstance(value[0], tuple):
            return [value] * 3
        unnamed = (1.0, 1.0) if name == "scale" else 0.0
        if isinstance(value, Axes):
            return [_ends(value.get(k, unnamed), True) for k in "zyx"]
        return [_ends(v, True) for v in self.triple(value, name, what)]

    def starts(self, value: Any, what: str) -> int:
        if isinstance(value, PerSample):
            value = () if self.ahead else self.given(value, what)
        rows = np.array(value if len(value) else np.zeros((0, 3)), np.int64).reshape(-1, 3)
        if self.order == "xyz":
            rows = rows[:, ::-1]
        return self.memory(np.ascontiguousarray(rows), len(rows))

    def given(self, value: PerSample, what: str) -> Any:
        if self.ahead:
            raise Error(f"{what}: what is compiled depends on what the batch has under {value.key!r}: run a batch instead of "
                        "compiling ahead")
        if value.key not in self.values:
            raise Error(f"{what}: the batch has no {value.key!r}, which per_sample names")
        return self.values[value.key]

    def results(self, op: Operation, value: Any, kind: str, what: str) -> str:
        from ..functions import fits

        packed, count, shape = np.zeros(0, np.uint8), 0, ""
        if not (isinstance(value, PerSample) and self.ahead and kind != "landmark_map"):
            packed, count, shape = fits.packed(kind, self.given(value, what) if isinstance(value, PerSample) else value, what)
        cpp = f"suture::{kind}{shape}"
        if kind == "color_moments":
            cpp = f"suture::color_moments<suture::{op.space}>"  # type: ignore[attr-defined]
        return f"v.s<{cpp}>({self.memory(packed, count)})"

    # Operations that are templates, or written otherwise.

    def _write_cast(self, op: Any) -> str:
        return f"suture::cast<{CPP_TYPES[op.to]}>{{}}"

    def _write_sampling(self, op: Any) -> str:
        border = f"suture::{op.border}"
        value = "{}"
        if op.border == "constant":
            value = f"{{v.f({self.number(op.value)})}}"
        elif op.border == "default_value":
            i = self.number(op.value, RIMS.index(op.rim))
            value = f"{{v.f({i}), v.e<suture::image_rim>({i + 1})}}"
        return (f"suture::sampling<suture::{op.interpolation}, {border}, suture::{op.labels}>"
                f"{{.border = {value}, .label_outside = v.i({self.number(op.label_outside)})}}")

    def _write_per_channel(self, op: Any) -> str:
        inner = self.operation(op.operation)
        i = self.number(op.probability, op.synchronized)
        return f"suture::per_channel({inner}, suture::channel_draws{{v.f({i}), v.b({i + 1})}})"

    def _write_orient(self, op: Any) -> str:
        letters = (op.x + op.y + op.z).encode()
        at = self.memory(np.frombuffer(letters, np.uint8), len(letters))
        return f"suture::orient{{.to = {{v.s<char>({at}).data(), v.s<char>({at}).size()}}}}"

    def _write_reinhard(self, op: Any) -> str:
        return f"suture::reinhard<suture::{op.space}>{{{self.members(op)}}}"

    def _write_random_stain_na(self, op: Any) -> str:
        return f"suture::random_stain_na<suture::{op.space}>{{{self.members(op)}}}"

    def _write_histogram_match(self, op: Any) -> str:
        from ..functions import fits

        value = op.fitted
        if isinstance(value, PerSample):
            value = self.given(value, "suture: histogram_match: fitted")
        n = fits.landmarks(value)
        return f"suture::histogram_match<{n}>{{{self.members(op)}}}"

    def _write_crop_by_class(self, op: Any) -> str:
        from ..functions import patches

        return patches.write_crop_by_class(self, op)

    def _write_value(self, op: Any) -> str:
        from ..operations import value as expressions

        return expressions.write_value(self, op)

    def _write_value_cpp(self, op: Any) -> str:
        from ..operations import value_cpp as own_cpp

        return own_cpp.write_value_cpp(self, op)

    def _write_inverse_of(self, op: Any) -> str:
        at = self.memory(op.geometry, 1)
        name = "inverse_elastic" if op.elastic else "inverse_affine"
        return f"suture::{name}{{suture::abi::geometry_of(v.s<suture::abi::geometry>({at})[0])}}"


COLOR_TABLES = ("crc_lab",)
RIMS = ("faces", "centers")


def _ends(value: Any, half_width: bool) -> tuple[float, float]:
    if isinstance(value, tuple):
        return value
    return (-value, value) if half_width else (value, value)
