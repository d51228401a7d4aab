# SPDX-License-Identifier: Apache-2.0
"""From files to a checkpoint: builds stores, trains a 3D U-Net on scans and a grader on tiles of slides, each twice, and compares
the two runs bit for bit.

    examples/run train [--only scans|tiles] [--out DIR] [--epochs N] [--steps N] [--once]

It leaves in DIR the files of a small cohort, the store, and for each run the checkpoint, predictions as NIfTI on the scans'
own grids and run.json; beside them loss.png and sheet.png. DIR/tiles has the same of the slides, with predicted label maps
as PNG. The last line of the output is the report as JSON. The exit status is 1 where two runs differ."""
from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import suture as st
import suture.store
from suture.training.config import Config
from suture.training.run import Training

import cohort
import pictures
import slides

CLASSES = ["background", "liver", "lesion"]
WINDOW = dict(center=60, width=300)
VAL = ["scan_4", "scan_5", "phantom_1"]
DATA = Path(__file__).resolve().parent.parent / "data"
SLIDES_OF_VAL = ["breast_a", "breast_b"]  # of patients whose slides are not trained on
GRADES, BOUNDS = ["few nuclei", "some nuclei", "many nuclei"], [.12, .3]


def pipelines(size: int) -> tuple[st.Pipeline, st.Pipeline]:
    """What patches for training go through, and whole scans."""
    train = st.Pipeline(
        image=[st.window(**WINDOW), st.resample(spacing_mm=3), st.random_affine(rotate_deg=15, scale=(.9, 1.1), probability=.5),
               st.crop_by_class(size=size, labels="seg", ratios=[1, 1, 2]), st.random_gamma(range=(.8, 1.25)),
               st.gaussian_noise(sigma=.02)],
        seg=st.labels())
    return train, st.Pipeline(image=[st.window(**WINDOW), st.resample(spacing_mm=3)])


def pipeline_of_tiles() -> st.Pipeline:
    """The pipeline of tiles; evaluation switches chance off."""
    return st.Pipeline(rgb=[st.random_flip(), st.macenko_normalize(fitted=st.per_sample("stains")),
                            st.random_hed_jitter(alpha=(.7, 1.3), beta=(-.02, .02)), st.rescale(slope=1 / 255)],
                       seg=st.labels())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples/run train", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("train.out"), help="folder for everything that is made (train.out)")
    parser.add_argument("--only", choices=("scans", "tiles"), help="one of the two trainings")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=40, help="steps of an epoch (40)")
    parser.add_argument("--tile-epochs", type=int, default=5, help="epochs of the grader (5)")
    parser.add_argument("--tile-steps", type=int, default=40, help="steps of an epoch of the grader (40)")
    parser.add_argument("--size", type=int, default=40, help="voxels of a patch along each axis (40)")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--once", action="store_true", help="one run; nothing is compared")
    return parser.parse_args()


def trained(kind: type[Training], config: Config, store: Any, out: Path, given: argparse.Namespace) -> tuple[list[dict[str, Any]], Any]:
    """Trains once or twice from the beginning; returns the results of each run, and the last run."""
    results, run = [], None
    for number in range(1 if given.once else 2):
        folder = out / f"run_{number + 1}"
        shutil.rmtree(folder, ignore_errors=True)  # a checkpoint there would be gone on from
        run = kind(config, store, folder, device=given.device,
                   say=lambda line, n=number + 1: print(f"{config.task}, run {n}: {line}", flush=True))
        run.train()
        results.append(run.results(run.evaluate()))
        config.with_results(results[-1]).save(folder / "run.json")
    return results, run


def built(files: Path, path: Path, cases: list[str], **settings: Any) -> Any:
    """The store of files/images and files/labels."""
    print(f"{len(cases)} cases in {files}")
    report = suture.store.build(files / "images", labels=files / "labels", out=path, **settings)
    if report.failed:
        raise st.Error("\n".join(report.failed.values()))
    return suture.store.open(path)


def report_of(results: list[dict[str, Any]], run: Any, cases: list[str]) -> dict[str, Any]:
    """The part of the report that one training gives."""
    return {"cases": len(cases), "cohort": run.config.cohort, "runs": len(results), "same": all(one == results[0] for one in results),
            "feed": run.statistics, **results[0]}


def train_on_scans(given: argparse.Namespace) -> dict[str, Any]:
    from suture.training.segmentation import Run, loaded

    files = given.out / "files"
    cases = cohort.make(DATA / "ct", files)
    store = built(files, given.out / "cohort.zarr", cases, chunk=32)
    train, whole = pipelines(given.size)
    config = Config("segmentation", store.sha256, train.to_json(), whole.to_json(), CLASSES, [given.size] * 3, lesion=2,
                    seed=given.seed, steps_per_epoch=given.steps, epochs=given.epochs, threads=given.threads, val=VAL)
    results, run = trained(Run, config, store, given.out, given)
    pictures.losses(results, given.steps, given.out / "loss.png", "Loss of patches, by step")
    pictures.sheet([(name, loaded(store[name].volume("image")), loaded(store[name].volume("labels")), run.predictions[name])
                    for name in VAL], WINDOW, CLASSES, given.out / "sheet.png")
    return report_of(results, run, cases)


def train_on_tiles(given: argparse.Namespace) -> dict[str, Any]:
    from suture.training.tiles import Run

    out = given.out / "tiles"
    cases = slides.make(DATA / "histology", out / "files")
    store = built(out / "files", out / "slides.zarr", cases, mpp=1)
    pipeline = pipeline_of_tiles().to_json()
    config = Config("tiles", store.sha256, pipeline, pipeline, ["background", "nucleus"], [64, 64], seed=given.seed, batch=8,
                    steps_per_epoch=given.tile_steps, epochs=given.tile_epochs, threads=given.threads, val=SLIDES_OF_VAL,
                    tiles={"mpp": 1, "least_tissue": .1, "ratios": [1, 1], "least_label": .2}, grades=GRADES, bounds=BOUNDS)
    results, run = trained(Run, config, store, out, given)
    pictures.losses(results, given.tile_steps, out / "loss.png", "Loss of tiles, by step")
    pictures.sheet_of_slides([(name, store[name], *run.predictions[name]) for name in SLIDES_OF_VAL], 64, GRADES, out / "sheet.png")
    return report_of(results, run, cases)


def main() -> int:
    given = arguments()
    started = time.perf_counter()
    report: dict[str, Any] = {"example": "train"}
    try:
        if given.only != "tiles":
            report.update(train_on_scans(given))
        if given.only != "scans":
            report["tiles"] = train_on_tiles(given)
    except st.Error as problem:
        print(problem, file=sys.stderr)
        return 1
    same = all(part["same"] for part in (report, report.get("tiles")) if part and "same" in part)
    if not given.once:
        print("both runs gave the same bits" if same else "the runs differ")
    print(json.dumps({**report, "seconds": round(time.perf_counter() - started, 1)}))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
