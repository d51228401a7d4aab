# SPDX-License-Identifier: Apache-2.0
"""This trainer for nnU-Net v2 uses the memory that is available, and stops early once the validation Dice no longer rises."""
from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch._dynamo import OptimizedModule

from ..errors import Error
from ..feed.staging import bytes_of
from .trainer import nnUNetTrainerSuture, nnUNetTrainerSutureDeterministic, nnUNetTrainerSutureFeed

_GPU_SHARE = .9  # share of a GPU's memory for training; the rest is for batches that are prepared in advance


class _StandsStill(Exception):
    """Raised to end a training whose validation Dice no longer rises."""


class nnUNetTrainerSutureEfficient(nnUNetTrainerSutureFeed):
    """Trains as nnUNetTrainerSutureFeed, but with the largest batch that fits the memory and with early stopping.

    An epoch keeps its number of samples: with a batch k times as large as planned it has 1 / k of the iterations. The initial
    learning rate is multiplied by the square root of k, which preserves the variance of a step (A. Krizhevsky, "One weird trick
    for parallelizing convolutional neural networks", 2014). The batch size is written to the log and to checkpoints, and a resumed
    training keeps it. On CUDA, mixed precision is as in nnU-Net.

    Attributes
    ----------
    patience : int
        Epochs without a new best smoothed Dice of validation after which the training ends.
    least_gain : float
        Least increase of a new best.
    memory : int, str or None
        The most memory of the process if it trains on the CPU, such as "8 GB"; None: what it has now, plus
        half of what is free.
    most_batch : int
        The largest batch of one process that is tried.
    bfloat16 : bool
        Whether mixed precision is used on the CPU, where it is off by default.

    Examples
    --------
    >>> class Patient(suture.nnunet.efficient.nnUNetTrainerSutureEfficient):
    ...     patience = 100
    """

    patience = 60
    least_gain = 1e-3
    memory: int | str | None = None
    most_batch = 64
    bfloat16 = False
    found: dict[str, Any] | None = None

    initial_lr: float
    num_iterations_per_epoch: int
    num_val_iterations_per_epoch: int

    def initialize(self) -> None:
        super().initialize()
        planned = self.configuration_manager.batch_size
        if self.found is None:
            batch, why = self._largest_batch()
            world = distributed.get_world_size() if self.is_ddp else 1
            if self.is_ddp:
                every: list[Any] = [None] * world
                distributed.all_gather_object(every, batch)
                batch = min(every)
            self.found = {"batch": batch * world, "why": why}
        whole = int(self.found["batch"])
        ratio = whole / planned
        self.configuration_manager.configuration["batch_size"] = whole
        self.oversample_foreground_percent = self.oversample_of_batch
        self._set_batch_size_and_oversample()
        self.num_iterations_per_epoch = max(1, math.ceil(self.num_iterations_per_epoch / ratio))
        self.num_val_iterations_per_epoch = max(1, math.ceil(self.num_val_iterations_per_epoch / ratio))
        before, self.initial_lr = self.initial_lr, self.initial_lr * math.sqrt(ratio)
        self.optimizer, self.lr_scheduler = self.configure_optimizers()
        self.my_init_kwargs["suture_found"] = self.found
        self.print_to_log_file(f"suture: batch {whole} instead of the planned {planned}, {self.found['why']}; learning rate {self.initial_lr:.5f} "
                               f"instead of {before:.5f}; {self.num_iterations_per_epoch} iterations of training and "
                               f"{self.num_val_iterations_per_epoch} of validation an epoch")

    def load_checkpoint(self, filename_or_checkpoint: Any) -> None:
        if not self.was_initialized:
            checkpoint = filename_or_checkpoint
            if isinstance(checkpoint, (str, os.PathLike)):
                checkpoint = torch.load(checkpoint, map_location="cpu", weights_only=False)
            self.found = checkpoint["init_args"].get("suture_found")
        super().load_checkpoint(filename_or_checkpoint)
        self.my_init_kwargs["suture_found"] = self.found

    def _largest_batch(self) -> tuple[int, str]:
        """Returns the largest batch of this process, and the reason for it as words of the log."""
        if self.device.type == "cuda":
            whole = torch.cuda.get_device_properties(self.device).total_memory
            limit = int(_GPU_SHARE * whole)
            return largest(self._try_on_cuda, limit, self.most_batch), f"the largest that fits {limit / 1e9:.1f} GB of the GPU"
        if self.device.type != "cpu":
            return self.batch_size, f"as planned, since {self.device.type} does not say its memory"
        limit = bytes_of(self.memory, "suture: nnunet: memory") if self.memory is not None else resident("VmRSS") + available() // 2
        return largest(self._try_on_cpu, limit, self.most_batch), f"the largest that fits {limit / 1e9:.2f} GB of memory"

    def _try_on_cuda(self, batch: int) -> int | None:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(self.device)
        try:
            self._try(batch)
            return int(torch.cuda.max_memory_reserved(self.device)) + self._momentum()
        except torch.cuda.OutOfMemoryError:
            return None
        finally:
            self.optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()

    def _try_on_cpu(self, batch: int) -> int | None:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak: see proc(5)
        self._try(batch)
        return resident("VmHWM") + self._momentum()

    def _momentum(self) -> int:
        """Returns the bytes of the momentum, which the optimizer allocates in its first step."""
        return int(sum(p.numel() * p.element_size() for p in self.network.parameters()))

    def _try(self, batch: int) -> None:
        """Runs forward and backward on a batch of zeros, and restores buffers and random generators; weights do not change."""
        network = self.network.module if self.is_ddp else self.network
        network = network._orig_mod if isinstance(network, OptimizedModule) else network
        buffers = {name: value.clone() for name, value in network.named_buffers()}
        patch = self.configuration_manager.patch_size
        manager = self.label_manager
        channels = manager.num_segmentation_heads + manager.has_ignore_label if manager.has_regions else 1
        network.train()
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            with torch.autocast("cuda") if self.device.type == "cuda" else self._precision():
                made = network(torch.zeros((batch, self.num_input_channels, *patch), device=self.device))
                outputs = made if isinstance(made, (list, tuple)) else [made]
                targets = [torch.zeros((batch, channels, *o.shape[2:]), dtype=torch.int16, device=self.device) for o in outputs]
                loss = self.loss(made, targets if isinstance(made, (list, tuple)) else targets[0])
            loss.backward()
        self.optimizer.zero_grad(set_to_none=True)
        for name, value in network.named_buffers():
            value.copy_(buffers[name])

    @contextlib.contextmanager
    def _precision(self) -> Iterator[None]:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16 and self.device.type == "cpu"):
            yield

    def train_step(self, batch: Any) -> Any:
        if self.device.type != "cpu":
            return super().train_step(batch)
        with self._precision():
            return super().train_step(batch)

    def validation_step(self, batch: Any) -> Any:
        if self.device.type != "cpu":
            return super().validation_step(batch)
        with self._precision():
            return super().validation_step(batch)

    def on_epoch_end(self) -> None:
        super().on_epoch_end()
        known = self.logger
        dice = smoothed(known.get_value("mean_fg_dice", step=None) if hasattr(known, "get_value") else known.my_fantastic_logging["mean_fg_dice"])  # 2.7
        still = since_best(dice, self.least_gain)
        if still >= self.patience and self.current_epoch < self.num_epochs:
            self.print_to_log_file(f"suture: the smoothed Dice of validation stands still at {max(v for v in dice if v == v):.4f}, {still} epochs without "
                                   f"{self.least_gain:g} more: the training ends after {self.current_epoch} epochs of {self.num_epochs}")
            raise _StandsStill

    def run_training(self) -> None:
        try:
            super().run_training()
        except _StandsStill:
            self.on_train_end()


