# SPDX-License-Identifier: Apache-2.0
"""This module brings suture to MONAI's Compose: dictionaries with MetaTensors in and out."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from monai.data import MetaTensor
from monai.transforms import InvertibleTransform, MapTransform
from monai.transforms.traits import RandomizableTrait

from .pipeline import augment
from .arguments import check_calls_in
from .errors import Error
from .pipeline.identity import sample_id
from .operations.operation import Operation
from .operations.generated import center_crop
from .operations.crop_by_class import crop_by_class
from .pipeline.pipeline import Pipeline, geometry_of
from .pipeline.plan import Plan
from .torch import ragged_collate
from .arrays.volume import Volume


class Augmentd(MapTransform, InvertibleTransform, RandomizableTrait):  # type: ignore[misc]
    """A pipeline on a dictionary of one sample or, after ragged_collate, of a batch.

    Images are MetaTensors (channel, x, y, z) with an affine to RAS, or tensors without one, which a pipeline that resamples
    refuses. Label maps of float have to hold whole numbers. CacheDataset takes the transform for a random one and does not cache its
    results. Workers do not reseed it. Invertd maps the output of one sample, or of each item of a batch, back to the grid of the
    scan, except after crop_by_class in training, whose position depends on labels that are not kept.

    Parameters
    ----------
    pipeline : Pipeline
        The pipeline.
    seed : int
        Seed of the draws.
    id_key : str
        Key of the id of a case, a string or a whole number. Draws depend on it, the seed and the epoch alone.
    training : bool
        Whether random operations draw, unless a call says otherwise; False for validation, which skips them and takes the center with
        random crops.
    allow_missing_keys : bool
        Whether a dictionary may lack keys of the pipeline.

    Raises
    ------
    Error
        In a call: if the first image or the id is missing, or an image does not fit the pipeline.

    Examples
    --------
    >>> import torch
    >>> train = st.Pipeline(image=[st.window(center=40, width=400), st.random_crop(size=8)], seg=st.labels())
    >>> augment = suture.monai.Augmentd(train, seed=42, id_key="case")
    >>> scan = torch.arange(1728, dtype=torch.int16).reshape(1, 12, 12, 12)
    >>> made = augment({"image": scan, "seg": (scan > 40).to(torch.uint8), "case": "case 17"})
    >>> tuple(made["image"].shape)
    (1, 8, 8, 8)
    """

    def __init__(self, pipeline: Pipeline, *, seed: int, id_key: str, training: bool = True, allow_missing_keys: bool = False) -> None:
        MapTransform.__init__(self, [*pipeline.images, *pipeline.labels], allow_missing_keys)
        self.augment = augment.Augment(pipeline, seed=seed)
        self.pipeline, self.id_key, self.training = pipeline, id_key, training

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch that random draws depend on, in persistent workers too.

        Parameters
        ----------
        epoch : int
            The epoch, in 0 .. 2^32 - 1.
        """
        self.augment.set_epoch(epoch)

    def __call__(self, data: Mapping[str, Any], *, training: bool | None = None) -> dict[str, Any]:
        """Applies the pipeline to a sample or a batch.

        Parameters
        ----------
        data : mapping
            Images and label maps by key, and the id under `id_key`.
        training : bool, optional
            Whether random operations draw; by default that of the constructor.

        Returns
        -------
        dict
            The data with the outputs.

        Raises
        ------
        Error
            If a key is missing, or an image does not fit the pipeline.
        """
        training = self.training if training is None else training
        main = next(iter(self.pipeline.images))
        for name, key in (("keys", main), *(("keys", key) for key in self.keys if not self.allow_missing_keys), ("id_key", self.id_key)):
            if key not in data:
                raise Error(f"suture: Augmentd: {name}: expected a key of the data, {', '.join(map(str, data))}, got {key!r}")
        first = data[main]
        alone = not isinstance(first, (list, tuple))
        batch: dict[str, Any] = {}
        present = [key for key in self.keys if key in data or not self.allow_missing_keys]
        for key in present:
            given = [data[key]] if alone else data[key]
            batch[key] = [_volume(each) for each in given]
        names = [data[self.id_key]] if alone else list(data[self.id_key])
        batch["id"] = [_id(name) for name in names]
        pipeline = self.pipeline
        if len(present) < len(self.keys):
            pipeline = Pipeline(layout=pipeline.layout, **{k: v for k, v in pipeline.roles().items() if k in present})
        plan = pipeline.plan(batch, seed=self.augment.seed, epoch=self.augment.epoch, training=training)
        if training:
            self.augment.look_for_repeats(plan)
        out = plan.run(stack=False)  # Volumes, which have the grid of their level
        made = dict(data)
        for key in present:
            levels = out[key] if key in pipeline.labels and pipeline.labels[key].levels else [out[key]]
            results = [[self._meta(each, data[key] if alone else data[key][i], plan, i) for i, each in enumerate(level)]
                       for level in levels]
            flat: Any = [level[0] for level in results] if alone else results
            made[key] = flat if len(levels) > 1 else flat[0]
        return made

    def _meta(self, made: Any, source: Any, plan: Plan, i: int) -> Any:
        """Returns an output as a MetaTensor with its affine and the record that `inverse` pops; a plain tensor for a plain tensor."""
        tensor = made.array if isinstance(made, Volume) else made
        if not isinstance(source, MetaTensor):
            return tensor
        grid = made.grid if isinstance(made, Volume) else plan.grids[i]  # that of the level
        result = MetaTensor(tensor, affine=torch.as_tensor(grid.affine_ras("xyz")), meta=_without_affine(source.meta),
                            applied_operations=list(source.applied_operations))
        extra = {"seed": str(plan.seed), "epoch": plan.epoch, "training": plan.training, "sample": str((plan.ids or [0])[i]),
                 "affine": source.affine.cpu().numpy(), "mode": "bilinear"}
        self.push_transform(result, orig_size=tuple(source.shape[1:]), extra_info=extra)
        return result

    @staticmethod
    def _without_labels(op: Operation, training: bool) -> Operation:
        """Returns an operation that has the same effect without label maps, which `inverse` does not have."""
        if not isinstance(op, crop_by_class):
            return op
        if training:
            raise Error("suture: Augmentd: inverse: crop_by_class chose its patches by labels, which are not kept; call with "
                        "training=False, or choose patches ahead and cut them with crop_at")
        return center_crop(size=op.size)

    def inverse(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Maps the output of one sample back to the grid of its scan.

        Images are interpolated linearly, or by the nearest voxel if Invertd asks for that; label maps by the nearest voxel. Voxels
        that the output does not cover are 0. Element types do not change.

        Parameters
        ----------
        data : mapping
            Output of the transform for one sample.

        Returns
        -------
        dict
            The data with images and label maps on the grid of the scan.

        Raises
        ------
        Error
            If the pipeline has crop_by_class and the sample was made in training.
        """
        made = dict(data)
        for key in self.key_iterator(made):
            info = self.pop_transform(made[key])
            extra, size = info["extra_info"], tuple(int(n) for n in info["orig_size"])
            geometry = [self._without_labels(op, extra["training"]) for op in geometry_of(next(iter(self.pipeline.images.values())))]
            space = Volume(np.broadcast_to(np.float32(0), size), axes="xyz", affine_ras=extra["affine"])
            plan = Pipeline(image=geometry).plan({"image": [space], "id": [int(extra["sample"])]}, seed=int(extra["seed"]),
                                                       epoch=extra["epoch"], training=extra["training"])
            nearest = key in self.pipeline.labels or extra["mode"] == "nearest"
            back = plan.inverse({"image": [made[key].as_tensor()]}, interpolation="nearest" if nearest else "linear")["image"][0]
            made[key] = MetaTensor(torch.as_tensor(back.array), affine=torch.as_tensor(extra["affine"]), meta=_without_affine(made[key].meta),
                                   applied_operations=made[key].applied_operations)
        return made


def _without_affine(meta: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in meta.items() if key != "affine"}


def _id(name: Any) -> int:
    return sample_id(name.item() if isinstance(name, torch.Tensor) else name)


def _volume(image: Any) -> Volume:
    tensor = image.as_tensor() if isinstance(image, MetaTensor) else torch.as_tensor(image)
    affine = image.affine.cpu().numpy() if isinstance(image, MetaTensor) else None
    return Volume(tensor, axes="xyz", affine_ras=affine)


__all__: Sequence[str] = ["Augmentd", "ragged_collate"]

check_calls_in(globals())
