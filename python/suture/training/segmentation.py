# SPDX-License-Identifier: Apache-2.0
"""Trains a 3D U-Net on patches that the feed makes, evaluates it on whole scans, and writes predictions on their grids."""
from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.volume import Volume
from ..arrays.whole_file import whole_file
from ..errors import Error
from ..feed import Feed
from ..functions.inference import sliding_window
from .config import Config
from .metrics import dice, lesions

try:
    import torch
    from monai.losses import DiceCELoss
    from monai.networks.nets import UNet
except ImportError as problem:
    raise Error(f"suture: train: {problem.name} is not installed: pip install torch monai nibabel") from None


def network(config: Config) -> torch.nn.Module:
    """Makes MONAI's UNet with residual units and instance normalization: one channel in, one for each class out.

    Parameters
    ----------
    config : Config
        The run.

    Returns
    -------
    torch.nn.Module
        The network.

    Examples
    --------
    >>> net = suture.training.segmentation.network(config)  # doctest: +SKIP
    """
    strides = (2,) * (len(config.channels) - 1)
    return UNet(3, 1, len(config.classes), tuple(config.channels), strides, num_res_units=1, norm="INSTANCE")


class Run:
    """A training run on the cases of a store.

    Parameters
    ----------
    config : Config
        What is trained.
    cohort : mapping
        The cases of `suture.store.open`.
    out : Path
        The folder for the checkpoint and the predictions. It is made where it is not there.
    device : str
        "cpu", or a CUDA device.
    say : callable
        What a line of progress is given to.

    Raises
    ------
    Error
        If the store is not the one that the configuration names, or a case of `val` is missing.

    Examples
    --------
    >>> config = suture.training.config.Config.load(Path("run.json"))  # doctest: +SKIP
    >>> run = suture.training.segmentation.Run(config, suture.store.open("cohort.zarr"), Path("out"))  # doctest: +SKIP
    >>> run.train()  # doctest: +SKIP
    >>> run.evaluate()["cohort"]  # doctest: +SKIP
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
        self.net = network(config).to(device)
        steps = config.epochs * config.steps_per_epoch
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=config.learning_rate)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, config.learning_rate, steps)
        self.loss = DiceCELoss(to_onehot_y=True, softmax=True, include_background=False)
        self.losses: list[float] = []
        self.batches = ""  # sha256 of the digest before and of the batch
        self.statistics: Mapping[str, Any] = {}
        self.predictions: dict[str, Volume] = {}

    @property
    def checkpoint(self) -> Path:
        """The file of the checkpoint."""
        return self.out / "checkpoint.pt"

    def train(self) -> None:
        """Trains from where the checkpoint stands, if there is one, and writes one after each epoch."""
        c = self.config
        cases = {name: self.cohort[name] for name in self.train_cases}
        with Feed(cases, self.pipeline, batch=c.batch, seed=c.seed, device=self.device, threads=c.threads,
                  steps_per_epoch=c.steps_per_epoch) as feed:
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
        image, seg = (torch.as_tensor(batch[key]) for key in ("image", "seg"))
        digest = hashlib.sha256(self.batches.encode())
        for one in (image, seg):
            digest.update(one.detach().cpu().contiguous().numpy().tobytes())
        self.batches = digest.hexdigest()
        made = self.loss(self.net(image.float()), seg.long())
        self.optimizer.zero_grad(set_to_none=True)
        made.backward()
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(float(made.detach()))

    def _save(self, feed: Any) -> None:
        """Writes the checkpoint, whole or not at all: a kill leaves the last one."""
        state = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "schedule": self.schedule.state_dict(),
                 "feed": feed.state_dict(), "losses": self.losses, "batches": self.batches}
        with whole_file(self.checkpoint) as beside:
            torch.save(state, beside)

    def _load(self, feed: Any) -> None:
        state = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        feed.load_state_dict(state["feed"])
        self.losses, self.batches = list(state["losses"]), state["batches"]

    def probabilities(self, windows: Any) -> np.ndarray:
        """Computes the softmax of the network.

        Parameters
        ----------
        windows : array
            Windows (window, channel, z, y, x).

        Returns
        -------
        numpy.ndarray
            Probabilities (window, class, z, y, x).
        """
        with torch.no_grad():
            made = torch.softmax(self.net(torch.as_tensor(np.ascontiguousarray(windows)).to(self.device).float()), 1)
        return np.asarray(made.cpu())

    def predict(self, scan: Volume, case: str) -> Volume:
        """Predicts the label map of a scan, on the scan's own grid.

        Parameters
        ----------
        scan : Volume
            The scan.
        case : str
            Its name.

        Returns
        -------
        Volume
            Labels of uint8.
        """
        self.net.eval()
        plan = self.whole.plan({"image": [scan], "id": [case]}, training=False, threads=self.config.threads)
        image = plan.run()["image"][0]
        seen = sliding_window(self.probabilities, image, size=dict(zip("zyx", self.config.window)), batch=self.config.batch)
        back = plan.inverse({"image": [seen]}, outside=0.0)["image"][0]
        return Volume(np.asarray(back).argmax(0).astype(np.uint8), axes=scan.axes, grid=scan.grid)

    def evaluate(self) -> dict[str, Any]:
        """Predicts the cases of `val`, writes PREDICTED/CASE.nii.gz, and compares with their labels.

        Returns
        -------
        dict
            "cases": for each case the Dice of each class and the counts of lesions. "cohort": their means and sums.
        """
        made: dict[str, Any] = {}
        folder = self.out / "predicted"
        folder.mkdir(exist_ok=True)
        for name in self.config.val:
            case = self.cohort[name]
            scan, labels = loaded(case.volume("image")), loaded(case.volume("labels"))
            predicted = self.predictions[name] = self.predict(scan, name)
            predicted.save(folder / f"{name}.nii.gz")
            p, t = np.asarray(predicted), np.asarray(labels)
            made[name] = {"dice": {label: dice(p, t, k) for k, label in enumerate(self.config.classes) if k}}
            if self.config.lesion is not None:
                made[name]["lesions"] = lesions(p, t, self.config.lesion).to_json()
        return {"cases": made, "cohort": _summed(made)}

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
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def results(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what a second run of the same configuration has to reproduce.

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


def _summed(cases: Mapping[str, Any]) -> dict[str, Any]:
    """Mean Dice of each class, and lesions of all cases."""
    out: dict[str, Any] = {"dice": {}}
    for label in next(iter(cases.values()))["dice"] if cases else ():
        known = [case["dice"][label] for case in cases.values() if case["dice"][label] is not None]
        out["dice"][label] = sum(known) / len(known) if known else None
    counted = [case["lesions"] for case in cases.values() if "lesions" in case]
    if counted:
        total = {key: sum(one[key] for one in counted) for key in counted[0]}
        out["lesions"] = {**total, "sensitivity": total["found"] / total["true"] if total["true"] else None,
                          "false_per_case": total["false"] / len(counted)}
    return out


def loaded(volume: Volume) -> Volume:
    """A Volume whose voxels are in memory."""
    return Volume(np.asarray(volume), axes=volume.axes, grid=volume.grid)


__all__ = ["Run", "network"]
