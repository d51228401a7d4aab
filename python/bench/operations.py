#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nanoseconds a voxel of every operation: alone, behind a crop and behind a turn, by element type, on one and two threads.

    operations.py [--only NAME...] [--positions P...] [--types T...] [--compile [--part K OF]] [--compiled] [--peers]
                  [--quick] [--rounds N] [--out FOLDER]

The operations are those of the package. Images have values of 0 to 255; scans are 96^3 voxels, tiles 4 times 512^2 pixels of
three bytes. A chain is planned once, and its run into memory that exists is timed: medians over rounds in turns, of the
processor on one thread and of the clock on two. The time of a crop or a turn alone is taken off where an operation stands
behind it. `--compile` compiles and measures nothing, `--compiled` leaves out what would be compiled (5 to 15 s a chain),
`--peers` adds the same operation of other libraries. `--out` adds the rows to FOLDER/operations.json,
where rows of another machine are refused, and writes operations.md and .png of all of them; without it the table is printed.
"""
from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before the libraries below read it

import argparse
import datetime
import json
import pathlib
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
import suture as st  # noqa: E402
from suture.operations import generated  # noqa: E402

# Arguments of operations that have none by default, or change nothing by default. Every other one is made by its defaults.
BOX = [((20, 20, 20), (32, 32, 32)), ((50, 40, 30), (32, 32, 32))]
MOMENTS, RANGE = st.Moments(mean=100.0, standard_deviation=50.0), st.IntensityRange(low=5.0, high=250.0)
COLORS = st.ColorMomentsFit(space="lab", mean=(60.0, 20.0, -10.0), standard_deviation=(15.0, 8.0, 6.0))
GIVEN: dict[str, dict[str, Any]] = {
    "coarse_shuffle": {"holes": BOX}, "random_coarse_shuffle": {"holes": 4, "size": 16},
    "kspace_spike": {"location": (30, 40, 50)}, "affine_matrix": {"linear": ((1, .1, 0), (-.1, 1, .1), (0, -.1, 1))},
    "affine": {"rotate_deg": 15}, "random_affine": {"rotate_deg": (10, 20), "scale": (.9, 1.1)},
    "crop": {"start": 0, "size": 64}, "center_crop": {"size": 64}, "random_crop": {"size": 64},
    "crop_at": {"starts": [(9, 9, 9)], "size": 64}, "flip": {"axes": True}, "random_flip": {"axis_probability": 1},
    "elastic": {"max_displacement_mm": 4}, "random_elastic": {"max_displacement_mm": 4}, "orient": {"x": "R", "y": "A", "z": "I"},
    "pad": {"before": 4, "after": 4}, "pad_to": {"size": 104}, "crop_or_pad": {"size": 104}, "permute": {"order": ("x", "y", "z")},
    "resample": {"spacing_mm": .8}, "resize": {"extents": 120}, "resample_to": {"target": st.Volume(np.zeros((90, 90, 90), np.uint8), axes="zyx", affine_ras=np.diag((1.1, 1.1, 1.1, 1)))},
    "one_hot": {"classes": 4}, "regions": {"sets": [(1, 2, 3), (2, 3), (3,)]}, "remap": {"table": {1: 2, 3: 1}},
    "color_jitter": {"brightness": 1.1, "contrast": .9, "saturation": 1.1, "hue": .02}, "hed_jitter": {"alpha": (1.03, .98, 1.01)},
    "hsv_jitter": {"hue": .02, "saturation": .05, "value": -.05}, "stain_jitter": {"alpha": (1.1, .9), "beta": (.05, -.05)},
    "macenko_normalize": {"fitted": st.per_sample("stains")}, "reinhard": {"space": "lab", "fitted": st.per_sample("colors"),
                          "target": st.ColorMoments(mean=(65.0, 25.0, -15.0), standard_deviation=(14.0, 9.0, 6.0))},
    "random_stain_na": {"space": "lab", "fitted": st.per_sample("colors"), "table": "crc_lab"},
    "bias_field": {"coefficients": [.02] * 20, "extents": 96}, "brightness": {"offset": 3}, "brightness_factor": {"factor": 1.1},
    "clamp": {"low": 20, "high": 220}, "coarse_dropout": {"holes": BOX}, "random_coarse_dropout": {"holes": 4, "size": 16},
    "contrast": {"factor": 1.1, "pivot": 128}, "ct_normalize": {"lower": 10, "upper": 240, "mean": 110, "standard_deviation": 50},
    "gamma": {"exponent": .8, "range": (0, 255)}, "random_gamma": {"value_range": (0, 255)}, "gaussian_noise": {"sigma": 9},
    "histogram_match": {"fitted": [st.LandmarkMap(source=tuple(range(0, 251, 25)), target=tuple(k * k / 250 for k in range(0, 251, 25)))]},
    "histogram_shift": {"floating": (0, .08, .25, .3, .45, .5, .7, .75, .9, 1), "range": (0, 255)},
    "random_histogram_shift": {"value_range": (0, 255)}, "invert": {"pivot": 128}, "limit_to_range": {"fitted": [RANGE]},
    "percentile_scale": {"fitted": [RANGE]}, "min_max_scale": {"fitted": [RANGE]}, "poisson_noise": {"counts": 2},
    "rescale": {"slope": 2, "intercept": -50}, "rician_noise": {"sigma": 9}, "scale_intensity": {"a_min": 0, "a_max": 255},
    "window": {"center": 128, "width": 200}, "sigmoid_window": {"center": 128, "width": 200}, "z_score": {"fitted": [MOMENTS]}}
POSITIONS = ("alone", "crop", "turn")
TYPES = ("float32", "float16", "int16", "uint8")  # uint8 is that of colors and labels
KINDS = {"filter": "#b5542b", "geometry": "#3b6ea8", "label": "#8a8a8a", "stain": "#8c4f9f", "value": "#4f8f4f"}


def example(name: str) -> Any:
    """An operation of this name that changes voxels."""
    cls = getattr(st, name)
    fields = {field for field, _ in cls._fields}
    return cls(**GIVEN.get(name, {}), **({"probability": 1} if "probability" in fields else {}))


def kind_of(name: str) -> str:
    """Returns the folder of the operation's header."""
    return str(getattr(st, name)._header.split("/")[1])


