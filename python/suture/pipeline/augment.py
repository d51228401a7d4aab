# SPDX-License-Identifier: Apache-2.0
"""An Augment runs a pipeline in training: it keeps seed, epoch and step, and augments batches."""
from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Mapping
from typing import Any, overload

from ..arguments import check_calls
from ..arrays.files import is_image
from ..arrays.volume import Volume
from ..errors import Error
from ..operations.kinds import shown
from .batch import Batch
from .identity import Repeats, check_draws, whole_number
from .pipeline import Pipeline
from .plan import Plan
from .roles import batch_of


_counting = threading.Lock()  # guards the step of every Augment; an Augment itself is copied and pickled, which a lock cannot be


def _forget_lock() -> None:
    """Replaces the lock in a child made by fork, since another thread may have held it."""
    global _counting
    _counting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)

_NEVER = -1  # an epoch that was not set; its draws are those of epoch 0


@check_calls
class Augment:
    """A pipeline with the seed, the epoch and the step of a training: a plain callable, without parameters or buffers.

    The draws of a sample depend on the seed, the epoch and its id, batch["id"]. Without ids, sample i has the id
    (step * world + rank) * n + i, where n is the size of the largest batch so far, so that draws depend on the step, the rank and
    the size of batches. Worker processes need ids, since each would count steps for itself.
    Each call advances the step by one, from any thread. aug(batch, training=False) evaluates, and neither advances the step nor
    affects later calls. set_epoch also reaches persistent workers, forked or spawned, through shared memory.

    Parameters
    ----------
    pipeline : Pipeline
        The pipeline to run.
    seed : int
        Seed of all draws, in 0 .. 2^64 - 1.
    rank, world : int, optional
        Rank of this process in distributed training, and the number of processes. With ids, draws do not depend on them.
    threads : int, optional
        Threads of a call; by default all of the processor, and one in worker processes.
    same_ids : bool, default False
        Whether samples of a batch may have the same id, and so the same draws.

    Raises
    ------
    Error
        If `pipeline` is no Pipeline, the seed is no whole number in 0 .. 2^64 - 1, or the rank is not in 0 .. world - 1.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> aug = st.Augment(train, seed=42)
    >>> scan = np.arange(1728, dtype=np.int16).reshape(1, 12, 12, 12)
    >>> batch = {"image": [scan], "seg": [(scan > 40).astype(np.uint8)], "id": ["case 17"]}
    >>> aug.set_epoch(3)
    >>> aug(batch)["image"].shape
    (1, 1, 8, 8, 8)
    >>> aug.state_dict()
    {'seed': 42, 'epoch': 3, 'step': 1, 'batch': 0}
    """

    def __init__(self, pipeline: Pipeline, *, seed: int, rank: int = 0, world: int = 1, threads: int | None = None,
                 same_ids: bool = False) -> None:
        if not isinstance(pipeline, Pipeline):
            raise Error(f"suture: Augment: pipeline: expected a Pipeline, got {shown(pipeline)}. Pass Pipeline(image=[...])")
        if not 0 <= rank < world:
            raise Error(f"suture: Augment: rank {rank} is not in 0 .. {world - 1}")
        self.pipeline, self.rank, self.world = pipeline, rank, world
        self.seed, _ = check_draws(seed, 0, "suture: Augment")
        self.threads, self.same_ids = threads, same_ids
        self.step, self._largest = 0, 0
        self._epoch = multiprocessing.get_context("spawn").Value("q", _NEVER, lock=False)
        self._repeats = Repeats()

    @property
    def epoch(self) -> int:
        """The epoch that draws depend on, 0 where none was set."""
        return max(int(self._epoch.value), 0)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch that random draws depend on.

        Parameters
        ----------
        epoch : int
            The epoch, in 0 .. 2^32 - 1.

        Raises
        ------
        Error
            If it is not in that range.
        """
        _, self._epoch.value = check_draws(self.seed, epoch)

    def plan(self, batch: Any, *, training: bool = True) -> Plan:
        """Plans what the next call would run, and does not advance the step.

        Parameters
        ----------
        batch : dict, array or list
            As in Pipeline.plan.
        training : bool, default True
            Whether random operations draw; if not, they are skipped, and random crops take the center.

        Returns
        -------
        Plan
            The plan of the batch.

        Raises
        ------
        Error
            If the batch does not fit the pipeline, or has no ids in a worker process.
        """
        return self._plan_at(self.step, batch, training)

    def _plan_at(self, step: int, batch: Any, training: bool) -> Plan:
        has_ids = isinstance(batch, Mapping) and "id" in batch
        ids = self.places(self._size(batch), step) if training and not has_ids else None
        plan = self.pipeline.plan(batch, seed=self.seed, epoch=self.epoch, ids=ids, training=training, threads=self.threads,
                                  same_ids=self.same_ids)
        if training and has_ids:
            self.look_for_repeats(plan)
        return plan

    def look_for_repeats(self, plan: Plan) -> None:
        """Warns once if the first sample of the first batch comes again though no epoch was ever set.

        Parameters
        ----------
        plan : Plan
            A plan of a batch with ids, for training.
        """
        if plan.ids and self._epoch.value == _NEVER and self.pipeline.is_random:
            self._repeats.look(self.seed, plan.ids, "Call set_epoch at the start of each epoch")

    def places(self, count: int, step: int) -> list[int]:
        """Returns ids for a batch that has none: positions of its samples among those of all steps and ranks.

        A batch smaller than one before it, such as the last of an epoch, gets ids as if it had that size, so that no id comes twice. With
        several ranks this holds if batches of a step have the same size in all of them.

        Parameters
        ----------
        count : int
            Number of samples of the batch.
        step : int
            The step of the batch.

        Returns
        -------
        list of int
            An id for each sample.

        Raises
        ------
        Error
            In a worker process, such as one of a DataLoader, since every worker counts steps for itself.
        """
        if multiprocessing.current_process().daemon:
            raise Error("suture: Augment: id: expected ids in a worker process, got none. Give batch[\"id\"], which "
                        "suture.torch.with_ids adds to a data set, or augment outside of the workers")
        with _counting:
            self._largest = max(self._largest, count)
            first = (step * self.world + self.rank) * self._largest
        return list(range(first, first + count))

    def _size(self, batch: Any) -> int:
        """Returns the number of samples of a batch. A Volume, a path or an image alone is one."""
        first = next(iter(self.pipeline.images))
        given = batch_of(batch, self.pipeline.keys, first)[0][first]
        if isinstance(given, (list, tuple)):
            return len(given)
        shape = getattr(given, "shape", ())
        return 1 if isinstance(given, Volume) or is_image(given) or not shape else int(shape[0])

    @overload
    def __call__(self, batch: Mapping[str, Any], *, training: bool = True, out: Any = None, stack: bool = True) -> Batch: ...
    @overload
    def __call__(self, batch: Any, *, training: bool = True, out: Any = None, stack: bool = True) -> Any: ...

    def __call__(self, batch: Any, *, training: bool = True, out: Any = None, stack: bool = True) -> Any:
        """Augments a batch and advances the step; with training=False, evaluates it and leaves the step.

        Parameters
        ----------
        batch : dict, array or list
            As in Pipeline.plan, with ids under "id" if there are any.
        training : bool
            Whether random operations draw; if not, they are skipped, and random crops take the center.
        out : dict of arrays, optional
            Arrays to write to, by key, instead of new ones.
        stack : bool
            Whether samples of one output shape are returned as one array.

        Returns
        -------
        Batch or array
            As Plan.run returns it.

        Raises
        ------
        Error
            If the batch does not fit the pipeline, or has no ids in a worker process. The step then does not advance.
        """
        if not training:
            return self._plan_at(0, batch, False).run(out, stack=stack)
        with _counting:
            step = self.step
            self.step = step + 1
        try:
            return self._plan_at(step, batch, True).run(out, stack=stack)
        except BaseException:
            with _counting:
                if self.step == step + 1:  # no other thread has advanced
                    self.step = step
            raise

    def build(self, *, device: str = "cpu", order: str = "zyx", **dtypes: Any) -> None:
        """Compiles the modules for batches of some types ahead of time.

        Parameters
        ----------
        device, order, **dtypes
            As in Pipeline.build: build(image="int16", seg="uint8").

        Raises
        ------
        Error
            As Pipeline.build.
        CompileError
            As Pipeline.build.
        """
        self.pipeline.build(device=device, order=order, **dtypes)

    def state_dict(self) -> dict[str, int]:
        """Returns what is needed to resume with bit-identical results.

        Returns
        -------
        dict
            The seed, the epoch, the step, and the size of the largest batch that had no ids.
        """
        with _counting:
            return {"seed": self.seed, "epoch": self.epoch, "step": self.step, "batch": self._largest}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Resumes from a state, with bit-identical results.

        Parameters
        ----------
        state : dict
            What state_dict returned.

        Raises
        ------
        Error
            If the state has other members, or one of them does not fit. Nothing has changed then.
        """
        what = "suture: Augment: state"
        if not isinstance(state, Mapping) or set(state) != {"seed", "epoch", "step", "batch"}:
            given = sorted(state, key=str) if isinstance(state, Mapping) else shown(state)
            raise Error(f"{what}: expected the members seed, epoch, step and batch, got {given}. Pass what state_dict returned")
        seed, epoch = check_draws(state["seed"], state["epoch"], what)
        step, batch = (whole_number(state[name], f"{what}: {name}") for name in ("step", "batch"))
        for name, value in (("step", step), ("batch", batch)):
            if value < 0:
                raise Error(f"{what}: {name}: expected 0 or more, got {value}. Pass what state_dict returned")
        self.seed, self._epoch.value, self.step, self._largest = seed, epoch, step, batch

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if _spawning():
            return state
        state["_epoch"] = int(self._epoch.value)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self._epoch, int):
            self._epoch = multiprocessing.get_context("spawn").Value("q", self._epoch, lock=False)

    def __deepcopy__(self, memo: Any) -> Augment:
        made = type(self)(self.pipeline, seed=self.seed, rank=self.rank, world=self.world, threads=self.threads,
                          same_ids=self.same_ids)
        made.load_state_dict(self.state_dict())
        made._epoch.value = self._epoch.value
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pipeline!r}, seed={self.seed})"


def _spawning() -> bool:
    """Tests whether objects are pickled for a process that is being spawned, the only one that may receive shared memory."""
    from multiprocessing.context import get_spawning_popen

    return get_spawning_popen() is not None
