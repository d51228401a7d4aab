#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MB/s of random boxes read from a store on one core, beside zarr-python and nnU-Net's b2nd, in turns, in one run.

    store.py [--shape Z Y X] [--rounds N] [--out FOLDER]

Needs the extra `store` of the package, and zarr. The volume is the CT of examples/data, int16,
repeated up to the shape. Each reader gets the same boxes; a round reads each of them once, warm, and the median over
rounds is shown, of the clock and of the processor, which other programs disturb less. Results are Markdown.
"""
from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "BLOSC_NTHREADS", "NUMCODECS_BLOSC_NTHREADS"):
    os.environ[variable] = "1"  # before the libraries below read it
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})

import argparse
import datetime
import importlib.metadata
import math
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
import suture as st  # noqa: E402
import suture.store  # noqa: E402

Read = Callable[[list[int], list[int], np.ndarray], None]


def volume(shape: tuple[int, int, int]) -> np.ndarray:
    """A CT of this shape."""
    import nibabel

    small = np.asanyarray(nibabel.load(ROOT / "examples/data/ct/abdomen_ct.nii.gz").dataobj).T.astype(np.int16)
    tiles = [-(-n // m) for n, m in zip(shape, small.shape)]
    return np.ascontiguousarray(np.tile(small, tiles)[tuple(slice(0, n) for n in shape)])


def stores(folder: pathlib.Path, data: np.ndarray) -> None:
    """The scan as NIfTI, and a store of each layout."""
    import nibabel

    (folder / "in").mkdir()
    nibabel.save(nibabel.Nifti1Image(data.T, np.diag([.8, .8, 1, 1])), folder / "in/scan.nii")
    for chunk, profile in ((64, "small"), (32, "small"), (64, "fast")):
        st.store.build(folder / "in", out=folder / f"{profile}{chunk}", chunk=chunk, profile=profile)


def readers(folder: pathlib.Path, data: np.ndarray) -> dict[str, Read]:
    """What reads a box into memory that is given, by name."""
    import blosc2
    import zarr

    found: dict[str, Read] = {}
    for name, io, verify in (("small64", "memmap", False), ("small64", "plain", False), ("small64", "memmap", True),
                             ("small32", "memmap", False),
                             ("fast64", "memmap", False)):
        image = st.store.open(folder / name, io=io, verify=verify, threads=1)["scan"].image
        found[f"suture.store, {name[:-2]} {name[-2:]}^3, {io}{', verified' * verify}"] = image.read
    array = zarr.open_array(folder / "small64/scan/0", mode="r")

    def by_zarr(low: list[int], high: list[int], out: np.ndarray) -> None:
        out[...] = array[tuple(slice(a, b) for a, b in zip(low, high))]

    found["zarr-python, the same files"] = by_zarr
    blosc2.set_nthreads(1)
    packed = blosc2.asarray(np.ascontiguousarray(data[None]), urlpath=str(folder / "scan.b2nd"), chunks=(1, 144, 144, 144),
                            blocks=(1, 36, 36, 36),
                            cparams={"codec": blosc2.Codec.ZSTD, "clevel": 3, "filters": [blosc2.Filter.BITSHUFFLE],
                                     "nthreads": 1})
    packed = blosc2.open(urlpath=str(folder / "scan.b2nd"), mode="r", dparams={"nthreads": 1}, mmap_mode="r")

    def by_blosc2(low: list[int], high: list[int], out: np.ndarray) -> None:
        out[...] = packed[(slice(0, 1), *(slice(a, b) for a, b in zip(low, high)))][0]

    found["blosc2, b2nd of int16, zstd"] = by_blosc2
    return found


def measure(given: argparse.Namespace) -> str:
    """The table."""
    data = volume(tuple(given.shape))
    lines = []
    with tempfile.TemporaryDirectory(dir=given.out, prefix="suture-bench-") as name:
        folder = pathlib.Path(name)
        stores(folder, data)
        by = readers(folder, data)
        draw = np.random.default_rng(2)
        for size in (160, 96):
            boxes = [[int(draw.integers(0, n - size + 1)) for n in data.shape] for _ in range(given.boxes)]
            out = np.empty((size,) * 3, np.int16)
            clock: dict[str, list[float]] = {reader: [] for reader in by}
            busy: dict[str, list[float]] = {reader: [] for reader in by}
            for turn in range(given.rounds + 1):
                for reader, read in by.items():
                    a, b = time.perf_counter(), time.process_time()
                    for low in boxes:
                        read(low, [v + size for v in low], out)
                    if turn:  # the first one warms up
                        clock[reader].append(time.perf_counter() - a)
                        busy[reader].append(time.process_time() - b)
                    assert np.array_equal(out, data[tuple(slice(v, v + size) for v in boxes[-1])])
            mb = out.nbytes * len(boxes) / 1e6
            for reader in by:
                edge = 36 if "blosc2" in reader else 32 if "32^3" in reader else 64
                decoded = sum(math.prod((v + size - 1) // edge - v // edge + 1 for v in low) for low in boxes) * edge ** 3 * 2e-6
                lines.append(f"| {reader} | {size}^3 | {mb / statistics.median(clock[reader]):.0f} | "
                             f"{mb / statistics.median(busy[reader]):.0f} | {decoded / statistics.median(busy[reader]):.0f} | "
                             f"{statistics.median(busy[reader]) / len(boxes) * 1e3:.1f} |")
        sizes = {p.name: sum(f.stat().st_size for f in (p / "scan/0").rglob("*") if f.is_file())
                 for p in sorted(folder.iterdir()) if p.is_dir() and p.name != "in"}
        raw = data.nbytes
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("tensorstore", "zarr", "blosc2", "numpy"))
    head = [f"# Boxes of a store, {datetime.date.today().isoformat()}", "",
            f"`python/bench/store.py`: {given.boxes} random boxes of a {' x '.join(map(str, given.shape))} int16 CT, one "
            "core, warm, median of "
            f"{given.rounds} rounds in turns; {versions}. Clock and processor agree where no other program shared the core. MB/s count the voxels of "
            "the boxes; chunks decoded counts all voxels of the chunks (of b2nd: blocks) that they touch. The volume is the sample CT repeated, which has no air "
            "around the body and so compresses less than a whole scan.", "",
            "Compressed: " + ", ".join(f"{name} {size / 1e6:.1f} MB" for name,
                                       size in sizes.items()) + f"; {raw / 1e6:.1f} MB in memory.", "",
            "| reader | box | MB/s, clock | MB/s, processor | MB/s, processor, chunks decoded | ms of processor a box |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="MB/s of boxes of a store")
    parser.add_argument("--shape", type=int, nargs=3, default=(400, 512, 512))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--boxes", type=int, default=6)
    parser.add_argument("--out", default=None, help="where the files lie while it runs")
    print(measure(parser.parse_args()), end="")
