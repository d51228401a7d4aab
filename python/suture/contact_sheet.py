# SPDX-License-Identifier: Apache-2.0
"""This module draws a contact sheet of a batch: planes of its images with the outlines of their labels, as one picture."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import pictures
from .arrays.batch import read_images, read_layout
from .arrays.dlpack import as_numpy, voxels_of
from .arrays.volume import Grid, Volume
from .arrays.whole_file import whole_file
from .arguments import check_calls_in
from .errors import Error
from .pipeline.batch import Batch, grids_of

_LABEL_NAMES = ("label", "labels", "mask", "masks", "seg", "segmentation", "target")
_MOST_CHANNELS = 4
_LETTERS_LPS = (("I", "S"), ("A", "P"), ("R", "L"))  # for z, y and x the sides of negative and of positive coordinates


class Sheet:
    """A picture for a notebook, TensorBoard and files.

    Parameters
    ----------
    array : numpy.ndarray
        Pixels (rows, columns, 3) of uint8; writer.add_image("batch", sheet.array, dataformats="HWC").

    Examples
    --------
    >>> st.Sheet(np.zeros((100, 200, 3), np.uint8))
    <Sheet of 200 x 100 pixels>
    """

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a PNG file atomically.

        Parameters
        ----------
        path : path
            The file, whose name ends with .png.

        Raises
        ------
        Error
            If the name does not end with .png, or the file cannot be written.
        """
        what, where = "suture: Sheet.save: path", Path(path)
        if where.suffix.lower() != ".png":
            raise Error(f"{what}: expected a name that ends with .png, got {str(path)!r}")
        try:
            with whole_file(where) as beside:
                Path(beside).write_bytes(pictures.png(self.array))
        except OSError as problem:
            raise Error(f"{what}: expected a file that can be written, got {str(path)!r}: {problem.strerror}") from None

    def _repr_png_(self) -> bytes:
        return pictures.png(self.array)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.array, dtype) if copy else np.asarray(self.array, dtype)

    def __repr__(self) -> str:
        return f"<Sheet of {self.array.shape[1]} x {self.array.shape[0]} pixels>"


@dataclass
class _Sample:
    """An image (channel, z, y, x) of a batch with its label maps (z, y, x), and its grid if that is known."""

    title: str
    image: np.ndarray
    labels: list[np.ndarray]
    spacing: tuple[float, ...]
    grid: Grid | None


