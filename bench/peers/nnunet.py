#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suture against batchgeneratorsv2: the default training augmentation of nnU-Net, one thread each, in turns.

    nnunet.py NNUNET [--rounds N] [--samples N] [--out FILE]

NNUNET is the program made from bench/nnunet.cpp: one patch of 96^3 a sample, image and labels, with every operation as
frequent as in training. batchgeneratorsv2 gets the enlarged patch already cut; suture reads it from the volume. Both
times are means over samples, because samples differ in what they draw, and of the processor, which other programs on
the machine disturb less than the clock. The ratio is that of the medians of the rounds.
"""
import os

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"  # before the libraries below read it

import argparse
import importlib.metadata
import json
import pathlib
import statistics
import subprocess
import time

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
from batchgeneratorsv2.transforms.utils.random import RandomTransform

PATCH = (96, 96, 96)
ENLARGED = (154, 154, 154)


def default_augmentation():
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
    ])


def time_peer(samples, augment, image, labels):
    """Seconds of processor a sample."""
    start = time.process_time()
    for _ in range(samples):
        made = augment(image=image.clone(), segmentation=labels.clone())
        assert tuple(made["image"].shape) == (1, *PATCH)
    return (time.process_time() - start) / samples


def time_suture(program):
    """The same, of the recipe and of its every step at once."""
    printed = subprocess.run([program, "--benchmark_filter=^nnunet", "--benchmark_format=json"], check=True,
                             capture_output=True, text=True).stdout
    return json.loads(printed)["benchmarks"][0]["cpu_time"] / 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    np.random.seed(0)
    image = torch.from_numpy(random.standard_normal((1, *ENLARGED)).astype(np.float32))
    where = np.indices(ENLARGED) // 40  # organs of smooth surfaces: background and two labels
    labels = torch.from_numpy((where.sum(0) % 3).astype(np.int16))[None]
    augment = default_augmentation()
    time_peer(3, augment, image, labels)  # what is set up at the first call

    suture, peer = [], []
    for _ in range(options.rounds):
        suture.append(time_suture(options.program))
        peer.append(time_peer(options.samples, augment, image, labels))
    result = {
        "patch": PATCH,
        "threads": 1,
        "batchgeneratorsv2": importlib.metadata.version("batchgeneratorsv2"),
        "torch": torch.__version__,
        "rounds": options.rounds,
        "samples_a_round": options.samples,
        "suture_ms": 1000 * statistics.median(suture),
        "batchgeneratorsv2_ms": 1000 * statistics.median(peer),
    }
    result["times_as_fast"] = result["batchgeneratorsv2_ms"] / result["suture_ms"]
    print(f"batchgeneratorsv2 {result['batchgeneratorsv2_ms']:.1f} ms, suture {result['suture_ms']:.2f} ms a patch: "
          f"{result['times_as_fast']:.1f} times as fast")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
