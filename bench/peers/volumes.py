#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suture against the libraries that turn volumes: one CT turned by up to 15 degrees, windowed, cut, and its labels.

    volumes.py CT_AFFINE [--rounds N] [--out FILE] [--tiny]

CT_AFFINE is the program made from ct_affine.cpp, which draws the map. All get the same voxels and the same matrix, from an
output voxel to the source, and make a float16 image and a uint8 label map; outside the volume is 0. Each peer is written
as a careful user writes it: it windows and reads only the part of the volume under the patch, in float32, and uses the
fastest of its own ways:

    SciPy       affine_transform, order 1 and 0
    SimpleITK   IntensityWindowing, Resample
    PyTorch     affine_grid once, grid_sample for both
    Kornia      warp_affine3d
    MONAI       networks.layers.AffineTransform
    TorchIO     Clamp, RescaleIntensity, Resample of a subject whose affine is the map

One thread each, in turns; medians are compared, of the wall clock and of the time the processor worked, which other
programs on the machine disturb less. Errors are those of the float16 image against double precision by NumPy; beside
them stands the error of that reference itself, rounded to float16. Labels are counted where they differ more than 1e-4
voxel away from a tie. Peers that only run on a GPU are named and left out.
"""
import compare  # first: it limits the threads of the libraries below

import argparse
import json
import pathlib
import statistics
import tempfile
import time

import answering
import kornia
import monai
import numpy as np
import scipy
import scipy_chain
import SimpleITK as sitk
import torch
import torchio
from monai.networks.layers import AffineTransform
from scipy import ndimage

SPACING = compare.SPACING
LOW, HIGH = -160, 240  # the window


class Problem:
    """The part of the volume under the patch and the map into it; preparing it is part of every peer's time."""

    def __init__(self, image, labels, matrix, patch):
        self.image, self.labels, self.matrix, self.patch = image, labels, np.array(matrix), patch

    def cut(self):
        start, stop = scipy_chain.read_box({"matrix": self.matrix, "patch": [self.patch] * 3, "order": 1,
                                            "shape": self.image.shape}, None)
        box = tuple(slice(a, b) for a, b in zip(start, stop))
        matrix = self.matrix.copy()
        matrix[:, 3] -= start
        return self.image[box], self.labels[box], matrix


def windowed(image):
    x = image.astype(np.float32)
    x -= LOW
    x *= 1 / (HIGH - LOW)
    return np.clip(x, 0, 1, out=x)


def by_scipy(p):
    image, labels, m = p.cut()
    size = [p.patch] * 3
    x = ndimage.affine_transform(windowed(image), m[:, :3], m[:, 3], size, np.float32, 1, "grid-constant")
    y = ndimage.affine_transform(labels, m[:, :3], m[:, 3], size, np.uint8, 0, "grid-constant")
    return x.astype(np.float16), y


def by_simpleitk(p):
    image, labels, m = p.cut()
    move = sitk.AffineTransform(3)  # x, y, z
    move.SetMatrix(np.ascontiguousarray(m[::-1, 2::-1]).ravel().tolist())
    move.SetTranslation(m[::-1, 3].tolist())
    size = [p.patch] * 3
    x = sitk.IntensityWindowing(sitk.Cast(sitk.GetImageFromArray(image), sitk.sitkFloat32), LOW, HIGH, 0, 1)
    x = sitk.Resample(x, size, move, sitk.sitkLinear, [0] * 3, [1] * 3, np.eye(3).ravel().tolist(), 0.0)
    y = sitk.Resample(sitk.GetImageFromArray(labels), size, move, sitk.sitkNearestNeighbor, [0] * 3, [1] * 3,
                      np.eye(3).ravel().tolist(), 0.0)
    return sitk.GetArrayViewFromImage(x).astype(np.float16), sitk.GetArrayFromImage(y)


def tensors(image, labels):
    x = torch.from_numpy(image).to(torch.float32)
    x.sub_(LOW).mul_(1 / (HIGH - LOW)).clamp_(0, 1)
    return x[None, None], torch.from_numpy(labels).to(torch.float32)[None, None]


def finished(x, y):
    return x[0, 0].to(torch.float16).numpy(), y[0, 0].to(torch.uint8).numpy()


def by_pytorch(p):
    image, labels, m = p.cut()
    x, y = tensors(image, labels)
    # From [-1, 1] over the patch to [-1, 1] over the part of the volume, x first, ends of an axis at its outer edges.
    source, patch = np.array(image.shape, float), np.full(3, float(p.patch))
    scale = m[:, :3] * patch / source[:, None]
    offset = (2 * (m[:, :3] @ ((patch - 1) / 2) + m[:, 3]) + 1) / source - 1
    theta = np.concatenate([scale[::-1, ::-1], offset[::-1, None]], 1)
    grid = torch.nn.functional.affine_grid(torch.from_numpy(theta.astype(np.float32))[None], (1, 1, *[p.patch] * 3),
                                           align_corners=False)
    sample = torch.nn.functional.grid_sample
    return finished(sample(x, grid, "bilinear", "zeros", False), sample(y, grid, "nearest", "zeros", False))


def by_kornia(p):
    image, labels, m = p.cut()
    x, y = tensors(image, labels)
    pull = np.eye(4)
    pull[:3] = m
    push = np.linalg.inv(pull)[:3]  # from the source to the output, x first
    push = np.concatenate([push[::-1, 2::-1], push[::-1, 3:]], 1)
    matrix = torch.from_numpy(push.astype(np.float32))[None]
    warp = kornia.geometry.transform.warp_affine3d
    size = (p.patch,) * 3
    return finished(warp(x, matrix, size), warp(y, matrix, size, flags="nearest"))


