#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of docs/performance.md: what GPUs should take for the recipes. Nothing in it was
measured on a GPU by us.

    model.py             its tables in Markdown
    model.py --check     fails where docs/performance.md has other figures
    model.py --details   what it computes with: instructions by kernel and purpose, cycles by limit

A multiprocessor has four schedulers. Each issues an instruction for a warp a cycle; a pipe is busy
with one for as many cycles as PIPE_CYCLES says, and the L1 cache, which the four share, for one
cycle with each load or store and G cycles a voxel with what a warp gathers. Of V voxels a kernel
takes

    memory   bytes / copy bandwidth
    others   V / 32 * cycles a warp / (4 * multiprocessors * clock) * tail

and no less than the largest of them, if everything overlaps without a loss: 10 to 20 % more is to
be expected. A tail is what the fullest multiprocessor has to do beside the mean, of blocks of 32 x
8 x 16 voxels. Between the kernels of a recipe lies LAUNCH. So this is what a kernel of these
instructions can take at best, not what it will take: what is in it is either counted (instructions,
bytes, launches, blocks) or published by others (bandwidth, G, LAUNCH, PIPE_CYCLES, WAIT).

Instructions come from two counts. `machine`: the way of one voxel through the machine code, pipe by
pipe (executed.py, stored in executed.json); what a thread does ahead of its walk is spread over it.
`ptx`: executed PTX under an emulator, for recipes that no gated kernel is the same as, times RATIO,
which is what the counted rows have of machine instructions for one of PTX; such rows begin with ~.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXECUTED = json.loads((HERE / "executed.json").read_text(encoding="utf-8"))

DEVICES = {  # architecture, copy bytes/s (published), multiprocessors, clock in Hz
    "A100-80": ("sm_80", 1.73e12, 108, 1.41e9),
    "H100": ("sm_90", 2.90e12, 132, 1.755e9),
    "H200": ("sm_90", 4.30e12, 132, 1.755e9),
}
# Cycles that an instruction of a warp keeps a pipe of its scheduler busy: lanes of a multiprocessor from the table of
# arithmetic throughput in the CUDA C++ Programming Guide, over four. Moves and address sums of IMAD are among `fma`.
PIPE_CYCLES = {
    "sm_80": {"alu": 2, "fma": 2, "imad": 2, "convert": 8},
    "sm_90": {"alu": 2, "fma": 1, "imad": 2, "convert": 2},
}
LAUNCH = 1.5e-6  # between two kernels of a graph
# Latency: of the instructions of a warp every second waits for the one before it, four cycles, and twice a turn it waits
# for memory, as label and taps do: an L2 cache away. Eight warps of a scheduler hide each other's.
CYCLES_BETWEEN, WAITS, WAIT, WARPS = 2, 2, 250, 8
RATIO = 0.85     # machine instructions for one of PTX on the executed path: .82 to .88 where both were counted
PATCHES, SMALL = 2 * 128**3, 2 * 96**3
TILES = 256 * 512**2
WHOLE, RESAMPLED = 800 * 512**2, 1000 * 358**2


def machine(voxels, bytes_a_voxel, gather, *routes, weights=None):
    """A kernel whose voxels take these routes of executed.json, all of them or in these shares."""
    return {"voxels": voxels, "bytes": bytes_a_voxel * voxels, "gather": gather, "routes": routes,
            "weights": weights or [1] * len(routes)}


def ptx(voxels, bytes_a_voxel, instructions, accesses, gather=0.0):
    """A kernel of which PTX was counted: instructions, and loads and stores, a voxel."""
    return {"voxels": voxels, "bytes": bytes_a_voxel * voxels, "gather": gather, "ptx": (instructions, accesses)}


def stages(gather, *counts):
    """The fused kernel of nnU-Net, which gathers, and the later stages: bytes, instructions, accesses of each."""
    return [ptx(PATCHES, size, i, m, gather if k == 0 else 0) for k, (size, i, m) in enumerate(counts)]


