# SPDX-License-Identifier: Apache-2.0
"""Trains nnU-Net's stock trainer and suture's on one small data set: seconds an epoch, epochs, and Dice.

    python python/bench/nnunet_trainers.py [--trainers NAME...] [--epochs N] [--iterations N] [--folder FOLDER] [--out FILE]

The cases are those of examples/train: the sample CT, bent at random, with simulated lesions. nnU-Net plans and preprocesses
them, with a small patch and network instead of the planned ones so that processors can train it. Every trainer starts from the
same plans and does a whole nnUNetv2_train, with the validation of whole scans at its end. A folder that is given keeps the data and
what each training gave, so that a run that was ended goes on with the next trainer. Where other programs share the processors,
processor seconds tell more than seconds."""
from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "python"), str(REPOSITORY / "examples/train")]

from suture.nnunet import trainer_folder  # noqa: E402

TRAINERS = """
import os

import torch
from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
from suture.nnunet.efficient import nnUNetTrainerSutureEfficient
from suture.nnunet.trainer import nnUNetTrainerSuture, nnUNetTrainerSutureFeed


class Short:
    def __init__(self, plans: dict, configuration: str, fold: int, dataset_json: dict, device: torch.device = torch.device("cuda")):
        super().__init__(plans, configuration, fold, dataset_json, device)
        self.num_epochs, self.num_iterations_per_epoch = int(os.environ["EPOCHS"]), int(os.environ["ITERATIONS"])
        self.num_val_iterations_per_epoch = 5
        torch.manual_seed(1)

    def perform_actual_validation(self, save_probabilities=False):
        self.inference_allowed_mirroring_axes = None  # an eighth of the time
        super().perform_actual_validation(save_probabilities)


class ShortStock(Short, nnUNetTrainer):
    pass


class ShortSuture(Short, nnUNetTrainerSuture):
    pass


class ShortFeed(Short, nnUNetTrainerSutureFeed):
    pass


class ShortEfficient(Short, nnUNetTrainerSutureEfficient):
    patience, memory, most_batch = int(os.environ["PATIENCE"]), os.environ["MEMORY"], 8
"""
NAMES = {"ShortStock": "nnUNetTrainer", "ShortSuture": "nnUNetTrainerSuture", "ShortFeed": "nnUNetTrainerSutureFeed",
         "ShortEfficient": "nnUNetTrainerSutureEfficient"}


def data_set(folder: Path, environment: dict[str, str]) -> None:
    """Raw data, plans and preprocessed cases."""
    import cohort

    for part in ("files", "raw", "preprocessed"):
        shutil.rmtree(folder / part, ignore_errors=True)  # of a run that was ended
    raw = folder / "raw/Dataset001_Liver"
    cases = cohort.make(REPOSITORY / "examples/data/ct", folder / "files", scans=6, phantoms=0)
    for name, ending in (("imagesTr", "_0000"), ("labelsTr", "")):
        (raw / name).mkdir(parents=True)
        for case in cases:
            (folder / "files" / name.removesuffix("Tr") / f"{case}.nii.gz").rename(raw / name / f"{case}{ending}.nii.gz")
    (raw / "dataset.json").write_text(json.dumps({"channel_names": {"0": "CT"}, "numTraining": len(cases), "file_ending": ".nii.gz",
                                                  "labels": {"background": 0, "liver": 1, "lesion": 2}}))
    run(["-c", "from nnunetv2.experiment_planning.plan_and_preprocess_entrypoints import plan_and_preprocess_entry as run; run()",
         "-d", "1", "-c", "3d_fullres", "-np", "1", "-npfp", "1"], environment)
    plans = folder / "preprocessed/Dataset001_Liver/nnUNetPlans.json"
    plan = json.loads(plans.read_text())
    small = plan["configurations"]["3d_fullres"]
    small["patch_size"], small["batch_size"] = [32, 40, 40], 2
    small["architecture"]["arch_kwargs"].update(
        n_stages=3, features_per_stage=[8, 16, 32], kernel_sizes=[[3] * 3] * 3, strides=[[1] * 3, [2] * 3, [2] * 3],
        n_conv_per_stage=[2] * 3, n_conv_per_stage_decoder=[2] * 2)
    plans.write_text(json.dumps(plan))


