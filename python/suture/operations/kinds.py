# SPDX-License-Identifier: Apache-2.0
"""A kind defines how values of a parameter are checked, encoded for C++, and stored as JSON."""
from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Union

import numpy as np

from ..arrays.volume import Grid
from ..backend.encode import CPP_TYPES, Encoder, ReadByKernels, interval_ends
from ..arguments import check_calls
from ..errors import Error
from .results import results_from_json

Range = Union[float, tuple[float, float]]
IntegerRange = Union[int, tuple[int, int]]
AxisFloats = Union[float, Sequence[float], Mapping[str, float]]
AxisIntegers = Union[int, Sequence[int], Mapping[str, int]]
AxisFlags = Union[bool, Sequence[bool], Mapping[str, bool]]
AxisRanges = Union[float, Sequence[Any], Mapping[str, Any]]
AxisOrder = Sequence[str | int]
AxisPair = tuple[str | int, str | int]
Matrix = Sequence[Sequence[float]]
Holes = Sequence[Any]
Starts = Any
Fitted = Any
NAN = math.nan

FLOAT32_MAX = 3.4028235677973366e38  # the least float64 that rounds to infinity in float32
EXACT = 1 << 53  # C++ reads numbers as float64, which represents every whole number up to this one


def shown(value: Any) -> str:
    """Returns the repr of a value for a message, shortened, on one line."""
    try:
        return re.sub(r"\s*\n\s*", " ", _short.repr(value))
    except Exception:  # a value whose own repr fails
        return f"a {type(value).__name__}"


_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 120
_short.maxlist = _short.maxtuple = _short.maxdict = 8


# These classes are values of parameters.


class Axes(Mapping[str, Any]):
    """Values by the name of an axis: z, y and x. Hashable, and printed as dict(z=..., y=...)."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any], what: str) -> None:
        for name in items:
            if name not in ("z", "y", "x"):
                raise Error(f"{what}: axis {shown(name)} is none of z, y and x")
        self._items = tuple((name, items[name]) for name in "zyx" if name in items)

    def __getitem__(self, name: str) -> Any:
        return dict(self._items)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(name for name, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self._items) == dict(other)

    def __repr__(self) -> str:
        return "dict(" + ", ".join(f"{name}={value!r}" for name, value in self._items) + ")"

    def __reduce__(self) -> Any:
        return Axes, (dict(self._items), "")


class FrozenMap(Mapping[Any, Any]):
    """An immutable mapping that can be hashed."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[Any, Any] | None = None) -> None:
        self._items = dict(items or {})

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))  # as ==, whatever the order

    def __repr__(self) -> str:
        return repr(self._items)


@dataclass(frozen=True)
class PerSample:
    """The value of a parameter that has a value for each sample: batch[key] has the list. per_sample makes it."""

    key: str

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise Error(f"suture: per_sample: key: expected a string, got {shown(self.key)}")

    def __repr__(self) -> str:
        return f"per_sample({self.key!r})"


@check_calls
def per_sample(key: str) -> PerSample:
    """Marks a parameter whose values come with each batch, one for each sample, such as results of fits or starts.

    Parameters
    ----------
    key : str
        Key of the batch that has the list of values.

    Returns
    -------
    PerSample
        A value for the parameter.

    Raises
    ------
    Error
        If the key is no string.

    Examples
    --------
    >>> st.Pipeline(image=[st.z_score(fitted=st.per_sample("moments"))])     # batch["moments"] is a list
    Pipeline(image=[z_score])
    """
    return PerSample(key)


@check_calls
@dataclass(frozen=True, kw_only=True)
class ChannelStatistics:
    """Mean and standard deviation of red, green and blue, of values in 0 .. 1.

    Parameters
    ----------
    mean, standard_deviation : (float, float, float)
        Statistics of the three channels.

    Examples
    --------
    >>> st.IMAGENET.mean
    (0.485, 0.456, 0.406)
    """

    mean: tuple[float, float, float]
    standard_deviation: tuple[float, float, float]


