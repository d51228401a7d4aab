# SPDX-License-Identifier: Apache-2.0
"""What an operation is in Python: a frozen dataclass of its parameters, and how those may be written."""
from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Union

from ..errors import Error

Range = Union[float, tuple[float, float]]
IntegerRange = Union[int, tuple[int, int]]
AxisFloats = Union[float, Sequence[float], Mapping[str, float]]
AxisIntegers = Union[int, Sequence[int], Mapping[str, int]]
AxisFlags = Union[bool, Sequence[bool], Mapping[str, bool]]
AxisRanges = Union[float, Sequence[Any], Mapping[str, Any]]
AxisOrder = Sequence[Union[str, int]]
AxisPair = tuple[Union[str, int], Union[str, int]]
Matrix = Sequence[Sequence[float]]
Holes = Sequence[Any]
Starts = Any
Fitted = Any
NAN = math.nan

# What the parameters are called elsewhere, and here.
ELSEWHERE = {"p": "probability", "prob": "probability", "pixdim": "spacing_mm", "spacing": "spacing_mm",
             "roi_size": "size", "patch_size": "size", "degrees": "rotate_deg", "rotate_range": "rotate_deg",
             "mode": "sampling(interpolation=...) in the chain", "padding_mode": "sampling(border=...) in the chain",
             "axcodes": 'x, y and z, as in orient(x="L", y="P", z="S")', "std": "sigma or standard_deviation"}


