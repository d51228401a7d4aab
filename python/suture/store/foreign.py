# SPDX-License-Identifier: Apache-2.0
"""This module reads files of other programs without conversion: Zarr v2 and v3, nnU-Net's preprocessed cases, and NIfTI files."""
from __future__ import annotations

import json
import math
import os
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.volume import Grid
from ..errors import Error
from . import arrays, files, scans
from .arrays import LazyArray, ZarrArray
from .case import Case

_MOST_KEPT = 1 << 30  # most bytes of volumes that _Kept caches
_MILLIMETERS = {"angstrom": 1e-7, "nanometer": 1e-6, "micrometer": 1e-3, "millimeter": 1.0, "centimeter": 10.0, "decimeter": 100.0,
                "meter": 1e3, "inch": 25.4}


class _Kept:
    """Caches the most recently used volumes of files that can only be read as a whole."""

    def __init__(self) -> None:
        self._lock, self._volumes = threading.Lock(), OrderedDict[Any, np.ndarray]()

    def __call__(self, key: Any, read: Callable[[], np.ndarray]) -> np.ndarray:
        with self._lock:
            known = self._volumes.pop(key, None)
            if known is not None:
                self._volumes[key] = known
                return known
        made = read()
        with self._lock:
            self._volumes[key] = made
            while sum(v.nbytes for v in self._volumes.values()) > _MOST_KEPT and len(self._volumes) > 1:
                self._volumes.popitem(last=False)
        return made


_kept = _Kept()


class FileArray(LazyArray):
    """An array of a file that another library than tensorstore reads.

    part    callable that returns an array; boxes are read by slicing it
    """

    def __init__(self, what: str, shape: Sequence[int], dtype: str, axes: str, grid: Grid, part: Callable[[], Any]) -> None:
        self._prefix, self.shape, self.dtype, self.axes, self.grid = what, tuple(int(n) for n in shape), dtype, axes, grid
        self._part = part

    @property
    def _what(self) -> str:
        return self._prefix

    def _read(self, box: Sequence[tuple[int, int]], out: np.ndarray) -> None:
        try:
            out[...] = self._part()[tuple(slice(a, b) for a, b in box)]
        except (OSError, ValueError, RuntimeError, EOFError) as problem:
            if isinstance(problem, Error):
                raise
            raise Error(f"{self._prefix}: expected readable voxels, got {arrays.sentence(problem)}. Copy the file again from "
                        "where it came") from None


