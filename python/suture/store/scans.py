# SPDX-License-Identifier: Apache-2.0
"""This module reads volumes from files, NIfTI by nibabel and other formats by SimpleITK, in the element types of stores."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.files import affine_in_mm, float32_of
from ..arrays.volume import Grid, Volume
from ..errors import Error
from .arrays import DTYPES, scaled, sentence

NIFTI = (".nii.gz", ".nii")
ITK = (".nrrd", ".nhdr", ".mha", ".mhd")
_DATA = re.compile(r"(?:ElementDataFile\s*=|data ?file:)\s*(.+)", re.IGNORECASE)  # where the voxels of a header lie
_NUMBERED = re.compile(r"([^%\s]*%0?\d?[du][^%\s]*)\s+(-?\d{1,9})\s+(-?\d{1,9})\s+(-?\d{1,9})(?:\s.*)?")  # pattern, first, last, step
_MOST_PARTS = 1 << 16


@dataclass
class Scan:
    """A volume as a store keeps it.

    data      voxels (z, y, x) or (channel, z, y, x), of a type in DTYPES
    grid      position of the voxels in space
    affine    4 x 4 matrix of the source, from (x, y, z) indices to RAS millimeters
    scaling   (slope, intercept) to apply to whole numbers; None: values are as stored
    source    element type, slope and intercept of the source, for its record
    """

    data: np.ndarray
    grid: Grid
    affine: np.ndarray
    scaling: tuple[float, float] | None = None
    source: dict[str, Any] = field(default_factory=dict)


def stem(name: str) -> str:
    """Returns the name of a file without the ending of its format."""
    return next((name[:-len(e)] for e in (*NIFTI, *ITK) if name.lower().endswith(e)), name)


def is_scan(name: str) -> bool:
    """Tests whether a file's ending is that of a volume in one file."""
    return name.lower().endswith((*NIFTI, *ITK))


def parts(path: str) -> list[str]:
    """Returns the files of a volume: the file itself, and those that the header of MetaImage or NRRD names for its voxels."""
    if not path.lower().endswith((".mhd", ".nhdr")):
        return [path]
    with open(path, "rb") as file:
        lines = [line.strip() for line in file.read(1 << 20).decode("utf-8", "replace").splitlines()]
    found: list[str] = []
    for k, line in enumerate(lines):
        match = _DATA.match(line)
        if match is None:
            continue
        if match[1].split()[:1] == ["LIST"]:
            found = [name for name in lines[k + 1:] if name]
        elif (numbered := _NUMBERED.fullmatch(match[1].strip())) is not None and int(numbered[4]):
            first, last, step = (int(numbered[i]) for i in (2, 3, 4))
            found = [numbered[1] % i for i in range(first, last + (1 if step > 0 else -1), step)[:_MOST_PARTS]]
        else:
            found = [match[1].strip()]
        break
    folder = os.path.dirname(path)
    return [path, *(file for file in (os.path.join(folder, name) for name in found) if os.path.isfile(file))]


def read(path: str | os.PathLike[str], what: str) -> Scan:
    """Reads the volume of a file.

    Raises
    ------
    Error
        If the file cannot be read, or is no volume.
    """
    name = os.fspath(path)
    if not name.lower().endswith(NIFTI):
        return _itk(name, what)
    import nibabel

    try:
        image: Any = nibabel.load(name, mmap=False)  # a mapped file that is cut short ends the process
        proxy = image.dataobj
        raw, slope, intercept = np.asanyarray(proxy.get_unscaled()), float(proxy.slope), float(proxy.inter)
    except Exception as problem:  # nibabel raises errors of its own, of zlib, gzip and NumPy
        raise Error(f"{what}: expected a readable NIfTI file at {name}, got {sentence(problem)}. Copy it again from where it "
                    "came") from None
    if raw.ndim == 4:
        raw = raw[..., 0] if raw.shape[3] == 1 else np.moveaxis(raw, -1, 0)
    if raw.ndim not in (3, 4) or 0 in raw.shape:
        raise Error(f"{what}: expected a volume of 3 axes, or of 4 with channels, got the extents {image.shape} in {name}")
    affine = affine_in_mm(image, f"{what}: {name}")
    if affine is None or not np.isfinite(affine).all():
        raise Error(f"{what}: expected an affine of finite numbers, got {affine} in {name}. Write one into the file")
    try:
        grid = Grid.from_affine_ras(affine, raw.shape[-3:], "xyz")
    except Error as problem:
        raise Error(f"{what}: {str(problem).removeprefix('suture: Volume: ')} in {name}. Write one into the file") from None
    data = raw.transpose(*range(raw.ndim - 3), *reversed(range(raw.ndim - 3, raw.ndim)))  # (x, y, z) lie as (z, y, x) on the disk
    return kept(Scan(data, grid, np.asarray(affine, np.float64)), slope, intercept, f"{what}: {name}")


