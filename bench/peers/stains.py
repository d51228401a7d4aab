#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suture against torchstain's NumPy backend: Macenko fit and normalization of one tile, one thread each, in turns.

    stains.py STAIN_TILE [--rounds N] [--size N] [--out FILE] [--tiny]

STAIN_TILE is the program made from stain_tile.cpp. The tile is made here by the law of Beer and Lambert. Every round
times torchstain once and suture five times; medians are compared, of the wall clock and of the time the processor
worked, which other programs on the machine disturb less. Colors are compared level by level.
"""
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before NumPy is loaded
    os.environ[variable] = "1"

import argparse
import json
import pathlib
import statistics
import tempfile
import time

import answering
import numpy as np
from torchstain.numpy.normalizers import NumpyMacenkoNormalizer


def stained_tile(size, seed=1):
    """Nuclei on stroma and a band of glass, uint8."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    blobs = random.random((size // 24 + 1, size // 24 + 1))[y // 24, x // 24]
    nucleus = (y % 24 - 12.0) ** 2 + (x % 24 - 12.0) ** 2 < 30 + 60 * blobs
    tissue = (y + x // 2) % 700 >= 90
    h = tissue * np.where(nucleus, 0.9 + 0.7 * blobs, 0.1) * random.uniform(0.8, 1.2, (size, size))
    e = tissue * np.where(nucleus, 0.2, 0.5 + 0.4 * blobs) * random.uniform(0.8, 1.2, (size, size))
    density = h[..., None] * [0.65, 0.70, 0.29] + e[..., None] * [0.2159, 0.8012, 0.5581]
    return np.clip(240 * np.exp(-density) + random.normal(0, 2, (size, size, 3)), 0, 255).round().astype(np.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    if arguments.tiny:
        arguments.size, arguments.rounds = 64, 1
    tile = stained_tile(arguments.size)
    normalizer = NumpyMacenkoNormalizer()
    peer, ours = {"wall": [], "processor": []}, {"wall": [], "processor": []}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tile.raw"
        tile.tofile(path)
        suture = answering.Program(arguments.program, path, arguments.size, arguments.size)
        result = pathlib.Path(folder) / "result.raw"
        suture.ask(f"write {result}")
        expected = normalizer.normalize(tile, stains=False)[0]
        difference = np.abs(np.fromfile(result, np.uint8).astype(int) - expected.astype(int).ravel())
        for _ in range(arguments.rounds):
            wall, processor = time.perf_counter(), time.process_time()
            normalizer.normalize(tile, stains=False)
            peer["wall"].append(time.perf_counter() - wall)
            peer["processor"].append(time.process_time() - processor)
            for clock, values in suture.ask("time 5").items():
                ours[clock] += values
        suture.close()
    report = {"size": arguments.size, "numpy": np.__version__, "greatest_difference": int(difference.max()),
              "differing_share": float((difference > 0).mean())}
    for clock in ("wall", "processor"):
        a, b = statistics.median(peer[clock]), statistics.median(ours[clock])
        report[clock] = {"torchstain_ms": 1e3 * a, "suture_ms": 1e3 * b, "times": a / b}
        print(f"{clock:>9}: torchstain {1e3 * a:8.2f} ms   suture {1e3 * b:7.2f} ms   {a / b:5.1f} times")
    print(f"levels that differ: {100 * report['differing_share']:.3f} %, by at most {report['greatest_difference']}")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")
    if difference.max() > 1:
        raise SystemExit("colors differ by more than one level")


if __name__ == "__main__":
    main()