class Axes(Mapping[str, Any]):
    """Values by the name of an axis: z, y and x. Hashable, and printed as dict(z=..., y=...)."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any], what: str) -> None:
        for name in items:
            if name not in ("z", "y", "x"):
                raise Error(f"{what}: axis {name!r} is none of z, y and x")
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
    """A mapping that can be hashed; nothing changes it once it is made."""

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
        return hash(tuple(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


@dataclass(frozen=True)
class PerSample:
    """Stands where a value is another for each sample: batch[key] has a list of them. Made by per_sample."""

    key: str


def per_sample(key: str) -> PerSample:
    """The values of a parameter that come with each batch, as batch[key], one for each sample: results of fits, starts."""
    return PerSample(key)


@dataclass(frozen=True, kw_only=True)
class ChannelStatistics:
    """Mean and standard deviation of red, green and blue, of values in 0 .. 1."""

    mean: tuple[float, float, float]
    standard_deviation: tuple[float, float, float]


IMAGENET = ChannelStatistics(mean=(0.485, 0.456, 0.406), standard_deviation=(0.229, 0.224, 0.225))


@dataclass(frozen=True, kw_only=True)
class StainReference:
    """What tiles are normalized to: rows red, green, blue of hematoxylin and eosin, and the maximum concentrations."""

    stains: tuple[tuple[float, float], ...] = ((0.5626, 0.2159), (0.7201, 0.8012), (0.4062, 0.5581))
    max_concentration: tuple[float, float] = (1.9705, 1.0308)


STAIN_REFERENCE = StainReference()


@dataclass(frozen=True, kw_only=True)
class ColorMoments:
    """Mean and standard deviation of colors by channel of a color space, as a target."""

    mean: tuple[float, float, float]
    standard_deviation: tuple[float, float, float] = (1.0, 1.0, 1.0)


def _floats(value: Any, count: int, what: str) -> tuple[float, ...]:
    values = tuple(float(v) for v in value)
    if len(values) != count:
        raise Error(f"{what}: {len(values)} numbers given, {count} are needed")
    return values


def _number(value: Any, what: str, whole: bool) -> float | int:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise Error(f"{what}: {value!r} is not a number")
    if whole:
        if float(value) != int(value):
            raise Error(f"{what}: {value!r} is not a whole number")
        return int(value)
    return float(value)


def _pair(value: Any, what: str, whole: bool) -> Any:
    if isinstance(value, (tuple, list)):
        if len(value) != 2:
            raise Error(f"{what}: {value!r} has {len(value)} ends; a range is (low, high)")
        return tuple(_number(v, what, whole) for v in value)
    return _number(value, what, whole)


def _axes(value: Any, what: str, one: Any) -> Any:
    """One value for all axes, a tuple in the order of array.shape, or values by the name of the axis."""
    if isinstance(value, Mapping):
        return Axes({name: one(v) for name, v in value.items()}, what)
    if isinstance(value, (tuple, list)):
        if len(value) not in (2, 3):
            raise Error(f"{what}: {value!r} has {len(value)} values; give one for all axes, one for each, "
                        "or dict(z=..., y=..., x=...)")
        return tuple(one(v) for v in value)
    return one(value)


def canonical(kind: str, value: Any, what: str, multiplies: bool) -> Any:
    """The value as it is kept: numbers as float or int, lists as tuples."""
    if isinstance(value, PerSample):
        if kind == "starts" or kind.startswith("results"):
            return value
        raise Error(f"{what}: per_sample is for results of fits and for starts")
    if kind in ("float32", "float64"):
        return _number(value, what, False)
    if kind in ("int32", "int64"):
        return _number(value, what, True)
    if kind == "flag":
        if not isinstance(value, bool):
            raise Error(f"{what}: {value!r} is neither True nor False")
        return value
    if kind in ("interval", "value_range", "integer_interval"):
        if multiplies and not isinstance(value, (tuple, list)):
            raise Error(f"{what}: {value!r} alone may mean a factor or half a width; give both ends, (low, high)")
        return _pair(value, what, kind == "integer_interval")
    if kind == "axis_ranges":
        if multiplies and not isinstance(value, (tuple, list, Mapping)):
            raise Error(f"{what}: {value!r} alone may mean a factor or half a width; give both ends, (low, high)")
        return _axes(value, what, lambda v: _pair(v, what, False))
    if kind in ("point3", "axis_values", "floats3"):
        return _axes(value, what, lambda v: _number(v, what, False))
    if kind in ("extent3", "int3"):
        return _axes(value, what, lambda v: _number(v, what, True))
    if kind == "flags3":
        return _axes(value, what, lambda v: canonical("flag", v, what, False))
    if kind.startswith("floats:"):
        return _floats(value, int(kind[7:]), what)
    if kind == "shears":
        return _floats(value, 6, what)
    if kind in ("float_list", "given_floats"):
        return tuple(float(v) for v in value)
    if kind in ("axis_order", "axis_pair"):
        names = tuple(value)
        count = 2 if kind == "axis_pair" else 3
        if len(names) != count or not (all(n in ("z", "y", "x") for n in names)
                                       or all(isinstance(n, int) and 0 <= n < 3 for n in names)):
            raise Error(f"{what}: {value!r} are not {count} axes: names of z, y, x, or numbers of array axes")
        return names
    if kind == "matrix3":
        return tuple(_floats(row, 3, what) for row in value)
    if kind == "stain_matrix":
        return tuple(_floats(row, 2, what) for row in value)
    if kind == "regions":
        return tuple(tuple(int(v) for v in labels) for labels in value)
    if kind == "label_changes":
        return FrozenMap({int(k): int(v) for k, v in dict(value).items()})
    if kind == "optional_int":
        return None if value is None else int(value)
    if kind == "holes":
        return tuple((tuple(int(v) for v in start), tuple(int(v) for v in size)) for start, size in value)
    if kind == "color_steps":
        steps = tuple(value)
        if sorted(steps) != ["brightness", "contrast", "hue", "saturation"]:
            raise Error(f"{what}: {value!r} are not brightness, contrast, saturation and hue, each once")
        return steps
    if kind.startswith("results:") and isinstance(value, list):
        return tuple(value)
    if kind == "starts" and isinstance(value, (list, tuple)):
        return tuple(tuple(int(v) for v in row) for row in value)
    if kind.startswith("choice:"):
        from .generated import CHOICES

        names = CHOICES[kind[7:]]
        if value not in names:
            raise Error(f"{what}: {value!r} is none of {', '.join(names)}")
        return value
    return value


@dataclass(frozen=True)
class Operation:
    """A step of a chain. Operations are joined in lists, or by |."""

    _role: ClassVar[str] = ""
    _random: ClassVar[bool] = False
    _header: ClassVar[str] = ""
    _fields: ClassVar[tuple[tuple[str, str], ...]] = ()
    _multiplies: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls._header.startswith("ops/") and "_role" not in cls.__dict__:
            cls._role = cls._header.split("/")[1]
        _known[cls.__name__] = cls

    def __post_init__(self) -> None:
        name = type(self).__name__
        for field, kind in self._fields:
            if field:
                what = f"suture: {name}: {field}"
                value = canonical(kind, getattr(self, field), what, field in self._multiplies)
                object.__setattr__(self, field, value)

    def __or__(self, other: Any) -> tuple[Operation, ...]:
        return (self, *chain_of(other))

    def __ror__(self, other: Any) -> tuple[Operation, ...]:
        return (*chain_of(other), self)

    @property
    def name(self) -> str:
        """As C++ and records call it."""
        return type(self).__name__

    def to_json(self) -> dict[str, Any]:
        """The operation by name and parameters, of what JSON has."""
        return {"name": self.name, **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}


_known: dict[str, type[Operation]] = {}


def _plain(value: Any) -> Any:
    if isinstance(value, Operation):
        return value.to_json()
    if isinstance(value, PerSample):
        return {"per_sample": value.key}
    if type(value) is FrozenMap:
        return [[k, v] for k, v in value.items()]
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, (ChannelStatistics, StainReference, ColorMoments)):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    for way in ("to_json", "tolist"):
        if hasattr(value, way):
            return getattr(value, way)()
    return value


_RECORDS: dict[str, Any] = {"channel_statistics": ChannelStatistics, "stain_reference": StainReference,
                            "color_target": ColorMoments}


def operation_from_json(record: Mapping[str, Any]) -> Operation:
    """The operation that to_json wrote."""
    made = dict(record)
    name = made.pop("name")
    if name not in _known:
        raise Error(f"suture: there is no operation {name!r}")
    if name == "value_cpp":
        raise Error(f"suture: value_cpp: code is not taken from a record; make the pipeline with {made['path']!r}, and give it: "
                    "replay(..., pipeline=...)")
    if name == "value":
        return _known[name](made["expression"], **made["parameters"])  # type: ignore[call-arg]
    kind_of = dict(_known[name]._fields)
    for field, value in made.items():
        kind = kind_of.get(field, "")
        if isinstance(value, dict) and "per_sample" in value:
            made[field] = PerSample(value["per_sample"])
        elif isinstance(value, dict) and "float" in value:
            made[field] = float(value["float"])
        elif kind == "label_changes":
            made[field] = {k: v for k, v in value}
        elif kind in _RECORDS:
            made[field] = _RECORDS[kind](**{k: tuple(tuple(w) if isinstance(w, list) else w for w in v)
                                            for k, v in value.items()})
        elif kind == "grid":
            from ..arrays.volume import Grid

            made[field] = Grid.from_json(value)
        elif kind.startswith("results:"):
            from ..functions.fits import results_from_json

            made[field] = results_from_json(value)
        elif isinstance(value, dict) and "name" in value:
            made[field] = operation_from_json(value)
    return make(name, made)


def make(name: str, parameters: Mapping[str, Any]) -> Operation:
    """An operation by its name; the parameters that others call something else are named."""
    if name not in _known:
        raise Error(f"suture: there is no operation {name!r}")
    return _known[name](**parameters)


def chain_of(given: Any) -> tuple[Operation, ...]:
    """Operations out of lists, nested as they like; None is left out."""
    if given is None:
        return ()
    if isinstance(given, Operation):
        return (given,)
    if isinstance(given, (tuple, list)):
        return tuple(op for each in given for op in chain_of(each))
    if isinstance(given, type) and issubclass(given, Operation):
        raise Error(f"suture: expected an operation, got the class {given.__name__}. Call it, {given.__name__}(...)")
    if type(given).__name__ in ("labels", "boxes", "points"):
        raise Error(f"suture: expected an operation, got {given!r} in a chain. It stands alone: key={type(given).__name__}(...)")
    raise Error(f"suture: expected an operation, got {given!r}. Operations are in docs/operations.md")


def name_mistakes(cls: type[Operation]) -> type[Operation]:
    """Says what a parameter is called here where it is given by the name that others have for it."""
    plain = cls.__init__

    def __init__(self: Any, *values: Any, **parameters: Any) -> None:
        if values:
            raise Error(f"suture: {cls.__name__}: parameters are named: {', '.join(f.name for f in fields(cls))}")
        known = {f.name for f in fields(cls)}
        for given in parameters:
            if given not in known:
                hint = ELSEWHERE.get(given)
                hint = f"; here it is {hint}" if hint else f"; it has {', '.join(sorted(known)) or 'none'}"
                raise Error(f"suture: {cls.__name__}: there is no parameter {given!r}{hint}")
        missing = [f.name for f in fields(cls) if f.name not in parameters and not _has_default(f)]
        if missing:
            raise Error(f"suture: {cls.__name__}: {', '.join(missing)} must be given")
        plain(self, **parameters)

    __init__.__wrapped__ = plain  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls


def _has_default(field: Any) -> bool:
    from dataclasses import MISSING

    return field.default is not MISSING or field.default_factory is not MISSING


def dumps(record: Any) -> str:
    """JSON on one line."""
    return json.dumps(record, allow_nan=False)
