# SPDX-License-Identifier: Apache-2.0
"""`python -m suture.demo [IMAGE]` draws a contact sheet of an image, or of a phantom, with random augmentations of it."""
from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import pictures
from .errors import CompileError, Error
from .operations.templates import cast, sampling
from .operations.operation import Operation
from .operations.generated import (crop_or_pad, gaussian_noise, orient, random_affine, random_crop, random_elastic, random_flip, random_gamma,
                         random_hed_jitter, resample, window)
from .pipeline.pipeline import Pipeline
from .pipeline.roles import labels
from .arrays.volume import Volume


def phantom() -> tuple[Volume, Volume]:
    """Makes a scan of an abdomen of ellipsoids in Hounsfield units, with its labels.

    Axes are "zyx" towards head, back and the left side of the patient. Labels are 1 liver, 2 spleen, 3 and 4 kidneys, 5 spine,
    6 aorta.

    Returns
    -------
    scan, seg : Volume
        The scan of int16 and its label map of uint8.

    Examples
    --------
    >>> scan, seg = suture.demo.phantom()
    >>> scan.array.shape, np.unique(seg.array).tolist()
    ((48, 150, 190), [0, 1, 2, 3, 4, 5, 6])
    """
    n, spacing = (48, 150, 190), (5.0, 2.0, 2.0)
    z, y, x = (((np.arange(k) - (k - 1) / 2) * s).reshape([-1 if i == a else 1 for i in range(3)])
               for a, (k, s) in enumerate(zip(n, spacing)))
    image, seg = np.full(n, -1000, np.int16), np.zeros(n, np.uint8)

    def inside(cz: float, cy: float, cx: float, rz: float, ry: float, rx: float) -> np.ndarray:
        return np.asarray(((z - cz) / rz) ** 2 + ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < 1)

    image[np.broadcast_to((y / 105) ** 2 + (x / 160) ** 2 < 1, n)] = -100  # fat
    image[np.broadcast_to((y / 92) ** 2 + (x / 145) ** 2 < 1, n)] = 20
    parts = [(1, 100, (50, -15, -75, 85, 65, 62)), (2, 120, (55, 40, 95, 45, 35, 28)), (3, 160, (-20, 50, -60, 50, 22, 24)),
             (4, 160, (-10, 52, 60, 50, 22, 24)), (6, 220, (0, 28, 12, 400, 11, 11)), (5, 400, (0, 68, 0, 400, 24, 27))]
    for label, value, ellipsoid in parts:
        at = inside(*ellipsoid)
        image[at], seg[at] = value, label
    canal = inside(0, 80, 0, 400, 8, 9)
    image[canal], seg[canal] = 30, 0
    image += np.random.default_rng(0).normal(0, 12, n).astype(np.int16)
    along = dict(zip("zyx", spacing))
    return Volume(image, axes="zyx", spacing=along), Volume(seg, axes="zyx", spacing=along)


