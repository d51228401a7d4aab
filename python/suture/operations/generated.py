# SPDX-License-Identifier: Apache-2.0
"""Every operation, as its header says it. Written by write_operations.py; do not edit."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from .operation import (IMAGENET, NAN, STAIN_REFERENCE, AxisFlags, AxisFloats, AxisIntegers, AxisOrder, AxisPair,
                        AxisRanges, ChannelStatistics, ColorMoments, Fitted, FrozenMap, Holes, IntegerRange,
                        Matrix, Operation, Range, StainReference, Starts, name_mistakes)
from ..arrays.volume import Grid, Volume

CHOICES: dict[str, tuple[str, ...]] = {
    "affine_convention": ('suture', 'itk', 'torchio', 'monai', 'nnunet', 'kornia', 'monai_xyz'),
    "bias_basis": ('legendre', 'monomial'),
    "blur_kernel": ('scipy', 'nnunet', 'monai'),
    "coarse_pick": ('nearest_exact', 'nearest_lower'),
    "color_step": ('brightness', 'contrast', 'saturation', 'hue'),
    "color_table": ('crc_lab',),
    "coordinate_map": ('half_pixel', 'align_corners', 'origin_preserving', 'center_preserving', 'physical'),
    "gray_rule": ('itu601', 'itu709', 'pillow'),
    "hed_units": ('modern', 'tellez_plus2'),
    "image_rim": ('faces', 'centers'),
    "interval_law": ('uniform', 'log_uniform', 'mixture'),
    "mesh_span": ('faces', 'centers', 'itk'),
    "reinhard_rule": ('plain', 'modified'),
    "sigma_of": ('axis', 'channel', 'sample'),
    "stain_na_law": ('normal', 'laplace', 'uniform'),
    "stain_rounding": ('unrounded', 'nearest', 'truncated'),
    "voi_function": ('linear_exact', 'linear'),
}


@dataclass(frozen=True, kw_only=True)
class coarse_shuffle(Operation):
    """Shuffles the voxels within each of some boxes.

    Permutes the voxels within each of `count` boxes at random, every channel by itself; overlapping boxes act one after
    the other. The order of box b in channel c comes from the words of block 2^32 b + c of `field`. Boxes are in voxels
    of the patch; parts outside it are cut off.

    Parameters
    ----------
    holes : sequence of boxes
        Boxes, each (start, size).

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a count outside 0 .. 32, a size
        that is negative or above 2^24, a box of more than 2^31 voxels.
    """

    holes: Holes

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/coarse_shuffle.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("holes", "holes"),
    )
    _capacities: ClassVar[Mapping[str, int]] = {'holes': 32}


@dataclass(frozen=True, kw_only=True)
class random_coarse_shuffle(Operation):
    """Shuffles the voxels within boxes that are drawn for each sample.

    coarse_shuffle with boxes drawn for each sample, the same for all channels, as random_coarse_dropout draws them:
    their number from `holes`, the size of each along each axis uniform between `size` and `max_size` (0: the whole axis,
    and as `size`), the place uniform among those inside the patch.
    Source: MONAI RandCoarseShuffle; Kang et al. 2017, PatchShuffle regularization.

    Parameters
    ----------
    holes : int or (low, high)
        Number of boxes, or its range.
    size : int or one for each axis
        Least size of a box in voxels; 0 is the whole axis.
    max_size : int or one for each axis, default 0
        Largest size of a box in voxels; 0 is `size`.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: holes outside 0 .. 32, a
        negative size, size above max_size, a max_size where size is 0 or above 2^31 - 1, boxes that may have more than
        2^31 voxels.
    """

    holes: IntegerRange
    size: AxisIntegers
    max_size: AxisIntegers = 0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/filter/coarse_shuffle.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("holes", "integer_interval"),
        ("size", "extent3"),
        ("max_size", "extent3"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class gaussian_blur(Operation):
    """Blurs with a Gaussian kernel.

    y = G(sigma) x along each axis, sigma in voxels of the patch (z, y, x). An axis with sigma 0 is not filtered, nor, by
    the kernel monai, an axis of one voxel. `truncate`, where given, takes the place of the kernel's radius: int(truncate
    sigma + 1/2) voxels.
    Source: scipy.ndimage.gaussian_filter.

    Parameters
    ----------
    sigma : float or one for each axis, default 1
        Width of the kernel in voxels; 0 leaves an axis alone.
    kernel : {"scipy", "nnunet", "monai"}, default "scipy"
        Library whose kernel is used.
    truncate : float, default 0.0
        Radius of the kernel in widths; 0 takes the radius of its library.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a sigma that is negative, not
        finite, or reaches more than 15 voxels far, a truncate that is negative.
    """

    sigma: AxisFloats = 1
    kernel: Literal["scipy", "nnunet", "monai"] = 'scipy'
    truncate: float = 0.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/gaussian_blur.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sigma", "axis_values"),
        ("kernel", "choice:blur_kernel"),
        ("truncate", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_gaussian_blur(Operation):
    """Blurs some channels with a Gaussian kernel of random width.

    gaussian_blur of some channels, each with probability channel_probability, by a sigma drawn uniformly from `sigma`
    for each axis, channel or sample.
    nnU-Net v2: (sigma=(.5, 1), kernel="nnunet", channel_probability=.5, probability=.2).

    Parameters
    ----------
    sigma : float or (low, high), default (0.5, 1)
        Range of the width of the kernel in voxels.
    kernel : {"scipy", "nnunet", "monai"}, default "scipy"
        Library whose kernel is used.
    each : {"axis", "channel", "sample"}, default "axis"
        Unit that has a width of its own: axis, channel or sample.
    channel_probability : float, default 1.0
        Chance of each channel, in samples where the operation is applied.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: sigma not from low to high,
        channel_probability not in [0, 1]; those of gaussian_blur.
    """

    sigma: Range = (0.5, 1)
    kernel: Literal["scipy", "nnunet", "monai"] = 'scipy'
    each: Literal["axis", "channel", "sample"] = 'axis'
    channel_probability: float = 1.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/filter/gaussian_blur.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sigma", "interval"),
        ("kernel", "choice:blur_kernel"),
        ("each", "choice:sigma_of"),
        ("channel_probability", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class gibbs_ringing(Operation):
    """Adds Gibbs ringing, by removing the high frequencies of the patch.

    y = the real part of the inverse transform of M F x, F x the discrete Fourier transform of the patch with frequency 0
    at index N / 2 of each axis, M 1 where the index is at most (1 - alpha) max(N) sqrt(2) / 2 away from the middle
    (N - 1) / 2 of the array and 0 elsewhere; N the extents, a patch of one slice is transformed in its plane. alpha = 0
    keeps all of a plane but not the corners of a volume. With alpha = 1 only the middle itself is kept: the mean where
    all extents are odd, and nothing, y = 0, otherwise. A voxel that is not finite makes the whole channel so.
    Source: MONAI GibbsNoise.

    Parameters
    ----------
    alpha : float, default 0.5
        Strength, 0 to 1: 1 keeps the middle of the frequencies alone.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: alpha not in [0, 1], a patch of
        more than 2048 voxels along an axis.
    """

    alpha: float = 0.5

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/gibbs_ringing.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("alpha", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_gibbs_ringing(Operation):
    """Adds Gibbs ringing of random strength.

    gibbs_ringing with alpha uniform in `alpha`, the same for all channels with `one_alpha`, for some channels, each with
    probability channel_probability.
    Source: MONAI RandGibbsNoise.

    Parameters
    ----------
    alpha : float or (low, high), default (0, 1)
        Range of the strength, within 0 to 1.
    one_alpha : bool, default True
        Whether all channels have the same strength.
    channel_probability : float, default 1.0
        Chance of each channel, in samples where the operation is applied.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: those of gibbs_ringing, alpha
        not from low to high, channel_probability not in [0, 1].
    """

    alpha: Range = (0, 1)
    one_alpha: bool = True
    channel_probability: float = 1.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/filter/gibbs_ringing.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("alpha", "interval"),
        ("one_alpha", "flag"),
        ("channel_probability", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class kspace_spike(Operation):
    """Adds a spike to one frequency of the patch, as in a disturbed acquisition of MR.

    y = x + Re(D exp(2 pi i sum of k j / N)) / V: one frequency of the discrete Fourier transform X of the patch gets a
    new magnitude in its own phase (phase 0 where it is 0) and the real part is taken back, D the difference. `location`
    is its array index (z, y, x) with frequency 0 at N / 2, so k = location - N / 2; N are the extents, V the voxels, j
    the index of a voxel. The new magnitude is exp(intensity), or, where `relative`, exp(intensity m), m the mean over
    all frequencies of ln(|X| + 1e-10); log-magnitudes above 80 count as 80. A voxel that is not finite makes the whole
    channel so.
    Source: MONAI KSpaceSpikeNoise, whose rounding of every other magnitude is left out.

    Parameters
    ----------
    location : int or one for each axis
        Index of the frequency, with frequency 0 in the middle.
    intensity : float, default 2.5
        Logarithm of the magnitude of the spike.
    relative : bool, default True
        Whether the magnitude is relative to the mean over all frequencies.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a location outside the patch,
        an intensity that is not finite, a patch of more than 2048 voxels along an axis.
    """

    location: AxisIntegers
    intensity: float = 2.5
    relative: bool = True

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/kspace_spike.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("location", "extent3"),
        ("intensity", "float32"),
        ("relative", "flag"),
    )


@dataclass(frozen=True, kw_only=True)
class random_kspace_spike(Operation):
    """Adds a spike of random place and strength to the frequencies of the patch.

    kspace_spike at a frequency drawn uniformly, of an intensity uniform in `intensity`, for every channel its own or,
    with `one_spike`, the same; for some channels, each with probability channel_probability.
    Source: MONAI RandKSpaceSpikeNoise: 2.5 times .95 to 1.1 times the mean of the log-magnitudes.

    Parameters
    ----------
    intensity : float or (low, high), default (2.375, 2.75)
        Range of the logarithm of the magnitude of the spike.
    relative : bool, default True
        Whether the magnitude is relative to the mean over all frequencies.
    one_spike : bool, default False
        Whether all channels have the same spike.
    channel_probability : float, default 1.0
        Chance of each channel, in samples where the operation is applied.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: those of kspace_spike,
        intensity not from low to high, channel_probability not in [0, 1].
    """

    intensity: Range = (2.375, 2.75)
    relative: bool = True
    one_spike: bool = False
    channel_probability: float = 1.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/filter/kspace_spike.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("intensity", "interval"),
        ("relative", "flag"),
        ("one_spike", "flag"),
        ("channel_probability", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_low_resolution(Operation):
    """Simulates an acquisition of lower resolution.

    Some channels, each with probability channel_probability, as if acquired with fewer voxels: reduced to round(n zoom)
    voxels along each axis (ties to even) by `pick`, then enlarged linearly (torch interpolate, align_corners = False).
    The zoom is drawn uniformly from `zoom` for every channel, the same along the axes in `axes`; other axes keep their
    resolution. nnU-Net v2: (zoom=(.5, 1), channel_probability=.5, probability=.25); dummy 2D: axes =
    (False, True, True).
    Source: batchgeneratorsv2 SimulateLowResolutionTransform.

    Parameters
    ----------
    zoom : float or (low, high), default (0.5, 1)
        Range of the lower resolution as a share of the present one.
    pick : {"nearest_exact", "nearest_lower"}, default "nearest_exact"
        Rule that takes voxels to the lower resolution.
    axes : bool or one for each axis, default True
        Axes that the operation changes.
    channel_probability : float, default 1.0
        Chance of each channel, in samples where the operation is applied.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: zoom not from low to high or
        not in (0, 1], channel_probability not in [0, 1], a patch of more than 16384 voxels along an axis.
    """

    zoom: Range = (0.5, 1)
    pick: Literal["nearest_exact", "nearest_lower"] = 'nearest_exact'
    axes: AxisFlags = True
    channel_probability: float = 1.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/filter/low_resolution.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("zoom", "interval"),
        ("pick", "choice:coarse_pick"),
        ("axes", "flags3"),
        ("channel_probability", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class median_filter(Operation):
    """Replaces each voxel by the median of its 3 x 3 x 3 neighborhood.

    y = the median of the 3 x 3 x 3 voxels about x. On a patch of one slice that is the median of 3 x 3.
    Source: scipy.ndimage.median_filter (size 3, mode reflect).
    """

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/median.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
    )


@dataclass(frozen=True, kw_only=True)
class random_median_filter(Operation):
    """Applies the median filter to some channels.

    median_filter of some channels, each with probability channel_probability.

    Parameters
    ----------
    channel_probability : float, default 1.0
        Chance of each channel, in samples where the operation is applied.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: channel_probability not in [0,
        1].
    """

    channel_probability: float = 1.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/filter/median.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("channel_probability", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class sharpen(Operation):
    """Sharpens by unsharp masking.

    y = x + amount (x - G(sigma) x), G the blur of gaussian_blur; sigma in voxels of the patch (z, y, x).
    MONAI GaussianSharpen(sigma1, sigma2, alpha) is gaussian_blur(sigma=sigma1, kernel="monai") |
    sharpen(sigma=sigma2, amount=alpha, kernel="monai").
    Source: skimage.filters.unsharp_mask.

    Parameters
    ----------
    sigma : float or one for each axis, default 1
        Width of the blur in voxels.
    amount : float, default 1.0
        Strength of the sharpening.
    kernel : {"scipy", "nnunet", "monai"}, default "scipy"
        Library whose kernel is used.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: an amount that is not finite;
        those of gaussian_blur.
    """

    sigma: AxisFloats = 1
    amount: float = 1.0
    kernel: Literal["scipy", "nnunet", "monai"] = 'scipy'

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/sharpen.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sigma", "axis_values"),
        ("amount", "float32"),
        ("kernel", "choice:blur_kernel"),
    )


@dataclass(frozen=True, kw_only=True)
class random_sharpen(Operation):
    """Sharpens some channels by a random amount.

    sharpen of some channels, each with probability channel_probability, by a sigma and an amount drawn uniformly for
    every channel.

    Parameters
    ----------
    sigma : float or (low, high), default (0.5, 1)
        Range of the width of the blur in voxels.
    amount : float or (low, high), default (0.5, 1.5)
        Range of the strength.
    kernel : {"scipy", "nnunet", "monai"}, default "scipy"
        Library whose kernel is used.
    channel_probability : float, default 1.0
        Chance of each channel, in samples where the operation is applied.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: sigma or amount not from low to
        high, channel_probability not in [0, 1]; those of gaussian_blur.
    """

    sigma: Range = (0.5, 1)
    amount: Range = (0.5, 1.5)
    kernel: Literal["scipy", "nnunet", "monai"] = 'scipy'
    channel_probability: float = 1.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/filter/sharpen.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sigma", "interval"),
        ("amount", "interval"),
        ("kernel", "choice:blur_kernel"),
        ("channel_probability", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class affine_matrix(Operation):
    """Applies an affine map that is given by its matrix.

    The primitive under all conventions. x_in = c + linear (x_out - c) + translation in voxels, with
      c = (N - 1) / 2, or 0 where about_center is false (then it is matrix and offset of scipy.ndimage.affine_transform).
    The content moves, the grid stays.

    Parameters
    ----------
    linear : 3 x 3 floats
        Matrix of 3 x 3 from output to input.
    translation : float or one for each axis, default 0
        Translation in voxels.
    about_center : bool, default True
        Whether the map turns about the image center instead of the first voxel.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a matrix that is singular or
        not finite.
    """

    linear: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    translation: AxisFloats = 0
    about_center: bool = True

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/affine.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("linear", "matrix3"),
        ("translation", "point3"),
        ("about_center", "flag"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class affine(Operation):
    """Rotates, scales, shears and translates about the image center.

    Rotation, scale, shear and translation about the image center; see affine_convention for what they mean.
      The content moves, the grid stays. Angles in degrees; multiples of 90 are exact.

    Parameters
    ----------
    rotate_deg : float or one for each axis, default 0
        Angles about the axes, in degrees.
    scale : float or one for each axis, default 1
        Scales along the axes.
    shear : six floats, default (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        Six shears.
    translate : float or one for each axis, default 0
        Translations along the axes.
    convention : {"suture", "itk", "torchio", "monai", "nnunet", "kornia", "monai_xyz"}, default "suture"
        Library whose meaning the parameters have.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a scale that is not positive, a
        shear that makes the map singular, a parameter the convention does not have.
    """

    rotate_deg: AxisFloats = 0
    scale: AxisFloats = 1
    shear: Sequence[float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    translate: AxisFloats = 0
    convention: Literal["suture", "itk", "torchio", "monai", "nnunet", "kornia", "monai_xyz"] = 'suture'

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/affine.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("rotate_deg", "point3"),
        ("scale", "point3"),
        ("shear", "shears"),
        ("translate", "point3"),
        ("convention", "choice:affine_convention"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class random_affine(Operation):
    """Rotates, scales, shears and translates by random amounts.

    An affine whose parameters are uniform in the ranges given (fifteen slots: three angles, three scales,
      six shears, three translations; drawn whatever the ranges are). isotropic_scale takes one scale for all axes.
      Ranges read as `axis_ranges` says: `rotate_deg=15`, `scale=(.85, 1.25)`, `translate=(0, 10, 10)`.
      A 2D image (an axis of a single voxel) stays in its plane: angles, shears and translations that would take it out
      are 0. The itk and torchio conventions turn about axes of the patient and are not held back.

    Parameters
    ----------
    rotate_deg : range or one for each axis, default 0
        Ranges of the angles about the axes, in degrees.
    scale : range or one for each axis, default (1, 1)
        Ranges of the scales along the axes.
    shear : float or (low, high), default 0
        Range of the six shears.
    translate : range or one for each axis, default 0
        Ranges of the translations along the axes.
    isotropic_scale : bool, default True
        Whether one scale is drawn for all axes.
    convention : {"suture", "itk", "torchio", "monai", "nnunet", "kornia", "monai_xyz"}, default "suture"
        Library whose meaning the parameters have.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: an empty or infinite range, a
        scale range that reaches 0, different scale ranges where isotropic; as affine.
    """

    rotate_deg: AxisRanges = 0
    scale: AxisRanges = (1, 1)
    shear: Range = 0
    translate: AxisRanges = 0
    isotropic_scale: bool = True
    convention: Literal["suture", "itk", "torchio", "monai", "nnunet", "kornia", "monai_xyz"] = 'suture'
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/geometry/affine.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("rotate_deg", "axis_ranges"),
        ("scale", "axis_ranges"),
        ("shear", "value_range"),
        ("translate", "axis_ranges"),
        ("isotropic_scale", "flag"),
        ("convention", "choice:affine_convention"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('scale',)
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class crop(Operation):
    """Crops a box that begins at a given voxel.

    The box of `size` voxels that begins at input index `start`.
      out(i) = in(start + i); voxels along (z, y, x); physical positions are kept (the origin moves).

    Parameters
    ----------
    start : int or one for each axis, default 0
        First voxel of the box.
    size : int or one for each axis, default 0
        Voxels of the output.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a size that is not positive, a
        box that leaves the volume.
    """

    start: AxisIntegers = 0
    size: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/crop.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("start", "extent3"),
        ("size", "extent3"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class center_crop(Operation):
    """Crops a box in the middle.

    The box of `size` voxels in the middle, start = floor(N / 2) - floor(size / 2).
    Source: MONAI CenterSpatialCrop, nnU-Net v2 (the same start).

    Parameters
    ----------
    size : int or one for each axis, default 0
        Voxels of the output.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned, as crop.
    """

    size: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/crop.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("size", "extent3"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class random_crop(Operation):
    """Crops a box at a random place.

    A box of `size` voxels, its start uniform over the integers 0 .. N - size along each axis
    (three slots, z first). Evaluation takes the center crop.

    Parameters
    ----------
    size : int or one for each axis, default 0
        Voxels of the output.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned, as crop.
    """

    size: AxisIntegers = 0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/geometry/crop.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("size", "extent3"),
        ("probability", "float32"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class crop_at(Operation):
    """Crops a box that begins at a given voxel of each sample.

    Sample i of the batch keeps the box of `size` voxels that begins at input index starts[i].
      out(p) = in(starts[i] + p); voxels along (z, y, x); physical positions are kept (the origin moves).
      The starts are read while the pipeline is planned and never again: the plan keeps those of its samples, and so does
      its record (replay/json.hpp). Where `may_leave` is set a box may leave the volume, wholly even, and the border rule
      of the pipeline's sampling fills what lies outside (nnU-Net's loader, see oversampled_patch).

    Parameters
    ----------
    starts : sequence of (int, int, int) or per_sample(...), default ()
        First voxel of the box of each sample, or per_sample(key) where they come with the batch.
    size : int or one for each axis, default 0
        Voxels of the output.
    may_leave : bool, default False
        Whether a box may leave the volume.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a size that is not positive,
        not one start for each sample, a box that leaves the volume without `may_leave`.
    """

    starts: Starts = ()
    size: AxisIntegers = 0
    may_leave: bool = False

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/crop_at.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("starts", "starts"),
        ("size", "extent3"),
        ("may_leave", "flag"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class elastic(Operation):
    """Deforms by one free-form deformation of B-splines.

    One free-form deformation, x_in = x_out + u(x_out); the content moves, the grid stays.
      Control points stand control_spacing_mm apart (rounded so that a whole number of cells, at least one, fills the
      volume: floor(extent / spacing + 1/2) of them), or are control_points (>= 4) in number along each axis; their
      displacements are uniform in +-max_displacement_mm along each array axis and act as B-spline coefficients
      (approximating, no prefilter).
      The outer locked_borders layers do not move; an axis of too few control points to leave one free is not locked.
      An axis of a single voxel (a 2D image) is neither bent nor bent along: it has one cell, whatever its spacing. The
      image lies in the middle of the cell and averages its four layers of control points by 1/48, 23/48, 23/48 and 1/48,
      so that displacements have .68 of the deviation that one layer would give them.
      control_values are displacements that are given instead of drawn: millimeters along the array axes, (component, z,
      y, x) with x fastest, components in the order z, y, x, three for each of control_points, which then have to be
      stated. They lie in the memory of the executor that runs, which reads them when it runs (and on the host where
      points are moved there). They are held to +-max_displacement_mm, by which folding is judged and room is kept: state
      their largest magnitude. NaN is 0. The locked_borders layers are not moved by them either: 0 uses all.
    Right of what turns or shears its columns share their sums over control points, which is several times as fast.
    Folding: with cells of d mm along an axis, displacements up to 0.40 d (2D: 0.48 d) can never fold space (Choi and Lee
      2000: 0.4033 and 0.4887); beyond that the operation is refused, unless allow_folding is set, or limit_to_safe,
      which takes that much and no more along each axis: for batches of volumes of which some are thin.
    Source: ITK BSplineTransform; TorchIO v1 RandomElasticDeformation (which locks only two of the axes).

    Parameters
    ----------
    control_spacing_mm : float or one for each axis, default 32
        Distance of control points in millimeters.
    max_displacement_mm : float or one for each axis, default 8
        Largest displacement of a control point in millimeters.
    locked_borders : int, default 2
        Outer layers of control points that do not move.
    allow_folding : bool, default False
        Whether displacements that may fold space are allowed.
    control_points : int or one for each axis, default 0
        Number of control points along each axis; 0 takes `control_spacing_mm`.
    mesh : {"faces", "centers", "itk"}, default "faces"
        Span of the mesh of control points.
    limit_to_safe : bool, default False
        Whether displacements are limited to those that cannot fold space.
    control_values : sequence of float, default ()
        Displacements of the control points in millimeters, instead of drawn ones.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a spacing that is not positive,
        a negative displacement, control points fewer than 4 or more than 2^20 along an axis, a displacement that may
        fold, control_values of another number than three for each control point or beside limit_to_safe; by `plan`,
        more than 2^24 control points in all, and an output that reaches more than 4194304 control cells away.
    """

    control_spacing_mm: AxisFloats = 32
    max_displacement_mm: AxisFloats = 8
    locked_borders: int = 2
    allow_folding: bool = False
    control_points: AxisIntegers = 0
    mesh: Literal["faces", "centers", "itk"] = 'faces'
    limit_to_safe: bool = False
    control_values: Sequence[float] = ()

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/elastic.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("control_spacing_mm", "axis_values"),
        ("max_displacement_mm", "axis_values"),
        ("locked_borders", "int32"),
        ("allow_folding", "flag"),
        ("control_points", "int3"),
        ("mesh", "choice:mesh_span"),
        ("limit_to_safe", "flag"),
        ("control_values", "given_floats"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class random_elastic(Operation):
    """Deforms by a random free-form deformation of B-splines.

    An elastic whose control displacements are drawn anew (no slot: they come from the field of purpose
    3, element ((k n_z + z) n_y + y) n_x + x for component k at control point (z, y, x)). Fields and errors as elastic.

    Parameters
    ----------
    control_spacing_mm : float or one for each axis, default 32
        Distance of control points in millimeters.
    max_displacement_mm : float or one for each axis, default 8
        Largest displacement of a control point in millimeters.
    locked_borders : int, default 2
        Outer layers of control points that do not move.
    allow_folding : bool, default False
        Whether displacements that may fold space are allowed.
    control_points : int or one for each axis, default 0
        Number of control points along each axis; 0 takes `control_spacing_mm`.
    mesh : {"faces", "centers", "itk"}, default "faces"
        Span of the mesh of control points.
    limit_to_safe : bool, default False
        Whether displacements are limited to those that cannot fold space.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.
    """

    control_spacing_mm: AxisFloats = 32
    max_displacement_mm: AxisFloats = 8
    locked_borders: int = 2
    allow_folding: bool = False
    control_points: AxisIntegers = 0
    mesh: Literal["faces", "centers", "itk"] = 'faces'
    limit_to_safe: bool = False
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/geometry/elastic.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("control_spacing_mm", "axis_values"),
        ("max_displacement_mm", "axis_values"),
        ("locked_borders", "int32"),
        ("allow_folding", "flag"),
        ("control_points", "int3"),
        ("mesh", "choice:mesh_span"),
        ("limit_to_safe", "flag"),
        ("probability", "float32"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class flip(Operation):
    """Reverses array axes.

    Reverses the array axes set in `axes`, (z, y, x): out(i) = in(N - 1 - i).
    The array is mirrored, the physical place of every voxel is kept: origin and direction follow (as MONAI Flip and
    nibabel do).

    Parameters
    ----------
    axes : bool or one for each axis, default False
        Axes that the operation changes.
    """

    axes: AxisFlags = False

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/flip.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("axes", "flags3"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class random_flip(Operation):
    """Reverses each array axis with a probability of its own.

    Reverses each array axis with its own probability, (z, y, x), independently (three slots).
    Source: nnU-Net v2 MirrorTransform (0.5 each).

    Parameters
    ----------
    axis_probability : float or one for each axis, default 0.5
        Probability of each axis.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: an axis probability outside [0,
        1].
    """

    axis_probability: AxisFloats = 0.5
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/geometry/flip.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("axis_probability", "floats3"),
        ("probability", "float32"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class identity(Operation):
    """Leaves the geometry as it is.

    Out(i) = in(i). For a place in a pipeline that must hold some geometry operation.
    """

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/identity.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class orient(Operation):
    """Flips and reorders the array axes so that they run in anatomical directions.

    Flips and reorders the array axes so that they run as closely as possible in the anatomical directions of
    `to`. Its three letters name where the x, y and z index (fastest first, as NIfTI, ITK and 3D Slicer list them)
    increases towards: R or L, A or P, S or I, one of each pair. Each array axis is matched to the nearest patient
    axis, the best match first; nothing is interpolated, so an oblique image stays oblique. The physical place of every
    voxel is kept. Physical positions are LPS millimeters, as in DICOM and ITK (see grid_from_itk). Source: nibabel
    io_orientation, MONAI Orientation.

    Parameters
    ----------
    x : str, default "L"
        Direction in which the x index increases: R or L, A or P, S or I.
    y : str, default "P"
        Direction in which the y index increases: R or L, A or P, S or I.
    z : str, default "S"
        Direction in which the z index increases: R or L, A or P, S or I.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: other letters, a direction
        named twice.
    """

    x: str = "L"
    y: str = "P"
    z: str = "S"

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/orient.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("x", "anatomical"),
        ("y", "anatomical"),
        ("z", "anatomical"),
    )
    _gives_size: ClassVar[str] = "varying"


@dataclass(frozen=True, kw_only=True)
class pad(Operation):
    """Adds voxels in front of and behind the input.

    `before` voxels in front of and `after` voxels behind the input along each axis, (z, y, x).
      out(i) = in(i - before); physical positions are kept (the origin moves).

    Parameters
    ----------
    before : int or one for each axis, default 0
        Voxels in front of the input.
    after : int or one for each axis, default 0
        Voxels behind the input.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: negative widths, an output too
        large for a grid.
    """

    before: AxisIntegers = 0
    after: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/pad.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("before", "extent3"),
        ("after", "extent3"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class pad_to(Operation):
    """Pads to at least a size.

    To at least `size` voxels, (z, y, x); axes already as large stay. Of the d missing voxels floor(d / 2) go in
      front and the rest behind. Source: MONAI SpatialPad(method="symmetric"), nnU-Net pad_nd_image.

    Parameters
    ----------
    size : int or one for each axis, default 0
        Voxels of the output.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: negative sizes, an output too
        large for a grid.
    """

    size: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/pad.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("size", "extent3"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class crop_or_pad(Operation):
    """Crops or pads to exactly a size.

    To exactly `size` voxels, (z, y, x), along each axis as center_crop or as pad_to does.
    Source: MONAI ResizeWithPadOrCrop.

    Parameters
    ----------
    size : int or one for each axis, default 0
        Voxels of the output.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: sizes that are not positive, an
        output too large for a grid.
    """

    size: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/pad.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("size", "extent3"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class permute(Operation):
    """Reorders the array axes, as numpy.transpose does.

    Output axis k is input axis order[k], as numpy.transpose; 0, 1, 2 are z, y, x.
    The physical place of every voxel is kept: spacing and direction follow.

    Parameters
    ----------
    order : three axes, default ("z", "y", "x")
        Order of the output axes.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: an order that is no
        permutation.
    """

    order: AxisOrder = ("z", "y", "x")

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/permute.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("order", "axis_order"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class random_scale(Operation):
    """Scales by one random factor.

    The scale of `affine` alone, one factor for all axes in `axes`, drawn from `range` by `law` (two
      slots). Whether a factor above 1 enlarges or shrinks the content is the convention's: suture enlarges, nnunet and
      monai shrink.

    Parameters
    ----------
    range : float or (low, high), default (0.9, 1.1)
        Range of the draw.
    law : {"uniform", "log_uniform", "mixture"}, default "uniform"
        Distribution of the draw.
    axes : bool or one for each axis, default True
        Axes that the operation changes.
    convention : {"suture", "itk", "torchio", "monai", "nnunet", "kornia", "monai_xyz"}, default "suture"
        Library whose meaning the parameters have.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: range not positive, not from
        low to high, or unfit for its law; as affine.
    """

    range: Range = (0.9, 1.1)
    law: Literal["uniform", "log_uniform", "mixture"] = 'uniform'
    axes: AxisFlags = True
    convention: Literal["suture", "itk", "torchio", "monai", "nnunet", "kornia", "monai_xyz"] = 'suture'
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/geometry/random_scale.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("range", "interval"),
        ("law", "choice:interval_law"),
        ("axes", "flags3"),
        ("convention", "choice:affine_convention"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('range',)
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class resample(Operation):
    """Resamples to a voxel spacing in millimeters.

    To a voxel spacing in millimeters, (z, y, x); 0 keeps the spacing of that axis.
      The map decides size, spacing and place of the output (see coordinate_map). `extents`, where not 0, replaces the
      size the map would choose.

    Parameters
    ----------
    spacing_mm : float or one for each axis, default 1
        Distance of voxels in millimeters; 0 keeps an axis.
    map : {"half_pixel", "align_corners", "origin_preserving", "center_preserving", "physical"}, default "half_pixel"
        Rule for the place of the output voxels.
    extents : int or one for each axis, default 0
        Number of voxels; 0 leaves an axis to the map.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a negative spacing, an output
        of no voxels, an output too large for a grid.
    """

    spacing_mm: AxisFloats = 1
    map: Literal["half_pixel", "align_corners", "origin_preserving", "center_preserving", "physical"] = 'half_pixel'
    extents: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/resample.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("spacing_mm", "point3"),
        ("map", "choice:coordinate_map"),
        ("extents", "extent3"),
    )
    _gives_size: ClassVar[str] = "varying"


@dataclass(frozen=True, kw_only=True)
class resize(Operation):
    """Resizes to a number of voxels.

    To a number of voxels, (z, y, x); 0 keeps an axis. The map is half_pixel or align_corners.

    Parameters
    ----------
    extents : int or one for each axis, default 0
        Number of voxels; 0 keeps an axis.
    map : {"half_pixel", "align_corners", "origin_preserving", "center_preserving", "physical"}, default "half_pixel"
        Rule for the place of the output voxels.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: negative extents, another map,
        an output too large for a grid.
    """

    extents: AxisIntegers = 0
    map: Literal["half_pixel", "align_corners", "origin_preserving", "center_preserving", "physical"] = 'half_pixel'

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/resample.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("extents", "extent3"),
        ("map", "choice:coordinate_map"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class resample_to(Operation):
    """Resamples onto the grid of another image, through physical space.

    Onto another image's grid, through physical space: x_in = A_in^-1 (A_target x_out), oblique included.
    Source: ITK ResampleImageFilter with the identity transform.

    Parameters
    ----------
    target : Grid or Volume
        Grid of the output, or a Volume that has it.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a target that is no valid grid.
    """

    target: Grid | Volume

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/resample.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("target", "grid"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class rot90(Operation):
    """Turns by multiples of 90 degrees in the plane of two axes.

    Quarter_turns turns by 90 degrees from the first of `axes` towards the second, as numpy.rot90; any integer.
    One turn: out(i, j) = in(j, N_second - 1 - i). The physical place of every voxel is kept: origin, spacing and
    direction follow (as MONAI Rotate90 does).

    Parameters
    ----------
    axes : two axes, default ("y", "x")
        The two axes: turns go from the first towards the second.
    quarter_turns : int, default 1
        Number of turns by 90 degrees.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: axes that are not two different
        ones of 0, 1, 2.
    """

    axes: AxisPair = ('y', 'x')
    quarter_turns: int = 1

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/rot90.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("axes", "axis_pair"),
        ("quarter_turns", "int32"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class random_rot90(Operation):
    """Turns by a random multiple of 90 degrees in the plane of two axes.

    1 to max_quarter_turns turns, each as likely (one slot). Where the two extents differ an odd number of
    turns changes the shape of the output; crop to a cube-shaped patch first for outputs of one shape.
    Source: MONAI RandRotate90 (max_k = 3).

    Parameters
    ----------
    axes : two axes, default ("y", "x")
        The two axes: turns go from the first towards the second.
    max_quarter_turns : int, default 3
        Largest number of turns, 1 to 3.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: max_quarter_turns outside 1 ..
        3; as rot90.
    """

    axes: AxisPair = ('y', 'x')
    max_quarter_turns: int = 3
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/geometry/rot90.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("axes", "axis_pair"),
        ("max_quarter_turns", "int32"),
        ("probability", "float32"),
    )
    _gives_size: ClassVar[str] = "varying"


@dataclass(frozen=True, kw_only=True)
class one_hot(Operation):
    """Converts a label map to one channel for each class.

    For labels(convert=one_hot(classes=n)): channel k of the output is 1 where the label is k and 0
      elsewhere, k = 0 .. n - 1; without `background` the channels are the labels 1 .. n - 1. One channel in, any element
      type out (targets of a loss). A label outside 0 .. n - 1, an ignore label too, is 0 in every channel; such voxels
      are not counted here (label_classes and count_classes do).
      ignore: where set, one channel more, the last, 1 where the label is `ignore`.

    Parameters
    ----------
    classes : int, default 0
        Number of classes, labels 0 .. classes - 1.
    background : bool, default True
        Whether label 0 has a channel.
    ignore : int or None, default None
        Label that gets a channel of its own, the last one.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: classes outside 1 .. 65534, no
        channel left, `ignore` within 0 .. n - 1 or not of the input's type.
    """

    classes: int = 0
    background: bool = True
    ignore: int | None = None

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/label/one_hot.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("classes", "int64"),
        ("background", "flag"),
        ("ignore", "optional_int"),
    )


@dataclass(frozen=True, kw_only=True)
class regions(Operation):
    """Converts a label map to one channel for each set of labels.

    For labels(convert=regions(...)): channel k of the output is 1 where the label is in sets[k] and 0
      elsewhere. One channel in, as many out as there are sets; any element type (targets of a loss).
      ignore: where set, one channel more, the last, 1 where the label is `ignore` (nnU-Net); the regions are 0 there.
        Where not set, an ignore label is in no region, so 0 in all.

    Parameters
    ----------
    sets : sequence of sequences of int, default ()
        Labels of each channel.
    ignore : int or None, default None
        Label that gets a channel of its own, the last one.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: no set, more than 32 channels,
        more than 64 different labels, an empty set, `ignore` in a set, a label not of the input's type.
    """

    sets: Sequence[Sequence[int]] = ()
    ignore: int | None = None

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/label/regions.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sets", "regions"),
        ("ignore", "optional_int"),
    )
    _capacities: ClassVar[Mapping[str, int]] = {'sets': 32}


@dataclass(frozen=True, kw_only=True)
class remap(Operation):
    """Replaces labels of a label map by others.

    For labels(convert=remap(...)): a label named in the table is stored as its `to`, any other as `others`, or
      as itself where `others` is not set.  remap(table={-1: 0}) stores -1 as 0 (nnU-Net RemoveLabel).
      The output may have another element type. An ignore label is a label like any other: kept unless the table or
      `others` says otherwise.

    Parameters
    ----------
    table : mapping, default {}
        The new label of each label that changes, as {old: new}.
    others : int or None, default None
        Label of all labels that the table does not have; None keeps them.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: more than 64 changes, a label
        twice in the table or not of the input's type, a `to` or `others` that the output does not hold, labels kept in
        an output that does not hold every label of the input's type.
    """

    table: Mapping[int, int] = FrozenMap()
    others: int | None = None

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/label/remap.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("table", "label_changes"),
        ("others", "optional_int"),
    )
    _capacities: ClassVar[Mapping[str, int]] = {'table': 64}


@dataclass(frozen=True, kw_only=True)
class channel_normalize(Operation):
    """Normalizes each channel by given statistics, those of ImageNet by default.

    y = (x / white - mean) / standard_deviation, channel by channel. Linear: no value is limited; NaN stays NaN.
    Source: torchvision Normalize.

    Parameters
    ----------
    of : ChannelStatistics, default IMAGENET
        Statistics of the channels.
    white : float, default 255.0
        Value of white, 255 for uint8.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a mean that is not finite, a
        deviation or white that is not positive.
    """

    of: ChannelStatistics = IMAGENET
    white: float = 255.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/channel_normalize.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("of", "channel_statistics"),
        ("white", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class color_jitter(Operation):
    """Changes brightness, contrast, saturation and hue, as torchvision's ColorJitter does.

    The four steps of torchvision's ColorJitter, in `order`, each limited to [0, white]:
      brightness   x brightness
      contrast     x contrast + (1 - contrast) g, with one gray g for all pixels
      saturation   x saturation + (1 - saturation) gray(x)
      hue          turned by `hue` of a full turn; grays stay
    gray is .299 R + .587 G + .114 B. Torchvision's g is the mean gray of the image as the step finds it. Here it is
    `pivot` or, where `fitted` holds any, the mean gray by what fit_moments left for the three channels of each sample
    (results as for z_score with 3 channels; an empty fit counts as `pivot`); times `brightness` if that step came first.
    That is torchvision's g unless a step before contrast met the limits or was a turn of the hue.
    Values outside of [0, white] are brought to its ends first, NaN to 0.
    Source: torchvision adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue.

    Parameters
    ----------
    brightness : float, default 1.0
        Factor of the brightness.
    contrast : float, default 1.0
        Factor of the contrast.
    saturation : float, default 1.0
        Factor of the saturation.
    hue : float, default 0.0
        Change of the hue, in turns.
    pivot : float, default 128.0
        Value that stays where it is.
    fitted : sequence of results or per_sample(...), default ()
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    order : sequence of str
        Order of the four steps.
    white : float, default 255.0
        Value of white, 255 for uint8.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: results for some samples only,
        a factor below 0, hue outside of [-1/2, 1/2], a step twice in the order, white not positive.
    """

    brightness: float = 1.0
    contrast: float = 1.0
    saturation: float = 1.0
    hue: float = 0.0
    pivot: float = 128.0
    fitted: Fitted = ()
    order: Sequence[str] = ('brightness', 'contrast', 'saturation', 'hue')
    white: float = 255.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/color_jitter.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("brightness", "float32"),
        ("contrast", "float32"),
        ("saturation", "float32"),
        ("hue", "float32"),
        ("pivot", "float32"),
        ("fitted", "results:moments"),
        ("order", "color_steps"),
        ("white", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_color_jitter(Operation):
    """Changes brightness, contrast, saturation and hue by random amounts.

    color_jitter with each parameter drawn uniformly from its range; where `random_order`, in one of the 24 orders, each
    as likely, as torchvision's ColorJitter does. Torchvision's brightness b is (1 - b, 1 + b) here, its hue h (-h, h).

    Parameters
    ----------
    brightness : float or (low, high), default (0.8, 1.2)
        Range of the factor of the brightness.
    contrast : float or (low, high), default (0.8, 1.2)
        Range of the factor of the contrast.
    saturation : float or (low, high), default (0.8, 1.2)
        Range of the factor of the saturation.
    hue : float or (low, high), default (-0.05, 0.05)
        Range of the change of the hue, in turns.
    pivot : float, default 128.0
        Value that stays where it is.
    fitted : sequence of results or per_sample(...), default ()
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    random_order : bool, default False
        Whether the order of the four steps is drawn.
    white : float, default 255.0
        Value of white, 255 for uint8.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a range not from low to high;
        those of color_jitter.
    """

    brightness: Range = (0.8, 1.2)
    contrast: Range = (0.8, 1.2)
    saturation: Range = (0.8, 1.2)
    hue: Range = (-0.05, 0.05)
    pivot: float = 128.0
    fitted: Fitted = ()
    random_order: bool = False
    white: float = 255.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/stain/color_jitter.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("brightness", "interval"),
        ("contrast", "interval"),
        ("saturation", "interval"),
        ("hue", "interval"),
        ("pivot", "float32"),
        ("fitted", "results:moments"),
        ("random_order", "flag"),
        ("white", "float32"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('brightness', 'contrast', 'saturation')


@dataclass(frozen=True, kw_only=True)
class grayscale(Operation):
    """Makes all three channels the gray level of the color.

    All three channels become the gray of the color. Linear, so any range of values will do and none is limited; NaN
    stays NaN. pillow is exact for the whole values of uint8.

    Parameters
    ----------
    rule : {"itu601", "itu709", "pillow"}, default "itu601"
        Weights of the gray level.
    """

    rule: Literal["itu601", "itu709", "pillow"] = 'itu601'

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/grayscale.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("rule", "choice:gray_rule"),
    )


@dataclass(frozen=True, kw_only=True)
class random_grayscale(Operation):
    """Makes some samples gray.

    grayscale for some of the samples.

    Parameters
    ----------
    rule : {"itu601", "itu709", "pillow"}, default "itu601"
        Weights of the gray level.
    probability : float, default 0.1
        Share of the samples that the operation is applied to.
    """

    rule: Literal["itu601", "itu709", "pillow"] = 'itu601'
    probability: float = 0.1

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/stain/grayscale.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("rule", "choice:gray_rule"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class hed_jitter(Operation):
    """Changes the concentrations of hematoxylin, eosin and DAB.

    Concentration k becomes alpha[k] s + beta[k], for hematoxylin, eosin and DAB. In [0, white]: values outside are
    brought to its ends first, NaN to 0, and so is the result. With alpha 1 and beta 0 a color that the three stains can
    make stays as it is; modern brings any other to one they can.
    Source: Tellez et al. 2018; scikit-image rgb2hed, hed2rgb.

    Parameters
    ----------
    alpha : sequence of float, default (1, 1, 1)
        Factors of the concentrations, one for each stain.
    beta : sequence of float, default (0, 0, 0)
        Offsets of the concentrations, one for each stain.
    units : {"modern", "tellez_plus2"}, default "modern"
        Meaning of the concentrations.
    white : float, default 255.0
        Value of white, 255 for uint8.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a number that is not finite,
        white not positive.
    """

    alpha: Sequence[float] = (1, 1, 1)
    beta: Sequence[float] = (0, 0, 0)
    units: Literal["modern", "tellez_plus2"] = 'modern'
    white: float = 255.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/hed_jitter.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("alpha", "floats:3"),
        ("beta", "floats:3"),
        ("units", "choice:hed_units"),
        ("white", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_hed_jitter(Operation):
    """Changes the concentrations of hematoxylin, eosin and DAB by random amounts.

    hed_jitter with alpha and beta drawn uniformly, for each stain on its own. Published strengths are in units of
    tellez_plus2: light is alpha (.95, 1.05) and beta (-.05, .05), strong (.8, 1.2) and (-.2, .2); in modern units a beta
    of .05 is .7 of optical density. The limits on a patch's mean brightness of some implementations are left out.
    Source: Tellez et al. 2018, 2019.

    Parameters
    ----------
    alpha : float or (low, high), default (0.95, 1.05)
        Range of the factors of the concentrations.
    beta : float or (low, high), default (-0.01, 0.01)
        Range of the offsets of the concentrations.
    units : {"modern", "tellez_plus2"}, default "modern"
        Meaning of the concentrations.
    white : float, default 255.0
        Value of white, 255 for uint8.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a range not from low to high;
        those of hed_jitter.
    """

    alpha: Range = (0.95, 1.05)
    beta: Range = (-0.01, 0.01)
    units: Literal["modern", "tellez_plus2"] = 'modern'
    white: float = 255.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/stain/hed_jitter.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("alpha", "interval"),
        ("beta", "interval"),
        ("units", "choice:hed_units"),
        ("white", "float32"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('alpha',)


@dataclass(frozen=True, kw_only=True)
class hsv_jitter(Operation):
    """Changes hue, saturation and value.

    hue is added, in turns; saturation and value move towards 1 by their share of the way there, or where negative
    towards 0: s + (1 - s) saturation or s (1 + saturation). In [0, white]: values outside are brought to its ends first,
    NaN to 0. Grays gain saturation too, towards red; white moves as any color.
    Source: Tellez et al. 2019, pathology-he-auto-augment.

    Parameters
    ----------
    hue : float, default 0.0
        Change of the hue, in turns.
    saturation : float, default 0.0
        Change of the saturation, -1 to 1.
    value : float, default 0.0
        Change of the value, -1 to 1.
    white : float, default 255.0
        Value of white, 255 for uint8.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: hue outside of [-1, 1],
        saturation or value outside of [-1, 1], white not positive.
    """

    hue: float = 0.0
    saturation: float = 0.0
    value: float = 0.0
    white: float = 255.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/hsv_jitter.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("hue", "float32"),
        ("saturation", "float32"),
        ("value", "float32"),
        ("white", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_hsv_jitter(Operation):
    """Changes hue, saturation and value by random amounts.

    hsv_jitter with each share drawn uniformly from its range. Published: light .1, strong .5 to 1 either way.

    Parameters
    ----------
    hue : float or (low, high), default (-0.1, 0.1)
        Range of the change of the hue, in turns.
    saturation : float or (low, high), default (-0.1, 0.1)
        Range of the change of the saturation.
    value : float or (low, high), default (-0.1, 0.1)
        Range of the change of the value.
    white : float, default 255.0
        Value of white, 255 for uint8.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a range not from low to high or
        outside of [-1, 1]; those of hsv_jitter.
    """

    hue: Range = (-0.1, 0.1)
    saturation: Range = (-0.1, 0.1)
    value: Range = (-0.1, 0.1)
    white: float = 255.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/stain/hsv_jitter.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("hue", "interval"),
        ("saturation", "interval"),
        ("value", "interval"),
        ("white", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class macenko_normalize(Operation):
    """Normalizes the stains of H&E tiles to those of a reference (Macenko et al. 2009).

    Red, green and blue of H&E tiles through optical density: od = -ln(I / white) by the rule of the fit, concentrations
    of the tile's own stains c, each times reference maximum / tile maximum, and back with the stains of the reference,
      I' = min(white exp(-reference c'), 255),
    in the units of the image. `fitted` is one result of fit_macenko per sample of the batch, or with `shared` a single
    one for all (a fit `together`), in the memory of whichever executor runs; it is read when the pipeline runs. A tile
    the fit left `unchanged` keeps its colors. What exceeds 255 becomes `over`. Not a number stays.
    Source: Macenko et al. 2009; the named modes of macenko_modes.hpp say whose arithmetic they follow.

    Parameters
    ----------
    fitted : sequence of results or per_sample(...)
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    reference : StainReference, default STAIN_REFERENCE
        Stains and maximum concentrations of the target.
    shared : bool, default False
        Whether one result of the fit is for all samples.
    rounding : {"unrounded", "nearest", "truncated"}, default "unrounded"
        Rounding of the result.
    over : float, default 255.0
        Value of colors above 255.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: no result for a sample, other
        than one with `shared`, stains that were never fitted (on the CPU, when it runs), `over` not in [0, 255], a
        reference that cannot be inverted; images without three channels.
    """

    fitted: Fitted
    reference: StainReference = STAIN_REFERENCE
    shared: bool = False
    rounding: Literal["unrounded", "nearest", "truncated"] = 'unrounded'
    over: float = 255.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/macenko.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fitted", "results:stain_basis"),
        ("reference", "stain_reference"),
        ("shared", "flag"),
        ("rounding", "choice:stain_rounding"),
        ("over", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class reinhard(Operation):
    """Normalizes mean and deviation of the colors in a color space (Reinhard et al. 2001).

    Reinhard's normalization in a color space: each sample from its own mean and deviation, which fit_color_moments
    left in `fitted` (one result per sample, in the memory of whichever executor runs, read when the pipeline runs), to
    those of `target`; either may be stated. A channel without deviation is moved and not scaled; an empty fit leaves
    the sample as it is. In [0, white]: values outside are brought to its ends first, NaN to 0, and so is the result.
    Source: Reinhard et al. 2001 (ruderman); StainTools, TIAToolbox, torchstain (lab).

    Parameters
    ----------
    space : {"lab", "ruderman"}
        Color space.
    fitted : sequence of results or per_sample(...)
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    target : ColorMoments
        Moments of the target.
    rule : {"plain", "modified"}, default "plain"
        Rule of the transfer; "modified" is torchstain's.
    white : float, default 255.0
        Value of white, 255 for uint8.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: no result for a sample, a
        target that is empty, not finite or of negative deviation, white not positive.
    """

    space: Literal["lab", "ruderman"]
    fitted: Fitted
    target: ColorMoments
    rule: Literal["plain", "modified"] = 'plain'
    white: float = 255.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/reinhard.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("space", "type:color_space"),
        ("fitted", "results:color_moments"),
        ("target", "color_target"),
        ("rule", "choice:reinhard_rule"),
        ("white", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class stain_jitter(Operation):
    """Changes the concentrations of the two stains of a tile.

    Concentrations c, the least-squares solution of basis c = d for the optical densities d = -ln(max(x, white / 255) /
    white), become alpha c + beta. The basis is that of the tile, by what fit_macenko left in `fitted` (one result per
    sample, or with `shared` one for all, in the memory of whichever executor runs, read when the pipeline runs), or
    where that is empty `basis`. What the two stains do not explain is kept, so that alpha 1 and beta 0 leave a color as
    it is, but for values below white / 255, which become that; with `keep_rest` false it is dropped, as other libraries
    do. Pixels of a mean optical density below `tissue_density` are glass and stay as they are (0: all are tissue), as
    does a tile the fit left `unchanged`. In [0, white]: values outside are brought to its ends first, NaN to 0, and so
    is the result.
    Source: StainTools and TIAToolbox StainAugmentor, torchstain MacenkoAugmentor.

    Parameters
    ----------
    fitted : sequence of results or per_sample(...), default ()
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    shared : bool, default False
        Whether one result of the fit is for all samples.
    basis : 3 x 2 floats, default STAIN_REFERENCE.stains
        Vectors of the two stains where there is no fit: rows red, green and blue.
    alpha : sequence of float, default (1, 1)
        Factors of the concentrations, one for each stain.
    beta : sequence of float, default (0, 0)
        Offsets of the concentrations, one for each stain.
    keep_rest : bool, default True
        Whether the part of a color that the two stains do not explain is kept.
    tissue_density : float, default 0.15
        Mean optical density below which a pixel is glass and stays as it is.
    white : float, default 255.0
        Value of white, 255 for uint8.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: results for some samples only,
        other than one with `shared`, stains that were never fitted (on the CPU, when it runs), a number that is not
        finite, a basis that cannot be inverted, a density below 0, white not positive.
    """

    fitted: Fitted = ()
    shared: bool = False
    basis: Matrix = STAIN_REFERENCE.stains
    alpha: Sequence[float] = (1, 1)
    beta: Sequence[float] = (0, 0)
    keep_rest: bool = True
    tissue_density: float = 0.15
    white: float = 255.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/stain_jitter.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fitted", "results:stain_basis"),
        ("shared", "flag"),
        ("basis", "stain_matrix"),
        ("alpha", "floats:2"),
        ("beta", "floats:2"),
        ("keep_rest", "flag"),
        ("tissue_density", "float32"),
        ("white", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_stain_jitter(Operation):
    """Changes the concentrations of the two stains of a tile by random amounts.

    stain_jitter with alpha and beta drawn uniformly, for each stain on its own.

    Parameters
    ----------
    fitted : sequence of results or per_sample(...), default ()
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    shared : bool, default False
        Whether one result of the fit is for all samples.
    basis : 3 x 2 floats, default STAIN_REFERENCE.stains
        Vectors of the two stains where there is no fit: rows red, green and blue.
    alpha : float or (low, high), default (0.8, 1.2)
        Range of the factors of the concentrations.
    beta : float or (low, high), default (-0.2, 0.2)
        Range of the offsets of the concentrations.
    keep_rest : bool, default True
        Whether the part of a color that the two stains do not explain is kept.
    tissue_density : float, default 0.15
        Mean optical density below which a pixel is glass and stays as it is.
    white : float, default 255.0
        Value of white, 255 for uint8.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a range not from low to high;
        those of stain_jitter.
    """

    fitted: Fitted = ()
    shared: bool = False
    basis: Matrix = STAIN_REFERENCE.stains
    alpha: Range = (0.8, 1.2)
    beta: Range = (-0.2, 0.2)
    keep_rest: bool = True
    tissue_density: float = 0.15
    white: float = 255.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/stain/stain_jitter.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fitted", "results:stain_basis"),
        ("shared", "flag"),
        ("basis", "stain_matrix"),
        ("alpha", "interval"),
        ("beta", "interval"),
        ("keep_rest", "flag"),
        ("tissue_density", "float32"),
        ("white", "float32"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('alpha',)


@dataclass(frozen=True, kw_only=True)
class random_stain_na(Operation):
    """Normalizes the colors to a random target (RandStainNA).

    RandStainNA: reinhard to a target whose means and deviations are drawn from `table`, each on its own, by a law about
    its mean: normal or laplace with its standard deviation (as the scale of laplace) times 1 + widen, or uniform within
    three of them. A deviation drawn below 0 counts by its magnitude. For hed and hsv there is no published table, and
    the stretch of hed to the whole range that the original adds is left out.
    Source: Shen et al. 2022, RandStainNA.

    Parameters
    ----------
    space : {"lab", "ruderman"}
        Color space.
    fitted : sequence of results or per_sample(...)
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    table : str
        Name of a published table of targets.
    law : {"normal", "laplace", "uniform"}, default "normal"
        Distribution of the draw.
    widen : float, default 0.0
        Widening of the distributions; 0 leaves them as published.
    white : float, default 255.0
        Value of white, 255 for uint8.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a table that is not finite or
        of negative deviations, widen not above -1; those of reinhard.
    """

    space: Literal["lab", "ruderman"]
    fitted: Fitted
    table: str
    law: Literal["normal", "laplace", "uniform"] = 'normal'
    widen: float = 0.0
    white: float = 255.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/stain/stain_na.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("space", "type:color_space"),
        ("fitted", "results:color_moments"),
        ("table", "color_table"),
        ("law", "choice:stain_na_law"),
        ("widen", "float64"),
        ("white", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class bias_field(Operation):
    """Multiplies by a smooth field that is given by its coefficients.

    y = x exp(sum of c_ijk P_i(Z) P_j(Y) P_k(X)): Z, Y and X go from -1 at the first voxel of an axis of the grid to 1 at
    the last and are 0 on an axis of one voxel; P by the basis. The coefficients stand in the published order:
      i + j + k <= degree, i outermost and k innermost: 4, 10, 20, 35, 56 of them for degree 1 .. 5
      legendre in a plane (one voxel along z): P_j(Y) P_k(X) with k <= j <= degree, j outermost: 3, 6, 10, 15, 21. Their
      total degree reaches 2 degree; it is MONAI's rule.
    Those left out are 0. `extents` is the grid the operation stands on.
    Source: MONAI RandBiasField, TorchIO v1 BiasField; Van Leemput et al. 1999.

    Parameters
    ----------
    coefficients : sequence of float
        Coefficients of the polynomials, in the published order.
    extents : int or one for each axis
        Extents of the grid that the field lies on.
    degree : int, default 3
        Degree of the polynomials, 0 to 5.
    basis : {"legendre", "monomial"}, default "legendre"
        Polynomials of the field.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a degree outside 0 .. 5, a
        coefficient that is not finite or beyond those of the degree, coefficients whose magnitudes add up to more than
        80 (the field would leave the range of float), extents that are not positive.
    """

    coefficients: Sequence[float]
    extents: AxisIntegers
    degree: int = 3
    basis: Literal["legendre", "monomial"] = 'legendre'

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/bias_field.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("coefficients", "float_list"),
        ("extents", "extent3"),
        ("degree", "int32"),
        ("basis", "choice:bias_basis"),
    )
    _capacities: ClassVar[Mapping[str, int]] = {'coefficients': 56}


@dataclass(frozen=True, kw_only=True)
class random_bias_field(Operation):
    """Multiplies by a random smooth field, as the bias field of MR.

    bias_field over the grid it stands on, one for all channels, each coefficient drawn uniformly from `coefficients`.
    `(coefficients=(-.5, .5), basis="monomial")` is TorchIO's.

    Parameters
    ----------
    coefficients : float or (low, high), default (0, 0.1)
        Range of the coefficients.
    degree : int, default 3
        Degree of the polynomials, 0 to 5.
    basis : {"legendre", "monomial"}, default "legendre"
        Polynomials of the field.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: coefficients not from low to
        high; those of bias_field, whatever was drawn.
    """

    coefficients: Range = (0, 0.1)
    degree: int = 3
    basis: Literal["legendre", "monomial"] = 'legendre'
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/bias_field.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("coefficients", "interval"),
        ("degree", "int32"),
        ("basis", "choice:bias_basis"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class brightness(Operation):
    """Adds an offset.

    y = x + offset, in the units of the image. MONAI ShiftIntensity.

    Parameters
    ----------
    offset : float
        Offset, in the units of the image.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: an offset that is not finite.
    """

    offset: float

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/brightness.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("offset", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class brightness_factor(Operation):
    """Multiplies by a factor.

    y = x factor. MONAI ScaleIntensity(factor = factor - 1); nnU-Net MultiplicativeBrightness.

    Parameters
    ----------
    factor : float
        Factor.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a factor that is not finite.
    """

    factor: float

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/brightness.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("factor", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_brightness(Operation):
    """Adds a random offset.

    brightness with an offset drawn uniformly from `range`, one for all channels.

    Parameters
    ----------
    range : float or (low, high), default (-0.1, 0.1)
        Range of the draw.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: range not from low to high, a
        number that is not finite.
    """

    range: Range = (-0.1, 0.1)
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/brightness.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("range", "interval"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_brightness_factor(Operation):
    """Multiplies by a random factor.

    brightness_factor with a factor drawn from `range`, one for all channels. nnU-Net: law mixture.

    Parameters
    ----------
    range : float or (low, high), default (0.75, 1.25)
        Range of the draw.
    law : {"uniform", "log_uniform", "mixture"}, default "uniform"
        Distribution of the draw.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: range not from low to high, or
        unfit for its law, a number that is not finite.
    """

    range: Range = (0.75, 1.25)
    law: Literal["uniform", "log_uniform", "mixture"] = 'uniform'
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/brightness.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("range", "interval"),
        ("law", "choice:interval_law"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('range',)


@dataclass(frozen=True, kw_only=True)
class clamp(Operation):
    """Limits values to a range.

    y = min(max(x, low), high); NaN becomes low. Values in the units of the image.

    Parameters
    ----------
    low : float, default 0.0
        Lower limit; it may be infinite.
    high : float, default 1.0
        Upper limit; it may be infinite.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: low above high, a bound that is
        NaN.
    """

    low: float = 0.0
    high: float = 1.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/clamp.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("low", "float32"),
        ("high", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class coarse_dropout(Operation):
    """Fills boxes with a value or with noise.

    Voxels in any of `count` boxes read `fill`: one value, or (low, high) for one drawn uniformly per voxel and channel
    from `field`. With `keep_holes` it is the voxels outside all of them. Boxes are voxels of the grid the operation
    stands on and may reach beyond it.

    Parameters
    ----------
    holes : sequence of boxes
        Boxes, each (start, size).
    fill : float or (low, high), default 0
        Value of the boxes, or the range of the noise.
    keep_holes : bool, default False
        Whether all voxels outside the boxes are filled instead.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a count outside 0 .. 32, a
        negative size, fill not from low to high, a number that is not finite.
    """

    holes: Holes
    fill: Range = 0
    keep_holes: bool = False

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/coarse_dropout.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("holes", "holes"),
        ("fill", "interval"),
        ("keep_holes", "flag"),
    )
    _capacities: ClassVar[Mapping[str, int]] = {'holes': 32}


@dataclass(frozen=True, kw_only=True)
class random_coarse_dropout(Operation):
    """Fills random boxes with a value or with noise.

    coarse_dropout with boxes drawn for each sample, the same for all channels: their number from `holes`, the size of
    each along each axis uniform between `size` and `max_size`, the place uniform among those inside the grid. Sizes are
    voxels; 0 is the whole axis, a `max_size` of 0 is `size`, and along an axis shorter than a size the box takes it
    whole. With `may_leave` the center is any voxel, and what of the box lies outside is cut off.
    Source: MONAI RandCoarseDropout; Cutout, DeVries and Taylor 2017 (`may_leave`).

    Parameters
    ----------
    holes : int or (low, high)
        Number of boxes, or its range.
    size : int or one for each axis
        Least size of a box in voxels; 0 is the whole axis.
    max_size : int or one for each axis, default 0
        Largest size of a box in voxels; 0 is `size`.
    fill : float or (low, high), default 0
        Value of the boxes, or the range of the noise.
    keep_holes : bool, default False
        Whether all voxels outside the boxes are filled instead.
    may_leave : bool, default False
        Whether a box may leave the volume.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: holes outside 0 .. 32, a
        negative size, size above max_size, a max_size where size is 0 or above 2^31 - 1; those of coarse_dropout.
    """

    holes: IntegerRange
    size: AxisIntegers
    max_size: AxisIntegers = 0
    fill: Range = 0
    keep_holes: bool = False
    may_leave: bool = False
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/coarse_dropout.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("holes", "integer_interval"),
        ("size", "extent3"),
        ("max_size", "extent3"),
        ("fill", "interval"),
        ("keep_holes", "flag"),
        ("may_leave", "flag"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class contrast(Operation):
    """Changes the contrast about a pivot.

    y = (x - pivot) factor + pivot. The pivot is in the units of the image; 0 suits z-scored images.

    Parameters
    ----------
    factor : float
        Factor.
    pivot : float, default 0.0
        Value that stays where it is.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a number that is not finite.
    """

    factor: float
    pivot: float = 0.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/contrast.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("factor", "float32"),
        ("pivot", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_contrast(Operation):
    """Changes the contrast about a pivot by a random factor.

    contrast with a factor drawn from `range`.

    Parameters
    ----------
    range : float or (low, high), default (0.75, 1.25)
        Range of the draw.
    pivot : float, default 0.0
        Value that stays where it is.
    law : {"uniform", "log_uniform", "mixture"}, default "uniform"
        Distribution of the draw.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: range not from low to high, or
        unfit for its law; those of contrast.
    """

    range: Range = (0.75, 1.25)
    pivot: float = 0.0
    law: Literal["uniform", "log_uniform", "mixture"] = 'uniform'
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/contrast.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("range", "interval"),
        ("pivot", "float32"),
        ("law", "choice:interval_law"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('range',)


@dataclass(frozen=True, kw_only=True)
class ct_normalize(Operation):
    """Normalizes CT by statistics of the cohort, as nnU-Net does.

    y = (min(max(x, lower), upper) - mean) / max(standard_deviation, 1e-8), in units of the deviation: all values of the
    cohort's foreground, the bounds its percentiles 0.5 and 99.5 (cohort_fingerprint in fit/fingerprint.hpp). NaN becomes
    that of lower.
    Source: nnU-Net CTNormalization.

    Parameters
    ----------
    lower : float
        Lower limit: percentile 0.5 of the foreground of the cohort.
    upper : float
        Upper limit: percentile 99.5 of the foreground of the cohort.
    mean : float
        Mean of the foreground of the cohort.
    standard_deviation : float
        Standard deviation of the foreground of the cohort.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a number that is not finite,
        lower above upper, a negative deviation.
    """

    lower: float
    upper: float
    mean: float
    standard_deviation: float

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/ct_normalize.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("lower", "float32"),
        ("upper", "float32"),
        ("mean", "float32"),
        ("standard_deviation", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class gamma(Operation):
    """Applies a gamma curve over a range of values.

    y = sign(n) |n|^exponent (high - low) + low with n = (x - low) / (high - low), [low, high] = range. Both ends stay
    where they are; values below the range keep their sign, as in TorchIO RandomGamma, values above follow the curve on.
    Above 1 the exponent darkens, below 1 it brightens, and 1 changes nothing. The range is in the units of the image.
    Inside it the power is right to 2^-23.5, outside to 3.6 ulp; one beyond float is infinite.

    Parameters
    ----------
    exponent : float
        Exponent: above 1 it darkens, below 1 it brightens.
    range : float or (low, high), default (0, 1)
        Range whose ends stay where they are, in the units of the image.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: exponent not above 0, range not
        from low to high, a number that is not finite.
    """

    exponent: float
    range: Range = (0, 1)

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/gamma.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("exponent", "float32"),
        ("range", "interval"),
    )


@dataclass(frozen=True, kw_only=True)
class random_gamma(Operation):
    """Applies a gamma curve with a random exponent.

    gamma with an exponent drawn from `range`; `value_range` is what the curve leaves in place.

    Parameters
    ----------
    range : float or (low, high), default (0.7, 1.5)
        Range of the draw.
    value_range : float or (low, high), default (0, 1)
        Range whose ends stay where they are, in the units of the image.
    law : {"uniform", "log_uniform", "mixture"}, default "uniform"
        Distribution of the draw.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: range not positive or not from
        low to high, a range without 1 for the law mixture; those of gamma.
    """

    range: Range = (0.7, 1.5)
    value_range: Range = (0, 1)
    law: Literal["uniform", "log_uniform", "mixture"] = 'uniform'
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/gamma.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("range", "interval"),
        ("value_range", "interval"),
        ("law", "choice:interval_law"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('range',)


@dataclass(frozen=True, kw_only=True)
class gaussian_noise(Operation):
    """Adds Gaussian noise.

    Adds noise of standard deviation `sigma`, in the units of the image: one number, or an interval to draw it from
    uniformly for each sample. `= (0, .1)` is nnU-Net's (its "noise variance" is a standard deviation) and MONAI's
    RandGaussianNoise(std = .1).

    Parameters
    ----------
    sigma : float or (low, high), default 0.02
        Standard deviation of the noise, in the units of the image, or its range.
    mean : float, default 0.0
        Mean of the noise.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: sigma below 0 or not from low
        to high, a number that is not finite.
    """

    sigma: Range = 0.02
    mean: float = 0.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/gaussian_noise.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sigma", "interval"),
        ("mean", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class histogram_match(Operation):
    """Maps percentiles of each sample to target values, as fit_landmarks found them.

    The piecewise linear map of fit_landmarks for the sample and channel: its percentiles go to their targets, with
    straight lines between them; the first and the last line continue beyond. `fitted` and `channels` as for z_score; N
    as in the fit. An empty fit leaves values unchanged. NaN stays NaN.
    Source: Nyul and Udupa 1999, TorchIO HistogramStandardization.

    Parameters
    ----------
    fitted : sequence of results or per_sample(...)
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    channels : int, default 1
        Channels that results of fits are given for: those of the image, or 1 for a pooled fit.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: no results for a sample,
        channels below 1 or not those of the image.
    """

    fitted: Fitted
    channels: int = 1

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/histogram_match.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fitted", "results:landmark_map"),
        ("channels", "int32"),
    )


@dataclass(frozen=True, kw_only=True)
class histogram_shift(Operation):
    """Maps values along a piecewise linear curve.

    The curve through `count` control points: the one that is k / (count - 1) of the way from range.low to range.high
    goes to floating[k] of the way, straight lines between. Values outside the range stay as they are, NaN too. The range
    is in the units of the image.
    Source: MONAI RandHistogramShift.

    Parameters
    ----------
    floating : sequence of float
        Places of the control points after the shift, from 0 to 1 and rising.
    range : float or (low, high), default (0, 1)
        Range whose ends stay where they are, in the units of the image.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a count outside 2 .. 32,
        control points that do not rise from 0 to 1 (equal ones may follow each other), a range whose extent is not a
        normal float or too small for the count, a number that is not finite.
    """

    floating: Sequence[float]
    range: Range = (0, 1)

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/histogram_shift.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("floating", "float_list"),
        ("range", "interval"),
    )
    _capacities: ClassVar[Mapping[str, int]] = {'floating': 32}


@dataclass(frozen=True, kw_only=True)
class random_histogram_shift(Operation):
    """Maps values along a random piecewise linear curve.

    histogram_shift with a number of control points from `control_points`, the inner ones moved one after the other: each
    uniformly between where the one before went and where the one behind still is. `value_range` is what stays in place.

    Parameters
    ----------
    control_points : int or (low, high), default 10
        Number of control points of the curve, or its range.
    value_range : float or (low, high), default (0, 1)
        Range whose ends stay where they are, in the units of the image.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: control points outside 3 .. 32;
        those of histogram_shift.
    """

    control_points: IntegerRange = 10
    value_range: Range = (0, 1)
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/histogram_shift.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("control_points", "integer_interval"),
        ("value_range", "interval"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class invert(Operation):
    """Mirrors values at a pivot.

    y = 2 pivot - x mirrors values at the pivot. 0 changes the sign, 0.5 swaps the ends of [0, 1].

    Parameters
    ----------
    pivot : float, default 0.0
        Value that stays where it is.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a pivot that is not finite.
    """

    pivot: float = 0.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/invert.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("pivot", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class limit_to_range(Operation):
    """Limits values to the range that fit_range found for each sample.

    y = min(max(x, low), high), where [low, high] is the intensity_range of the sample and channel; `fitted` and
    `channels` as for z_score. Right of the geometry, with the result of fit_range for the source, it keeps a cubic
    interpolation from overshooting: no voxel of the output lies outside minimum and maximum of its source. If value
    operations stand left of the geometry, fit the range of their result. An empty fit limits nothing. NaN becomes low.
    Source: scikit-image resize (clip), nnU-Net.

    Parameters
    ----------
    fitted : sequence of results or per_sample(...)
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    channels : int, default 1
        Channels that results of fits are given for: those of the image, or 1 for a pooled fit.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: no results for a sample,
        channels below 1 or not those of the image.
    """

    fitted: Fitted
    channels: int = 1

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/limit_to_range.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fitted", "results:intensity_range"),
        ("channels", "int32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_patch_contrast(Operation):
    """Changes the contrast about the mean of the patch by a random factor.

    Contrast about the mean by a factor drawn from `range`, for each channel or, with one_factor, for all.
    nnU-Net v2: (law="mixture", probability=.15).
    Source: batchgeneratorsv2 ContrastTransform.

    Parameters
    ----------
    range : float or (low, high), default (0.75, 1.25)
        Range of the draw.
    law : {"uniform", "log_uniform", "mixture"}, default "uniform"
        Distribution of the draw.
    preserve_range : bool, default True
        Whether values are limited to the range of the patch.
    one_factor : bool, default False
        Whether all channels have the same factor.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: range not from low to high, or
        unfit for its law.
    """

    range: Range = (0.75, 1.25)
    law: Literal["uniform", "log_uniform", "mixture"] = 'uniform'
    preserve_range: bool = True
    one_factor: bool = False
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/patch_contrast.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("range", "interval"),
        ("law", "choice:interval_law"),
        ("preserve_range", "flag"),
        ("one_factor", "flag"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('range',)


@dataclass(frozen=True, kw_only=True)
class random_patch_gamma(Operation):
    """Applies a gamma curve with a random exponent over the range of the patch.

    Applies the curve of patch_gamma with an exponent drawn from `range`, for each channel or, with one_exponent, for
    all. nnU-Net v2: (law="mixture", invert=True, probability=.1), then once more without invert
    and with probability=.3. Images of a range below about 1e-7 lose deviation even with retain_statistics, as there.
    Source: batchgeneratorsv2 GammaTransform.

    Parameters
    ----------
    range : float or (low, high), default (0.7, 1.5)
        Range of the draw.
    law : {"uniform", "log_uniform", "mixture"}, default "uniform"
        Distribution of the draw.
    invert : bool, default False
        Whether values are mirrored before and after the curve.
    retain_statistics : bool, default True
        Whether mean and deviation of the patch are restored.
    one_exponent : bool, default False
        Whether all channels have the same exponent.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: range not positive or not from
        low to high, or unfit for its law.
    """

    range: Range = (0.7, 1.5)
    law: Literal["uniform", "log_uniform", "mixture"] = 'uniform'
    invert: bool = False
    retain_statistics: bool = True
    one_exponent: bool = False
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/patch_gamma.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("range", "interval"),
        ("law", "choice:interval_law"),
        ("invert", "flag"),
        ("retain_statistics", "flag"),
        ("one_exponent", "flag"),
        ("probability", "float32"),
    )
    _multiplies: ClassVar[tuple[str, ...]] = ('range',)


@dataclass(frozen=True, kw_only=True)
class patch_z_score(Operation):
    """Normalizes each channel of the patch to mean 0 and deviation 1.

    y = (x - mean) / deviation by the mean and deviation (ddof 0) of each channel of the patch as it is at this point of
    the chain; a deviation of 0 divides by 1, one below 2^-127 by that. NaN, which is not counted, becomes `nan`, or
    stays where that is not set:
      exclude(value=0) | patch_z_score(nan=0)
    is MONAI NormalizeIntensity(nonzero = True, channel_wise = True).

    Parameters
    ----------
    nan : float, default NAN
        Value of voxels that are NaN; they stay NaN if it is NaN.
    """

    nan: float = NAN

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/patch_z_score.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("nan", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class exclude(Operation):
    """Excludes a value from the statistics of the patch.

    Voxels of `value` become NaN, which statistics of the patch do not count.

    Parameters
    ----------
    value : float, default 0.0
        Value that is excluded.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a value that is not finite.
    """

    value: float = 0.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/patch_z_score.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("value", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class percentile_scale(Operation):
    """Scales between the percentiles that fit_range found for each sample.

    y = (x - low) / (high - low) (b_max - b_min) + b_min, where [low, high] is the result of fit_range for the sample and
    channel, limited to [b_min, b_max] unless `clip` is false. `fitted` and `channels` as for z_score. A constant sample
    becomes b_min; an empty fit stands for [0, 1]. NaN becomes b_min; without `clip` it stays NaN.
    Source: MONAI ScaleIntensityRangePercentiles.

    Parameters
    ----------
    fitted : sequence of results or per_sample(...)
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    channels : int, default 1
        Channels that results of fits are given for: those of the image, or 1 for a pooled fit.
    b_min : float, default 0.0
        Lower end of the output range.
    b_max : float, default 1.0
        Upper end of the output range.
    clip : bool, default True
        Whether the output is limited to its range.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: no results for a sample,
        channels below 1 or not those of the image, b_min not below b_max, a number that is not finite.
    """

    fitted: Fitted
    channels: int = 1
    b_min: float = 0.0
    b_max: float = 1.0
    clip: bool = True

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/percentile_scale.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fitted", "results:intensity_range"),
        ("channels", "int32"),
        ("b_min", "float32"),
        ("b_max", "float32"),
        ("clip", "flag"),
    )


@dataclass(frozen=True, kw_only=True)
class min_max_scale(Operation):
    """Scales between the minimum and maximum that fit_range found for each sample.

    percentile_scale by minimum and maximum, fit_range with its defaults: y = (x - min) / (max - min) (b_max - b_min) +
    b_min, limited to [b_min, b_max] against rounding and values that were not selected.
    Source: MONAI ScaleIntensity, nnU-Net RescaleTo01Normalization.

    Parameters
    ----------
    fitted : sequence of results or per_sample(...)
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    channels : int, default 1
        Channels that results of fits are given for: those of the image, or 1 for a pooled fit.
    b_min : float, default 0.0
        Lower end of the output range.
    b_max : float, default 1.0
        Upper end of the output range.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: those of percentile_scale.
    """

    fitted: Fitted
    channels: int = 1
    b_min: float = 0.0
    b_max: float = 1.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/percentile_scale.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fitted", "results:intensity_range"),
        ("channels", "int32"),
        ("b_min", "float32"),
        ("b_max", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class poisson_noise(Operation):
    """Applies the counting noise of photons.

    Poisson noise of `counts` photons where the image reads 1, a number, or an interval to draw it from for each sample:
    the deviation at x is sqrt(x / counts). The image must read 0 where nothing is counted, so apply it before a z-score.

    Parameters
    ----------
    counts : float or (low, high), default 1000
        Photons where the image reads 1, or their range.
    law : {"uniform", "log_uniform", "mixture"}, default "uniform"
        Distribution of the draw.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: counts not positive or not from
        low to high, a range without 1 for the law mixture, a number that is not finite or whose reciprocal is not.
    """

    counts: Range = 1000
    law: Literal["uniform", "log_uniform", "mixture"] = 'uniform'
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/poisson_noise.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("counts", "interval"),
        ("law", "choice:interval_law"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class rescale(Operation):
    """Converts stored values by slope and intercept, of CT to HU.

    y = slope x + intercept: stored CT values to HU, by Rescale Slope and Rescale Intercept (DICOM PS3.3 C.11.1).

    Parameters
    ----------
    slope : float, default 1.0
        Factor, DICOM's Rescale Slope.
    intercept : float, default 0.0
        Offset, DICOM's Rescale Intercept.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: slope 0, a number that is not
        finite.
    """

    slope: float = 1.0
    intercept: float = 0.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/rescale.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("slope", "float32"),
        ("intercept", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class rician_noise(Operation):
    """Applies the noise of magnitude images of MR.

    The magnitude of a complex image of real value x after noise of standard deviation `sigma` in both parts, in the
    units of the image; sigma is one number, or an interval to draw it from uniformly for each sample. The result is
    never negative, so apply it before a z-score. MONAI RandRicianNoise.

    Parameters
    ----------
    sigma : float or (low, high), default 0.02
        Standard deviation of the noise, in the units of the image, or its range.
    mean : float, default 0.0
        Mean of the noise.
    probability : float, default 1.0
        Share of the samples that the operation is applied to.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: sigma below 0 or not from low
        to high, a number that is not finite.
    """

    sigma: Range = 0.02
    mean: float = 0.0
    probability: float = 1.0

    _random: ClassVar[bool] = True
    _header: ClassVar[str] = "ops/value/rician_noise.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("sigma", "interval"),
        ("mean", "float32"),
        ("probability", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class scale_intensity(Operation):
    """Scales a given range of values to another.

    y = (x - a_min) / (a_max - a_min) (b_max - b_min) + b_min, with `clip` limited to [b_min, b_max] (NaN then becomes
    b_min). a in the units of the image. MONAI ScaleIntensityRange; its special case a_min == a_max is an error here.

    Parameters
    ----------
    a_min : float
        Value that becomes `b_min`.
    a_max : float
        Value that becomes `b_max`.
    b_min : float, default 0.0
        Lower end of the output range.
    b_max : float, default 1.0
        Upper end of the output range.
    clip : bool, default False
        Whether the output is limited to its range.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a_min == a_max, with `clip`
        also a_min above a_max or b_min not below b_max, a number that is not finite.
    """

    a_min: float
    a_max: float
    b_min: float = 0.0
    b_max: float = 1.0
    clip: bool = False

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/scale_intensity.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("a_min", "float32"),
        ("a_max", "float32"),
        ("b_min", "float32"),
        ("b_max", "float32"),
        ("clip", "flag"),
    )


@dataclass(frozen=True, kw_only=True)
class window(Operation):
    """Maps a window of values onto a range, as viewers of DICOM do.

    Maps the window about `center` onto [low, high], in the units of the image (HU for CT):
      linear_exact   c = center, w = width           (C.11.2.1.3.2); width > 0
      linear         c = center - 1/2, w = width - 1 (C.11.2.1.2);   width >= 1
      y = low if x <= c - w/2; high if x > c + w/2; else ((x - c) / w + 1/2) (high - low) + low
    linear with width 1 is the step at center - 1/2. linear_exact is clip((x - a) / (b - a)) with a = center - width/2
    and b = center + width/2. NaN becomes low.

    Parameters
    ----------
    center : float
        Center of the window, in the units of the image.
    width : float
        Width of the window, in the units of the image.
    low : float, default 0.0
        Lower end of the output range.
    high : float, default 1.0
        Upper end of the output range.
    function : {"linear_exact", "linear"}, default "linear_exact"
        VOI LUT function of DICOM.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: a width below its limit, low
        not below high, a number that is not finite, a window that begins below every float.
    """

    center: float
    width: float
    low: float = 0.0
    high: float = 1.0
    function: Literal["linear_exact", "linear"] = 'linear_exact'

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/window.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("center", "float32"),
        ("width", "float32"),
        ("low", "float32"),
        ("high", "float32"),
        ("function", "choice:voi_function"),
    )


@dataclass(frozen=True, kw_only=True)
class sigmoid_window(Operation):
    """Maps a window of values onto a range by a sigmoid.

    y = (high - low) / (1 + exp(-4 (x - center) / width)) + low: the VOI LUT function SIGMOID of DICOM PS3.3
    C.11.2.1.3.1.

    Parameters
    ----------
    center : float
        Center of the window, in the units of the image.
    width : float
        Width of the window, in the units of the image.
    low : float, default 0.0
        Lower end of the output range.
    high : float, default 1.0
        Upper end of the output range.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: width not above 0, low not
        below high or too far from it, a number that is not finite.
    """

    center: float
    width: float
    low: float = 0.0
    high: float = 1.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/window.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("center", "float32"),
        ("width", "float32"),
        ("low", "float32"),
        ("high", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class z_score(Operation):
    """Normalizes by the mean and deviation that fit_moments found for each sample.

    y = (x - mean) / max(standard_deviation, 1e-8) by the result of fit_moments for the sample and channel, with the ddof
    of the fit; where `nonzero`, voxels of value 0 stay 0. `fitted` lies in memory of the executor that runs: one result
    per sample of the batch and channel, channel fastest, or with channels = 1 one per sample (a pooled fit). It is read
    when the pipeline runs, so the fit may be queued before on the same stream. An empty fit leaves values unchanged. NaN
    stays NaN.
    Source: nnU-Net ZScoreNormalization, MONAI NormalizeIntensity.

    Parameters
    ----------
    fitted : sequence of results or per_sample(...)
        Results of the fit, one for each sample (and channel), or per_sample(key) where they come with the batch.
    channels : int, default 1
        Channels that results of fits are given for: those of the image, or 1 for a pooled fit.
    nonzero : bool, default False
        Whether voxels of value 0 stay 0.

    Raises
    ------
    Error
        If a parameter is of another type, or when a batch is planned with one of these: no results for a sample,
        channels below 1 or not those of the image, results that were neither fitted nor stated (on the CPU, when it
        runs; on a device they leave values unchanged).
    """

    fitted: Fitted
    channels: int = 1
    nonzero: bool = False

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/z_score.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("fitted", "results:moments"),
        ("channels", "int32"),
        ("nonzero", "flag"),
    )


__all__ = [
    "coarse_shuffle",
    "random_coarse_shuffle",
    "gaussian_blur",
    "random_gaussian_blur",
    "gibbs_ringing",
    "random_gibbs_ringing",
    "kspace_spike",
    "random_kspace_spike",
    "random_low_resolution",
    "median_filter",
    "random_median_filter",
    "sharpen",
    "random_sharpen",
    "affine_matrix",
    "affine",
    "random_affine",
    "crop",
    "center_crop",
    "random_crop",
    "crop_at",
    "elastic",
    "random_elastic",
    "flip",
    "random_flip",
    "identity",
    "orient",
    "pad",
    "pad_to",
    "crop_or_pad",
    "permute",
    "random_scale",
    "resample",
    "resize",
    "resample_to",
    "rot90",
    "random_rot90",
    "one_hot",
    "regions",
    "remap",
    "channel_normalize",
    "color_jitter",
    "random_color_jitter",
    "grayscale",
    "random_grayscale",
    "hed_jitter",
    "random_hed_jitter",
    "hsv_jitter",
    "random_hsv_jitter",
    "macenko_normalize",
    "reinhard",
    "stain_jitter",
    "random_stain_jitter",
    "random_stain_na",
    "bias_field",
    "random_bias_field",
    "brightness",
    "brightness_factor",
    "random_brightness",
    "random_brightness_factor",
    "clamp",
    "coarse_dropout",
    "random_coarse_dropout",
    "contrast",
    "random_contrast",
    "ct_normalize",
    "gamma",
    "random_gamma",
    "gaussian_noise",
    "histogram_match",
    "histogram_shift",
    "random_histogram_shift",
    "invert",
    "limit_to_range",
    "random_patch_contrast",
    "random_patch_gamma",
    "patch_z_score",
    "exclude",
    "percentile_scale",
    "min_max_scale",
    "poisson_noise",
    "rescale",
    "rician_noise",
    "scale_intensity",
    "window",
    "sigmoid_window",
    "z_score",
]

for _name in __all__:
    name_mistakes(globals()[_name])
