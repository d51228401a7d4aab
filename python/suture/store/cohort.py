# SPDX-License-Identifier: Apache-2.0
"""An open store: a mapping of cases, whose arrays are read on request."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..arguments import check_calls
from ..errors import Error
from . import arrays, foreign, settings, splits
from .case import Case, StoredCase
from .index import hash_of, read_index
from .tiles import Tiles


@check_calls
class Cohort(Mapping[str, Case]):
    """Cases by name, in the order of names, from `open`.

    Parameters
    ----------
    path : Path
        The store.
    cases : mapping of Case
        The cases by name.
    io : {"plain", "memmap", "direct"}
        How its files are read.
    whole : mapping of Case, optional
        All cases of the store, where these are a part.

    Examples
    --------
    >>> cohort = suture.store.open("cohort.zarr")  # doctest: +SKIP
    >>> train, val = cohort.split("train"), cohort.split("val")  # doctest: +SKIP
    >>> len(train), len(val)  # doctest: +SKIP
    (81, 19)
    """

    def __init__(self, path: Path, cases: Mapping[str, Case], io: str, whole: Mapping[str, Case] | None = None) -> None:
        self.path, self.io = path, io
        self._cases = dict(sorted(cases.items()))
        self._whole = self._cases if whole is None else whole

    def __getitem__(self, name: str) -> Case:
        try:
            return self._cases[name]
        except KeyError:
            import difflib

            near = difflib.get_close_matches(str(name), self._cases, 3, .5)
            nearest = f". Nearest are {', '.join(near)}" if near else ""
            raise KeyError(f"suture: store: expected a case of {self.path}, got {name!r}{nearest}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._cases)

    def __len__(self) -> int:
        return len(self._cases)

    @property
    def sha256(self) -> str:
        """The hash of the data set: SHA-256 of "NAME SHA256\\n" of each case, in the order of names.

        Raises
        ------
        Error
            If the files are those of others, which have no manifests.
        """
        hashes = {name: case.sha256 for name, case in self._cases.items()}
        if any(value is None for value in hashes.values()):
            raise Error(f"suture: store: sha256: expected a store of suture, got files of others in {self.path}. suture "
                        "store build makes one of them")
        return hash_of(hashes)  # type: ignore[arg-type]

    def split(self, part: str, rule: splits.Rule | None = None, *, group: splits.Group | None = None) -> Cohort:
        """Returns the cases of a part, of the whole store.

        Parameters
        ----------
        part : str
            "train", "val", or a name in the file of splits.
        rule : float, (int, int), path or (path, int), optional
            A fraction of the cases, chosen by the hashes of their names, is "val"; fold k of n is "val"; a file of JSON names the
            cases of each part, and of fold k where it lists folds. None: the rule of the store, and a fifth where it has none.
        group : mapping, callable or path, optional
            The patient of each case: {case: patient}, a file of JSON that says so, or a function of the name. Patients are split
            then, so that none is in two parts; a file of parts that has one in two is refused. None: the groups of the store,
            which set_split keeps; without them each case is a patient.

        Returns
        -------
        Cohort
            The part.

        Raises
        ------
        Error
            If there is no such part, it is empty, a case has no patient, or a file has a patient in two parts.
        """
        own, known = splits.stored(self.path)
        names = splits.part_of(list(self._whole), part, own if rule is None else rule, known if group is None else group)
        return Cohort(self.path, {name: self._whole[name] for name in names}, self.io, self._whole)

    def tiles(self, *, size: int, mpp: float | Sequence[float], least_tissue: float = .5, per_slide: int | None = None,
              step: int | None = None, seed: int = 0, ratios: Sequence[float] = (), least_label: float = 0.0) -> Tiles:
        """Lists tiles of the slides: places with tissue, each at several magnifications.

        Parameters
        ----------
        size : int
            Pixels of a tile along each axis, at each magnification.
        mpp : float or sequence of float
            Micrometers a pixel; the store has levels of them. The tiles of one place have one center.
        least_tissue : float, default 0.5
            The part of the first magnification's tile that is tissue, at least.
        per_slide : int, optional
            At most so many of a slide, chosen by the hashes of their places; None: all.
        step : int, optional
            Pixels between the tiles of the first magnification; None: `size`, so that they do not overlap.
        seed : int, default 0
            Another one chooses others.
        ratios : sequence of float, optional
            How often a feed draws tiles that show label 0, label 1 and so on, as crop_by_class has it for patches. Slides then
            need label maps. Without ratios, and without chance, all tiles come equally often.
        least_label : float, default 0
            The part of the first magnification's tile that a label has at least where the tile shows it; 0: one pixel.

        Returns
        -------
        Tiles
            A sequence of tiles, which are all within their slides; Tiles.arrays gives the pixels of one.

        Raises
        ------
        Error
            If a case is no slide, or has no level of a magnification, or ratios are given and it has no label map.
        """
        return Tiles(self._cases, size, mpp if isinstance(mpp, Sequence) else (mpp,), least_tissue, per_slide, step, seed, ratios,
                     least_label)

    def without(self, names: Any) -> Cohort:
        """Returns the cohort without some cases, such as those that verify names.

        Parameters
        ----------
        names : iterable of str
            Names of the cases that are left out.

        Returns
        -------
        Cohort
            The rest.
        """
        left = set(names)
        return Cohort(self.path, {n: c for n, c in self._cases.items() if n not in left}, self.io,
                      {n: c for n, c in self._whole.items() if n not in left})

    def __repr__(self) -> str:
        return f"Cohort({str(self.path)!r}, {len(self)} cases)"


@check_calls
def open(path: str | os.PathLike[str], split: str | None = None, *, rule: splits.Rule | None = None, group: splits.Group | None = None,
         verify: bool = False, io: str = "auto", threads: int | None = None) -> Cohort:
    """Opens a store, or files of others, for reading; nothing is read but the index.

    Parameters
    ----------
    path : path
        A store of suture; or a folder of nnU-Net's preprocessed cases (b2nd or npz), of NIfTI files, of Zarr v2 or v3.
    split : str, optional
        The part that is wanted, "train" or "val" say; None: all cases.
    rule : float, (int, int), path or (path, int), optional
        How cases are split, as in Cohort.split.
    group : mapping, callable or path, optional
        The patient of each case, as in Cohort.split.
    verify : bool, default False
        True hashes each chunk when it is first read, and refuses one that is not that of the manifest.
    io : {"auto", "plain", "memmap", "direct"}
        How files are read. auto: memory maps on a file system of this machine, plain reads elsewhere.
    threads : int, optional
        Threads that decode; None: as many as processors.

    Returns
    -------
    Cohort
        A mapping of cases.

    Raises
    ------
    Error
        If there is nothing to open, the store is of another version, or the part is empty.

    Examples
    --------
    >>> cohort = suture.store.open("cohort.zarr", split="train")  # doctest: +SKIP
    >>> cohort["case_0007"].image[100:164, 200:264, 200:264].shape  # doctest: +SKIP
    (64, 64, 64)
    """
    root = Path(path)
    if not root.exists():
        raise Error(f"suture: store: path: expected a store or a folder of cases, got {str(root)!r}, which is not there")
    mode = arrays.io_mode(root, io)
    if settings.stored(root) is not None:
        cases: dict[str, Case] = {name: StoredCase(root, name, sha256, mode, threads, verify) for name,
                                  sha256 in read_index(root).items()}
    else:
        if verify:
            raise Error(f"suture: store: verify: expected a store of suture, which has hashes, got files of others in {root}")
        cases = foreign.cases_of(root, mode, threads)
    if not cases:
        raise Error(f"suture: store: path: expected at least one case, got none in {str(root)!r}")
    cohort = Cohort(root, cases, mode)
    return cohort if split is None else cohort.split(split, rule, group=group)