@dataclass(frozen=True)
class Case:
    """One chain, on one type of voxels."""

    name: str
    dtype: str
    position: str

    @property
    def kind(self) -> str:
        return kind_of(self.name) if self.name else "stain" if self.dtype == "uint8" else "value"

    def pipeline(self, length: int = 64) -> st.Pipeline:
        """The chain, for images of this many voxels along an axis."""
        tiles, rest = self.kind == "stain", length - 16
        before = {"crop": [st.crop(start=dict(y=8, x=8) if tiles else 8, size=rest)],
                  "turn": [st.affine(rotate_deg=dict(z=15) if tiles else 15)]}.get(self.position, [])
        if self.kind == "label":
            return st.Pipeline(image=[], seg=st.labels(convert=example(self.name)))
        return st.Pipeline(layout="NHWC" if tiles else None, image=[*before, *([example(self.name)] if self.name else [])])

    def build(self) -> None:
        self.pipeline().build(image=self.dtype, **({"seg": "uint8"} if self.kind == "label" else {}))

    def batch(self, given: Inputs) -> dict[str, Any]:
        if self.kind == "stain":
            fits = {"stains": given.stains, "colors": [COLORS] * 4} if self.name in ("macenko_normalize", "reinhard", "random_stain_na") else {}
            return {"image": given.tiles.astype(self.dtype), "id": list(range(4)), **fits}
        def placed(voxels: np.ndarray) -> list[st.Volume]:
            return [st.Volume(voxels[0], axes="zyx", affine_ras=np.eye(4))]

        labels = {"seg": placed((given.scan / 64).astype(np.uint8))} if self.kind == "label" else {}
        return {"image": placed(given.scan.astype(self.dtype)), "id": [1], **labels}

    def prepare(self, given: Inputs, threads: int) -> tuple[Callable[[], Any], int]:
        """What runs the chain into memory that exists, and the voxels that it makes."""
        image = given.tiles[..., 0] if self.kind == "stain" else given.scan
        plan = self.pipeline(image.shape[-1]).plan(self.batch(given), seed=3, threads=threads)
        made = plan.run()
        key = "seg" if self.kind == "label" else "image"
        samples = [np.asarray(sample) for sample in made[key]]
        voxels = sum(sample.size // (3 if self.kind == "stain" else sample.shape[0]) for sample in samples)
        out = {name: made[name] if isinstance(made[name], np.ndarray) else [np.asarray(v) for v in made[name]]
               for name in ("image", "seg") if name in made}
        return lambda: plan.run(out), voxels


class Inputs:
    """Voxels to work on."""

    def __init__(self, size: int, names: list[str]) -> None:
        random = np.random.default_rng(1)
        ramp = np.linspace(0, 200, size)
        field = ramp[:, None, None] / 3 + ramp[:, None] / 3 + ramp / 3
        self.scan = (field + 55 * random.random((1, 1, size, size, size))).astype(np.float32)
        side = 512 if size > 80 else 96
        self.tiles = (90 + 160 * random.random((4, side, side, 1)) * (.3 + .7 * random.random((4, side, side, 3)))).astype(np.uint8)
        self.stains = st.fit_macenko(self.tiles, layout="NHWC") if "macenko_normalize" in names else None


def cases(names: list[str], positions: tuple[str, ...] = POSITIONS, dtypes: tuple[str, ...] = TYPES) -> Iterator[Case]:
    """All chains, the most wanted ones first. An operation that draws what another one is given costs the same behind others."""
    yield from (case for case in _cases(names) if case.position in positions and case.dtype in dtypes)


def _cases(names: list[str]) -> Iterator[Case]:
    def type_of(name: str) -> str:
        return "uint8" if kind_of(name) == "stain" else "float32"

    for name in names:
        yield Case(name, type_of(name), "alone")
    others = [n for n in names if n.removeprefix("random_") == n or n.removeprefix("random_") not in generated.__all__]
    for position in POSITIONS[1:]:
        for dtype in ("float32", "uint8"):
            yield from [Case("", dtype, position)] if any(type_of(n) == dtype for n in others) else []
        for name in others:
            if kind_of(name) in ("filter", "value", "stain"):
                yield Case(name, type_of(name), position)
    for dtype in TYPES[1:3]:
        for name in others:
            if kind_of(name) in ("filter", "value", "geometry"):
                yield Case(name, dtype, "alone")


def nanoseconds(runs: dict[Case, tuple[Callable[[], Any], int]], rounds: int, clock: Callable[[], float]) -> dict[Case, float]:
    times: dict[Case, list[float]] = {case: [] for case in runs}
    for _ in range(rounds):
        for case, (run, voxels) in runs.items():
            begin = clock()
            run()
            times[case].append(1e9 * (clock() - begin) / voxels)
    return {case: statistics.median(each) for case, each in times.items()}


def measured(wanted: list[Case], names: list[str], given: Inputs, rounds: int) -> dict[str, Any]:
    """Rows by name: nanoseconds a voxel by "type position threads"; what a crop and a turn take alone is under ""."""
    rows: dict[str, Any] = {}
    for name in ["", *names]:
        row: dict[str, Any] = {"kind": kind_of(name) if name else "", "ns": {}}
        for threads, clock in ((1, time.process_time), (2, time.perf_counter)):
            runs = {}
            for case in (c for c in wanted if c.name == name):
                try:
                    runs[case] = case.prepare(given, threads)
                except st.CompileError:
                    if os.environ.get("SUTURE_JIT") != "never":
                        raise
            for case, ns in nanoseconds(runs, rounds, clock).items():
                row["ns"][f"{case.dtype} {case.position} {threads}"] = round(ns, 3)
        if row["ns"]:
            rows[name] = row
            print(f"{name or '(crop and turn)'}: {row['ns']}", file=sys.stderr, flush=True)
    return rows


def copies(given: Inputs, rounds: int) -> dict[str, float]:
    """Nanoseconds a voxel of memcpy by type; of a pixel of three bytes for uint8."""
    sources = {Case("", dtype, "alone"): given.tiles if dtype == "uint8" else given.scan.astype(dtype) for dtype in TYPES}
    runs = {}
    for case, source in sources.items():
        to = source.copy()
        runs[case] = (lambda source=source, to=to: np.copyto(to, source)), source.size // (3 if case.dtype == "uint8" else 1)
    return {case.dtype: round(ns, 3) for case, ns in nanoseconds(runs, 5 * rounds, time.process_time).items()}


def peers(names: list[str], given: Inputs, rounds: int) -> dict[str, tuple[str, float]]:
    """The same operation of another library, on the same float32 voxels or pixels, on one thread."""
    import scipy.ndimage as images
    import skimage.exposure
    import skimage.filters
    import torch
    from monai import transforms as monai
    from torchvision.transforms.v2 import functional as vision

    torch.set_num_threads(1)
    x, random = given.scan[0, 0], np.random.default_rng(2)
    one, tiles = torch.from_numpy(given.scan[0]), torch.from_numpy(np.ascontiguousarray(given.tiles.transpose(0, 3, 1, 2)))
    c, s = np.cos(.26), np.sin(.26)
    turn = np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    calls: dict[str, tuple[str, Callable[[], Any]]] = {
        "gaussian_blur": ("SciPy", lambda: images.gaussian_filter(x, 1)),
        "median_filter": ("SciPy", lambda: images.median_filter(x, 3)),
        "affine": ("SciPy", lambda: images.affine_transform(x, turn, order=1)),
        "resize": ("SciPy", lambda: images.zoom(x, 1.25, order=1)),
        "sharpen": ("scikit-image", lambda: skimage.filters.unsharp_mask(x, 1, 1, preserve_range=True)),
        "gamma": ("scikit-image", lambda: skimage.exposure.adjust_gamma(x, .8)),
        "poisson_noise": ("NumPy", lambda: random.poisson(2 * x) / 2),
        "gaussian_noise": ("MONAI", lambda: monai.RandGaussianNoise(prob=1, std=9)(one)),
        "rician_noise": ("MONAI", lambda: monai.RandRicianNoise(prob=1, std=9)(one)),
        "gibbs_ringing": ("MONAI", lambda: monai.GibbsNoise(alpha=.5)(one)),
        "kspace_spike": ("MONAI", lambda: monai.KSpaceSpikeNoise(loc=(30, 40, 50), k_intensity=9)(one)),
        "random_histogram_shift": ("MONAI", lambda: monai.RandHistogramShift(prob=1)(one)),
        "random_bias_field": ("MONAI", lambda: monai.RandBiasField(prob=1)(one)),
        "scale_intensity": ("MONAI", lambda: monai.ScaleIntensityRange(0, 255, 0, 1)(one)),
        "grayscale": ("torchvision", lambda: vision.rgb_to_grayscale(tiles, 3)),
        "hsv_jitter": ("torchvision", lambda: vision.adjust_hue(tiles, .02))}
    found = {}
    for name, (library, call) in calls.items():
        if name in names:
            call()
            elements = tiles[:, 0].numel() if library == "torchvision" else int(1.25**3 * x.size) if name == "resize" else x.size
            run = {Case(name, "float32", "alone"): (call, elements)}
            found[name] = (library, round(next(iter(nanoseconds(run, min(rounds, 3), time.process_time).values())), 2))
    return found


def headline(row: dict[str, Any]) -> float | None:
    """Nanoseconds a voxel alone on one thread."""
    ns = row["ns"]
    return next((ns[f"{dtype} alone 1"] for dtype in ("float32", "uint8") if f"{dtype} alone 1" in ns), None)


def ordered(rows: dict[str, Any]) -> list[str]:
    """Names of operations, the slowest first."""
    return sorted((n for n in rows if n and headline(rows[n]) is not None), key=lambda n: -(headline(rows[n]) or 0))


def markdown(found: dict[str, Any]) -> str:
    rows, base = found["rows"], found["rows"].get("", {"ns": {}})["ns"]

    def cell(value: float | None) -> str:
        return "" if value is None else f"{value:.1f}" if abs(value) >= 9.95 else f"{value:.2f}"

    def behind(ns: dict[str, float], dtype: str, position: str) -> float | None:
        key = f"{dtype} {position} 1"
        return ns[key] - base[key] if key in ns and key in base else None

    copy = ", ".join(f"{dtype} {ns:.2f}" for dtype, ns in found["copy"].items())
    alone = "; ".join(f"{key[:-2].replace(' ', ', ')} {ns:.2f}" for key, ns in base.items() if key.endswith(" 1"))
    others = (f" `behind` is what an operation adds to a crop and to a turn of 15 degrees about each axis, which alone take: {alone} ns." if alone else "")
    columns: dict[str, list[str]] = {name: [] for name in ("operation", "alone", "two threads", "copies", "behind a crop", "behind a turn", "float16",
                                                           "int16", "peer", "times as fast as the peer")}
    for name in ordered(rows):
        row, ns, alone = rows[name], rows[name]["ns"], headline(rows[name]) or 0.0
        dtype = "float32" if "float32 alone 1" in ns else "uint8"
        library, peer = row.get("peer", ("", None))
        fields = [f"`{name}`", cell(alone), cell(ns.get(f"{dtype} alone 2")), cell(alone / found["copy"][dtype]), cell(behind(ns, dtype, "crop")),
                  cell(behind(ns, dtype, "turn")), cell(ns.get("float16 alone 1")), cell(ns.get("int16 alone 1")), f"{library} {cell(peer)}".strip(),
                  cell(peer / alone) if peer else ""]
        for column, field in zip(columns.values(), fields):
            column.append(field)
    shown = {name: column for name, column in columns.items() if any(column)}
    lines = [f"# Nanoseconds a voxel, {found['date']}", "",
             f"`python/bench/operations.py`: {found['machine']}; medians of {found['rounds']} rounds in turns, on one thread where two are not named. "
             f"A voxel is float32, a pixel of three bytes for colors, a byte for labels. Empty fields were not measured. A copy of the same voxels takes {copy} "
             f"ns.{others}", "",
             "| " + " | ".join(shown) + " |", "|" + "---|" * len(shown),
             *("| " + " | ".join(row) + " |" for row in zip(*shown.values()))]
    return "\n".join(lines) + "\n"


def draw(found: dict[str, Any], to: pathlib.Path) -> None:
    """The picture: bars of the time alone, the slowest at the top."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    rows, names = found["rows"], ordered(found["rows"])[::-1]
    figure, axis = pyplot.subplots(figsize=(9, 1.2 + .21 * len(names)), constrained_layout=True)
    times = [headline(rows[n]) for n in names]
    axis.barh(names, times, color=[KINDS[rows[n]["kind"]] for n in names], height=.72)
    for k in range(len(names)):
        axis.text(times[k] * 1.04, k, f"{times[k]:.3g}", va="center", fontsize=7)
    with_peer = [n for n in names if "peer" in rows[n]]
    marks = axis.scatter([rows[n]["peer"][1] for n in with_peer], [names.index(n) for n in with_peer], marker="|", s=60, color="black", zorder=3)
    line = axis.axvline(found["copy"]["float32"], color="gray", linestyle="--", linewidth=1)
    axis.set_xscale("log")
    axis.set_xlabel("nanoseconds a voxel alone, one thread")
    axis.tick_params(axis="y", labelsize=7.5)
    axis.margins(y=.01)
    axis.legend([*(Patch(color=color) for color in KINDS.values()), line, marks], [*KINDS, "copy of float32", "another library"], loc="lower right", fontsize=8)
    figure.savefig(to, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=generated.__all__, metavar="NAME", default=list(generated.__all__))
    parser.add_argument("--compile", action="store_true", help="compile and measure nothing")
    parser.add_argument("--compiled", action="store_true", help="measure what is compiled already")
    parser.add_argument("--peers", action="store_true", help="other libraries as well")
    parser.add_argument("--quick", action="store_true", help="small images, one round")
    parser.add_argument("--positions", nargs="+", choices=POSITIONS, default=POSITIONS)
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("K", "OF"), help="compile every OF-th chain, from the K-th on")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    wanted = list(cases(given.only, tuple(given.positions), tuple(given.types)))
    if given.compile:
        if given.part[0] == 0:
            Inputs(80, given.only)  # fits stains
        for case in wanted[given.part[0]::given.part[1]]:
            case.build()
        return 0
    if given.compiled:
        os.environ["SUTURE_JIT"] = "never"
    rounds, inputs = 1 if given.quick else given.rounds, Inputs(80 if given.quick else 96, given.only)
    machine = f"{processor()}, {os.cpu_count()} processors"
    found: dict[str, Any] = {"rows": {}, "machine": machine}
    if given.out and (given.out / "operations.json").exists():
        found = json.loads((given.out / "operations.json").read_text())
    if found["machine"] != machine:
        parser.error(f"--out: expected rows of this machine ({machine}), got rows of {found['machine']}. Name another folder")
    rows = measured(wanted, given.only, inputs, rounds)
    for name, (library, ns) in (peers(given.only, inputs, rounds) if given.peers else {}).items():
        rows[name]["peer"] = (library, ns)
    for name, row in rows.items():
        before = found["rows"].get(name, {"ns": {}})
        found["rows"][name] = {**before, **row, "ns": {**before["ns"], **row["ns"]}}
    found |= {"date": str(datetime.date.today()), "rounds": rounds, "copy": copies(inputs, rounds)}
    if given.out is None:
        print(markdown(found))
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "operations.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    (given.out / "operations.md").write_text(markdown(found))
    draw(found, given.out / "operations.png")
    return 0


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if platform.system() == "Linux" else []:
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
