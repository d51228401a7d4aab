# SPDX-License-Identifier: Apache-2.0
"""This module reads DICOM: series of slices by SimpleITK (GDCM), and enhanced multi-frame files by highdicom."""
from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.slices import check_distances, check_straight, checked_extent
from ..arrays.volume import Grid
from ..errors import Error
from . import scans
from .arrays import sentence
from .task import Task, printable

_TAGS = ["SOPClassUID", "SOPInstanceUID", "SeriesInstanceUID", "ImageOrientationPatient", "ImagePositionPatient",
         "PixelSpacing", "Rows", "Columns",
         "RescaleSlope", "RescaleIntercept", "NumberOfFrames", "SamplesPerPixel", "Modality"]
_PLACE = ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing", "Rows", "Columns")
_NO_IMAGE = ("SEG", "RTSTRUCT", "SR", "PR", "KO", "REG", "RTPLAN", "RTDOSE", "DOC")
_DIRECTORY = "1.2.840.10008.1.3.10"  # SOP class of DICOMDIR


def _header(path: str) -> Any:
    """Reads the data elements of a file on the position and the scaling of its pixels."""
    import pydicom

    return pydicom.dcmread(path, stop_before_pixels=True, specific_tags=_TAGS)


def _is_cut(header: Any) -> bool:
    """Tests whether a file ends within its header: it lacks what every file of its kind has, which pydicom reads without an error."""
    if header.file_meta.get("MediaStorageSOPClassUID") == _DIRECTORY:
        return False
    return "Rows" not in header and ("SOPClassUID" not in header or str(header.SOPClassUID.name).endswith("Image Storage"))


def series(paths: Sequence[Path], base: Path, failed: dict[str, str]) -> list[Task]:
    """Returns the cases among DICOM files: one for each series, and one for each enhanced file.

    A case is named after the folder of its files, relative to the source, if no other series is in that folder, else by its
    SeriesInstanceUID. Files without an image, such as DICOMDIR and structured reports, are skipped. A file that is cut off or cannot
    be read is entered in `failed`, and so is the series that it belongs to: by its SeriesInstanceUID, or if all files of its folder
    are of one series.
    """
    slices: dict[str, list[Path]] = defaultdict(list)
    multi: dict[str, list[Path]] = defaultdict(list)
    broken: list[tuple[Path, str | None]] = []
    for path in paths:
        try:
            header = _header(str(path))
            if _is_cut(header):
                broken.append((path, str(header.SeriesInstanceUID) if "SeriesInstanceUID" in header else None))
                raise ValueError("a header that is cut off")
            if str(header.get("Modality", "")) in _NO_IMAGE or "Rows" not in header:
                continue
            uid = str(header.SeriesInstanceUID)
            (multi if int(header.get("NumberOfFrames") or 1) > 1 else slices)[uid].append(path)
        except Exception as problem:  # pydicom raises errors of many kinds on what is no DICOM
            if not broken or broken[-1][0] != path:
                broken.append((path, None))
            shown = printable(os.path.relpath(path, base))
            failed[shown] = f"suture: store: {shown}: expected a readable DICOM file, got {sentence(problem)}. Copy it again from where it came"
    found = [(uid, "series", group) for uid, group in slices.items()]
    found += [(f"{uid}.{k}" if len(group) > 1 else uid, "enhanced", [path])
              for uid, group in multi.items() for k, path in enumerate(sorted(group))]
    folders = {uid: {path.parent for path in group} for uid, _, group in found}
    tasks = []
    for uid, kind, group in found:
        folder = next(iter(folders[uid]))
        alone = len(folders[uid]) == 1 and folder != base and sum(folder in other for other in folders.values()) == 1
        name = "_".join(folder.relative_to(base).parts) if alone else uid
        lost = next((path for path, own in broken if own == uid or (own is None and path.parent in folders[uid]
                                                                    and sum(path.parent in other for other in folders.values()) == 1)), None)
        if lost is not None:
            failed[name] = (f"suture: store: case {name!r}: expected all files of its series, but {printable(os.path.relpath(lost, base))} cannot "
                            "be read. Copy it again from where it came, or remove it")
            continue
        tasks.append(Task(name, kind, tuple(sorted(map(str, group)))))
    return tasks


