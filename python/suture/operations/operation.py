# SPDX-License-Identifier: Apache-2.0
"""This module defines the base class of operations, a frozen dataclass whose fields each have a kind."""
from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, get_origin

from ..arguments import checked
from ..backend.encode import Encoder
from ..errors import Error
from .kinds import (IMAGENET, KINDS, NAN, STAIN_REFERENCE, Axes, AxisFlags, AxisFloats, AxisIntegers, AxisOrder, AxisPair,
                    AxisRanges, ChannelStatistics, Choice, ColorMoments, Fitted, FrozenMap, Holes, IntegerRange, Kind, Matrix,
                    PerSample, Range, StainReference, Starts, canonical, members, per_sample, shown)

# Parameters of suture by their names in other libraries.
ELSEWHERE = {"p": "probability", "prob": "probability", "pixdim": "spacing_mm", "spacing": "spacing_mm",
             "roi_size": "size", "patch_size": "size", "degrees": "rotate_deg", "rotate_range": "rotate_deg",
             "mode": "sampling(interpolation=...) in the chain", "padding_mode": "sampling(border=...) in the chain",
             "axcodes": 'x, y and z, as in orient(x="L", y="P", z="S")', "std": "sigma or standard_deviation"}
# Operations of suture by their names in MONAI, TorchIO, torchvision, Kornia and Albumentations, in lower case without
# underscores.
OPERATIONS_ELSEWHERE = {
    # MONAI
    "spacing": "resample(spacing_mm=...)", "orientation": 'orient(x="R", y="A", z="S")', "scaleintensityrange": "scale_intensity(a_min=..., a_max=...)",
    "scaleintensity": "scale_intensity(...)", "normalizeintensity": "z_score(...)", "randflip": "random_flip(...)",
    "randaxisflip": "random_flip(...)", "randrotate90": "random_rot90(...)", "rotate90": "rot90(...)", "randrotate": "random_affine(rotate_deg=...)",
    "rotate": "affine(rotate_deg=...)", "randzoom": "random_affine(scale=...)", "zoom": "affine(scale=...)", "randaffine": "random_affine(...)",
    "rand3delastic": "random_elastic(...)", "rand2delastic": "random_elastic(...)", "randspatialcrop": "random_crop(size=...)",
    "randcropbyposneglabel": "crop_by_class(positive=..., negative=...)", "randcropbylabelclasses": "crop_by_class(ratios=...)",
    "centerspatialcrop": "center_crop(size=...)", "spatialpad": "pad_to(size=...)", "resizewithpadorcrop": "crop_or_pad(size=...)",
    "cropforeground": "crop_foreground(bounding_box(...), ...)", "randgaussiannoise": "gaussian_noise(...)", "randricianoise": "rician_noise(...)",
    "randgaussiansmooth": "random_gaussian_blur(...)", "gaussiansmooth": "gaussian_blur(...)", "randscaleintensity": "random_brightness_factor(...)",
    "randshiftintensity": "random_brightness(...)", "randadjustcontrast": "random_gamma(...)", "adjustcontrast": "gamma(...)",
    "randbiasfield": "random_bias_field(...)", "asdiscrete": "labels(convert=one_hot(...))", "loadimage": "Volume.load(path)",
    "ensurechannelfirst": "Volume(array, axes=...)", "totensor": "nothing, since tensors go in and come out", "compose": "Pipeline(image=[...])",
    # TorchIO
    "tocanonical": 'orient(x="R", y="A", z="S")', "resampletransform": "resample(spacing_mm=...)", "rescaleintensity": "scale_intensity(...)",
    "znormalization": "z_score(...)", "croporpad": "crop_or_pad(size=...)", "randomelasticdeformation": "random_elastic(...)",
    "randombiasfield": "random_bias_field(...)", "randomblur": "random_gaussian_blur(...)", "randomnoise": "gaussian_noise(...)",
    "randomspike": "random_kspace_spike(...)", "randomanisotropy": "random_low_resolution(...)",
    "histogramstandardization": "histogram_match(fitted=fit_landmarks(...))", "onehot": "labels(convert=one_hot(...))", "scalarimage": "Volume.load(path)",
    "labelmap": "Volume.load(path), and labels() in the pipeline", "subject": "a dict: {\"image\": [...], \"seg\": [...], \"id\": [...]}",
    # torchvision, Kornia, Albumentations
    "randomhorizontalflip": "random_flip(axis_probability=dict(x=.5))",
    "randomverticalflip": "random_flip(axis_probability=dict(y=.5))", "horizontalflip": "random_flip(axis_probability=dict(x=.5))",
    "verticalflip": "random_flip(axis_probability=dict(y=.5))", "randomrotation": "random_affine(rotate_deg=...)",
    "randomrotate": "random_affine(rotate_deg=...)", "randomresizedcrop": "random_affine(scale=...), then random_crop(size=...)",
    "centercrop": "center_crop(size=...)", "normalize": "channel_normalize(...)", "colorjitter": "random_color_jitter(...)",
    "gaussianblur": "random_gaussian_blur(...)", "randomrotate90": "random_rot90(...)", "elastictransform": "random_elastic(...)",
    "shiftscalerotate": "random_affine(...)", "randomerasing": "random_coarse_dropout(...)", "coarsedropout": "random_coarse_dropout(...)"}
