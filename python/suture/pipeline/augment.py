# SPDX-License-Identifier: Apache-2.0
"""A pipeline on its way through training: seed, epoch and step, and batches in and out."""
from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from typing import Any

from ..errors import Error
from .pipeline import Pipeline
from .plan import Plan


class Augment:
    """Calls a pipeline with the seed, epoch and ids of the step: a plain callable, without parameters or buffers.

    ids   those of batch["id"]. Without them a sample is its place in the stream, (step * world + rank) * batch + i, so
          draws depend on the step, the ranks and the size of batches
    A call counts a step; aug(batch, training=False) is evaluation, counts none and leaves nothing switched off.
    set_epoch reaches workers that live on, under fork and spawn, through memory that they share.
    """

    def __init__(self, pipeline: Pipeline, *, seed: int, rank: int = 0, world: int = 1, threads: int | None = None,
                 same_ids: bool = False) -> None:
        if not isinstance(pipeline, Pipeline):
            raise Error(f"suture: Augment: {pipeline!r} is no Pipeline")
        if not 0 <= rank < world:
            raise Error(f"suture: Augment: rank {rank} is not in 0 .. {world - 1}")
        self.pipeline, self.seed, self.rank, self.world = pipeline, int(seed), rank, world
        self.threads, self.same_ids = threads, same_ids
        self.step = 0
        self._epoch = multiprocessing.get_context("spawn").Value("q", 0, lock=False)

    @property
    def epoch(self) -> int:
        return int(self._epoch.value)

    def set_epoch(self, epoch: int) -> None:
        """Of the draws from now on."""
        if not 0 <= epoch < 1 << 32:
            raise Error(f"suture: Augment: epoch {epoch} is not in 0 .. 2^32 - 1")
        self._epoch.value = epoch

    def plan(self, batch: Any, *, training: bool = True) -> Plan:
        """What a call would run; counts no step."""
        has_ids = isinstance(batch, Mapping) and "id" in batch
        ids = None
        if training and not has_ids:
            count = self._size(batch)
            first = (self.step * self.world + self.rank) * count
            ids = list(range(first, first + count))
        return self.pipeline.plan(batch, seed=self.seed, epoch=self.epoch, ids=ids, training=training, threads=self.threads,
                                  same_ids=self.same_ids)

    def _size(self, batch: Any) -> int:
        given = batch[next(iter(self.pipeline.images))] if isinstance(batch, Mapping) else batch
        return len(given) if isinstance(given, (list, tuple)) else int(given.shape[0])

    def __call__(self, batch: Any, *, training: bool = True, out: Any = None) -> Any:
        made = self.plan(batch, training=training).run(out)
        if training:
            self.step += 1
        return made

    def position(self, i: int) -> int:
        """The place in the stream of sample i of a batch, where every step has one use of a case: a draw of sample_id."""
        return (self.step * self.world + self.rank) * (1 << 20) + i + 1

    def build(self, *, device: str = "cpu", order: str = "zyx", **dtypes: Any) -> None:
        """Compiles ahead what batches of these types need: build(image="int16", seg="uint8")."""
        self.pipeline.build(device=device, order=order, **dtypes)

    def state_dict(self) -> dict[str, int]:
        """From here a run goes on to the same bits."""
        return {"seed": self.seed, "epoch": self.epoch, "step": self.step}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Goes on where state_dict was asked."""
        if set(state) != {"seed", "epoch", "step"}:
            raise Error(f"suture: Augment: a state of {sorted(state)}, seed, epoch and step are needed")
        self.seed, self.step = int(state["seed"]), int(state["step"])
        self.set_epoch(int(state["epoch"]))

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if _spawning():
            return state
        state["_epoch"] = self.epoch
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self._epoch, int):
            epoch = self._epoch
            self._epoch = multiprocessing.get_context("spawn").Value("q", 0, lock=False)
            self._epoch.value = epoch

    def __deepcopy__(self, memo: Any) -> Augment:
        made = type(self)(self.pipeline, seed=self.seed, rank=self.rank, world=self.world, threads=self.threads,
                          same_ids=self.same_ids)
        made.load_state_dict(self.state_dict())
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pipeline!r}, seed={self.seed})"


def _spawning() -> bool:
    """Whether a process is being made, to which shared memory may be handed."""
    from multiprocessing.context import get_spawning_popen

    return get_spawning_popen() is not None
