# SPDX-License-Identifier: Apache-2.0
"""The CT recipe of bench/peers.py as one Triton kernel: window, turn, crop, gamma and float16, with the labels, one
program for a run of voxels of one sample."""
import os

import torch
import triton
import triton.language as tl

CONFIGURATIONS = [triton.Config({"BLOCK": block}, num_warps=warps)
                  for block, warps in ((128, 4), (256, 4), (256, 8), (512, 8))]


@triton.jit
def turn_kernel(image, labels, matrices, out, labels_out, sz, sy, sx, nz, ny, nx, low, scale, gamma,
                BLOCK: tl.constexpr):
    sample = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = at < nz * ny * nx
    x = (at % nx).to(tl.float32)
    y = (at // nx % ny).to(tl.float32)
    z = (at // (nx * ny)).to(tl.float32)
    m = matrices + sample * 12
    cz = tl.load(m) * z + tl.load(m + 1) * y + tl.load(m + 2) * x + tl.load(m + 3)
    cy = tl.load(m + 4) * z + tl.load(m + 5) * y + tl.load(m + 6) * x + tl.load(m + 7)
    cx = tl.load(m + 8) * z + tl.load(m + 9) * y + tl.load(m + 10) * x + tl.load(m + 11)
    image += sample.to(tl.int64) * sz * sy * sx
    labels += sample.to(tl.int64) * sz * sy * sx

    bz, by, bx = tl.floor(cz), tl.floor(cy), tl.floor(cx)
    fz, fy, fx = cz - bz, cy - by, cx - bx
    iz, iy, ix = bz.to(tl.int32), by.to(tl.int32), bx.to(tl.int32)
    value = tl.zeros((BLOCK,), tl.float32)
    for corner in tl.static_range(8):
        tz, ty, tx = iz + (corner >> 2), iy + ((corner >> 1) & 1), ix + (corner & 1)
        inside = valid & (tz >= 0) & (tz < sz) & (ty >= 0) & (ty < sy) & (tx >= 0) & (tx < sx)
        raw = tl.load(image + (tz * sy + ty) * sx + tx, mask=inside, other=0).to(tl.float32)
        tap = tl.where(inside, tl.minimum(tl.maximum((raw - low) * scale, 0.0), 1.0), 0.0)
        wz = fz if (corner >> 2) else 1 - fz
        wy = fy if ((corner >> 1) & 1) else 1 - fy
        wx = fx if (corner & 1) else 1 - fx
        value += wz * wy * wx * tap
    value = tl.where(value > 0, tl.exp2(gamma * tl.log2(tl.where(value > 0, value, 1.0))), 0.0)

    lz = tl.floor(cz + 0.5).to(tl.int32)
    ly = tl.floor(cy + 0.5).to(tl.int32)
    lx = tl.floor(cx + 0.5).to(tl.int32)
    held = valid & (lz >= 0) & (lz < sz) & (ly >= 0) & (ly < sy) & (lx >= 0) & (lx < sx)
    label = tl.load(labels + (lz * sy + ly) * sx + lx, mask=held, other=0)
    to = sample.to(tl.int64) * nz * ny * nx + at
    tl.store(out + to, value.to(tl.float16), mask=valid)
    tl.store(labels_out + to, label, mask=valid)


# The fastest of the configurations, found at the first call; Triton's interpreter has none to find.
if os.environ.get("TRITON_INTERPRET") != "1":
    turn_kernel = triton.autotune(CONFIGURATIONS, key=["nx", "ny", "nz"])(turn_kernel)
    BLOCKS = {}
else:
    BLOCKS = {"BLOCK": 256}


def turned(image, labels, matrices, size, low, scale, gamma):
    """Volumes (sample, 1, z, y, x) of int16 and uint8 and float32 maps (sample, 3, 4) to patches of `size`."""
    count = image.shape[0]
    out = torch.empty((count, *size), dtype=torch.float16, device=image.device)
    labels_out = torch.empty((count, *size), dtype=torch.uint8, device=image.device)
    voxels = size[0] * size[1] * size[2]
    turn_kernel[lambda meta: (triton.cdiv(voxels, meta["BLOCK"]), count)](
        image, labels, matrices, out, labels_out, *image.shape[2:], *size, low, scale, gamma, **BLOCKS)
    return out, labels_out