def row(kernels, useful, bench, goals=(None,) * 3, launches=None):
    return {"kernels": kernels, "useful": useful, "bench": bench, "goals": goals,
            "launches": launches or len(kernels)}


# Useful bytes; what bench/ calls the row; goals as share of the copy on each device, or in microseconds.
ROWS = {
    # .64 planes of the source for one of the output, 1.5625 mm to 1.
    "CT 2 x 128^3, not rotated": row([machine(PATCHES, 6, .12, "CT, planes, image", "CT, planes, image, no new plane",
                                          "CT, planes, labels", weights=[.64, .36, 1])], 6 * PATCHES,
                                 "ct/128/rotate:0/elastic:0/noise:0/batch:2", (.60, .75, .55), 2),
    "CT 2 x 128^3, rotated by 15 degrees": row([machine(PATCHES, 6, .78, "CT, turned")], 6 * PATCHES,
                                    "ct/128/rotate:15/elastic:0/noise:0/batch:2", (.45, .42, .30), 2),
    # A walk of 16 voxels begins in a cell of 32, and enters another every second time.
    "the same with elastic": row([machine(PATCHES, 6, .78, "CT, turned, elastic", "CT, turned, elastic, next cell",
                                          weights=[1 - 1.5 / 16, 1.5 / 16])], 6 * PATCHES,
                                 "ct/128/rotate:15/elastic:1/noise:0/batch:2", launches=2),
    "the same with noise": row([machine(PATCHES, 6, .78, "CT, turned, noise", "CT, noise made ahead")], 6 * PATCHES,
                               "ct/128/rotate:15/elastic:0/noise:1/batch:2", launches=2),
    "CT 2 x 96^3, rotated by 15 degrees": row([machine(SMALL, 6, .78, "CT, turned")], 6 * SMALL,
                                   "ct/96/rotate:15/elastic:0/noise:0/batch:2", launches=2),
    "window + affine of CT, labels, 2 x 128^3": row(
        [machine(PATCHES, 6, .78, "window and affine, turned")], 6 * PATCHES, "ct_without_gamma/128/rotate:15/batch:2"),
    "BraTS 2 x 4 x 128^3, rotated by 15 degrees": row([ptx(PATCHES, 20, 340, 29, 4 * .78)], 20 * PATCHES,
                                           "recipe/brats_affine/4x128/batch:2", (.70,) * 3),
    "the same, channels side by side": row([ptx(PATCHES, 20, 275, 20, 2 * .78)], 20 * PATCHES,
                                           "recipe/brats_affine_side_by_side/4x128/batch:2", (.70,) * 3),
    "resample 800x512x512 to 1000x358x358": row([ptx(RESAMPLED, 5.27, 66, 6, .15)], 2 * WHOLE + 2 * RESAMPLED,
                                                "recipe/resample/800x512x512", (.85, .85, .70)),
    "window + cast 800x512x512": row([machine(WHOLE, 4, 0, "window + cast")], 4 * WHOLE,
                                     "recipe/window_cast/800x512x512", (.95,) * 3),
    "Macenko apply + HED jitter, 256 tiles of 512^2": row([ptx(TILES, 9, 148, 17)], 9 * TILES,
                                                          "recipe/macenko_apply_jitter/256x512", (.90,) * 3),
    "Macenko fit + apply + jitter + affine, 256 tiles": row(
        [ptx(TILES, 3, 135, 14), ptx(TILES, 9, 313, 22)], 12 * TILES, "recipe/macenko_fit_apply_jitter_warp/256x512",
        (None, "650 us", None), 4),
    "nnU-Net 2 x 128^3, mean over draws": row(
        stages(.2 * 2 * .78 + .16 * .28 + .64 * .1,
               (9.3, 105, 10), (2.1, 27, 5), (2.8, 36, 4), (.8, 13, 2), (2.8, 43, 3), (1.8, 9, 2)),
        8 * PATCHES, "recipe/nnunet/128/batch:2", ("100 us", "60 us", "60 us")),
    "nnU-Net 2 x 128^3, every step drawn": row(
        stages(2 * .78, (10, 273, 17), (8, 181, 45), (8, 191, 18), (8, 132, 8), (8, 139, 11), (6, 21, 4)),
        8 * PATCHES, None),
}

