# SPDX-License-Identifier: Apache-2.0
"""Threads make the batches of a feed: they plan a sample, read its boxes, and run the pipeline, which writes into the batch."""
from __future__ import annotations

import atexit
import math
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..arrays.lazy import as_tensor, in_order, numpy_type, read_box
from ..errors import CompileError, Error
from ..pipeline.plan import Plan
from .cache import counted
from .staging import MemoryShort, Staging, Stopped
from .statistics import Times

_MOST_AHEAD = 64  # most batches that are prepared in advance, however much memory is free


@dataclass
class Sample:
    """One sample of a batch: its case, and the id and epoch that its draws depend on."""

    name: str
    id: int
    epoch: int
    made: Callable[[], dict[str, Any]]  # opens the case as a batch of one sample
    also: dict[str, Any] = field(default_factory=dict)  # its boxes, points and start of a window, by key


class Maker(Protocol):
    """The part of a feed that its threads call."""

    def plan(self, samples: Sequence[Sample]) -> Plan: ...
    def empty(self, shape: tuple[int, ...], dtype: str) -> Any: ...
    def as_run(self, made: Any) -> Any: ...
    def together(self) -> bool: ...


@dataclass
class Pending:
    """A batch in preparation."""

    step: int
    samples: Sequence[Sample]
    left: int = 0  # units that are not done
    outputs: dict[str, list[Any]] | None = None  # by key the full map, then each level: (sample, ...), if all have one shape
    rows: list[int] | None = None  # the index of the sample in each row of the outputs; None: all, in order
    listed: list[dict[str, Any] | None] = field(default_factory=list)  # otherwise the outputs of each sample
    failed: dict[int, Exception] = field(default_factory=dict)  # by the index of the sample
    held: int = 0  # bytes of the outputs, as Staging counts them
    times: Times = field(default_factory=Times)
    ready: Any = None  # a CUDA event after which the batch is complete


@dataclass
class _Unit:
    ticket: int
    batch: Pending
    places: range


