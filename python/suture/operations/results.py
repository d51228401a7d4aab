# SPDX-License-Identifier: Apache-2.0
"""Results of fits: what normalization needs to know of images, as frozen dataclasses that go to JSON and back.

`pack` and `unpack` know the structs of include/suture/stats by their layout; abi::result_layouts is what a test compares
them with.
"""
from __future__ import annotations

import reprlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..errors import Error

FIT_STATUS = ("ok", "constant", "empty", "stated", "not_fitted")
STAIN_STATUS = ("ok", "too_little_tissue", "single_stain", "ill_conditioned", "not_fitted")
STAIN_BASIS_BYTES = 216
COLOR_SPACES = ("lab", "ruderman", "hed", "hsv")


MOST_LANDMARKS = 64  # their number is part of a C++ type


def _choice(value: Any, names: Sequence[str], what: str) -> None:
    if value not in names:
        raise Error(f"{what}: expected one of {', '.join(names)}, got {_shown(value)}")


def _shown(value: Any) -> str:
    """A value for a message, shortened."""
    return reprlib.repr(value)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Voxels that were looked at: selected and finite, selected and not finite, under labels outside the classes."""

    count: int = 0
    excluded: int = 0
    undeclared: int = 0


@dataclass(frozen=True)
class Result:
    """The result of a fit for one image or channel."""

    _cpp: ClassVar[str] = ""
    _statuses: ClassVar[tuple[str, ...]] = FIT_STATUS

    def __post_init__(self) -> None:
        self._check("status", self._statuses)

    def _check(self, name: str, names: Sequence[str]) -> None:
        _choice(getattr(self, name), names, f"suture: {type(self).__name__}: {name}")

    def pack(self) -> bytes:
        """Returns the bytes of the C++ struct, which operations read."""
        raise NotImplementedError

    def _packed(self, layout: str | struct.Struct, *values: Any) -> bytes:
        try:
            return layout.pack(*values) if isinstance(layout, struct.Struct) else struct.pack(layout, *values)
        except (struct.error, OverflowError) as problem:
            what = f"suture: {type(self).__name__}"
            raise Error(f"{what}: expected numbers that C++ holds, got {_shown(self)}: {problem}") from None

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values that `results_from_json` reads back."""
        made: dict[str, Any] = {"result": type(self).__name__}
        for f in fields(self):
            value = getattr(self, f.name)
            made[f.name] = (vars(value) if isinstance(value, Tally) else value.hex() if isinstance(value, bytes)
                            else list(value) if isinstance(value, tuple) else value)
        return made


