# SPDX-License-Identifier: Apache-2.0
"""This module reads the levels and pixels of slides by OpenSlide and tifffile."""
from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from ..errors import Error
from .arrays import sentence
from .settings import NEAR

_ENDINGS = (".svs", ".ndpi", ".scn", ".mrxs", ".vms", ".vmu", ".bif", ".svslide", ".tif", ".tiff", ".btf", ".qptiff", ".zvi",
            ".czi")
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_COARSEST = 20.0  # micrometers per pixel of a slide; the 72 to 1200 dots per inch of screens and print are more, those of scanners below 10
BLOCK = 1024  # pixels that are reduced at once


def is_slide(path: Path, head: bytes) -> bool:
    """Tests whether OpenSlide or tifffile may be able to read a file."""
    return head[:4] in _TIFF or path.suffix.lower() in _ENDINGS


@dataclass
class Pyramid:
    """An open slide.

    mpp      micrometers per pixel of level 0, along (y, x)
    extents  (height, width) of each level
    scales   pixels of level 0 along one pixel of each level
    region   region(level, y, x, height, width) returns pixels of a level, uint8 (y, x, 3)
    """

    mpp: tuple[float, float]
    extents: list[tuple[int, int]]
    scales: list[float]
    region: Callable[[int, int, int, int, int], np.ndarray]


@contextlib.contextmanager
def pyramid(path: str, what: str, assume_mpp: float | None = None) -> Iterator[Pyramid]:
    """Opens a slide.

    Raises
    ------
    Error
        If it cannot be read, is no slide, or does not state its resolution.
    """
    try:
        import openslide
    except ImportError:
        raise Error(f"{what}: expected openslide-python and openslide-bin to be installed. pip install 'suture[store]'") from None
    try:
        slide = openslide.OpenSlide(path) if openslide.OpenSlide.detect_format(path) else None
    except openslide.OpenSlideError as problem:
        raise Error(f"{what}: expected a readable slide at {path}, got {sentence(problem)}. Copy it again from where it came") from None
    if slide is None:
        yield _tiff(path, what, assume_mpp)
        return
    with slide:
        known = slide.properties
        if known.get("openslide.vendor") == "generic-tiff":
            _check_bits(path, what)
        mpp = _resolution(known.get("openslide.mpp-y"), known.get("openslide.mpp-x"), path, what, assume_mpp)
        back = known.get("openslide.background-color", "ffffff")
        color = np.array([int(back[k:k + 2], 16) for k in (0, 2, 4)], np.uint16)

        def region(level: int, y: int, x: int, height: int, width: int) -> np.ndarray:
            scale = slide.level_downsamples[level]
            try:
                found: np.ndarray = np.asarray(slide.read_region((round(x * scale), round(y * scale)), level, (width, height)))
            except openslide.OpenSlideError as problem:
                raise Error(f"{what}: expected readable pixels in {path}, got {sentence(problem)}. Copy it again from where "
                            "it came") from None
            alpha = found[..., 3]
            if alpha.min() == 255:
                return found[..., :3]
            weight = alpha[..., None].astype(np.uint16)
            over: np.ndarray = (found[..., :3].astype(np.uint16) * weight + color * (255 - weight) + 127) // 255
            return np.asarray(over, np.uint8)

        yield Pyramid(mpp, [(h, w) for w, h in slide.level_dimensions], [float(s) for s in slide.level_downsamples], region)


def _check_bits(path: str, what: str) -> None:
    """Refuses a TIFF of other elements than 8 bits, of which OpenSlide would drop the lower ones."""
    import tifffile

    with tifffile.TiffFile(path) as file:
        bits = file.pages.first.bitspersample
    if bits != 8:
        raise Error(f"{what}: expected red, green and blue of 8 bits, got {bits} bits. Convert it to 8 bits first")


def _resolution(y: Any, x: Any, path: str, what: str, assume: float | None) -> tuple[float, float]:
    """Returns the micrometers per pixel along (y, x), and refuses pixels that are not square. A resolution of more than _COARSEST counts
    as none, since programs that edit pictures write it."""
    try:
        mpp = float(y), float(x)
    except (TypeError, ValueError):
        mpp = 0.0, 0.0
    if all(0 < v <= _COARSEST for v in mpp):
        if abs(mpp[0] / mpp[1] - 1) > NEAR:
            raise Error(f"{what}: expected square pixels, got {mpp[0]:g} x {mpp[1]:g} micrometers along (y, x). Resample the "
                        "slide")
        return mpp
    if assume is None:
        coarse = all(_COARSEST < v < math.inf for v in mpp)
        got = f"{mpp[0]:g} x {mpp[1]:g} along (y, x), those of a screen or of print" if coarse else "none"
        raise Error(f"{what}: expected micrometers a pixel in {path}, got {got}. Say them with assume_mpp (--assume-mpp), for "
                    "all slides that do not")
    return assume, assume