IMAGENET = ChannelStatistics(mean=(0.485, 0.456, 0.406), standard_deviation=(0.229, 0.224, 0.225))


@check_calls
@dataclass(frozen=True, kw_only=True)
class StainReference:
    """The target of stain normalization: stains and their maximum concentrations.

    Parameters
    ----------
    stains : three rows of two floats
        Rows red, green and blue; columns hematoxylin and eosin.
    max_concentration : (float, float)
        Maximum concentrations of the two.

    Examples
    --------
    >>> st.STAIN_REFERENCE.max_concentration
    (1.9705, 1.0308)
    """

    stains: tuple[tuple[float, float], ...] = ((0.5626, 0.2159), (0.7201, 0.8012), (0.4062, 0.5581))
    max_concentration: tuple[float, float] = (1.9705, 1.0308)


STAIN_REFERENCE = StainReference()


@check_calls
@dataclass(frozen=True, kw_only=True)
class ColorMoments:
    """Mean and standard deviation of colors by channel of a color space, as a target.

    Parameters
    ----------
    mean, standard_deviation : (float, float, float)
        Moments of the three channels.

    Examples
    --------
    >>> target = st.ColorMoments(mean=(70, 10, -5), standard_deviation=(12, 6, 4))
    >>> st.reinhard(space="lab", target=target, fitted=st.per_sample("colors")).name
    'reinhard'
    """

    mean: tuple[float, float, float]
    standard_deviation: tuple[float, float, float] = (1.0, 1.0, 1.0)


# Kinds share these checks.


def number(value: Any, what: str, *, single: bool = True, nan: bool = False) -> float:
    """Converts a value to float. Refuses NaN unless `nan` is set, and finite numbers beyond float32 if `single` is set."""
    if isinstance(value, (bool, str, bytes, np.bool_)) or not hasattr(value, "__float__") or np.iscomplexobj(value):
        raise Error(f"{what}: {shown(value)} is not a number")
    try:
        made = float(value)
    except (OverflowError, TypeError, ValueError):
        raise Error(f"{what}: {shown(value)} is not a number of 64 bits") from None
    if made != made and not nan:
        raise Error(f"{what}: expected a number, got nan")
    if single and FLOAT32_MAX <= abs(made) < math.inf:
        raise Error(f"{what}: expected a number within float32, got {made!r}")
    return made


def whole(value: Any, what: str, low: int, high: int) -> int:
    """Converts a value to int and refuses other than whole numbers in low .. high."""
    real = (hasattr(value, "__float__") or hasattr(value, "__index__")) and not np.iscomplexobj(value)
    if isinstance(value, (bool, str, bytes, np.bool_)) or not real:
        raise Error(f"{what}: {shown(value)} is not a number")
    try:
        made = int(value)
        exact = made == value
    except (OverflowError, TypeError, ValueError):
        exact = False
    if not exact:
        raise Error(f"{what}: {shown(value)} is not a whole number")
    if not low <= made <= high:
        raise Error(f"{what}: expected a whole number from {low} to {high}, got {shown(made)}")
    return made


def sequence(value: Any, what: str, count: int | None = None) -> list[Any]:
    """Returns the elements of a list, tuple or array, and refuses another number of them than `count`."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        raise Error(f"{what}: expected a list, got {shown(value)}")
    made = list(value)
    if count is not None and len(made) != count:
        raise Error(f"{what}: {len(made)} numbers given, {count} are needed")
    return made


def numbers(value: Any, what: str, count: int | None = None, single: bool = True) -> tuple[float, ...]:
    """Converts the elements of a list by `number`, and refuses another number of them than `count`."""
    return tuple(number(v, what, single=single) for v in sequence(value, what, count))


def along_axes(value: Any, what: str, one: Callable[[Any], Any]) -> Any:
    """Reads one value for all axes, a tuple in the order of array.shape, or values by the name of the axis; `one` converts
    each."""
    if isinstance(value, Mapping):
        return Axes({name: one(v) for name, v in Axes(value, what).items()}, what)
    if isinstance(value, (tuple, list)):
        if len(value) not in (2, 3):
            raise Error(f"{what}: {shown(value)} has {len(value)} values; give one for all axes, one for each, "
                        "or dict(z=..., y=..., x=...)")
        return tuple(one(v) for v in value)
    return one(value)


# JSON has no infinity, no NaN and no tuple.


def plain(value: Any) -> Any:
    """Converts a number, text, tuple or mapping to a value of JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return value