def _number(value: Any, what: str) -> float:
    if type(value) not in (int, float):
        raise Error(f"{what}: expected a number, got {_shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise Error(f"{what}: expected a number within float64, got {_shown(value)}") from None


def _whole(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise Error(f"{what}: expected a whole number from 0 to 2^64 - 1, got {_shown(value)}")
    return value


def _ddof(value: Any, what: str) -> int:
    if type(value) is not int or value not in (0, 1):
        raise Error(f"{what}: expected 0 or 1, got {_shown(value)}")
    return value


def _flag(value: Any, what: str) -> bool:
    if type(value) is not bool:
        raise Error(f"{what}: expected true or false, got {_shown(value)}")
    return value


def _text(value: Any, what: str) -> str:
    if type(value) is not str:
        raise Error(f"{what}: expected a string, got {_shown(value)}")
    return value


def _bytes(value: Any, what: str) -> bytes:
    text = _text(value, what)
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise Error(f"{what}: expected bytes as hexadecimal digits, got {_shown(value)}") from None


def _tuple(read: Callable[[Any, str], Any], size: int | None = None) -> Callable[[Any, str], tuple[Any, ...]]:
    def reading(value: Any, what: str) -> tuple[Any, ...]:
        if type(value) not in (list, tuple) or (size is not None and len(value) != size):
            raise Error(f"{what}: expected a list{'' if size is None else f' of {size}'}, got {_shown(value)}")
        return tuple([read(v, what) for v in value])

    return reading


def _members(given: Any, read: Mapping[str, Callable[[Any, str], Any]], what: str) -> dict[str, Any]:
    """The members of a record, each read by its own function. A record may leave members out."""
    if not isinstance(given, Mapping):
        raise Error(f"{what}: expected an object, got {_shown(given)}")
    for name in given:
        if name not in read:
            raise Error(f"{what}: expected members among {', '.join(read)}, got {_shown(name)}")
    return {name: read[name](value, f"{what}: {name}") for name, value in given.items()}


def _read_tally(value: Any, what: str) -> Tally:
    return Tally(**_members(value, {"count": _whole, "excluded": _whole, "undeclared": _whole}, what))


# How a field is read, by its annotation.
_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "float": _number, "int": _whole, "str": _text, "bytes": _bytes, "Tally": _read_tally, "tuple[float, ...]": _tuple(_number),
    "tuple[float, float, float]": _tuple(_number, 3), "tuple[bool, bool, bool]": _tuple(_flag, 3)}


def results_from_json(record: Any) -> Any:
    """Reads results of fits that `to_json` wrote.

    Parameters
    ----------
    record : dict or list
        One result, or a list of them.

    Returns
    -------
    Result or list of Result
        The result, or a list of them.

    Raises
    ------
    Error
        If the record names a result or a field that does not exist, leaves out a field without a default, or has a value of
        another type, size or range.
    """
    what = "suture: results_from_json"
    if isinstance(record, list):
        return [_result_from_json(r, what) for r in record]
    return _result_from_json(record, what)


def _result_from_json(record: Any, what: str) -> Result:
    if not isinstance(record, Mapping):
        raise Error(f"{what}: expected an object for each result, got {_shown(record)}")
    given = dict(record)
    name = given.pop("result", None)
    cls = _RESULTS.get(name) if isinstance(name, str) else None
    if cls is None:
        raise Error(f"{what}: result: expected one of {', '.join(_RESULTS)}, got {_shown(name)}")
    read = {f.name: _ddof if f.name == "ddof" else _READ[str(f.type)] for f in fields(cls)}
    values = _members(given, read, f"{what}: {name}")
    for f in fields(cls):
        if f.default is MISSING and f.name not in values:
            raise Error(f"{what}: {name}: expected {f.name}, got none")
    made: Result = cls(**values)
    return made


def _tally(t: Tally) -> tuple[int, int, int]:
    return t.count, t.excluded, t.undeclared


def _reciprocal(value: float) -> float:
    return float(np.float32(1.0 / value))


@dataclass(frozen=True, kw_only=True)
class Moments(Result):
    """Mean, standard deviation, minimum and maximum; stated where only they are given."""

    mean: float = 0.0
    standard_deviation: float = 1.0
    minimum: float = 0.0
    maximum: float = 0.0
    tally: Tally = Tally()
    status: str = "stated"
    ddof: int = 0

    _cpp: ClassVar[str] = "moments"
    _format: ClassVar[struct.Struct] = struct.Struct("<4d3QIiff")

    def pack(self) -> bytes:
        scale = 1.0 if self.standard_deviation == 1 else _reciprocal(max(self.standard_deviation, 1e-8))
        return self._packed(self._format, self.mean, self.standard_deviation, self.minimum, self.maximum, *_tally(self.tally),
                            FIT_STATUS.index(self.status), self.ddof, self.mean, scale)

    @classmethod
    def unpack(cls, data: bytes) -> Moments:
        m, s, low, high, a, b, c, status, ddof, _, _ = cls._format.unpack(data)
        return cls(mean=m, standard_deviation=s, minimum=low, maximum=high,
                   tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status], ddof=ddof)


