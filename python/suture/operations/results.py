# SPDX-License-Identifier: Apache-2.0
"""Results of fits are statistics that normalization needs, as frozen dataclasses that can be stored as JSON.

`pack` and `unpack` use the layouts of the structs of include/suture/stats, which a test compares with those of the compiler.
"""
from __future__ import annotations

import contextlib
import reprlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from ..arguments import check_calls, index_of
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
    """Returns the repr of a value for a message, shortened."""
    return reprlib.repr(value)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The numbers of voxels that a fit counted and left out.

    Attributes
    ----------
    count : int
        Voxels that were selected and finite.
    excluded : int
        Voxels that were selected and not finite.
    undeclared : int
        Voxels with a label outside the classes.

    Examples
    --------
    >>> st.Tally(count=8)
    Tally(count=8, excluded=0, undeclared=0)
    """

    count: int = 0
    excluded: int = 0
    undeclared: int = 0

    def __post_init__(self) -> None:
        _convert(self)


@dataclass(frozen=True)
class Result:
    """The result of a fit for one image or channel."""

    _cpp: ClassVar[str] = ""
    _statuses: ClassVar[tuple[str, ...]] = FIT_STATUS

    def __post_init__(self) -> None:
        self._check("status", self._statuses)
        _convert(self)

    def _check(self, name: str, names: Sequence[str]) -> None:
        _choice(getattr(self, name), names, f"suture: {type(self).__name__}: {name}")

    def pack(self) -> bytes:
        """Writes the result as the C++ struct that operations read.

        Returns
        -------
        bytes
            The bytes of the struct.

        Raises
        ------
        Error
            If a number is outside the type that C++ has for it.
        """
        raise NotImplementedError

    def _packed(self, layout: str | struct.Struct, *values: Any) -> bytes:
        try:
            return layout.pack(*values) if isinstance(layout, struct.Struct) else struct.pack(layout, *values)
        except (struct.error, OverflowError) as problem:
            what = f"suture: {type(self).__name__}"
            raise Error(f"{what}: expected numbers that C++ holds, got {_shown(self)}: {problem}") from None

    def to_json(self) -> dict[str, Any]:
        """Writes the result as plain values that `results_from_json` reads back.

        Returns
        -------
        dict
            The name of the class under "result", and the attributes.
        """
        made: dict[str, Any] = {"result": type(self).__name__}
        for f in fields(self):
            value = getattr(self, f.name)
            made[f.name] = (vars(value) if isinstance(value, Tally) else value.hex() if isinstance(value, bytes)
                            else list(value) if isinstance(value, tuple) else value)
        return made


def _of_python(value: Any, what: str) -> float:
    """Converts a number of NumPy or torch to one of Python, which JSON has, and refuses what is no number."""
    if type(value) in (int, float):
        return value  # type: ignore[no-any-return]
    if not isinstance(value, (bool, np.bool_, str, bytes)) and hasattr(value, "__float__") and len(getattr(value, "shape", ())) == 0:
        with contextlib.suppress(TypeError, ValueError):
            return float(value)
    raise Error(f"{what}: expected a number, got {_shown(value)}. Pass a float")


def _whole_of_python(value: Any, what: str) -> int:
    """Converts a whole number of NumPy or torch to one of Python, and refuses what is none."""
    number = None if isinstance(value, bool) else index_of(value)
    if number is None:
        raise Error(f"{what}: expected a whole number, got {_shown(value)}. Pass an int")
    return number


def _flag_of_python(value: Any, what: str) -> bool:
    """Converts a truth value of NumPy or torch to one of Python, and refuses what is none."""
    if isinstance(value, (bool, np.bool_)) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool"):
        return bool(value)
    raise Error(f"{what}: expected True or False, got {_shown(value)}. Pass a bool")


def _each_of_python(read: Callable[[Any, str], Any], size: int | None = None) -> Callable[[Any, str], tuple[Any, ...]]:
    def reading(value: Any, what: str) -> tuple[Any, ...]:
        values = None
        if not isinstance(value, (str, bytes, Mapping)):
            with contextlib.suppress(TypeError):  # of what is no sequence
                values = list(value)
        if values is None or len(values) != (len(values) if size is None else size):
            raise Error(f"{what}: expected {'a list of numbers' if size is None else f'{size} values'}, got {_shown(value)}. Pass a tuple")
        return tuple([read(v, what) for v in values])

    return reading


# Functions that convert the value of a field, by its annotation.
_OF_PYTHON: Mapping[str, Callable[[Any, str], Any]] = {
    "float": _of_python, "int": _whole_of_python, "tuple[float, ...]": _each_of_python(_of_python),
    "tuple[float, float, float]": _each_of_python(_of_python, 3), "tuple[bool, bool, bool]": _each_of_python(_flag_of_python, 3)}


def _convert(made: Any) -> None:
    """Converts the numbers of a result, which may be those of NumPy or torch, to those of Python, which JSON has."""
    for f in fields(made):
        read = _OF_PYTHON.get(str(f.type))
        if read is not None:
            object.__setattr__(made, f.name, read(getattr(made, f.name), f"suture: {type(made).__name__}: {f.name}"))


def _check_deviations(values: Sequence[float], what: str) -> None:
    """Refuses standard deviations that are negative or no number."""
    for value in values:
        if not value >= 0:
            raise Error(f"{what}: standard_deviation: expected 0 or more, got {_shown(value)}. Pass numpy.std of the values, or fit them")


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
    """Reads the members of a record, each by its own function. A record may leave members out."""
    if not isinstance(given, Mapping):
        raise Error(f"{what}: expected an object, got {_shown(given)}")
    for name in given:
        if name not in read:
            raise Error(f"{what}: expected members among {', '.join(read)}, got {_shown(name)}")
    return {name: read[name](value, f"{what}: {name}") for name, value in given.items()}


def _read_tally(value: Any, what: str) -> Tally:
    return Tally(**_members(value, {"count": _whole, "excluded": _whole, "undeclared": _whole}, what))


# Functions that read a field, by its annotation.
_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "float": _number, "int": _whole, "str": _text, "bytes": _bytes, "Tally": _read_tally, "tuple[float, ...]": _tuple(_number),
    "tuple[float, float, float]": _tuple(_number, 3), "tuple[bool, bool, bool]": _tuple(_flag, 3)}


@check_calls
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

    Examples
    --------
    >>> st.results_from_json(st.IntensityRange(low=-1.0, high=2.0).to_json())
    IntensityRange(low=-1.0, high=2.0, tally=Tally(count=0, excluded=0, undeclared=0), status='stated')
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
    """Mean, standard deviation, minimum and maximum of an image or a channel.

    Attributes
    ----------
    mean, standard_deviation, minimum, maximum : float
        The statistics, in the units of the image.
    tally : Tally
        How many voxels were counted.
    status : {"ok", "constant", "empty", "stated", "not_fitted"}
        "stated" for results that were given by hand, else the outcome of the fit.
    ddof : int
        0 or 1; the variance was divided by the number of voxels less this.

    Raises
    ------
    Error
        If the status does not exist, a value is no number, or the standard deviation is negative.

    Examples
    --------
    >>> known = st.Moments(mean=40.0, standard_deviation=100.0)
    >>> known.status
    'stated'
    >>> st.Pipeline(image=[st.z_score(fitted=[known])]).images["image"][0].name
    'z_score'
    """

    mean: float = 0.0
    standard_deviation: float = 1.0
    minimum: float = 0.0
    maximum: float = 0.0
    tally: Tally = Tally()
    status: str = "stated"
    ddof: int = 0

    _cpp: ClassVar[str] = "moments"
    _format: ClassVar[struct.Struct] = struct.Struct("<4d3QIiff")

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_deviations([self.standard_deviation], "suture: Moments")

    def pack(self) -> bytes:
        scale = 1.0 if self.standard_deviation == 1 else _reciprocal(max(self.standard_deviation, 1e-8))
        return self._packed(self._format, self.mean, self.standard_deviation, self.minimum, self.maximum, *_tally(self.tally),
                            FIT_STATUS.index(self.status), self.ddof, self.mean, scale)

    @classmethod
    def unpack(cls, data: bytes) -> Moments:
        """Reads the result out of its C++ struct.

        Parameters
        ----------
        data : bytes
            The bytes of the struct.

        Returns
        -------
        Moments
            The result.
        """
        m, s, low, high, a, b, c, status, ddof, _, _ = cls._format.unpack(data)
        return cls(mean=m, standard_deviation=s, minimum=low, maximum=high,
                   tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status], ddof=ddof)


@dataclass(frozen=True, kw_only=True)
class IntensityRange(Result):
    """The interval between two percentiles of an image or a channel.

    Attributes
    ----------
    low, high : float
        Ends of the interval, in the units of the image.
    tally : Tally
        How many voxels were counted.
    status : {"ok", "constant", "empty", "stated", "not_fitted"}
        "stated" for results that were given by hand, else the outcome of the fit.

    Raises
    ------
    Error
        If the status does not exist.

    Examples
    --------
    >>> st.IntensityRange(low=-160.0, high=240.0).status
    'stated'
    """

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
        """Reads the result out of its C++ struct.

        Parameters
        ----------
        data : bytes
            The bytes of the struct.

        Returns
        -------
        IntensityRange
            The result.
        """
        low, high, a, b, c, status, _, _ = cls._format.unpack(data)
        return cls(low=low, high=high, tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status])


@dataclass(frozen=True, kw_only=True)
class Threshold(Result):
    """A threshold of an image or a channel: its classes are the voxels up to the value, and those above it.

    Attributes
    ----------
    value : float
        Largest value of the lower class.
    tally : Tally
        How many voxels were counted.
    status : {"ok", "constant", "empty", "stated", "not_fitted"}
        Outcome of the fit.

    Raises
    ------
    Error
        If the status does not exist.

    Examples
    --------
    >>> st.Threshold(value=12.0).value
    12.0
    """

    value: float
    tally: Tally = Tally()
    status: str = "ok"

    _cpp: ClassVar[str] = "threshold"
    _format: ClassVar[struct.Struct] = struct.Struct("<d3QI4x")

    @classmethod
    def unpack(cls, data: bytes) -> Threshold:
        """Reads the result out of its C++ struct.

        Parameters
        ----------
        data : bytes
            The bytes of the struct.

        Returns
        -------
        Threshold
            The result.
        """
        value, a, b, c, status = cls._format.unpack(data)
        return cls(value=value, tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status])


@dataclass(frozen=True, kw_only=True)
class Percentiles(Result):
    """Percentiles of an image or a channel, as numpy.percentile has them.

    Attributes
    ----------
    value : tuple of float
        One value for each percentile that was asked for.
    tally : Tally
        How many voxels were counted.
    status : {"ok", "constant", "empty", "stated", "not_fitted"}
        Outcome of the fit.

    Raises
    ------
    Error
        If the status does not exist.

    Examples
    --------
    >>> st.Percentiles(value=(1.0, 2.0)).value
    (1.0, 2.0)
    """

    value: tuple[float, ...]
    tally: Tally = Tally()
    status: str = "ok"

    @staticmethod
    def layout(n: int) -> str:
        """Returns the struct format of a number of percentiles.

        Parameters
        ----------
        n : int
            Number of percentiles.

        Returns
        -------
        str
            Format for the module struct.
        """
        return f"<{n}d3QI4x"

    @classmethod
    def unpack(cls, data: bytes, n: int) -> Percentiles:
        """Reads the result out of its C++ struct.

        Parameters
        ----------
        data : bytes
            The bytes of the struct.
        n : int
            Number of percentiles.

        Returns
        -------
        Percentiles
            The result.
        """
        *value, a, b, c, status = struct.unpack(cls.layout(n), data)
        return cls(value=tuple(value), tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status])


@dataclass(frozen=True, kw_only=True)
class LandmarkMap(Result):
    """A piecewise linear map of the values of an image or a channel.

    Attributes
    ----------
    source, target : tuple of float
        Input values and the values that they are mapped to, two to 64 of each.
    slope : tuple of float
        Slope between each two landmarks; computed where none are given.
    tally : Tally
        How many voxels were counted.
    status : {"ok", "constant", "empty", "stated", "not_fitted"}
        "stated" for results that were given by hand, else the outcome of the fit.

    Raises
    ------
    Error
        If source and target differ in length, there are too few or too many, or the slopes are not one fewer.

    Examples
    --------
    >>> st.LandmarkMap(source=(0.0, 50.0, 100.0), target=(0.0, 10.0, 100.0)).status
    'stated'
    """

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
        """Returns the struct format of a map of n landmarks.

        Parameters
        ----------
        n : int
            Number of landmarks.

        Returns
        -------
        str
            Format for the module struct.
        """
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
        """Reads the result out of its C++ struct.

        Parameters
        ----------
        data : bytes
            The bytes of the struct.
        n : int
            Number of landmarks.

        Returns
        -------
        LandmarkMap
            The result.
        """
        values = struct.unpack(cls.layout(n), data)
        a, b, c, status = values[-4:]
        return cls(source=values[:n], target=values[n:2 * n], slope=values[2 * n:3 * n - 1],
                   tally=Tally(count=a, excluded=b, undeclared=c), status=FIT_STATUS[status])


@dataclass(frozen=True, kw_only=True)
class ColorMomentsFit(Result):
    """Mean and standard deviation of the colors of a tile, by channel of a color space.

    Attributes
    ----------
    space : {"lab", "ruderman", "hed", "hsv"}
        Color space of the moments.
    mean, standard_deviation : (float, float, float)
        Moments of its three channels.
    tally : Tally
        How many pixels were counted.
    status : {"ok", "constant", "empty", "stated", "not_fitted"}
        "stated" for results that were given by hand, else the outcome of the fit.
    ddof : int
        0 or 1; the variance was divided by the number of pixels less this.
    resolved : (bool, bool, bool)
        Whether each deviation is above the resolution of the color space.

    Raises
    ------
    Error
        If the space or the status does not exist.

    Examples
    --------
    >>> st.ColorMomentsFit(space="lab", mean=(70., 10., -5.), standard_deviation=(12., 6., 4.)).status
    'stated'
    """

    space: str
    mean: tuple[float, float, float]
    standard_deviation: tuple[float, float, float]
    tally: Tally = Tally()
    status: str = "stated"
    ddof: int = 0
    resolved: tuple[bool, bool, bool] = (True, True, True)

    _cpp: ClassVar[str] = "color_moments"
    _format: ClassVar[struct.Struct] = struct.Struct("<3d3d3QIi9f4x")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("space", COLOR_SPACES)
        _check_deviations(self.standard_deviation, "suture: ColorMomentsFit")

    def pack(self) -> bytes:
        back = [1.0 if d == 1 else _reciprocal(d) if r and d > 0 else 0.0
                for d, r in zip(self.standard_deviation, self.resolved)]
        return self._packed(self._format, *self.mean, *self.standard_deviation, *_tally(self.tally),
                            FIT_STATUS.index(self.status), self.ddof, *self.mean, *self.standard_deviation, *back)

    @classmethod
    def unpack(cls, data: bytes, space: str = "lab") -> ColorMomentsFit:
        """Reads the result out of its C++ struct.

        Parameters
        ----------
        data : bytes
            The bytes of the struct.
        space : str
            Color space of the fit, which the struct does not have.

        Returns
        -------
        ColorMomentsFit
            The result.
        """
        v = cls._format.unpack(data)
        return cls(space=space, mean=v[:3], standard_deviation=v[3:6], tally=Tally(count=v[6], excluded=v[7], undeclared=v[8]),
                   status=FIT_STATUS[v[9]], ddof=v[10], resolved=(v[17] > 0, v[18] > 0, v[19] > 0))


@dataclass(frozen=True, kw_only=True)
class Sharpness(Result):
    """The sharpness of a tile.

    Attributes
    ----------
    laplacian_variance : float
        Variance of the Laplacian of the gray level.
    mean, standard_deviation : float
        Moments of the gray level.
    pixels : int
        Number of pixels.
    status : {"ok", "constant", "empty", "stated", "not_fitted"}
        Outcome of the fit.

    Raises
    ------
    Error
        If the status does not exist.

    Examples
    --------
    >>> tile = st.Sharpness(laplacian_variance=12.0, mean=180.0, standard_deviation=30.0, pixels=65536, status="ok")
    >>> tile.quality()
    'blurred'
    """

    laplacian_variance: float
    mean: float
    standard_deviation: float
    pixels: int
    status: str

    _cpp: ClassVar[str] = "sharpness"
    _format: ClassVar[struct.Struct] = struct.Struct("<3dQI4x")

    @classmethod
    def unpack(cls, data: bytes) -> Sharpness:
        """Reads the result out of its C++ struct.

        Parameters
        ----------
        data : bytes
            The bytes of the struct.

        Returns
        -------
        Sharpness
            The result.
        """
        v = cls._format.unpack(data)
        return cls(laplacian_variance=v[0], mean=v[1], standard_deviation=v[2], pixels=v[3], status=FIT_STATUS[v[4]])

    @check_calls
    def quality(self, *, least_laplacian_variance: float = 30.0, least_deviation: float = 5.0) -> str:
        """Classifies a tile as good, blank or blurred.

        Parameters
        ----------
        least_laplacian_variance : float
            Tiles below it are blurred.
        least_deviation : float
            Tiles whose gray level deviates by less are blank.

        Returns
        -------
        str
            "good", "blank" or "blurred".
        """
        if self.standard_deviation < least_deviation:
            return "blank"
        return "blurred" if self.laplacian_variance < least_laplacian_variance else "good"


@dataclass(frozen=True)
class StainBasis(Result):
    """The two stains of a tile or a slide, and their maximum concentrations.

    Parameters
    ----------
    raw : bytes
        The C++ struct that fit_macenko makes.

    Raises
    ------
    Error
        If the bytes are not those of such a struct.

    Examples
    --------
    >>> tile = np.full((16, 16, 3), 255, np.uint8)
    >>> basis, = st.fit_macenko([tile], layout="HWC")
    >>> len(basis.stains), len(basis.max_concentration)     # red, green, blue; hematoxylin, eosin
    (3, 2)
    """

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
        """The stains as three rows, red, green and blue, of two columns, hematoxylin and eosin."""
        v = self._head
        return (v[0], v[1]), (v[2], v[3]), (v[4], v[5])

    @property
    def max_concentration(self) -> tuple[float, float]:
        """The maximum concentrations of hematoxylin and eosin."""
        return self._head[6], self._head[7]

    @property
    def status(self) -> str:
        """The outcome of the fit, "ok" where both stains were found."""
        return STAIN_STATUS[self._head[12]]

    @property
    def pixels(self) -> int:
        """The number of pixels that were dense enough to be used."""
        return int(self._head[11])

    def pack(self) -> bytes:
        return self.raw

    @classmethod
    def unpack(cls, data: bytes) -> StainBasis:
        """Reads the result out of its C++ struct.

        Parameters
        ----------
        data : bytes
            The bytes of the struct.

        Returns
        -------
        StainBasis
            The result.
        """
        return cls(bytes(data[:-4]) + bytes(4))  # the last four bytes are padding

    def __repr__(self) -> str:
        return f"StainBasis(stains={self.stains}, max_concentration={self.max_concentration}, status={self.status!r})"


_RESULTS: dict[str, Any] = {c.__name__: c for c in (Moments, IntensityRange, Threshold, Percentiles, LandmarkMap,
                                                    ColorMomentsFit, Sharpness, StainBasis)}