def show(batch: Any, *, image: str | Sequence[str] | None = None, labels: str | Sequence[str] | None = None, samples: int = 4,
         window: Any = None, layout: str | None = None, size: int = 256, file: str | os.PathLike[str] | None = None) -> Sheet:
    """Draws a batch as a contact sheet.

    A volume is drawn as three planes: axial, coronal and sagittal, seen from the feet, the front and the left, if its grid is known,
    else across z, y and x. Planes go through the middle of the labels, or of the image. Above each plane are the sample, its
    window, and the slice, counted from 0, with its position in millimeters. Planes have the aspect ratio of the voxels. Labels
    are outlined, each in its own color, with a legend below.

    Parameters
    ----------
    batch : dict or array
        Input or output of a pipeline: arrays of NumPy or torch, also on a GPU, Volumes, or paths.
    image, labels : str or list of str, optional
        Keys to draw. By default those of the pipeline that made the batch, else all arrays: those under "seg", "label", "mask" or
        "target" and similar keys as labels, others as images.
    samples : int
        Most samples to draw.
    window : (low, high) or dict of those by key, optional
        Values drawn black and white. By default they are -160 and 240 HU for CT, which has values below -500, 0 and 1 for float values
        in that range, and 0 and 255 for RGB of uint8. For others they are percentiles 1 and 99.5 of a sample's values other than 0.
    layout : str, optional
        As in Pipeline, for arrays of a batch that no pipeline made.
    size : int
        Pixels along the longest side of a plane.
    file : path, optional
        A PNG file to write.

    Returns
    -------
    Sheet
        The picture, which notebooks show; `array` is for TensorBoard, `save` for files.

    Raises
    ------
    Error
        If the batch has no image, or an argument is out of its range.

    Examples
    --------
    >>> scan = st.Volume(np.zeros((12, 16, 16), np.float32), axes="zyx", spacing=1)
    >>> sheet = st.show({"image": [scan]}, size=64)
    >>> sheet.array.dtype, sheet.array.shape[-1]
    (dtype('uint8'), 3)
    >>> writer.add_image("batch", sheet.array, step, dataformats="HWC")     # doctest: +SKIP
    """
    what = "suture: show"
    if samples < 1 or size < 32:
        raise Error(f"{what}: expected at least 1 sample and a size of 32 pixels, got samples={samples} and size={size}")
    if not isinstance(batch, Mapping):
        shape = tuple(getattr(batch, "shape", ()))
        if layout is None and len(shape) == 3 and not isinstance(batch, Volume):
            raise Error(f"{what}: batch: expected samples, got one array of shape {shape}. Pass Volume(array, axes=\"zyx\"), or [array]")
        batch = {"image": batch}
    images, maps = _keys(batch, image, labels, what)
    if layout is None and isinstance(batch, Batch):
        layout = batch.layout
    drawn = [_samples(batch, key, maps, samples, layout, what) for key in images]
    known: set[int] = set()
    pairs = sum(min(each[0].image.shape[0], _MOST_CHANNELS) if not _is_rgb(each[0].image) else 1 for each in drawn)
    cells: list[np.ndarray] = []
    columns = 0
    for i in range(max(len(each) for each in drawn)):
        row: list[np.ndarray] = []
        for key, each in zip(images, drawn):
            if i < len(each):
                row += _row(each[i], _window_of(window, key, what), size, pairs > 2, known)
        columns = max(columns, len(row)) if columns else len(row)
        cells += row
    if columns == 1:
        columns = min(4, len(cells))
    made = pictures.sheet(cells, columns)
    sheet = Sheet(np.concatenate([made, *_legend(sorted(known), made.shape[1])]))
    if file is not None:
        sheet.save(file)
    return sheet


def _keys(batch: Mapping[str, Any], image: Any, labels: Any, what: str) -> tuple[list[str], list[str]]:
    """Returns the keys of images and of label maps."""
    listed = [[] if given is None else [given] if isinstance(given, str) else list(given) for given in (image, labels)]
    for key in (*listed[0], *listed[1]):
        if key not in batch:
            raise Error(f"{what}: expected keys among {', '.join(map(str, batch))}, got {key!r}")
    images, maps = listed
    if isinstance(batch, Batch) and batch.images:
        images = images or [key for key in batch.images if key in batch]
        maps = maps if labels is not None else [key for key in batch.labels if key in batch]
    else:
        arrays = [key for key, value in batch.items() if key != "id" and _rank(value) >= 2]
        if labels is None:
            maps = [key for key in arrays if str(key).lower() in _LABEL_NAMES and key not in images]
        images = images or [key for key in arrays if key not in maps]
    if not images:
        raise Error(f"{what}: expected a batch with images, got keys {', '.join(map(str, batch)) or 'none'}. Name one, image=\"...\"")
    return images, maps


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) and value else value


def _rank(value: Any) -> int:
    """Returns the number of axes of the arrays of a key; 2 for paths and images of other libraries, 0 for anything else."""
    first = _first(value)
    if isinstance(first, str) and not first.lower().endswith((".nii", ".nii.gz", ".mgz", ".nrrd", ".mha", ".mhd")):
        return 0
    if isinstance(first, (str, os.PathLike)) or hasattr(first, "dataobj"):
        return 2
    return len(getattr(voxels_of(first), "shape", ()))


def _host(array: Any, what: str) -> np.ndarray:
    """Returns an array in host memory, copied if it is not there already."""
    if getattr(array, "is_cuda", False):
        array = array.detach().cpu()
    elif type(array).__module__.split(".")[0] == "cupy":
        array = array.get()
    elif getattr(array, "requires_grad", False):
        array = array.detach()
    return np.asarray(as_numpy(array, what))