@dataclass(frozen=True, kw_only=True)
class IntensityRange(Result):
    """Two percentiles as an interval."""

    low: float = 0.0
    high: float = 1.0
    tally: Tally = Tally()
    status: str = "stated"

    _cpp: ClassVar[str] = "intensity_range"
    _format: ClassVar[struct.Struct] = struct.Struct("<2d3QIff4x")

    def pack(self) -> bytes:
        extent = self.high - self.low
        most = float(np.finfo(np.float32).max)
        scale = 1.0 if extent == 1 else 0.0 if not extent > 0 else min(float(np.float32(min(1.0 / extent, most))), most)
        return self._packed(self._format, self.low, self.high, *_tally(self.tally), FIT_STATUS.index(self.status), self.low,
                            scale)

    @classmethod
    def unpack(cls, data: bytes) -> IntensityRange:
        low, high, a, b, c, status, _, _ = cls._format.unpack(data)
        return cls(low=low, high=high, tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status])


@dataclass(frozen=True, kw_only=True)
class Threshold(Result):
    """A threshold between {<= value} and {> value}."""

    value: float
    tally: Tally = Tally()
    status: str = "ok"

    _cpp: ClassVar[str] = "threshold"
    _format: ClassVar[struct.Struct] = struct.Struct("<d3QI4x")

    @classmethod
    def unpack(cls, data: bytes) -> Threshold:
        value, a, b, c, status = cls._format.unpack(data)
        return cls(value=value, tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status])


@dataclass(frozen=True, kw_only=True)
class Percentiles(Result):
    """Percentiles as numpy.percentile has them."""

    value: tuple[float, ...]
    tally: Tally = Tally()
    status: str = "ok"

    @staticmethod
    def layout(n: int) -> str:
        """The format of n percentiles."""
        return f"<{n}d3QI4x"

    @classmethod
    def unpack(cls, data: bytes, n: int) -> Percentiles:
        *value, a, b, c, status = struct.unpack(cls.layout(n), data)
        return cls(value=tuple(value), tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status])


@dataclass(frozen=True, kw_only=True)
class LandmarkMap(Result):
    """A piecewise linear map from `source` to `target` landmarks."""

    source: tuple[float, ...]
    target: tuple[float, ...]
    slope: tuple[float, ...] = ()
    tally: Tally = Tally()
    status: str = "stated"

    _cpp: ClassVar[str] = "landmark_map"

    def __post_init__(self) -> None:
        super().__post_init__()
        n = len(self.source)
        if n != len(self.target) or not 2 <= n <= MOST_LANDMARKS:
            raise Error(f"suture: LandmarkMap: {n} landmarks for {len(self.target)} targets; two to {MOST_LANDMARKS} of each are "
                        "needed")
        if len(self.slope) not in (0, n - 1):
            raise Error(f"suture: LandmarkMap: slope: expected {n - 1} slopes for {n} landmarks, or none, got {len(self.slope)}")

    @staticmethod
    def layout(n: int) -> str:
        """The format of a map of n landmarks."""
        return f"<{n}f{n}f{n - 1}f{'4x' if n % 2 == 0 else ''}3QI4x"

    def pack(self) -> bytes:
        slope = self.slope
        if not slope:
            s, t = (np.array(values, np.float32).astype(np.float64) for values in (self.source, self.target))
            run = np.diff(s)
            lines = np.divide(np.diff(t), run, out=np.zeros(len(run)), where=run > 0)
            slope = tuple(float(v) for v in np.minimum(lines, np.finfo(np.float32).max))
        return self._packed(self.layout(len(self.source)), *self.source, *self.target, *slope, *_tally(self.tally),
                           FIT_STATUS.index(self.status))

    @classmethod
    def unpack(cls, data: bytes, n: int) -> LandmarkMap:
        values = struct.unpack(cls.layout(n), data)
        a, b, c, status = values[-4:]
        return cls(source=values[:n], target=values[n:2 * n], slope=values[2 * n:3 * n - 1],
                   tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status])


