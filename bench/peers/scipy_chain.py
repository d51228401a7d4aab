#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CT training recipe as users of SciPy write it, timed on one thread.

    scipy_chain.py CASES.json      (or - for standard input; without an argument, the default case in two patch sizes)
    scipy_chain.py --template      prints the default case

CASES.json holds one case or a list of cases; keys left out keep the values of the template. One JSON line is printed
for every case: seconds per patch (median, best, every run), seconds per step, and the mean of the result.

    image         .npy file of a volume (z, y, x), or null for a phantom of `shape`
    labels        .npy file of a label map of the same shape, or null for one made by threshold
    patch         extents of the output
    matrix        3 rows of 4: output index -> input index, (z, y, x), in voxels; resampling, affine and crop composed
    elastic       null, or {"control_points": [n, n, n], "grid": extents of the deformed grid, "start": index of the
                  patch in it, "amplitude": [voxels, voxels, voxels]}: cubic B-spline coefficients, uniform, before
                  the matrix, which then maps indices of the deformed grid; or with "coefficients", 3 n n n numbers in
                  voxels, instead of the amplitude
    window        [center, width] -> [0, 1], before interpolation
    gamma, noise  exponent; standard deviation
    order         of the spline for the image (1 or 3); labels are taken at order 0
    crop_first    window only the part of the volume that the patch reads, as careful users do
    repeats       timed runs after one run to warm up

Needs numpy and scipy (Debian: python3-scipy).
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import copy
import json
import statistics
import sys
import time

import numpy as np
import scipy
from scipy import ndimage

TEMPLATE = {
    "name": "ct_affine_96",
    "image": None,
    "labels": None,
    "shape": [108, 256, 256],
    "patch": [96, 96, 96],
    # Spacing 1.5 x 0.957 x 0.957 mm to 1 mm, 11.5 degrees in plane and 5.7 about x, scale 1.1, about the center.
    "matrix": [
        [0.602379, 0.011809, -0.059112, 31.04],
        [0.0, 0.931142, 0.189421, 74.27],
        [0.095239, -0.188434, 0.926519, 87.93],
    ],
    "elastic": None,
    "window": [40, 400],
    "gamma": 1.2,
    "noise": 0.02,
    "order": 1,
    "crop_first": True,
    "repeats": 7,
    "seed": 1,
}


