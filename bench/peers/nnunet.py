#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suture against batchgeneratorsv2: the default training augmentation of nnU-Net, one thread each, in turns.

    nnunet.py NNUNET_CHAIN [--rounds N] [--samples N] [--out FILE]

NNUNET_CHAIN is the program made from nnunet_chain.cpp. Both begin with the same preprocessed volume (float32 noise, int8
organs) and the same places of the enlarged patch, drawn as nnU-Net's loader draws them, and end with a float32 patch of
96^3 and its targets: cut and padded, turned, scaled, mirrored, augmented, label -1 removed, targets of deep supervision.
Every operation is as frequent as in training, so both times are means over samples; they are of the processor, which
other programs on the machine disturb less than the clock. The ratio is that of the medians of the rounds. There are three
cases, of 2, 3 and 12 organs: batchgeneratorsv2 interpolates each label of a turned patch by itself.
"""
import os

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # before the libraries below read it

import argparse
import importlib.metadata
import json
import pathlib
import statistics
import tempfile
import time

import answering
import numpy as np
import torch
from batchgeneratorsv2.transforms.intensity.brightness import MultiplicativeBrightnessTransform
from batchgeneratorsv2.transforms.intensity.contrast import BGContrast, ContrastTransform
from batchgeneratorsv2.transforms.intensity.gamma import GammaTransform
from batchgeneratorsv2.transforms.intensity.gaussian_noise import GaussianNoiseTransform
from batchgeneratorsv2.transforms.noise.gaussian_blur import GaussianBlurTransform
from batchgeneratorsv2.transforms.spatial.low_resolution import SimulateLowResolutionTransform
from batchgeneratorsv2.transforms.spatial.mirroring import MirrorTransform
from batchgeneratorsv2.transforms.spatial.spatial import SpatialTransform
from batchgeneratorsv2.transforms.utils.compose import ComposeTransforms
from batchgeneratorsv2.transforms.utils.deep_supervision_downsampling import DownsampleSegForDSTransform
from batchgeneratorsv2.transforms.utils.random import RandomTransform
from batchgeneratorsv2.transforms.utils.remove_label import RemoveLabelTansform

PATCH = (96, 96, 96)
VOLUME = (160, 192, 192)
ORGANS = (2, 3, 12)


def default_augmentation(scales):
    """The published probabilities and ranges of the 3D configuration."""
    angle = (-30 / 180 * np.pi, 30 / 180 * np.pi)
    contrast, gamma = BGContrast((0.75, 1.25)), BGContrast((0.7, 1.5))
    apart = {"synchronize_channels": False}
    return ComposeTransforms([
        SpatialTransform(PATCH, patch_center_dist_from_border=0, random_crop=False, p_elastic_deform=0, p_rotation=0.2,
                         rotation=angle, p_scaling=0.2, scaling=(0.7, 1.4), p_synchronize_scaling_across_axes=1,
                         bg_style_seg_sampling=False),
        RandomTransform(GaussianNoiseTransform((0, 0.1), p_per_channel=1, synchronize_channels=True), 0.1),
        RandomTransform(GaussianBlurTransform((0.5, 1.0), synchronize_axes=False, p_per_channel=0.5, **apart), 0.2),
        RandomTransform(MultiplicativeBrightnessTransform(contrast, p_per_channel=1, **apart), 0.15),
        RandomTransform(ContrastTransform(contrast, preserve_range=True, p_per_channel=1, **apart), 0.15),
        RandomTransform(SimulateLowResolutionTransform((0.5, 1), synchronize_axes=True, ignore_axes=None,
                                                       allowed_channels=None, p_per_channel=0.5, **apart), 0.25),
        RandomTransform(GammaTransform(gamma, p_invert_image=1, p_per_channel=1, p_retain_stats=1, **apart), 0.1),
        RandomTransform(GammaTransform(gamma, p_invert_image=0, p_per_channel=1, p_retain_stats=1, **apart), 0.3),
        MirrorTransform(allowed_axes=(0, 1, 2)),
        RemoveLabelTansform(-1, 0),
        DownsampleSegForDSTransform([[1, 1, 1], *scales]),
    ])


def cut(volume, start, size, outside, dtype):
    """The patch at `start`, which may leave the volume, as the loader hands it on."""
    patch = np.full((1, *size), outside, dtype)
    low = [max(0, s) for s in start]
    high = [min(n, s + k) for n, s, k in zip(volume.shape, start, size)]
    to = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, start))
    patch[0][to] = volume[tuple(slice(a, b) for a, b in zip(low, high))]
    return torch.from_numpy(patch)


def organs(random, count):
    """Ellipsoids with radii of a tenth to a third of the volume's sides, and the background."""
    labels = np.zeros(VOLUME, np.int8)
    at = np.meshgrid(*[np.linspace(-1, 1, n, dtype=np.float32) for n in VOLUME], indexing="ij")
    for organ in range(1, count + 1):
        center, radius = random.uniform(-0.7, 0.7, 3), random.uniform(0.2, 0.6, 3)
        labels[sum(((x - c) / r) ** 2 for x, c, r in zip(at, center, radius)) < 1] = organ
    return labels