def read(path: str) -> Any:
    """Reads an image file: a Volume by nibabel, SimpleITK or NumPy, or a picture.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    Volume or numpy.ndarray
        A Volume, or the pixels (rows, columns, 3) of a picture, of uint8.

    Raises
    ------
    Error
        If the file is missing or cannot be read, or a library is not installed.

    Examples
    --------
    >>> scan = suture.demo.read("case_17.nii.gz")     # doctest: +SKIP
    """
    name = path.lower()
    if not Path(path).is_file():
        raise Error(f"suture: demo: there is no file {path}")
    try:
        if name.endswith((".nii", ".nii.gz", ".mgz")):
            import nibabel

            return Volume.from_nibabel(nibabel.load(path))
        if name.endswith(".npy"):
            array = np.load(path)
            return array if array.ndim == 3 and array.shape[-1] == 3 and array.dtype == np.uint8 else Volume(array, axes="zyx")
        if name.endswith((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")):
            from PIL import Image

            return np.asarray(Image.open(path).convert("RGB"))
        import SimpleITK

        return Volume.from_itk(SimpleITK.ReadImage(path))
    except ImportError as problem:
        raise Error(f"suture: demo: {path} needs {problem.name}: pip install "
                    f"{'pillow' if problem.name == 'PIL' else problem.name}") from None
    except Exception as problem:  # whatever a reader raises
        raise Error(f"suture: demo: {path} cannot be read: {str(problem).splitlines()[0]}") from None


def _limits(volume: Volume) -> tuple[float, float]:
    """Returns the values drawn black and white: the soft tissue window for CT, percentiles for all else."""
    values = np.asarray(volume.array, np.float32)
    if volume.array.dtype.kind in "if" and values.min() < -500:
        return -160.0, 240.0
    low, high = np.percentile(values[np.isfinite(values)], (1, 99.5))
    return float(low), max(float(high), float(low) + 1e-3)


def _planes(array: np.ndarray, seg: np.ndarray | None, spacing: tuple[float, float, float], size: int) -> list[np.ndarray]:
    """Draws the middle axial, coronal and sagittal slice of (z, y, x) towards head, back and left, as radiologists look at
    them: from the feet, from the front, from the left side."""
    made = []
    cuts = [((1, 2), 0, "R", "A"), ((0, 2), 1, "R", "H"), ((0, 1), 2, "A", "H")]
    scale = size / max(n * s for n, s in zip(array.shape, spacing))
    for (rows, columns), across, left, top in cuts:
        k = array.shape[across] // 2
        plane = pictures.gray(array.take(k, across), 0, 1)
        if seg is not None:
            plane = pictures.outlined(plane, seg.take(k, across))
        if rows == 0:
            plane = plane[::-1]
        height, width = (max(1, round(array.shape[a] * spacing[a] * scale)) for a in (rows, columns))
        made.append(pictures.marked(pictures.stretched(plane, height, width), left, top))
    return made


def volume_sheet(scan: Volume, seg: Volume | None, *, seed: int = 1, count: int = 7, size: int = 200) -> tuple[np.ndarray, list[str]]:
    """Draws a scan and augmented patches of it: rows of three planes, in two columns.

    Parameters
    ----------
    scan : Volume
        The scan.
    seg : Volume, optional
        Its label map.
    seed : int
        Seed of the draws.
    count : int
        Number of patches.
    size : int
        Pixels along the longest side of a plane.

    Returns
    -------
    picture : numpy.ndarray
        Pixels (rows, columns, 3) of uint8.
    told : list of str
        A line for each patch with its draws.

    Examples
    --------
    >>> picture, told = suture.demo.volume_sheet(*suture.demo.phantom())     # doctest: +SKIP
    """
    low, high = _limits(scan)
    plain: list[Operation] = [window(center=(low + high) / 2, width=high - low),
                              orient(x="L", y="P", z="S")]
    extent = [n * s for n, s in zip(*_oriented(scan))]
    edge = min(128.0, max(16.0, min(sorted(extent)[1:]) * .7))  # millimeters
    step = max(edge / 96, .25)
    voxels = [max(1, min(96, round(min(edge, e) / step))) for e in extent]
    around = dict(zip("zyx", voxels))
    middle = dict(zip("zyx", (max(v, min(round(e / step), round(1.6 * v))) for v, e in zip(voxels, extent))))  # not in the air
    chance = [resample(spacing_mm=step), crop_or_pad(size=middle),
              random_affine(rotate_deg=dict(z=20, y=8, x=8), scale=(.8, 1.25)),
              random_elastic(control_spacing_mm=max(edge / 4, 4 * step), max_displacement_mm=edge / 16, limit_to_safe=True),
              random_crop(size=around), sampling(labels="vote"),
              random_gamma(range=(.7, 1.5)), gaussian_noise(sigma=(0, .05))]
    roles: dict[str, Any] = {} if seg is None else {"seg": labels()}
    batch: dict[str, Any] = {"image": [scan]} | ({} if seg is None else {"seg": [seg]})
    source = Pipeline(image=plain, **roles).plan(batch)
    seen = source.run()
    made = [_of(seen["image"][0], seen["seg"][0] if seg is not None else None, source.grids[0].spacing, size, scan.axes)]
    pipeline = Pipeline(image=[*plain, *chance], **roles)
    plan = pipeline.plan({"image": [scan] * count, "id": list(range(count)), **({} if seg is None else {"seg": [seg] * count})},
                         seed=seed)
    out = plan.run()
    for i in range(count):
        made.append(_of(out["image"][i], out["seg"][i] if seg is not None else None, (step, step, step), size, scan.axes))
    told = []
    for i, drawn in enumerate(plan.drawn()):
        affine = next(d["parameters"] for d in drawn if d["name"] == "random_affine")
        angles = ", ".join(f"{v:.1f}" for v in affine["rotate_deg"])
        told.append(f"patch {i + 1}: turned by ({angles}) degrees about z, y, x, scaled by {affine['scale'][0]:.2f}")
    cells = max(p.shape[0] for row in made for p in row), max(p.shape[1] for row in made for p in row)
    rows = [pictures.sheet([_padded(p, cells) for p in row], 3) for row in made]
    return pictures.sheet(rows, 2 if len(rows) > 2 else 1, gap=6), told


def _oriented(scan: Volume) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Returns extents and spacing along (z, y, x) after reorienting x to the left, y to the back and z to the head."""
    grid = Pipeline(image=[orient(x="L", y="P", z="S")]).plan({"image": [scan]}).grids[0]
    return grid.extents, grid.spacing


def _of(image: Any, seg: Any, spacing: tuple[float, float, float], size: int, axes: str) -> list[np.ndarray]:
    def dense(v: Any) -> np.ndarray:
        array = np.asarray(getattr(v, "array", v))
        array = array[0] if array.ndim == 4 else array
        return array.transpose(2, 1, 0) if axes == "xyz" else array

    return _planes(dense(image), None if seg is None else dense(seg), spacing, size)


def _padded(picture: np.ndarray, cell: tuple[int, int]) -> np.ndarray:
    y, x = cell[0] - picture.shape[0], cell[1] - picture.shape[1]
    return np.pad(picture, ((y // 2, y - y // 2), (x // 2, x - x // 2), (0, 0)))


def tile_sheet(tile: np.ndarray, *, seed: int = 1, count: int = 11, size: int = 192) -> tuple[np.ndarray, list[str]]:
    """Draws a stained tile and augmented crops of it.

    Parameters
    ----------
    tile : numpy.ndarray
        Pixels (rows, columns, 3) of uint8.
    seed : int
        Seed of the draws.
    count : int
        Number of crops.
    size : int
        Pixels along each side of a crop.

    Returns
    -------
    picture : numpy.ndarray
        Pixels (rows, columns, 3) of uint8.
    told : list of str
        A line for each crop with its draws.

    Examples
    --------
    >>> picture, told = suture.demo.tile_sheet(tile)     # doctest: +SKIP
    """
    edge = min(size, *tile.shape[:2])
    pipeline = Pipeline(layout="NHWC", rgb=[random_hed_jitter(), random_flip(axis_probability=dict(y=.5, x=.5)),
                                            random_affine(rotate_deg=dict(z=180)), sampling(border="mirror"),
                                            random_crop(size=dict(y=edge, x=edge)), cast("uint8")])
    plan = pipeline.plan({"rgb": [tile] * count, "id": list(range(count))}, seed=seed)
    crops = plan.run()["rgb"]
    told = []
    for i, drawn in enumerate(plan.drawn()):
        stains = next(d["parameters"] for d in drawn if d["name"] == "random_hed_jitter")
        told.append(f"crop {i + 1}: hematoxylin times {stains['alpha'][0]:.3f}, eosin times {stains['alpha'][1]:.3f}")
    y, x = ((n - edge) // 2 for n in tile.shape[:2])
    return pictures.sheet([tile[y:y + edge, x:x + edge], *crops], 4), told


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Arguments in place of those of the process.

    Returns
    -------
    int
        The exit status: 1 if something could not be read, compiled or written, which is printed.

    Raises
    ------
    SystemExit
        If an argument is invalid.

    Examples
    --------
    >>> suture.demo.main(["--out", "sheet.png"])     # doctest: +SKIP
    0
    """
    parser = argparse.ArgumentParser(prog="python -m suture.demo",
                                     description="Draws a contact sheet of an image, or of a phantom, with random augmentations of it.")
    parser.add_argument("image", nargs="?", help="NIfTI, what SimpleITK reads, .npy, or a picture of a stained slide; none: a phantom")
    parser.add_argument("--labels", help="a label map on the same grid, whose outlines are drawn")
    parser.add_argument("--out", default="suture_demo.png", help="the picture (suture_demo.png)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        if given.image is None:
            picture, told = volume_sheet(*phantom(), seed=given.seed)
        else:
            image = read(given.image)
            if isinstance(image, Volume):
                seg = None if given.labels is None else read(given.labels)
                picture, told = volume_sheet(image, seg, seed=given.seed)
            else:
                picture, told = tile_sheet(image, seed=given.seed)
        Path(given.out).write_bytes(pictures.png(picture))
    except (Error, CompileError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(*told, f"{given.out}: first the image itself; each row is axial, coronal, sagittal" if len(told) < 11 else
          f"{given.out}: first the tile itself", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
