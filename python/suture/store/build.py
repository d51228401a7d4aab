# SPDX-License-Identifier: Apache-2.0
"""This module builds a store from all cases of a folder, with worker processes, Dask or ranks."""
from __future__ import annotations

import concurrent.futures
import contextlib
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from ..arguments import check_calls
from ..errors import Error
from . import files
from .find import Found, find
from .index import named, write_index
from .settings import Settings, micrometers, prepare, resolutions, whole
from .task import Task
from .worker import Process, run

Answer = tuple[Task, dict[str, str]]
_TRIES = 2  # attempts at a case whose process died


@dataclass
class Report:
    """The result of a build, by case.

    Attributes
    ----------
    built, reused : list of str
        Names of the cases that were made, and of those that existed already and did not have to be made again.
    failed : dict of str
        A sentence for each case that could not be made.
    without_source : list of str
        Names of the cases of the store that the source does not have, whatever share of the cases this process makes. They stay in
        the store; `remove` removes them.
    skipped : list of str
        Files of the source in formats that are not read, and label maps without a case.
    doubtful : dict of str
        A sentence for each case that is in the store, but whose label map has so many labels that it may be a scan.
    sha256 : str
        Hash of the store after the build.

    Examples
    --------
    >>> suture.store.Report(built=["case_0007"]).failed
    {}
    """

    built: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    without_source: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    doubtful: dict[str, str] = field(default_factory=dict)
    sha256: str = ""


@check_calls
def build(source: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None, *, out: str | os.PathLike[str],
          chunk: int = 64,
          workers: int = 1, mpp: float | Sequence[float] | None = None, assume_mpp: float | None = None, profile: str = "small",
          rank: int | None = None, world: int | None = None, dask: Any = None,
          progress: Union[bool, Callable[[str], None]] = False) -> Report:
    """Makes a store from a folder of scans or slides, or completes one.

    A build can be interrupted at any time and started again. Cases are added atomically. A case is made again if the number of its
    source files or the name or size of one differs, or if a file was written, moved or replaced after the case was made and has
    another hash. A case whose source is gone stays in the store, and the report lists it. Equal sources give equal files for any
    number of processes.

    Parameters
    ----------
    source : path
        A folder of NIfTI files or other volumes of ITK, of DICOM series, which are recognized by the content of files, or of slides;
        or one such file. Files case_0000, case_0001 and so on are channels of one case, if all names end so; a case that lacks some
        has failed.
    labels : path, optional
        A folder of label maps with the names of the cases. Those of scans are volumes on the same grids. Those of slides are PNG or
        TIFF of one channel, with the resolution of the slide or a lower one.
    out : path
        The store: new, empty or built with the same settings.
    chunk : int, default 64
        Voxels of a chunk, which is compressed as a whole, along each axis: 64 for boxes of 160, 32 for boxes up to 128.
    workers : int, default 1
        Processes that make cases; 1: this process alone.
    mpp : float or sequence of float, optional
        Micrometers per pixel of each level of slides. By default the levels are those of the files.
    assume_mpp : float, optional
        Micrometers per pixel of slides that do not state it, or state more than 20, as pictures do whose resolution is that of a screen
        or of print. Without this they are refused.
    profile : {"small", "fast"}
        The codec: Blosc with zstd, or with lz4.
    rank, world : int, optional
        This process makes share `rank`, from 0, of `world` shares. All processes write to the same `out`.
    dask : str or distributed.Client, optional
        Address of the scheduler, or a client, of a cluster that makes the cases. Its workers need the same paths.
    progress : bool or callable, default False
        True prints finished cases, MB/s and the remaining time to stderr; a callable gets each such line.

    Returns
    -------
    Report
        The result for each case of this process.

    Raises
    ------
    Error
        If the source holds no case, an argument does not fit, or the store has other settings.

    Examples
    --------
    >>> report = suture.store.build("scans", labels="labels", out="cohort.zarr", workers=8)  # doctest: +SKIP
    >>> report.failed  # doctest: +SKIP
    {}
    """
    return build_found(source, labels, lambda found: None, out=out, chunk=chunk, workers=workers, mpp=mpp, assume_mpp=assume_mpp,
                       profile=profile, rank=rank, world=world, dask=dask, progress=progress)


def build_found(source: str | os.PathLike[str], labels: str | os.PathLike[str] | None, look: Callable[[Found], None], *,
                out: str | os.PathLike[str], chunk: int, workers: int, mpp: float | Sequence[float] | None, assume_mpp: float | None,
                profile: str, rank: int | None, world: int | None, dask: Any, progress: Union[bool, Callable[[str], None]]) -> Report:
    """Implements build. Before anything is written, `look` is called with the cases that were found."""
    levels = () if mpp is None else resolutions(mpp, "suture: store: mpp")
    assumed = None if assume_mpp is None else micrometers(assume_mpp, "suture: store: assume_mpp")
    settings = Settings(chunk=chunk, profile=profile, mpp=levels, assume_mpp=assumed)
    first, step = _share(rank, world)
    workers = whole(workers, "suture: store: workers", 1)
    found = find(source, labels)
    look(found)
    store = Path(out)
    with _written(store):
        prepare(store, settings)
        files.sweep(store)
    tasks = [found.tasks[name] for name in sorted(found.tasks)][first::step]
    report = Report(failed=dict(found.failed), skipped=found.skipped)
    _make(store, tasks, settings, workers, dask, report, _Progress(tasks, len(found.failed), progress))
    with _written(store):
        report.sha256 = write_index(store)
        report.without_source = sorted(named(store) - found.names)
        files.sweep(store)
    report.built.sort()
    report.reused.sort()
    return report


