# SPDX-License-Identifier: Apache-2.0
"""This module runs a training on the batches of a feed: steps, digests and checkpoints, for any network and task."""
from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..arrays.whole_file import whole_file
from ..errors import Error
from .config import Config
from .libraries import torch


_MEMBERS = {"settings", "net", "optimizer", "schedule", "feed", "losses", "batches"}  # of a checkpoint


class Training:
    """The part of a training run that all tasks share.

    Parameters
    ----------
    config : Config
        Configuration of the run.
    cohort : mapping
        The cases of `suture.store.open`.
    out : Path
        The folder for the checkpoint and the predictions, which is created if it does not exist.
    device : str
        "cpu", or a CUDA device.
    say : callable
        Called with each line of progress.

    Raises
    ------
    Error
        If the store has another hash than in the configuration, or lacks a case of `val`.

    Examples
    --------
    >>> config = suture.training.config.Config.load(Path("run.json"))  # doctest: +SKIP
    >>> run = suture.training.segmentation.Run(config, suture.store.open("cohort.zarr"), Path("out"))  # doctest: +SKIP
    >>> run.train()  # doctest: +SKIP
    """

    def __init__(self, config: Config, cohort: Any, out: Path, *, device: str = "cpu", say: Callable[[str], None] = print) -> None:
        if config.cohort != cohort.sha256:
            raise Error(f"suture: train: cohort: expected the store of hash {config.cohort}, got {cohort.sha256}. Build it from the "
                        "same files, or write a new run.json")
        missing = sorted(set(config.val) - set(cohort))
        if missing:
            raise Error(f"suture: train: val: expected cases of the store, got {', '.join(missing)}")
        self.config, self.cohort, self.out, self.device, self.say = config, cohort, out, device, say
        self.pipeline, self.whole = config.pipelines()
        self.train_cases = [name for name in sorted(cohort) if name not in config.val]
        out.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(config.seed)
        torch.set_num_threads(config.threads)
        torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
        self.net = self.network().to(device)
        steps = config.epochs * config.steps_per_epoch
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=config.learning_rate)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, config.learning_rate, steps)
        self.losses: list[float] = []
        self.batches = ""  # digest of all batches so far: SHA-256 of the previous digest and the last batch
        self.statistics: Mapping[str, Any] = {}

    # A task defines these members.

    image = "image"  # key of the input of the network

    def network(self) -> torch.nn.Module:
        """Makes the network.

        Returns
        -------
        torch.nn.Module
            The network.
        """
        raise NotImplementedError

    def feed(self) -> Any:
        """Makes the feed of the training.

        Returns
        -------
        Feed
            The feed, whose batches have the image and "seg".
        """
        raise NotImplementedError

    def loss_of(self, made: torch.Tensor, seg: torch.Tensor) -> torch.Tensor:
        """Computes the loss of a batch.

        Parameters
        ----------
        made : torch.Tensor
            The output of the network for a batch.
        seg : torch.Tensor
            The labels of the batch.

        Returns
        -------
        torch.Tensor
            The loss, one number.
        """
        raise NotImplementedError

    def evaluate(self) -> dict[str, Any]:
        """Predicts the cases of `val` and compares predictions with their labels.

        Returns
        -------
        dict
            "cases": metrics of each case. "cohort": metrics of all together.
        """
        raise NotImplementedError

    # These members are the same for all tasks.

    @property
    def checkpoint(self) -> Path:
        """The file of the checkpoint."""
        return self.out / "checkpoint.pt"

    def train(self) -> None:
        """Trains, resuming from the checkpoint if there is one, and writes a checkpoint after each epoch.

        Raises
        ------
        Error
            If the checkpoint cannot be read, or is that of a run with other settings, which the message names.
        """
        c = self.config
        with self.feed() as feed:
            if self.checkpoint.exists():
                self._load(feed)
            self.net.train()
            started = time.perf_counter()
            for epoch in feed.epochs(c.epochs):
                for batch in epoch:
                    self._step(batch)
                self._save(feed)
                recent = self.losses[-c.steps_per_epoch:]
                self.say(f"epoch {len(self.losses) // c.steps_per_epoch} of {c.epochs}: loss {sum(recent) / max(1, len(recent)):.4f}, "
                         f"{time.perf_counter() - started:.1f} s")
            self.statistics = feed.statistics().summary()

    def _step(self, batch: Mapping[str, Any]) -> None:
        image, seg = (torch.as_tensor(batch[key]) for key in (self.image, "seg"))
        digest = hashlib.sha256(self.batches.encode())
        for one in (image, seg):
            digest.update(_bytes_of(one))
        self.batches = digest.hexdigest()
        made = self.loss_of(self.net(image.float()), seg.long())
        self.optimizer.zero_grad(set_to_none=True)
        made.backward()
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(float(made.detach()))

    def _save(self, feed: Any) -> None:
        """Writes the checkpoint atomically, so that the last one survives if the process is killed."""
        state = {"settings": self._settings(), "net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "schedule": self.schedule.state_dict(),
                 "feed": feed.state_dict(), "losses": self.losses, "batches": self.batches}
        with whole_file(self.checkpoint) as beside:
            torch.save(state, beside)

    def _settings(self) -> str:
        """Returns all that the training depends on, as JSON."""
        return json.dumps({name: value for name, value in asdict(self.config).items() if name not in ("versions", "results")})

    def _load(self, feed: Any) -> None:
        begin = f"suture: train: {self.checkpoint}:"
        try:
            state = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        except Exception as problem:  # torch raises errors of zip files, of pickles and of its own
            raise Error(f"{begin} expected a checkpoint, got a file that torch cannot read ({type(problem).__name__}). Remove it to train anew, "
                        "or name another folder") from None
        missing = sorted(_MEMBERS.difference(state if isinstance(state, dict) else ()))
        if missing:
            raise Error(f"{begin} expected a checkpoint of this version, got one without {', '.join(missing)}. Remove it to train anew, or name "
                        "another folder")
        then = json.loads(state["settings"])
        now = json.loads(self._settings())
        different = [name if len(f"{then.get(name)}{now.get(name)}") > 80 else f"{name} (then {then.get(name)}, now {now.get(name)})"
                     for name in sorted({*then, *now}) if then.get(name) != now.get(name)]
        if different:
            raise Error(f"{begin} expected the checkpoint of a run with the same settings, got others: {', '.join(different)}. Name another "
                        "folder, or remove the checkpoint to train anew")
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        feed.load_state_dict(state["feed"])
        self.losses, self.batches = list(state["losses"]), state["batches"]

    def weights_digest(self) -> str:
        """Hashes all weights, by name.

        Returns
        -------
        str
            SHA-256 as hexadecimal digits.
        """
        digest = hashlib.sha256()
        for name, value in sorted(self.net.state_dict().items()):
            digest.update(name.encode())
            digest.update(_bytes_of(value))
        return digest.hexdigest()

    def results(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the results that another run of the same configuration has to reproduce.

        Parameters
        ----------
        metrics : mapping
            The result of evaluate.

        Returns
        -------
        dict
            Digests of the batches and the weights, the losses and the metrics.
        """
        return {"batches": self.batches, "weights": self.weights_digest(), "losses": self.losses,
                "metrics": json.loads(json.dumps(metrics))}


def _bytes_of(values: torch.Tensor) -> bytes:
    """Returns the elements of a tensor as bytes, also those of bfloat16, which NumPy does not have."""
    made: bytes = values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return made


__all__ = ["Training"]
