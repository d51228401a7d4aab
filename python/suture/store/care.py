# SPDX-License-Identifier: Apache-2.0
"""This module verifies a store, repairs it from its sources, removes cases, and describes its contents."""
from __future__ import annotations

import concurrent.futures
import difflib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arguments import check_calls
from ..errors import Error
from . import arrays, files, settings, splits
from .case import StoredCase
from .find import find
from .index import cases_of, hash_of, named, write_index, written_index
from .make import make_case
from .manifest import Manifest


def _store(path: str | os.PathLike[str]) -> tuple[Path, settings.Settings]:
    store = Path(path)
    found = settings.stored(store)
    if found is None:
        raise Error(f"suture: store: expected a store of suture, got {str(store)!r}. suture store build makes one")
    return store, found


@check_calls
def verify(path: str | os.PathLike[str], *, workers: int = 1, cases: Iterable[str] | None = None,
           progress: Callable[[str], None] | None = None) -> dict[str, str]:
    """Reads every byte of a store and compares it with the manifests.

    Parameters
    ----------
    path : path
        The store.
    workers : int, default 1
        Number of threads, which hash at the same time.
    cases : iterable of str, optional
        Names of the cases to verify; by default all.
    progress : callable, optional
        Called with the name of each case that was read.

    Returns
    -------
    dict
        A sentence for each damaged case, which names its damaged chunks; empty if nothing is damaged. Cohort.without
        leaves these cases out, and repair makes them again.

    Raises
    ------
    Error
        If this is no store of suture, or one of another version.

    Examples
    --------
    >>> damaged = suture.store.verify("cohort.zarr", workers=8)  # doctest: +SKIP
    >>> list(damaged)  # doctest: +SKIP
    []
    """
    store, _ = _store(path)
    workers = settings.whole(workers, "suture: store: workers", 1)
    index = written_index(store)
    names = sorted(named(store) if cases is None else set(cases))

    def look(name: str) -> tuple[str, str | None]:
        begin = f"suture: store: case {name!r}: expected it as it was stored, but "
        try:
            manifest = Manifest(store, name)
            if index.get(name, manifest.sha256) != manifest.sha256:
                return name, begin + "its manifest has not the hash of the index"
            found = manifest.damage()
        except (Error, OSError) as problem:
            return name, begin + str(problem).removeprefix(f"suture: store: case {name!r}: ")
        return name, begin + " and ".join(found) + ". suture store repair makes it again" if found else None

    damaged = {}
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for name, sentence in pool.map(look, names):
            if sentence is not None:
                damaged[name] = sentence
            if progress is not None:
                progress(name)
    return damaged


@dataclass
class Repaired:
    """The result of a repair.

    Attributes
    ----------
    repaired : list of str
        Names of the cases that were made again.
    failed : dict of str
        A sentence for each case that could not be made again.

    Examples
    --------
    >>> suture.store.Repaired(repaired=["case_0007"], failed={}).repaired
    ['case_0007']
    """

    repaired: list[str]
    failed: dict[str, str]


@check_calls
def repair(path: str | os.PathLike[str], source: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None, *,
           workers: int = 1) -> Repaired:
    """Makes damaged cases again from their sources. A source is refused if its case would have another hash than before.

    Parameters
    ----------
    path : path
        The store.
    source, labels : path
        As in `build`.
    workers : int, default 1
        Number of threads of verification.

    Returns
    -------
    Repaired
        The cases that were made again, and those that failed.

    Raises
    ------
    Error
        If this is no store of suture, or the source does not exist.

    Examples
    --------
    >>> result = suture.store.repair("cohort.zarr", "scans", "labels", workers=8)  # doctest: +SKIP
    >>> result.failed  # doctest: +SKIP
    {}
    """
    store, layout = _store(path)
    index = written_index(store)
    damaged = verify(store, workers=workers)
    found = find(source, labels) if damaged else None
    result = Repaired([], {})
    for name in damaged:
        assert found is not None
        task = found.tasks.get(name)
        if task is None:
            result.failed[name] = found.failed.get(name, f"suture: store: case {name!r}: expected its source in "
                                                         f"{os.fspath(source)!r}, got none")
            continue
        try:
            make_case(store, task, layout, again=True, expected=index.get(name))
            result.repaired.append(name)
        except Error as problem:
            result.failed[name] = str(problem)
    if result.repaired or not index:  # an index that is damaged or missing is empty
        write_index(store, unchanged=result.failed)
    return result