class FileCase(Case):
    """A case of another program, whose files are opened on request.

    image, labels, fingerprint    callables that return the attributes of these names
    """

    def __init__(self, name: str, image: Callable[[], LazyArray], labels: Callable[[], LazyArray] | None = None,
                 fingerprint: Callable[[], Mapping[str, Any]] | None = None) -> None:
        self.name, self._image, self._labels, self._fingerprint = name, image, labels, fingerprint

    @cached_property
    def image(self) -> LazyArray:  # type: ignore[override]
        return self._image()

    @cached_property
    def labels(self) -> LazyArray | None:  # type: ignore[override]
        return None if self._labels is None else self._labels()

    @cached_property
    def fingerprint(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {} if self._fingerprint is None else self._fingerprint()


def cases_of(root: Path, mode: str, threads: int | None) -> dict[str, Case]:
    """Returns the cases of a folder that is no store of suture, or of one file or Zarr. Stores of suture within it are left out.

    Raises
    ------
    Error
        If there is no case, or two cases have the same name.
    """
    found: dict[str, list[Case]] = {}
    stores: list[Path] = []
    for inner, one in _zarr_cases(root, mode, threads, stores) if root.is_dir() else []:
        found.setdefault(inner, []).append(one)
    if found:
        return _of_one_name(found, root)
    names = sorted(os.listdir(root)) if root.is_dir() else [root.name]
    base = root if root.is_dir() else root.parent
    packed = {name for name in names if name.endswith((".b2nd", ".npz"))}
    for name in sorted(packed):
        case, ending = os.path.splitext(name)
        if not (case.endswith("_seg") and case[:-len("_seg")] + ending in packed):
            made = _b2nd(base, case) if ending == ".b2nd" else _npz(base, case)
            found.setdefault(case, []).append(made)
    for name in names:
        if scans.is_scan(name):
            found.setdefault(scans.stem(name), []).append(_scan(base / name, scans.stem(name)))
        elif (base / name).is_dir():
            for inner, one in _zarr_cases(base / name, mode, threads, stores):
                found.setdefault(inner, []).append(one)
    if not found and stores:
        raise Error(f"suture: store: path: expected a store or files of other programs, got {str(root)!r}, which only holds a store of suture. "
                    f"Open {str(stores[0])!r}")
    if not found:
        raise Error(f"suture: store: path: expected a store, or Zarr, NIfTI, b2nd or npz files, got none in {str(root)!r}")
    return _of_one_name(found, root)


def _of_one_name(found: Mapping[str, list[Case]], root: Path) -> dict[str, Case]:
    """Returns the case of each name, and refuses names of several cases."""
    for name, cases in found.items():
        if len(cases) > 1:
            raise Error(f"suture: store: case {name!r}: expected one of this name in {root}, got {len(cases)}. Rename one "
                        "of them")
    return {name: cases[0] for name, cases in found.items()}


def _scan(path: Path, name: str) -> Case:
    """Returns the case of a volume in a file, which is read as a whole into memory and cached. A file that has changed since is not
    read again."""
    what = f"suture: store: case {name!r}"

    def whole() -> scans.Scan:
        scan = scans.read(path, what)
        if scan.scaling is not None:
            scan.data = arrays.scaled(scan.data, *scan.scaling)
        return scan

    def identity() -> tuple[Any, ...]:
        status = os.stat(path)
        return os.path.realpath(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def image() -> LazyArray:
        key = identity()
        scan = whole()

        def again() -> np.ndarray:
            made = whole().data
            if identity() != key:
                raise Error(f"{what}: expected {path} as it was when the case was opened, got another. Open the folder again")
            return made

        _kept(key, lambda: scan.data)
        return FileArray(what, scan.data.shape, scan.data.dtype.name, "zyx", scan.grid, lambda: _kept(key, again))

    return FileCase(name, image)


class _PlainUnpickler(pickle.Unpickler):
    """Reads pickles of numbers, texts, lists, dictionaries and NumPy arrays, and refuses anything else, so that no code runs."""

    _KNOWN = {("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
              ("numpy.core.multiarray", "scalar"),
              ("numpy._core.multiarray", "scalar"), ("numpy", "ndarray"), ("numpy", "dtype"),
              ("numpy.core.numeric", "_frombuffer"),
              ("numpy._core.numeric", "_frombuffer"), ("collections", "OrderedDict")}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._KNOWN:
            raise pickle.UnpicklingError(f"{module}.{name}, which is no number, text or array")
        return super().find_class(module, name)


def _properties(base: Path, name: str, what: str) -> Mapping[str, Any]:
    """Reads the properties that nnU-Net wrote for a case, as pickle or JSON; empty if there are none."""
    path = base / f"{name}.pkl"
    try:
        if path.is_file():
            with open(path, "rb") as file:
                found = _PlainUnpickler(file).load()
        elif (base / f"{name}.json").is_file():
            found = json.loads((base / f"{name}.json").read_bytes())
        else:
            return {}
    except Exception as problem:  # a pickle that is none raises errors of any kind
        raise Error(f"{what}: expected nnU-Net's properties in {path.name}, got {arrays.sentence(problem)}. Preprocess the "
                    "case again") from None
    if not isinstance(found, dict):
        raise Error(f"{what}: expected nnU-Net's properties in {path.name}, got a {type(found).__name__}. Preprocess the "
                    "case again")
    return found


def _nnunet_spacing(base: Path, properties: Mapping[str, Any], what: str) -> tuple[float, float, float] | None:
    """Returns the spacing of a preprocessed case along (z, y, x): by the plans beside its folder, that of the configuration that the
    folder is named after; None if nnU-Net wrote no properties of the case.

    Raises
    ------
    Error
        If there are no plans. Then the spacing is unknown, since the properties have that before preprocessing."""
    if "spacing" not in properties:
        return None
    base = base.resolve()  # "." has no name

    def is_other(path: Path) -> bool:
        return not base.name.startswith(path.stem + "_")

    for path in sorted(base.parent.glob("*.json"), key=lambda path: (is_other(path), path)):
        try:
            known = json.loads(path.read_bytes())["configurations"]
            found = next(v for c, v in known.items() if v.get("data_identifier") == base.name or f"{path.stem}_{c}" == base.name)
            for _ in known:
                found = found if "spacing" in found else known[found["inherits_from"]]
            spacing = found["spacing"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
            continue
        first = _three(properties["spacing"], what)[:1] if len(spacing) == 2 else ()
        return _three([*first, *spacing], what)
    raise Error(f"{what}: expected nnU-Net's plans of the folder {base.name!r} beside it, which have the spacing after preprocessing, got none. "
                f"Copy nnUNetPlans.json to {base.parent}")


def _three(values: Any, what: str) -> tuple[float, float, float]:
    try:
        z, y, x = (float(v) for v in values)
    except (TypeError, ValueError):
        raise Error(f"{what}: expected a spacing of three numbers, got {values!r}. Preprocess the case again") from None
    return z, y, x


def _nnunet(base: Path, name: str, part: Callable[[str], Callable[[], LazyArray]], labels: bool) -> Case:
    """Returns a case of nnU-Net: its arrays, and spacing and cropping as its fingerprint."""
    what = f"suture: store: case {name!r}"

    def fingerprint() -> Mapping[str, Any]:
        properties = _properties(base, name, what)
        return {key: properties[key] for key in ("spacing", "shape_before_cropping", "bbox_used_for_cropping")
                if key in properties}

    return FileCase(name, part(""), part("_seg") if labels else None, fingerprint)


def _preprocessed(base: Path, name: str, what: str, shape: Sequence[int], dtype: str, read: Callable[[], Any]) -> LazyArray:
    """Returns an array (channel, z, y, x) that nnU-Net has preprocessed, with its spacing if that is known."""
    spacing = _nnunet_spacing(base, _properties(base, name, what), what)
    z, y, x = (int(n) for n in shape[1:])
    array = FileArray(what, shape, dtype, "zyx", Grid((z, y, x)) if spacing is None else Grid((z, y, x), spacing), read)
    array.placed = spacing is not None
    return array


def _b2nd(base: Path, name: str) -> Case:
    """Returns a case of nnU-Net in Blosc2, (channel, z, y, x). Each thread opens the files for itself."""
    what = f"suture: store: case {name!r}"

    def part(suffix: str) -> Callable[[], LazyArray]:
        path, here = base / f"{name}{suffix}.b2nd", threading.local()

        def reader() -> Any:
            if not hasattr(here, "array"):
                try:
                    import blosc2
                except ImportError:
                    raise Error(f"{what}: expected blosc2 to be installed. pip install 'suture[store]'") from None
                try:
                    here.array = blosc2.open(urlpath=str(path), mode="r", dparams={"nthreads": 1}, mmap_mode="r")
                    here.array.shape  # noqa: B018 - the header is read when it is asked for
                except Exception as problem:  # blosc2 raises errors of several kinds
                    raise Error(f"{what}: expected a file of Blosc2 at {path}, got {arrays.sentence(problem)}. Preprocess "
                                "the case again") from None
            return here.array

        def array() -> LazyArray:
            opened = reader()
            if len(opened.shape) != 4:
                raise Error(f"{what}: expected (channel, z, y, x) in {path.name}, got the shape {tuple(opened.shape)}. "
                            "Preprocess the case again")
            return _preprocessed(base, name, what, opened.shape, opened.dtype.name, reader)

        return array

    return _nnunet(base, name, part, (base / f"{name}_seg.b2nd").is_file())


def _npz(base: Path, name: str) -> Case:
    """Returns a case of nnU-Net in an npz file, which is read as a whole, or in npy files that nnU-Net has unpacked."""
    what = f"suture: store: case {name!r}"
    path = base / f"{name}.npz"

    def whole(key: str) -> np.ndarray:
        try:
            with np.load(path, allow_pickle=False) as file:
                found: np.ndarray = file[key]
                return found
        except Exception as problem:  # zipfile, zlib and NumPy raise errors of their own
            raise Error(f"{what}: expected {key!r} in {path}, got {arrays.sentence(problem)}. Preprocess the case again") from None

    def part(suffix: str) -> Callable[[], LazyArray]:
        key, flat = "seg" if suffix else "data", base / f"{name}{suffix}.npy"

        def array() -> LazyArray:
            if flat.is_file():
                mapped = np.load(flat, mmap_mode="r", allow_pickle=False)
                shape, dtype, read = mapped.shape, mapped.dtype.name, lambda: mapped
            else:
                first, stamp = whole(key), (os.path.realpath(path), key, os.stat(path).st_mtime_ns)
                _kept(stamp, lambda: first)
                shape, dtype, read = first.shape, first.dtype.name, lambda: _kept(stamp, lambda: whole(key))
            if len(shape) != 4:
                raise Error(f"{what}: expected (channel, z, y, x) in {path.name}, got the shape {tuple(shape)}. Preprocess "
                            "the case again")
            return _preprocessed(base, name, what, shape, dtype, read)

        return array

    return _nnunet(base, name, part, True)


def _node(path: Path) -> str:
    """Returns "array" or "group" for a folder of Zarr v2 or v3, and an empty text for another."""
    if (path / "zarr.json").is_file():
        try:
            return str(json.loads((path / "zarr.json").read_bytes())["node_type"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""
    return "array" if (path / ".zarray").is_file() else "group" if (path / ".zgroup").is_file() else ""


def _zarr_cases(path: Path, mode: str, threads: int | None, stores: list[Path]) -> list[tuple[str, Case]]:
    """Returns the cases of a Zarr folder, with their names: one if it is an array or an image of OME-Zarr, otherwise those of its
    groups and arrays. A store of suture has none, and is appended to `stores`."""
    node, name = _node(path), path.name.removesuffix(".zarr").removesuffix(".ome")
    if node == "array":
        return [(name, _zarr_array(path, name, mode, threads))]
    if node != "group":
        return []
    if _is_of_suture(path) and (path / files.FOLDER).is_dir():
        stores.append(path)
        return []
    _refuse_suture(path)
    if _multiscales(path) is not None:
        return [(name, _ome(path, name, mode, threads))]
    return [case for inner in sorted(os.listdir(path)) if (path / inner).is_dir() for case in _zarr_cases(path / inner, mode, threads, stores)]


def _is_of_suture(path: Path) -> bool:
    """Tests whether a group is a store of suture, or a case of one."""
    own = arrays.attributes(path).get("suture")
    return isinstance(own, dict) and "store" in own


def _refuse_suture(path: Path) -> None:
    """Refuses a case of a store of suture, or a store without its hidden folder, whose scaling, grid and names of label maps OME-Zarr
    does not record."""
    if not _is_of_suture(path):
        return
    store = path.absolute().parent
    if not (store / files.FOLDER).is_dir():
        raise Error(f"suture: store: path: expected a store with its hidden folder {files.FOLDER}, got one without it, or a case of one, in "
                    f"{str(path)!r}. Copy the store with this folder, or build it again")
    raise Error(f"suture: store: path: expected a store or files of other programs, got {str(path)!r}, which a store of suture holds. Open "
                f"{str(store)!r}")


def _multiscales(path: Path) -> Mapping[str, Any] | None:
    """Returns the first entry of "multiscales" of a group of OME-Zarr 0.4 or 0.5, else None."""
    known = arrays.attributes(path)
    known = known.get("ome", known)
    listed = known.get("multiscales") if isinstance(known, dict) else None
    return listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else None


def _plain_grid(shape: Sequence[int], what: str) -> tuple[str, Grid]:
    """Returns axes and grid of a volume, with or without channels, that has no metadata of its position."""
    if len(shape) not in (3, 4):
        raise Error(f"{what}: expected (z, y, x) or (channel, z, y, x), got the shape {tuple(shape)}. Open the array that is "
                    "a volume")
    z, y, x = (int(n) for n in shape[-3:])
    return "zyx", Grid((z, y, x))


def _zarr_array(path: Path, name: str, mode: str, threads: int | None) -> Case:
    what = f"suture: store: case {name!r}"

    def image() -> LazyArray:
        shape = arrays.opened(path, what, arrays.context(mode, threads)).shape
        axes, grid = _plain_grid(shape, what)
        array = ZarrArray(path, what, axes=axes, grid=grid, mode=mode, threads=threads)
        array.placed = False
        return array

    return FileCase(name, image)


def _no_multiscales(what: str, group: Path) -> Error:
    return Error(f"{what}: expected multiscales of OME-Zarr in {group}, got others. Open the array itself")


def _scale_and_shift(steps: Sequence[Mapping[str, Any]], count: int) -> tuple[list[float], list[float]]:
    """Returns scale and translation along each of `count` axes of coordinate transformations of OME-Zarr, which apply one after the
    other.

    Raises
    ------
    ValueError
        If there is a transformation of another kind, or one of other axes."""
    scale, shift = np.ones(count), np.zeros(count)
    for step in steps:
        kind = step["type"]
        if kind == "identity":
            continue
        values = np.array([float(v) for v in step[kind]])
        if kind not in ("scale", "translation") or len(values) != count or not np.isfinite(values).all():
            raise ValueError
        scale, shift = (scale * values, shift * values) if kind == "scale" else (scale, shift + values)
    return scale.tolist(), shift.tolist()


def _ome(path: Path, name: str, mode: str, threads: int | None) -> Case:
    """Returns the case of an image of OME-Zarr: its finest level, and the first of its label maps."""
    what = f"suture: store: case {name!r}"

    def level(group: Path) -> Callable[[], LazyArray]:
        def array() -> LazyArray:
            entry = _multiscales(group)
            if entry is None:
                raise _no_multiscales(what, group)
            try:
                dataset = entry["datasets"][0]
                axes = [str(a if isinstance(a, str) else a["name"]) for a in entry["axes"]]
                units = {a["name"]: str(a.get("unit") or "millimeter") for a in entry["axes"] if isinstance(a, dict)}
                steps = [*(dataset.get("coordinateTransformations") or []), *(entry.get("coordinateTransformations") or [])]
                scale, shift = _scale_and_shift(steps, len(axes))
                inner = Path(dataset["path"])
            except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError):
                raise _no_multiscales(what, group) from None
            if (".." in inner.parts or inner.is_absolute() or len(set(axes)) != len(axes)
                    or not all(math.isfinite(s) and s > 0 for s in scale) or not all(math.isfinite(s) for s in shift)):
                raise _no_multiscales(what, group)
            inside = group / inner
            shape = arrays.opened(inside, what, arrays.context(mode, threads)).shape
            spatial = "".join(a for a in axes if a in ("z", "y", "x"))
            others = [a for a in axes if a not in ("z", "y", "x")]
            if spatial not in ("zyx", "yx") or axes[-len(spatial):] != list(spatial) or len(others) > 1 or len(shape) != len(axes):
                raise Error(f"{what}: expected an image of (z, y, x) or (y, x), with channels before them at most, got the "
                            f"axes {axes} and the shape {tuple(shape)}. Open an array that is one")
            mm = {a: _MILLIMETERS.get(units.get(a, "millimeter"), 0.0) for a in spatial}
            strange = next((a for a in spatial if not mm[a]), None)
            if strange is not None:
                raise Error(f"{what}: expected a unit of OME-Zarr for the axis {strange}, {', '.join(_MILLIMETERS)} or none, got "
                            f"{units[strange]!r}. Write one of them into the attributes of {group}")
            place = {a: (int(n), s * mm[a], t * mm[a]) for a, n, s, t in zip(axes, shape, scale, shift) if a in spatial}
            z, y, x = (place.get(a, (1, 1.0, 0.0)) for a in "zyx")
            grid = Grid((z[0], y[0], x[0]), (z[1], y[1], x[1]), (z[2], y[2], x[2]))
            return ZarrArray(inside, what, axes=spatial, grid=grid, mode=mode, threads=threads)

        return array

    maps = sorted(p for p in (path / "labels").iterdir() if _multiscales(p) is not None) if (path / "labels").is_dir() else []
    return FileCase(name, level(path), level(maps[0]) if maps else None)
