# SPDX-License-Identifier: Apache-2.0
"""suture in MONAI's Compose: dictionaries with MetaTensors in and out."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from monai.data import MetaTensor
from monai.transforms import MapTransform
from monai.transforms.traits import RandomizableTrait

from . import augment
from .identity import sample_id
from .pipeline import Pipeline
from .torch import ragged_collate
from .volume import Volume


class Augmentd(MapTransform, RandomizableTrait):  # type: ignore[misc]
    """A pipeline on a dictionary, of one sample or, after ragged_collate, of a batch. Images are MONAI's, (channel, x, y, z)
    with an affine in RAS; without one spacing is 1. Label maps of float are converted once and have to be whole numbers.

    id_key   what identifies a case, a string or a whole number; draws depend on it, the seed and the epoch alone
    CacheDataset does not cache what it does, and workers do not seed it anew.
    """

    def __init__(self, pipeline: Pipeline, *, seed: int, id_key: str, allow_missing_keys: bool = False) -> None:
        MapTransform.__init__(self, [*pipeline.images, *pipeline.labels], allow_missing_keys)
        self.augment = augment.Augment(pipeline, seed=seed)
        self.pipeline, self.id_key = pipeline, id_key

    def set_epoch(self, epoch: int) -> None:
        """Of the draws from now on, in workers that live on too."""
        self.augment.set_epoch(epoch)

    def __call__(self, data: Mapping[str, Any], *, training: bool = True) -> dict[str, Any]:
        first = data[next(iter(self.pipeline.images))]
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
        out = plan.run()
        made = dict(data)
        for key in present:
            levels = out[key] if key in pipeline.labels and pipeline.labels[key].levels else [out[key]]
            results = [[_meta(each, data[key] if alone else data[key][i], plan.grids[i].affine_ras("xyz"))
                        for i, each in enumerate(level)] for level in levels]
            flat: Any = [level[0] for level in results] if alone else results
            made[key] = flat if len(levels) > 1 else flat[0]
        return made


def _id(name: Any) -> int:
    return sample_id(name.item() if isinstance(name, torch.Tensor) else name)


def _volume(image: Any) -> Volume:
    tensor = image.as_tensor() if isinstance(image, MetaTensor) else torch.as_tensor(image)
    affine = image.affine.cpu().numpy() if isinstance(image, MetaTensor) else None
    return Volume(tensor, axes="xyz", affine_ras=affine)


def _meta(made: Any, source: Any, affine: Any) -> Any:
    tensor = made.array if isinstance(made, Volume) else made
    if not isinstance(source, MetaTensor):
        return tensor
    return MetaTensor(tensor, affine=torch.as_tensor(affine), meta=dict(source.meta), applied_operations=source.applied_operations)


__all__: Sequence[str] = ["Augmentd", "ragged_collate"]
