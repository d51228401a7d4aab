# SPDX-License-Identifier: Apache-2.0
"""Keys of a batch other than images have roles: label maps, boxes and points, which the geometry of the images moves."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from ..backend.encode import Encoder
from ..arguments import check_calls
from ..errors import Error
from ..operations.generated import remap
from ..operations.kinds import KINDS, canonical, members, number, plain, shown
from ..operations.operation import Operation, operation_from_json, written
from ..operations.templates import dtype_name

# Types that label maps are converted to before they are read; others are read as they are.
_STORED = {"bool": "uint8", "int64": "int32", "float32": "int32", "float64": "int32", "float16": "int32", "bfloat16": "int32"}


def stored_label(dtype: str) -> str:
    """Returns the type that label maps of a type are read as."""
    return _STORED.get(dtype, dtype)


@check_calls
@dataclass(frozen=True)
class labels:
    """A label map of integers, which the geometry of the images moves, interpolated as sampling(labels=...) says.

    Parameters
    ----------
    dtype : str or type, optional
        Type of the output. None keeps the type, but int64 and float become int32; cross entropy needs "int64". With "bool", every
        label but 0 becomes True.
    convert : remap, one_hot or regions, optional
        Conversion of the labels, after the geometry.
    levels : tuple
        Scales of deep supervision, each one number or one for each axis; the result is a list, the full map first.
    assume_integral : bool
        Whether labels of float or int64 on a GPU are taken for whole numbers of 32 bits without a check.

    Raises
    ------
    Error
        If outputs cannot have the type, the conversion is another operation, or a scale is no number.

    Examples
    --------
    >>> st.labels(dtype="int64", convert=st.one_hot(classes=4), levels=(.5, .25))
    labels(dtype='int64', convert=one_hot(classes=4), levels=(0.5, 0.25))
    """

    dtype: Any = None
    convert: Operation | None = None
    levels: tuple[Any, ...] = ()
    assume_integral: bool = False

    def __post_init__(self) -> None:
        what = "suture: labels"
        if self.dtype is not None:
            object.__setattr__(self, "dtype", dtype_name(self.dtype, f"{what}: dtype", ("int64", "bool")))
        if self.convert is not None and getattr(self.convert, "_role", "") != "label":
            raise Error(f"{what}: convert {shown(self.convert)} is none of remap, one_hot, regions")
        if not isinstance(self.levels, (tuple, list)):
            raise Error(f"{what}: levels: expected a list of scales, got {shown(self.levels)}")
        object.__setattr__(self, "levels", tuple(canonical("point3", s, f"{what}: levels") for s in self.levels))
        object.__setattr__(self, "assume_integral", canonical("flag", self.assume_integral, f"{what}: assume_integral"))

    __repr__ = written

    def output_dtype(self, dtype: str) -> str:
        """Returns the element type of the output labels.

        Parameters
        ----------
        dtype : str
            Type of the labels of the batch.

        Returns
        -------
        str
            Name of the type.
        """
        return self.dtype or ("bool" if dtype == "bool" and self.convert is None else stored_label(dtype))

    def conversion(self, dtype: str) -> Operation | None:
        """Returns the conversion of labels of a type.

        Parameters
        ----------
        dtype : str
            Type of the labels of the batch.

        Returns
        -------
        Operation or None
            The conversion; None if labels do not change.
        """
        if self.dtype == "bool" and (self.convert is None or self.convert.name == "remap"):
            return _to_bool(self.convert)
        if self.convert is None and self.dtype not in (None, stored_label(dtype)):
            return remap()  # changes the type alone
        return self.convert

    def channels(self, given: int) -> int:
        """Returns the number of output channels.

        Parameters
        ----------
        given : int
            Number of channels of the labels of the batch.

        Returns
        -------
        int
            The number, which one_hot and regions change.
        """
        op: Any = self.convert
        if op is None or op.name == "remap":
            return given
        extra = op.ignore is not None
        if op.name == "one_hot":
            return int(op.classes - (0 if op.background else 1) + extra)
        return len(op.sets) + int(extra)

    def to_json(self) -> dict[str, Any]:
        """Writes the role as plain values.

        Returns
        -------
        dict
            Values of JSON, under "labels".
        """
        return {"labels": {"dtype": self.dtype, "convert": self.convert and self.convert.to_json(), "levels": plain(self.levels),
                           "assume_integral": self.assume_integral}}

    @staticmethod
    def from_json(record: Any, what: str) -> labels:
        """Makes the role out of what to_json wrote.

        Parameters
        ----------
        record : dict
            The values under "labels".
        what : str
            Words that errors begin with.

        Returns
        -------
        labels
            The same role.

        Raises
        ------
        Error
            If a member is unknown, missing or of another type.
        """
        made = dict(members(record, what, [f.name for f in fields(labels)]))
        if made["dtype"] is not None and not isinstance(made["dtype"], str):
            raise Error(f"{what}: dtype: expected a name, got {shown(made['dtype'])}")
        made["convert"] = None if made["convert"] is None else operation_from_json(made["convert"])
        made["levels"] = KINDS["point3"].from_json(made["levels"], f"{what}: levels")
        return labels(**made)


def _to_bool(convert: Any) -> Operation:
    """Returns a remap, or none, followed by the conversion to bool, whose elements are 0 or 1."""
    table = {} if convert is None else {old: int(new != 0) for old, new in convert.table.items()}
    if convert is None or convert.others is None:
        return remap(table={0: 0, **table}, others=1)
    return remap(table=table, others=int(convert.others != 0))


@check_calls
@dataclass(frozen=True)
class boxes:
    """Boxes, which the geometry of the images moves, in edge coordinates: voxel i covers [i, i + 1).

    The result for a sample has the arrays `boxes`, clipped to the output, `whole`, before that, and for each box `visible`, the share
    within the output, `index`, its position among the boxes of the batch, and `converged`, False if the deformation could not be
    inverted for it to 1e-6 voxel, as where it folds.

    Parameters
    ----------
    format : {"zyxzyx", "xyzxyz", "yxyx", "xyxy"}
        Names of the columns: the low corner, then the high one.
    least_visible : float
        Share of the volume of a box, 0 to 1, that must lie within the output for the box to be kept.
    least_thickness : float
        Voxels that the part within the output must have along every axis of the format for the box to be kept.

    Raises
    ------
    Error
        If the format does not exist, or a limit is no number.

    Examples
    --------
    >>> st.boxes(format="xyzxyz", least_visible=0.25)
    boxes(format='xyzxyz', least_visible=0.25)
    """

    format: str = "zyxzyx"
    least_visible: float = 0.0
    least_thickness: float = 1.0

    __repr__ = written

    def __post_init__(self) -> None:
        if self.format not in ("zyxzyx", "xyzxyz", "yxyx", "xyxy"):
            raise Error(f'suture: boxes: format {shown(self.format)} is none of "zyxzyx", "xyzxyz", "yxyx", "xyxy"')
        for name in ("least_visible", "least_thickness"):
            object.__setattr__(self, name, number(getattr(self, name), f"suture: boxes: {name}", single=False))

    def to_json(self) -> dict[str, Any]:
        """Writes the role as plain values.

        Returns
        -------
        dict
            Values of JSON, under "boxes".
        """
        return {"boxes": plain(vars(self))}

    @staticmethod
    def from_json(record: Any, what: str) -> boxes:
        """Makes the role out of what to_json wrote.

        Parameters
        ----------
        record : dict
            The values under "boxes".
        what : str
            Words that errors begin with.

        Returns
        -------
        boxes
            The same role.

        Raises
        ------
        Error
            If a member is unknown, missing or of another type.
        """
        return boxes(**members(record, what, [f.name for f in fields(boxes)]))


@check_calls
@dataclass(frozen=True)
class points:
    """Points, rows of coordinates, which the geometry of the images moves.

    The result for a sample is an array of as many rows. A point is NaN if the deformation could not be inverted there to 1e-6 voxel,
    as where it folds.

    Parameters
    ----------
    unit : {"index", "mm"}
        Continuous indices in voxels, or millimeters (LPS), for which the first image needs Volumes of known spacing.
    format : {"zyx", "xyz", "yx", "xy"}
        Names of the columns.

    Raises
    ------
    Error
        If the unit or the format does not exist.

    Examples
    --------
    >>> st.points(unit="mm", format="xyz")
    points(unit='mm', format='xyz')
    """

    unit: str = "index"
    format: str = "zyx"

    __repr__ = written

    def __post_init__(self) -> None:
        if self.unit not in ("index", "mm"):
            raise Error(f'suture: points: unit {shown(self.unit)} is neither "index" nor "mm"')
        if self.format not in ("zyx", "xyz", "yx", "xy"):
            raise Error(f'suture: points: format {shown(self.format)} is none of "zyx", "xyz", "yx", "xy"')

    def to_json(self) -> dict[str, Any]:
        """Writes the role as plain values.

        Returns
        -------
        dict
            Values of JSON, under "points".
        """
        return {"points": dict(vars(self))}

    @staticmethod
    def from_json(record: Any, what: str) -> points:
        """Makes the role out of what to_json wrote.

        Parameters
        ----------
        record : dict
            The values under "points".
        what : str
            Words that errors begin with.

        Returns
        -------
        points
            The same role.

        Raises
        ------
        Error
            If a member is unknown, missing or of another type.
        """
        return points(**members(record, what, [f.name for f in fields(points)]))


_MOVING: dict[str, Any] = {"labels": labels, "boxes": boxes, "points": points}


def role_from_json(record: Any, key: str) -> Any:
    """Makes the chain, labels, boxes or points of a key, as Pipeline.to_json wrote them."""
    what = f"suture: Pipeline: {shown(key)}"
    if type(record) is list:
        return [operation_from_json(op) for op in record]
    if type(record) is not dict or len(record) != 1 or next(iter(record)) not in _MOVING:
        raise Error(f"{what}: expected a list of operations, or an object with labels, boxes or points alone, got {shown(record)}")
    name = next(iter(record))
    return _MOVING[name].from_json(record[name], f"{what}: {name}")


def level_extents(full: Sequence[int], scale: Any, order: str) -> tuple[int, ...]:
    """Returns the extents of a level of deep supervision, rounded half to even."""
    s = Encoder(order, {}, 1).triple(scale, "scale", "suture: labels: levels")
    extents = tuple(round(n * k) for n, k in zip(full, s))
    if min(extents) < 1 or max(s) > 1:
        raise Error(f"suture: labels: levels: scale {scale} of {tuple(full)} leaves {extents}")
    return extents


def level_grid(grid: Grid, scale: Any, order: str) -> Grid:
    """Returns the grid of a level of deep supervision: fewer voxels over the same box."""
    extents = level_extents(grid.extents, scale, order)
    ratio = [n / e for n, e in zip(grid.extents, extents)]
    direction = np.array(grid.direction).reshape(3, 3)
    first = direction @ (np.array(grid.spacing) * [0.5 * r - 0.5 for r in ratio]) + np.array(grid.origin)
    return Grid(extents, tuple(a * b for a, b in zip(grid.spacing, ratio)), tuple(float(v) for v in first),  # type: ignore
                grid.direction)


def batch_of(batch: Any, keys: Sequence[str], first: str) -> tuple[Mapping[str, Any], bool]:
    """Returns a batch as a mapping that has every key, and whether it was given as an array or list alone.

    Raises
    ------
    Error
        If the batch lacks a key, or is no mapping and several keys are needed.
    """
    if type(batch) is not dict and not isinstance(batch, Mapping):
        if len(keys) > 1:
            raise Error(f"suture: the batch is a {type(batch).__name__}, the pipeline has {', '.join(keys)}; give a dict")
        return {first: batch}, True
    for key in keys:
        if key not in batch:
            raise Error(f"suture: batch: expected the key {key!r}, as the pipeline has it, got {', '.join(map(str, batch)) or 'an empty batch'}. "
                        "Name the chain and the entry of the batch alike")
    return batch, False


def check_keys(given: Mapping[str, Any], known: Mapping[str, Any], what: str, way: str) -> None:
    """Refuses keys that a plan does not have. `way` says what to do."""
    for key in given:
        if key not in known:
            raise Error(f"{what}: expected keys among {', '.join(known)}, got {shown(key)}. {way}")
