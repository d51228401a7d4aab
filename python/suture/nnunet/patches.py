# SPDX-License-Identifier: Apache-2.0
"""This module makes training patches with nnU-Net's default augmentation, and reads only the voxels that they show.

nnU-Net crops an enlarged patch, large enough to be rotated about one axis and scaled, and keeps its center, the patch."""
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
    """The arrays of a case, and the position of an enlarged patch in them.

    Attributes
    ----------
    image : array
        Image (channel, z, y, x). Slicing it returns a NumPy array, as with NumPy itself or a file of Blosc2.
    maps : sequence of arrays
        Label maps (channel, z, y, x) of the extents of the image; their channels are concatenated.
    start : sequence of int
        First voxel of the enlarged patch along (z, y, x). The patch may extend beyond the image, so that starts may be negative.

    Examples
    --------
    >>> image, seg = np.zeros((1, 20, 40, 40), np.float32), np.zeros((1, 20, 40, 40), np.int16)
    >>> suture.nnunet.patches.Cut(image, [seg], start=(-2, 0, 5)).start
    (-2, 0, 5)
    """

    image: Any
    maps: Sequence[Any]
    start: Sequence[int]


class Part:
    """A Source of a box of arrays: the part of an enlarged patch that lies within the image.

    Parameters
    ----------
    arrays : sequence of arrays
        Arrays (channel, z, y, x) of the same extents; their channels are concatenated.
    first : sequence of int
        First voxel of the part along (z, y, x).
    extents : sequence of int
        Extents of the part along (z, y, x).
    dtype : str
        Name of the element type that is read.

    Examples
    --------
    >>> part = suture.nnunet.patches.Part([np.arange(8).reshape(1, 2, 2, 2)], first=(0, 0, 1), extents=(2, 2, 1), dtype="float32")
    >>> out = np.empty((1, 1, 2, 1), np.float32)
    >>> part.read((1, 0, 0), (2, 2, 1), out)
    >>> out.ravel().tolist()
    [5.0, 7.0]
    """

    class_index = None

    def __init__(self, arrays: Sequence[Any], first: Sequence[int], extents: Sequence[int], dtype: str) -> None:
        self.arrays, self.first, self.dtype = arrays, first, dtype
        self.shape = (sum(a.shape[0] for a in arrays), *extents)

    def view(self) -> Any:
        """Returns the box of the first array without reading it, if it is a NumPy array.

        Returns
        -------
        array
            The box, (channel, z, y, x).
        """
        return self.arrays[0][(slice(None), *(slice(f, f + n) for f, n in zip(self.first, self.shape[1:])))]

    def read(self, low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
        """Reads a box of all channels.

        Parameters
        ----------
        low, high : sequence of int
            The box within the part, from `low` up to, and without, `high`.
        out : numpy.ndarray
            Memory that is written, of the box's shape with the channels before it.
        """
        at = tuple(slice(f + a, f + b) for f, a, b in zip(self.first, low, high))
        channel = 0
        for array in self.arrays:
            out[channel:channel + array.shape[0]] = array[(slice(None), *at)]
            channel += array.shape[0]


def _is_readable_in_place(array: Any, dtype: str) -> bool:
    """Tests whether a pipeline reads boxes of an array without a copy, and faster than a copy of them."""
    return (type(array) in (np.ndarray, np.memmap) and array.dtype == dtype and array.flags.c_contiguous
            and array.flags.aligned and array.shape[2] * array.shape[3] < 1 << 28)  # the largest stride of a Volume


class with_channel:  # noqa: N801 - used as a function
    """Adds a channel axis to an array of (z, y, x), such as the prediction of a cascade's previous stage.

    Parameters
    ----------
    array : array
        The array. Nothing is read until the result is sliced.

    Examples
    --------
    >>> suture.nnunet.patches.with_channel(np.zeros((4, 5, 6), np.uint8)).shape
    (1, 4, 5, 6)
    """

    def __init__(self, array: Any) -> None:
        self.array, self.shape = array, (1, *array.shape)

    def __getitem__(self, at: tuple[slice, ...]) -> Any:
        return self.array[at[1:]][None]


class Patches:
    """Makes batches of training patches by one pipeline.

    Parameters
    ----------
    patch : sequence of int
        Voxels along (z, y, x), or (y, x) for the 2D configuration.
    levels : sequence of sequences of float, optional
        Scales of deep supervision along each axis, as nnU-Net's trainer lists them: the first is 1. None: no deep supervision.
    outside : int, optional
        Label beyond the image, such as -1, which nnU-Net's RemoveLabel later changes to 0. None: label 0 beyond the image, and 0 in
        place of every -1.

    Raises
    ------
    Error
        If the first scale is not 1.

    Examples
    --------
    >>> patches = suture.nnunet.patches.Patches((16, 32, 32), levels=[(1, 1, 1), (.5, .5, .5)])
    >>> patches.patch, patches.pipeline.has_levels("seg")
    ((16, 32, 32), True)
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
        """Compiles the module of the pipeline, so that the workers of a loader find it in the cache.

        Parameters
        ----------
        device : {"cpu", "cuda"}
            Device of the batches.
        """
        self.pipeline.build(device=device, image="float32", seg="int16")

    def sample(self, cut: Cut) -> dict[str, Any]:
        """Returns a batch of one sample for the pipeline, without its id. No voxels are read.

        Parameters
        ----------
        cut : Cut
            Arrays and position of the enlarged patch.

        Returns
        -------
        dict
            "image", "seg" and "starts".
        """
        extents, start, first = self._inside(cut)
        return {"image": [Volume(Part([cut.image], first, extents, "float32"), axes="zyx")],
                "seg": [Volume(Part(cut.maps, first, extents, "int16"), axes="zyx")], "starts": [start]}

    def targets(self, made: Any) -> list[Any]:
        """Returns the label maps of a batch for nnU-Net: full resolution, then each level of deep supervision.

        Parameters
        ----------
        made : Batch
            The result of the pipeline.

        Returns
        -------
        list of arrays
            Label maps (sample, channel, axes), without z in the 2D configuration.
        """
        levels = made["seg"] if isinstance(made["seg"], list) else [made["seg"]]
        return [self.image(level) for level in levels]

    def image(self, array: Any) -> Any:
        """Returns images or label maps for nnU-Net: without the z axis in the 2D configuration.

        Parameters
        ----------
        array : array
            Outputs (sample, channel, z, y, x).

        Returns
        -------
        array
            A view of them.
        """
        return array[:, :, 0] if self.flat else array

    def __call__(self, cuts: Sequence[Cut], ids: Sequence[int], *, seed: int, epoch: int,
                 training: bool = True) -> tuple[np.ndarray, list[np.ndarray]]:
        """Makes a batch of patches, on one thread, since each worker of a loader calls this on its own.

        Parameters
        ----------
        cuts : sequence of Cut
            Arrays and position of each enlarged patch.
        ids : sequence of int
            Id of each sample.
        seed, epoch : int
            The draws depend on both.
        training : bool
            Whether random operations draw; if not, a patch is the center of its enlarged patch.

        Returns
        -------
        images : numpy.ndarray
            Images (sample, channel, *patch) of float32.
        targets : list of numpy.ndarray
            Label maps of int16, as `targets` returns them.

        Raises
        ------
        Error
            If no voxel of an enlarged patch lies within its image.
        """
        samples = []
        for j, cut in enumerate(cuts):
            try:
                samples.append(self.sample(cut))
            except Error as problem:
                raise Error(str(problem).replace("nnunet: ", f"nnunet: sample {j}: ", 1)) from None
        batch = {key: [sample[key][0] for sample in samples] for key in ("image", "seg", "starts")}
        for key, dtype in (("image", "float32"), ("seg", "int16")):
            parts = [volume.array for volume in batch[key]]
            if all(len(part.arrays) == 1 and _is_readable_in_place(part.arrays[0], dtype) for part in parts):
                batch[key] = [Volume(part.view(), axes="zyx") for part in parts]
        made = self.pipeline.plan({**batch, "id": list(ids)}, seed=seed, epoch=epoch, threads=1, training=training).run()
        return self.image(made["image"]), self.targets(made)

    def _inside(self, cut: Cut) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Returns extents, start and first voxel, each along (z, y, x).

        The extents are those of the part of the enlarged patch within the image. The start is that of the enlarged patch relative
        to the part, 0 or below. The first voxel is that of the part in the image.
        """
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