MOST_INSIDE = 4  # deepest nesting of operations in a record


class _Listed(type):
    """Limits dir() and help() of an operation to its parameters, its name, its JSON and |."""

    def __dir__(cls) -> list[str]:
        return ["__or__", "name", "from_json", "to_json", *(name for name, _ in getattr(cls, "_fields", ()))]


@dataclass(frozen=True)
class Operation(metaclass=_Listed):
    """A step of a chain. Operations are joined in lists, or by |.

    A subclass lists in `_fields` each of its fields with the name of its kind, in the order in which C++ reads them. A
    field without a kind, or of an unknown kind, is a TypeError when the class is defined.
    """

    _role: ClassVar[str] = ""
    _random: ClassVar[bool] = False
    _gives_size: ClassVar[str] = "alike"  # extents after an operation of geometry: fixed, alike (as before) or varying
    _header: ClassVar[str] = ""
    _fields: ClassVar[tuple[tuple[str, str], ...]] = ()
    _multiplies: ClassVar[tuple[str, ...]] = ()
    _capacities: ClassVar[Mapping[str, int]] = {}  # most elements of a list, by field
    _cpp_name: ClassVar[str] = ""  # name of the C++ type, if it is not that of the class
    _kinds: ClassVar[tuple[tuple[str, Kind], ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Operation.__repr__  # type: ignore[method-assign]  # else a dataclass writes one
        if cls._header.startswith("ops/") and "_role" not in cls.__dict__:
            cls._role = cls._header.split("/")[1]
        cls._kinds = tuple((name, _kind_of(cls, name, kind)) for name, kind in cls._fields)
        written = {n for n, hint in cls.__dict__.get("__annotations__", {}).items() if not _is_class_variable(hint)}
        if written != {name for name, _ in cls._fields}:
            raise TypeError(f"{cls.__name__}: the fields {sorted(written)} and the kinds of {[n for n, _ in cls._fields]} differ")
        _known[cls.__name__] = cls

    def __post_init__(self) -> None:
        name = self.name
        for field, kind in self._kinds:
            what, value = f"suture: {name}: {field}", getattr(self, field)
            if field in self._multiplies and not isinstance(value, (tuple, list, Mapping)):
                raise Error(f"{what}: {shown(value)} alone may mean a factor or half a width; give both ends, (low, high)")
            value = kind.canonical(value, what)
            if field in self._capacities and len(value) > self._capacities[field]:
                raise Error(f"{what}: expected at most {self._capacities[field]} elements, got {len(value)}")
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        """Writes the operation as a call; parameters with their default are left out."""
        return written(self)

    def __or__(self, other: Any) -> tuple[Operation, ...]:
        """Returns a chain of this operation and what follows."""
        return (self, *chain_of(other))

    def __ror__(self, other: Any) -> tuple[Operation, ...]:
        return (*chain_of(other), self)

    @property
    def name(self) -> str:
        """The name of the operation in C++ and in records."""
        return type(self).__name__

    @property
    def varies(self) -> bool:
        """Whether values that C++ reads come with the batch."""
        return any(kind.varies and isinstance(getattr(self, name), PerSample) for name, kind in self._kinds)

    @property
    def fixes_size(self) -> bool:
        """Whether outputs have the size of the parameter `size`. Those of resample_to all have the extents of its target, but it has no
        such parameter, and its outputs are not stacked.
        """
        return self._gives_size == "fixed" and hasattr(self, "size")

    def headers(self) -> set[str]:
        """Returns the headers of its C++ type, relative to suture/.

        Returns
        -------
        set of str
            Paths of the headers.
        """
        made = {self._header} if self._header else set()
        if any(kind is KINDS["type:color_space"] for _, kind in self._kinds):
            made.add("color/color_space.hpp")
        return made

    def encode(self, encoder: Encoder) -> str:
        """Appends the numbers and lists of the operation, and returns its C++ type, made of names from fixed tables.

        Parameters
        ----------
        encoder : Encoder
            Collects numbers, lists and headers.

        Returns
        -------
        str
            The C++ type.
        """
        encoder.out.headers |= self.headers()
        arguments = []
        for name, kind in self._kinds:
            value = getattr(self, name)
            argument = kind.cpp(encoder, self, name, value)
            if argument is not None:
                arguments.append(argument)
            if self._sends(name):
                kind.encode(encoder, self, name, value)
        cpp = f"suture::{self._cpp_name or type(self).__name__}"
        return f"{cpp}<{', '.join(arguments)}>" if arguments else cpp

    def _sends(self, name: str) -> bool:
        """Tests whether a field is sent to C++."""
        return True

    def to_json(self) -> dict[str, Any]:
        """Writes the operation as plain values, by name and parameters.

        Returns
        -------
        dict
            Values that JSON has.
        """
        return {"name": self.name, **{name: kind.to_json(getattr(self, name)) for name, kind in self._kinds}}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], depth: int = 0) -> Operation:
        """Makes the operation out of its parameters, all of them, as to_json wrote them.

        Parameters
        ----------
        record : dict
            The parameters by name.
        depth : int
            Number of operations around this one.

        Returns
        -------
        Operation
            The operation.

        Raises
        ------
        Error
            If a parameter is missing, unknown or of another type.
        """
        what = f"suture: {cls.__name__}"
        given = members(record, what, [name for name, _ in cls._kinds])
        return cls(**{name: kind.from_json(given[name], f"{what}: {name}") if not isinstance(kind, Inner)
                      else operation_from_json(given[name], depth + 1) for name, kind in cls._kinds})


