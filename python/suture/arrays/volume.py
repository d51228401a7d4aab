# SPDX-License-Identifier: Apache-2.0
"""A Volume is an array with the axes, spacing, origin and direction of a scan. The caller states the order of its axes."""
from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Union

import numpy as np

from . import files
from .dlpack import as_numpy, is_torch, plain_numpy
from .lazy import is_source, read_whole
from ..arguments import check_calls
from ..errors import Error

Spacing = Union[float, Sequence[float], Mapping[str, float]]
MOST_UNNAMED = 4  # most channels (RGBA) of a 2D image whose axes do not name the channel
_IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@check_calls
@dataclass(frozen=True)
class Grid:
    """The position of voxels in space, in millimeters.

    All values are in the order (z, y, x), also the components of origin and direction, which are LPS.

    Parameters
    ----------
    extents : (int, int, int)
        Number of voxels.
    spacing : (float, float, float)
        Distance of neighboring voxels.
    origin : (float, float, float)
        Center of the first voxel.
    direction : tuple of nine floats
        Row by row a matrix whose columns are the unit vectors of the axes z, y and x.

    Examples
    --------
    >>> grid = st.Grid(extents=(40, 512, 512), spacing=(2.5, .8, .8))
    >>> grid.affine_ras("xyz").diagonal().tolist()
    [-0.8, -0.8, 2.5, 1.0]
    """

    extents: tuple[int, int, int] = (1, 1, 1)
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    direction: tuple[float, ...] = _IDENTITY

    @cached_property
    def place(self) -> bytes:
        """Spacing, origin and direction, as the last bytes of an abi::array."""
        return struct.pack("<15d", *self.spacing, *self.origin, *self.direction)

    def affine_ras(self, axes: str = "zyx") -> np.ndarray:
        """Returns the matrix from indices to RAS millimeters, as nibabel has it.

        Parameters
        ----------
        axes : str
            Order of the indices, and so of the columns of the matrix; before two axes, z is the first.

        Returns
        -------
        numpy.ndarray
            A matrix of 4 x 4.
        """
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
        """Makes the grid of an affine.

        Parameters
        ----------
        affine : array
            A matrix of 4 x 4 from indices to RAS millimeters.
        shape : sequence of int
            Number of voxels along each axis, in the order of `axes`.
        axes : str
            Order of the indices, and so of the columns of the affine; before two axes, z is the first.

        Returns
        -------
        Grid
            The grid.

        Raises
        ------
        Error
            If the affine has another shape, or a column has no length.
        """
        m = _matrix(affine)
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
        """Writes the grid as plain values.

        Returns
        -------
        dict
            Lists by the name of the parameter.
        """
        return {"extents": list(self.extents), "spacing": list(self.spacing), "origin": list(self.origin),
                "direction": list(self.direction)}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Grid:
        """Makes the grid that to_json wrote.

        Parameters
        ----------
        record : dict
            Values that to_json returned.

        Returns
        -------
        Grid
            The same grid.
        """
        return Grid(*(tuple(record[k]) for k in ("extents", "spacing", "origin", "direction")))


def _matrix(affine: Any) -> np.ndarray:
    """Returns an affine as float64; a tensor has to be on the CPU and without gradients."""
    return np.asarray(as_numpy(affine, "suture: Volume: affine") if is_torch(affine) else affine, np.float64)


def _three(axes: str) -> str:
    return axes if len(axes) == 3 else "z" + axes


def channels_last(shape: Sequence[int]) -> bool:
    """Tests whether a shape (channel, axes) probably has its channels last: many channels, few voxels along the last axis."""
    return shape[0] >= 8 and shape[-1] <= 4 and min(shape[1:-1], default=0) >= 16


def volumes_on(arrays: Sequence[Any], order: str, grids: Sequence[Grid], placed: bool) -> list[Volume]:
    """Makes Volumes of arrays with the axes `order` on grids. Unless `placed` is set, their spacing is unknown."""
    volumes = [Volume(a, axes=order, grid=g) for a, g in zip(arrays, grids)]
    for volume in volumes:
        volume.placed = placed
    return volumes


