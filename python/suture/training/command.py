# SPDX-License-Identifier: Apache-2.0
"""This module has the command `suture train`, which repeats a run from its run.json and compares the results."""
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..errors import Error
from .config import Config, versions


def add_to(commands: Any) -> None:
    """Adds the command `train` to the command line.

    Parameters
    ----------
    commands : subparsers of argparse
        Result of ArgumentParser.add_subparsers.

    Examples
    --------
    >>> import argparse
    >>> parser = argparse.ArgumentParser()
    >>> suture.training.command.add_to(parser.add_subparsers())
    >>> parser.parse_args(["train", "--config", "run.json", "--store", "cohort.zarr", "--out", "again"]).device
    'cpu'
    """
    parser = commands.add_parser("train", help="do a training run again from its run.json, and compare the results bit for bit")
    parser.add_argument("--config", type=Path, required=True, help="run.json of the run")
    parser.add_argument("--store", type=Path, required=True, help="the store, whose hash has to be that of run.json")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint, predictions and run.json; a training whose "
                        "checkpoint lies there is continued, if its settings are the same")
    parser.add_argument("--device", default="cpu", help="cpu, or a CUDA device")


def run(given: argparse.Namespace) -> int:
    """Trains as run.json says, and prints the comparison as JSON in the last line: "same" is true, false, or null if run.json has no
    results.

    Parameters
    ----------
    given : argparse.Namespace
        Arguments of the command.

    Returns
    -------
    int
        The exit status: 0, or 2 if results differ from those in run.json.

    Raises
    ------
    Error
        If the folder of the results is that of run.json, the store is not the one of the run, or the folder has the checkpoint of a
        run with other settings.

    Examples
    --------
    >>> suture.training.command.run(given)     # doctest: +SKIP
    0
    """
    from ..store import open as open_store

    config = Config.load(given.config)
    if config.task == "tiles":
        from .tiles import Run
    else:
        from .segmentation import Run  # type: ignore[assignment]
    if given.config.resolve().parent == given.out.resolve():
        raise Error(f"suture: train: --out: expected another folder than that of {given.config}, got the same. The record would be "
                    "replaced by the new one")
    made = Run(config, open_store(given.store), given.out, device=given.device)
    made.train()
    results = made.results(made.evaluate())
    config.with_results(results).save(given.out / "run.json")
    different = compare(config, results)
    print(json.dumps({"same": not different if config.results else None, "different": different, **results}))
    return 2 if different else 0


def compare(config: Config, results: dict[str, Any]) -> list[str]:
    """Names the results that differ from those of a run and, if any do, the versions that differ, which may explain it.

    Parameters
    ----------
    config : Config
        The run, with its results.
    results : dict
        The new results.

    Returns
    -------
    list of str
        Names; empty if all results are equal or the run has none.

    Examples
    --------
    >>> config = suture.training.config.Config("segmentation", "5a" * 32, {}, {}, ["background", "liver"], [64, 64, 64],
    ...                                        results=dict(batches="a", losses=[.5], weights="b", metrics={}))
    >>> suture.training.command.compare(config, dict(batches="a", losses=[.5], weights="b", metrics={}))
    []
    """
    if not config.results:
        return []
    different = [name for name in ("batches", "losses", "weights", "metrics") if results[name] != config.results.get(name)]
    if different:
        now = versions()
        different += [f"version of {name}: {config.versions.get(name)} then, {now.get(name)} now"
                      for name in sorted(set(now) | set(config.versions)) if now.get(name) != config.versions.get(name)]
    return different


__all__ = ["add_to", "compare", "run"]