@contextlib.contextmanager
def _written(store: Path) -> Iterator[None]:
    """Turns a failure to write the store's own files into an Error. Failures of a case are reported where it is made."""
    try:
        yield
    except OSError as problem:
        raise Error(f"suture: store: expected to write {store}, got {problem.strerror or problem}. Free room, or name "
                    "another folder") from None


def _share(rank: int | None, world: int | None) -> tuple[int, int]:
    if (rank is None) != (world is None):
        raise Error("suture: store: expected rank and world together, got one of them")
    if rank is None or world is None:
        return 0, 1
    world = whole(world, "suture: store: world", 1)
    return whole(rank, "suture: store: rank", 0, world - 1), world


def _make(store: Path, tasks: list[Task], settings: Settings, workers: int, dask: Any, report: Report,
          progress: _Progress) -> None:
    """Makes cases and enters their results in a report."""
    def record(task: Task) -> dict[str, Any]:
        return {"store": str(store.resolve()), "task": task.to_json(), "settings": settings.to_json(),
                "threads": None if workers == 1 and dask is None else 1}

    if dask is not None:
        answers = _by_dask(tasks, record, dask)
    elif workers == 1:
        answers = ((task, run(record(task))) for task in tasks)
    else:
        answers = _by_processes(tasks, record, workers)
    for task, answer in answers:
        if answer["state"] == "failed":
            report.failed[task.name] = answer["sentence"]
        else:
            getattr(report, answer["state"]).append(task.name)
            if "doubt" in answer:
                report.doubtful[task.name] = answer["doubt"]
        progress.ended(task, answer["state"])


def _by_processes(tasks: list[Task], record: Callable[[Task], dict[str, Any]], workers: int) -> Iterator[Answer]:
    """Makes cases by worker processes, one for each thread. If a process dies, a new one tries its case once more."""
    processes, here = [], threading.local()

    def one(task: Task) -> Answer:
        if not hasattr(here, "process"):
            here.process = Process()
            processes.append(here.process)
        for _ in range(_TRIES):
            answer = here.process(record(task))
            if answer is not None:
                return task, answer
        return task, _lost(task)

    with concurrent.futures.ThreadPoolExecutor(min(workers, max(len(tasks), 1))) as pool:
        try:
            for future in concurrent.futures.as_completed([pool.submit(one, task) for task in tasks]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
            for process in processes:
                process.close()


def _lost(task: Task) -> dict[str, str]:
    return {"state": "failed", "sentence": f"{task.what}: expected its process to end by itself, but it was ended {_TRIES} "
            "times, as the system does where memory is short. Use fewer workers"}


def _by_dask(tasks: list[Task], record: Callable[[Task], dict[str, Any]], dask: Any) -> Iterator[Answer]:
    """Makes cases by a cluster, which retries a case whose worker is lost. A cluster gives all clients one result for equal keys, so
    the keys of every build are unique: another store or a changed source may have cases of the same names."""
    try:
        import distributed
    except ImportError:
        raise Error("suture: store: dask: expected distributed to be installed. pip install distributed") from None
    try:
        client = distributed.Client(dask) if isinstance(dask, str) else dask
    except OSError as problem:
        raise Error(f"suture: store: dask: expected a scheduler at {dask}, got {problem}. Start one, or pass its address") from None
    this = uuid.uuid4().hex
    try:
        futures = {}
        for task in tasks:
            asked = record(task)
            futures[client.submit(run, asked, key=f"suture store {asked['store']} {task.name} {this}", pure=False)] = task
        for future in distributed.as_completed(list(futures)):
            task = futures.pop(future)
            try:
                yield task, future.result()
            except distributed.scheduler.KilledWorker:
                yield task, _lost(task)
            future.release()
    finally:
        if client is not dask:
            client.close()


class _Progress:
    """Shows finished cases, MB/s and the remaining time, as lines."""

    def __init__(self, tasks: Sequence[Task], failed: int, to: Union[bool, Callable[[str], None]]) -> None:
        """`failed` is the number of cases that cannot be made, beside `tasks`."""
        self._show = _print if to is True else to
        self._cases, self._all_bytes = len(tasks) + failed, sum(task.bytes for task in tasks)
        self._ended = self._failed = failed
        self._ended_bytes = self._built_bytes = 0
        self._begin = time.monotonic()
        self._shown_at = -1e9

    def ended(self, task: Task, state: str) -> None:
        """Counts a case, and shows the progress."""
        self._ended += 1
        self._ended_bytes += task.bytes
        self._built_bytes += task.bytes * (state == "built")
        self._failed += state == "failed"
        now = time.monotonic()
        if self._show is False or (now - self._shown_at < .5 and self._ended < self._cases):
            return
        self._shown_at = now
        seconds = max(now - self._begin, 1e-9)
        rest = self._all_bytes - self._ended_bytes
        failed = f", {self._failed} failed" if self._failed else ""
        left = "" if rest and not self._built_bytes else f", {_time(rest * seconds / max(self._built_bytes, 1))} left"  # unknown before a case is made
        self._show(f"{self._ended} of {self._cases} cases{failed}, {self._built_bytes / seconds / 1e6:.1f} MB/s{left}")


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _print(line: str) -> None:
    """Prints a line, which on a terminal replaces the previous one."""
    end = "\r" if sys.stderr.isatty() and not line.endswith(" 0 s left") else "\n"
    print(f"suture: store: {line}\033[K" if sys.stderr.isatty() else f"suture: store: {line}", end=end, file=sys.stderr,
          flush=True)