def measure(program, image, labels, folder, options, random):
    files = [folder / name for name in ("image", "labels")]
    image.tofile(files[0])
    labels.tofile(files[1])
    suture = answering.Program(program, *files, *VOLUME, PATCH[0])
    shape = suture.ask("enlarged")
    enlarged = shape["enlarged"]
    augment = default_augmentation(shape["scales"])

    def draw_places(count):
        margin = [n - p for n, p in zip(enlarged, PATCH)]
        low = [-(m // 2) for m in margin]
        high = [n + m // 2 + m % 2 - e for n, m, e in zip(VOLUME, margin, enlarged)]
        return [[int(random.integers(a, b + 1)) for a, b in zip(low, high)] for _ in range(count)]

    def time_peer(places):
        """Seconds of the processor a sample."""
        start = time.process_time()
        for place in places:
            made = augment(image=cut(image, place, enlarged, 0, np.float32),
                           segmentation=cut(labels, place, enlarged, -1, np.int16))
            assert tuple(made["image"].shape) == (1, *PATCH) and len(made["segmentation"]) == 1 + len(shape["scales"])
        return (time.process_time() - start) / len(places)

    def time_suture(places):
        return statistics.mean(suture.ask("time " + " ".join(str(i) for p in places for i in p))["processor"])

    time_peer(draw_places(3))  # what is set up at the first call
    time_suture(draw_places(3))
    ours, peer = [], []
    for _ in range(options.rounds):
        places = draw_places(options.samples)
        peer.append(time_peer(places))
        ours.append(time_suture(places * 5))  # with other draws each time
    suture.close()
    return statistics.median(ours), statistics.median(peer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)
    random = np.random.default_rng(0)
    image = random.standard_normal(VOLUME, np.float32)
    result = {
        "patch": PATCH,
        "threads": 1,
        "batchgeneratorsv2": importlib.metadata.version("batchgeneratorsv2"),
        "torch": torch.__version__,
        "rounds": options.rounds,
        "samples_a_round": options.samples,
        "cases": [],
    }
    for count in ORGANS:
        with tempfile.TemporaryDirectory() as folder:
            ours, peer = measure(options.program, image, organs(random, count), pathlib.Path(folder), options, random)
        result["cases"].append({"organs": count, "suture_ms": 1000 * ours, "batchgeneratorsv2_ms": 1000 * peer,
                                "times_as_fast": peer / ours})
        print(f"{count} organs: batchgeneratorsv2 {1000 * peer:.1f} ms, suture {1000 * ours:.2f} ms a patch: "
              f"{peer / ours:.1f} times as fast", flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
