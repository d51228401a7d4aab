# SPDX-License-Identifier: Apache-2.0
"""This module reads and writes image files, NIfTI by nibabel and other formats by SimpleITK, as images of these libraries."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Error
from .slices import check_distances, check_straight, checked_extent
from .whole_file import whole_file

# Endings of the formats that are written.
WRITTEN = (".nii.gz", ".nii", ".nrrd", ".mha")
_NIBABEL = (".nii", ".nii.gz", ".mgz", ".mgh", ".hdr", ".img")
_SOP_CLASS = "0008|0016"  # data element that every image of DICOM has
_MILLIMETERS = {0: 1.0, 1: 1e3, 2: 1.0, 3: 1e-3}  # of the codes of NIfTI: unknown, meter, millimeter, micrometer


def library(name: str, package: str, what: str) -> Any:
    """Imports and returns an optional library.

    Raises
    ------
    Error
        If it is not installed; the message has the command that installs it.
    """
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise Error(f"{what}: expected {name} to be installed, got no such module. Run: pip install {package}") from None


def is_image(x: Any) -> bool:
    """Tests whether an object is a path, or an image of nibabel or SimpleITK."""
    return isinstance(x, (str, os.PathLike)) or kind_of(x) is not None


def kind_of(x: Any) -> str | None:
    """Returns "nibabel" or "SimpleITK" for an image of one of them, or of a derived class; None for anything else."""
    for each in type(x).__mro__:
        library_of, _, rest = each.__module__.partition(".")
        if library_of == "nibabel" and hasattr(x, "dataobj"):
            return "nibabel"
        if library_of == "SimpleITK" and each.__name__ == "Image":
            return "SimpleITK"
    return None


def read_image(path: str | os.PathLike[str], series: str | None = None) -> Any:
    """Reads a file, or a folder with a DICOM series, as an image of nibabel or SimpleITK.

    Parameters
    ----------
    path : path
        The file or folder.
    series : str, optional
        UID of the series, where a folder has several.

    Returns
    -------
    image
        An image of nibabel for NIfTI and the formats of FreeSurfer and Analyze, else of SimpleITK.

    Raises
    ------
    Error
        If it does not exist or cannot be read, the library that reads it is not installed, the slices of a series are not equally
        spaced, or a file of DICOM has fewer pixels than its header says, or is MONOCHROME1.
    """
    what, where = "suture: Volume.load", Path(path)
    if where.is_dir():
        return _dicom(where, series, what)
    if series is not None:
        raise Error(f"{what}: series: expected a folder with DICOM files, got {str(path)!r}. Leave series out")
    if not where.is_file():
        raise Error(f"{what}: path: expected a file or a folder, got {str(path)!r}, which is not there. Check the path, which is "
                    f"relative to {os.getcwd()}")
    try:
        if where.name.lower().endswith(_NIBABEL):
            return library("nibabel", "nibabel", what).load(str(where))
        image = library("SimpleITK", "SimpleITK", what).ReadImage(str(where))
        return _checked(image, [str(where)], what) if image.HasMetaDataKey(_SOP_CLASS) else image
    except Error:
        raise
    except Exception as problem:  # whatever a reader raises
        raise Error(f"{what}: path: expected an image that nibabel or SimpleITK reads, got {str(path)!r}: "
                    f"{_reason(problem)}") from None


def _reason(problem: Exception) -> str:
    """Returns the last line of a reader's message, which says what is wrong; the lines before it say where in the reader's code."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return (lines[-1] if lines else type(problem).__name__)[:200]


def _dicom(folder: Path, series: str | None, what: str) -> Any:
    """Reads the image of a DICOM series in a folder."""
    itk = library("SimpleITK", "SimpleITK", what)
    found = list(itk.ImageSeriesReader.GetGDCMSeriesIDs(str(folder)))
    if not found:
        raise Error(f"{what}: path: expected a folder with a DICOM series, got {str(folder)!r}, which has none. Pass the folder that "
                    "holds the files themselves")
    if series is None and len(found) > 1:
        raise Error(f"{what}: series: expected the UID of one of {len(found)} series in {str(folder)!r}, got none. Pass series= one of "
                    f"{', '.join(found[:8])}{', ...' if len(found) > 8 else ''}")
    if series is not None and series not in found:
        raise Error(f"{what}: series: expected one of {', '.join(found[:8])}{', ...' if len(found) > 8 else ''}, got {series!r}")
    files = itk.ImageSeriesReader.GetGDCMSeriesFileNames(str(folder), found[0] if series is None else series)
    places = [_position(itk, f) for f in files]
    origins, normal = np.array([origin for origin, _ in places]), places[0][1]
    check_distances(origins @ normal, files, what)
    check_straight(origins, normal, files, what)
    reader = itk.ImageSeriesReader()
    reader.SetFileNames(files)
    try:
        return _checked(reader.Execute(), files, what)
    except RuntimeError as problem:
        raise Error(f"{what}: path: expected slices that make one volume, got those of {str(folder)!r}: {_reason(problem)}") from None