def _czyx(array: np.ndarray, letters: str, what: str) -> np.ndarray:
    """Reorders a sample to (channel, z, y, x). It may lack the channel axis of the layout, or have one before a layout without."""
    if array.ndim == len(letters) + 1 and "c" not in letters:
        letters = "c" + letters
    elif array.ndim == len(letters) - 1 and "c" in letters:
        letters = letters.replace("c", "")
    if array.ndim != len(letters):
        raise Error(f"{what}: layout: expected a sample with the axes {letters!r}, got shape {array.shape}. Say layout= as in Pipeline, "
                    "\"NHWC\" say")
    present = [letters.index(c) for c in "czyx" if c in letters]
    made = array.transpose(present)
    for k, c in enumerate("czyx"):
        if c not in letters:
            made = np.expand_dims(made, k)
    return made


def _listed(value: Any) -> Any:
    """Returns a single Volume as a list of one, and anything else unchanged."""
    return [value] if isinstance(value, Volume) else value


def _each(batch: Mapping[str, Any], key: str, layout: str | None, count: int, what: str) -> tuple[list[np.ndarray], list[Grid] | None]:
    """Returns the samples of a key along (channel, z, y, x), and their grids if they are known."""
    value = _listed(read_images(batch[key]))
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        value = value[0]  # the full map of several levels
    listed = isinstance(value, (list, tuple))
    if listed and value and not isinstance(value[0], Volume) and layout is None and len(value[0].shape) == 5:
        value, listed = value[0], False
    letters = read_layout(layout).removeprefix("n") if layout else "czyx"
    if layout and listed and value and not isinstance(value[0], Volume) and len(value[0].shape) > len(letters) + ("c" not in letters):
        value = value[0]
    if len(value) == 0:
        raise Error(f"{what}: {key}: the batch is empty")
    made = []
    for i in range(min(count, len(value))):
        sample = value[i]
        order = letters
        if isinstance(sample, Volume):
            order = ("c" if len(sample.array.shape) > len(sample.axes) else "") + sample.axes
            sample = sample.array
        made.append(_czyx(_host(sample, f"{what}: {key}"), order, f"{what}: {key}"))
    placed = all(v.placed for v in value) if isinstance(_first(value), Volume) else isinstance(batch, Batch) and batch.placed
    grids = grids_of({**batch, key: value} if not isinstance(batch, Batch) else batch, key) if placed else None
    return made, grids


def _samples(batch: Mapping[str, Any], key: str, maps: Sequence[str], count: int, layout: str | None, what: str) -> list[_Sample]:
    images, grids = _each(batch, key, layout, count, what)
    regions: list[list[np.ndarray]] = [[] for _ in images]
    for name in maps:
        found, _ = _each(batch, name, layout, count, what)
        for i, each in enumerate(found[:len(images)]):
            if each.shape[1:] != images[i].shape[1:]:
                raise Error(f"{what}: {name}: expected the extents {images[i].shape[1:]} of {key}, got {each.shape[1:]} (sample {i})")
            regions[i] += _maps_of(each)
    ids: Any = batch.get("id")
    ids = ids.tolist() if hasattr(ids, "tolist") else ids
    names = [str(each) for each in ids] if isinstance(ids, (list, tuple)) else []
    made = []
    for i, array in enumerate(images):
        grid = grids[i] if grids else None
        name = names[i] if i < len(names) else f"sample {i}"
        made.append(_oriented(_Sample(f"{name} {key}", array, regions[i], grid.spacing if grid else (1.0, 1.0, 1.0), grid)))
    return made


def _maps_of(given: np.ndarray) -> list[np.ndarray]:
    """Returns label maps (z, y, x): a single channel itself, or for each channel a map of the channel's number as label."""
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)  # NaN becomes 0, or a number below it
    if len(whole) == 1:
        return [whole[0]]
    first = 1 if (whole.sum(0) == 1).all() else 0  # then channel 0 is the background
    return [np.where(whole[k] != 0, k + 1 - first, 0) for k in range(first, len(whole))]


