# SPDX-License-Identifier: Apache-2.0
"""This module trains a 3D U-Net on patches, evaluates it on whole scans, and writes predictions on their grids."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays.lazy import as_tensor
from ..arrays.volume import Volume
from ..feed import Feed
from ..functions.inference import sliding_window
from .libraries import DiceCELoss, UNet, torch
from .metrics import dice, lesions, mean_dice
from .run import Training


class Run(Training):
    """A training run on the scans of a store; its parameters are those of Training.

    Examples
    --------
    >>> config = suture.training.config.Config.load(Path("run.json"))  # doctest: +SKIP
    >>> run = suture.training.segmentation.Run(config, suture.store.open("cohort.zarr"), Path("out"))  # doctest: +SKIP
    >>> run.train()  # doctest: +SKIP
    >>> run.evaluate()["cohort"]  # doctest: +SKIP
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.loss = DiceCELoss(to_onehot_y=True, softmax=True, include_background=False)
        self.predictions: dict[str, Volume] = {}

    def network(self) -> torch.nn.Module:
        """Makes MONAI's UNet with residual units and instance normalization: one channel in, one for each class out.

        Returns
        -------
        torch.nn.Module
            The network.
        """
        c = self.config
        made: torch.nn.Module = UNet(3, 1, len(c.classes), tuple(c.channels), (2,) * (len(c.channels) - 1), num_res_units=1, norm="INSTANCE")
        return made

    def feed(self) -> Feed:
        """Makes the feed of patches of the training cases.

        Returns
        -------
        Feed
            The feed, whose batches have the image and "seg".
        """
        c = self.config
        return Feed({name: self.cohort[name] for name in self.train_cases}, self.pipeline, batch=c.batch, seed=c.seed, device=self.device,
                    threads=c.threads, steps_per_epoch=c.steps_per_epoch, rank=0, world=1)

    def loss_of(self, made: torch.Tensor, seg: torch.Tensor) -> torch.Tensor:
        """Computes Dice and cross-entropy of a batch.

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
        found: torch.Tensor = self.loss(made, seg)
        return found

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
            given = as_tensor(np.ascontiguousarray(windows), np.asarray(windows).dtype.name)
            made = torch.softmax(self.net(given.to(self.device).float()), 1)
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
        """Predicts the cases of `val`, writes predicted/NAME.nii.gz, and compares predictions with labels.

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


def _summed(cases: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the mean Dice of each class, and the counts of lesions of all cases."""
    out: dict[str, Any] = {"dice": mean_dice(cases)}
    counted = [case["lesions"] for case in cases.values() if "lesions" in case]
    if counted:
        total = {key: sum(one[key] for one in counted) for key in counted[0]}
        out["lesions"] = {**total, "sensitivity": total["found"] / total["true"] if total["true"] else None,
                          "false_per_case": total["false"] / len(counted)}
    return out


def loaded(volume: Volume) -> Volume:
    """Reads the voxels of a Volume into memory."""
    return Volume(np.asarray(volume), axes=volume.axes, grid=volume.grid)


__all__ = ["Run"]