def given(record: Any, what: str, depth: int = 4) -> Any:
    """Reads a value that `plain` wrote: numbers, texts, lists and objects, at most `depth` of them inside one another."""
    if record is None or type(record) in (bool, int, float, str):
        return record
    if depth == 0:
        raise Error(f"{what}: expected at most four lists inside one another, got {shown(record)}")
    if type(record) is list:
        return tuple(given(r, what, depth - 1) for r in record)
    if type(record) is dict:
        if set(record) == {"float"}:
            if record["float"] not in ("nan", "inf", "-inf"):
                raise Error(f'{what}: expected "nan", "inf" or "-inf", got {shown(record["float"])}')
            return float(record["float"])
        return {k: given(v, what, depth - 1) for k, v in record.items()}
    raise Error(f"{what}: expected what JSON has, got {shown(record)}")


def members(record: Any, what: str, names: Sequence[str]) -> dict[str, Any]:
    """Returns a record that is an object with exactly these members, and refuses others."""
    if type(record) is not dict:
        raise Error(f"{what}: expected an object of {', '.join(names)}, got {shown(record)}")
    unknown = [k for k in record if k not in names]
    if unknown:
        raise Error(f"{what}: there is no parameter {shown(unknown[0])}; it has {', '.join(names) or 'none'}")
    missing = [k for k in names if k not in record]
    if missing:
        raise Error(f"{what}: {', '.join(missing)} must be given")
    return record


class Kind:
    """Rules by which values of a parameter are checked, encoded for C++ and stored.

    annotation   type of the parameter in a signature
    docs         one sentence on the values that it accepts
    """

    annotation: ClassVar[str] = "Any"
    docs: ClassVar[str] = ""
    varies = False  # whether a value may differ from batch to batch

    def canonical(self, value: Any, what: str) -> Any:
        """Checks a value and returns it in the form that the operation stores: numbers as float or int, lists as tuples."""
        raise NotImplementedError

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        """Appends the numbers and lists of a value, in the order in which C++ reads them."""
        raise NotImplementedError

    def cpp(self, encoder: Encoder, op: Any, name: str, value: Any) -> str | None:
        """Returns the template argument for a value, from a fixed table; None if the value is no template argument."""
        return None

    def to_json(self, value: Any) -> Any:
        """Converts a value to a value of JSON."""
        return plain(value)

    def from_json(self, record: Any, what: str) -> Any:
        """Reads what to_json wrote, for `canonical` to check."""
        return given(record, what)


class Float(Kind):
    annotation, docs = "float", "One number."

    def __init__(self, single: bool, nan: bool = False) -> None:
        self.single, self.nan = single, nan

    def canonical(self, value: Any, what: str) -> float:
        return number(value, what, single=self.single, nan=self.nan)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.number(value)


class Integer(Kind):
    annotation, docs = "int", "One whole number."

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = max(low, -EXACT), min(high, EXACT)

    def canonical(self, value: Any, what: str) -> int:
        return whole(value, what, self.low, self.high)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.number(value)


INT32, INT64 = Integer(-(1 << 31), (1 << 31) - 1), Integer(-(1 << 63), (1 << 63) - 1)


class Flag(Kind):
    annotation, docs = "bool", "True or False."

    def canonical(self, value: Any, what: str) -> bool:
        if not isinstance(value, bool):
            raise Error(f"{what}: {shown(value)} is neither True nor False")
        return value

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.number(value)


