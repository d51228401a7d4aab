# SPDX-License-Identifier: Apache-2.0
"""This module encodes a chain as a C++ type, and as the numbers and lists that its operations read in the order of their
parameters."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import Error
from .request import Lists

CPP_TYPES = {"int8": "std::int8_t", "uint8": "std::uint8_t", "int16": "std::int16_t", "uint16": "std::uint16_t",
             "int32": "std::int32_t", "int64": "std::int64_t", "float16": "suture::half", "bfloat16": "suture::bfloat16",
             "float32": "float", "bool": "std::uint8_t"}

# Value of an axis that a dict leaves out, by parameter; None: every axis must be named. It is 0 for other parameters.
_UNNAMED = {"size": None, "scale": 1.0, "sigma": 0.0, "control_spacing_mm": None, "max_displacement_mm": 0.0}
# Value along z of a 2D image where values are given for y and x, by parameter.
_FLAT = {"size": 1, "control_spacing_mm": 32.0, "scale": 1.0, "sigma": 0.0}
# Value along z of a 2D image where one number is given for all axes, by parameter, so that the image stays in its plane. Other
# parameters have the number there too, which does not affect an axis of one voxel.
_PLANAR = {"size": 1, "extents": 1, "max_size": 0, "start": 0, "before": 0, "after": 0, "location": 0, "scale": 1.0, "spacing_mm": 0.0,
           "translate": 0.0, "translation": 0.0}


class ReadByKernels(np.ndarray[Any, Any]):
    """Marks arrays that kernels read; if the plan is on a GPU they are copied to it."""


class Encoded:
    """The C++ types of a chain, and the numbers and lists of its operations."""

    __slots__ = ("types", "conversions", "headers", "own_files", "numbers", "lists", "kept", "_numbers", "_lists")

    def __init__(self) -> None:
        self.types: list[str] = []  # of the operations, in order
        self.conversions: list[str] = []  # C++ type of the conversion of each label map; empty without one
        self.headers: set[str] = set()
        self.own_files: list[tuple[str, str]] = []  # headers of value_cpp, with the hash of their content
        self.numbers: list[float] = []
        self.lists: list[Any] = []  # arrays, whose rows are elements, or (memory, count)
        self.kept: list[Any] = []  # owners of memory that elements of lists point to
        self._numbers: np.ndarray | None = None
        self._lists: Lists | None = None

    def tables(self) -> tuple[np.ndarray, Lists]:
        """Returns numbers and lists for a Request. They are made once."""
        if self._numbers is None or self._lists is None:
            self._numbers, self._lists = np.array(self.numbers, np.float64), Lists(self.lists)
        return self._numbers, self._lists


@lru_cache(maxsize=None)
def _places_of(order: str) -> tuple[int, ...]:
    three = order if len(order) == 3 else "z" + order
    return tuple(three.index(name) for name in "zyx")


class Encoder:
    """Collects the numbers and lists of a chain.

    order   the order of the array's axes, by which tuples are read, such as "zyx", "xyz", "yx" or "xy"
    places  the places of z, y and x in that order; before two axes, z is the first
    values  the batch, which has the values that per_sample names; None to compile before there is a batch
    indexes returns the class indexes that a crop_by_class draws from, one for each sample; None in evaluation
    """

    def __init__(self, order: str, values: Mapping[str, Any] | None, samples: int,
                 indexes: Callable[[Any], Sequence[Any]] | None = None) -> None:
        self.order, self.values, self.samples, self.indexes = order, values or {}, samples, indexes
        self.places = _places_of(order)
        self.ahead = values is None
        self.out = Encoded()

    def number(self, *values: float) -> None:
        """Appends numbers, as float64."""
        self.out.numbers.extend(map(float, values))

    def rows(self, rows: Any) -> None:
        """Appends a list: an array, whose rows are its elements, or (memory, count)."""
        self.out.lists.append(rows)

    def class_indexes(self, op: Any) -> None:
        """Appends a list of pointers to the class indexes of the samples, empty in evaluation."""
        made = [] if self.indexes is None else self.indexes(op)
        self.out.kept.append(made)
        self.rows(np.array([index.handle for index in made], np.uint64))

    def given(self, key: str, what: str) -> Any:
        """Returns the entry of the batch under a key that per_sample names."""
        if self.ahead:
            raise Error(f"{what}: what is compiled depends on what the batch has under {key!r}: run a batch instead of "
                        "compiling ahead")
        if key not in self.values:
            raise Error(f"{what}: the batch has no {key!r}, which per_sample names")
        return self.values[key]

    def axis(self, name: str | int, what: str) -> int:
        """Returns the index of an axis in (z, y, x)."""
        if isinstance(name, str):
            return "zyx".index(name)
        if len(self.order) != 3:
            raise Error(f"{what}: name the axes of a 2D image, y and x")
        return "zyx".index(self.order[name])

    def triple(self, value: Any, name: str, what: str, in_plane: bool = True) -> tuple[Any, Any, Any]:
        """Returns three values along (z, y, x). One number for all axes keeps a 2D image in its plane, unless `in_plane` is not set."""
        if isinstance(value, Mapping):
            missing = _UNNAMED.get(name, 0)
            if len(self.order) == 2 and "z" not in value and name in _FLAT:
                value = {**value, "z": _FLAT[name]}
            if missing is None and len(value) < 3:
                raise Error(f"{what}: {value!r} does not name {', '.join(k for k in 'zyx' if k not in value)}")
            return value.get("z", missing), value.get("y", missing), value.get("x", missing)
        if isinstance(value, tuple):
            named = self._named(value, what)
            named.setdefault("z", _FLAT.get(name, _UNNAMED.get(name) or 0))
            return named["z"], named["y"], named["x"]
        if len(self.order) == 2 and in_plane:
            if name == "rotate_deg":  # an angle about z turns the plane
                return value, 0.0, 0.0
            return _PLANAR.get(name, value), value, value
        return value, value, value

    def _named(self, value: tuple[Any, ...], what: str) -> dict[str, Any]:
        """Returns values in the order of the array's axes by their names."""
        if len(value) != len(self.order):
            raise Error(f"{what}: {value!r} has {len(value)} values for an array of the axes {self.order!r}")
        return dict(zip(self.order, value))

    def ranges(self, value: Any, name: str, what: str) -> list[tuple[float, float]]:
        """Returns (low, high) along z, y and x. One range for all axes is not narrowed for 2D images; C++ keeps these in their plane."""
        if isinstance(value, tuple) and len(value) == 2 and not any(isinstance(v, tuple) for v in value):
            return [value] * 3
        if isinstance(value, (tuple, Mapping)):
            named = dict(value) if isinstance(value, Mapping) else self._named(value, what)
            unnamed = (1.0, 1.0) if name == "scale" else 0.0
            if name == "scale" and len(self.order) == 2 and "y" in named and named["y"] == named.get("x"):
                unnamed = named["y"]  # the only scale of an isotropic map
            return [interval_ends(named.get(k, unnamed), True) for k in "zyx"]
        return [interval_ends(value, True)] * 3


def interval_ends(value: Any, half_width: bool) -> tuple[float, float]:
    """Returns the ends of a range. A number v is the range (-v, v) if `half_width` is set, else (v, v)."""
    if isinstance(value, tuple):
        return value
    return (-value, value) if half_width else (value, value)


def chain_type(types: Sequence[str]) -> str:
    """Returns the C++ type of a chain of operations."""
    return f"suture::chain<{', '.join(types or ['suture::identity'])}>"
