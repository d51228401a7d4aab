# SPDX-License-Identifier: Apache-2.0
"""These operations are templates in C++; their template arguments are parameters here."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..errors import Error
from .kinds import KINDS, shown
from .operation import Operation, name_mistakes

DTYPES: tuple[str, ...] = KINDS["type:element"].names  # type: ignore[attr-defined]
_ALSO = {"float": "float32", "half": "float16", "single": "float32"}


def dtype_name(value: Any, what: str, more: tuple[str, ...] = ()) -> str:
    """Returns the name of an element type, from a name or a type of NumPy or torch. `more` are names allowed besides DTYPES."""
    if isinstance(value, str):
        name = value.removeprefix("torch.")
    else:
        name = getattr(value, "name", None) or getattr(value, "__name__", None) or str(value).removeprefix("torch.")
    name = _ALSO.get(name, name)
    if name not in (*DTYPES, *more):
        raise Error(f"{what}: {shown(value)} is none of {', '.join((*DTYPES, *more))}")
    return str(name)


@dataclass(frozen=True)
class cast(Operation):
    """Rounds to an element type, as the last of a chain.

    Ties go to even, integers saturate and NaN becomes 0; half and bfloat16 overflow to infinity.

    Parameters
    ----------
    to : str or type
        Element type by its name in NumPy or torch: cast("float16"), cast(torch.half).

    Raises
    ------
    Error
        If the type is not written.

    Examples
    --------
    >>> st.cast("half")
    cast('float16')
    """

    to: Any

    _header: ClassVar[str] = "ops/value/cast.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (("to", "type:element"),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "to", dtype_name(self.to, "suture: cast"))


@dataclass(frozen=True, kw_only=True)
class sampling(Operation):
    """Sets interpolation and borders of the geometry, for images and label maps.

    Parameters
    ----------
    interpolation : str
        Interpolation of images: "nearest", "nearest_half_even", "linear", "catmull_rom", "torch_cubic" or "cubic_bspline".
    border : str
        Values outside the source: "constant", "default_value" (then `value`), "edge", "reflect", "mirror" or "wrap".
    labels : {"nearest", "nearest_half_even", "vote", "majority"}
        Interpolation of label maps.
    value : float
        Value outside the source, with a border of "constant" or "default_value".
    label_outside : int
        Label outside the source, with a constant border.
    rim : {"faces", "centers"}
        With "default_value", whether the outside begins at the faces of the outermost voxels, as in ITK, or at their centers.

    Raises
    ------
    Error
        If a name does not exist, or a value is no number.

    Examples
    --------
    >>> st.sampling(interpolation="cubic_bspline", border="edge")
    sampling(interpolation='cubic_bspline', border='edge')
    """

    interpolation: Literal["nearest", "nearest_half_even", "linear", "catmull_rom", "torch_cubic", "cubic_bspline"] = "linear"
    border: Literal["constant", "default_value", "edge", "reflect", "mirror", "wrap"] = "constant"
    labels: Literal["nearest", "nearest_half_even", "vote", "majority"] = "nearest"
    value: float = 0.0
    label_outside: int = 0
    rim: Literal["faces", "centers"] = "faces"

    _role: ClassVar[str] = "sampling"
    _header: ClassVar[str] = "sample/majority.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("interpolation", "type:interpolation"), ("border", "type:border"), ("labels", "type:label_rule"),
        ("value", "float32_or_nan"), ("rim", "choice:image_rim"), ("label_outside", "int32"))

    def _sends(self, name: str) -> bool:
        if name == "value":
            return self.border in ("constant", "default_value")
        return name != "rim" or self.border == "default_value"


@dataclass(frozen=True)
class per_channel(Operation):
    """Gives a random value operation parameters of its own in every channel, for images of up to 8 channels.

    Parameters
    ----------
    operation : Operation
        The random value operation.
    probability : float
        Probability of each channel, in samples where the operation is applied.
    synchronized : bool
        Whether all channels have the same parameters.

    Raises
    ------
    Error
        If the operation is not a random value operation.

    Examples
    --------
    >>> st.per_channel(st.random_brightness(), probability=.5)
    per_channel(random_brightness(), probability=0.5)
    """

    operation: Operation
    probability: float = 1.0
    synchronized: bool = False

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/per_channel.hpp"
    _cpp_name: ClassVar[str] = "per_channel_operation"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (("operation", "operation"), ("probability", "float32"),
                                                      ("synchronized", "flag"))

    @property
    def varies(self) -> bool:
        """Whether values that C++ reads come with the batch."""
        return self.operation.varies

    def headers(self) -> set[str]:
        """Returns the headers of its C++ type, relative to suture/."""
        return super().headers() | self.operation.headers()


for _operation in (cast, sampling, per_channel):
    name_mistakes(_operation)
