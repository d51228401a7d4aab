#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suture against SciPy and scikit-image: what is done to a CT before training, on the same voxels, one thread each.

    preprocessing.py PREPROCESSING_CHAIN [--rounds N] [--out FILE] [--tiny]

PREPROCESSING_CHAIN is the program made from preprocessing_chain.cpp. Every round times each step of the peers once and
of suture five times, in turns; medians are compared, of the wall clock and of the time the processor worked, which
other programs on the machine disturb less.

    fingerprint       mean, deviation, extremes and percentiles .5, 50, 99.5 of the labeled voxels
    body_mask         above -300 HU, opened by a cross, largest component, holes of every slice filled
    bounding_box      of the body
    otsu              threshold of the volume
    percentile_scale  percentiles .5 and 99.5 of the volume, which is scaled to [0, 1] between them
    z_score           mean and deviation inside the body, (x - mean) / deviation
    resample          1.5 times the slices of .8 times the rows and columns, by a cubic B-spline kept within the range of
                      the volume (nnU-Net's resampling: skimage.transform.resize)

Masks, boxes, percentiles and thresholds must be the same; moments may differ by 1e-6 of themselves, scaled volumes by
1e-5 where the values reach a few units, the resampled one by 3e-5 of its range.
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
import skimage
from scipy import ndimage
from skimage.filters import threshold_otsu
from skimage.transform import resize


def fingerprint(s):
    values = s["image"][s["labels"] > 0]
    s["foreground"] = [values.mean(dtype=np.float64), values.std(dtype=np.float64), values.min(), values.max()]
    s["foreground_percentiles"] = np.percentile(values, [0.5, 50, 99.5])


def body_mask(s):
    opened = ndimage.binary_opening(s["image"] > -300, ndimage.generate_binary_structure(3, 1))
    numbered, count = ndimage.label(opened)
    sizes = np.bincount(numbered.ravel(), minlength=count + 1)
    sizes[0] = 0
    body = numbered == sizes.argmax() if count else opened
    s["body"] = np.stack([ndimage.binary_fill_holes(plane) for plane in body])


def bounding_box(s):
    box = ndimage.find_objects(s["body"].view(np.uint8))[0]
    s["box"] = [axis.start for axis in box] + [axis.stop - 1 for axis in box]


def otsu(s):
    s["otsu"] = threshold_otsu(s["image"])


def percentile_scale(s):
    low, high = s["range"] = np.percentile(s["image"], [0.5, 99.5])
    scaled = s["image"].astype(np.float32)
    scaled -= np.float32(low)
    scaled *= np.float32(1 / (high - low))
    s["scaled"] = np.clip(scaled, 0, 1, out=scaled)


def z_score(s):
    values = s["image"][s["body"]]
    mean, deviation = values.mean(dtype=np.float64), values.std(dtype=np.float64)
    s["inside_body"] = [mean, deviation, values.min(), values.max()]
    scaled = s["image"].astype(np.float32)
    scaled -= np.float32(mean)
    scaled *= np.float32(1 / deviation)
    s["z_score"] = scaled


def resampled_shape(shape):
    return shape[0] * 3 // 2, shape[1] * 4 // 5, shape[2] * 4 // 5


def resample(s):
    s["resampled"] = resize(s["image"].astype(np.float32), resampled_shape(s["image"].shape), order=3, mode="edge",
                            anti_aliasing=False, preserve_range=True)


STEPS = [fingerprint, body_mask, bounding_box, otsu, percentile_scale, z_score, resample]


def differences(state, found, prefix, shape):
    """How far suture's results are from the peers', by step: 0 where they must be the same."""
    def volume(role, dtype, shape=shape):
        return np.fromfile(f"{prefix}.{role}", dtype).reshape(shape)

    def relative(a, b):
        return float(np.max(np.abs(np.array(a, float) - np.array(b, float)) / np.maximum(np.abs(np.array(b, float)), 1)))

    def unequal(a, b):
        return int(np.sum(np.array(a, float) != np.array(b, float)))

    image = state["image"].astype(np.float64)
    low, high = state["range"]
    mean, deviation = state["inside_body"][:2]
    scaled = volume("scaled", np.float32) - np.clip((image - low) / (high - low), 0, 1)
    normalized = volume("z_score", np.float32) - (image - mean) / deviation
    resampled = (volume("resampled", np.float32, resampled_shape(shape)) - state["resampled"]) / np.ptp(image)
    exact = {
        "fingerprint": unequal(found["foreground_percentiles"], state["foreground_percentiles"]),
        "body_mask": int(np.sum(volume("body", np.uint8) != state["body"])),
        "bounding_box": unequal(found["box"], state["box"]),
        "otsu": unequal([found["otsu"]], [state["otsu"]]),
        "percentile_scale": unequal(found["range"], state["range"]),
        "z_score": 0,
        "resample": 0,
    }
    close = {
        "fingerprint": relative(found["foreground"], state["foreground"]),
        "percentile_scale": float(np.abs(scaled).max()),
        "z_score": max(relative(found["inside_body"], state["inside_body"]), float(np.abs(normalized).max())),
        "resample": float(np.abs(resampled).max()),
    }
    limits = {"fingerprint": 1e-6, "percentile_scale": 1e-5, "z_score": 1e-5, "resample": 3e-5}
    wrong = [name for name, count in exact.items() if count] + [n for n, d in close.items() if not d <= limits[n]]
    return exact, close, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--out")
    parser.add_argument("--tiny", action="store_true", help="a volume of a few voxels, to see that everything works")
    chosen = parser.parse_args()

    shape = (24, 48, 48) if chosen.tiny else (120, 320, 320)
    image = scipy_chain.phantom(shape, 1)
    image[scipy_chain.phantom(shape, 2) > 150] = -850  # gas
    labels = (image > 100).astype(np.uint8)
    state = {"image": image, "labels": labels}
    names = [step.__name__ for step in STEPS]
    wall, processor = ({who: {name: [] for name in names} for who in ("peers", "suture")} for _ in range(2))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        image.tofile(folder / "image")
        labels.tofile(folder / "labels")
        suture = answering.Program(chosen.program, folder / "image", folder / "labels", *shape)
        suture.ask("time 1")  # warm
        for _ in range(chosen.rounds):
            for step in STEPS:
                start, processor_start = time.perf_counter(), time.process_time()
                step(state)
                processor["peers"][step.__name__].append(time.process_time() - processor_start)
                wall["peers"][step.__name__].append(time.perf_counter() - start)
            for step, times in suture.ask("time 5").items():
                wall["suture"][step] += times["wall"]
                processor["suture"][step] += times["processor"]
        exact, close, wrong = differences(state, suture.ask(f"write {folder / 'result'}"), folder / "result", shape)
        suture.close()

    print(f"SciPy {scipy.__version__}, NumPy {np.__version__}, scikit-image {skimage.__version__}; "
          f"CT {shape} int16, one thread each")
    print("                       milliseconds, wall clock   times as fast    not the     largest")
    print("                        peers        suture       (processor)      same        difference")
    rows = []
    for name in [*names, "all"]:
        each = names if name == "all" else [name]
        row = {"name": name}
        for clock, times in (("wall", wall), ("processor", processor)):
            medians = {who: sum(statistics.median(times[who][n]) for n in each) for who in times}
            row[clock + "_s"] = medians
            row[clock + "_ratio"] = medians["peers"] / medians["suture"]
        row["not_the_same"] = sum(exact[n] for n in each)
        row["largest_difference"] = max((close[n] for n in each if n in close), default=0.0)
        rows.append(row)
        print(f"{name:18}{1e3 * row['wall_s']['peers']:12.2f}{1e3 * row['wall_s']['suture']:14.2f}"
              f"{row['wall_ratio']:10.1f}{row['processor_ratio']:8.1f}{row['not_the_same']:10d}"
              f"{row['largest_difference']:16.1e}", flush=True)
    if chosen.out:
        pathlib.Path(chosen.out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if wrong:  # a fast wrong result is no result
        raise SystemExit("preprocessing.py: wrong results in " + ", ".join(wrong))


if __name__ == "__main__":
    main()