class Choice(Kind):
    docs = "One of the names listed."

    def __init__(self, names: Sequence[str], first: int = 0) -> None:
        self.names, self.first = tuple(names), first

    def canonical(self, value: Any, what: str) -> str:
        if not isinstance(value, str) or value not in self.names:
            raise Error(f"{what}: {shown(value)} is none of {', '.join(self.names)}")
        return value

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        if encoder.order[0] == "x" and f"{value}_xyz" in self.names:
            value = f"{value}_xyz"  # the variant of a convention that depends on the order of axes
        encoder.number(self.names.index(value) + self.first)


class TypeName(Choice):
    """A name that is a template argument of the operation."""

    def __init__(self, types: Mapping[str, str]) -> None:
        super().__init__(tuple(types))
        self.types = dict(types)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        pass

    def cpp(self, encoder: Encoder, op: Any, name: str, value: Any) -> str:
        return self.types[value]


class Interval(Kind):
    annotation, docs = "Range", "(low, high); one number is both ends, or, of a value_range, half a width about 0."

    def __init__(self, half_width: bool = False, integer: Integer | None = None) -> None:
        self.half_width, self.integer = half_width, integer

    def canonical(self, value: Any, what: str) -> Any:
        one = (lambda v: number(v, what)) if self.integer is None else (lambda v: self.integer.canonical(v, what))
        if isinstance(value, (tuple, list)):
            if len(value) != 2:
                raise Error(f"{what}: {shown(value)} has {len(value)} ends; a range is (low, high)")
            return tuple(one(v) for v in value)
        return one(value)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.number(*interval_ends(value, self.half_width))


class AxisIntervals(Kind):
    annotation, docs = "AxisRanges", "A range for all axes, one for each in the order of array.shape, or by name."

    def canonical(self, value: Any, what: str) -> Any:
        return along_axes(value, what, lambda v: _RANGE.canonical(v, what))

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        for ends in encoder.ranges(value, name, f"suture: {op.name}: {name}"):
            encoder.number(*ends)


_RANGE = Interval(half_width=True)


class AlongAxes(Kind):
    """One value for each axis."""

    def __init__(self, one: Kind, annotation: str) -> None:
        self.one = one
        self.annotation = annotation  # type: ignore[misc]

    docs = "One value for all axes, one for each in the order of array.shape, or by name: dict(z=..., y=..., x=...)."

    def canonical(self, value: Any, what: str) -> Any:
        return along_axes(value, what, lambda v: self.one.canonical(v, what))

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        # itk and torchio have axes of the patient, of which none need be that of a plane.
        of_array = getattr(op, "convention", "") not in ("itk", "torchio")
        encoder.number(*encoder.triple(value, name, f"suture: {op.name}: {name}", of_array))


class Floats(Kind):
    annotation = "Sequence[float]"

    def __init__(self, count: int) -> None:
        self.count, self.docs = count, f"{count} numbers."  # type: ignore[misc]

    def canonical(self, value: Any, what: str) -> Any:
        return numbers(value, what, self.count)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.number(*value)


class Shears(Kind):
    annotation, docs = "Sequence[float]", "Six shears, in the order of array.shape; in 2D, z is the first axis."

    def canonical(self, value: Any, what: str) -> Any:
        return numbers(value, what, 6, single=False)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        given = iter(value)
        by_place = {(i, j): next(given) for i in range(3) for j in range(3) if i != j}
        encoder.number(*(by_place[i, j] for i in encoder.places for j in encoder.places if i != j))


class FloatList(Kind):
    annotation, docs = "Sequence[float]", "Numbers."

    def canonical(self, value: Any, what: str) -> Any:
        return numbers(value, what)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.rows(np.array(value, np.float32))