def run(arguments: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(done.stdout[-4000:])


def trained(name: str, folder: Path, environment: dict[str, str]) -> dict[str, object]:
    """What a whole training took and gave."""
    results = folder / f"results/Dataset001_Liver/{name}__nnUNetPlans__3d_fullres/fold_0"
    shutil.rmtree(results, ignore_errors=True)  # of a training that was ended
    began, spent = time.perf_counter(), sum(os.times()[2:4])
    run(["-c", "from nnunetv2.run.run_training import run_training_entry as run; run()", "1", "3d_fullres", "0", "-tr", name, "-device", "cpu"],
        environment)
    seconds, spent = time.perf_counter() - began, sum(os.times()[2:4]) - spent
    log = next(results.glob("training_log*")).read_text()
    epochs = [float(s) for s in re.findall(r"Epoch time: ([0-9.]+)", log)]
    waited = re.findall(r"waited for batches ([0-9.]+) s of ([0-9.]+) s", log)
    dice = json.loads((results / "validation/summary.json").read_text())["mean"]
    said = re.search(r"suture: (batch .*)", log)
    return {"trainer": NAMES[name], "epochs": len(epochs), "seconds_an_epoch": statistics.median(epochs), "seconds": round(seconds, 1),
            "processor_seconds": round(spent, 1),
            "dice_liver": round(dice["1"]["Dice"], 3), "dice_lesion": round(dice["2"]["Dice"], 3),
            **({"waited_percent": round(100 * sum(float(w) for w, _ in waited) / sum(float(t) for _, t in waited), 2)} if waited else {}),
            **({"said": said[1]} if said else {})}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--patience", type=int, default=4)
    parser.add_argument("--memory", default="1.5 GB")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "bench/results/nnunet_trainers.json")
    parser.add_argument("--trainers", nargs="+", choices=NAMES.values(), default=list(NAMES.values()))
    parser.add_argument("--folder", type=Path, help="keeps data and results; a temporary one by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        (folder / "trainers").mkdir(parents=True, exist_ok=True)
        (folder / "trainers/short.py").write_text(TRAINERS)
        environment = {**os.environ, "nnUNet_raw": str(folder / "raw"), "nnUNet_preprocessed": str(folder / "preprocessed"),
                       "nnUNet_results": str(folder / "results"), "nnUNet_def_n_proc": "1", "nnUNet_n_proc_DA": "2",
                       "nnUNet_extTrainer": os.pathsep.join((str(trainer_folder()), str(folder / "trainers"))),
                       "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "python"), str(folder / "trainers"))), "OMP_NUM_THREADS": "2",
                       "OMP_WAIT_POLICY": "passive", "EPOCHS": str(given.epochs), "ITERATIONS": str(given.iterations),
                       "PATIENCE": str(given.patience), "MEMORY": given.memory}
        if not (folder / "ready").exists():
            data_set(folder, environment)
            (folder / "ready").touch()
        rows = []
        for name in (key for key, trainer in NAMES.items() if trainer in given.trainers):
            row = folder / f"{name}.json"
            if not row.exists():
                row.write_text(json.dumps(trained(name, folder, environment)))
            rows.append(json.loads(row.read_text()))
            print(json.dumps(rows[-1]), flush=True)
    given.out.write_text(json.dumps(
        {"what": "whole trainings by nnU-Net's stock trainer and by suture's, one after the other", "date": time.strftime("%Y-%m-%d"),
         "processors": len(os.sched_getaffinity(0)), "machine": platform.machine(),
         "iterations": given.iterations,
         "planned_epochs": given.epochs, "patience": given.patience, "memory": given.memory,
         "versions": {name: metadata.version(name) for name in ("nnunetv2", "torch", "batchgeneratorsv2")}, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
