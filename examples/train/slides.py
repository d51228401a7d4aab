# SPDX-License-Identifier: Apache-2.0
"""Slides of the sample histology with label maps of nuclei, at 1 micrometer a pixel.

No pathologist drew these labels. A pixel is of a nucleus where red light is absorbed above Otsu's threshold of the slide's
tissue, and stained keratin may be among them. The pictures do not say their resolution: those of breast are taken to have 1
micrometer a pixel, as their nuclei suggest. Each slide has a stain of its own; the store fits it, and the pipeline replaces it by
that of a reference. What a network learns here shows that files, store, feed, training and evaluation fit together. It says
nothing about patients."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import openslide
import tifffile
from PIL import Image
from scipy import ndimage

LEAST_NUCLEUS = 12  # pixels
PICTURES = {"breast_a": 1, "breast_b": 1, "tcga_tile": 2}  # and how many of its pixels are 1 micrometer
SLIDE = "CMU-1-Small-Region"  # .499 micrometers a pixel


def _otsu(values: np.ndarray) -> float:
    """The value that parts a histogram of 256 bins so that its classes differ most."""
    counts, edges = np.histogram(values, 256)
    centers = (edges[:-1] + edges[1:]) / 2
    below, moment = np.cumsum(counts)[:-1], np.cumsum(counts * centers)[:-1]
    above = counts.sum() - below
    between = (moment / below - ((counts * centers).sum() - moment) / above) ** 2 * below * above
    return float(centers[np.argmax(between)])


def nuclei(rgb: np.ndarray) -> np.ndarray:
    """The label map (y, x) of a picture (y, x, 3): 1 in nuclei, 0 elsewhere."""
    density = -np.log((rgb.astype(np.float64) + 1) / 256)
    red = ndimage.gaussian_filter(density[..., 0], .8)  # hematoxylin takes red light, eosin hardly any
    tissue = ndimage.gaussian_filter(density.sum(-1), 3) > .25
    inside = ndimage.binary_opening((red > _otsu(red[tissue])) & tissue)
    components, _ = ndimage.label(inside)
    large = np.bincount(components.ravel()) >= LEAST_NUCLEUS
    large[0] = False
    return large[components].astype(np.uint8)


def _halved(rgb: np.ndarray) -> np.ndarray:
    """Means of two by two pixels."""
    height, width = rgb.shape[0] // 2, rgb.shape[1] // 2
    blocks = rgb[:2 * height, :2 * width].reshape(height, 2, width, 2, 3).astype(np.uint16).sum((1, 3))
    return ((blocks + 2) // 4).astype(np.uint8)


def make(sample: Path, out: Path) -> list[str]:
    """Writes out/images/SLIDE.tif and out/labels/SLIDE.png.

    Parameters
    ----------
    sample : Path
        The folder of the sample histology.
    out : Path
        The folder to write, which may be there.

    Returns
    -------
    list of str
        The names of the slides.
    """
    with openslide.OpenSlide(sample / f"{SLIDE}.svs") as slide:
        pixels = {SLIDE: _halved(np.asarray(slide.read_region((0, 0), 0, slide.dimensions))[..., :3])}
    for name, times in PICTURES.items():
        with Image.open(sample / f"{name}.png") as picture:
            rgb = np.asarray(picture.convert("RGB"))
        pixels[name] = _halved(rgb) if times == 2 else rgb
    for folder in ("images", "labels"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for name, rgb in pixels.items():
        tifffile.imwrite(out / "images" / f"{name}.tif", rgb, tile=(256, 256), photometric="rgb", compression="zlib",
                         resolution=(10000, 10000), resolutionunit="CENTIMETER")
        Image.fromarray(nuclei(rgb)).save(out / "labels" / f"{name}.png")
    return sorted(pixels)