class GivenFloats(FloatList):
    """Control values of an elastic deformation, which kernels read."""

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        what = f"suture: {op.name}: {name}"
        floats = np.array(value, np.float32).view(ReadByKernels)
        if len(value) and floats.size % 3 == 0:  # C++ refuses other sizes
            bounds = encoder.triple(op.max_displacement_mm, "max_displacement_mm", what)
            for axis, most, bound in zip("zyx", np.nanmax(np.abs(floats).reshape(3, -1), 1, initial=0.0), bounds):
                if most > bound:  # C++ would limit it to the bound silently
                    raise Error(f"{what}: {most:g} mm along {axis} is more than max_displacement_mm {bound:g}; state the largest "
                                "magnitude there")
        encoder.rows(floats)


class AxisNames(Kind):
    docs = "Axes by name, z, y and x, or by their place in array.shape."

    def __init__(self, count: int, annotation: str) -> None:
        self.count = count
        self.annotation = annotation  # type: ignore[misc]

    def canonical(self, value: Any, what: str) -> Any:
        names = tuple(value) if isinstance(value, (tuple, list, str)) else ()
        if len(names) != self.count or not (all(n in ("z", "y", "x") for n in names)
                                            or all(type(n) is int and 0 <= n < 3 for n in names)):
            raise Error(f"{what}: {shown(value)} are not {self.count} axes: names of z, y, x, or numbers of array axes")
        return names

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        axes = [encoder.axis(a, f"suture: {op.name}: {name}") for a in value]
        encoder.number(*([axes[k] for k in encoder.places] if self.count == 3 else axes))


class Rows(Kind):
    annotation = "Matrix"

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.docs = f"{rows} rows of {columns} numbers."  # type: ignore[misc]

    def canonical(self, value: Any, what: str) -> Any:
        rows = sequence(value, what)
        if len(rows) != self.rows:
            raise Error(f"{what}: {len(rows)} rows given, {self.rows} are needed")
        return tuple(numbers(row, what, self.columns, single=False) for row in rows)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        if self.columns == 3:  # from the order of array.shape, before which z is the first axis in 2D
            value = [[value[i][j] for j in encoder.places] for i in encoder.places]
        encoder.number(*(number for row in value for number in row))


class Described(Kind):
    """A dataclass of tuples of numbers."""

    def __init__(self, cls: Any, docs: str, **parts: Kind) -> None:
        self.cls, self.parts = cls, parts
        self.annotation, self.docs = cls.__name__, docs  # type: ignore[misc]

    def canonical(self, value: Any, what: str) -> Any:
        if not isinstance(value, self.cls):
            raise Error(f"{what}: expected {self.cls.__name__}(...), got {shown(value)}")
        return self.cls(**{name: part.canonical(getattr(value, name), f"{what}: {name}") for name, part in self.parts.items()})

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        for part, kind in self.parts.items():
            kind.encode(encoder, op, part, getattr(value, part))

    def to_json(self, value: Any) -> Any:
        return {name: plain(getattr(value, name)) for name in self.parts}

    def from_json(self, record: Any, what: str) -> Any:
        made = members(record, what, list(self.parts))
        return self.cls(**{name: given(value, f"{what}: {name}") for name, value in made.items()})


class GridKind(Kind):
    annotation, docs = "Grid | Volume", "A Grid, or a Volume that has one."

    def canonical(self, value: Any, what: str) -> Any:
        grid = getattr(value, "grid", value)
        if not isinstance(grid, Grid):
            raise Error(f"{what}: expected a Grid or a Volume, got {shown(value)}")
        extents = tuple(whole(n, f"{what}: extents", 0, EXACT) for n in sequence(grid.extents, what, 3))
        return Grid(extents, numbers(grid.spacing, f"{what}: spacing", 3, False),  # type: ignore[arg-type]
                    numbers(grid.origin, f"{what}: origin", 3, False),  # type: ignore[arg-type]
                    numbers(grid.direction, f"{what}: direction", 9, False))

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.number(*value.extents, *value.spacing, *value.origin, *value.direction)

    def to_json(self, value: Any) -> Any:
        return value.to_json()

    def from_json(self, record: Any, what: str) -> Any:
        made = members(record, what, [f.name for f in fields(Grid)])
        return Grid(**{name: given(value, f"{what}: {name}") for name, value in made.items()})


