# SPDX-License-Identifier: Apache-2.0
"""An array with the axes, spacing, origin and direction of a scan. Axis order is said, never guessed."""
from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

import numpy as np

from .dlpack import as_numpy, plain_numpy
from .lazy import is_source, read_whole
from ..errors import Error

Spacing = Union[float, Sequence[float], Mapping[str, float]]
_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Grid:
    """Where voxels lie: all along (z, y, x), millimeters, origin and direction LPS with components (z, y, x)."""

    extents: tuple[int, int, int] = (1, 1, 1)
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    direction: tuple[float, ...] = _IDENTITY  # row by row; column k is the unit vector of array axis k

    @cached_property
    def place(self) -> bytes:
        """Spacing, origin and direction, as abi::array ends."""
        return struct.pack("<15d", *self.spacing, *self.origin, *self.direction)

    def affine_ras(self, axes: str = "zyx") -> np.ndarray:
        """The 4 x 4 matrix from indices, in the order of `axes`, to RAS millimeters, as nibabel has it."""
        m = np.eye(4)
        direction = np.array(self.direction).reshape(3, 3)
        for column, name in enumerate(_three(axes)):
            k = "zyx".index(name)
            m[:3, column] = (direction[:, k] * self.spacing[k])[::-1]
        m[:3, 3] = self.origin[::-1]
        m[:2] *= -1
        return m

    @staticmethod
    def from_affine_ras(affine: Any, shape: Sequence[int], axes: str) -> Grid:
        """Of an affine whose columns stand in the order of `axes`, as the array's indices do."""
        m = np.asarray(affine, np.float64)
        if m.shape != (4, 4):
            raise Error(f"suture: Volume: the affine has the shape {m.shape}, not (4, 4)")
        lps = m.copy()
        lps[:2] *= -1
        spacing, direction = [1.0] * 3, np.eye(3)
        extents = [1] * 3
        for column, name in enumerate(_three(axes)):
            k = "zyx".index(name)
            vector = lps[:3, column][::-1]
            length = math.sqrt(float(vector @ vector))
            if not length > 0:
                raise Error(f"suture: Volume: column {column} of the affine has no length")
            spacing[k] = length
            direction[:, k] = vector / length
        for name, n in zip(axes, shape):
            extents["zyx".index(name)] = int(n)
        origin = lps[:3, 3][::-1]
        return Grid(tuple(extents), tuple(spacing), tuple(float(v) for v in origin),  # type: ignore[arg-type]
                    tuple(float(v) for v in direction.ravel()))

    def to_json(self) -> dict[str, Any]:
        return {"extents": list(self.extents), "spacing": list(self.spacing), "origin": list(self.origin),
                "direction": list(self.direction)}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Grid:
        return Grid(*(tuple(record[k]) for k in ("extents", "spacing", "origin", "direction")))


def _three(axes: str) -> str:
    return axes if len(axes) == 3 else "z" + axes


def named_spacing(spacing: Spacing, what: str, rank: int = 0) -> tuple[float, float, float]:
    """Along (z, y, x). One number for all axes, or unequal ones by name; as many as axes, where their number is known."""
    if isinstance(spacing, Mapping):
        if set(spacing) - set("zyx"):
            raise Error(f"{what}: spacing names {sorted(set(spacing) - set('zyx'))}; axes are z, y and x")
        return float(spacing.get("z", 1)), float(spacing.get("y", 1)), float(spacing.get("x", 1))
    values = [float(v) for v in np.atleast_1d(np.asarray(spacing, np.float64))]
    if len(values) not in (1, rank or len(values)):
        raise Error(f"{what}: spacing: expected one number, or one for each of {rank} axes, got {tuple(values)}. Name them: "
                    "dict(z=..., y=..., x=...)")
    if len(set(values)) == 1:
        return values[0], values[0], values[0]
    raise Error(f"{what}: spacing {tuple(values)} differs between axes: name them, dict(z=..., y=..., x=...), so that "
                "nobody has to guess their order")


