# SPDX-License-Identifier: Apache-2.0
"""A case of a cohort has arrays that are read on request, and attributes."""
from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ..arrays.volume import Grid, Volume
from ..errors import Error
from ..operations.results import StainBasis, results_from_json
from . import settings
from .arrays import LazyArray, ZarrArray
from .manifest import Check, Manifest


class Case:
    """A case of a cohort: arrays that are read on request, and attributes.

    Attributes
    ----------
    name : str
        Name of the case.
    image : LazyArray
        Image of the case.
    labels : LazyArray or None
        Label map; None without one.
    mask : LazyArray or None
        A mask of the body or the tissue, on a coarser grid; None if there is none.
    classes : dict or None
        Number of voxels of each label; None without labels.
    fingerprint : dict
        Shape, spacing and statistics of intensities; empty if there are none.
    sha256 : str or None
        Hash of its manifest; None for a case that is not in a store of suture.

    Examples
    --------
    >>> cohort = suture.store.open("cohort.zarr")  # doctest: +SKIP
    >>> case = cohort["case_0007"]  # doctest: +SKIP
    >>> case.image.shape, case.classes  # doctest: +SKIP
    ((120, 512, 512), {0: 31193000, 1: 264280})
    """

    name: str
    image: LazyArray
    labels: LazyArray | None = None
    mask: LazyArray | None = None
    classes: Mapping[int, int] | None = None
    fingerprint: Mapping[str, Any] = {}
    sha256: str | None = None

    def volume(self, which: str = "image") -> Volume:
        """Returns an array of the case as a Volume whose voxels are read box by box.

        Parameters
        ----------
        which : {"image", "labels", "mask"}
            The array.

        Returns
        -------
        Volume
            The array on its grid.

        Raises
        ------
        Error
            If the case has no such array.
        """
        array = getattr(self, which) if which in ("image", "labels", "mask") else None
        if array is None:
            have = [name for name in ("image", "labels", "mask") if getattr(self, name) is not None]
            raise Error(f"suture: store: case {self.name!r}: expected one of {', '.join(have)}, got {which!r}")
        volume = Volume(array, axes=array.axes, grid=array.grid)
        volume.placed = array.placed
        return volume

    def __repr__(self) -> str:
        return f"Case({self.name!r}, {self.image!r}{'' if self.labels is None else ', labels'})"


def _check(found: Mapping[str, Any]) -> None:
    """Raises KeyError, TypeError or ValueError if the attributes of a case are not as the store writes them."""
    kind, source = found["kind"], found["source"]
    maps = [found[name] for name in ("mask", "labels") if found.get(name) is not None]
    counts = [each["counts"] for each in maps if kind == "slide" and "counts" in each]
    grids = [found["grid"], *found.get("levels", []), *(each["grid"] for each in (*maps, *counts))]
    for grid in grids:
        made = Grid.from_json(grid)
        numbers = [float(n) for n in (*made.extents, *made.spacing, *made.origin, *made.direction)]
        if (len(made.extents), len(made.spacing), len(made.origin), len(made.direction)) != (3, 3, 3, 9) or not all(map(math.isfinite, numbers)):
            raise ValueError
        if any(type(n) is not int or n < 1 for n in made.extents) or any(n <= 0 for n in made.spacing):
            raise ValueError
    scaling, places = found.get("scaling"), [each["path"] for each in (*maps, *counts)]
    if (kind not in ("volume", "slide") or any(".." in Path(place).parts or Path(place).is_absolute() for place in places)
            or (scaling is not None and not (len(scaling) == 2 and all(math.isfinite(n) for n in scaling)))
            or not isinstance(found["fingerprint"], dict) or any(mpp <= 0 for mpp in found.get("mpp", []))
            or len(found.get("mpp", [])) != len(found.get("levels", [])) or (kind == "slide") != bool(found.get("levels"))):
        raise ValueError
    if "stains" in found["fingerprint"] and not isinstance(results_from_json(found["fingerprint"]["stains"]), StainBasis):
        raise ValueError
    for label, count in (found.get("classes") or {}).items():
        int(label), int(count)
    for file in (*source["files"], *([source["labels"]] if "labels" in source else []), *source.get("labels_data", [])):
        int(file["bytes"])


class _Labels(ZarrArray):
    """A label map whose ClassIndex is stored beside it."""

    index: ZarrArray

    @cached_property
    def class_index(self) -> bytes | None:  # type: ignore[override]
        return self.index[...].tobytes()


