# SPDX-License-Identifier: Apache-2.0
"""From files to a checkpoint: builds a store, trains a 3D U-Net twice, and compares the two runs bit for bit.

    examples/run train [--out DIR] [--epochs N] [--steps N] [--once]

It leaves in DIR the files of a small cohort, the store, and for each run the checkpoint, predictions as NIfTI on the scans'
own grids and run.json; beside them loss.png and sheet.png. The last line of the output is the report as JSON. The exit
status is 1 where the two runs differ."""
from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path

import suture as st
import suture.store
from suture.training.config import Config
from suture.training.segmentation import Run, loaded

import cohort
import pictures

CLASSES = ["background", "liver", "lesion"]
WINDOW = dict(center=60, width=300)
VAL = ["scan_4", "scan_5", "phantom_1"]


def pipelines(size: int) -> tuple[st.Pipeline, st.Pipeline]:
    """What patches for training go through, and whole scans."""
    train = st.Pipeline(
        image=[st.window(**WINDOW), st.resample(spacing_mm=3), st.random_affine(rotate_deg=15, scale=(.9, 1.1), probability=.5),
               st.crop_by_class(size=size, labels="seg", ratios=[1, 1, 2]), st.random_gamma(range=(.8, 1.25)),
               st.gaussian_noise(sigma=.02)],
        seg=st.labels())
    return train, st.Pipeline(image=[st.window(**WINDOW), st.resample(spacing_mm=3)])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples/run train", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("train.out"), help="folder for everything that is made (train.out)")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=40, help="steps of an epoch (40)")
    parser.add_argument("--size", type=int, default=40, help="voxels of a patch along each axis (40)")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--once", action="store_true", help="one run; nothing is compared")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    started = time.perf_counter()
    files, path = given.out / "files", given.out / "cohort.zarr"
    cases = cohort.make(Path(__file__).resolve().parent.parent / "data" / "ct", files)
    print(f"{len(cases)} cases in {files}")
    report = suture.store.build(files / "images", labels=files / "labels", out=path, chunk=32)
    if report.failed:
        print("\n".join(report.failed.values()), file=sys.stderr)
        return 1
    store = suture.store.open(path)
    train, whole = pipelines(given.size)
    config = Config("segmentation", store.sha256, train.to_json(), whole.to_json(), CLASSES, [given.size] * 3, lesion=2,
                    seed=given.seed, steps_per_epoch=given.steps, epochs=given.epochs, threads=given.threads, val=VAL)
    results, run = [], None
    for number in range(1 if given.once else 2):
        folder = given.out / f"run_{number + 1}"
        shutil.rmtree(folder, ignore_errors=True)  # a checkpoint there would be gone on from
        run = Run(config, store, folder, device=given.device, say=lambda line, n=number + 1: print(f"run {n}: {line}", flush=True))
        run.train()
        results.append(run.results(run.evaluate()))
        config.with_results(results[-1]).save(folder / "run.json")
    pictures.losses(results, given.steps, given.out / "loss.png")
    pictures.sheet([(name, loaded(store[name].volume("image")), loaded(store[name].volume("labels")), run.predictions[name])
                    for name in VAL], WINDOW, CLASSES, given.out / "sheet.png")
    same = all(one == results[0] for one in results)
    if not given.once:
        print("both runs gave the same bits" if same else "the runs differ")
    print(json.dumps({"example": "train", "cases": len(cases), "cohort": store.sha256, "runs": len(results), "same": same,
                      "seconds": round(time.perf_counter() - started, 1), "feed": run.statistics, **results[0]}))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
