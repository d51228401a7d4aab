# SPDX-License-Identifier: Apache-2.0
"""Times the training loop of examples/train with three loaders on two processors: MONAI's, nnU-Net's, and suture's feed.

    python python/bench/loaders.py [--rounds N] [--steps N] [--out FILE]

All read the same cases of examples/train, and give batches of 4 patches of 40 voxels at 3 mm to the same 3D U-Net. MONAI has
CacheDataset and DataLoader with 2 workers: scans are windowed and resampled once and lie in memory, as its documentation advises.
nnU-Net has its data loader with 2 workers on its files of Blosc2 at 3 mm, with its own, longer augmentation. suture's feed reads
the store at its own spacing, resamples while it augments, and has 2 threads; it is timed on the scans at 3 mm as well. The loaders
take turns. In its turn a loader is started, gives a few batches, is timed for an epoch, and is stopped again, so that none works
while another one is timed. An epoch is timed with the steps of the network, and without them. Without them, what a loader has
made ahead is taken first and not timed."""
from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "python"), str(REPOSITORY / "examples/train")]

import numpy as np  # noqa: E402
import suture as st  # noqa: E402
import suture.store  # noqa: E402
import torch  # noqa: E402
from suture.feed import Feed  # noqa: E402

SIZE, BATCH, WORKERS, SPACING = 40, 4, 2, 3.0
AHEAD = 70  # batches, more than any of the loaders makes before it is asked
Batches = Iterator[tuple[Any, Any]]


def at_3_mm(store: Any) -> dict[str, dict[str, Any]]:
    """The windowed scans and their labels at 3 mm, in memory."""
    from suture.training.segmentation import loaded

    whole = st.Pipeline(image=[st.window(center=60, width=300), st.resample(spacing_mm=SPACING)], seg=st.labels())
    made = {}
    for name in store:
        scan, labels = loaded(store[name].volume("image")), loaded(store[name].volume("labels"))
        out = whole({"image": [scan], "seg": [labels], "id": [name]}, training=False)
        image, seg = (np.asarray(out[key][0]) for key in ("image", "seg"))
        axes = scan.axes
        made[name] = {"image": st.Volume(image, axes=axes, spacing=SPACING), "labels": st.Volume(seg, axes=axes, spacing=SPACING)}
    return made


def of_suture(cohort: Any, resampled: bool, steps: int) -> Batches:
    before = [] if resampled else [st.window(center=60, width=300), st.resample(spacing_mm=SPACING)]
    pipeline = st.Pipeline(
        image=[*before, st.random_affine(rotate_deg=15, scale=(.9, 1.1), probability=.5),
               st.crop_by_class(size=SIZE, labels="seg", ratios=[1, 1, 2]), st.random_gamma(range=(.8, 1.25)), st.gaussian_noise(sigma=.02)],
        seg=st.labels())
    feed = Feed(cohort, pipeline, batch=BATCH, seed=1, threads=WORKERS, steps_per_epoch=steps, device="cpu", bar=False)
    with feed:
        for epoch in feed.epochs(1 << 20):
            for batch in epoch:
                yield batch["image"], batch["seg"]


def of_monai(cases: dict[str, dict[str, Any]], steps: int) -> Batches:
    from monai.data import CacheDataset, DataLoader
    from monai.transforms import Compose, EnsureTyped, RandAdjustContrastd, RandAffined, RandCropByLabelClassesd, RandGaussianNoised

    def volume(v: Any) -> np.ndarray:
        return np.asarray(v)[None] if np.asarray(v).ndim == 3 else np.asarray(v)

    data = [{"image": volume(c["image"]), "seg": volume(c["labels"])} for c in cases.values()]
    keys, turn = ["image", "seg"], np.deg2rad(15)
    chain = Compose([EnsureTyped(keys),
                     RandAffined(keys, prob=.5, rotate_range=(turn,) * 3, scale_range=(.1,) * 3, mode=("bilinear", "nearest"), padding_mode="border"),
                     RandCropByLabelClassesd(keys, label_key="seg", spatial_size=(SIZE,) * 3, ratios=[1, 1, 2], num_classes=3, num_samples=1,
                                             allow_smaller=False),
                     RandAdjustContrastd("image", prob=1, gamma=(.8, 1.25)), RandGaussianNoised("image", prob=1, std=.02)])
    dataset = CacheDataset(data, chain, progress=False)
    sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=BATCH * steps)
    loader = DataLoader(dataset, batch_size=BATCH, sampler=sampler, num_workers=WORKERS, persistent_workers=True)
    while True:
        for batch in loader:
            yield batch["image"], batch["seg"]