def written(op: Any) -> str:
    """Returns the call that makes a dataclass, without the parameters that have their defaults."""
    parts: list[str] = []
    for field in fields(op):
        value, default = getattr(op, field.name), field.default
        same = type(value) in (bool, int, float, str, tuple, type(None)) and (value == default or (value != value and default != default))
        if not same or field.default is MISSING:
            parts.append(f"{field.name}={shown(value)}" if field.kw_only or field.default is not MISSING else shown(value))
    return f"{type(op).__name__}({', '.join(parts)})"


_known: dict[str, type[Operation]] = {}


def _is_class_variable(hint: Any) -> bool:
    return hint.startswith("ClassVar") if isinstance(hint, str) else get_origin(hint) is ClassVar


def _kind_of(cls: type[Operation], field: str, kind: str) -> Kind:
    """Returns the kind of a name: from KINDS, or a choice among names that CHOICES in the module of the class lists."""
    if kind not in KINDS:
        names = vars(sys.modules[cls.__module__]).get("CHOICES", {}).get(kind.removeprefix("choice:"))
        if names:
            KINDS[kind] = Choice(names)
    if kind not in KINDS:
        raise TypeError(f"{cls.__name__}: {field}: there is no kind {kind!r}")
    default = cls.__dict__.get(field)
    if kind == "float32" and isinstance(default, float) and default != default:
        return KINDS["float32_or_nan"]
    return KINDS[kind]