def _tiff(path: str, what: str, assume_mpp: float | None) -> Pyramid:
    """Opens a TIFF that OpenSlide does not read, and reads all levels into memory."""
    import tifffile

    try:
        with tifffile.TiffFile(path) as file:
            levels = [level for level in file.series[0].levels]
            pixels = [_rgb(level.asarray(), level.axes, what) for level in levels]
            page = file.series[0].keyframe
            mpp = [_tag_mpp(page, axis) for axis in ("Y", "X")]
    except Error:
        raise
    except Exception as problem:  # tifffile and its codecs raise errors of many kinds
        raise Error(f"{what}: expected a readable slide at {path}, got {sentence(problem)}. Copy it again from where it came") from None

    def region(level: int, y: int, x: int, height: int, width: int) -> np.ndarray:
        return pixels[level][y:y + height, x:x + width]

    return Pyramid(_resolution(mpp[0], mpp[1], path, what, assume_mpp), [p.shape[:2] for p in pixels],
                   [pixels[0].shape[0] / p.shape[0] for p in pixels], region)


def _rgb(pixels: np.ndarray, axes: str, what: str) -> np.ndarray:
    if axes in ("CYX", "SYX"):
        pixels = np.moveaxis(pixels, 0, -1)
    elif axes not in ("YXS", "YXC"):
        raise Error(f"{what}: expected pixels of red, green and blue, got axes {axes}")
    if pixels.dtype != np.uint8 or pixels.shape[-1] not in (3, 4):
        raise Error(f"{what}: expected red, green and blue of 8 bits, got {pixels.shape[-1]} channels of {pixels.dtype}")
    return pixels[..., :3]


def _tag_mpp(page: Any, axis: str) -> float | None:
    """Returns the micrometers per pixel by the tags of a TIFF; None if they state none."""
    tag, unit = page.tags.get(f"{axis}Resolution"), page.tags.get("ResolutionUnit")
    microns = {2: 25400.0, 3: 10000.0}.get(int(unit.value) if unit is not None else 1)
    if tag is None or microns is None or not tag.value[0] or not tag.value[1]:
        return None
    return float(microns * tag.value[1] / tag.value[0])


@dataclass(frozen=True)
class Level:
    """A level of a store: level `source` of the slide, reduced by `ratio`.

    extents  (height, width)
    scale    pixels of level 0 along one pixel
    mpp      micrometers per pixel
    """

    source: int
    ratio: float
    extents: tuple[int, int]
    scale: float
    mpp: float


def level_for(slide: Pyramid, mpp: float, what: str) -> Level:
    """Returns a level of `mpp` micrometers per pixel, within 2 %: one of the slide, or else the next finer one reduced, by a whole
    number if that is within 2 %.

    Raises
    ------
    Error
        If the slide has no pixels as fine as that.
    """
    scale = mpp / slide.mpp[1]
    near = [k for k, s in enumerate(slide.scales) if abs(s / scale - 1) <= NEAR]
    if near:
        return Level(near[0], 1.0, slide.extents[near[0]], slide.scales[near[0]], slide.mpp[1] * slide.scales[near[0]])
    finer = [k for k, s in enumerate(slide.scales) if s < scale]
    if not finer:
        raise Error(f"{what}: expected at least {mpp:g} micrometers a pixel, got {slide.mpp[1]:g} at its finest. Leave that "
                    "level out, or the slide")
    source = max(finer, key=lambda k: slide.scales[k])
    ratio = scale / slide.scales[source]
    if abs(round(ratio) / ratio - 1) <= NEAR:  # means of whole pixels
        ratio = float(round(ratio))
        scale, mpp = ratio * slide.scales[source], slide.mpp[1] * ratio * slide.scales[source]
    height, width = (max(1, int(n / ratio + 1e-6)) for n in slide.extents[source])
    return Level(source, ratio, (height, width), scale, mpp)


def pixels(slide: Pyramid, level: Level, low: Sequence[int], high: Sequence[int]) -> np.ndarray:
    """Returns the pixels (y, x, 3) of a box of a level, which are reduced by the box filter of Pillow."""
    if level.ratio == 1:
        return slide.region(level.source, low[0], low[1], high[0] - low[0], high[1] - low[1])
    from PIL import Image

    out = np.empty((high[0] - low[0], high[1] - low[1], 3), np.uint8)
    ratio, (height, width) = level.ratio, slide.extents[level.source]
    for y in range(low[0], high[0], BLOCK):
        for x in range(low[1], high[1], BLOCK):
            y1, x1 = min(y + BLOCK, high[0]), min(x + BLOCK, high[1])
            top, left = int(y * ratio), int(x * ratio)
            bottom, right = min(math.ceil(y1 * ratio), height), min(math.ceil(x1 * ratio), width)
            part = slide.region(level.source, top, left, bottom - top, right - left)
            box = (x * ratio - left, y * ratio - top, min(x1 * ratio, width) - left, min(y1 * ratio, height) - top)
            reduced = Image.fromarray(np.ascontiguousarray(part)).resize((x1 - x, y1 - y), Image.Resampling.BOX, box)
            out[y - low[0]:y1 - low[0], x - low[1]:x1 - low[1]] = np.asarray(reduced)
    return out


def grid_of(slide: Pyramid, level: Level) -> Grid:
    """Returns the grid of a level, with the center of the first pixel of level 0 as origin."""
    spacing = tuple(m * level.scale / 1000 for m in slide.mpp)
    origin = tuple(m * (level.scale - 1) / 2000 for m in slide.mpp)
    return Grid((1, *level.extents), (1.0, *spacing), (0.0, *origin))  # type: ignore[arg-type]