def smoothed(values: Any) -> list[float]:
    """Returns the moving average of nnU-Net's logger, without the epochs that have no Dice, which is NaN. That of nnU-Net is NaN from
    such an epoch on."""
    made: list[float] = []
    for value in values:
        before = made[-1] if made else math.nan
        made.append(before if math.isnan(value) else value if math.isnan(before) else .9 * before + .1 * value)
    return made


def since_best(values: Any, least_gain: float) -> int:
    """Returns the number of epochs since the last value that exceeded the best before it by `least_gain`; 0 while all values are NaN."""
    best, at = -math.inf, -1
    for k, value in enumerate(values):
        if value > best + least_gain:
            best, at = value, k
    return len(values) - 1 - at if at >= 0 else 0


def largest(measure: Callable[[int], int | None], limit: int, most: int) -> int:
    """Returns the largest batch whose measured bytes do not exceed a limit.

    Parameters
    ----------
    measure : callable
        measure(batch) runs a batch and returns the most bytes that it took, None where there was not enough memory.
    limit : int
        The most bytes.
    most : int
        The largest batch that is tried.

    Returns
    -------
    int
        The batch, from 1 to `most`.

    Raises
    ------
    Error
        If not even a batch of one fits.
    """
    known: dict[int, int] = {}

    def fits(batch: int) -> bool:
        if len(known) > 1:  # extrapolates, and does not try what exceeds the limit: the system would kill a process on the CPU
            (a, least), (b, more) = sorted(known.items())[-2:]
            if more + (more - least) / (b - a) * (batch - b) > limit:
                return False
        took = measure(batch)
        if took is None or took > limit:
            return False
        known[batch] = took
        return True

    if not fits(1):
        raise Error(f"suture: nnunet: memory: expected enough for a batch of 1, got a limit of {limit / 1e9:.2f} GB. Plan a smaller patch, or "
                    "give more memory")
    low, high = 1, 2
    while high <= most and fits(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:  # low fits, high does not
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def resident(name: str) -> int:
    """Returns the bytes of memory of this process: VmRSS now, VmHWM at most."""
    return _kilobytes("/proc/self/status", name)


def available() -> int:
    """Returns the bytes of memory that this machine has free."""
    return _kilobytes("/proc/meminfo", "MemAvailable")


def _kilobytes(path: str, name: str) -> int:
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(path).read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found is None:
        raise Error(f"suture: nnunet: memory: expected {name} in {path}, got none. Train with nnUNetTrainerSutureFeed on this system")
    return 1024 * int(found[1])


__all__ = ["nnUNetTrainerSuture", "nnUNetTrainerSutureDeterministic", "nnUNetTrainerSutureEfficient", "nnUNetTrainerSutureFeed"]
