# SPDX-License-Identifier: Apache-2.0
"""A Feed makes batches of a cohort for a training loop, in threads of this process, bit-identical for any number of ranks."""
from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ..arrays.lazy import numpy_type
from ..arguments import check_calls, index_of
from ..backend import notice
from ..errors import CompileError, Error
from ..operations.kinds import shown
from ..pipeline.identity import sample_id
from ..pipeline.pipeline import Pipeline
from ..pipeline.plan import Plan
from .cache import Cache
from .cases import Cases
from .loading import Loading, Pending, Sample, told
from .order import Order
from .staging import MemoryShort, Staging, bytes_of, pinned, plain
from .statistics import Bar, Statistics, Step
from .tiles import for_magnifications
from .windows import Windows


@check_calls
class Feed:
    """Batches of a cohort for a training loop.

    Threads of this process plan each sample on the grid of its whole case, read the box that it needs, and run the pipeline.
    Each rank makes its share of the global batch. The bits of a batch depend on the cohort, the pipeline, the seed and the step,
    not on the number of threads or ranks.

    Parameters
    ----------
    cohort : Mapping or list
        Cases by name: a store, or a dict or list of dicts of Volumes, which may lie in memory.
    pipeline : Pipeline
        Pipeline that runs on the samples.
    batch : int, default 1
        Samples of the global batch, of all ranks together.
    seed : int, default 0
        Seed of the order and of all draws.
    device : str or torch.device, optional
        Device of the batches. By default they are tensors of torch on the CPU if torch is installed, and NumPy arrays if it is
        not; "numpy" asks for NumPy arrays.
    threads : int, optional
        Threads that make batches; by default as many as the process may use processors, at most 8.
    memory : int or str, default "4 GB"
        The most bytes of boxes, of batches prepared in advance, and of the cache, together, in this process.
    cache : int or str, optional
        The part of `memory` for decoded chunks of the volumes of a store, by default half. They are in shared memory, for all ranks of
        the machine. 0 caches none.
    steps_per_epoch : int, optional
        Steps of an epoch; by default one pass through the cohort.
    rank, world : int, optional
        Rank of this process and number of ranks. By default those of torch.distributed if it is running, otherwise those that
        torchrun, or srun, sets in the environment; a process alone in such an environment needs rank=0, world=1.
    training : bool, default True
        False skips random operations, takes the center with random crops, and takes the cases in the order of their names.
    windows : callable, optional
        With training=False: a function such as sliding_window_grid, which places windows on each case. Each window is a sample, and
        replaces the crop of the chain.
    on_error : {"raise", "leave_out"}, default "raise"
        What happens to a case that cannot be read: its error is raised in the loop, with its name, or the batch lacks it and
        `statistics().left_out` has its error.
    keys : dict, optional
        The member of a case for a key of the pipeline, as in {"seg": "labels"}. By default it is the key itself, if a case is a dict
        that has it; else "labels" for a label map, "image" for a single image, and the key itself for one of several images.
    extra : callable, optional
        extra(name, case) returns a dict of what per_sample names, where the case and its fingerprint do not have it.
    draws : int, default 1
        Samples of each case in a pass through the cohort.
    last : {"keep", "drop"}, default "keep"
        What happens to the last batch of an epoch that is one pass, if `batch` does not divide the pass: as in Order.
    shuffle : bool, optional
        Whether passes are shuffled; by default as `training`.
    bar : bool, optional
        Whether standard error shows a line with the progress; by default if it is a terminal.

    Raises
    ------
    Error
        If something does not fit, or is outside its range. In the loop: if a case cannot be read.

    Examples
    --------
    >>> scan = st.Volume(np.zeros((12, 12, 12), np.int16), axes="zyx", spacing=1)
    >>> seg = st.Volume(np.zeros((12, 12, 12), np.uint8), axes="zyx", spacing=1)
    >>> cohort = {"case 1": {"image": scan, "labels": seg}, "case 2": {"image": scan, "labels": seg}}
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> with suture.feed.Feed(cohort, train, batch=2, seed=42, steps_per_epoch=3, device="numpy", bar=False) as feed:
    ...     for epoch in feed.epochs(2):
    ...         for batch in epoch:
    ...             shape = batch["image"].shape
    >>> shape
    (2, 1, 8, 8, 8)

    With a store and PyTorch:

    >>> cohort = suture.store.open("cohort.zarr", split="train")     # doctest: +SKIP
    >>> with suture.feed.Feed(cohort, train, batch=16, seed=42, device="cuda") as feed:     # doctest: +SKIP
    ...     for epoch in feed.epochs(100):
    ...         for batch in epoch:
    ...             step(batch["image"], batch["seg"])
    """

    def __init__(self, cohort: Any, pipeline: Pipeline, *, batch: int = 1, seed: int = 0, device: Any = None, threads: int | None = None,
                 memory: int | str = "4 GB", cache: int | str | None = None, steps_per_epoch: int | None = None, rank: int | None = None, world: int | None = None,
                 training: bool = True, windows: Callable[..., Any] | None = None, on_error: Literal["raise", "leave_out"] = "raise",
                 keys: Mapping[str, str] | None = None, extra: Callable[[str, Any], Mapping[str, Any]] | None = None, draws: int = 1,
                 last: Literal["keep", "drop"] = "keep", shuffle: bool | None = None, bar: bool | None = None) -> None:
        what = "suture: feed"
        if not isinstance(pipeline, Pipeline):
            raise Error(f"{what}: pipeline: expected a Pipeline, got {shown(pipeline)}")
        if on_error not in ("raise", "leave_out"):
            raise Error(f"{what}: on_error: expected 'raise' or 'leave_out', got {shown(on_error)}")
        if windows is not None and training:
            raise Error(f"{what}: windows: expected none in training, got some. Pass training=False")
        self.rank, self.world = _place_of(rank, world)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        self.threads = _whole(threads, "threads", 256, default=min(cores, 8))
        self.draws = _whole(draws, "draws", 1 << 31)
        pipeline = for_magnifications(pipeline, cohort)
        self.pipeline, self.seed, self.training, self.on_error = pipeline, seed, training, on_error
        self._device = _device_of(device)
        self._cuda = self._device not in (None, "cpu") and str(self._device).startswith("cuda")
        laid = None if windows is None else Windows(pipeline, windows)
        self._cases = Cases(cohort, pipeline if laid is None else laid.chain, keys or {}, extra)
        self._windows = None if laid is None else laid.over(self._cases)
        shuffle = training if shuffle is None else shuffle
        self.order = Order(self._size(), batch, seed, steps_per_epoch, last, shuffle, self._cases.balance(self.draws) if shuffle else None)
        self.memory = bytes_of(memory, f"{what}: memory")
        self._cache: Cache | None = None
        if cache != 0 and self._cases.may_be_cached():
            share = self.memory // 2 if cache is None else bytes_of(cache, f"{what}: cache")
            if share >= self.memory:
                raise Error(f"{what}: cache: expected less than memory, {self.memory}, got {share}. Boxes and batches need some of it")
            self._cache = self._cases.cache = Cache(self._cases.sha256, share)
            self.memory -= share
        self._step = 0
        self._loaded: int | None = None  # the step of the state that was loaded last
        self._statistics = Statistics()
        self._bar = Bar(bar)
        self._loading: Loading | None = None
        self._process = os.getpid()
        self._closed = False
        self._worked = False  # whether any sample has succeeded
        self._guard = threading.Lock()
        self._empty: dict[str, Any] | None = None

    def _size(self) -> int:
        return len(self._cases) * self.draws if self._windows is None else len(self._windows)

    # The training loop iterates by these methods.

    @property
    def steps(self) -> int:
        """The steps of an epoch."""
        return self.order.steps

    def __len__(self) -> int:
        return self.order.steps

    def epochs(self, count: int) -> Iterator[Epoch]:
        """Iterates the epochs of a run from its present step until `count` epochs are complete, counted from the beginning of the run.

        Parameters
        ----------
        count : int
            How many epochs the whole run has.

        Yields
        ------
        Epoch
            Iterates its batches: dicts of the pipeline's keys and "id", the names of the cases; with windows also "start",
            where each window begins along (z, y, x).

        Raises
        ------
        Error
            If the count is not a positive whole number.
        """
        steps = self.order.steps
        end = _whole(count, "epochs", 1 << 32) * steps
        try:
            while self._step < end:
                number = self._step // steps
                yield Epoch(self, number, (number + 1) * steps, end)
                if self._step < (number + 1) * steps:  # the loop left the epoch before its end
                    self._stop()
                    self._step = (number + 1) * steps
        finally:
            self._stop()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterates the batches that are left of the current epoch: all of the next one, once it is complete.

        With training=False it iterates all batches of the epoch, also after a loop that was left early. Only after load_state_dict it
        begins where the state says.
        """
        if not self.training and self._step != self._loaded:
            self._stop()
            self._step -= self._step % self.order.steps
        for epoch in self.epochs(self._step // self.order.steps + 1):
            yield from epoch

    def _batches(self, first: int, end: int) -> Iterator[Pending]:
        """Yields the batches to make, in order."""
        for step in range(first, end):
            places = self.order.at(step, self.rank, self.world)
            samples = [self._sample(int(index), int(draw), places.epoch) for index, draw in zip(places.samples, places.draws)]
            yield Pending(step, samples)

    def _sample(self, index: int, draw: int, epoch: int) -> Sample:
        if self._windows is not None:
            number, start, in_axes = self._windows.at(index)
            name = self._cases.names[number]
            return Sample(name, sample_id(name), epoch, lambda: {**self._cases.batch(number), Windows.KEY: [in_axes]}, {"start": start})
        number, use = divmod(index, self.draws)
        name = self._cases.names[number]
        return Sample(name, sample_id(name, draw=draw * self.draws + use), epoch, lambda: self._cases.batch(number))

    # The threads of Loading call these methods: see Maker.

    def plan(self, samples: Sequence[Sample]) -> Plan:
        """Plans some samples without reading voxels.

        Parameters
        ----------
        samples : sequence of Sample
            Samples of one batch.

        Returns
        -------
        Plan
            The plan of the samples.
        """
        parts = [sample.made() for sample in samples]
        batch = {key: [part[key][0] for part in parts] for key in parts[0]}
        stream = None
        if self._cuda:
            import torch

            stream = torch.cuda.current_stream(self._device).cuda_stream
        pipeline = self.pipeline if self._windows is None else self._windows.pipeline
        return pipeline.plan(batch, seed=self.seed, epoch=samples[0].epoch, ids=[sample.id for sample in samples], training=self.training,
                             threads=1, same_ids=True, device=self._device, stream=stream)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Allocates the outputs of a key: with the channel as the last axis if the layout of the pipeline ends with C.

        Parameters
        ----------
        shape : tuple of int
            Shape of the batch: (sample, channel, axes).
        dtype : str
            Name of the element type.

        Returns
        -------
        array
            New memory on the device of the feed.
        """
        if self._has_channels_last(shape):
            shape = (shape[0], *shape[2:], shape[1])
        if self._device is None:
            return np.empty(shape, numpy_type(dtype, "suture: feed"))
        import torch

        return torch.empty(shape, dtype=getattr(torch, dtype), device=self._device)

    def as_run(self, made: Any) -> Any:
        """Returns outputs with the axes (sample, channel, axes), which a run writes.

        Parameters
        ----------
        made : array
            Memory from `empty`.

        Returns
        -------
        array
            A view of it.
        """
        if not self._has_channels_last(made.shape):
            return made
        return np.moveaxis(made, -1, 1) if self._device is None else made.movedim(-1, 1)

    def _has_channels_last(self, shape: Sequence[int]) -> bool:
        layout = self.pipeline.layout
        return layout is not None and layout.upper().endswith("C") and len(shape) >= 4

    def together(self) -> bool:
        """Tests whether the samples of a batch run together, as they do on a GPU.

        Returns
        -------
        bool
            Whether the batches are made on a GPU.
        """
        return bool(self._cuda)

    # These methods bring batches from the threads to the loop.

    def _next(self, end: int, asked: float) -> dict[str, Any]:
        """Returns the batch of the current step."""
        self._check_process()
        if self._loading is None:
            staging = Staging(self.memory, pinned if self._cuda else plain)
            self._staging = staging
            self._loading = Loading(self._batches(self._step, end), self, staging, self.threads, self._device if self._cuda else None)
        before, loading = time.perf_counter(), self._loading
        try:
            made = loading.next()
            wait = time.perf_counter() - before
            if made is None:
                raise Error("suture: feed: the feed was closed while a batch was asked for")
            try:
                batch = self._finished(made)
            finally:
                loading.done(made)
        except BaseException:
            self._stop()  # the loop did not get this batch, which is therefore made again if the loop goes on
            raise
        self._step += 1
        self._loaded = None
        self._statistics.steps.append(Step(made.step, made.step // self.order.steps, len(batch["id"]), wait, time.perf_counter() - asked, made.times))
        return batch

    def _finished(self, made: Pending) -> dict[str, Any]:
        """Returns a batch in the form for the loop, without failed samples."""
        for k in sorted(made.failed):
            problem = told(made.failed[k], made.samples[k].name)
            hopeless = not self._worked and len(made.failed) == len(made.samples)
            if self.on_error == "raise" or isinstance(problem, (CompileError, MemoryShort)) or hopeless:
                raise problem from made.failed[k]
            self._statistics.left_out[made.samples[k].name] = str(problem)
        kept = [k for k in range(len(made.samples)) if k not in made.failed]
        self._worked = self._worked or bool(kept)
        samples = [made.samples[k] for k in kept]
        pipeline = self.pipeline
        batch: dict[str, Any]
        if not kept:
            batch = self._without_samples()
        elif pipeline.fixed_size:
            assert made.outputs is not None
            rows = list(range(len(made.samples))) if made.rows is None else made.rows
            some = None if rows == kept else [j for j, k in enumerate(rows) if k not in made.failed]
            levels = {key: each if some is None else [level[some] for level in each] for key, each in made.outputs.items()}
            batch = {key: each if pipeline.has_levels(key) else each[0] for key, each in levels.items()}
        else:
            batch = {}
            for key in (*pipeline.images, *pipeline.labels):
                each = [part[key] for k in kept if (part := made.listed[k]) is not None]
                batch[key] = [list(level) for level in zip(*each)] if pipeline.has_levels(key) else each
        for key in (*pipeline.boxes, *pipeline.points, *(() if self._windows is None else ("start",))):
            batch[key] = [sample.also[key] for sample in samples]
        batch["id"] = [sample.name for sample in samples]
        if made.ready is not None:
            self._hand_over(batch, made.ready)
        return batch

    def _hand_over(self, batch: Mapping[str, Any], ready: Any) -> None:
        """Makes the CUDA stream of the loop wait for the batch, and tells torch's allocator that this stream uses its memory."""
        import torch

        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(ready)
        for value in batch.values():
            for each in value if isinstance(value, list) else [value]:
                tensor = getattr(each, "array", each)
                if isinstance(tensor, torch.Tensor):
                    tensor.record_stream(stream)

    def _without_samples(self) -> dict[str, Any]:
        """Returns an empty batch, for a rank without a share or if all samples failed."""
        if not self.pipeline.fixed_size:
            return {key: [] for key in (*self.pipeline.images, *self.pipeline.labels)}
        if self._empty is None:
            plan, made = self._any_plan(), {}
            for key in plan.items:
                levels, dtype = plan.shapes(key)
                each = [self.empty((0, *level[0]), dtype) for level in levels]
                made[key] = each if self.pipeline.has_levels(key) else each[0]
            self._empty = made
        return dict(self._empty)

    def _any_plan(self) -> Plan:
        """Returns the plan of the first sample that can be planned, which has the shapes of all samples."""
        problems: list[Exception] = []
        for index in range(0, self._size(), self.draws if self._windows is None else 1):
            sample = self._sample(index, 0, 0)
            try:
                return self.plan([sample])
            except CompileError:
                raise
            except Exception as problem:
                problems.append(told(problem, sample.name))
                if self.on_error == "raise":
                    break
        raise problems[0]

    # State, ends and reports.

    def state_dict(self) -> dict[str, Any]:
        """Returns the state that resumes the run with the same samples and the same bits, at any number of ranks and threads.

        Returns
        -------
        dict
            seed, step (batches that the loop has got), cohort, the hash of the cohort, and order: all settings that the order
            of the samples depends on.
        """
        order = self.order
        return {"seed": self.seed, "step": self._step, "cohort": self._cases.sha256,
                "order": {"size": order.size, "batch": order.batch, "steps_per_epoch": order.steps_per_epoch, "last": order.last,
                          "shuffle": order.shuffle, "draws": self.draws, "balance": None if order.balance is None else order.balance.sha256}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state, with the same samples and the same bits.

        Parameters
        ----------
        state : dict
            What state_dict returned.

        Raises
        ------
        Error
            If this is no state, or one of another cohort, seed or order, with which other samples would follow.
        """
        what, mine = "suture: feed: state", self.state_dict()
        if not isinstance(state, Mapping) or set(state) != set(mine) or not isinstance(state["order"], Mapping):
            got = ", ".join(map(str, state)) if isinstance(state, Mapping) else shown(state)
            raise Error(f"{what}: expected {', '.join(mine)}, got {got}. Pass what state_dict returned")
        if state["cohort"] != self._cases.sha256:
            raise Error(f"{what}: expected that of the cohort {self._cases.sha256[:16]}, got that of {str(state['cohort'])[:16]}. Open the "
                        "cohort that the run began with")
        given = {**state["order"], "seed": state["seed"]}
        for name, value in {**mine["order"], "seed": self.seed}.items():
            if given.get(name) != value:
                raise Error(f"{what}: {name}: expected {value!r}, as this feed has it, got {given.get(name)!r}. Make the feed as the "
                            "run began, or begin a new run")
        step = _whole(state["step"], "state: step", 1 << 63, least=0, default=0)
        self._stop()
        self._step = self._loaded = step

    def check_ranks(self) -> None:
        """Compares the cohorts and settings of all ranks of torch.distributed; every rank must call it.

        Raises
        ------
        Error
            If a rank has another cohort, seed, step or batch.
        """
        import torch.distributed as distributed

        state = self.state_dict()
        order = state.pop("order")
        mine = {**state, **order, "world": self.world}
        every: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(every, mine)
        for rank, other in enumerate(every):
            for name, value in mine.items():
                if other[name] != value:
                    raise Error(f"suture: feed: {name}: expected the same on all ranks, got {value} on rank {self.rank} and {other[name]} on "
                                f"rank {rank}. Give every rank the same cohort and settings")

    def statistics(self) -> Statistics:
        """Returns the times of all steps so far.

        Returns
        -------
        Statistics
            The times, which later steps are added to.
        """
        return self._statistics

    def whole(self, name: str) -> Plan:
        """Plans a case without its crop; its windows are placed on the grid of this plan.

        Parameters
        ----------
        name : str
            Name of the case.

        Returns
        -------
        Plan
            The plan, whose `inverse` maps a volume reassembled from windows back to the grid of the case.

        Raises
        ------
        Error
            If the feed has no windows.
        """
        if self._windows is None:
            raise Error("suture: feed: whole: expected a feed with windows=, got one without")
        return self._windows.whole(name)

    def window_grid(self, name: str) -> Any:
        """Returns the grid of the windows of a case, as reassemble takes it.

        Parameters
        ----------
        name : str
            Name of the case.

        Returns
        -------
        PatchGrid
            The grid of its windows.

        Raises
        ------
        Error
            If the feed has no windows.
        """
        if self._windows is None:
            raise Error("suture: feed: window_grid: expected a feed with windows=, got one without")
        return self._windows.grid(name)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise Error("suture: feed: expected the process that made the feed, got one that was forked from it, where its threads are "
                        "not. Make a feed in each process")
        if self._closed:
            raise Error("suture: feed: the feed is closed; make another one")

    def _stop(self) -> None:
        with self._guard:
            loading, self._loading = self._loading, None
        if loading is not None and self._process == os.getpid():
            loading.close()

    def close(self) -> None:
        """Ends the threads and frees the memory. Further calls do nothing."""
        self._closed = True
        self._stop()
        if self._cache is not None:
            self._cache.close()

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_loading", None) is not None:
            self._stop()
        if getattr(self, "_cache", None) is not None:
            self._cache.close()  # type: ignore[union-attr]

    def __repr__(self) -> str:
        return (f"Feed({len(self._cases)} cases, batch={self.order.batch}, seed={self.seed}, rank {self.rank} of {self.world}, "
                f"step {self._step}, {self.threads} threads)")


class Epoch:
    """The remaining batches of one epoch, from Feed.epochs.

    Parameters
    ----------
    feed : Feed
        The feed of the run.
    number : int
        Number of the epoch.
    end, last : int
        Steps at which the epoch and the run end.

    Examples
    --------
    >>> scan = st.Volume(np.zeros((12, 12, 12), np.int16), axes="zyx", spacing=1)
    >>> cohort = {"case 1": {"image": scan}, "case 2": {"image": scan}}
    >>> with suture.feed.Feed(cohort, st.Pipeline(image=[st.center_crop(size=8)]), device="numpy", bar=False) as feed:
    ...     [(epoch.number, len(epoch)) for epoch in feed.epochs(2)]
    [(0, 2), (1, 2)]
    """

    def __init__(self, feed: Feed, number: int, end: int, last: int) -> None:
        self.number = number
        self._feed, self._end, self._last = feed, end, last

    def __len__(self) -> int:
        return max(self._end - self._feed._step, 0)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        feed, steps = self._feed, self._feed.order.steps
        asked = time.perf_counter()
        while feed._step < self._end:
            batch = feed._next(self._last, asked)
            asked = time.perf_counter()
            done = feed._step - self.number * steps
            feed._bar.show(self.number, done, steps, feed._statistics, done == steps)
            yield batch


def _whole(value: Any, name: str, most: int, least: int = 1, default: int = 1) -> int:
    """Returns a whole number from least to most, `default` for None, and refuses anything else."""
    if value is None:
        return default
    number = None if isinstance(value, bool) else index_of(value)
    if number is None or not least <= number <= most:
        raise Error(f"suture: feed: {name}: expected a whole number from {least} to {most}, got {shown(value)}")
    return number


def _place_of(rank: int | None, world: int | None) -> tuple[int, int]:
    """Returns the rank of this process and the number of ranks."""
    if (rank is None) != (world is None):
        raise Error("suture: feed: rank: expected rank= and world= together, got one of them")
    if rank is None or world is None:
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank()), int(distributed.get_world_size())
        rank, world = _place_in_environment()
    if not 0 <= rank < world:
        raise Error(f"suture: feed: rank: expected 0 .. {world - 1}, got {rank}")
    return rank, world


def _place_in_environment() -> tuple[int, int]:
    """Returns the rank of this process and the number of ranks by the environment; (0, 1) if it has none.

    RANK and WORLD_SIZE may be left of another program. torchrun sets TORCHELASTIC_RUN_ID too; without it a warning is logged.
    SLURM_NTASKS belongs to a job, whose batch script is one process with SLURM_PROCID 0. srun also sets SLURM_STEP_NUM_TASKS.
    """
    for first, second in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if first not in os.environ or second not in os.environ:
            continue
        try:
            rank, world = int(os.environ[first]), int(os.environ[second])
        except ValueError:
            raise Error(f"suture: feed: {first}, {second}: expected whole numbers in the environment, got {os.environ[first][:20]!r} and "
                        f"{os.environ[second][:20]!r}") from None
        if second == "SLURM_NTASKS" and rank == 0 and world > 1:
            raise Error(f"suture: feed: rank: expected srun to start the {world} tasks of the Slurm job, got a process that it did not start. "
                        "Start it by srun, or pass rank=0, world=1 for a process alone")
        if first == "RANK" and world > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
            notice.once(f"suture: feed: this process makes only the share of rank {rank} of {world}, as RANK and WORLD_SIZE of the environment say. "
                        "Pass rank=0, world=1 for a process alone")
        return rank, world
    return 0, 1


def _device_of(device: Any) -> Any:
    """Returns a device of torch, or None for NumPy."""
    if device == "numpy" or (device is None and importlib.util.find_spec("torch") is None):
        return None
    try:
        import torch
    except ImportError:
        raise Error(f"suture: feed: device: {shown(device)} needs torch, which is not installed: pip install torch. device=\"numpy\" gives "
                    "NumPy arrays") from None
    try:
        made = torch.device("cpu" if device is None else device)
    except (RuntimeError, TypeError):
        raise Error(f"suture: feed: device: expected a device of torch or \"numpy\", got {shown(device)}") from None
    if made.type not in ("cpu", "cuda"):
        raise Error(f"suture: feed: device: expected \"cpu\", \"cuda\" or \"numpy\", got {shown(device)}")
    if made.type == "cuda" and made.index is None:
        made = torch.device("cuda", torch.cuda.current_device())
    return made if made.type == "cuda" else "cpu"
