# SPDX-License-Identifier: Apache-2.0
"""A Config is the configuration of a training run, which run.json stores."""
from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..arrays.whole_file import whole_file
from ..errors import Error
from ..operations.kinds import shown
from ..pipeline.pipeline import Pipeline
from ..version import __version__

FORMAT = 1
_TILES = ("mpp", "least_tissue", "per_slide", "step", "seed", "ratios", "least_label")
_LIBRARIES = ("torch", "monai", "numpy", "tensorstore", "nibabel")


def versions() -> dict[str, str]:
    """Returns the versions of all software that the results of a run depend on.

    Returns
    -------
    dict
        Version by name: suture, Python and the libraries that are installed.

    Examples
    --------
    >>> suture.training.config.versions()["suture"] == st.__version__
    True
    """
    found = {"suture": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class Config:
    """A training run.

    Parameters
    ----------
    task : {"segmentation", "tiles"}
        The task: a 3D U-Net on volumes with label maps, or a grader of tiles.
    cohort : str
        The hash of the store, `suture.store.open(path).sha256`. A store with another hash is refused.
    pipeline : dict
        The training pipeline, as Pipeline.to_json gives it.
    whole : dict
        The pipeline of evaluation and prediction. For whole scans it has no random operations and no crop; for tiles it runs in
        evaluation mode.
    classes : list of str
        Names of the labels 0, 1, ...; the first is the background.
    lesion : int, optional
        The class whose connected components are counted as lesions.
    window : list of int
        Voxels of a sliding window along (z, y, x), or pixels of a tile along (y, x).
    seed, batch, steps_per_epoch, epochs, learning_rate, channels, threads
        Settings of the training. Results depend on all of them, also on `threads`, since sums of PyTorch do.
    val : list of str
        Names of the cases for evaluation, on which training does not run.
    tiles : dict
        For the task "tiles", the arguments of `Cohort.tiles` except the size: "mpp", "least_tissue", "ratios" and so on.
    grades : list of str
        Names of the grades of a tile, from the lowest.
    bounds : list of float
        Least share of the last class in a tile for grade 1, grade 2 and so on.
    versions : dict
        Versions of the libraries that made the results.
    results : dict
        Digests, losses and metrics of the run; empty before it.

    Raises
    ------
    Error
        If the task is another, or a number is out of its range.

    Examples
    --------
    >>> train = st.Pipeline(image=[st.random_crop(size=8)], seg=st.labels())
    >>> whole = st.Pipeline(image=[], seg=st.labels())
    >>> config = suture.training.config.Config(task="segmentation", cohort="5a" * 32, pipeline=train.to_json(), whole=whole.to_json(),
    ...                                        classes=["background", "liver"], window=[64, 64, 64])
    >>> config.pipelines()[0] == train, config.epochs
    (True, 5)
    """

    task: str
    cohort: str
    pipeline: dict[str, Any]
    whole: dict[str, Any]
    classes: list[str]
    window: list[int]
    lesion: int | None = None
    seed: int = 42
    batch: int = 4
    steps_per_epoch: int = 30
    epochs: int = 5
    learning_rate: float = 8e-3
    channels: list[int] = field(default_factory=lambda: [8, 16, 32])
    threads: int = 2
    val: list[str] = field(default_factory=list)
    tiles: dict[str, Any] = field(default_factory=dict)
    grades: list[str] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=versions)
    results: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.task not in ("segmentation", "tiles"):
            raise Error(f'suture: train: task: expected "segmentation" or "tiles", got {shown(self.task)}')
        for name in ("batch", "steps_per_epoch", "epochs", "threads"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise Error(f"suture: train: {name}: expected a whole number above 0, got {shown(getattr(self, name))}")
        rate = self.learning_rate
        if type(rate) not in (int, float) or not 0 < rate < math.inf:
            raise Error(f"suture: train: learning_rate: expected a number above 0, got {shown(self.learning_rate)}")
        axes = "three" if self.task == "segmentation" else "two"
        if not isinstance(self.window, (list, tuple)) or len(self.window) != {"two": 2, "three": 3}[axes] or any(type(n) is not int or n < 1 for n in self.window):
            raise Error(f"suture: train: window: expected {axes} whole numbers above 0, got {shown(self.window)}")
        if self.task == "tiles":
            self._check_tiles()
        if self.lesion is not None and (type(self.lesion) is not int or not 0 < self.lesion < len(self.classes)):
            raise Error(f"suture: train: lesion: expected a class in 1 .. {len(self.classes) - 1}, got {shown(self.lesion)}")

    def _check_tiles(self) -> None:
        if self.window[0] != self.window[1]:
            raise Error(f"suture: train: window: expected square tiles, got {shown(self.window)}")
        unknown = sorted(set(self.tiles) - set(_TILES))
        if unknown or "mpp" not in self.tiles:
            raise Error(f"suture: train: tiles: expected mpp, and no others than {', '.join(_TILES)}, got {shown(self.tiles)}")
        if not self.bounds or list(self.bounds) != sorted(set(self.bounds)) or not 0 < self.bounds[0] <= self.bounds[-1] < 1:
            raise Error(f"suture: train: bounds: expected increasing parts between 0 and 1, got {shown(self.bounds)}")
        if len(self.grades) != len(self.bounds) + 1:
            raise Error(f"suture: train: grades: expected {len(self.bounds) + 1} names for {len(self.bounds)} bounds, got {shown(self.grades)}")

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """Makes the pipelines of the run.

        Returns
        -------
        (Pipeline, Pipeline)
            The training pipeline, and the one for whole scans.
        """
        return Pipeline.from_json(self.pipeline), Pipeline.from_json(self.whole)

    def with_results(self, results: Mapping[str, Any]) -> Config:
        """Returns the same run with its results and the present versions.

        Parameters
        ----------
        results : mapping
            Digests, losses and metrics.

        Returns
        -------
        Config
            The run with its results.
        """
        return replace(self, results=dict(results), versions=versions())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes run.json atomically.

        Parameters
        ----------
        path : path
            The file.
        """
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"
        with whole_file(path) as beside:
            Path(beside).write_text(text)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Config:
        """Reads run.json.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Config
            The run.

        Raises
        ------
        Error
            If the file cannot be read, is of another format, or a member is missing or unknown.
        """
        try:
            record = json.loads(Path(path).read_text())
        except (OSError, ValueError) as problem:
            raise Error(f"suture: train: {path}: expected a run.json, got {problem}") from None
        if not isinstance(record, dict) or record.pop("format", None) != FORMAT:
            raise Error(f"suture: train: {path}: expected a record of format {FORMAT}, got another. Take a run.json or plan.json of this version as the pattern")
        known = {one.name for one in fields(Config)}
        if set(record) != known:
            raise Error(f"suture: train: {path}: expected the members {sorted(known)}, got {sorted(record)}")
        return Config(**record)


__all__ = ["Config", "versions"]
