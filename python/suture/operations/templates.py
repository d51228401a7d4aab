# SPDX-License-Identifier: Apache-2.0
"""Operations that are templates in C++: their types are parameters here."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..errors import Error
from .operation import Operation, name_mistakes

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "float32", "float16", "bfloat16")
_ALSO = {"float": "float32", "half": "float16", "single": "float32"}


def dtype_name(value: Any, what: str, more: tuple[str, ...] = ()) -> str:
    """The name of an element type: a name, or a type of numpy or torch."""
    if isinstance(value, str):
        name = value.removeprefix("torch.")
    else:
        name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value).removeprefix("torch.")
    name = _ALSO.get(name, name)
    if name not in (*DTYPES, *more):
        raise Error(f"{what}: {value!r} is none of {', '.join((*DTYPES, *more))}")
    return str(name)


@dataclass(frozen=True)
class cast(Operation):
    """Rounded to an element type, ties to even, as the last of a chain; integers saturate and NaN becomes 0, half and
    bfloat16 overflow to infinity. Takes names of numpy and torch: cast("float16"), cast(torch.half)."""

    to: Any

    _header: ClassVar[str] = "ops/value/cast.hpp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", dtype_name(self.to, "suture: cast"))


@dataclass(frozen=True, kw_only=True)
class sampling(Operation):
    """How the source is read.

    interpolation  of images
    border         what lies outside: constant, default_value (then `value`), edge, reflect, mirror, wrap
    rim            where the outside of default_value begins: "faces" of the outermost voxels, as ITK, or their "centers"
    labels         nearest, nearest_half_even, vote, majority
    label_outside  the label of what lies outside, with a constant border
    """

    interpolation: Literal["nearest", "nearest_half_even", "linear", "catmull_rom", "torch_cubic", "cubic_bspline"] = "linear"
    border: Literal["constant", "default_value", "edge", "reflect", "mirror", "wrap"] = "constant"
    labels: Literal["nearest", "nearest_half_even", "vote", "majority"] = "nearest"
    value: float = 0.0
    label_outside: int = 0
    rim: Literal["faces", "centers"] = "faces"

    _role: ClassVar[str] = "sampling"
    _header: ClassVar[str] = "sample/majority.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (("value", "float32"), ("label_outside", "int32"))

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in (("interpolation", ("nearest", "nearest_half_even", "linear", "catmull_rom", "torch_cubic",
                                                 "cubic_bspline")),
                              ("border", ("constant", "default_value", "edge", "reflect", "mirror", "wrap")),
                              ("rim", ("faces", "centers")),
                              ("labels", ("nearest", "nearest_half_even", "vote", "majority"))):
            if getattr(self, name) not in choices:
                raise Error(f"suture: sampling: {name}: {getattr(self, name)!r} is none of {', '.join(choices)}")


@dataclass(frozen=True)
class per_channel(Operation):
    """A random value operation with parameters of its own in every channel, for images of up to 8 channels. `probability`
    decides on each channel of a sample where the operation fired; `synchronized` takes one set of parameters for all."""

    operation: Operation
    probability: float = 1.0
    synchronized: bool = False

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/per_channel.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (("probability", "float32"), ("synchronized", "flag"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.operation, Operation) or not self.operation._random:
            raise Error(f"suture: per_channel: {self.operation!r} is no random operation")


name_mistakes(sampling)