class Volume:
    """An array and where it lies.

    array    numpy array, torch tensor or anything with __dlpack__; (axes) or (channel, axes). Or a Source, whose voxels are
             read box by box: a plan takes it and reads nothing until it runs
    axes     the order of its spatial axes, "zyx" or "xyz" ("yx" or "xy" in 2D)
    spacing  millimeters; unequal ones by name, dict(z=5, y=.7, x=.7)
    affine_ras, affine_lps   4 x 4, from the indices of the array in its own order to millimeters, instead of spacing
    """

    __slots__ = ("array", "axes", "grid", "_record")

    def __init__(self, array: Any, *, axes: str, spacing: Spacing | None = None, affine_ras: Any = None,
                 affine_lps: Any = None, origin: Mapping[str, float] | None = None, grid: Grid | None = None) -> None:
        if axes not in ("zyx", "xyz", "yx", "xy"):
            raise Error(f'suture: Volume: axes {axes!r} are none of "zyx", "xyz", "yx", "xy"')
        shape = tuple(int(n) for n in array.shape)
        if len(shape) not in (len(axes), len(axes) + 1):
            raise Error(f"suture: Volume: an array of shape {shape} has not the axes {axes!r}, "
                        "with or without channels before them")
        spatial = shape[-len(axes):]
        if sum(given is not None for given in (spacing, affine_ras, affine_lps, grid)) > 1:
            raise Error("suture: Volume: give one of spacing, affine_ras, affine_lps")
        extents = dict(zip(axes, spatial))
        zyx = (extents.get("z", 1), extents["y"], extents["x"])
        if grid is not None:
            self.grid = grid
        elif affine_ras is not None or affine_lps is not None:
            affine = np.array(affine_ras if affine_ras is not None else affine_lps, np.float64)
            if affine_lps is not None:
                affine[:2] *= -1
            self.grid = Grid.from_affine_ras(affine, spatial, axes)
        else:
            o = (0.0, 0.0, 0.0) if origin is None else tuple(float(origin.get(k, 0.0)) for k in "zyx")
            self.grid = Grid(zyx, named_spacing(1.0 if spacing is None else spacing, "suture: Volume", len(axes)),
                             o)  # type: ignore[arg-type]
        if self.grid.extents != zyx:
            raise Error(f"suture: Volume: the array has extents {zyx}, the grid {self.grid.extents}")
        self.array, self.axes = array, axes
        self._record: bytes | None = None

    @property
    def spacing(self) -> dict[str, float]:
        """Millimeters, by axis."""
        return dict(zip("zyx", self.grid.spacing))

    @property
    def affine_ras(self) -> np.ndarray:
        """From the indices of the array, in its own order, to RAS millimeters."""
        return self.grid.affine_ras(self.axes)

    @property
    def affine_lps(self) -> np.ndarray:
        m = self.affine_ras
        m[:2] *= -1
        return m

    @staticmethod
    def from_nibabel(image: Any) -> Volume:
        """Of an image of nibabel: axes "xyz", its affine. A fourth axis are channels. Data keep their type where it is
        one that suture reads and scale to float32 where the file says so."""
        slope, inter = image.header.get_slope_inter() if hasattr(image.header, "get_slope_inter") else (None, None)
        scaled = (slope not in (None, 1.0)) or (inter not in (None, 0.0))
        data = plain_numpy(np.asanyarray(image.dataobj), "suture: Volume")
        if scaled or data.dtype.kind == "f":
            data = np.asarray(data, np.float32)
        if data.ndim == 4:
            data = np.moveaxis(data, -1, 0)
        if data.ndim not in (3, 4):
            raise Error(f"suture: Volume: an image of {data.ndim} axes is no volume")
        return Volume(data, axes="xyz", affine_ras=image.affine)

    @staticmethod
    def from_itk(image: Any) -> Volume:
        """A Volume of an image of SimpleITK, with its spacing, origin and direction.

        Parameters
        ----------
        image : SimpleITK.Image
            An image of three dimensions, of one component or more.

        Returns
        -------
        Volume
            Axes "zyx", as GetArrayFromImage has them, components as channels. Its voxels are a copy: SimpleITK frees
            those of an image with it, and may move them when the image is changed.

        Raises
        ------
        Error
            If the image does not have three dimensions.
        """
        import SimpleITK

        if image.GetDimension() != 3:
            raise Error(f"suture: Volume: an image of {image.GetDimension()} dimensions is no volume")
        data = SimpleITK.GetArrayFromImage(image)
        if image.GetNumberOfComponentsPerPixel() > 1:
            data = np.moveaxis(data, -1, 0)
        direction = np.array(image.GetDirection()).reshape(3, 3)[::-1, ::-1]
        n = data.shape[-3:]
        grid = Grid(tuple(int(k) for k in n), tuple(image.GetSpacing()[::-1]),  # type: ignore[arg-type]
                    tuple(image.GetOrigin()[::-1]), tuple(float(v) for v in direction.ravel()))
        return Volume(data, axes="zyx", grid=grid)

    def __repr__(self) -> str:
        return f"Volume({tuple(self.array.shape)}, axes={self.axes!r}, spacing={self.spacing})"

    @property
    def is_lazy(self) -> bool:
        """Whether the voxels are read box by box. numpy.asarray(volume) reads them all."""
        return is_source(self.array)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if is_source(self.array):
            return np.asarray(read_whole(self.array, self.axes, "suture: Volume"), dtype)
        if copy:
            return np.array(as_numpy(self.array, "suture: Volume"), dtype)
        return np.asarray(as_numpy(self.array, "suture: Volume"), dtype)