class StoredCase(Case):
    """A case of a store of suture."""

    def __init__(self, store: Path, name: str, sha256: str, mode: str, threads: int | None, verify: bool) -> None:
        self.name, self.sha256 = name, sha256
        self._store, self._mode, self._threads, self._verify = store, mode, threads, verify

    @property
    def what(self) -> str:
        """Returns the text that messages about the case begin with."""
        return f"suture: store: case {self.name!r}"

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest of the case, after a check of its hash in the index."""
        manifest = Manifest(self._store, self.name)
        if manifest.sha256 != self.sha256:
            raise Error(f"{self.what}: expected the manifest {str(self.sha256)[:12]}, got {manifest.sha256[:12]}. Open the "
                        "store again if it was built anew meanwhile; else run suture store repair")
        return manifest

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes that the store wrote for the case, after a check of their hash."""
        path = self._store / self.name / "zarr.json"
        try:
            expected = self.manifest.files["zarr.json"]["sha256"]  # first, since a case that was removed has no manifest
            data = path.read_bytes()
            if hashlib.sha256(data).hexdigest() != expected:
                raise ValueError
            found: Mapping[str, Any] = json.loads(data)["attributes"]["suture"]
            version = found["store"]
            if version == settings.VERSION:
                _check(found)
        except Error:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError):
            raise Error(f"{self.what}: expected its attributes as they were stored in {path}, got others. suture store repair makes the case "
                        "again") from None
        if version != settings.VERSION:
            raise Error(f"{self.what}: expected version {settings.VERSION} of the store, got {version}. Build the store again")
        return found

    def _array(self, path: str, grid: Mapping[str, Any], axes: str, scaling: Any = None,
               kind: type[ZarrArray] = ZarrArray) -> ZarrArray:
        problem = next(self.manifest.problems(path + "/"), None)
        if problem is not None:
            raise Error(f"{self.what}: expected the files of its manifest, but {problem}. suture store repair makes the case "
                        "again")
        check = Check(self.manifest, path, self._verify)
        return kind(self._store / self.name / path, self.what, axes=axes, grid=Grid.from_json(grid), mode=self._mode,
                         threads=self._threads, scaling=None if scaling is None else (scaling[0], scaling[1]), check=check)

    @property
    def _axes(self) -> str:
        return "yx" if self.attributes["kind"] == "slide" else "zyx"

    @cached_property
    def image(self) -> LazyArray:  # type: ignore[override]
        return self.levels[0]

    @cached_property
    def levels(self) -> list[ZarrArray]:
        """The levels of a slide, from the finest; a volume has one."""
        grids = self.attributes.get("levels", [self.attributes["grid"]])
        return [self._array(str(k), grid, self._axes, self.attributes.get("scaling")) for k, grid in enumerate(grids)]

    @property
    def mpp(self) -> tuple[float, ...]:
        """Micrometers per pixel of each level of a slide; () for a volume."""
        return tuple(self.attributes.get("mpp", ()))

    def _map(self, name: str) -> LazyArray | None:
        known = self.attributes.get(name)
        return None if known is None else self._array(known["path"] + "/0", known["grid"], self._axes)

    @cached_property
    def labels(self) -> LazyArray | None:  # type: ignore[override]
        known = self.attributes.get("labels")
        if known is None:
            return None
        if self._axes == "yx":
            return self.label_levels[0]
        labels = self._array(known["path"] + "/0", known["grid"], self._axes, kind=_Labels)
        assert isinstance(labels, _Labels)
        labels.index = self._array(settings.CLASS_INDEX, Grid().to_json(), "x")
        return labels

    @cached_property
    def label_levels(self) -> list[ZarrArray]:
        """The label map of a slide on each of its levels; [] without one."""
        known = self.attributes.get("labels")
        if known is None or self._axes != "yx":
            return []
        return [self._array(f"{known['path']}/{k}", grid, "yx") for k, grid in enumerate(self.attributes["levels"])]

    @property
    def label_counts(self) -> ZarrArray | None:
        """Pixels of each label in the cells of a slide, (label, y, x); None without labels."""
        known = self.attributes.get("labels")
        if known is None or self._axes != "yx":
            return None
        return self._array(known["counts"]["path"], known["counts"]["grid"], "yx")

    @cached_property
    def mask(self) -> LazyArray | None:  # type: ignore[override]
        return self._map("mask")

    @property
    def classes(self) -> Mapping[int, int] | None:  # type: ignore[override]
        counts = self.attributes.get("classes")
        return None if counts is None else dict(sorted((int(label), int(count)) for label, count in counts.items()))

    @cached_property
    def fingerprint(self) -> Mapping[str, Any]:  # type: ignore[override]
        found: Mapping[str, Any] = self.attributes["fingerprint"]
        return {**found, "stains": results_from_json(found["stains"])} if "stains" in found else found
