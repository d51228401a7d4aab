#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suture beside its peers, all called from Python on one CPU core, in turns, in one run.

    peers.py [--rounds N] [--only NAME]

Needs what requirements.txt beside this file names. Every pair gets the same voxels and is asked for the same steps with
parameters as frequent and as wide, written as the peer's documentation writes them: the draws differ, so the bits do too.
Times are of the processor, which other programs on the machine disturb less than the clock; means over rounds of a call
each, since what a call draws decides how long it takes, and the ratio is that of the means. Results are a table for
docs/python.md.
"""
from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"  # before the libraries below read it

import argparse
import datetime
import importlib.metadata
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import nibabel
import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
import suture as st  # noqa: E402
import suture.torch  # noqa: E402

torch.set_num_threads(1)
Pair = tuple[str, str, Callable[[], Any], Callable[[], Any]]


def abdomen() -> tuple[Any, Any, np.ndarray]:
    """The CT of examples/data at 3 mm, its labels, and the affine: arrays (x, y, z)."""
    scan, organs = (nibabel.load(ROOT / f"examples/data/ct/abdomen_ct{end}.nii.gz") for end in ("", "_labels"))
    return np.asanyarray(scan.dataobj).astype(np.int16), np.asanyarray(organs.dataobj).astype(np.uint8), scan.affine


SIZE, SPACING = 96, 2.0
PREPARE = [st.window(center=40, width=400), st.resample(spacing_mm=SPACING)]
TRAIN = [st.random_affine(rotate_deg=15, scale=(.85, 1.25), probability=.5), st.random_crop(size=SIZE), st.random_flip(),
         st.random_gamma(range=(.7, 1.5), probability=.3), st.gaussian_noise(sigma=(0, .1), probability=.1)]


def scan() -> dict[str, Any]:
    """The CT and its labels for suture."""
    image, labels, affine = abdomen()
    return {"image": [st.Volume(image[None], axes="xyz", affine_ras=affine)],
            "seg": [st.Volume(labels[None], axes="xyz", affine_ras=affine)]}


def trained(chain: list[Any], batch: dict[str, Any]) -> Callable[[], Any]:
    augment = st.Augment(st.Pipeline(image=chain, seg=st.labels()), seed=1, threads=1)
    return lambda: augment(batch)


def prepared() -> dict[str, Any]:
    """The same at 2 mm, as a cache of preprocessed scans has it."""
    made = st.Pipeline(image=PREPARE, seg=st.labels())(scan(), threads=1)
    return {key: made[key] for key in ("image", "seg")}


def _monai_transforms() -> tuple[list[Any], list[Any], dict[str, Any]]:
    from monai import transforms as one
    from monai.data import MetaTensor

    image, labels, affine = abdomen()
    keys = ["image", "seg"]
    item = {"image": MetaTensor(torch.from_numpy(image[None].astype(np.float32)), affine=torch.from_numpy(affine)),
            "seg": MetaTensor(torch.from_numpy(labels[None]), affine=torch.from_numpy(affine))}
    turn = float(np.deg2rad(15))
    prepare = [one.ScaleIntensityRanged("image", a_min=-160, a_max=240, b_min=0, b_max=1, clip=True),
               one.Spacingd(keys, (SPACING,) * 3, mode=("bilinear", "nearest"))]
    # Cut first, as MONAI's tutorials do: a patch is turned and not the scan.
    train = [one.RandSpatialCropd(keys, (SIZE,) * 3, random_size=False),
             one.RandAffined(keys, prob=.5, rotate_range=(turn,) * 3, scale_range=((-.15, .25),) * 3, mode=("bilinear", "nearest")),
             *(one.RandFlipd(keys, prob=.5, spatial_axis=axis) for axis in range(3)),
             one.RandAdjustContrastd("image", prob=.3, gamma=(.7, 1.5)), one.RandGaussianNoised("image", prob=.1, std=.1)]
    return prepare, train, item


def monai() -> Pair:
    """Spacing, rotation and scale, crop, flips, gamma, noise, of an image and its labels."""
    from monai.transforms import Compose

    prepare, train, item = _monai_transforms()
    chain = Compose([*prepare, *train]).set_random_state(0)
    return "MONAI", "CT of 3 mm to 2 mm, turned, cut to 96³, with labels", trained([*PREPARE, *TRAIN], scan()), lambda: chain(dict(item))


def monai_cached() -> Pair:
    """What of it is random, from a CacheDataset."""
    from monai.transforms import Compose

    prepare, train, item = _monai_transforms()
    cached, chain = Compose(prepare)(item), Compose(train).set_random_state(0)
    return "MONAI", "the same from a cache at 2 mm: what is random alone", trained(TRAIN, prepared()), lambda: chain(dict(cached))


def torchio() -> Pair:
    """The same by TorchIO, cut first too."""
    import torchio as tio

    made = prepared()
    affine = made["image"][0].affine_ras
    subject = tio.Subject(image=tio.ScalarImage(tensor=torch.from_numpy(made["image"][0].array), affine=affine),
                          seg=tio.LabelMap(tensor=torch.from_numpy(made["seg"][0].array), affine=affine))
    chain = tio.Compose([tio.CropOrPad((SIZE,) * 3), tio.RandomAffine(scales=(.85, 1.25), degrees=15, p=.5),
                         tio.RandomFlip(axes=(0, 1, 2)), tio.RandomGamma(p=.3), tio.RandomNoise(std=(0, .1), p=.1)])
    return "TorchIO", "the same", trained(TRAIN, made), lambda: chain(subject)


PATCH = (96, 96, 96)
SCALES = [[1, 1, 1], [.5] * 3, [.25] * 3, [.125] * 3]


def batchgeneratorsv2() -> Pair:
    """nnU-Net 2.8's own augmentation of a patch and its targets, from the volume in memory."""
    from acvl_utils.cropping_and_padding.bounding_boxes import crop_and_pad_nd
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer

    from suture.nnunet.patches import Cut, Patches

    image, labels, _ = abdomen()
    image, labels = image.T[None], labels.T[None]  # nnU-Net's preprocessing stores (channel, z, y, x)
    scan = np.ascontiguousarray((image - 40.0) / 400, np.float32)
    organs = np.ascontiguousarray(np.where(labels < 4, labels, 0), np.int16)
    patches = Patches(PATCH, levels=SCALES)
    turn = (-np.pi / 6, np.pi / 6)
    chain = nnUNetTrainer.get_training_transforms(PATCH, turn, SCALES, (0, 1, 2), False, use_mask_for_norm=[False])
    low = [-((e - p) // 2) for e, p in zip(patches.enlarged, PATCH)]
    places, number = np.random.default_rng(0), 0

    def start() -> list[int]:
        return [int(places.integers(a, max(n - p + a, a) + 1)) for a, n, p in zip(low, scan.shape[1:], PATCH)]

    def ours() -> Any:
        nonlocal number
        number += 1
        return patches([Cut(scan, [organs], start())], [number], seed=1, epoch=0)

    def theirs() -> Any:
        box = [[s, s + e] for s, e in zip(start(), patches.enlarged)]
        return chain(image=torch.from_numpy(crop_and_pad_nd(scan, box, 0)),
                     segmentation=torch.from_numpy(crop_and_pad_nd(organs, box, -1)))

    return "batchgeneratorsv2", "nnU-Net 2.8's augmentation of 96³, 3 organs", ours, theirs


def nnunet() -> Pair:
    """A batch of two patches of 128^3 by nnU-Net's loader, from its files on disk to what the network gets."""
    import tempfile
    from types import SimpleNamespace

    from nnunetv2.training.dataloading import nnunet_dataset
    from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
    from scipy import ndimage

    from suture.nnunet.loader import Order, SutureLoader
    from suture.nnunet.patches import Patches

    size = (128, 128, 128)
    image, labels, _ = abdomen()
    image, labels = image.T, labels.T
    fine = ndimage.zoom(image.astype(np.float32), 2.4, order=1)[None]
    organs = ndimage.zoom(np.where(labels < 4, labels, 0), 2.4, order=0)[None].astype(np.int8)
    room = tempfile.TemporaryDirectory(prefix="suture-bench-")
    folder = room.name
    places = {k: np.argwhere(organs == k)[::50] for k in (1, 2, 3)}
    data_set = nnunet_dataset.nnUNetDatasetBlosc2
    parameters = getattr(nnunet_dataset, "comp_blosc2_params", None) or data_set.comp_blosc2_params
    blocks, chunks = parameters(fine.shape, size)
    for k in range(2):
        data_set.save_case((fine - 40) / 400, organs, {"class_locations": places}, f"{folder}/case_{k}", chunks=chunks, blocks=blocks,
                           chunks_seg=chunks, blocks_seg=blocks)
    patches = Patches(size, levels=SCALES)
    turn = (-np.pi / 6, np.pi / 6)
    chain = nnUNetTrainer.get_training_transforms(size, turn, SCALES, (0, 1, 2), False, use_mask_for_norm=[False])
    roles = SimpleNamespace(all_labels=[0, 1, 2, 3], has_ignore_label=False)
    stock = nnUNetDataLoader(data_set(folder), 2, patches.enlarged, size, roles, .33, transforms=chain)
    ours = SutureLoader(data_set(folder), 2, patches.enlarged, size, roles, order=Order(1, 250, 0, (0, 1), 2, "training"),
                        patches=patches, oversample=.33, workers=0)
    return "nnunetv2", "a batch of nnU-Net 2.8, 2 patches of 128³ from disk", lambda: (room, next(ours)), lambda: next(stock)


def tiles(count: int, size: int) -> np.ndarray:
    """Tiles of a TCGA image, uint8 (tile, y, x, channel)."""
    from PIL import Image

    whole = np.asarray(Image.open(ROOT / "examples/data/histology/headneck_tcga.png").convert("RGB"))
    places = np.random.default_rng(0).integers(0, [whole.shape[0] - size + 1, whole.shape[1] - size + 1], (count, 2))
    return np.stack([whole[y:y + size, x:x + size] for y, x in places])


def kornia() -> Pair:
    """Colors jittered, flips, ImageNet's statistics, on 16 tiles of 256 x 256."""
    import kornia.augmentation as K

    given = tiles(16, 256)
    augment = st.Augment(st.Pipeline(layout="NHWC", rgb=[
        st.random_color_jitter(brightness=(.8, 1.2), contrast=(.8, 1.2), saturation=(.8, 1.2), hue=(-.05, .05)),
        st.random_flip(axis_probability=dict(y=.5, x=.5)), st.channel_normalize()]), seed=1, threads=1)
    chain = torch.nn.Sequential(K.ColorJitter(.2, .2, .2, .05, p=1.0), K.RandomHorizontalFlip(p=.5), K.RandomVerticalFlip(p=.5),
                                K.Normalize(mean=torch.tensor([.485, .456, .406]), std=torch.tensor([.229, .224, .225])))

    def theirs() -> Any:
        return chain(torch.from_numpy(given).permute(0, 3, 1, 2).float() / 255)

    return "Kornia", "16 tiles of 256²: colors, flips, normalized", lambda: augment({"rgb": given}), theirs


def torchstain() -> Pair:
    """Stains of a tile fitted and brought to a reference."""
    from torchstain.numpy.normalizers import NumpyMacenkoNormalizer

    tile = tiles(1, 512)
    normalizer = NumpyMacenkoNormalizer()
    pipeline = st.Pipeline(layout="NHWC", rgb=[st.macenko_normalize(fitted=st.per_sample("stains"))])

    def ours() -> Any:
        stains = st.fit_macenko(tile, mode="torchstain", layout="NHWC")
        return pipeline({"rgb": tile, "stains": stains}, threads=1)

    return "torchstain", "Macenko of a tile of 512²", ours, lambda: normalizer.normalize(tile[0], stains=False)


PAIRS = {make.__name__: make for make in (monai, monai_cached, torchio, batchgeneratorsv2, nnunet, kornia, torchstain)}


def timed(call: Callable[[], Any]) -> float:
    """Seconds that the processor worked."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", choices=list(PAIRS))
    options = parser.parse_args()
    rows = []
    for name in [options.only] if options.only else PAIRS:
        peer, what, ours, theirs = PAIRS[name]()
        for call in (ours, theirs):  # what is set up, or compiled, at the first calls
            call(), call()
        a, b = [], []
        for _ in range(options.rounds):
            b.append(timed(theirs))
            a.append(timed(ours))
        a_ms, b_ms = 1e3 * statistics.fmean(a), 1e3 * statistics.fmean(b)
        version = importlib.metadata.version(peer.lower())
        rows.append(f"| {what} | {peer} {version} | {b_ms:.1f} | {a_ms:.1f} | {b_ms / a_ms:.1f} |")
        print(rows[-1], flush=True)
    print(f"\n{datetime.date.today()}, torch {torch.__version__}, one core, means of {options.rounds} rounds\n\n"
          "| what | peer | peer, ms | suture, ms | ratio |\n| --- | --- | --- | --- | --- |\n" + "\n".join(rows))


if __name__ == "__main__":
    main()