def by_monai(p):
    image, labels, m = p.cut()
    x, y = tensors(image, labels)
    theta = torch.from_numpy(m.astype(np.float32))[None]
    size = (p.patch,) * 3
    turn = {mode: AffineTransform(size, mode=mode, align_corners=False) for mode in ("bilinear", "nearest")}
    return finished(turn["bilinear"](x, theta), turn["nearest"](y, theta))


def by_torchio(p):
    image, labels, m = p.cut()
    pull = np.eye(4)
    pull[:3] = m
    to_output = np.linalg.inv(pull)  # where the output's voxels are the millimeters of the world
    subject = torchio.Subject(image=torchio.ScalarImage(tensor=torch.from_numpy(image)[None], affine=to_output),
                              labels=torchio.LabelMap(tensor=torch.from_numpy(labels)[None], affine=to_output))
    chain = torchio.Compose([torchio.Clamp(LOW, HIGH), torchio.RescaleIntensity((0, 1), in_min_max=(LOW, HIGH)),
                             torchio.Resample(((p.patch,) * 3, np.eye(4)))])
    made = chain(subject)
    return made.image.data[0].to(torch.float16).numpy(), made.labels.data[0].to(torch.uint8).numpy()


PEERS = {
    "SciPy": (by_scipy, scipy.__version__),
    "SimpleITK": (by_simpleitk, sitk.Version.VersionString()),
    "PyTorch": (by_pytorch, torch.__version__),
    "Kornia": (by_kornia, kornia.__version__),
    "MONAI": (by_monai, monai.__version__),
    "TorchIO": (by_torchio, torchio.__version__),
}
ON_A_GPU = ("BatchAug", "cuCIM", "torch-staintools")


def measure(program, image, labels, files, patch, rounds, folder):
    suture = answering.Program(program, *files, *image.shape, *SPACING, patch)
    parameters = suture.ask("parameters")
    problem = Problem(image, labels, parameters["matrix"], patch)
    expected, expected_labels, clear = compare.reference(image, labels, patch, parameters)
    made = folder / "made"
    suture.ask(f"write {made}")
    voxels = patch**3
    ours = np.fromfile(made, np.float16, voxels)
    our_labels = np.fromfile(made, np.uint8, voxels, offset=2 * voxels)

    wall = {name: [] for name in ("suture", *PEERS)}
    processor = {name: [] for name in wall}
    results = {name: peer(problem) for name, (peer, _) in PEERS.items()}
    suture.ask("time 2")
    for _ in range(rounds):
        for name, (peer, _) in PEERS.items():
            start, worked = time.perf_counter(), time.process_time()
            peer(problem)
            wall[name].append(time.perf_counter() - start)
            processor[name].append(time.process_time() - worked)
            answer = suture.ask("time 2")
            wall["suture"] += answer["wall"]
            processor["suture"] += answer["processor"]
    suture.close()
    results["suture"] = ours.reshape(expected.shape), our_labels.reshape(expected.shape)

    row = {"name": f"ct_affine/{patch}", "float16_error":
           float(np.abs(expected.astype(np.float16).astype(float) - expected).max())}
    for name, (x, y) in results.items():
        row[name] = {
            "wall_s": statistics.median(wall[name]), "processor_s": statistics.median(processor[name]),
            "times": statistics.median(wall[name]) / statistics.median(wall["suture"]),
            "processor_times": statistics.median(processor[name]) / statistics.median(processor["suture"]),
            "error": float(np.abs(x.astype(float) - expected).max()),
            "labels_differ": int((clear & (y != expected_labels)).sum()),
        }
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--tiny", action="store_true", help="volumes of a few voxels, to see that everything works")
    chosen = parser.parse_args()

    torch.set_num_threads(1)
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    shape, patches = ((40, 48, 48), (16,)) if chosen.tiny else ((120, 320, 320), (96, 128))
    image = scipy_chain.phantom(shape, 1)
    labels = (image > 150).astype(np.uint8)
    rows = []
    print("volume", shape, "spacing", SPACING, "mm, one thread each")
    print("                               ms  times as fast  (processor)  error against double  wrong labels")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = [folder / "image", folder / "labels"]
        image.tofile(files[0])
        labels.tofile(files[1])
        for patch in patches:
            row = measure(chosen.program, image, labels, files, patch, chosen.rounds, folder)
            rows.append(row)
            print(f"{row['name']}, float16 itself: error {row['float16_error']:.1e}")
            for peer in ("suture", *PEERS):
                r = row[peer]
                version = PEERS[peer][1] if peer in PEERS else ""
                print(f"  {peer + ' ' + version:22}{1e3 * r['wall_s']:9.2f}{r['times']:15.1f}{r['processor_times']:13.1f}"
                      f"{r['error']:22.1e}{r['labels_differ']:14d}", flush=True)
    if torch.cuda.is_available():
        print(", ".join(ON_A_GPU) + ": there is a GPU, but these are not compared yet")
    else:
        print(", ".join(ON_A_GPU) + ": only on a GPU, left out")
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    # A fast wrong result is no result.
    wrong = [row["name"] for row in rows
             if row["suture"]["error"] > row["float16_error"] + 5e-4 or row["suture"]["labels_differ"]]
    if wrong:
        raise SystemExit("volumes.py: wrong results in " + ", ".join(wrong))


if __name__ == "__main__":
    main()
