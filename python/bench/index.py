#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time to open a store of many cases: by hashing all of their manifests, and by its index; in turns, in one run.

    index.py [--cases N ...] [--bytes N] [--rounds N]

The cases are empty folders with manifests of random text. Times are the median over rounds, of the clock and of the
processor, warm. Results are Markdown.
"""
from __future__ import annotations

import argparse
import datetime
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from suture.store import files, index  # noqa: E402
from suture.store.manifest import Manifest  # noqa: E402


def make(store: pathlib.Path, cases: int, size: int) -> None:
    """A folder that has cases and manifests, and no index."""
    files.manifests(store).mkdir(parents=True)
    draw = random.Random(0)
    for k in range(cases):
        (store / f"case_{k:06}").mkdir()
        (files.manifests(store) / f"case_{k:06}.json").write_text(f"{draw.getrandbits(4 * size):0{size}x}")


def ms(call: Callable[[], Any]) -> tuple[float, float]:
    """Milliseconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return 1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - processor)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--bytes", type=int, default=4096, help="of a manifest (4096)")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"# Opening a store, {datetime.date.today()}\n\n`python/bench/index.py`: manifests of {given.bytes} bytes; median of {given.rounds} rounds in turns; "
          f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.\n")
    print("| cases | what | ms, clock | ms, processor |\n|---|---|---|---|")
    for cases in given.cases:
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder)
            make(store, cases, given.bytes)
            time.sleep(.1)
            index.write_index(store)
            time.sleep(.1)
            whole = index.read_index(store)
            calls = {"hash all manifests": lambda store=store: {name: Manifest(store, name).sha256 for name in index.cases_of(store)},
                     "open by the index": lambda store=store: index.read_index(store),
                     "write the index again": lambda store=store: index.write_index(store)}
            assert calls["hash all manifests"]() == calls["open by the index"]() == whole
            rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
            for _ in range(given.rounds):
                for name, call in calls.items():
                    rounds[name].append(ms(call))
            for name, times in rounds.items():
                clock, processor = (statistics.median(each[k] for each in times) for k in (0, 1))
                print(f"| {cases:,} | {name} | {clock:.1f} | {processor:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