class OptionalInteger(Kind):
    annotation, docs = "int | None", "A whole number, or None."

    def canonical(self, value: Any, what: str) -> Any:
        return None if value is None else INT32.canonical(value, what)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.number(value is not None, 0 if value is None else value)


class OptionalFloat(Kind):
    annotation, docs = "float | None", "A number, or None."

    def canonical(self, value: Any, what: str) -> Any:
        return None if value is None else number(value, what)


class HolesKind(Kind):
    annotation, docs = "Holes", "Boxes, each (start, size) with three whole numbers of either, in the order of array.shape."

    def canonical(self, value: Any, what: str) -> Any:
        made = []
        for hole in sequence(value, what):
            start, size = sequence(hole, what, 2)
            made.append(tuple(tuple(INT64.canonical(v, what) for v in sequence(corner, what)) for corner in (start, size)))
        return tuple(made)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        what = f"suture: {op.name}: {name}"
        boxes = [[*encoder.triple(start, "start", what), *encoder.triple(size, "size", what)] for start, size in value]
        encoder.rows(np.array(boxes, np.int64).reshape(-1, 6))


class Regions(Kind):
    annotation, docs = "Sequence[Sequence[int]]", "Sets of labels."

    def canonical(self, value: Any, what: str) -> Any:
        return tuple(tuple(INT32.canonical(v, what) for v in sequence(labels, what)) for labels in sequence(value, what))

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.rows(np.array([len(value), *(n for labels in value for n in (len(labels), *labels))], np.int32))


class LabelChanges(Kind):
    annotation, docs = "Mapping[int, int]", "The new label of each that changes, as {old: new}."

    def canonical(self, value: Any, what: str) -> Any:
        if not isinstance(value, Mapping):
            raise Error(f"{what}: expected a dict of labels, got {shown(value)}")
        return FrozenMap({INT32.canonical(k, what): INT32.canonical(v, what) for k, v in value.items()})

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.rows(np.array(list(value.items()), np.int32).reshape(-1, 2))

    def to_json(self, value: Any) -> Any:
        return [[k, v] for k, v in value.items()]

    def from_json(self, record: Any, what: str) -> Any:
        pairs = given(record, what)
        if type(pairs) is not tuple or not all(type(p) is tuple and len(p) == 2 and type(p[0]) is int for p in pairs):
            raise Error(f"{what}: expected pairs of labels, got {shown(record)}")
        return dict(pairs)


class ColorSteps(Kind):
    annotation, docs = "Sequence[str]", "brightness, contrast, saturation and hue, each once."
    steps = ("brightness", "contrast", "saturation", "hue")

    def canonical(self, value: Any, what: str) -> Any:
        steps = tuple(sequence(value, what))
        if len(steps) != 4 or not all(s in steps for s in self.steps):
            raise Error(f"{what}: {shown(value)} are not brightness, contrast, saturation and hue, each once")
        return steps

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        encoder.number(*(self.steps.index(s) for s in value))


class Anatomical(Choice):
    """The anatomical direction in which an axis increases. C++ reads those of x, y and z as one list."""

    annotation, docs = "str", "R or L, A or P, S or I."

    def __init__(self) -> None:
        super().__init__(("R", "L", "A", "P", "S", "I"))

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        if name == "x":
            encoder.rows(np.frombuffer((op.x + op.y + op.z).encode(), np.uint8))


class StartsKind(Kind):
    annotation, docs, varies = "Starts", "Where each sample begins, in the order of array.shape, or per_sample(key).", True

    def canonical(self, value: Any, what: str) -> Any:
        if isinstance(value, PerSample):
            return value
        if hasattr(value, "tolist"):
            value = value.tolist()
        return tuple(tuple(INT64.canonical(v, what) for v in sequence(row, what, 3)) for row in sequence(value, what))

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        if isinstance(value, PerSample):
            what = f"suture: {op.name}: {name}"
            value = () if encoder.ahead else self.canonical(encoder.given(value.key, what), what)
        rows = np.array(value if len(value) else np.zeros((0, 3)), np.int64).reshape(-1, 3)
        encoder.rows(rows if encoder.places == (0, 1, 2) else np.ascontiguousarray(rows[:, encoder.places]))

    def to_json(self, value: Any) -> Any:
        return {"per_sample": value.key} if isinstance(value, PerSample) else plain(value)

    def from_json(self, record: Any, what: str) -> Any:
        if type(record) is dict:
            return PerSample(members(record, what, ["per_sample"])["per_sample"])
        return given(record, what)


