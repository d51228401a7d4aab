# SPDX-License-Identifier: Apache-2.0
"""A Cohort is an open store: a mapping of cases, whose arrays are read on request."""
from __future__ import annotations

import bisect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..arguments import check_calls
from ..errors import Error
from . import arrays, foreign, settings, splits
from .case import Case, StoredCase
from .index import hash_of, read_index
from .tiles import Tiles

_NEIGHBORS = 250  # names on either side that are compared with an unknown one


def _nearest(name: object, names: Iterable[str]) -> str:
    """Returns words on the names that an unknown one may have been meant to be, among its neighbors in the order of names."""
    import difflib

    known = list(names)
    at = min(max(bisect.bisect(known, str(name)), _NEIGHBORS), max(len(known) - _NEIGHBORS, _NEIGHBORS))
    near = difflib.get_close_matches(str(name), known[at - _NEIGHBORS:at + _NEIGHBORS], 3, .5)
    return f". Nearest are {', '.join(near)}" if near else ""


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
        All cases of the store, if `cases` is a part of them.
    left : iterable of str, optional
        Names of the cases that were left out of the store, which a file of splits may still list.

    Examples
    --------
    >>> cohort = suture.store.open("cohort.zarr")  # doctest: +SKIP
    >>> train, val = cohort.split("train"), cohort.split("val")  # doctest: +SKIP
    >>> len(train), len(val)  # doctest: +SKIP
    (81, 19)
    """

    def __init__(self, path: Path, cases: Mapping[str, Case], io: str, whole: Mapping[str, Case] | None = None,
                 left: Iterable[str] = ()) -> None:
        self.path, self.io = path, io
        self._cases = dict(sorted(cases.items()))
        self._whole = self._cases if whole is None else whole
        self._left = frozenset(left)

    def __getitem__(self, name: str) -> Case:
        try:
            return self._cases[name]
        except KeyError:
            raise KeyError(f"suture: store: expected a case of {self.path}, got {name!r}{_nearest(name, self._cases)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._cases

    def get(self, name: str, default: Any = None) -> Any:
        """Returns a case.

        Parameters
        ----------
        name : str
            Its name.
        default : object, optional
            What is returned if there is no such case.

        Returns
        -------
        Case
            The case, or `default`.
        """
        return self._cases.get(name, default)

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
            If this is no store of suture, so that its cases have no manifests.
        """
        hashes = {name: case.sha256 for name, case in self._cases.items()}
        if any(value is None for value in hashes.values()):
            raise Error(f"suture: store: sha256: expected a store of suture, got files of others in {self.path}. suture "
                        "store build makes one of them")
        return hash_of(hashes)  # type: ignore[arg-type]

    def split(self, part: str, rule: splits.Rule | None = None, *, group: splits.Group | None = None) -> Cohort:
        """Returns the cases of a part of the whole store, without those that were left out.

        Parameters
        ----------
        part : str
            "train", "val", or a name in the file of splits.
        rule : float, (int, int), path or (path, int), optional
            The cases of "val": a fraction of all, chosen by the hashes of their names, or fold k of n, as (k, n) with k from 0. Or a
            JSON file {part: [names]}, or (file, k) for a file with a list of folds. None: the rule of the store, by default 0.2.
        group : mapping, callable or path, optional
            The patient of each case: {case: patient}, a JSON file of it, or a function of the name. All cases of a patient are in one
            part, and a file of parts that splits a patient is refused. None: the groups that set_split saved in the store; without
            any, each case is a patient.

        Returns
        -------
        Cohort
            The part.

        Raises
        ------
        Error
            If there is no such part, it is empty, a case has no patient, or a file has a patient in two parts.
        """
        names = splits.part_of(list(self._whole), part, *splits.given_or_stored(self.path, rule, group), self._left)
        return Cohort(self.path, {name: self._whole[name] for name in names}, self.io, self._whole, self._left)

    def tiles(self, *, size: int, mpp: float | Sequence[float], least_tissue: float = .5, per_slide: int | None = None,
              step: int | None = None, seed: int = 0, ratios: Sequence[float] = (), least_label: float = 0.0) -> Tiles:
        """Lists tiles of the slides: positions with tissue, each at several magnifications.

        Parameters
        ----------
        size : int
            Pixels of a tile along each axis, at each magnification.
        mpp : float or sequence of float
            Micrometers per pixel of each magnification, for which the store has levels. All boxes of a tile have the same center.
        least_tissue : float, default 0.5
            Least share of tissue in a tile, at the first magnification.
        per_slide : int, optional
            Most tiles of a slide, chosen by hashes of their positions; None: all.
        step : int, optional
            Pixels between the tiles of the first magnification; None: `size`, so that they do not overlap.
        seed : int, default 0
            Seed of this choice.
        ratios : sequence of float, optional
            Weights of label 0, label 1 and so on: how often a shuffled feed uses tiles that show each. Slides then need label maps.
            Without ratios, or without shuffling, all tiles are used equally often.
        least_label : float, default 0
            Least share of a label in a tile that shows it, at the first magnification; 0: one pixel.

        Returns
        -------
        Tiles
            A sequence of tiles, all within their slides; Tiles.arrays returns the pixels of a tile.

        Raises
        ------
        Error
            If a parameter is out of its range, a case is no slide, or has no level of a magnification, or ratios are given and it has
            no label map.
        """
        return Tiles(self._cases, size, mpp, least_tissue, per_slide, step, seed, ratios, least_label)

    def without(self, names: Any) -> Cohort:
        """Returns the cohort without some cases, such as those that verify names.

        Parameters
        ----------
        names : iterable of str
            Names of the cases that are left out. The store need not have them: a file of splits may list cases that it lacks, and
            verify names those that are gone.

        Returns
        -------
        Cohort
            The rest.

        Raises
        ------
        Error
            If `names` is one string, whose letters would be taken for names.
        """
        if isinstance(names, str):
            raise Error(f"suture: store: without: names: expected several names, got the string {names!r}. Pass [{names!r}]")
        left = set(names)
        return Cohort(self.path, {n: c for n, c in self._cases.items() if n not in left}, self.io,
                      {n: c for n, c in self._whole.items() if n not in left}, self._left | left)

    def __repr__(self) -> str:
        return f"Cohort({str(self.path)!r}, {len(self)} cases)"


@check_calls
def open(path: str | os.PathLike[str], split: str | None = None, *, rule: splits.Rule | None = None, group: splits.Group | None = None,
         verify: bool = False, io: str = "auto", threads: int | None = None) -> Cohort:
    """Opens a store, or a folder of other files, for reading. Only the index is read.

    Parameters
    ----------
    path : path
        A store of suture; or a folder of nnU-Net's preprocessed cases (b2nd or npz), of NIfTI files, of Zarr v2 or v3, in which
        stores of suture are left out.
    split : str, optional
        The part to open, such as "train" or "val"; None: all cases.
    rule : float, (int, int), path or (path, int), optional
        How cases are split, as in Cohort.split. Without `split` it has no effect.
    group : mapping, callable or path, optional
        The patient of each case, as in Cohort.split. Without `split` it has no effect.
    verify : bool, default False
        Whether each chunk is hashed when it is first read, and refused if it differs from the manifest.
    io : {"auto", "plain", "memmap", "direct"}
        How files are read. "auto" is "memmap" on a local file system, else "plain".
    threads : int, optional
        Number of decoding threads; None: one per processor.

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
