# SPDX-License-Identifier: Apache-2.0
"""These functions return published recipes as lists of operations: the chains of suture/recipe in C++."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .backend.plain import call_plain
from .arguments import check_calls_in
from .errors import Error
from .operations.kinds import shown, whole
from .operations.templates import cast, per_channel, sampling
from .operations.operation import Operation, per_sample
from .operations.generated import (center_crop, channel_normalize, clamp, crop_at, ct_normalize, exclude, gaussian_noise, orient,
                         patch_z_score, random_affine, random_brightness, random_brightness_factor, random_crop, random_flip,
                         random_gaussian_blur, random_hed_jitter, random_low_resolution, random_patch_contrast,
                         random_patch_gamma, random_scale, regions, resample, scale_intensity)
from .pipeline.pipeline import Pipeline
from .pipeline.roles import labels
from .arrays.volume import Volume

# The regions of brain tumors, in the order tumor core, whole tumor, enhancing tumor. Labels are numbered as in BraTS to 2022, as in
# BraTS from 2023, and as in task 1 of the Decathlon.
BRATS_REGIONS_1_2_4 = regions(sets=((1, 4), (1, 2, 4), (4,)))
BRATS_REGIONS_1_2_3 = regions(sets=((1, 3), (1, 2, 3), (3,)))
DECATHLON_BRAIN_TUMOR_REGIONS = regions(sets=((2, 3), (1, 2, 3), (2,)))


def _named(values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip("zyx", values))


def _patch(patch: Mapping[str, int]) -> list[int]:
    if not isinstance(patch, Mapping) or set(patch) != set("zyx"):
        raise Error(f"suture: nnunet: patch {patch!r} must name its axes, dict(z=..., y=..., x=...); z=1 for 2D")
    return [whole(patch[k], f"suture: nnunet: patch: {k}", 1, 1 << 21) for k in "zyx"]


def nnunet_shape(patch: Mapping[str, int], spacing_mm: Mapping[str, float]) -> dict[str, Any]:
    """Derives the parameters of nnU-Net's training that depend on the patch and its spacing.

    Parameters
    ----------
    patch : mapping
        Voxels along z, y and x; z=1 for the 2D configuration.
    spacing_mm : mapping
        Spacing of the patch along z, y and x.

    Returns
    -------
    dict
        By the name of the axis: "enlarged", voxels of the patch that is cropped before rotation and scaling, and "margin", how much
        larger it is. "rotation" is the largest angle about the axis in degrees, and "axes" whether random scaling and low resolution
        change it. "levels" are the scales of deep supervision below 1, a tuple of such dicts.

    Raises
    ------
    Error
        If an axis is not named, or a value is not positive.

    Examples
    --------
    >>> shape = st.recipes.nnunet_shape(dict(z=32, y=64, x=64), dict(z=1, y=1, x=1))
    >>> shape["axes"]
    {'z': True, 'y': True, 'x': True}
    >>> shape["levels"][0]
    {'z': 0.5, 'y': 0.5, 'x': 0.5}
    """
    size = _patch(patch)
    if not isinstance(spacing_mm, Mapping) or set(spacing_mm) != set("zyx"):
        raise Error(f"suture: nnunet: spacing_mm {spacing_mm!r} must name its axes, dict(z=..., y=..., x=...)")
    numbers = [*size, *(float(spacing_mm[k]) for k in "zyx")]
    enlarged, margin = np.zeros((1, 3), np.int64), np.zeros((1, 3), np.int64)
    rotation, axes, count = np.zeros((1, 3)), np.zeros(3, np.uint8), np.zeros(1, np.int64)
    results = [enlarged, margin, rotation, axes, count]
    call_plain("nnunet_shape", numbers=numbers, results=results)  # how many scales there are
    scales = np.zeros((count[0], 3))
    call_plain("nnunet_shape", numbers=numbers, results=[*results, scales])
    return {"enlarged": _named(enlarged[0].tolist()), "margin": _named(margin[0].tolist()), "rotation": _named(rotation[0].tolist()),
            "axes": _named([bool(v) for v in axes]), "levels": tuple(_named(scale) for scale in scales.tolist())}


def nnunet_chain(patch: Mapping[str, int], *, spacing_mm: Mapping[str, float], version: str = "2.8", starts: Any = None,
                 label_outside: int = -1) -> list[Operation]:
    """Returns the default augmentation of nnU-Net on preprocessed volumes.

    Parameters
    ----------
    patch : mapping
        Voxels along z, y and x; z=1 for the 2D configuration.
    spacing_mm : mapping
        Spacing of the patch along z, y and x.
    version : {"2.8", "2.3"}
        Version of nnU-Net.
    starts : optional
        Starts of the enlarged patches, as select_patches(oversampled_patch(...)) draws them; by default per_sample("starts"), those of
        the batch.
    label_outside : int
        Label outside the volume.

    Returns
    -------
    list of Operation
        The chain of an image.

    Raises
    ------
    Error
        If an axis is not named, a value is not positive, or the version is another.

    Examples
    --------
    >>> chain = st.recipes.nnunet_chain(dict(z=32, y=64, x=64), spacing_mm=dict(z=1, y=1, x=1))
    >>> [op.name for op in chain][:4]
    ['crop_at', 'random_affine', 'random_scale', 'center_crop']
    """
    shape = nnunet_shape(patch, spacing_mm)
    flat = _patch(patch)[0] == 1
    if version not in ("2.8", "2.3"):
        raise Error(f'suture: nnunet: version: expected the text "2.8" or "2.3", got {shown(version)}. Pass version="2.8"')
    newer = version == "2.8"
    starts = per_sample("starts") if starts is None else starts
    scale: dict[str, Any] = {} if newer else {"law": "mixture"}
    blur: dict[str, Any] = {"kernel": "nnunet"} if newer else {"each": "channel"}
    brightness: dict[str, Any] = {"law": "mixture"} if newer else {}
    mirror = dict(z=0.0 if flat else .5, y=.5, x=.5)
    return [crop_at(starts=starts, size=shape["enlarged"], may_leave=True),
            random_affine(rotate_deg=shape["rotation"], convention="nnunet", probability=.2),
            random_scale(range=(.7, 1.4), axes=shape["axes"], convention="nnunet", probability=.2, **scale),
            center_crop(size=dict(patch)), random_flip(axis_probability=mirror),
            sampling(interpolation="linear" if newer else "cubic_bspline", labels="vote", label_outside=label_outside),
            gaussian_noise(sigma=(0, .1), probability=.1),
            random_gaussian_blur(channel_probability=.5, probability=.2, **blur),
            per_channel(random_brightness_factor(probability=.15, **brightness)),
            random_patch_contrast(law="mixture", probability=.15),
            random_low_resolution(axes=shape["axes"], channel_probability=.5, probability=.25),
            random_patch_gamma(law="mixture", invert=True, probability=.1), random_patch_gamma(law="mixture", probability=.3)]


def nnunet(*, patch: Mapping[str, int], spacing_mm: Mapping[str, float], version: str = "2.8", deep_supervision: bool = True,
           label_outside: int = -1, starts: Any = None) -> Pipeline:
    """Returns a pipeline with the default augmentation of nnU-Net, of images "image" and labels "seg".

    Parameters
    ----------
    patch, spacing_mm, version, label_outside
        As in `nnunet_chain`.
    deep_supervision : bool
        Whether labels are also returned at the scales of deep supervision.
    starts : optional
        As in `nnunet_chain`.

    Returns
    -------
    Pipeline
        The pipeline.

    Raises
    ------
    Error
        As `nnunet_chain`.

    Examples
    --------
    >>> train = st.recipes.nnunet(patch=dict(z=32, y=64, x=64), spacing_mm=dict(z=1, y=1, x=1))
    >>> train.keys, train.labels["seg"].dtype
    (('image', 'seg'), 'int16')
    """
    levels = nnunet_shape(patch, spacing_mm)["levels"] if deep_supervision else ()
    chain = nnunet_chain(patch, spacing_mm=spacing_mm, version=version, label_outside=label_outside, starts=starts)
    return Pipeline(image=chain, seg=labels(dtype="int16", levels=levels))


def nnunet_cut_out(volumes: Sequence[Any], patch: Mapping[str, int], *, spacing_mm: Mapping[str, float],
                   starts: Sequence[Sequence[int]]) -> tuple[list[Volume], list[tuple[int, int, int]]]:
    """Cuts the enlarged patches out of volumes, as views, as nnU-Net does before it augments.

    A pipeline then reads nothing beyond an enlarged patch: all that is outside the volume for it.

    Parameters
    ----------
    volumes : sequence of Volume
        The preprocessed volumes.
    patch, spacing_mm
        As in `nnunet_chain`.
    starts : sequence of (int, int, int)
        First voxel of each enlarged patch along (z, y, x).

    Returns
    -------
    cut : list of Volume
        The part of each enlarged patch that lies inside its volume.
    starts : list of (int, int, int)
        The start of each enlarged patch relative to its part, 0 or below.

    Raises
    ------
    Error
        If there is not one start for each volume, or no voxel of a patch lies within its volume.

    Examples
    --------
    >>> scan = st.Volume(np.zeros((60, 120, 120), np.float32), axes="zyx", spacing=1)
    >>> cut, starts = st.nnunet_cut_out([scan], dict(z=32, y=64, x=64), spacing_mm=dict(z=1, y=1, x=1), starts=[(-4, 0, 0)])
    >>> starts
    [(-4, 0, 0)]
    """
    size = [nnunet_shape(patch, spacing_mm)["enlarged"][k] for k in "zyx"]
    if len(starts) != len(volumes):
        raise Error(f"suture: nnunet_cut_out: {len(starts)} starts for {len(volumes)} volumes")
    cut, inner = [], []
    for i, (volume, start) in enumerate(zip(volumes, starts)):
        extents = volume.grid.extents
        slices, first, within = {}, [], []
        for k, name in enumerate("zyx"):
            if not -size[k] < start[k] < extents[k]:
                raise Error(f"suture: nnunet_cut_out: sample {i}: the enlarged patch of {tuple(size)} from {tuple(start)} lies "
                            f"outside the volume of {extents}")
            begin = max(int(start[k]), 0)
            end = min(int(start[k]) + size[k], extents[k])
            slices[name] = slice(begin, end)
            first.append(begin)
            within.append(int(start[k]) - begin)
        array = volume.array[(...,) + tuple(slices[name] for name in volume.axes)]
        m = volume.grid
        direction = np.array(m.direction).reshape(3, 3) * np.array(m.spacing)
        origin = tuple(float(v) for v in np.array(m.origin) + direction @ np.array(first, np.float64))
        grid = type(m)(tuple(slices[n].stop - slices[n].start for n in "zyx"), m.spacing, origin, m.direction)
        cut.append(Volume(array, axes=volume.axes, grid=grid))
        inner.append((within[0], within[1], within[2]))
    return cut, inner


def nnunet_preprocess_ct(cohort: ct_normalize, *, spacing_mm: Mapping[str, float]) -> list[Operation]:
    """Returns the preprocessing of nnU-Net for CT: normalization by the statistics of the cohort, then resampling without overshoot.

    Parameters
    ----------
    cohort : ct_normalize
        The normalization, with the statistics of the cohort.
    spacing_mm : mapping
        Target spacing along z, y and x.

    Returns
    -------
    list of Operation
        The chain of an image.

    Examples
    --------
    >>> cohort = st.ct_normalize(lower=-958, upper=327, mean=100, standard_deviation=76)
    >>> [op.name for op in st.recipes.nnunet_preprocess_ct(cohort, spacing_mm=dict(z=2.5, y=.8, x=.8))]
    ['ct_normalize', 'resample', 'sampling', 'clamp']
    """
    divisor = np.float32(cohort.standard_deviation) if cohort.standard_deviation > 1e-8 else np.float32(1e-8)
    low, high = (float((np.float32(v) - np.float32(cohort.mean)) / divisor) for v in (cohort.lower, cohort.upper))
    return [cohort, resample(spacing_mm=dict(spacing_mm)), sampling(interpolation="cubic_bspline", border="edge", labels="vote"),
            clamp(low=low, high=high)]


def monai_brats(patch: Mapping[str, int] | None = None) -> list[Operation]:
    """Returns the chain of MONAI's tutorial brats_segmentation_3d.

    It reorients to RAS, resamples to 1 mm, crops a random patch, flips, normalizes channels over their nonzero voxels, and
    scales and shifts intensities at random.

    Parameters
    ----------
    patch : mapping, optional
        Voxels along z, y and x; 144, 224 and 224 by default.

    Returns
    -------
    list of Operation
        The chain of an image.

    Examples
    --------
    >>> [op.name for op in st.recipes.monai_brats()][:4]
    ['orient', 'resample', 'sampling', 'random_crop']
    """
    size = dict(z=144, y=224, x=224) if patch is None else dict(patch)
    return [orient(x="R", y="A", z="S"), resample(spacing_mm=1, map="origin_preserving"), sampling(border="edge"),
            random_crop(size=size), random_flip(), exclude(value=0), patch_z_score(nan=0),
            random_brightness_factor(range=(.9, 1.1)), random_brightness(range=(-.1, .1))]


def monai_spleen_preprocess(foreground: Sequence[Operation] = ()) -> list[Operation]:
    """Returns the chain of MONAI's tutorial spleen_segmentation_3d up to its cache.

    Parameters
    ----------
    foreground : sequence of Operation
        The crop to the foreground, from crop_foreground.

    Returns
    -------
    list of Operation
        The chain of an image.

    Examples
    --------
    >>> [op.name for op in st.recipes.monai_spleen_preprocess()]
    ['scale_intensity', 'orient', 'resample', 'sampling']
    """
    return [scale_intensity(a_min=-57, a_max=164, clip=True), *foreground, orient(x="R", y="A", z="S"),
            resample(spacing_mm=dict(z=2, y=1.5, x=1.5), map="origin_preserving"), sampling(border="edge")]


def monai_spleen_training(starts: Any = None) -> list[Operation]:
    """Returns the chain of MONAI's tutorial spleen_segmentation_3d after its cache: its patches.

    Parameters
    ----------
    starts : optional
        Starts from select_patches(pos_neg_patch(size=96)); by default per_sample("starts"), those of the batch.

    Returns
    -------
    list of Operation
        The chain of an image.

    Examples
    --------
    >>> [op.name for op in st.recipes.monai_spleen_training()]
    ['crop_at']
    """
    return [crop_at(starts=per_sample("starts") if starts is None else starts, size=96)]


def monai_colon_preprocess(foreground: Sequence[Operation] = ()) -> list[Operation]:
    """Returns the chain of MONAI's tutorial dynunet_pipeline for task 10 of the Decathlon, colon cancer in CT, up to its cache.

    Parameters
    ----------
    foreground : sequence of Operation
        The crop to the foreground, from crop_foreground.

    Returns
    -------
    list of Operation
        The chain of an image.

    Examples
    --------
    >>> [op.name for op in st.recipes.monai_colon_preprocess()]
    ['resample', 'sampling', 'ct_normalize']
    """
    return [*foreground, resample(spacing_mm=dict(z=3, y=.78, x=.78)), sampling(interpolation="cubic_bspline", border="edge"),
            ct_normalize(lower=-30, upper=165.82, mean=62.18, standard_deviation=32.65)]


def monai_colon_training(starts: Any = None) -> list[Operation]:
    """Returns the chain of MONAI's tutorial dynunet_pipeline for task 10 of the Decathlon after its cache: its augmentation.

    Parameters
    ----------
    starts : optional
        Starts of the patches; by default per_sample("starts"), those of the batch.

    Returns
    -------
    list of Operation
        The chain of an image.

    Examples
    --------
    >>> [op.name for op in st.recipes.monai_colon_training()][:3]
    ['crop_at', 'random_scale', 'random_flip']
    """
    return [crop_at(starts=per_sample("starts") if starts is None else starts, size=dict(z=56, y=160, x=192), may_leave=True),
            random_scale(range=(.9, 1.2), probability=.15), random_flip(), sampling(border="edge"),
            gaussian_noise(sigma=(0, .01), probability=.15),
            random_gaussian_blur(sigma=(.5, 1.15), kernel="monai", probability=.15),
            random_brightness_factor(range=(.7, 1.3), probability=.15)]


def ct_patches(patch: Mapping[str, int] | int = 96, *, spacing_mm: Any = 1) -> list[Operation]:
    """Returns the chain of the example ct_patches: augmented patches of abdominal CT.

    Parameters
    ----------
    patch : int or mapping
        Voxels along all axes, or along z, y and x.
    spacing_mm : float or mapping
        Spacing of the patches in millimeters.

    Returns
    -------
    list of Operation
        The chain of an image.

    Examples
    --------
    >>> st.Pipeline(image=st.recipes.ct_patches(64), seg=st.labels()).output_dtype("image")
    'float16'
    """
    from .operations.generated import pad_to, random_elastic, random_gamma, window

    size: Any = patch
    return [window(center=40, width=400), resample(spacing_mm=spacing_mm),
            random_affine(rotate_deg=15, scale=(.85, 1.25), probability=.5),
            random_elastic(control_spacing_mm=32, max_displacement_mm=8, probability=.3), pad_to(size=size),
            random_crop(size=size), sampling(labels="vote"), random_gamma(range=(.7, 1.5)), gaussian_noise(sigma=.02),
            cast("float16")]


def wsi_tiles() -> list[Operation]:
    """Returns a chain for tiles of H&E and a pretrained network: stains jittered, flipped, normalized by the statistics of ImageNet.

    Returns
    -------
    list of Operation
        The chain of an image.

    Examples
    --------
    >>> [op.name for op in st.recipes.wsi_tiles()]
    ['random_hed_jitter', 'random_flip', 'channel_normalize', 'cast']
    """
    return [random_hed_jitter(), random_flip(axis_probability=dict(y=.5, x=.5)), channel_normalize(), cast("float16")]


__all__ = ["BRATS_REGIONS_1_2_3", "BRATS_REGIONS_1_2_4", "DECATHLON_BRAIN_TUMOR_REGIONS", "ct_patches", "monai_brats",
           "monai_colon_preprocess", "monai_colon_training", "monai_spleen_preprocess", "monai_spleen_training", "nnunet",
           "nnunet_chain", "nnunet_cut_out", "nnunet_preprocess_ct", "nnunet_shape", "wsi_tiles"]

check_calls_in(globals())