def phantom(shape, seed):
    """Smooth structures over the range of soft tissue, air outside an ellipse, noise of a few HU."""
    random = np.random.default_rng(seed)
    coarse = random.uniform(-200, 300, [max(2, n // 16) for n in shape])
    volume = ndimage.zoom(coarse, [n / m for n, m in zip(shape, coarse.shape)], order=1)
    z, y, x = np.ogrid[tuple(slice(-1, 1, complex(0, n)) for n in shape)]
    volume[np.broadcast_to(y * y + x * x > 0.8, shape)] = -1000
    return np.clip(volume + random.normal(0, 12, shape), -1024, 3071).astype(np.int16)


def read_box(case, coordinates):
    """The part of the volume a patch reads: from the corners of the map, or from its coordinates."""
    margin = 2 if case["order"] == 1 else 16
    if coordinates is None:
        linear = np.array(case["matrix"])[:, :3]
        offset = np.array(case["matrix"])[:, 3]
        last = np.array(case["patch"]) - 1
        corners = np.array([[(i >> k & 1) * last[k] for k in range(3)] for i in range(8)])
        mapped = corners @ linear.T + offset
        low, high = mapped.min(0), mapped.max(0)
    else:
        low = np.array([c.min() for c in coordinates])
        high = np.array([c.max() for c in coordinates])
    shape = np.array(case["shape"])
    start = np.clip(np.floor(low).astype(int) - margin, 0, shape - 1)
    stop = np.clip(np.ceil(high).astype(int) + margin + 1, start + 1, shape)
    return start, stop


def spline_weights(first, count, extent, control_points):
    """Row i: what every control point weighs at index first + i of the deformed grid."""
    cells = control_points - 3
    q = (np.arange(first, first + count) + 0.5) * cells / extent
    cell = np.minimum(q.astype(int), cells - 1)
    t = q - cell
    four = np.stack([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]) / 6
    weights = np.zeros((count, control_points), np.float32)
    for k in range(4):
        weights[np.arange(count), cell + k] = four[k]
    return weights


def elastic_coordinates(case, random):
    """Input index of every output voxel: matrix applied to (deformed index + displacement).

    The spline is a product of three small matrices, which is many times faster than ndimage.zoom of the control grid.
    """
    e = case["elastic"]
    wz, wy, wx = (spline_weights(e["start"][k], case["patch"][k], e["grid"][k], e["control_points"][k])
                  for k in range(3))
    deformed = []
    for axis in range(3):
        if "coefficients" in e:
            coefficients = np.reshape(e["coefficients"], [3, *e["control_points"]])[axis].astype(np.float32)
        else:
            coefficients = (random.uniform(-1, 1, e["control_points"]) * e["amplitude"][axis]).astype(np.float32)
        moved = np.tensordot(wz, wy @ (coefficients @ wx.T), 1)
        index = np.arange(case["patch"][axis], dtype=np.float32) + np.float32(e["start"][axis])
        deformed.append(moved + index.reshape([-1 if k == axis else 1 for k in range(3)]))
    matrix = np.array(case["matrix"], np.float32)
    return [sum(matrix[i, k] * deformed[k] for k in range(3)) + matrix[i, 3] for i in range(3)]


def run_once(case, image, labels, seed, steps):
    random = np.random.default_rng(seed)
    clock = time.perf_counter()

    def lap(name):
        nonlocal clock
        now = time.perf_counter()
        steps.setdefault(name, []).append(now - clock)
        clock = now

    coordinates = elastic_coordinates(case, random) if case["elastic"] else None
    if coordinates is not None:
        lap("displacement")
    linear = np.array(case["matrix"])[:, :3]
    offset = np.array(case["matrix"])[:, 3]
    start = np.zeros(3, int)
    if case["crop_first"]:
        start, stop = read_box(case, coordinates)
        box = tuple(slice(a, b) for a, b in zip(start, stop))
        image, labels = image[box], labels[box]
    center, width = case["window"]
    windowed = image.astype(np.float32)
    windowed -= center - width / 2
    windowed *= 1 / width
    np.clip(windowed, 0, 1, out=windowed)
    lap("window")
    if coordinates is None:
        x = ndimage.affine_transform(windowed, linear, offset - start, case["patch"], np.float32, case["order"],
                                     "grid-constant")
        lap("image")
        y = ndimage.affine_transform(labels, linear, offset - start, case["patch"], labels.dtype, 0, "grid-constant")
        lap("labels")
    else:
        shifted = np.stack([c - s for c, s in zip(coordinates, start)])
        x = ndimage.map_coordinates(windowed, shifted, np.float32, case["order"], "grid-constant")
        lap("image")
        y = ndimage.map_coordinates(labels, shifted, labels.dtype, 0, "grid-constant")
        lap("labels")
    np.clip(x, 0, None, out=x)  # a spline of order 3 overshoots
    np.power(x, np.float32(case["gamma"]), out=x)
    lap("gamma")
    x += np.float32(case["noise"]) * random.standard_normal(x.shape, np.float32)
    lap("noise")
    result = x.astype(np.float16)
    lap("cast")
    return result, y


def time_case(given):
    case = copy.deepcopy(TEMPLATE)
    unknown = set(given) - set(case)
    if unknown:
        raise SystemExit("scipy_chain.py: unknown keys: " + ", ".join(sorted(unknown)))
    case.update(given)
    image = np.load(case["image"]) if case["image"] else phantom(case["shape"], case["seed"])
    case["shape"] = list(image.shape)
    labels = np.load(case["labels"]) if case["labels"] else (image > 150).astype(np.uint8)
    if labels.shape != image.shape:
        raise SystemExit(f"scipy_chain.py: labels {labels.shape} do not fit the image {image.shape}")
    run_once(case, image, labels, case["seed"], {})
    steps, seconds = {}, []
    for repeat in range(case["repeats"]):
        begin = time.perf_counter()
        x, y = run_once(case, image, labels, case["seed"] + repeat, steps)
        seconds.append(time.perf_counter() - begin)
    return {
        "name": case["name"],
        "peer": f"scipy {scipy.__version__}, numpy {np.__version__}, 1 thread",
        "shape": case["shape"],
        "patch": list(x.shape),
        "order": case["order"],
        "elastic": case["elastic"] is not None,
        "median_s": statistics.median(seconds),
        "best_s": min(seconds),
        "runs_s": seconds,
        "steps_median_s": {name: statistics.median(times) for name, times in steps.items()},
        "image_mean": float(x.astype(np.float64).mean()),
        "label_share": float((y != 0).mean()),
    }


def default_cases():
    cases = []
    for side in (96, 128):
        for order in (1, 3):
            for bent in (False, True):
                case = {"name": f"ct_{'elastic' if bent else 'affine'}_{side}_order{order}", "patch": [side] * 3,
                        "order": order}
                matrix = copy.deepcopy(TEMPLATE["matrix"])
                if bent:
                    # The deformed grid is the volume at 1 mm; the patch stands in its middle.
                    grid, first = [162, 245, 245], [(n - side) // 2 for n in (162, 245, 245)]
                    for row in matrix:
                        row[3] -= sum(row[k] * first[k] for k in range(3))
                    case["elastic"] = {"control_points": [8, 11, 11], "grid": grid, "start": first,
                                       "amplitude": [8, 8, 8]}
                case["matrix"] = matrix
                cases.append(case)
    return cases


def main(arguments):
    if arguments == ["--template"]:
        print(json.dumps(TEMPLATE, indent=2))
        return
    if arguments and arguments[0] in ("-h", "--help") or len(arguments) > 1:
        print(__doc__)
        return
    if not arguments:
        cases = default_cases()
    else:
        with (sys.stdin if arguments[0] == "-" else open(arguments[0], encoding="utf-8")) as stream:
            cases = json.load(stream)
    for case in cases if isinstance(cases, list) else [cases]:
        print(json.dumps(time_case(case)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