class Inner(Kind):
    """An operation that another one runs."""

    annotation, docs = "Operation", "A random value operation."

    def canonical(self, value: Any, what: str) -> Any:
        if not isinstance(value, Operation) or not value._random:
            raise Error(f"{what.rsplit(':', 1)[0]}: {shown(value)} is no random operation")
        if any(isinstance(kind, Inner) for _, kind in value._kinds):
            raise Error(f"{what}: expected a random value operation, got {value.name}")
        return value

    def encode(self, encoder: Encoder, op: Any, name: str, value: Any) -> None:
        pass  # cpp encodes the operation, and so appends its parameters

    def cpp(self, encoder: Encoder, op: Any, name: str, value: Any) -> str:
        return str(value.encode(encoder))

    def to_json(self, value: Any) -> Any:
        return value.to_json()


KINDS["operation"] = Inner()


def operation_from_json(record: Any, depth: int = 0) -> Operation:
    """Makes the operation that to_json wrote.

    Raises
    ------
    Error
        If there is no such operation, if a parameter is missing, unknown or of another type, or if operations are nested too
        deeply. Of a record, only numbers and names from fixed tables become C++ code.
    """
    if type(record) is not dict or type(record.get("name")) is not str:
        raise Error(f"suture: an operation of a record is an object with a name, got {shown(record)}")
    if depth > MOST_INSIDE:
        raise Error(f"suture: a record: expected at most {MOST_INSIDE} operations inside one another, got more")
    cls = _known.get(record["name"])
    if cls is None:
        raise Error(f"suture: there is no operation {shown(record['name'])}")
    if not all(type(k) is str for k in record):
        raise Error(f"suture: {cls.__name__}: expected names of parameters, got {shown(record)}")
    return cls.from_json({k: v for k, v in record.items() if k != "name"}, depth)


def elsewhere(name: str) -> str:
    """Returns the counterpart of an operation of MONAI, TorchIO, torchvision, Kornia or Albumentations; an empty text if unknown."""
    key = name.lower().replace("_", "")
    if key not in OPERATIONS_ELSEWHERE and key.endswith("d"):
        key = key[:-1]  # MONAI's transforms of dictionaries end with d
    return OPERATIONS_ELSEWHERE.get(key, "")


def make(name: str, parameters: Mapping[str, Any]) -> Operation:
    """Makes an operation by its name."""
    if name not in _known:
        raise Error(f"suture: there is no operation {name!r}")
    return _known[name](**parameters)


def chain_of(given: Any) -> tuple[Operation, ...]:
    """Flattens nested lists of operations and leaves out None."""
    if given is None:
        return ()
    if isinstance(given, Operation):
        return (given,)
    if isinstance(given, (tuple, list)):
        return tuple(op for each in given for op in chain_of(each))
    if isinstance(given, type) and issubclass(given, Operation):
        raise Error(f"suture: expected an operation, got the class {given.__name__}. Call it, {given.__name__}(...)")
    role = given if isinstance(given, type) else type(given)
    if role.__name__ in ("labels", "boxes", "points") and role.__module__.startswith("suture."):
        raise Error(f"suture: expected an operation, got {role.__name__} in a chain. It stands alone: key={role.__name__}(...)")
    if isinstance(given, Mapping):
        raise Error("suture: expected an operation, got a dict in a chain. Each key is a parameter: Pipeline(image=[...], seg=labels())")
    name = given if isinstance(given, str) else role.__name__
    way = elsewhere(name) if role.__module__.split(".")[0] != "builtins" or isinstance(given, str) else ""
    if isinstance(given, str) and given in _known:
        way = f"{given}(...)"
    raise Error(f"suture: expected an operation, got {shown(given)}. " + (f"Here it is {way}" if way else "Operations are in "
                                                                         "docs/operations.md; value(...) makes one of an expression"))


def name_mistakes(cls: type[Operation]) -> type[Operation]:
    """Makes the constructor of an operation suggest its own parameter for that of another library."""
    cls.__init__ = checked(cls.__init__, cls, ELSEWHERE)  # type: ignore[method-assign]
    return cls


__all__ = ["IMAGENET", "NAN", "STAIN_REFERENCE", "Axes", "AxisFlags", "AxisFloats", "AxisIntegers", "AxisOrder", "AxisPair",
           "AxisRanges", "ChannelStatistics", "ColorMoments", "Fitted", "FrozenMap", "Holes", "IntegerRange", "Matrix", "Operation",
           "PerSample", "Range", "StainReference", "Starts", "canonical", "chain_of", "make", "name_mistakes",
           "operation_from_json", "per_sample"]
