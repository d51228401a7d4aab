# SPDX-License-Identifier: Apache-2.0
"""Statistics of a feed record where the time of each step goes, as text, JSON lines, or for TensorBoard and Weights & Biases."""
from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from ..arrays.whole_file import whole_file
from ..errors import Error

STAGES = ("plan", "memory", "read", "copy", "compute")


@dataclass
class Times:
    """Seconds of all threads together, and bytes.

    plan     planning: draws, and the boxes to read
    memory   waiting for memory
    read     reading and decoding boxes
    copy     queueing copies to the device
    compute  running the pipeline; on a GPU, queueing it
    bytes    size of the boxes that were read, uncompressed
    hits, misses   chunks found in the cache, and chunks not found there
    """

    plan: float = 0
    memory: float = 0
    read: float = 0
    copy: float = 0
    compute: float = 0
    bytes: int = 0
    hits: int = 0
    misses: int = 0

    def add(self, other: Times) -> None:
        """Adds the times of a part."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Step:
    """Times of one step: how long the loop waited for its batch, and how long threads worked on it."""

    step: int
    epoch: int
    samples: int
    wait: float  # seconds
    between: float  # seconds since the previous step
    times: Times


@dataclass
class Statistics:
    """The times of the steps of a feed.

    Attributes
    ----------
    steps : list of Step
        Every step, in order.
    left_out : dict of str
        The error message of each case that was left out.

    Examples
    --------
    >>> statistics = suture.feed.Statistics()
    >>> statistics.summary()["steps"]
    0
    """

    steps: list[Step] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Computes means over all steps.

        Returns
        -------
        dict
            Numbers of steps and samples. For each stage, such as plan_ms, the milliseconds per step of all threads together. wait_ms
            and step_ms of the loop, and MB, per step. MB_s, the rate at which one thread reads. hits, the share of chunks found in
            the cache. waited, the share of its time that the loop waited. left_out, the number of cases left out.
        """
        n = max(len(self.steps), 1)
        total = Times()
        for step in self.steps:
            total.add(step.times)
        wait, between = sum(s.wait for s in self.steps), sum(s.between for s in self.steps)
        looked = total.hits + total.misses
        return {"steps": len(self.steps), "samples": sum(s.samples for s in self.steps),
                **{f"{name}_ms": 1e3 * getattr(total, name) / n for name in STAGES},
                "wait_ms": 1e3 * wait / n, "step_ms": 1e3 * between / n, "MB": 1e-6 * total.bytes / n,
                "MB_s": 1e-6 * total.bytes / total.read if total.read else 0.0,
                "hits": total.hits / looked if looked else 0.0, "waited": wait / between if between else 0.0,
                "left_out": len(self.left_out)}

    def __str__(self) -> str:
        s = self.summary()
        stages = ", ".join(f"{name} {s[f'{name}_ms']:.1f}" for name in STAGES)
        left = f"; {s['left_out']} cases left out: {', '.join(self.left_out)}" if self.left_out else ""
        return (f"{s['steps']} steps of {s['step_ms']:.1f} ms, waited {100 * s['waited']:.1f} %; ms of all threads a step: {stages}; "
                f"{s['MB']:.1f} MB a step read at {s['MB_s']:.0f} MB/s a thread, {100 * s['hits']:.0f} % of chunks from the cache{left}")

    def records(self) -> list[dict[str, Any]]:
        """Returns the steps as plain values.

        Returns
        -------
        list of dict
            A record of JSON for each step, with its times in ms.
        """
        return [{"step": s.step, "epoch": s.epoch, "samples": s.samples, "wait_ms": 1e3 * s.wait, "step_ms": 1e3 * s.between,
                 **{f"{name}_ms": 1e3 * getattr(s.times, name) for name in STAGES}, "MB": 1e-6 * s.times.bytes, "hits": s.times.hits,
                 "misses": s.times.misses} for s in self.steps]

    def save(self, path: Any) -> None:
        """Writes JSON lines atomically: one for each step, and at the end the summary with the cases that were left out.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        Error
            If the file cannot be written.
        """
        lines = [*self.records(), {"summary": self.summary(), "left_out": self.left_out}]
        try:
            with whole_file(path) as beside, open(beside, "w") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        except OSError as problem:
            raise Error(f"suture: feed: {path}: the statistics cannot be written: {problem.strerror}") from None

    def to_tensorboard(self, writer: Any) -> None:
        """Adds every step to a writer of TensorBoard.

        Parameters
        ----------
        writer : SummaryWriter or path
            A writer as torch.utils.tensorboard has them, or a folder for one.

        Raises
        ------
        Error
            If TensorBoard is not installed.
        """
        own = not hasattr(writer, "add_scalar")
        if own:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise Error("suture: feed: TensorBoard is not installed: pip install torch tensorboard") from None
            writer = SummaryWriter(str(writer))
        for record in self.records():
            for name, value in record.items():
                if name != "step":
                    writer.add_scalar(f"feed/{name}", value, record["step"])
        if own:
            writer.close()

    def to_wandb(self, run: Any = None, **settings: Any) -> None:
        """Logs every step to a run of Weights & Biases, by default a new one in its offline mode: nothing leaves the machine.

        Parameters
        ----------
        run : wandb run, optional
            The run.
        **settings
            What wandb.init takes, for a new run.

        Raises
        ------
        Error
            If Weights & Biases is not installed.
        """
        own = run is None
        if own:
            try:
                import wandb  # type: ignore[import-not-found,unused-ignore]
            except ImportError:
                raise Error("suture: feed: Weights & Biases is not installed: pip install wandb") from None
            run = wandb.init(**{"mode": "offline", **settings})
        for record in self.records():
            run.log({f"feed/{name}": value for name, value in record.items() if name != "step"}, step=record["step"])
        if own:
            run.finish()


class Bar:
    """One line on a terminal that follows the steps, a few times a second."""

    def __init__(self, shown: bool | None) -> None:
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._last = 0.0

    def show(self, epoch: int, step: int, steps: int, statistics: Statistics, last: bool = False) -> None:
        """Shows the position of the feed."""
        now = time.perf_counter()
        if not self.shown or (now - self._last < .2 and not last):
            return
        self._last = now
        recent = statistics.steps[-50:]
        between, wait = sum(s.between for s in recent), sum(s.wait for s in recent)
        rate = 1e-6 * sum(s.times.bytes for s in recent) / between if between else 0.0
        filled = 20 * step // max(steps, 1)
        sys.stderr.write(f"\repoch {epoch} [{'#' * filled}{'.' * (20 - filled)}] {step}/{steps}  {1e3 * between / max(len(recent), 1):.0f} ms a step, "
                         f"{rate:.0f} MB/s, waited {100 * wait / between if between else 0:.0f} %  ")
        if last:
            sys.stderr.write("\n")
        sys.stderr.flush()
