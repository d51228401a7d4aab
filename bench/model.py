#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of docs/performance.md: what GPUs should take for the recipes, from bytes and from counted instructions.

    model.py

Prints its tables in Markdown, that of the recipes and that of operations beside published times of others. Nothing in
them was measured on a GPU by us; the first measurement replaces a row or corrects the model. For V output voxels, and per voxel the executed instructions I, the loads and stores M and the cycles G that a
multiprocessor's L1 cache takes for what the lanes of a warp gather:

    memory   bytes / copy bandwidth
    issue    V / 32 * 1.06 I / (multiprocessors * 4 * clock)
    L1       V / 32 * (M + 32 G) / (multiprocessors * clock)
    time     the largest of the three, summed over the kernels of a recipe

I and M are counted while the PTX of each kernel runs on patches of 64^3 voxels (of resampling on the whole volume),
where lanes part by warps; 1.06 is how many machine instructions nvcc 13.0 makes of one of PTX in the kernels that
gather (tests/codegen/kernels.cu, sm_80; window + cast and noise were counted in their machine code, 27 and 65). G is
the published behavior of the cache for warps of 16 x 2 lanes: .37 cycles a voxel for eight taps without a turn, .78
at 15 degrees. Where planes stay planes only four taps are read for each plane that is new: .64 and .8 planes a voxel
in the rows of CT and of resampling, one where patches of nnU-Net are only scaled, 16 of 100; 20 are turned, 64 copied.
Four channels of two bytes side by side are taken to cost what two loads of one channel do, which nobody has published.
Means of nnU-Net are those of 512 patches; bytes follow from what is drawn how often, with what no stage changes stored
at once.
"""

DEVICES = {  # copy bytes/s, multiprocessors, clock in Hz
    "A100-80": (1.73e12, 108, 1.41e9),
    "H100": (2.90e12, 132, 1.755e9),
    "H200": (4.30e12, 132, 1.755e9),
}
PATCHES = 2 * 128**3
TILES = 256 * 512**2
WHOLE, RESAMPLED = 800 * 512**2, 1000 * 358**2


def one(voxels, bytes_a_voxel, instructions, accesses, gather=0.0):
    """A kernel: V, bytes, I, M, G."""
    return voxels, bytes_a_voxel * voxels, instructions, accesses, gather


def stages(gather, *counts):
    """G of the fused kernel of nnU-Net, which gathers the image and votes among labels; bytes, I and M of it and of the
    later stages."""
    return [one(PATCHES, size, i, m, gather if k == 0 else 0) for k, (size, i, m) in enumerate(counts)]


# Row: goal as share of the copy on each device, or as microseconds; useful bytes; kernels.
ROWS = {
    "CT 2 x 128^3, no turn": ((0.60, 0.75, 0.55), 6 * PATCHES, [one(PATCHES, 6, 174, 18, 0.12)]),
    "CT 2 x 128^3, 15 degrees": ((0.45, 0.42, 0.30), 6 * PATCHES, [one(PATCHES, 6, 254, 22, 0.78)]),
    "the same with elastic": ((None,) * 3, 6 * PATCHES, [one(PATCHES, 6, 376, 32, 0.78)]),
    "the same with noise": ((None,) * 3, 6 * PATCHES, [one(PATCHES, 6, 316, 26, 0.78)]),
    "BraTS 2 x 4 x 128^3, 15 degrees": ((0.70,) * 3, 20 * PATCHES, [one(PATCHES, 20, 340, 29, 4 * 0.78)]),
    "the same, channels side by side": ((0.70,) * 3, 20 * PATCHES, [one(PATCHES, 20, 275, 20, 2 * 0.78)]),
    "resample 800x512x512 to 1000x358x358": ((0.85, 0.85, 0.70), 2 * WHOLE + 2 * RESAMPLED,
                                              [one(RESAMPLED, 5.27, 66, 6, 0.15)]),
    "window + cast 800x512x512": ((0.95,) * 3, 4 * WHOLE, [one(WHOLE, 4, 25.5, 2)]),
    "Macenko apply + HED jitter, 256 tiles of 512^2": ((0.90,) * 3, 9 * TILES, [one(TILES, 9, 148, 17)]),
    "Macenko fit + apply + jitter + warp, 256 tiles": ((None, "650 us", None), 12 * TILES,
                                                       [one(TILES, 3, 135, 14), one(TILES, 9, 313, 22)]),
    "nnU-Net 2 x 128^3, mean over draws": (("100 us", "60 us", "60 us"), 8 * PATCHES,
                                           stages(0.2 * 2 * 0.78 + 0.16 * 0.28 + 0.64 * 0.1,
                                                  (9.3, 105, 10), (2.1, 27, 5), (2.8, 36, 4), (0.8, 13, 2),
                                                  (2.8, 43, 3), (1.8, 9, 2))),
    "nnU-Net 2 x 128^3, every step drawn": ((None,) * 3, 8 * PATCHES,
                                            stages(2 * 0.78, (10, 273, 17), (8, 181, 45), (8, 191, 18), (8, 132, 8),
                                                   (8, 139, 11), (6, 21, 4))),
}

# Operations on 5 samples of 4 channels of 128^3 float32 voxels, float32 out, on an L40S; the first two move as many
# channels of labels along, uint8 here and float32 there. Its copy bandwidth is taken to be 85 % of its memory's 864
# GB/s. Operation: milliseconds of MONAI, of BatchAug (README of halleewong/batchaug, 9de24f9), our kernels.
L40S = (0.85 * 864e9, 142, 2.52e9)
VOXELS = 5 * 128**3
PUBLISHED = {
    "affine, image and labels": (113.5, 11.5, [one(VOXELS, 40, 469, 60, 8 * 0.78)]),
    "elastic, image and labels": (223.2, 9.9, [one(VOXELS, 40, 521, 60, 8 * 0.78)]),
    "Gaussian noise": (744.0, 2.6, [one(VOXELS, 32, 507, 8)]),
    "bias field, degree 3": (660.5, 0.6, [one(VOXELS, 32, 357, 8)]),
    "Gaussian blur, sigma .25 to 1.5": (5.8, 3.6, [one(VOXELS, 32, 33, 8), one(VOXELS, 32, 2233, 400)]),
}


def times(kernel, device):
    voxels, size, instructions, accesses, gather = kernel
    bandwidth, multiprocessors, clock = device
    return {"memory": size / bandwidth, "issue": voxels / 32 * 1.06 * instructions / (multiprocessors * 4 * clock),
            "L1": voxels / 32 * (accesses + 32 * gather) / (multiprocessors * clock)}


def main():
    print("| recipe | " + " | ".join(f"{d}: us | % of copy | goal" for d in DEVICES) + " | limit |")
    print("|---|" + "---|" * (3 * len(DEVICES) + 1))
    for name, (goals, useful, kernels) in ROWS.items():
        cells, limits = [], set()
        for goal, device in zip(goals, DEVICES.values()):
            each = [times(k, device) for k in kernels]
            total = sum(max(t.values()) for t in each)
            limits |= {max(t, key=t.get) for t in each}
            wanted = "" if goal is None else goal if isinstance(goal, str) else f"{100 * goal:.0f}"
            cells.append(f"{1e6 * total:.0f} | {100 * useful / device[0] / total:.0f} | {wanted}")
        print(f"| {name} | " + " | ".join(cells) + " | " + ", ".join(sorted(limits)) + " |")
    print("\n| L40S, 5 x 4 x 128^3 | MONAI: ms | BatchAug: ms | suture, modeled: ms | times MONAI | times BatchAug | limit |")
    print("|---|---|---|---|---|---|---|")
    for name, (monai, batchaug, kernels) in PUBLISHED.items():
        each = [times(k, L40S) for k in kernels]
        ms = 1e3 * sum(max(t.values()) for t in each)
        limits = ", ".join(sorted({max(t, key=t.get) for t in each}))
        print(f"| {name} | {monai} | {batchaug} | {ms:.2f} | {monai / ms:.0f} | {batchaug / ms:.1f} | {limits} |")


if __name__ == "__main__":
    main()