class Loading:
    """The threads that prepare batches in advance, in order. `close` ends them.

    Parameters
    ----------
    batches : iterator of Pending
        The batches in order, whose samples are not read yet.
    maker : Maker
        Plans samples and allocates batches.
    staging : Staging
        Memory for boxes.
    threads : int
        Number of threads.
    device : torch device or None
        The CUDA device of the batches; None on the CPU.
    """

    def __init__(self, batches: Iterator[Pending], maker: Maker, staging: Staging, threads: int, device: Any = None) -> None:
        self._maker, self._staging, self._device = maker, staging, device
        self._units = self._cut(batches)
        self._ahead: deque[Pending] = deque()
        self._changed = threading.Condition()
        self._taking = threading.Lock()
        self._stopped = False
        self._broken: BaseException | None = None  # an error of `batches` itself
        self._threads = [threading.Thread(target=self._work, name=f"suture-feed-{k}", daemon=True) for k in range(threads)]
        _running.add(self)
        for thread in self._threads:
            thread.start()

    def next(self) -> Pending | None:
        """Waits for the next batch and returns it, or None after the last. The caller passes it to `done` afterwards."""
        with self._changed:
            while True:
                if self._ahead and self._ahead[0].left == 0:
                    found = self._ahead.popleft()
                    self._changed.notify_all()
                    return found
                if self._broken is not None:
                    raise self._broken
                if not self._ahead and not any(thread.is_alive() for thread in self._threads):
                    return None
                self._changed.wait(1)

    def done(self, batch: Pending) -> None:
        """Stops counting the memory of a batch, which the training loop now owns."""
        self._staging.release(batch.held)

    def close(self) -> None:
        """Ends the threads and waits for them."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._staging.stop()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    # The threads run these methods.

    def _cut(self, batches: Iterator[Pending]) -> Iterator[_Unit]:
        """Yields units of work in order, with tickets from 0: one for each sample, or one for each batch if its samples run together."""
        ticket = 0
        for batch in batches:
            count = len(batch.samples)
            each = max(count, 1) if self._maker.together() else 1
            places = [range(k, min(k + each, count)) for k in range(0, count, each)]
            batch.left, batch.listed = len(places), [None] * count
            with self._changed:
                while len(self._ahead) >= _MOST_AHEAD and not self._stopped:
                    self._changed.wait(1)
                if self._stopped:
                    return
                self._ahead.append(batch)
                self._changed.notify_all()
            for some in places:
                yield _Unit(ticket, batch, some)
                ticket += 1

    def _work(self) -> None:
        stream = None
        if self._device is not None:
            import torch

            stream = torch.cuda.Stream(self._device)
        while not self._stopped:
            try:
                with self._taking:
                    unit = next(self._units, None)
            except BaseException as problem:
                with self._changed:
                    self._broken = problem
                    self._changed.notify_all()
                return
            if unit is None:
                break
            try:
                self._make(unit, stream)
            except Stopped:
                return
            except Exception as problem:
                for k in unit.places:
                    unit.batch.failed[k] = problem
            finally:
                self._staging.skip(unit.ticket)
                with self._changed:
                    unit.batch.left -= 1
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _make(self, unit: _Unit, stream: Any) -> None:
        if stream is None:
            self._fill(unit, None)
            return
        import torch

        with torch.cuda.stream(stream):
            self._fill(unit, stream)
            event = torch.cuda.Event()
            event.record(stream)
        event.synchronize()  # waits until the batch is complete
        unit.batch.ready = event

    def _planned(self, unit: _Unit) -> tuple[list[int], Plan | None]:
        """Returns the indices of the samples of a unit that can be planned, and their plan, None if there are none. Others are entered
        as failed."""
        batch, places = unit.batch, list(unit.places)
        try:
            return places, self._maker.plan([batch.samples[k] for k in places])
        except Exception:
            if len(places) == 1:
                raise
        sound = []
        for k in places:
            try:
                self._maker.plan([batch.samples[k]])
                sound.append(k)
            except CompileError:
                raise
            except Exception as problem:
                batch.failed[k] = problem
        return sound, self._maker.plan([batch.samples[k] for k in sound]) if sound else None

    def _fill(self, unit: _Unit, stream: Any) -> None:
        batch, times = unit.batch, Times()
        begin = time.perf_counter()
        rows, plan = self._planned(unit)
        if plan is None:
            return
        name = f"suture: feed: case {batch.samples[rows[0]].name!r}"
        ends = plan.source_boxes()
        wanted = {key: [_box_to_read(plan, key, i, ends[i]) for i in range(len(rows))] for key in plan.items}
        shapes = {key: plan.shapes(key) for key in plan.items}
        held = sum(math.prod(shape) * numpy_type(dtype, name).itemsize for each, dtype in shapes.values() for level in each for shape in level)
        times.plan += time.perf_counter() - begin
        begin = time.perf_counter()
        buffers = self._staging.grant(unit.ticket, [size for each in wanted.values() for _, size, _, _ in each], held,
                                      lambda: batch.held, name)
        times.memory += time.perf_counter() - begin
        made = False
        try:
            boxes = self._read(batch, rows, plan, wanted, buffers, times)
            self._run(unit, rows, plan, shapes, boxes, stream, times)
            with self._changed:
                batch.held += held
                batch.times.add(times)
            made = True
        finally:
            if stream is not None:
                stream.synchronize()  # the copies from the buffers have to end before these are reused
            self._staging.give(buffers)
            if not made:
                self._staging.release(held)

    def _read(self, batch: Pending, rows: Sequence[int], plan: Plan, wanted: dict[str, list[Any]], buffers: Sequence[Any],
              times: Times) -> dict[str, list[np.ndarray]]:
        made: dict[str, list[np.ndarray]] = {}
        ready = iter(buffers)
        for key, each in wanted.items():
            items = plan.items[key]
            assert items.sources is not None
            made[key] = []
            for k, source, (shape, size, low, high) in zip(rows, items.sources, each):
                box = next(ready)[:size].view(numpy_type(items.dtype, key)).reshape(shape)
                made[key].append(box)
                begin = time.perf_counter()
                try:
                    read_box(source, low, high, "suture: feed", box)
                except Exception as problem:
                    if len(rows) == 1:
                        raise
                    batch.failed[k] = problem  # the other samples of the batch still run
                    box.fill(0)
                times.read += time.perf_counter() - begin
                times.bytes += size
        hits, misses = counted()
        times.hits += hits
        times.misses += misses
        return made

    def _run(self, unit: _Unit, rows: list[int], plan: Plan, shapes: Any, boxes: dict[str, Any], stream: Any, times: Times) -> None:
        batch, pipeline = unit.batch, plan.pipeline
        if stream is not None:
            begin = time.perf_counter()
            boxes = {key: [as_tensor(box, plan.items[key].dtype).to(self._device, non_blocking=True) for box in each] for key, each in boxes.items()}
            times.copy += time.perf_counter() - begin
        begin = time.perf_counter()
        out = None
        if pipeline.fixed_size:
            together = self._maker.together()
            if together:
                batch.rows = rows
            k, n = (0, len(rows)) if together else (unit.places.start, len(batch.samples))
            outputs = self._outputs(batch, shapes, n)
            views = {key: [self._maker.as_run(level)[k:k + len(rows)] for level in each] for key, each in outputs.items()}
            out = {key: each if pipeline.has_levels(key) else each[0] for key, each in views.items()}
        made = plan.run(out, boxes=boxes)
        for j, k in enumerate(rows):
            if not pipeline.fixed_size:
                batch.listed[k] = {key: [level[j] for level in made[key]] if pipeline.has_levels(key) else made[key][j] for key in plan.items}
            for key in (*pipeline.boxes, *pipeline.points):
                batch.samples[k].also[key] = made[key][j]
        times.compute += time.perf_counter() - begin

    def _outputs(self, batch: Pending, shapes: Any, count: int) -> dict[str, list[Any]]:
        """Returns the outputs of a batch, and allocates them for its first unit."""
        with self._changed:
            if batch.outputs is None:
                batch.outputs = {key: [self._maker.empty((count, *level[0]), dtype) for level in each]
                                 for key, (each, dtype) in shapes.items()}
            return batch.outputs


_running: weakref.WeakSet[Loading] = weakref.WeakSet()


@atexit.register
def _end() -> None:
    """Ends all threads before the interpreter shuts down the modules that they use."""
    for loading in list(_running):
        loading.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # a child has none of the threads


def _box_to_read(plan: Plan, key: str, i: int, box: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[tuple[int, ...], int, Any, Any]:
    """Returns the shape of the box of a sample, its bytes, its first voxel and its end, in the order of the sample's axes."""
    items = plan.items[key]
    assert items.sources is not None
    source = items.sources[i]
    low, high = in_order(box[0], items.order), in_order(box[1], items.order)
    shape = (*source.shape[:len(source.shape) - len(low)], *(b - a for a, b in zip(low, high)))
    return shape, math.prod(shape) * numpy_type(items.dtype, key).itemsize, low, high


def told(problem: Exception, name: str) -> Exception:
    """Returns an error that names the case; errors of the whole feed stay as they are."""
    if isinstance(problem, (CompileError, MemoryShort)):
        return problem
    text = str(problem) or type(problem).__name__
    if f"case {name!r}" in text:  # the name alone may be part of a word or a number
        return problem if isinstance(problem, Error) else Error(text)
    kind = "" if isinstance(problem, Error) else f"{type(problem).__name__}: "
    return Error(f"suture: feed: case {name!r}: {kind}{text.removeprefix('suture: ')}")