@dataclass(frozen=True, kw_only=True)
class ColorMomentsFit(Result):
    """Mean and standard deviation by channel of a color space."""

    space: str
    mean: tuple[float, float, float]
    standard_deviation: tuple[float, float, float]
    tally: Tally = Tally()
    status: str = "stated"
    ddof: int = 0
    resolved: tuple[bool, bool, bool] = (True, True, True)  # whether a deviation is above what the space resolves

    _cpp: ClassVar[str] = "color_moments"
    _format: ClassVar[struct.Struct] = struct.Struct("<3d3d3QIi9f4x")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("space", COLOR_SPACES)

    def pack(self) -> bytes:
        back = [1.0 if d == 1 else _reciprocal(d) if r and d > 0 else 0.0
                for d, r in zip(self.standard_deviation, self.resolved)]
        return self._packed(self._format, *self.mean, *self.standard_deviation, *_tally(self.tally),
                            FIT_STATUS.index(self.status), self.ddof, *self.mean, *self.standard_deviation, *back)

    @classmethod
    def unpack(cls, data: bytes, space: str = "lab") -> ColorMomentsFit:
        v = cls._format.unpack(data)
        return cls(space=space, mean=v[:3], standard_deviation=v[3:6], tally=Tally(count=v[6], excluded=v[7], undeclared=v[8]),
                   status=FIT_STATUS[v[9]], ddof=v[10], resolved=(v[17] > 0, v[18] > 0, v[19] > 0))


@dataclass(frozen=True, kw_only=True)
class Sharpness(Result):
    """The sharpness of a tile."""

    laplacian_variance: float
    mean: float
    standard_deviation: float
    pixels: int
    status: str

    _cpp: ClassVar[str] = "sharpness"
    _format: ClassVar[struct.Struct] = struct.Struct("<3dQI4x")

    @classmethod
    def unpack(cls, data: bytes) -> Sharpness:
        v = cls._format.unpack(data)
        return cls(laplacian_variance=v[0], mean=v[1], standard_deviation=v[2], pixels=v[3], status=FIT_STATUS[v[4]])

    def quality(self, *, least_laplacian_variance: float = 30.0, least_deviation: float = 5.0) -> str:
        """good, blank or blurred."""
        if self.standard_deviation < least_deviation:
            return "blank"
        return "blurred" if self.laplacian_variance < least_laplacian_variance else "good"


@dataclass(frozen=True)
class StainBasis(Result):
    """The two stains of a tile or a slide, and how much of each there is."""

    raw: bytes = field(repr=False)

    _cpp: ClassVar[str] = "stain_basis"
    _statuses: ClassVar[tuple[str, ...]] = STAIN_STATUS
    _format: ClassVar[struct.Struct] = struct.Struct("<8d4Q2I")

    def __post_init__(self) -> None:
        if not isinstance(self.raw, bytes) or len(self.raw) != STAIN_BASIS_BYTES:
            raise Error(f"suture: StainBasis: raw: expected {STAIN_BASIS_BYTES} bytes, got "
                        f"{len(self.raw) if isinstance(self.raw, bytes) else _shown(self.raw)}. Fit the tiles again")
        if self._head[12] >= len(STAIN_STATUS):
            raise Error(f"suture: StainBasis: raw: expected a status below {len(STAIN_STATUS)}, got {self._head[12]}. Fit the "
                        "tiles again")

    @property
    def _head(self) -> tuple[Any, ...]:
        return self._format.unpack_from(self.raw)

    @property
    def stains(self) -> tuple[tuple[float, float], ...]:
        """Rows red, green, blue; columns hematoxylin, eosin."""
        v = self._head
        return (v[0], v[1]), (v[2], v[3]), (v[4], v[5])

    @property
    def max_concentration(self) -> tuple[float, float]:
        return self._head[6], self._head[7]

    @property
    def status(self) -> str:
        return STAIN_STATUS[self._head[12]]

    @property
    def pixels(self) -> int:
        return int(self._head[11])

    def pack(self) -> bytes:
        return self.raw

    @classmethod
    def unpack(cls, data: bytes) -> StainBasis:
        return cls(bytes(data[:-4]) + bytes(4))  # the structure ends four bytes before its size

    def __repr__(self) -> str:
        return f"StainBasis(stains={self.stains}, max_concentration={self.max_concentration}, status={self.status!r})"


_RESULTS: dict[str, Any] = {c.__name__: c for c in (Moments, IntensityRange, Threshold, Percentiles, LandmarkMap,
                                                    ColorMomentsFit, Sharpness, StainBasis)}