# Operations on 5 samples of 4 channels of 128^3 float32 voxels, float32 out, on an L40S; the first two move as many
# channels of labels along, uint8 here and float32 there. Its copy bandwidth is taken to be 85 % of its memory's 864
# GB/s. Operation: milliseconds of MONAI, of BatchAug (README of halleewong/batchaug, 9de24f9), our kernels.
L40S = ("sm_80", .85 * 864e9, 142, 2.52e9)
VOXELS = 5 * 128**3
PUBLISHED = {
    "affine, image and labels": (113.5, 11.5, [ptx(VOXELS, 40, 469, 60, 8 * .78)]),
    "elastic, image and labels": (223.2, 9.9, [ptx(VOXELS, 40, 521, 60, 8 * .78)]),
    "Gaussian noise": (744.0, 2.6, [ptx(VOXELS, 32, 507, 8)]),
    "bias field, degree 3": (660.5, .6, [ptx(VOXELS, 32, 357, 8)]),
    "Gaussian blur, sigma .25 to 1.5": (5.8, 3.6, [ptx(VOXELS, 32, 33, 8), ptx(VOXELS, 32, 2233, 400)]),
}


def executed(kernel, architecture):
    """Machine instructions and their pipes for a voxel, the way ahead of the walk included."""
    pipes = {}
    if "ptx" in kernel:
        instructions, accesses = kernel["ptx"]
        return RATIO * instructions, {"access": accesses}
    # What is ahead of two walks of one kernel is ahead of the second.
    total = max(EXECUTED[architecture][name]["ahead"] / EXECUTED[architecture][name]["turns"] /
                EXECUTED[architecture][name]["voxels"] for name in kernel["routes"])
    for name, weight in zip(kernel["routes"], kernel["weights"]):
        counted = EXECUTED[architecture][name]
        total += weight * counted["instructions"] / counted["voxels"]
        for pipe, count in counted["pipes"].items():
            place = "access" if pipe in ("load", "store", "shared", "local") else pipe
            pipes[place] = pipes.get(place, 0) + weight * count / counted["voxels"]
    return total, pipes


