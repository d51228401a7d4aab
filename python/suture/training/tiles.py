# SPDX-License-Identifier: Apache-2.0
"""This module trains a 2D U-Net that labels the pixels of tiles and grades each tile, and evaluates it slide by slide."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.whole_file import whole_file
from ..errors import Error
from ..feed import Feed
from ..store import Tiles
from .libraries import DiceCELoss, UNet, torch
from .metrics import dice, mean_dice, weighted_kappa
from .run import Training


class Run(Training):
    """A training run on tiles of the slides of a store; its parameters are those of Training.

    The grade of a tile is the number of `bounds` that the share of the last class in it reaches. The network has an output channel
    for each class and each grade; the score of a grade is the mean of its channel over the tile.

    Examples
    --------
    >>> config = suture.training.config.Config.load(Path("run.json"))  # doctest: +SKIP
    >>> run = suture.training.tiles.Run(config, suture.store.open("slides.zarr"), Path("out"))  # doctest: +SKIP
    >>> run.train()  # doctest: +SKIP
    >>> run.evaluate()["cohort"]  # doctest: +SKIP
    """

    image = "rgb"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.loss = DiceCELoss(to_onehot_y=True, softmax=True, include_background=False)
        self.predictions: dict[str, tuple[np.ndarray, list[dict[str, Any]]]] = {}

    def network(self) -> torch.nn.Module:
        """Makes MONAI's UNet with residual units and batch normalization.

        Returns
        -------
        torch.nn.Module
            The network.
        """
        c = self.config
        made: torch.nn.Module = UNet(2, 3, len(c.classes) + len(c.grades), tuple(c.channels), (2,) * (len(c.channels) - 1), num_res_units=1,
                                     norm="BATCH")
        return made

    def tiles(self, val: bool) -> Tiles:
        """Lists the tiles of the slides of training, or of evaluation.

        Parameters
        ----------
        val : bool
            Whether to list those of the slides in `val`.

        Returns
        -------
        Tiles
            The tiles.
        """
        cases = self.cohort.without(self.train_cases if val else self.config.val)
        made: Tiles = cases.tiles(size=self.config.window[0], **self.config.tiles)
        return made

    def feed(self) -> Feed:
        """Makes the feed of tiles of the training slides.

        Returns
        -------
        Feed
            The feed, whose batches have the image and "seg".
        """
        c = self.config
        return Feed(self.tiles(False), self.pipeline, batch=c.batch, seed=c.seed, device=self.device, threads=c.threads,
                    steps_per_epoch=c.steps_per_epoch, rank=0, world=1)

    def grade(self, seg: torch.Tensor) -> torch.Tensor:
        """Computes the true grade of each tile of a batch by its labels.

        Parameters
        ----------
        seg : torch.Tensor
            The labels.

        Returns
        -------
        torch.Tensor
            Grades, from 0.
        """
        part = (seg == len(self.config.classes) - 1).flatten(1).float().mean(1)
        return torch.bucketize(part, torch.tensor(self.config.bounds, device=part.device), right=True)

    def loss_of(self, made: torch.Tensor, seg: torch.Tensor) -> torch.Tensor:
        """Computes Dice and cross-entropy of the labels, and adds cross-entropy of the grade.

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
        classes = len(self.config.classes)
        found: torch.Tensor = self.loss(made[:, :classes], seg) + torch.nn.functional.cross_entropy(made[:, classes:].mean((2, 3)), self.grade(seg))
        return found

    def evaluate(self) -> dict[str, Any]:
        """Predicts labels and grades of the tiles of the slides of `val`, and compares them with the labels.

        For each slide it writes predicted/NAME.png, the label map at the level of the tiles, and predicted/NAME.json, the grades of
        its tiles.

        Returns
        -------
        dict
            "cases": for each slide the number of tiles, the Dice of each class, and accuracy and weighted kappa of the grades. "cohort":
            mean Dice, and the same for the grades of all tiles, with their counts by true grade (row) and predicted grade (column).
        """
        c, tiles = self.config, self.tiles(True)
        place = {tile.id: tile for tile in tiles}
        self.net.eval()
        pixels: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in c.val}
        graded: dict[str, list[dict[str, Any]]] = {name: [] for name in c.val}
        maps = {name: np.zeros(self._level(name, tiles).shape[1:], np.uint8) for name in c.val}
        with Feed(tiles, self.whole, batch=c.batch, device=self.device, threads=c.threads, training=False, bar=False, rank=0, world=1) as feed, torch.no_grad():
            for batch in feed:
                seg = torch.as_tensor(batch["seg"]).long()
                made = self.net(torch.as_tensor(batch["rgb"]).float())
                labels = made[:, :len(c.classes)].argmax(1).cpu().numpy().astype(np.uint8)
                grades = made[:, len(c.classes):].mean((2, 3)).argmax(1)
                for k, name in enumerate(batch["id"]):
                    tile = place[name]
                    (y, x), truth = tile.boxes[0].low, seg[k, 0].cpu().numpy()
                    maps[tile.case][y:y + truth.shape[0], x:x + truth.shape[1]] = labels[k]
                    pixels[tile.case].append((labels[k], truth))
                    graded[tile.case].append({"y": y, "x": x, "true": int(self.grade(seg[k:k + 1])[0]), "predicted": int(grades[k])})
        made_of, all_counts = {}, np.zeros((len(c.grades), len(c.grades)), np.int64)
        for name in c.val:
            self.predictions[name] = maps[name], graded[name]
            self._write(name)
            p, t = (np.stack([pair[i] for pair in pixels[name]]) for i in (0, 1))
            counts = np.zeros_like(all_counts)
            for one in graded[name]:
                counts[one["true"], one["predicted"]] += 1
            all_counts += counts
            made_of[name] = {"tiles": len(graded[name]), "dice": {label: dice(p, t, k) for k, label in enumerate(c.classes) if k}, **_agreement(counts)}
        return {"cases": made_of, "cohort": {"tiles": int(all_counts.sum()), "dice": mean_dice(made_of), **_agreement(all_counts),
                                             "grades": all_counts.tolist()}}

    def _level(self, name: str, tiles: Tiles) -> Any:
        """Returns the level of a slide from which its tiles are read."""
        own = next((tile for tile in tiles if tile.case == name), None)
        if own is None:
            raise Error(f"suture: train: val: expected tiles of {name!r}, got none. Lower least_tissue, or name another slide")
        return self.cohort[name].levels[own.boxes[0].level]

    def _write(self, name: str) -> None:
        from PIL import Image

        labels, grades = self.predictions[name]
        folder = self.out / "predicted"
        folder.mkdir(exist_ok=True)
        with whole_file(folder / f"{name}.png") as beside:
            Image.fromarray(labels).save(beside, format="PNG")
        with whole_file(folder / f"{name}.json") as beside:
            Path(beside).write_text(json.dumps(grades) + "\n")


def _agreement(counts: np.ndarray) -> dict[str, Any]:
    return {"accuracy": float(np.trace(counts) / counts.sum()), "kappa": weighted_kappa(counts)}


__all__ = ["Run"]