def by_axis(given: Mapping[str, float], axes: str, default: float, what: str) -> tuple[float, float, float]:
    """Returns numbers by name along (z, y, x). Each of `axes`, those of the array, needs one; a plane may have one for z, which is
    `default` otherwise."""
    needed = [k for k in "zyx" if k in axes]
    if not isinstance(given, Mapping):
        raise Error(f"{what}: expected a dict of numbers by axis, got {given!r}. Pass dict({', '.join(f'{k}=...' for k in needed)})")
    missing, unknown = [k for k in needed if k not in given], sorted(str(k) for k in set(given) - set("zyx"))
    if missing or unknown:
        way = " and ".join(f"{do} {', '.join(names)}" for do, names in (("add", missing), ("leave out", unknown)) if names)
        raise Error(f"{what}: expected a number for each of {', '.join(needed)}, got {dict(given)}. "
                    f"{way[0].upper()}{way[1:]}")
    return float(given.get("z", default)), float(given["y"]), float(given["x"])


def named_spacing(spacing: Spacing, what: str, axes: str) -> tuple[float, float, float]:
    """Returns the spacing along (z, y, x), from one number for all axes or from numbers by name. `axes` are those of the array."""
    if isinstance(spacing, Mapping):
        return by_axis(spacing, axes, 1.0, f"{what}: spacing")
    values = [float(v) for v in np.atleast_1d(np.asarray(spacing, np.float64))]
    if len(values) not in (1, len(axes)):
        raise Error(f"{what}: spacing: expected one number, or one for each of {len(axes)} axes, got {tuple(values)}. Name them: "
                    "dict(z=..., y=..., x=...)")
    if len(set(values)) == 1:
        return values[0], values[0], values[0]
    raise Error(f"{what}: spacing {tuple(values)} differs between axes: name them, dict(z=..., y=..., x=...), so that "
                "nobody has to guess their order")