def _itk(name: str, what: str) -> Scan:
    import SimpleITK

    try:
        image = SimpleITK.ReadImage(name)
    except RuntimeError as problem:
        raise Error(f"{what}: expected a readable volume at {name}, got {itk_sentence(problem)}. Copy it again from where it "
                    "came") from None
    return kept(of_itk(image, f"{what}: {name}"), 1, 0, f"{what}: {name}")


def itk_sentence(problem: BaseException) -> str:
    """Returns the last line of an exception of ITK, which says what is wrong."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[-1].rpartition("ERROR: ")[2][:300] if lines else "an unknown error"


def of_itk(image: Any, what: str) -> Scan:
    """Returns the volume of an image of SimpleITK."""
    if image.GetDimension() != 3:
        raise Error(f"{what}: expected a volume of 3 axes, got {image.GetDimension()}")
    volume = Volume.from_itk(image)
    return Scan(np.asarray(volume.array), volume.grid, volume.grid.affine_ras("xyz"))


def kept(scan: Scan, slope: float, intercept: float, what: str) -> Scan:
    """Converts a scan to a type in DTYPES.

    Whole numbers stay whole: with a slope of 1, a whole intercept (as of Hounsfield units) is added; any other slope and intercept
    become `scaling`. Float values are scaled, and float64 becomes float32.
    """
    data = scan.data
    if data.dtype.names is not None or data.dtype.kind not in "biuf":
        raise Error(f"{what}: expected numbers, got elements of the type {data.dtype}")
    data = data.astype(data.dtype.newbyteorder("="), copy=False)
    slope, intercept = (1.0 if not np.isfinite(slope) or slope == 0 else slope), (0.0 if not np.isfinite(intercept)
                                                                                  else intercept)
    source: dict[str, Any] = {"dtype": data.dtype.name, "slope": slope, "intercept": intercept}
    scaling = None
    if data.dtype.kind == "f":
        if (slope, intercept) != (1, 0):
            with np.errstate(over="ignore", invalid="ignore"):
                data = float32_of(data * np.float64(slope) + np.float64(intercept), what)
        elif data.dtype.itemsize > 4:
            data = float32_of(data, what)
    else:
        if slope == 1 and intercept != 0 and float(intercept).is_integer() and abs(intercept) < 2 ** 31:
            low, high = int(data.min()) + int(intercept), int(data.max()) + int(intercept)
            if low < -(1 << 31) or high >= 1 << 31:  # int64 may not hold them either
                raise _too_wide(low, high, what)
            data = data.astype(np.int64) + int(intercept)
        elif (slope, intercept) != (1, 0):
            scaling = slope, intercept
            float32_of(np.array([int(data.min()) * slope + intercept, int(data.max()) * slope + intercept]), what)  # as they will be read
        data = narrowed(data, what, str(source["dtype"]))
    return Scan(np.ascontiguousarray(data), scan.grid, scan.affine, scaling, {**source, **scan.source})


def narrowed(data: np.ndarray, what: str, first: str = "", types: Sequence[str] = ("int16", "uint16", "int32")) -> np.ndarray:
    """Converts whole numbers of 32 or 64 bits to the type `first`, or else to the first of `types` that represents them all."""
    if data.dtype.kind == "b":
        return data.astype(np.uint8)
    if data.dtype.name in DTYPES and data.dtype.itemsize < 4:
        return data
    low, high = int(data.min()), int(data.max())
    for name in (first, *types) if first in DTYPES else types:
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return data.astype(name, copy=False)
    raise _too_wide(low, high, what)


def _too_wide(low: int, high: int, what: str) -> Error:
    return Error(f"{what}: expected whole numbers that 32 bits hold, got {low} to {high}")


def labels(path: str | os.PathLike[str], image: Scan, what: str) -> Scan:
    """Reads the label map of a scan, on its grid.

    Raises
    ------
    Error
        If it cannot be read, has values that are no whole numbers, or another grid than the scan.
    """
    scan = read(path, what)
    if scan.scaling is not None:
        scan.data, scan.scaling = scaled(scan.data, *scan.scaling), None
    if scan.data.ndim != 3:
        raise Error(f"{what}: labels: expected one channel, got the shape {scan.data.shape}. Write one label map a case")
    check_place(scan.grid, image.grid, f"{what}: labels")
    data = scan.data
    if data.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = np.rint(data).astype(np.int64)
        if not np.array_equal(whole, data):
            raise Error(f"{what}: labels: expected whole numbers, got others in {os.fspath(path)}. A soft map is an image")
        data = whole
    scan.data = np.ascontiguousarray(narrowed(data.astype(np.int64), f"{what}: labels", types=("uint8", "int16", "int32")))
    return scan


def check_place(given: Grid, grid: Grid, what: str) -> None:
    """Refuses a grid that differs from that of the image: in extents, or by more than a hundredth of a voxel at a corner."""
    turn = np.linalg.solve(grid.affine_ras("xyz")[:3, :3], given.affine_ras("xyz")[:3, :3])
    steps = np.abs(np.round(turn))
    if np.abs(turn - np.round(turn)).max() < .01 and np.array_equal(steps @ steps.T, np.eye(3)) and not np.allclose(turn, np.eye(3), atol=.01):
        advice = "Their axes have other directions: turn them by as_reoriented of nibabel, or match the right files"
    else:
        advice = "Resample them to the grid of the image, or match the right files"
    if given.extents != grid.extents:
        raise Error(f"{what}: expected the extents {grid.extents} of the image along (z, y, x), got {given.extents}. {advice}")
    corners = np.array([[x, y, z, 1] for z in (0, grid.extents[0] - 1) for y in (0, grid.extents[1] - 1)
                        for x in (0, grid.extents[2] - 1)])
    away = np.abs(corners @ (given.affine_ras("xyz") - grid.affine_ras("xyz")).T).max()
    if not away <= 0.01 * min(grid.spacing):
        raise Error(f"{what}: expected the affine of the image, got one that lies {away:.4g} mm away at a corner. {advice}")


def channels(paths: Sequence[str], what: str) -> Scan:
    """Reads a volume with a file for each channel, all on one grid."""
    scans = [read(path, what) for path in paths]
    first = scans[0]
    if len(scans) == 1:
        return first
    for path, scan in zip(paths, scans):
        if scan.data.ndim != 3:
            raise Error(f"{what}: expected one channel a file, got the shape {scan.data.shape} in {Path(path).name}")
        check_place(scan.grid, first.grid, f"{what}: channel {Path(path).name}")
    if len({scan.scaling for scan in scans}) > 1:
        data = np.stack([scaled(s.data, *s.scaling) if s.scaling else s.data.astype(np.float32) for s in scans])
        return Scan(data, first.grid, first.affine, None, first.source)
    dtype = np.result_type(*(scan.data.dtype for scan in scans))
    if dtype.name not in DTYPES:
        dtype = np.dtype(np.float32)
    return Scan(np.stack([scan.data.astype(dtype, copy=False) for scan in scans]), first.grid, first.affine, first.scaling,
                first.source)
