# SPDX-License-Identifier: Apache-2.0
"""How fast a feed reads, and what it costs beside reading: random boxes of CT-like scans in a store.

python bench/feed.py [--out FILE]    needs tensorstore; prints one JSON object, and writes it to FILE
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import suture as st
import suture.feed
import suture.store
from suture.feed import loading

SIZE, CASES, PATCH = (400, 512, 512), 2, 160


def scan(seed: int) -> np.ndarray:
    """Smooth organs and the noise of a scanner, in whole HU."""
    rng = np.random.default_rng(seed)
    z, y, x = (np.linspace(-1, 1, n, dtype=np.float32) for n in SIZE)
    body = (y[:, None] ** 2 + x ** 2 < .8).astype(np.float32)
    made = np.empty(SIZE, np.int16)
    for k in range(SIZE[0]):
        organ = 60 * np.sin(5 * x + 3 * z[k]) * np.cos(4 * y[:, None] + seed)
        made[k] = np.where(body > 0, organ + rng.normal(0, 12, SIZE[1:]), -1000)
    return made


def store_in(folder: Path) -> suture.store.Cohort:
    """A store of the scans, as the builder makes it of NIfTI files."""
    import nibabel

    (folder / "scans").mkdir()
    for k in range(CASES):
        nibabel.save(nibabel.Nifti1Image(scan(k).T, np.diag([.7, .7, 1., 1.])), folder / f"scans/case_{k}.nii")
    st.store.build(str(folder / "scans"), out=str(folder / "cohort.zarr"), chunk=64, workers=1)
    return st.store.open(str(folder / "cohort.zarr"))


PIPELINE = st.Pipeline(image=[st.random_crop(size=PATCH), st.sampling(interpolation="nearest"), st.cast("int16")])


class Spent:
    """Processor time of the threads of the feed: in all, and in reading and in the run of the pipeline, which are no cost of
    its own."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("unit", "read", "run"), 0.0)
        self.boxes: list[tuple[Any, Any, Any]] = []
        self._wrap(loading.Loading, "_make", "unit")
        self._wrap(st.Plan, "run", "run")
        self._wrap(loading, "read_box", "read")

    def _wrap(self, owner: Any, name: str, what: str) -> None:
        call = getattr(owner, name)

        def timed(*given: Any, **named: Any) -> Any:
            begin = time.thread_time()
            try:
                return call(*given, **named)
            finally:
                self.seconds[what] += time.thread_time() - begin
                if what == "read":
                    self.boxes.append(given[:3])

        setattr(owner, name, timed)

    def clear(self) -> None:
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self.boxes.clear()


def plain(boxes: list[tuple[Any, Any, Any]]) -> float:
    """Seconds of the processor for a box: reading alone, into as much memory as a feed has on its way."""
    out = np.zeros((16, *(PATCH,) * 3), np.int16)
    begin = time.process_time()
    for i, (source, low, high) in enumerate(boxes):
        source.read(low, high, out[i % len(out)])
    return (time.process_time() - begin) / len(boxes)


def once(cohort: suture.store.Cohort, steps: int, spent: Spent) -> dict[str, float]:
    """One feed, then its boxes again by themselves."""
    with st.feed.Feed(cohort, PIPELINE, batch=2, seed=1, device="numpy", threads=1, cache=0, steps_per_epoch=steps, memory="100 MB",
                      bar=False) as made:
        batches = iter(made)
        next(batches)  # compiles, opens the cases, makes buffers
        time.sleep(.5)  # until the memory is full
        spent.clear()
        everything, main = time.process_time(), time.thread_time()
        for _ in batches:
            pass
        everything, main = time.process_time() - everything, time.thread_time() - main
    n, s = len(spent.boxes), spent.seconds
    read = plain(spent.boxes)
    own = (s["unit"] - s["read"] - s["run"] + main) / n
    return {"plain_ms": 1e3 * read, "plain_MB_s_a_core": 2e-6 * PATCH ** 3 / read, "own_ms": 1e3 * own, "own_share_of_reading": own / read,
            "run_ms": 1e3 * s["run"] / n, "everything_ms": 1e3 * everything / n,
            "read_and_own_MB_s_a_core": 2e-6 * PATCH ** 3 / (read + own)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cohort = store_in(Path(folder))
        spent = Spent()
        rounds = [once(cohort, given.steps, spent) for _ in range(given.rounds)]
        result = {"what": f"random {PATCH}^3 boxes of {CASES} scans of {SIZE}, int16, Blosc-zstd chunks of 64^3 in a shard, warm",
                  "machine": f"{platform.machine()}, {os.cpu_count()} processors",
                  "unit": "processor time for a box; plain and everything: of all threads of the process, own and run: of the threads of the feed and of the loop", "python": platform.python_version(), "rounds": rounds,
                  "median": {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}}
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        Path(given.out).write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
