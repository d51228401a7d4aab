#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suture against SciPy: the same CT recipe on the same voxels with the same parameters, one thread each, in turns.

    compare.py CT_CHAIN [--rounds N] [--out FILE] [--tiny]

CT_CHAIN is the program made from ct_chain.cpp, which draws the parameters. "usual" is the chain as it is mostly written,
"careful" that of scipy_chain.py, which touches only what the patch reads, works in place and in float32, and makes the
displacement by matrix products. Every round times the careful chain once, the usual one at every third round, and
suture five times; medians are compared, of the wall clock and of the time the processor worked, which other programs on
the machine disturb less. suture's time includes planning. Errors are
those of the float16 images without noise against the recipe in double precision by NumPy; beside them stands
the error of that reference itself, rounded to float16. Labels are counted where they differ more than 1e-4 voxel away from
a tie.
"""
import scipy_chain  # first: it limits the threads of the libraries below

import argparse
import json
import pathlib
import statistics
import tempfile
import time

import answering
import numpy as np
import scipy
from scipy import ndimage

SPACING = [1.5625, 0.8, 0.8]


def spline_weights(position, count):
    """Rows of the weights of `count` cubic B-spline coefficients at positions in cells."""
    weights = np.zeros([len(position), count])
    first = np.clip(np.floor(position).astype(int), 0, count - 4)
    t = position - first
    each = [(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]
    for j, w in enumerate(each):
        weights[np.arange(len(position)), first + j] = w / 6
    return weights


def reference(image, labels, patch, parameters):
    """The recipe without noise in double precision: image, labels, and where the nearest voxel is not a tie."""
    p = np.stack(np.meshgrid(*[np.arange(patch, dtype=float)] * 3, indexing="ij"))
    if "coefficients" in parameters:
        count = parameters["control_points"]
        start = parameters["start"]
        weights = [spline_weights((np.arange(patch) + start[k] + 0.5) * parameters["cells_per_voxel"][k], count[k])
                   for k in range(3)]
        coefficients = np.reshape(parameters["coefficients"], [3, *count])
        p += np.einsum("za,yb,xc,kabc->kzyx", *weights, coefficients, optimize=True)
        p += np.reshape(start, [3, 1, 1, 1])
    matrix = np.array(parameters["matrix"])
    p = np.einsum("ij,jzyx->izyx", matrix[:, :3], p) + matrix[:, 3].reshape(3, 1, 1, 1)
    windowed = np.clip((image.astype(float) - (40 - 200)) / 400, 0, 1)

    def at(volume, index):
        inside = np.ones(index[0].shape, bool)
        for k in range(3):
            inside &= (index[k] >= 0) & (index[k] < volume.shape[k])
        clipped = [np.clip(index[k], 0, volume.shape[k] - 1) for k in range(3)]
        return np.where(inside, volume[tuple(clipped)], 0)

    base = np.floor(p).astype(int)
    fraction = p - base
    value = np.zeros(p.shape[1:])
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod([fraction[k] if corner[k] else 1 - fraction[k] for k in range(3)], axis=0)
        value += weight * at(windowed, [base[k] + corner[k] for k in range(3)])
    clear = (np.abs(p - np.floor(p) - 0.5) > 1e-4).all(0)
    return value ** parameters["gamma"], at(labels, np.floor(p + 0.5).astype(int)), clear


def usual_chain(case, image, labels):
    """The recipe as it is mostly written: the whole volume windowed, a dense field of displacements."""
    center, width = case["window"]
    windowed = np.clip((image.astype(np.float32) - (center - width / 2)) / width, 0, 1)
    matrix = np.array(case["matrix"])
    elastic = case["elastic"]
    if elastic is None:
        x = ndimage.affine_transform(windowed, matrix[:, :3], matrix[:, 3], case["patch"], order=1,
                                     mode="grid-constant")
        y = ndimage.affine_transform(labels, matrix[:, :3], matrix[:, 3], case["patch"], order=0, mode="grid-constant")
    else:
        points = np.stack(np.meshgrid(*[np.arange(n) + s for n, s in zip(case["patch"], elastic["start"])],
                                      indexing="ij"))
        scale = (np.array(elastic["control_points"]) - 3) / elastic["grid"]
        control = (points + 0.5) * scale.reshape(3, 1, 1, 1) + 1
        field = [ndimage.map_coordinates(c, control, order=3, mode="nearest", prefilter=False)
                 for c in np.reshape(elastic["coefficients"], [3, *elastic["control_points"]])]
        points = np.tensordot(matrix[:, :3], points + field, 1) + matrix[:, 3].reshape(3, 1, 1, 1)
        x = ndimage.map_coordinates(windowed, points, order=1, mode="grid-constant")
        y = ndimage.map_coordinates(labels, points, order=0, mode="grid-constant")
    x = x ** case["gamma"]
    x = x + np.random.normal(0, case["noise"], x.shape)
    return x.astype(np.float16), y


def compare(program, image, labels, files, patch, degrees, elastic, rounds, folder):
    suture = answering.Program(program, *files, *image.shape, *SPACING, patch, degrees, int(elastic))
    parameters = suture.ask("parameters")
    case = dict(scipy_chain.TEMPLATE, shape=list(image.shape), patch=[patch] * 3, matrix=parameters["matrix"],
                gamma=parameters["gamma"], noise=parameters["noise"])
    if elastic:
        # grid is only used for cells per voxel.
        cells = np.array(parameters["control_points"]) - 3
        case["elastic"] = {"control_points": parameters["control_points"], "start": parameters["start"],
                           "grid": (cells / parameters["cells_per_voxel"]).tolist(),
                           "coefficients": np.array(parameters["coefficients"], np.float32)}

    expected, expected_labels, clear = reference(image, labels, patch, parameters)
    written = folder / "result"
    suture.ask(f"write {written}")
    raw = written.read_bytes()
    voxels = patch**3
    ours = np.frombuffer(raw, np.float16, voxels).astype(float)
    our_labels = np.frombuffer(raw, np.uint8, voxels, 2 * voxels)
    theirs, their_labels = scipy_chain.run_once(dict(case, noise=0), image, labels, 1, {})
    usual, usual_labels = usual_chain(dict(case, noise=0), image, labels)

    wall, processor = ({name: [] for name in ("usual", "careful", "suture")} for _ in range(2))
    steps = {}

    def timed(name, work):
        start, processor_start = time.perf_counter(), time.process_time()
        work()
        processor[name].append(time.process_time() - processor_start)
        wall[name].append(time.perf_counter() - start)

    suture.ask("time 2")  # warm, as the chains are by now
    for number in range(rounds):
        timed("careful", lambda: scipy_chain.run_once(case, image, labels, 1, steps))
        if number % 3 == 0:
            timed("usual", lambda: usual_chain(case, image, labels))
        answer = suture.ask("time 5")
        wall["suture"] += answer["wall"]
        processor["suture"] += answer["processor"]
    suture.close()

    def spread(samples):
        low, *_, high = statistics.quantiles(samples, n=10, method="inclusive")
        return {"median": statistics.median(samples), "p10": low, "p90": high, "runs": len(samples)}

    def error(values):
        return float(np.abs(values.reshape(-1) - expected.reshape(-1)).max())

    def wrong_labels(values):
        return int((clear & (values.reshape(expected_labels.shape) != expected_labels)).sum())

    result = {
        "name": f"ct/{patch}/rotate:{degrees:g}/elastic:{int(elastic)}",
        "wall_s": {name: spread(samples) for name, samples in wall.items()},
        "processor_s": {name: spread(samples) for name, samples in processor.items()},
        "careful_steps_s": {name: statistics.median(samples) for name, samples in steps.items()},
        "error": {"suture": error(ours), "careful": error(theirs.astype(float)), "usual": error(usual.astype(float)),
                  "float16": error(expected.astype(np.float16).astype(float))},
        "labels_differ": {"suture": wrong_labels(our_labels), "careful": wrong_labels(their_labels),
                          "usual": wrong_labels(usual_labels)},
    }
    for clock in ("wall", "processor"):
        times = result[clock + "_s"]
        result[clock + "_ratio"] = {name: times[name]["median"] / times["suture"]["median"]
                                    for name in ("usual", "careful")}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--out")
    parser.add_argument("--tiny", action="store_true", help="volumes of a few voxels, to see that everything works")
    chosen = parser.parse_args()

    if chosen.rounds < 4:
        parser.error("--rounds must be at least 4, for two runs of the usual chain")
    shape, patches = ((40, 48, 48), (16,)) if chosen.tiny else ((120, 320, 320), (96, 128))
    image = scipy_chain.phantom(shape, 1)
    labels = (image > 150).astype(np.uint8)
    rows = []
    print(f"SciPy {scipy.__version__}, NumPy {np.__version__}; volume {shape}, spacing {SPACING} mm, one thread each")
    print("                                  milliseconds, wall clock     times as fast as     error against double      "
          "wrong")
    print("                                   SciPy    SciPy              SciPy   (processor)   SciPy                     "
          "labels")
    print("                                   usual  careful  suture  usual careful   careful  careful  suture float16  "
          "suture")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = [folder / "image", folder / "labels"]
        image.tofile(files[0])
        labels.tofile(files[1])
        for patch in patches:
            for degrees in (0, 15):
                for elastic in (False, True):
                    row = compare(chosen.program, image, labels, files, patch, degrees, elastic, chosen.rounds, folder)
                    rows.append(row)
                    wall, error = row["wall_s"], row["error"]
                    print(f"{row['name']:31}{1e3 * wall['usual']['median']:9.1f}{1e3 * wall['careful']['median']:9.1f}"
                          f"{1e3 * wall['suture']['median']:8.2f}{row['wall_ratio']['usual']:7.1f}"
                          f"{row['wall_ratio']['careful']:8.1f}{row['processor_ratio']['careful']:10.1f}"
                          f"{error['careful']:9.1e}{error['suture']:8.1e}{error['float16']:8.1e}"
                          f"{row['labels_differ']['suture']:8d}", flush=True)
    if chosen.out:
        pathlib.Path(chosen.out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    # A fast wrong result is no result.
    wrong = [row["name"] for row in rows
             if row["error"]["suture"] > row["error"]["float16"] + 5e-4 or row["labels_differ"]["suture"]]
    if wrong:
        raise SystemExit("compare.py: wrong results in " + ", ".join(wrong))


if __name__ == "__main__":
    main()