@check_calls
def remove(path: str | os.PathLike[str], names: Iterable[str]) -> str:
    """Removes cases from a store, such as those of a patient who withdrew, and their names from its split and its groups.

    Each case is removed completely or not at all. If that is interrupted, give the same names again. A store that is open elsewhere
    has to be opened again.

    Parameters
    ----------
    path : path
        The store.
    names : iterable of str
        Names of the cases, also of damaged ones.

    Returns
    -------
    str
        The hash of the store without these cases. A feed refuses to continue from a state of the former cohort.

    Raises
    ------
    Error
        If this is no store of suture, `names` is one string, or one is no case of the store. Nothing is removed then.

    Examples
    --------
    >>> suture.store.remove("cohort.zarr", ["case_0007"])  # doctest: +SKIP
    """
    store, _ = _store(path)
    if isinstance(names, str):
        raise Error(f"suture: store: remove: names: expected several names, got the string {names!r}. Pass [{names!r}]")
    gone, known = list(dict.fromkeys(names)), named(store)
    unknown = next((name for name in gone if name not in known), None)
    if unknown is not None:
        near = difflib.get_close_matches(str(unknown), sorted(known), 3, .5)
        raise Error(f"suture: store: remove: names: expected cases of {store}, got {unknown!r}. "
                    + (f"Nearest are {', '.join(near)}" if near else "suture.store.open lists them"))
    try:
        splits.leave_out(store, gone)
        for name in gone:
            _remove(store, name)
        files.sweep(store)  # also what a former removal left, if it was interrupted
        return write_index(store)
    except OSError as problem:
        raise Error(f"suture: store: remove: expected to write {store}, got {problem.strerror or problem}. Allow it and run the same "
                    "command again") from None


def _remove(store: Path, name: str) -> None:
    """Removes a case: first all of its files at once, then its manifest, so that a removal that was interrupted is known by it."""
    lock = f"case {name}"
    with files.lock(store, lock):
        folder = files.work(store, lock) / "old"
        if (store / name).exists():
            folder.parent.mkdir(parents=True)
            os.rename(store / name, folder)
            files.sync(store)
            files.remove(folder)
        files.remove(files.manifests(store) / f"{name}.json")
        files.sync(files.manifests(store))


@check_calls
def info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describes the contents of a store.

    Parameters
    ----------
    path : path
        The store.

    Returns
    -------
    dict
        "cases", "sha256", "settings"; "bytes" of the store and "source_bytes" of its sources; "labels", "spacings" and "dtypes", the
        types of the stored voxels, with the number of cases that have each; and "io", how files are read.

    Raises
    ------
    Error
        If this is no store of suture, or one of another version.

    Examples
    --------
    >>> suture.store.info("cohort.zarr")["cases"]  # doctest: +SKIP
    100
    """
    store, layout = _store(path)
    hashes, total, source_bytes = {}, 0, 0
    labels: dict[int, int] = {}
    spacings: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for name in cases_of(store):
        manifest = Manifest(store, name)
        hashes[name] = manifest.sha256
        total += manifest.bytes
        case = StoredCase(store, name, manifest.sha256, "plain", None, False)
        case.manifest = manifest  # so that it is not read again
        known = case.attributes
        source = known["source"]
        source_bytes += sum(f["bytes"] for f in [*source["files"], *([source["labels"]] if "labels" in source else []), *source.get("labels_data", [])])
        for label in known.get("classes", {}):
            labels[int(label)] = labels.get(int(label), 0) + 1
        spacing = " x ".join(f"{v:.4g}" for v in known["grid"]["spacing"])
        spacings[spacing] = spacings.get(spacing, 0) + 1
        kind = str(arrays.json_object(store / name / "0" / "zarr.json")["data_type"])
        kinds[kind] = kinds.get(kind, 0) + 1
    return {"cases": len(hashes), "sha256": hash_of(hashes), "settings": layout.to_json(), "bytes": total, "source_bytes": source_bytes,
            "labels": dict(sorted(labels.items())), "spacings": spacings, "dtypes": kinds, "io": arrays.io_mode(store, "auto")}
