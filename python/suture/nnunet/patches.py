# SPDX-License-Identifier: Apache-2.0
"""Training patches of nnU-Net's default augmentation, of which only what they show is read."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays.volume import Volume
from ..errors import Error
from ..operations.generated import remap
from ..operations.operation import per_sample
from ..pipeline.pipeline import Pipeline
from ..pipeline.roles import labels
from ..recipes import nnunet_chain, nnunet_shape


@dataclass(frozen=True)
class Cut:
    """The place that a training patch is cut from.

    image   (channel, z, y, x), anything that slices make a NumPy array of: a file of Blosc2 say
    maps    label maps of the same extents, (channel, z, y, x) each; their channels stand one after the other
    start   where the enlarged patch begins, along (z, y, x); it may leave the image
    """

    image: Any
    maps: Sequence[Any]
    start: Sequence[int]


class Part:
    """The part of arrays that lies within an enlarged patch, read box by box: a Source.

    What nnU-Net pads an enlarged patch with lies outside this array.

    Parameters
    ----------
    arrays : sequence of arrays
        (channel, z, y, x) each, of the same extents; their channels stand one after the other.
    first : sequence of int
        Where the part begins.
    extents : sequence of int
        Its voxels along (z, y, x).
    dtype : str
        Name of the element type that is read.
    """

    class_index = None

    def __init__(self, arrays: Sequence[Any], first: Sequence[int], extents: Sequence[int], dtype: str) -> None:
        self.arrays, self.first, self.dtype = arrays, first, dtype
        self.shape = (sum(a.shape[0] for a in arrays), *extents)

    def read(self, low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
        """Reads a box of all channels."""
        at = tuple(slice(f + a, f + b) for f, a, b in zip(self.first, low, high))
        channel = 0
        for array in self.arrays:
            out[channel:channel + array.shape[0]] = array[(slice(None), *at)]
            channel += array.shape[0]


class with_channel:  # noqa: N801 - used as a function
    """An array of (z, y, x), what the previous stage of a cascade predicted say, as one of one channel."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape = array, (1, *array.shape)

    def __getitem__(self, at: tuple[slice, ...]) -> Any:
        return self.array[at[1:]][None]


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

    def _named(self, values: Sequence[Any], flat: Any) -> dict[str, Any]:
        return dict(zip("zyx", (flat, *values) if self.flat else values))

    def build(self, device: str = "cpu") -> None:
        """Compiles what batches need, so that the workers of a loader find it."""
        self.pipeline.build(device=device, image="float32", seg="int16")

    def sample(self, cut: Cut) -> dict[str, Any]:
        """The batch of one sample that the pipeline takes, without its id. Nothing is read."""
        extents, start, first = self._inside(cut)
        return {"image": [Volume(Part([cut.image], first, extents, "float32"), axes="zyx")],
                "seg": [Volume(Part(cut.maps, first, extents, "int16"), axes="zyx")], "starts": [start]}

    def targets(self, made: Any) -> list[Any]:
        """The label maps of a batch, the full one and then each level, as nnU-Net has them."""
        levels = made["seg"] if isinstance(made["seg"], list) else [made["seg"]]
        return [self.image(level) for level in levels]

    def image(self, array: Any) -> Any:
        """Images as nnU-Net has them: without z in the 2D configuration."""
        return array[:, :, 0] if self.flat else array

    def __call__(self, cuts: Sequence[Cut], ids: Sequence[int], *, seed: int, epoch: int,
                 training: bool = True) -> tuple[np.ndarray, list[np.ndarray]]:
        """Images, float32 of (sample, channel, *patch), and label maps, int16 of the same and then of each level; without
        chance where this is no training. On one thread: there are as many workers as there are cores."""
        samples = []
        for j, cut in enumerate(cuts):
            try:
                samples.append(self.sample(cut))
            except Error as problem:
                raise Error(str(problem).replace("nnunet: ", f"nnunet: sample {j}: ", 1)) from None
        batch = {key: [sample[key][0] for sample in samples] for key in ("image", "seg", "starts")}
        made = self.pipeline.plan({**batch, "id": list(ids)}, seed=seed, epoch=epoch, threads=1, training=training).run()
        return self.image(made["image"]), self.targets(made)

    def _inside(self, cut: Cut) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Extents of the part of the enlarged patch within the image, where the patch begins in it, and where it begins
        in the image."""
        extents, start, first = [], [], []
        for n, size, s in zip(cut.image.shape[1:], self.enlarged, cut.start):
            low, high = max(int(s), 0), min(int(s) + size, n)
            if low >= high:
                raise Error(f"suture: nnunet: the enlarged patch of {self.enlarged} from {tuple(cut.start)} lies "
                            f"outside the image of {tuple(cut.image.shape[1:])}")
            extents.append(high - low)
            start.append(int(s) - low)
            first.append(low)
        return tuple(extents), tuple(start), tuple(first)


__all__ = ["Cut", "Part", "Patches", "with_channel"]