@check_calls
class Volume:
    """An array with its axes and its grid.

    Parameters
    ----------
    array : array or Source
        NumPy array, torch tensor or anything with __dlpack__; (axes) or (channel, axes). The voxels of a Source are read
        box by box, when a plan runs.
    axes : {"zyx", "xyz", "yx", "xy"}
        Order of its spatial axes; "czyx", "cxyz", "cyx" or "cxy" says that channels come first. A 2D image with more than
        four channels needs this, since it might be a scan.
    spacing : float or dict, optional
        Spacing in millimeters; unequal ones by name, dict(z=5, y=.7, x=.7), one for each axis of the array; a plane may add z.
        Without spacing, affine and grid it is 1 mm, and chains that resample refuse the volume.
    affine_ras, affine_lps : array, optional
        Matrix of 4 x 4 from the indices of the array in its own order to millimeters, instead of spacing. That of a plane has
        z as its first column.
    origin : dict, optional
        Center of the first voxel in LPS millimeters, for each axis of the array; a plane may add z. An affine or a grid has its
        own.
    grid : Grid, optional
        Grid with all of these.

    Attributes
    ----------
    placed : bool
        Whether its spacing is known.

    Raises
    ------
    Error
        If the axes do not fit the array, more than one of spacing, affine and grid is given, unequal spacings have no names, or
        an axis is missing or unknown.

    Examples
    --------
    >>> scan = st.Volume(np.zeros((40, 64, 64), np.int16), axes="zyx", spacing=dict(z=2.5, y=.8, x=.8))
    >>> scan
    Volume((40, 64, 64), axes='zyx', spacing={'z': 2.5, 'y': 0.8, 'x': 0.8})
    >>> scan.with_axes("xyz").array.shape
    (64, 64, 40)
    """

    __slots__ = ("array", "axes", "grid", "placed")

    def __init__(self, array: Any, *, axes: str, spacing: Spacing | None = None, affine_ras: Any = None,
                 affine_lps: Any = None, origin: Mapping[str, float] | None = None, grid: Grid | None = None) -> None:
        said = axes in ("czyx", "cxyz", "cyx", "cxy")
        axes = axes[1:] if said else axes
        if axes not in ("zyx", "xyz", "yx", "xy"):
            raise Error(f'suture: Volume: axes: expected "zyx", "xyz", "yx" or "xy", got {axes!r}. Name the axes in the order of array.shape: '
                        'nibabel has "xyz", SimpleITK "zyx"')
        if not hasattr(array, "shape"):
            raise Error(f"suture: Volume: array: expected an array, got {type(array).__name__}. Pass numpy.asarray(...), or read a file "
                        "with Volume.load(path)")
        shape = tuple(int(n) for n in array.shape)
        if len(shape) != len(axes) + 1 and (said or len(shape) != len(axes)):
            raise Error(f"suture: Volume: an array of shape {shape} has not the axes {axes!r}, "
                        f"{'with' if said else 'with or without'} channels before them")
        spatial = shape[-len(axes):]
        if sum(given is not None for given in (spacing, affine_ras, affine_lps, grid)) > 1:
            raise Error("suture: Volume: give one of spacing, affine_ras, affine_lps")
        if origin is not None and not (affine_ras is None and affine_lps is None and grid is None):
            raise Error("suture: Volume: origin: expected none beside an affine or a grid, which has one, got "
                        f"{dict(origin)}. Leave it out")
        guessed = grid is None and not said and len(shape) > len(axes)
        if guessed and channels_last(shape):
            names = ", ".join(("channel", *axes))
            raise Error(f"suture: Volume: array: expected the axes ({names}), got shape {shape}, which seems to have its channels "
                        "last. Pass numpy.moveaxis(a, -1, 0)")
        if guessed and len(axes) == 2 and shape[0] > MOST_UNNAMED:
            raise Error(f"suture: Volume: axes: expected a plane of at most {MOST_UNNAMED} channels for {axes!r}, got shape {shape}. "
                        f'Say "zyx" or "xyz" if it is a scan, "c{axes}" if it has {shape[0]} channels')
        extents = dict(zip(axes, spatial))
        zyx = (extents.get("z", 1), extents["y"], extents["x"])
        if grid is not None:
            self.grid = grid
        elif affine_ras is not None or affine_lps is not None:
            affine = _matrix(affine_ras if affine_ras is not None else affine_lps).copy()
            if affine_lps is not None:
                affine[:2] *= -1
            self.grid = Grid.from_affine_ras(affine, spatial, axes)
        else:
            first = (0.0, 0.0, 0.0) if origin is None else by_axis(origin, axes, 0.0, "suture: Volume: origin")
            self.grid = Grid(zyx, named_spacing(1.0 if spacing is None else spacing, "suture: Volume", axes), first)
        if self.grid.extents != zyx:
            raise Error(f"suture: Volume: the array has extents {zyx}, the grid {self.grid.extents}")
        self.array, self.axes = array, axes
        self.placed = not (spacing is None and affine_ras is None and affine_lps is None and grid is None)

    @property
    def spacing(self) -> dict[str, float]:
        """The distance of neighboring voxels in millimeters, by axis."""
        return dict(zip("zyx", self.grid.spacing))

    @property
    def affine_ras(self) -> np.ndarray:
        """The matrix from the indices of the array, in its own order, to RAS millimeters."""
        return self.grid.affine_ras(self.axes)

    @property
    def affine_lps(self) -> np.ndarray:
        """The matrix from the indices of the array, in its own order, to LPS millimeters."""
        m = self.affine_ras
        m[:2] *= -1
        return m

    @staticmethod
    def load(path: str | os.PathLike[str], *, series: str | None = None) -> Volume:
        """Reads a Volume from a file, or from a folder with a DICOM series.

        Parameters
        ----------
        path : path
            NIfTI (.nii, .nii.gz) and FreeSurfer's .mgz are read by nibabel; NRRD, MetaImage and other formats by SimpleITK; DICOM
            by SimpleITK, after pydicom has checked the pixels.
        series : str, optional
            UID of the series to read, where a folder has several.

        Returns
        -------
        Volume
            With the spacing, origin and direction of the file: axes "xyz" from nibabel, "zyx" from SimpleITK. Images and
            label maps of one batch need the same order.

        Raises
        ------
        Error
            If the file is missing or cannot be read, if it is no volume, if the slices of a series are not equally spaced, or if
            the library that reads it is not installed.

        Examples
        --------
        >>> scan = st.Volume.load("case_17.nii.gz")     # doctest: +SKIP
        >>> seg = st.Volume.load("case_17_labels.nii.gz")     # doctest: +SKIP
        >>> batch = {"image": [scan], "seg": [seg], "id": ["case 17"]}     # doctest: +SKIP
        """
        return Volume.of(files.read_image(path, series))

    @staticmethod
    def of(image: Any) -> Volume:
        """Makes a Volume of an image of nibabel or SimpleITK, or of a path; returns a Volume unchanged.

        Parameters
        ----------
        image : image, path or Volume
            As from_nibabel, from_itk and load take it.

        Returns
        -------
        Volume
            The image with its grid.

        Raises
        ------
        Error
            If it is none of these, or as from_nibabel, from_itk and load.
        """
        if isinstance(image, Volume):
            return image
        if isinstance(image, (str, os.PathLike)):
            return Volume.load(image)
        kind = files.kind_of(image)
        if kind is None:
            raise Error(f"suture: Volume: expected an image of nibabel or SimpleITK, or a path, got a {type(image).__name__}. Pass "
                        "Volume(array, axes=..., spacing=...)")
        return Volume.from_nibabel(image) if kind == "nibabel" else Volume.from_itk(image)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the volume to a file atomically.

        Parameters
        ----------
        path : path
            The file, whose ending selects the format: .nii and .nii.gz are written by nibabel, .nrrd and .mha by SimpleITK. An
            existing file is replaced once the new one is complete.

        Raises
        ------
        Error
            If the ending is another, the file cannot be written, the voxels lie on a GPU, or the library that writes it is not
            installed.

        Examples
        --------
        >>> out = plan.inverse({"image": [prediction]}, interpolation="nearest")["image"]     # doctest: +SKIP
        >>> out[0].save("case_17_prediction.nii.gz")     # doctest: +SKIP
        """
        kind = "nibabel" if files.ending_of(Path(path), "suture: Volume.save").lower().startswith(".nii") else "SimpleITK"
        files.write_image(self.to_nibabel() if kind == "nibabel" else self.to_itk(), path, kind)

    @staticmethod
    def from_nibabel(image: Any) -> Volume:
        """Makes a Volume of an image of nibabel, with its affine, which is converted to millimeters if NIfTI has another unit.

        Parameters
        ----------
        image : nibabel image
            An image of three axes, or of four, the last of which is the channel.

        Returns
        -------
        Volume
            Axes "xyz". Voxels are float32 where the file scales them or has floats; unsigned types of 32 and 64 bits become
            signed, and other types stay as they are. Their byte order is that of this machine, whatever the file has.

        Raises
        ------
        Error
            If the image has another number of axes, voxels that are no numbers, whole numbers of 2^63 or more, or a unit that is none of
            length.
        """
        slope, inter = image.header.get_slope_inter() if hasattr(image.header, "get_slope_inter") else (None, None)
        scaled = (slope not in (None, 1.0)) or (inter not in (None, 0.0))
        data = files.readable(plain_numpy(np.asanyarray(image.dataobj), "suture: Volume"), "suture: Volume")
        if scaled or data.dtype.kind == "f":
            data = np.asarray(data, np.float32)
        if data.ndim == 4:
            data = np.moveaxis(data, -1, 0)
        if data.ndim not in (3, 4):
            raise Error(f"suture: Volume: an image of {data.ndim} axes is no volume")
        return Volume(data, axes="xyz", affine_ras=files.affine_in_mm(image, "suture: Volume"))

    def to_nibabel(self) -> Any:
        """Converts the volume to an image of nibabel.

        Returns
        -------
        nibabel.Nifti1Image
            Axes x, y, z as nibabel has them, then channels; the affine in RAS and millimeters. bool is stored as uint8,
            half floats as float32.

        Raises
        ------
        Error
            If the voxels lie on a GPU, or nibabel is not installed.
        """
        nibabel = files.library("nibabel", "nibabel", "suture: Volume.to_nibabel")
        data = self._in_order("xyz")
        if data.ndim == 4:
            data = np.moveaxis(data, 0, -1)
        image = nibabel.Nifti1Image(data, self.grid.affine_ras("xyz"), dtype=data.dtype)
        image.header.set_xyzt_units("mm")
        return image

    @staticmethod
    def from_itk(image: Any) -> Volume:
        """Makes a Volume of an image of SimpleITK, with its spacing, origin and direction.

        Parameters
        ----------
        image : SimpleITK.Image
            An image of three dimensions, of one component or more.

        Returns
        -------
        Volume
            Axes "zyx", as in GetArrayFromImage, with components as channels. Its voxels are a copy, since SimpleITK frees or
            moves those of the image. float64 becomes float32, and unsigned types of 32 and 64 bits become signed.

        Raises
        ------
        Error
            If the image does not have three dimensions, or voxels that are no numbers or whole numbers of 2^63 or more, or if
            SimpleITK is not installed.
        """
        itk = files.library("SimpleITK", "SimpleITK", "suture: Volume.from_itk")
        if image.GetDimension() != 3:
            raise Error(f"suture: Volume: an image of {image.GetDimension()} dimensions is no volume")
        data = files.readable(itk.GetArrayFromImage(image), "suture: Volume")
        if image.GetNumberOfComponentsPerPixel() > 1:
            data = np.moveaxis(data, -1, 0)
        direction = np.array(image.GetDirection()).reshape(3, 3)[::-1, ::-1]
        n = data.shape[-3:]
        grid = Grid(tuple(int(k) for k in n), tuple(image.GetSpacing()[::-1]),  # type: ignore[arg-type]
                    tuple(image.GetOrigin()[::-1]), tuple(float(v) for v in direction.ravel()))
        return Volume(data, axes="zyx", grid=grid)

    def to_itk(self) -> Any:
        """Converts the volume to an image of SimpleITK.

        Returns
        -------
        SimpleITK.Image
            An image of three dimensions, with spacing, origin and direction; channels are components. bool is stored as uint8,
            half floats as float32.

        Raises
        ------
        Error
            If the voxels lie on a GPU, or SimpleITK is not installed.
        """
        itk = files.library("SimpleITK", "SimpleITK", "suture: Volume.to_itk")
        data = self._in_order("zyx")
        channels = data.ndim == 4
        image = itk.GetImageFromArray(np.moveaxis(data, 0, -1) if channels else data, isVector=channels)
        image.SetSpacing([float(v) for v in self.grid.spacing[::-1]])
        image.SetOrigin([float(v) for v in self.grid.origin[::-1]])
        image.SetDirection([float(v) for v in np.array(self.grid.direction).reshape(3, 3)[::-1, ::-1].ravel()])
        return image

    def with_axes(self, axes: str) -> Volume:
        """Returns a view of the volume with its axes in another order; the grid is the same.

        Parameters
        ----------
        axes : {"zyx", "xyz", "yx", "xy"}
            The order, with the axes of the volume.

        Returns
        -------
        Volume
            The view.

        Raises
        ------
        Error
            If the volume has another number of axes, or its array cannot be transposed without a copy.
        """
        if sorted(axes) != sorted(self.axes):
            raise Error(f"suture: Volume: with_axes: expected {self.axes!r} or {self.axes[::-1]!r}, got {axes!r}")
        first = len(self.array.shape) - len(axes)
        order = [*range(first), *(first + self.axes.index(name) for name in axes)]
        turn = getattr(self.array, "permute", None) or getattr(self.array, "transpose", None)
        if turn is None:
            raise Error(f"suture: Volume: with_axes: expected an array of NumPy or torch, got {type(self.array).__name__}. Pass a NumPy "
                        "array")
        return self.of_array(turn(*order), axes=axes)

    def of_array(self, array: Any, axes: str | None = None) -> Volume:
        """Returns a Volume of other voxels on the same grid, whose spacing is known if this one's is.

        Parameters
        ----------
        array : array or Source
            The voxels.
        axes : str, optional
            Order of its axes, that of this Volume by default.

        Returns
        -------
        Volume
            The Volume.

        Raises
        ------
        Error
            If the voxels do not have the extents of the grid.
        """
        made = Volume(array, axes=axes or self.axes, grid=self.grid)
        made.placed = self.placed
        return made

    def _in_order(self, axes: str) -> np.ndarray:
        """Returns the voxels as a NumPy array with three axes in an order, after the channels if there are any, in a type that image
        files have."""
        data = files.in_native_order(as_numpy(self.array, "suture: Volume"))
        if data.dtype.kind == "b":
            data = data.astype(np.uint8)
        elif data.dtype.itemsize == 2 and data.dtype.kind not in "iu":
            data = data.astype(np.float32)
        own = self.axes
        if len(own) == 2:
            z_first = own[0] == "y"
            data = np.expand_dims(data, data.ndim - 2 if z_first else data.ndim)
            own = "zyx" if z_first else "xyz"
        first = data.ndim - 3
        return data.transpose([*range(first), *(first + own.index(name) for name in axes)])

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