def _checked(image: Any, files: Sequence[str], what: str) -> Any:
    """Returns the image of files of DICOM after a check of their pixels. A lone slice gets its extent as spacing, which SimpleITK
    leaves at 1."""
    extents = [checked_extent(file, f"{what}: path") for file in files]
    if len(files) == 1 and image.GetDimension() == 3 and image.GetSize()[2] == 1 and extents[0] is not None:
        image.SetSpacing((*image.GetSpacing()[:2], extents[0]))
    return image


def _position(itk: Any, file: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the origin of a slice and the normal of its plane, LPS."""
    reader = itk.ImageFileReader()
    reader.SetFileName(file)
    reader.ReadImageInformation()
    direction = np.array(reader.GetDirection()).reshape(reader.GetDimension(), -1)[:3, :3]
    return np.array(reader.GetOrigin()[:3]), np.cross(direction[:, 0], direction[:, 1])


def affine_in_mm(image: Any, what: str) -> Any:
    """Returns the affine of an image of nibabel in millimeters: NIfTI may have it in meters or micrometers, as xyzt_units says.

    Parameters
    ----------
    image : nibabel image
        The image. The unit of other formats, and one that NIfTI leaves unknown, is the millimeter.
    what : str
        Text that the message begins with.

    Returns
    -------
    numpy.ndarray or None
        The 4 x 4 matrix; None if the image has none.

    Raises
    ------
    Error
        If the unit is none of length.
    """
    try:
        units = int(image.header["xyzt_units"])
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        units = 0
    unit = _MILLIMETERS.get(units & 7)
    if unit is None:
        raise Error(f"{what}: expected a unit of length in xyzt_units, got {units & 7}. Write 2, for millimeters, into the file if they are")
    if image.affine is None or unit == 1:
        return image.affine
    affine = np.array(image.affine, np.float64)
    affine[:3] *= unit
    return affine


def write_image(image: Any, path: str | os.PathLike[str], kind: str) -> None:
    """Writes an image of nibabel or SimpleITK atomically, to a temporary file in the same folder that is renamed.

    Parameters
    ----------
    image : image
        Image of the library `kind`.
    path : path
        The file; its ending is one of WRITTEN.
    kind : {"nibabel", "SimpleITK"}
        The library that writes it.

    Raises
    ------
    Error
        If it cannot be written. An existing file is then unchanged.
    """
    what, where = "suture: Volume.save", Path(path)
    ending = ending_of(where, what)
    if not where.parent.is_dir():
        raise Error(f"{what}: path: expected a file in a folder that exists, got {str(path)!r}. Make the folder first")
    try:
        with contextlib.ExitStack() as stack:
            try:
                beside = stack.enter_context(whole_file(where, ending))
            except OSError as problem:
                raise Error(f"{what}: path: expected a folder that can be written to, got {str(where.parent)!r}: {problem.strerror}") from None
            if kind == "nibabel":
                image.to_filename(beside)
            else:
                library("SimpleITK", "SimpleITK", what).WriteImage(image, beside, True)
    except (OSError, RuntimeError) as problem:
        raise Error(f"{what}: path: expected a file that can be written, got {str(path)!r}: {_reason(problem)}") from None


def ending_of(path: Path, what: str) -> str:
    """Returns the ending of the name of a file to write, and refuses other formats."""
    for ending in WRITTEN:
        if path.name.lower().endswith(ending):
            return path.name[-len(ending):]
    raise Error(f"{what}: path: expected a name that ends with {', '.join(WRITTEN)}, got {str(path)!r}")


def readable(data: np.ndarray, what: str) -> np.ndarray:
    """Converts voxels of a file to a type that suture reads: float64 becomes float32, unsigned types of 32 and 64 bits become
    signed, and elements have the byte order of this machine.

    Raises
    ------
    Error
        If they are no numbers, or ones that the other type does not hold.
    """
    if data.dtype.kind == "f" and data.dtype.itemsize > 4:
        return float32_of(data, what)
    if data.dtype.kind == "u" and data.dtype.itemsize > 2:
        most = int(data.max(initial=0))
        if most < 1 << 31:
            return data.astype(np.int32)
        if most < 1 << 63:
            return data.astype(np.int64)
        raise Error(f"{what}: expected whole numbers below 2^63, got {most}. Renumber the labels")
    if data.dtype.kind not in "biuf":
        raise Error(f"{what}: expected voxels that are numbers, got {data.dtype}. Store each component as a channel")
    return in_native_order(data)


def float32_of(values: np.ndarray, what: str) -> np.ndarray:
    """Rounds floating-point numbers to float32.

    Raises
    ------
    Error
        If a finite one would become infinite.
    """
    with np.errstate(over="ignore"):
        made: np.ndarray = values.astype(np.float32)
    lost = np.isinf(made)
    if lost.any() and (lost := lost & np.isfinite(values)).any():
        raise Error(f"{what}: expected values up to 3.4e38, which float32 holds, got {values[lost][0]:g}. Rescale them, or mark voxels without a "
                    "value by NaN")
    return made


def in_native_order(data: np.ndarray) -> np.ndarray:
    """Returns an array in the byte order of this machine, the same one if it has it. FreeSurfer's files are big-endian."""
    return data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("="))