def limits_of(kernel, device):
    """Seconds that each limit asks for."""
    architecture, bandwidth, multiprocessors, clock = device
    instructions, pipes = executed(kernel, architecture)
    cycles = {"issue": instructions, "L1": 4 * (pipes.get("access", 0) + 32 * kernel["gather"]),
              "latency": 0}
    if "routes" in kernel:
        together = EXECUTED[architecture][kernel["routes"][0]]["voxels"]
        cycles["latency"] = (CYCLES_BETWEEN * instructions + WAITS * WAIT / together) / WARPS
    for pipe, each in PIPE_CYCLES[architecture].items():
        if pipe == "imad":
            cycles["fma"] += each * pipes.get(pipe, 0)
        elif pipe in pipes:
            cycles[pipe] = each * pipes[pipe]
        else:
            cycles[pipe] = 0
    blocks = kernel["voxels"] / (32 * 8 * 16) / multiprocessors
    tail = -(-blocks // 1) / blocks if blocks < 100 else 1.0
    warps = kernel["voxels"] / 32 * tail
    return {"memory": kernel["bytes"] / bandwidth,
            **{name: warps * c / (4 * multiprocessors * clock) for name, c in cycles.items()}}


def modeled(recipe, device):
    """Seconds, their share of the copy, and what limits the kernels."""
    each = [limits_of(kernel, device) for kernel in recipe["kernels"]]
    seconds = sum(max(t.values()) for t in each) + LAUNCH * (recipe["launches"] - 1)
    return seconds, recipe["useful"] / device[1] / seconds, sorted({max(t, key=t.get) for t in each})


def is_counted(recipe):
    return all("routes" in kernel for kernel in recipe["kernels"])


def goal_of(goal):
    return "" if goal is None else goal if isinstance(goal, str) else f"{100 * goal:.0f} %"


def tables():
    lines = ["| row | A100-80: us, share | goal | H100: us, share | goal | H200: us, share | goal | limit |",
             "|---|---|---|---|---|---|---|---|"]
    for name, recipe in ROWS.items():
        cells, limits = [], []
        for goal, device in zip(recipe["goals"], DEVICES.values()):
            seconds, share, which = modeled(recipe, device)
            limits += [w for w in which if w not in limits]
            about = "" if is_counted(recipe) else "~"
            cells.append(f"{about}{1e6 * seconds:.0f}, {100 * share:.0f} % | {goal_of(goal)}")
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {', '.join(limits)} |")
    lines += ["", "| L40S, 5 x 4 x 128^3 | MONAI: ms | BatchAug: ms | suture, modeled: ms | times MONAI | "
                  "times BatchAug | limit |",
              "|---|---|---|---|---|---|---|"]
    for name, (monai, batchaug, kernels) in PUBLISHED.items():
        seconds, _, limits = modeled(row(kernels, 1, None), L40S)
        lines.append(f"| {name} | {monai} | {batchaug} | {1e3 * seconds:.2f} | {monai / seconds / 1e3:.0f} | "
                     f"{batchaug / seconds / 1e3:.1f} | {', '.join(limits)} |")
    return lines


def details():
    """The counts and cycles that the model computes with."""
    lines = ["| machine instructions a voxel, counted | sm_80 | ahead of the walk | sm_90 | ahead of the walk | "
                  "of PTX |",
              "|---|---|---|---|---|---|"]
    for name in EXECUTED["sm_80"]:
        cells = []
        for architecture in ("sm_80", "sm_90"):
            c = EXECUTED[architecture][name]
            cells.append(f"{c['instructions'] / c['voxels']:.0f} | {c['ahead'] / (c['turns'] * c['voxels']):.0f}")
        lines.append(f"| {name} | {' | '.join(cells)} | {PTX_OF.get(name, '')} |")
    lines += ["", "| CT, turned: what for | sm_80 | sm_90 |", "|---|---|---|"]
    purposes = {p: None for a in ("sm_80", "sm_90") for p in EXECUTED[a]["CT, turned"]["purposes"]}
    for purpose in purposes:
        each = [str(EXECUTED[a]["CT, turned"]["purposes"].get(purpose, 0)) for a in ("sm_80", "sm_90")]
        lines.append(f"| {purpose} | {' | '.join(each)} |")
    lines += ["", "| CT, turned: cycles a warp of | sm_80 | sm_90 |", "|---|---|---|"]
    kernel = ROWS["CT 2 x 128^3, rotated by 15 degrees"]["kernels"][0]
    for limit in ("issue", "alu", "fma", "convert", "L1", "latency"):
        each = []
        for device in ("A100-80", "H100"):
            _, _, multiprocessors, clock = DEVICES[device]
            blocks = kernel["voxels"] / 4096 / multiprocessors
            seconds = limits_of(kernel, DEVICES[device])[limit] / (-(-blocks // 1) / blocks)
            each.append(f"{seconds * 4 * multiprocessors * clock / (kernel['voxels'] / 32):.0f}")
        lines.append(f"| {limit} | {' | '.join(each)} |")
    return lines


# Executed PTX of the same voxels under an emulator.
PTX_OF = {"CT, turned": 254, "CT, turned, noise": 316, "CT, turned, elastic": 376}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--details", action="store_true")
    options = parser.parse_args()
    if options.details:
        print("\n".join(details()))
        return
    lines = tables()
    if not options.check:
        print("\n".join(lines))
        return
    page = (HERE.parent / "docs" / "performance.md").read_text(encoding="utf-8").split("\n")
    missing = [line for line in lines if line and line not in page]
    for line in missing:
        print("docs/performance.md lacks:", line)
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
