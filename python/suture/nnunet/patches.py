# SPDX-License-Identifier: Apache-2.0
"""Training patches of nnU-Net's default augmentation, of which only what they show is read."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Error
from ..operations.operation import per_sample
from ..operations.generated import remap
from ..pipeline.geometry import boxes_to_source
from ..pipeline.pipeline import Pipeline
from ..pipeline.plan import Plan
from ..pipeline.roles import boxes, labels
from ..recipes import nnunet_chain, nnunet_shape

# Voxels that are read around the box of a patch, beyond the two that are interpolated between.
_RIM = 2


@dataclass(frozen=True)
class Cut:
    """Where a training patch comes from.

    image   (channel, z, y, x), anything that slices make a NumPy array of: a file of Blosc2 say
    maps    label maps of the same extents, (channel, z, y, x) each; their channels stand one after the other
    start   where the enlarged patch begins, along (z, y, x); it may leave the image
    """

    image: Any
    maps: Sequence[Any]
    start: Sequence[int]


class Patches:
    """Makes batches of training patches.

    patch    voxels along (z, y, x), or (y, x) for the 2D configuration
    levels   scales of deep supervision as nnU-Net has them, the first of them ones; None without
    outside  the label of what lies beyond the image; nnU-Net's RemoveLabel makes it 0, and None does so at once
    """

    def __init__(self, patch: Sequence[int], *, levels: Sequence[Sequence[float]] | None = None,
                 outside: int | None = None) -> None:
        self.flat = len(patch) == 2
        named = self._named(patch, 1)
        self.patch = tuple(named[k] for k in "zyx")
        shape = nnunet_shape(named, dict(z=1, y=1, x=1))
        self.enlarged = tuple(shape["enlarged"][k] for k in "zyx")
        if levels is not None and any(s != 1 for s in levels[0]):
            raise Error(f"suture: nnunet: the first scale of deep supervision is {list(levels[0])}, not 1")
        scales = tuple(self._named(s, 1) for s in (levels or ())[1:])
        chain = nnunet_chain(named, spacing_mm=dict(z=1, y=1, x=1), starts=per_sample("starts"),
                             label_outside=-1 if outside is None else outside)
        convert = remap(table={-1: 0}) if outside is None else None
        self.pipeline = Pipeline(image=chain, seg=labels(dtype="int16", convert=convert, levels=scales))
        self._whole = [[0, 0, 0, *self.patch]]
        self._images: list[np.ndarray] = []
        self._maps: list[np.ndarray] = []

    def _named(self, values: Sequence[Any], flat: Any) -> dict[str, Any]:
        return dict(zip("zyx", (flat, *values) if self.flat else values))

    def build(self) -> None:
        """Compiles what batches need, so that the workers of a loader find it."""
        self.pipeline.build(image="float32", seg="int16")

    def __call__(self, cuts: Sequence[Cut], ids: Sequence[int], *, seed: int, epoch: int,
                 training: bool = True) -> tuple[np.ndarray, list[np.ndarray]]:
        """Images, float32 of (sample, channel, *patch), and label maps, int16 of the same and then of each level; without
        chance where this is no training. On one thread: there are as many workers as there are cores."""
        images, maps, starts, firsts = [], [], [], []
        for j, cut in enumerate(cuts):
            extents, start, first = self._inside(cut, j)
            images.append(_scratch(self._images, j, (cut.image.shape[0], *extents), np.float32))
            maps.append(_scratch(self._maps, j, (sum(m.shape[0] for m in cut.maps), *extents), np.int16))
            starts.append(start)
            firsts.append(first)
        batch = {"image": images, "seg": maps, "starts": starts, "id": list(ids)}
        plan = self.pipeline.plan(batch, seed=seed, epoch=epoch, threads=1, training=training)
        self._read(plan, cuts, firsts, images, maps)
        out = plan.run()
        targets = out["seg"] if isinstance(out["seg"], list) else [out["seg"]]
        if self.flat:
            return out["image"][:, :, 0], [t[:, :, 0] for t in targets]
        return out["image"], targets

    def _inside(self, cut: Cut, j: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Extents of the part of the enlarged patch within the image, where the patch begins in it, and where it begins
        in the image. What nnU-Net pads a patch with is then outside."""
        extents, start, first = [], [], []
        for n, size, s in zip(cut.image.shape[1:], self.enlarged, cut.start):
            low, high = max(int(s), 0), min(int(s) + size, n)
            if low >= high:
                raise Error(f"suture: nnunet: sample {j}: the enlarged patch of {self.enlarged} from {tuple(cut.start)} lies "
                            f"outside the image of {tuple(cut.image.shape[1:])}")
            extents.append(high - low)
            start.append(int(s) - low)
            first.append(low)
        return tuple(extents), tuple(start), tuple(first)

    def _read(self, plan: Plan, cuts: Sequence[Cut], firsts: Sequence[Sequence[int]], images: Sequence[np.ndarray],
              maps: Sequence[np.ndarray]) -> None:
        """Of each sample the box that its patch shows. What lies beside it stays as it was: nothing looks at it."""
        envelopes = boxes_to_source(plan, [self._whole] * len(cuts), boxes())
        for cut, first, image, labelled, box in zip(cuts, firsts, images, maps, envelopes):
            here, there = [], []
            for k in range(3):
                low = max(math.floor(box[0][k]) - _RIM, 0)
                high = min(math.ceil(box[0][3 + k]) + _RIM, image.shape[1 + k])
                here.append(slice(low, max(high, low)))
                there.append(slice(first[k] + low, first[k] + max(high, low)))
            patch, case = (slice(None), *here), (slice(None), *there)
            image[patch] = cut.image[case]
            channel = 0
            for m in cut.maps:
                labelled[channel:channel + m.shape[0]][patch] = m[case]
                channel += m.shape[0]


def _scratch(kept: list[np.ndarray], j: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Memory of sample j that is used again for every batch."""
    count = math.prod(shape)
    while len(kept) <= j:
        kept.append(np.zeros(0, dtype))
    if kept[j].size < count:
        kept[j] = np.zeros(count, dtype)
    return kept[j][:count].reshape(shape)


__all__ = ["Cut", "Patches"]