def read_series(paths: Sequence[str], what: str) -> scans.Scan:
    """Reads the slices of a series as a volume.

    Raises
    ------
    Error
        If they are not one volume: if orientations, extents, spacings or slopes differ, if they are unevenly spaced, if two are at one
        position, or if one lies aside, as with a tilted gantry; if one has fewer pixels than its header says, or is MONOCHROME1; or if
        one alone says neither its thickness nor the distance to others.
    """
    import SimpleITK

    headers = []
    for path in paths:
        try:
            h = _header(path)
            lacking = [tag for tag in _PLACE if tag not in h]
            if lacking:
                raise ValueError(f"no {lacking[0]}")
            headers.append((path, np.array(h.ImageOrientationPatient, float), np.array(h.ImagePositionPatient, float),
                            tuple(map(float, h.PixelSpacing)),
                            (int(h.Rows), int(h.Columns)), float(h.get("RescaleSlope") or 1),
                            float(h.get("RescaleIntercept") or 0)))
        except (AttributeError, TypeError, ValueError) as problem:
            raise Error(f"{what}: expected a slice with its place in {os.path.basename(path)}, got {sentence(problem)}. "
                        "Leave out what is no slice") from None
        extent = checked_extent(path, what)
    orientation = headers[0][1]
    for path, own, _, spacing, shape, slope, intercept in headers:
        name = os.path.basename(path)
        if np.abs(own - orientation).max() > 1e-4:
            raise Error(f"{what}: expected one orientation, got {_listed(orientation)} and, in {name}, {_listed(own)}. Put them "
                        "into series of their own")
        if shape != headers[0][4]:
            raise Error(f"{what}: expected slices of {headers[0][4]}, got {shape} in {name}. Put them into series of their own")
        if np.abs(np.subtract(spacing, headers[0][3])).max() > 1e-4 * min(headers[0][3]):
            raise Error(f"{what}: expected the pixel spacing {headers[0][3]}, got {spacing} in {name}. Put them into series "
                        "of their own")
        if (slope, intercept) != headers[0][5:]:
            raise Error(f"{what}: expected one slope and intercept, got {headers[0][5:]} and, in {name}, "
                        f"{(slope, intercept)}. Convert the series to one of values first, to NIfTI in float32 say")
    normal = np.cross(orientation[:3], orientation[3:])
    places = np.array([h[2] @ normal for h in headers])
    order = np.argsort(places, kind="stable")
    names = [os.path.basename(headers[i][0]) for i in order]
    check_distances(places[order], names, what)
    check_straight(np.array([headers[i][2] for i in order]), normal, names, what)
    try:
        reader = SimpleITK.ImageSeriesReader()
        reader.SetFileNames([headers[i][0] for i in order])
        image = reader.Execute()
    except RuntimeError as problem:
        raise Error(f"{what}: expected a readable DICOM series, got {scans.itk_sentence(problem)}. Copy it again from where "
                    "it came") from None
    scan = scans.of_itk(image, what)
    if scan.data.ndim == 4:
        raise Error(f"{what}: expected slices of one component, got {len(scan.data)}. Color images are no volume")
    steps = np.diff(places[order])
    if not len(steps):
        if extent is None:
            raise Error(f"{what}: expected SliceThickness or SpacingBetweenSlices in {names[0]}, the only slice, got neither. Convert it to "
                        "NIfTI, with its thickness as spacing")
        steps = np.array([extent])
    if len(steps):  # the mean distance of all slices; SimpleITK uses that of the first two
        spacing = (float(steps.mean()) if abs(steps.mean() - scan.grid.spacing[0]) > 1e-3 * steps.mean()
                   else scan.grid.spacing[0], *scan.grid.spacing[1:])
        scan.grid = Grid(scan.grid.extents, spacing, scan.grid.origin, scan.grid.direction)
        scan.affine = scan.grid.affine_ras("xyz")
    return _stored(scan, headers[0][5], headers[0][6], what)


def _listed(orientation: np.ndarray) -> str:
    return "(" + ", ".join(f"{v:g}" for v in orientation) + ")"


def _stored(scan: scans.Scan, slope: float, intercept: float, what: str) -> scans.Scan:
    """Undoes the slope and intercept that SimpleITK has applied, if that gives whole numbers exactly, and keeps both."""
    if scan.data.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            raw = np.rint((scan.data.astype(np.float64) - intercept) / slope)
        if np.isfinite(raw).all() and np.abs(raw).max() < 2 ** 31 and np.array_equal((raw * slope + intercept).astype(scan.data.dtype), scan.data):
            scan.data = raw.astype(np.int64)
            return scans.kept(scan, slope, intercept, what)
        return scans.kept(scan, 1, 0, what)
    scan.source = {"slope": slope, "intercept": intercept}
    scan.data = scan.data.astype(np.int64)
    return scans.kept(scan, 1, 0, what)


def read_enhanced(path: str, what: str) -> scans.Scan:
    """Reads the frames of an enhanced multi-frame file as a volume.

    Raises
    ------
    Error
        If its frames are not one volume.
    """
    try:
        import highdicom
    except ImportError:
        raise Error(f"{what}: expected highdicom to be installed. pip install 'suture[store]'") from None
    try:
        image: Any = highdicom.imread(path)
        slopes = _slopes(image)
        stored = np.dtype(f"{'int' if int(image.PixelRepresentation) else 'uint'}{int(image.BitsAllocated)}")
        volume: Any = image.get_volume(dtype=stored, apply_real_world_transform=False, apply_modality_transform=False,
                                       apply_voi_transform=False, apply_presentation_lut=False, apply_palette_color_lut=False,
                                       apply_icc_profile=False)
    except Exception as problem:  # highdicom and pydicom raise errors of many kinds
        raise Error(f"{what}: expected an enhanced file whose frames are one volume, got {sentence(problem)}. Export it as "
                    "series of slices") from None
    if len(slopes) > 1:
        raise Error(f"{what}: expected one slope and intercept, got {sorted(slopes)[:3]} in the frames of "
                    f"{os.path.basename(path)}. Convert it to one of values first, to NIfTI in float32 say")
    array = np.asarray(volume.array)
    if array.ndim != 3:
        raise Error(f"{what}: expected frames of one component, got the shape {array.shape}. Color images are no volume")
    affine = np.array(volume.affine, np.float64)  # from (frame, row, column) to LPS
    affine[:2] *= -1
    grid = Grid.from_affine_ras(affine, array.shape, "zyx")
    scan = scans.Scan(array, grid, affine[:, [2, 1, 0, 3]])
    return scans.kept(scan, *next(iter(slopes), (1.0, 0.0)), what)


def _slopes(image: Any) -> set[tuple[float, float]]:
    """Returns the pairs of slope and intercept of the frames of an enhanced file."""
    groups = [*image.get("SharedFunctionalGroupsSequence", []), *image.get("PerFrameFunctionalGroupsSequence", [])]
    found = {(float(t.RescaleSlope), float(t.RescaleIntercept)) for g in groups
             for t in g.get("PixelValueTransformationSequence", [])}
    if not found and "RescaleSlope" in image:
        found = {(float(image.RescaleSlope), float(image.RescaleIntercept))}
    return found