class Results(Kind):
    """Results of a fit for each sample: objects with `_cpp`, pack() and to_json()."""

    annotation, docs, varies = "Fitted", "Results of a fit, one for each sample, or per_sample(key).", True

    def __init__(self, result: str) -> None:
        self.result = result

    def canonical(self, value: Any, what: str) -> Any:
        if isinstance(value, PerSample):
            return value
        values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        for each in values:
            if getattr(each, "_cpp", None) != self.result:
                raise Error(f"{what}: {shown(each)} is not what the fit leaves that the operation reads, {self.result}")
        return values if isinstance(value, (list, tuple)) else value

    def of_batch(self, encoder: Encoder, op: Any, name: str, value: Any) -> tuple[Any, ...]:
        """Returns the results of all samples, from the batch if per_sample names them."""
        what = f"suture: {op.name}: {name}"
        value = self.canonical(encoder.given(value.key, what) if isinstance(value, PerSample) else value, what)
        return value if isinstance(value, tuple) else (value,)

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        if isinstance(value, PerSample) and encoder.ahead:
            encoder.rows(np.zeros((0, 1), np.uint8))
            return
        packed = [each.pack() for each in self.of_batch(encoder, op, name, value)]
        sizes = {len(p) for p in packed}
        if len(sizes) > 1:
            raise Error(f"suture: {op.name}: {name}: expected results of one size, got {sorted(sizes)} bytes")
        rows = np.frombuffer(b"".join(packed), np.uint8).reshape(len(packed), -1) if packed else np.zeros((0, 1), np.uint8)
        encoder.rows(rows.view(ReadByKernels))

    def to_json(self, value: Any) -> Any:
        if isinstance(value, PerSample):
            return {"per_sample": value.key}
        return [each.to_json() for each in value] if isinstance(value, tuple) else value.to_json()

    def from_json(self, record: Any, what: str) -> Any:
        if type(record) is dict and "per_sample" in record:
            return PerSample(members(record, what, ["per_sample"])["per_sample"])
        return results_from_json(record)


class LandmarkResults(Results):
    """Landmarks of histogram_match<N>, whose number N is part of the C++ type."""

    def __init__(self) -> None:
        super().__init__("landmark_map")

    def cpp(self, encoder: Encoder, op: Any, name: str, value: Any) -> str:
        counts = {len(each.source) for each in self.of_batch(encoder, op, name, value)}
        if len(counts) != 1:
            raise Error(f"suture: histogram_match: maps of {sorted(counts)} landmarks in one batch")
        return str(whole(counts.pop(), "suture: histogram_match: landmarks", 2, 64))

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        if isinstance(value, PerSample) and encoder.ahead:
            encoder.given(value.key, f"suture: {op.name}: {name}")  # raises, since the type depends on the batch
        super().encode(encoder, op, name, value)


class Text(Kind):
    """A text, such as the key of another entry of the batch. C++ does not read it."""

    annotation, docs = "str", "A key of the pipeline."

    def canonical(self, value: Any, what: str) -> str:
        if not isinstance(value, str):
            raise Error(f"{what}: expected a string, got {shown(value)}")
        return value

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        pass


class Maps(Kind):
    """The coordinate maps of another plan, valid as long as that plan lives. A record cannot have them."""

    annotation, docs = "Any", "The maps of a plan."

    def canonical(self, value: Any, what: str) -> Any:
        return value

    def from_json(self, record: Any, what: str) -> Any:
        raise Error(f"{what}: expected the maps of a plan, which no record has. Call Plan.inverse")