def _oriented(sample: _Sample) -> _Sample:
    """Permutes and flips the axes of a sample of known grid so that they point as nearly as possible to head, back and left."""
    if sample.grid is None:
        return sample
    direction = np.array(sample.grid.direction).reshape(3, 3)  # column k: array axis k along (z, y, x) of the patient
    order = _nearest(direction)
    flips = [k for k, a in enumerate(order) if direction[k, a] < 0]

    def turned(volume: np.ndarray) -> np.ndarray:
        first = volume.ndim - 3
        made = volume.transpose([*range(first), *(first + a for a in order)])
        return np.flip(made, tuple(first + k for k in flips)) if flips else made

    grid = sample.grid
    columns = direction[:, order].copy()
    origin = np.array(grid.origin)
    for k in flips:
        a = order[k]
        origin = origin + direction[:, a] * (grid.extents[a] - 1) * grid.spacing[a]
        columns[:, k] *= -1
    placed = Grid(tuple(grid.extents[a] for a in order), tuple(grid.spacing[a] for a in order),  # type: ignore[arg-type]
                  tuple(float(v) for v in origin), tuple(float(v) for v in columns.ravel()))  # type: ignore[arg-type]
    return _Sample(sample.title, turned(sample.image), [turned(m) for m in sample.labels], placed.spacing, placed)


def _nearest(direction: np.ndarray) -> list[int]:
    """Returns for each axis of the patient (z, y, x) the array axis that is closest to it."""
    import itertools

    return list(max(itertools.permutations(range(3)), key=lambda p: sum(abs(direction[k, a]) for k, a in enumerate(p))))


def _is_rgb(image: np.ndarray) -> bool:
    """Tests whether an image is a picture of red, green and blue."""
    return image.shape[:2] == (3, 1)


def _window_of(window: Any, key: str, what: str) -> tuple[float, float] | None:
    given = window.get(key) if isinstance(window, Mapping) else window
    if given is None:
        return None
    low, high = (float(v) for v in given) if isinstance(given, (list, tuple)) and len(given) == 2 else (0.0, 0.0)
    if not low < high:
        raise Error(f"{what}: window: expected (low, high) with low below high, got {given!r}")
    return low, high


def _limits(values: np.ndarray, rgb: bool, given: tuple[float, float] | None) -> tuple[float, float, str]:
    """Returns the values drawn black and white, and their description."""
    if given is not None:
        return (*given, f"{given[0]:.4g} to {given[1]:.4g}")
    if rgb and values.dtype == np.uint8:
        return 0.0, 255.0, "RGB"
    dense = np.asarray(values, np.float32)
    finite = dense[np.isfinite(dense)]
    if not finite.size:
        return 0.0, 1.0, "no finite value"
    low, high = float(finite.min()), float(finite.max())
    if not rgb and low < -500:
        return -160.0, 240.0, "CT W 400 L 40"
    if values.dtype.kind == "f" and low >= -.05 and high <= 1.05:
        return 0.0, 1.0, "RGB 0 to 1" if rgb else "0 to 1"
    inside = finite[finite != 0]
    low, high = (float(v) for v in np.percentile(inside if inside.size else finite, (1, 99.5)))
    high = max(high, low + 1e-3)
    return low, high, f"{'RGB ' if rgb else ''}{low:.4g} to {high:.4g}"


def _row(sample: _Sample, window: tuple[float, float] | None, size: int, one_plane: bool, known: set[int]) -> list[np.ndarray]:
    """Draws the cells of a sample."""
    extents = sample.image.shape[1:]
    at = _center(sample.labels, extents)
    cells = []
    rgb = _is_rgb(sample.image)
    count = 1 if rgb else min(len(sample.image), _MOST_CHANNELS)
    scale = size / max(n * s for n, s in zip(extents, sample.spacing))
    for c in range(count):
        values = sample.image if rgb else sample.image[c]
        low, high, name = _limits(values, rgb, window)
        title = sample.title + ("" if rgb or len(sample.image) == 1 else f" channel {c} of {len(sample.image)}")
        for across in ([0] if extents[0] == 1 or one_plane else [0, 1, 2]):
            rows, columns = [a for a in range(3) if a != across]
            k = at[across]
            plane = _colors(values, across, k, low, high, rgb)
            height, width = (max(1, round(extents[a] * sample.spacing[a] * scale)) for a in (rows, columns))
            upright = sample.grid is not None and rows == 0  # the head is at the top
            plane = pictures.stretched(plane[::-1] if upright else plane, height, width)
            for m in sample.labels:
                cut = m.take(k, across)
                known.update(int(v) for v in np.unique(cut) if v > 0)
                plane = pictures.outlined(plane, pictures.stretched(cut[::-1] if upright else cut, height, width))
            if sample.grid is not None and extents[0] > 1:
                plane = pictures.marked(plane, *{0: ("R", "A"), 1: ("R", "H"), 2: ("A", "H")}[across])
            cells.append(_titled(plane, f"{title}, {name}", _where(sample, across, k), size))
    return cells