def of_nnunet(cases: dict[str, dict[str, Any]], folder: Path) -> Batches:
    from types import SimpleNamespace

    from batchgenerators.dataloading.nondet_multi_threaded_augmenter import NonDetMultiThreadedAugmenter
    from nnunetv2.training.data_augmentation.compute_initial_patch_size import get_patch_size
    from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader
    from nnunetv2.training.dataloading.nnunet_dataset import nnUNetDatasetBlosc2, comp_blosc2_params
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer

    folder.mkdir(exist_ok=True)
    for name, case in cases.items():
        image, seg = (np.ascontiguousarray(np.asarray(case[key]).reshape(1, *np.asarray(case[key]).shape[-3:]), dtype)
                      for key, dtype in (("image", np.float32), ("labels", np.int8)))
        if (folder / f"{name}.b2nd").exists():
            continue
        places = {k: np.argwhere(seg == k)[:10000] for k in (1, 2)}
        blocks, chunks = comp_blosc2_params(image.shape, (SIZE,) * 3)
        nnUNetDatasetBlosc2.save_case(image, seg, {"class_locations": places}, str(folder / name), chunks=chunks, blocks=blocks)
    turn = (-np.pi / 6, np.pi / 6)
    transforms = nnUNetTrainer.get_training_transforms((SIZE,) * 3, turn, None, (0, 1, 2), False, use_mask_for_norm=[False])
    loader = nnUNetDataLoader(nnUNetDatasetBlosc2(str(folder)), BATCH, get_patch_size((SIZE,) * 3, turn, turn, turn, (.85, 1.25)), (SIZE,) * 3,
                              SimpleNamespace(all_labels=[0, 1, 2], has_ignore_label=False), oversample_foreground_percent=.33,
                              transforms=transforms)
    batches = NonDetMultiThreadedAugmenter(loader, None, WORKERS, num_cached=6, seeds=None, pin_memory=False, wait_time=.002)
    try:
        while True:
            batch = next(batches)
            yield batch["data"], batch["target"]
    finally:
        batches._finish()


def network() -> Callable[[Any, Any], None]:
    """A step of training, as examples/train has it."""
    from monai.losses import DiceCELoss
    from monai.networks.nets import UNet

    torch.manual_seed(1)
    net = UNet(3, 1, 3, (8, 16, 32), (2, 2), num_res_units=1, norm="INSTANCE")
    optimizer, loss = torch.optim.AdamW(net.parameters(), lr=8e-3), DiceCELoss(to_onehot_y=True, softmax=True, include_background=False)

    def step(image: Any, seg: Any) -> None:
        made = loss(net(torch.as_tensor(image).float()), torch.as_tensor(seg).long())
        optimizer.zero_grad(set_to_none=True)
        made.backward()
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "bench/results/loaders.json")
    given = parser.parse_args()
    processors = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, processors)
    torch.set_num_threads(2)
    import cohort

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        cohort.make(REPOSITORY / "examples/data/ct", folder / "files")
        suture.store.build(folder / "files/images", labels=folder / "files/labels", out=folder / "cohort.zarr", chunk=32)
        store = suture.store.open(folder / "cohort.zarr")
        cases = at_3_mm(store)
        loaders: dict[str, Callable[[], Batches]] = {"suture, from the store": lambda: of_suture(store, False, given.steps),
                                       "suture, scans at 3 mm in memory": lambda: of_suture(cases, True, given.steps),
                                       "MONAI, CacheDataset and DataLoader": lambda: of_monai(cases, given.steps),
                                       "nnU-Net, its data loader": lambda: of_nnunet(cases, folder / "nnunet")}
        step = network()
        seconds: dict[str, dict[str, list[float]]] = {name: {"with": [], "without": []} for name in loaders}
        network_alone = []
        for number in range(given.rounds + 1):  # the first one compiles and fills caches
            for kind in ("with", "without"):
                for name, start in loaders.items():
                    batches = start()
                    for _ in range(4 if kind == "with" else AHEAD):
                        image, seg = next(batches)
                        assert image.shape == seg.shape == (BATCH, 1, SIZE, SIZE, SIZE), (image.shape, seg.shape)
                        if kind == "with":
                            step(image, seg)
                    began = time.perf_counter()
                    for _ in range(given.steps):
                        one, two = next(batches)
                        if kind == "with":
                            step(one, two)
                    if number:
                        seconds[name][kind].append(time.perf_counter() - began)
                    batches.close()  # type: ignore[attr-defined]
            began = time.perf_counter()
            for _ in range(given.steps):
                step(image, seg)
            if number:
                network_alone.append(time.perf_counter() - began)
    rows = [{"loader": name, "seconds_an_epoch": round(statistics.median(found["with"]), 2),
             "seconds_without_network": round(statistics.median(found["without"]), 2),
             "times_the_network_alone": round(statistics.median(a / b for a, b in zip(found["with"], network_alone)), 2)}
            for name, found in seconds.items()]
    report = {"what": "an epoch of examples/train with different loaders, in turns on the same two processors; medians",
              "date": time.strftime("%Y-%m-%d"), "steps": given.steps, "batch": BATCH, "patch": SIZE, "rounds": given.rounds,
              "network_alone_seconds": round(statistics.median(network_alone), 2), "processors": len(processors), "machine": platform.machine(),
              "versions": {name: metadata.version(name) for name in ("nnunetv2", "monai", "torch")}, "rows": rows}
    given.out.write_text(json.dumps(report, indent=1) + "\n")
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