class Parameters(Kind):
    """Numbers by name, which the operation encodes itself."""

    annotation, docs = "float", "Numbers by name."

    def canonical(self, value: Any, what: str) -> FrozenMap:
        if not isinstance(value, Mapping):
            raise Error(f"{what}: expected numbers by name, got {shown(value)}")
        for name in value:
            if not (isinstance(name, str) and name.isascii() and name.isidentifier() and len(name) <= 64):
                raise Error(f"{what}: expected a name of at most 64 letters, digits and _, got {shown(name)}")
        return FrozenMap({name: number(v, f"{what}: {name}") for name, v in value.items()})


_FLAGS = Flag()
KINDS: dict[str, Kind] = {
    "float32": Float(True), "float32_or_nan": Float(True, nan=True), "float64": Float(False),
    "int32": INT32, "int64": INT64, "uint16": Integer(0, (1 << 16) - 1), "flag": _FLAGS,
    "interval": Interval(), "value_range": _RANGE, "integer_interval": Interval(integer=INT32), "axis_ranges": AxisIntervals(),
    "point3": AlongAxes(Float(False), "AxisFloats"), "axis_values": AlongAxes(Float(False), "AxisFloats"),
    "floats3": AlongAxes(Float(True), "AxisFloats"), "extent3": AlongAxes(INT64, "AxisIntegers"),
    "int3": AlongAxes(INT32, "AxisIntegers"), "flags3": AlongAxes(_FLAGS, "AxisFlags"),
    "floats:2": Floats(2), "floats:3": Floats(3), "shears": Shears(), "float_list": FloatList(), "given_floats": GivenFloats(),
    "axis_order": AxisNames(3, "AxisOrder"), "axis_pair": AxisNames(2, "AxisPair"),
    "matrix3": Rows(3, 3), "stain_matrix": Rows(3, 2), "grid": GridKind(),
    "channel_statistics": Described(ChannelStatistics, "ChannelStatistics(mean=..., standard_deviation=...).",
                                    mean=Floats(3), standard_deviation=Floats(3)),
    "stain_reference": Described(StainReference, "StainReference(stains=..., max_concentration=...).",
                                 stains=Rows(3, 2), max_concentration=Floats(2)),
    "color_target": Described(ColorMoments, "ColorMoments(mean=..., standard_deviation=...).",
                              mean=Floats(3), standard_deviation=Floats(3)),
    "optional_int": OptionalInteger(), "optional_float": OptionalFloat(),
    "holes": HolesKind(), "regions": Regions(), "label_changes": LabelChanges(), "color_steps": ColorSteps(),
    "anatomical": Anatomical(), "starts": StartsKind(), "results:landmark_map": LandmarkResults(),
    **{f"results:{r}": Results(r) for r in ("moments", "intensity_range", "stain_basis", "color_moments")},
    "text": Text(), "maps": Maps(), "parameters": Parameters(),
    "type:element": TypeName({n: CPP_TYPES[n] for n in ("int8", "uint8", "int16", "uint16", "int32", "float32", "float16",
                                                        "bfloat16")}),
    "type:color_space": TypeName({n: f"suture::{n}" for n in ("lab", "ruderman")}),
    "type:interpolation": TypeName({n: f"suture::{n}" for n in ("nearest", "nearest_half_even", "linear", "catmull_rom",
                                                                "torch_cubic", "cubic_bspline")}),
    "type:border": TypeName({n: f"suture::{n}" for n in ("constant", "default_value", "edge", "reflect", "mirror", "wrap")}),
    "type:label_rule": TypeName({n: f"suture::{n}" for n in ("nearest", "nearest_half_even", "vote", "majority")}),
    "choice:image_rim": Choice(("faces", "centers")),
}


def canonical(kind: str, value: Any, what: str) -> Any:
    """Checks a value by a kind of KINDS and returns it in the form that operations store."""
    return KINDS[kind].canonical(value, what)
