# SPDX-License-Identifier: Apache-2.0
"""Fits: what normalization needs to know of images, as frozen dataclasses that go to JSON and back."""
from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..backend import call as functions
from ..arrays.batch import Items
from ..backend.encode import CPP_TYPES, ReadByKernels
from ..arrays.dlpack import stream_of
from ..errors import Error

FIT_STATUS = ("ok", "constant", "empty", "stated", "not_fitted")
STAIN_STATUS = ("ok", "too_little_tissue", "single_stain", "ill_conditioned", "not_fitted")
STAIN_BASIS_BYTES = 216


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Voxels that were looked at: selected and finite, selected and not finite, under labels outside the classes."""

    count: int = 0
    excluded: int = 0
    undeclared: int = 0


@dataclass(frozen=True)
class Result:
    """What a fit leaves of one image or channel."""

    _cpp: ClassVar[str] = ""

    def pack(self) -> bytes:
        """The bytes that C++ reads."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        made: dict[str, Any] = {"result": type(self).__name__}
        for f in fields(self):
            value = getattr(self, f.name)
            made[f.name] = (vars(value) if isinstance(value, Tally) else value.hex() if isinstance(value, bytes)
                            else list(value) if isinstance(value, tuple) else value)
        return made


def results_from_json(record: Any) -> Any:
    """What to_json of results wrote: one, or a list of them."""
    if isinstance(record, list):
        return [results_from_json(r) for r in record]
    given = dict(record)
    cls = _RESULTS[given.pop("result")]
    for name, value in given.items():
        if name == "tally":
            given[name] = Tally(**value)
        elif isinstance(value, list):
            given[name] = tuple(value)
        elif name == "raw":
            given[name] = bytes.fromhex(value)
    return cls(**given)


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
        return self._format.pack(self.mean, self.standard_deviation, self.minimum, self.maximum, *_tally(self.tally),
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
        return self._format.pack(self.low, self.high, *_tally(self.tally), FIT_STATUS.index(self.status), self.low, scale)

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

    @classmethod
    def unpack(cls, data: bytes) -> Percentiles:
        n = (len(data) - 32) // 8
        *value, a, b, c, status = struct.unpack(f"<{n}d3QI4x", data)
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
        if len(self.source) != len(self.target) or len(self.source) < 2:
            raise Error(f"suture: LandmarkMap: {len(self.source)} landmarks for {len(self.target)} targets; two or more are needed")

    @staticmethod
    def layout(n: int) -> str:
        return f"<{n}f{n}f{n - 1}f{'4x' if n % 2 == 0 else ''}3QI4x"

    def pack(self) -> bytes:
        slope = self.slope
        if not slope:
            s, t = (np.array(values, np.float32).astype(np.float64) for values in (self.source, self.target))
            run = np.diff(s)
            lines = np.divide(np.diff(t), run, out=np.zeros(len(run)), where=run > 0)
            slope = tuple(float(v) for v in np.minimum(lines, np.finfo(np.float32).max))
        return struct.pack(self.layout(len(self.source)), *self.source, *self.target, *slope, *_tally(self.tally),
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
    resolved: tuple[bool, ...] = (True, True, True)  # whether a deviation is above what the space resolves

    _cpp: ClassVar[str] = "color_moments"
    _format: ClassVar[struct.Struct] = struct.Struct("<3d3d3QIi9f4x")

    def pack(self) -> bytes:
        back = [1.0 if d == 1 else _reciprocal(d) if r and d > 0 else 0.0
                for d, r in zip(self.standard_deviation, self.resolved)]
        return self._format.pack(*self.mean, *self.standard_deviation, *_tally(self.tally), FIT_STATUS.index(self.status),
                                 self.ddof, *self.mean, *self.standard_deviation, *back)

    @classmethod
    def unpack(cls, data: bytes, space: str = "lab") -> ColorMomentsFit:
        v = cls._format.unpack(data)
        return cls(space=space, mean=v[:3], standard_deviation=v[3:6], tally=Tally(count=v[6], excluded=v[7], undeclared=v[8]),
                   status=FIT_STATUS[v[9]], ddof=v[10], resolved=tuple(r > 0 for r in v[17:20]))


@dataclass(frozen=True, kw_only=True)
class Sharpness(Result):
    """How sharp a tile is."""

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

    @property
    def _head(self) -> tuple[Any, ...]:
        return struct.unpack_from("<8d4Q2I", self.raw)

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


def packed(kind: str, value: Any, what: str) -> tuple[Any, int, str]:
    """Results as C++ reads them, how many, and the argument of their template."""
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    for each in values:
        if not isinstance(each, Result) or each._cpp != kind:
            raise Error(f"{what}: {each!r} is not what the fit leaves that the operation reads, {kind}")
    data = np.frombuffer(b"".join(v.pack() for v in values), np.uint8).view(ReadByKernels)
    return data, len(values), f"<{landmarks(value)}>" if kind == "landmark_map" else ""


def landmarks(value: Any) -> int:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    counts = {len(v.source) for v in values}
    if len(counts) != 1:
        raise Error(f"suture: histogram_match: maps of {sorted(counts)} landmarks in one batch")
    return int(counts.pop())


# What a fit looks at.


@dataclass(frozen=True)
class above:
    """Voxels above a threshold."""

    threshold: float


@dataclass(frozen=True)
class inside:
    """Voxels where a mask is not 0; a mask for each image."""

    masks: Any


@dataclass(frozen=True)
class labeled:
    """Voxels of some labels among the classes 0 .. classes - 1; a label map for each image."""

    maps: Any
    labels: Sequence[int]
    classes: int = 256


R = TypeVar("R")


def _selected(where: Any, layout: str | None, stream: int) -> tuple[str, list[Items], list[float], list[tuple[Any, int]]]:
    """C++ of a selection, and what it reads: arrays from 1 on, list 1."""
    if where is None:
        return "suture::everything{}", [], [], []
    if where == "nonzero":
        return "suture::nonzero{}", [], [], []
    if isinstance(where, above):
        return "suture::above(v.f(0))", [], [where.threshold], []
    if isinstance(where, inside):
        maps = Items(where.masks, "inside", layout, stream)
        return f"suture::inside(abi::views_of<const {CPP_TYPES[maps.dtype]}>(r, 1))", [maps], [], []
    if isinstance(where, labeled):
        maps = Items(where.maps, "labeled", layout, stream)
        code = (f"[&] {{ suture::label_set set({{}}, v.i(0)); for (const std::int32_t l : v.s<std::int32_t>(1)) {{ "
                "suture::require(l >= 0 && l < set.classes, {\"label_set\"}, \"label \", l, \" is outside the declared classes "
                "0..\", set.classes - 1); set.members[l >> 6] |= std::uint64_t{1} << (l & 63); } return "
                f"suture::labeled(abi::views_of<const {CPP_TYPES[maps.dtype]}>(r, 1), set); }}()")
        wanted = np.array(list(where.labels), np.int32)
        return code, [maps], [float(where.classes)], [(wanted, len(wanted))]
    raise Error(f'suture: {where!r} is none of None, "nonzero", above(...), inside(...), labeled(...)')


_DEVICE_HEADERS = {"fit/color_moments.hpp": "fit/color_moments.cuh", "fit/macenko_modes.hpp": "fit/macenko.cuh",
                   "fit/sharpness.hpp": "fit/sharpness.cuh"}


def _fit(images: Any, code: str, result: str, header: str, size: int, count_of: Any, unpack: Any, *, where: Any = None,
         layout: str | None = None, numbers: Sequence[float] = (), threads: int | None = None) -> list[Any]:
    stream = stream_of(images)
    items = Items(images, "images", layout, stream)
    selection, maps, more, lists = _selected(where, layout, stream)
    shift = len(more)
    for k in range(len(numbers), 0, -1):
        code = code.replace(f"@{k - 1}@", str(k - 1 + shift))
    count = count_of(items)
    out = np.zeros(count * size, np.uint8)
    all_lists = [(out, count), *lists]
    start = f"""static_assert(sizeof({result}) == {size});
    const auto images = abi::views_of<const {CPP_TYPES[items.dtype]}>(r, 0);
    const auto how = {code};"""
    headers = [header, "fit/selection.hpp", "color/color_space.hpp", *(["fit/macenko.hpp"] if "macenko" in header else [])]
    made = functions.executor_source(
        "a fit of " + result.removeprefix("suture::"), f"suture::fit(exec, how, images, {selection}, results);", items.first.on_cuda,
        host=headers, device=[_DEVICE_HEADERS.get(header, "fit/fit.cuh")], start=start, result=result,
        workspace="suture::workspace_bytes(how, images)")
    functions.call_there(made, numbers=[*more, *numbers], lists=all_lists, inputs=[items, *maps], threads=threads, stream=stream)
    return [unpack(out[k * size:(k + 1) * size].tobytes()) for k in range(count)]


def _by_channel(pooled: bool) -> Any:
    return lambda items: items.count * (1 if pooled else items.channels)


def fit_moments(images: Any, *, ddof: int = 0, pooled: bool = False, where: Any = None, layout: str | None = None) -> list[Moments]:
    """Mean, standard deviation, minimum and maximum of each image and channel (or of each image, pooled), exact: channel
    fastest. Errors: ddof not 0 or 1."""
    return _fit(images, "suture::fit_moments{v.i(@0@), v.b(@1@)}", "suture::moments", "fit/one_pass.hpp", 72, _by_channel(pooled),
                Moments.unpack, where=where, layout=layout, numbers=[ddof, pooled])


def fit_percentiles(images: Any, *, q: Sequence[float], pooled: bool = False, where: Any = None,
                    layout: str | None = None) -> list[Percentiles]:
    """The percentiles `q`, at most 32, exact. Errors: outside [0, 100]."""
    n = len(q)
    if not 1 <= n <= 32:
        raise Error(f"suture: fit_percentiles: {n} percentiles, 1 to 32 are possible")
    code = f"suture::fit_percentiles<{n}>{{{{{', '.join(f'v.d(@{k}@)' for k in range(n))}}}, v.b(@{n}@)}}"
    return _fit(images, code, f"suture::percentiles<{n}>", "fit/percentiles.hpp", 8 * n + 32, _by_channel(pooled),
                Percentiles.unpack, where=where, layout=layout, numbers=[*q, pooled])


def fit_range(images: Any, *, lower: float = 0.0, upper: float = 100.0, pooled: bool = False, where: Any = None,
              layout: str | None = None) -> list[IntensityRange]:
    """The interval between two percentiles. Errors: outside [0, 100], lower not below upper."""
    return _fit(images, "suture::fit_range{v.d(@0@), v.d(@1@), v.b(@2@)}", "suture::intensity_range", "fit/percentiles.hpp", 56,
                _by_channel(pooled), IntensityRange.unpack, where=where, layout=layout, numbers=[lower, upper, pooled])


def fit_landmarks(images: Any, *, q: Sequence[float], target: Sequence[float], pooled: bool = False, where: Any = None,
                  layout: str | None = None) -> list[LandmarkMap]:
    """A piecewise linear map from the percentiles `q` to `target`. Errors: not increasing, of other lengths."""
    n = len(q)
    if n != len(target) or not 2 <= n <= 32:
        raise Error(f"suture: fit_landmarks: {n} percentiles for {len(target)} targets; 2 to 32 of each are needed")
    code = (f"suture::fit_landmarks<{n}>{{{{{', '.join(f'v.d(@{k}@)' for k in range(n))}}}, "
            f"{{{', '.join(f'v.d(@{n + k}@)' for k in range(n))}}}, v.b(@{2 * n}@)}}")
    return _fit(images, code, f"suture::landmark_map<{n}>", "fit/percentiles.hpp", struct.calcsize(LandmarkMap.layout(n)),
                _by_channel(pooled), lambda d: LandmarkMap.unpack(d, n), where=where, layout=layout, numbers=[*q, *target, pooled])


def fit_otsu(images: Any, *, rule: str = "scikit_image", pooled: bool = False, where: Any = None,
             layout: str | None = None) -> list[Threshold]:
    """Otsu's threshold; rule "scikit_image" or "opencv"."""
    if rule not in ("scikit_image", "opencv"):
        raise Error(f"suture: fit_otsu: rule {rule!r} is neither scikit_image nor opencv")
    return _fit(images, f"suture::fit_otsu{{suture::otsu_rule::{rule}, v.b(@0@)}}", "suture::threshold", "fit/otsu.hpp", 40,
                _by_channel(pooled), Threshold.unpack, where=where, layout=layout, numbers=[pooled])


def fit_sharpness(tiles: Any, *, layout: str | None = None) -> list[Sharpness]:
    """Variance of the Laplacian, mean and deviation of the gray level of uint8 tiles."""
    return _fit(tiles, "suture::fit_sharpness{}", "suture::sharpness", "fit/sharpness.hpp", 40, lambda items: items.count,
                Sharpness.unpack, layout=layout)


def fit_color_moments(tiles: Any, *, space: str = "lab", ddof: int = 0, white: float = 255.0, where: Any = None,
                      layout: str | None = None) -> list[ColorMomentsFit]:
    """Mean and deviation of colors in a space: lab, ruderman, hed, hsv."""
    if space not in ("lab", "ruderman", "hed", "hsv"):
        raise Error(f"suture: fit_color_moments: space {space!r} is none of lab, ruderman, hed, hsv")
    return _fit(tiles, f"suture::fit_color_moments<suture::{space}>{{v.i(@0@), v.f(@1@)}}", f"suture::color_moments<suture::{space}>",
                "fit/color_moments.hpp", 120, lambda items: items.count, lambda d: ColorMomentsFit.unpack(d, space), where=where,
                layout=layout, numbers=[ddof, white])


_DENSITIES = ("plus_one", "plus_one_clipped", "clipped", "positive")
_MODES = ("standard", "torchstain", "torchstain_torch", "matlab", "henorm", "monai", "cucim", "staintools", "tiatoolbox", "vahadane")
_MACENKO: Mapping[str, tuple[str, float]] = {
    "least_density": ("f", .15), "luminosity": ("d", .8), "centered": ("b", 1), "alpha": ("d", 1),
    "concentration_percentile": ("d", 99), "concentrations_of_all": ("b", 0), "penalty": ("d", 0), "refinements": ("i", 0),
    "sparsity": ("d", .1), "least_pixels": ("l", 100), "least_share": ("d", .01), "single_stain_ratio": ("d", 1e-6),
    "single_stain_angle": ("d", 1), "together": ("b", 0), "full_scale": ("f", 255)}


def fit_macenko(tiles: Any, *, mode: str = "standard", layout: str | None = None, where: Any = None, **changed: float) -> Any:
    """The stains of tiles of H&E (Macenko et al. 2009; mode "vahadane" factorizes). A list with a StainBasis for each
    tile; with together=True one StainBasis for all of them, a slide.

    mode     the arithmetic of a library: standard, torchstain, matlab, monai, cucim, staintools, tiatoolbox, vahadane, ...
    changed  parameters of fit_macenko in C++: alpha, least_density, single_stain_angle, together, ...
    """
    if mode not in _MODES:
        raise Error(f"suture: fit_macenko: mode {mode!r} is none of {', '.join(_MODES)}")
    for name in changed:
        if name not in _MACENKO:
            raise Error(f"suture: fit_macenko: there is no parameter {name!r}; it has {', '.join(_MACENKO)}")
    together = bool(changed.get("together", False))
    lines = "".join(f"how.{name} = {'static_cast<std::uint64_t>(v.l(@%d@))' % k if name == 'least_pixels' else 'v.%s(@%d@)' % (_MACENKO[name][0], k)}; "
                    for k, name in enumerate(changed))
    code = f"[&] {{ suture::fit_macenko how = suture::macenko::{mode}.fit; {lines}return how; }}()"
    fitted = _fit(tiles, code, "suture::stain_basis", "fit/macenko_modes.hpp", STAIN_BASIS_BYTES,
                  lambda items: 1 if together else items.count, StainBasis.unpack, where=where, layout=layout,
                  numbers=[float(v) for v in changed.values()])
    return fitted[0] if together else fitted


def fit_histogram(images: Any, *, pooled: bool = False, where: Any = None, layout: str | None = None) -> list[np.ndarray]:
    """How often every value of an 8- or 16-bit image stands in it, from the least on: an array of uint64 for each."""
    items = Items(images, "images", layout, None)
    if items.dtype not in ("int8", "uint8", "int16", "uint16"):
        raise Error(f"suture: fit_histogram: images of {items.dtype}; 8- and 16-bit integers are counted")
    bins = 1 << (8 if items.dtype.endswith("8") else 16)
    return _fit(images, "suture::fit_histogram<%s>{v.b(@0@)}" % CPP_TYPES[items.dtype],
                f"suture::histogram_counts<{CPP_TYPES[items.dtype]}>", "fit/one_pass.hpp", 8 * (bins + 32), _by_channel(pooled),
                lambda d: np.frombuffer(d, np.uint64)[:bins].copy(), where=where, layout=layout, numbers=[pooled])


__all__ = ["ColorMomentsFit", "IntensityRange", "LandmarkMap", "Moments", "Percentiles", "Sharpness", "StainBasis", "Tally",
           "Threshold", "above", "fit_color_moments", "fit_histogram", "fit_landmarks", "fit_macenko", "fit_moments", "fit_otsu",
           "fit_percentiles", "fit_range", "fit_sharpness", "inside", "labeled", "results_from_json"]
