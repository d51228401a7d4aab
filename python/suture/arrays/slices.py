# SPDX-License-Identifier: Apache-2.0
"""This module checks the slices of DICOM files, which SimpleITK reads: their pixels, distances and places."""
from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import Error

_TAGS = ["PhotometricInterpretation", "Rows", "Columns", "BitsAllocated", "NumberOfFrames", "SpacingBetweenSlices", "SliceThickness", "PixelData"]
_EVEN = 1e-2  # largest deviation of the distance of two slices from the median distance, as a share of it


def checked_extent(path: str, what: str) -> float | None:
    """Checks the pixels of a file, and returns its extent across the plane of a slice.

    A file with fewer pixels than its header says is refused, since SimpleITK leaves the other voxels uninitialized, and so is
    MONOCHROME1, which SimpleITK inverts although slope and intercept are those of the stored values. A codec finds compressed pixels
    that are too few.

    Parameters
    ----------
    path : str
        The file.
    what : str
        Text that the message begins with.

    Returns
    -------
    float or None
        Millimeters, which a lone slice takes as spacing, as in dcm2niix: SpacingBetweenSlices, else SliceThickness; None if the file
        has neither.

    Raises
    ------
    Error
        If the file is refused, or pydicom is not installed.
    """
    try:
        import pydicom
    except ImportError:
        raise Error(f"{what}: expected pydicom to be installed, got no such module. Run: pip install pydicom") from None
    name = os.path.basename(path)
    try:
        header: Any = pydicom.dcmread(path, specific_tags=_TAGS)
        stored = header.get("PixelData") or b""
        bits = math.prod(int(header.get(tag) or 0) for tag in ("Rows", "Columns", "BitsAllocated")) * int(header.get("NumberOfFrames") or 1)
        expected = 1 if stored and header["PixelData"].is_undefined_length else max(1, (bits + 7) // 8)  # undefined if compressed
        extents = [float(header.get(tag) or 0) for tag in ("SpacingBetweenSlices", "SliceThickness")]
    except Exception as problem:  # pydicom raises errors of many kinds
        raise Error(f"{what}: expected readable pixels in {name}, got {problem}. Copy it again from where it came") from None
    if len(stored) < expected:
        raise Error(f"{what}: expected {bits // 8 or 'some'} bytes of pixels in {name}, got {len(stored)}. Copy it again from where it came")
    if str(header.get("PhotometricInterpretation", "")).strip() == "MONOCHROME1":
        raise Error(f"{what}: expected MONOCHROME2, got MONOCHROME1 in {name}, whose values SimpleITK inverts. Convert it to NIfTI first, with "
                    "dcm2niix, which keeps them")
    return next((extent for extent in extents if math.isfinite(extent) and extent > 0), None)


def check_distances(along: np.ndarray, files: Sequence[str], what: str) -> None:
    """Refuses slices that are not evenly spaced.

    Parameters
    ----------
    along : numpy.ndarray
        Place of each slice along their normal in millimeters, ascending.
    files : sequence of str
        The file of each slice.
    what : str
        Text that the message begins with.

    Raises
    ------
    Error
        If two are at one place, or a distance differs from the others, as where a slice is missing.
    """
    if len(along) < 2:
        return
    names, steps = [os.path.basename(file) for file in files], np.diff(along)
    step = float(np.median(steps))
    if step < 1e-6 or steps.min() < 1e-3 * step:
        k = int(np.argmin(steps))
        raise Error(f"{what}: expected one slice at a place, got {names[k]} and {names[k + 1]} at {along[k]:.3f} mm. Put "
                    "phases into series of their own")
    if (np.abs(steps - step) > max(_EVEN * step, 1e-3)).any():
        k = int(np.argmax(np.abs(steps - step)))
        gap = steps[k] / step
        missing = f", as where {round(gap) - 1} of them {'are' if round(gap) > 2 else 'is'} missing" if abs(gap - round(gap)) < .05 and gap > 1.5 else ""
        raise Error(f"{what}: expected slices {step:.3f} mm apart, got {steps[k]:.3f} mm between {names[k]} and "
                    f"{names[k + 1]}{missing}. Export the series again, or resample it to even slices")


def check_straight(origins: np.ndarray, normal: np.ndarray, files: Sequence[str], what: str) -> None:
    """Refuses evenly spaced slices that do not lie straight behind each other, as those of a tilted gantry, or one that was moved.

    Parameters
    ----------
    origins : numpy.ndarray
        Position of each slice, (slice, axis), in their order.
    normal : numpy.ndarray
        Normal of their planes.
    files : sequence of str
        The file of each slice.
    what : str
        Text that the message begins with.

    Raises
    ------
    Error
        If a slice lies further aside than the noise of positions in files explains.
    """
    if len(origins) < 2:
        return
    along = (origins - origins[0]) @ normal
    aside = np.linalg.norm(origins - origins[0] - np.outer(along, normal), axis=1)
    k, step = int(np.argmax(aside)), float(np.median(np.diff(along)))
    if aside[k] > max(_EVEN * abs(step), 1e-2) * len(origins) ** .5:
        raise Error(f"{what}: expected slices that lie straight behind each other, got {os.path.basename(files[k])} {aside[k]:.4g} mm aside, as a "
                    "tilted gantry leaves them. Correct the tilt first, with dcm2niix say")