def _colors(values: np.ndarray, across: int, k: int, low: float, high: float, rgb: bool) -> np.ndarray:
    """Draws a plane of a volume as (rows, columns, 3) of uint8."""
    if not rgb:
        return pictures.gray(values.take(k, across), low, high)
    return np.stack([pictures.gray(values[c, 0], low, high)[..., 0] for c in range(3)], -1)


def _center(labels: Sequence[np.ndarray], extents: Sequence[int]) -> list[int]:
    """Returns along each axis the slice with labels that is nearest to their center of mass, or else the middle of the image."""
    at = [n // 2 for n in extents]
    inside = np.zeros(tuple(extents), bool)
    for m in labels:
        inside |= m > 0
    if not inside.any():
        return at
    for a in range(3):
        counts = inside.sum(tuple(b for b in range(3) if b != a))
        middle = (counts * np.arange(len(counts))).sum() / counts.sum()
        found = np.flatnonzero(counts)
        at[a] = int(found[np.argmin(np.abs(found - middle))])
    return at


def _where(sample: _Sample, across: int, k: int) -> str:
    """Returns the name of a plane, its slice, and its position in the patient."""
    n = sample.image.shape[1 + across]
    if n == 1 and across == 0:
        return ""
    if sample.grid is None:
        return f"{'zyx'[across]} {k} of {n}"
    name = ("axial", "coronal", "sagittal")[across]
    grid = sample.grid
    middle = [(e - 1) / 2 for e in grid.extents]
    middle[across] = k
    m = np.array(grid.direction).reshape(3, 3) * np.array(grid.spacing)
    place = float((m @ np.array(middle) + np.array(grid.origin))[across])
    return f"{name} {k} of {n}, {_LETTERS_LPS[across][place > 0]} {abs(place):.1f} mm"


def _titled(plane: np.ndarray, title: str, line: str, size: int) -> np.ndarray:
    """Draws a cell: two lines of text, cut to its width, above the plane in its middle."""
    most = size // pictures.LETTER_WIDTH
    made = np.zeros((size + 2 * (pictures.LETTER_HEIGHT + 4), size, 3), np.uint8)
    for row, words in enumerate((title, line)):
        if len(words) > most:
            words = words[:most - 3] + "..."
        drawn = pictures.text(words, (200, 200, 200) if row else (255, 255, 255))[:, :size]
        y = 2 + row * (pictures.LETTER_HEIGHT + 4)
        made[y:y + drawn.shape[0], :drawn.shape[1]] = drawn
    y, x = 2 * (pictures.LETTER_HEIGHT + 4) + (size - plane.shape[0]) // 2, (size - plane.shape[1]) // 2
    made[y:y + plane.shape[0], x:x + plane.shape[1]] = plane[:size, :size]
    return made


def _legend(labels: Sequence[int], width: int) -> list[np.ndarray]:
    """Draws lines with a patch of color and the number of each label."""
    if not labels:
        return []
    parts = []
    for label in labels:
        words = pictures.text(f"  {label}  ", (255, 255, 255))
        words[:, :8] = pictures.color_of(label)
        parts.append(words)
    lines, line = [], [pictures.text("labels  ", (200, 200, 200))]
    for part in parts:
        if sum(p.shape[1] for p in line) + part.shape[1] > width:
            lines.append(line)
            line = []
        line.append(part)
    made = []
    for each in [*lines, line]:
        row = np.concatenate(each, 1)[:, :width]
        made.append(np.pad(row, ((2, 4), (0, width - row.shape[1]), (0, 0))))
    return made


__all__ = ["Sheet", "show"]

check_calls_in(globals())
