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
    """The voxels within each of `count` boxes in random order, every channel in its own; where boxes overlap, one after the
    other. The order of box b in channel c comes from the words of block 2^32 b + c of `field`. Boxes are voxels of the
    patch; what of them lies outside is cut off.
    Errors: a count outside 0 .. 32, a size that is negative or above 2^24, a box of more than 2^31 voxels."""

    holes: Holes

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/coarse_shuffle.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("holes", "holes"),
    )
    _capacities: ClassVar[Mapping[str, int]] = {'holes': 32}


@dataclass(frozen=True, kw_only=True)
class random_coarse_shuffle(Operation):
    """coarse_shuffle with boxes drawn for each sample, the same for all channels, as random_coarse_dropout draws them:
    their number from `holes`, the size of each along each axis uniform between `size` and `max_size` (0: the whole axis,
    and as `size`), the place uniform among those inside the patch. Errors: holes outside 0 .. 32, a negative size, size
    above max_size, a box of more than 2^31 voxels. Source: MONAI RandCoarseShuffle; Kang et al. 2017, PatchShuffle
    regularization."""

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
    """y = G(sigma) x along each axis, sigma in voxels of the patch (z, y, x); 0 leaves an axis alone. `truncate`, where
    given, takes the place of the kernel's radius: int(truncate sigma + 1/2) voxels.
    Errors: a sigma that is negative, not finite, or reaches more than 15 voxels far, a truncate that is negative.
    Source: scipy.ndimage.gaussian_filter."""

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
    """gaussian_blur of some channels, each with probability channel_probability, by a sigma drawn uniformly from `sigma`
    for each axis, channel or sample.
    nnU-Net v2: (sigma=(.5, 1), kernel="nnunet", channel_probability=.5, probability=.2).
    Errors: sigma not from low to high, channel_probability not in [0, 1]; those of gaussian_blur."""

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
    """y = the real part of the inverse transform of M F x, F x the discrete Fourier transform of the patch with frequency 0
    at index N / 2 of each axis, M 1 where the index is at most (1 - alpha) max(N) sqrt(2) / 2 away from the middle
    (N - 1) / 2 of the array and 0 elsewhere; N the extents, a patch of one slice is transformed in its plane. alpha = 0
    keeps all of a plane but not the corners of a volume. With alpha = 1 only the middle itself is kept: the mean where
    all extents are odd, and nothing, y = 0, otherwise. A voxel that is not finite makes the whole channel so.
    Errors: alpha not in [0, 1], a patch of more than 2048 voxels along an axis.
    Source: MONAI GibbsNoise."""

    alpha: float = 0.5

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/gibbs_ringing.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("alpha", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_gibbs_ringing(Operation):
    """gibbs_ringing with alpha uniform in `alpha`, the same for all channels with `one_alpha`, for some channels, each with
    probability channel_probability.
    Errors: those of gibbs_ringing, alpha not from low to high, channel_probability not in [0, 1].
    Source: MONAI RandGibbsNoise."""

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
    """y = x + Re(D exp(2 pi i sum of k j / N)) / V: one frequency of the discrete Fourier transform X of the patch gets a
    new magnitude in its own phase (phase 0 where it is 0) and the real part is taken back, D the difference. `location`
    is its array index (z, y, x) with frequency 0 at N / 2, so k = location - N / 2; N are the extents, V the voxels, j
    the index of a voxel. The new magnitude is exp(intensity), or, where `relative`, exp(intensity m), m the mean over
    all frequencies of ln(|X| + 1e-10); log-magnitudes above 80 count as 80. A voxel that is not finite makes the whole
    channel so.
    Errors: a location outside the patch, an intensity that is not finite, a patch of more than 2048 voxels along an
    axis. Source: MONAI KSpaceSpikeNoise, whose rounding of every other magnitude is left out."""

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
    """kspace_spike at any frequency alike and of an intensity uniform in `intensity`, for every channel its own or, with
    `one_spike`, the same; for some channels, each with probability channel_probability.
    Errors: those of kspace_spike, intensity not from low to high, channel_probability not in [0, 1].
    Source: MONAI RandKSpaceSpikeNoise: 2.5 times .95 to 1.1 times the mean of the log-magnitudes."""

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
    """Some channels, each with probability channel_probability, shown as if acquired with fewer voxels: taken down to
    round(n zoom) voxels along each axis (ties to even) by `pick`, and back up linearly (torch interpolate, align_corners
    = False). The zoom is drawn uniformly from `zoom` for every channel, the same along the axes in `axes`; others keep
    their resolution. nnU-Net v2: (zoom=(.5, 1), channel_probability=.5, probability=.25); dummy 2D: axes =
    (False, True, True). Errors: zoom not from low to high or not in (0, 1], channel_probability not in [0, 1], a patch
    of more than 16384 voxels along an axis. Source: batchgeneratorsv2 SimulateLowResolutionTransform."""

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
    """y = the median of the 3 x 3 x 3 voxels about x. On a patch of one slice that is the median of 3 x 3.
    Source: scipy.ndimage.median_filter (size 3, mode reflect)."""

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/filter/median.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
    )


@dataclass(frozen=True, kw_only=True)
class random_median_filter(Operation):
    """median_filter of some channels, each with probability channel_probability.
    Errors: channel_probability not in [0, 1]."""

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
    """y = x + amount (x - G(sigma) x), G the blur of gaussian_blur; sigma in voxels of the patch (z, y, x).
    MONAI GaussianSharpen(sigma1, sigma2, alpha) is gaussian_blur(sigma=sigma1, kernel="monai") |
    sharpen(sigma=sigma2, amount=alpha, kernel="monai").
    Errors: an amount that is not finite; those of gaussian_blur. Source: skimage.filters.unsharp_mask."""

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
    """sharpen of some channels, each with probability channel_probability, by a sigma and an amount drawn uniformly for
    every channel.
    Errors: sigma or amount not from low to high, channel_probability not in [0, 1]; those of gaussian_blur."""

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
    """affine_matrix: the primitive under all conventions. x_in = c + linear (x_out - c) + translation in voxels, with
      c = (N - 1) / 2, or 0 where about_center is false (then it is matrix and offset of scipy.ndimage.affine_transform).
    The content moves, the grid stays. Errors: a matrix that is singular or not finite."""

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
    """affine: rotation, scale, shear and translation about the image center; see affine_convention for what they mean.
      The content moves, the grid stays. Angles in degrees; multiples of 90 are exact.
    Errors: a scale that is not positive, a shear that makes the map singular, a parameter the convention does not have."""

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
    """random_affine: an affine whose parameters are uniform in the ranges given (fifteen slots: three angles, three scales,
      six shears, three translations; drawn whatever the ranges are). isotropic_scale takes one scale for all axes.
      Ranges read as `axis_ranges` says: `rotate_deg=15`, `scale=(.85, 1.25)`, `translate=(0, 10, 10)`.
      A 2D image (an axis of a single voxel) stays in its plane: angles, shears and translations that would take it out
      are 0. The itk and torchio conventions turn about axes of the patient and are not held back.
    Errors: an empty or infinite range, a scale range that reaches 0, different scale ranges where isotropic; as affine."""

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
    """crop: the box of `size` voxels that begins at input index `start`.
      out(i) = in(start + i); voxels along (z, y, x); physical positions are kept (the origin moves).
    Errors: a size that is not positive, a box that leaves the volume."""

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
    """center_crop: the box of `size` voxels in the middle, start = floor(N / 2) - floor(size / 2).
    Source: MONAI CenterSpatialCrop, nnU-Net v2 (the same start). Errors: as crop."""

    size: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/crop.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("size", "extent3"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class random_crop(Operation):
    """random_crop: a box of `size` voxels, its start uniform over the integers 0 .. N - size along each axis
    (three slots, z first). Evaluation takes the center crop. Errors: as crop."""

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
    """crop_at: sample i of the batch keeps the box of `size` voxels that begins at input index starts[i].
      out(p) = in(starts[i] + p); voxels along (z, y, x); physical positions are kept (the origin moves).
      The starts are read while the pipeline is planned and never again: the plan keeps those of its samples, and so does
      its record (replay/json.hpp). Where `may_leave` is set a box may leave the volume, wholly even, and the border rule
      of the pipeline's sampling fills what lies outside (nnU-Net's loader, see oversampled_patch).
    Errors: a size that is not positive, not one start for each sample, a box that leaves the volume without `may_leave`."""

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
    """elastic: one free-form deformation, x_in = x_out + u(x_out); the content moves, the grid stays.
      Control points stand control_spacing_mm apart (rounded so that a whole number of cells, at least one, fills the
      volume: floor(extent / spacing + 1/2) of them), or are control_points (>= 4) in number along each axis; their
      displacements are uniform in +-max_displacement_mm along each array axis and act as B-spline coefficients
      (approximating, no prefilter).
      The outer locked_borders layers do not move; an axis of too few control points to leave one free is not locked.
      An axis of a single voxel (a 2D image) is neither bent nor bent along: it has one cell, whatever its spacing.
      control_values are displacements that are given instead of drawn: millimeters along the array axes, (component, z,
      y, x) with x fastest, components in the order z, y, x, three for each of control_points, which then have to be
      stated. They lie in the memory of the executor that runs, which reads them when it runs (and on the host where
      points are moved there). They are held to +-max_displacement_mm, by which folding is judged and room is kept: state
      their largest magnitude. NaN is 0. The locked_borders layers are not moved by them either: 0 uses all.
    Right of what turns or shears its columns share their sums over control points, which is several times as fast.
    Folding: with cells of d mm along an axis, displacements up to 0.40 d (2D: 0.48 d) can never fold space (Choi and Lee
      2000: 0.4033 and 0.4887); beyond that the operation is refused, unless allow_folding is set, or limit_to_safe,
      which takes that much and no more along each axis: for batches of volumes of which some are thin.
    Errors: a spacing that is not positive, a negative displacement, control points fewer than 4 or more than 2^20 along
      an axis, a displacement that may fold, control_values of another number than three for each control point or beside
      limit_to_safe; by `plan`, more than 2^24 control points in all.
    Source: ITK BSplineTransform; TorchIO v1 RandomElasticDeformation (which locks only two of the axes)."""

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
    """random_elastic: an elastic whose control displacements are drawn anew (no slot: they come from the field of purpose
      3, element ((k n_z + z) n_y + y) n_x + x for component k at control point (z, y, x)). Fields and errors as elastic."""

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
    """flip: reverses the array axes set in `axes`, (z, y, x): out(i) = in(N - 1 - i).
      The array is mirrored, the physical place of every voxel is kept: origin and direction follow (as MONAI Flip and
      nibabel do). Errors: none."""

    axes: AxisFlags = False

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/flip.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("axes", "flags3"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class random_flip(Operation):
    """random_flip: reverses each array axis with its own probability, (z, y, x), independently (three slots).
      Source: nnU-Net v2 MirrorTransform (0.5 each). Errors: an axis probability outside [0, 1]."""

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
    """identity: out(i) = in(i). For a place in a pipeline that must hold some geometry operation. Errors: none."""

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/identity.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class orient(Operation):
    """orient: flips and reorders the array axes so that they run as closely as possible in the anatomical directions of
      `to`. Its three letters name where the x, y and z index (fastest first, as NIfTI, ITK and 3D Slicer list them)
      increases towards: R or L, A or P, S or I, one of each pair. Each array axis is matched to the nearest patient
      axis, the best match first; nothing is interpolated, so an oblique image stays oblique. The physical place of every
      voxel is kept. Physical positions are LPS millimeters, as in DICOM and ITK (see grid_from_itk). Source: nibabel
      io_orientation, MONAI Orientation. Errors: other letters, a direction named twice."""

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
    """pad: `before` voxels in front of and `after` voxels behind the input along each axis, (z, y, x).
      out(i) = in(i - before); physical positions are kept (the origin moves).
    Errors: negative widths, an output too large for a grid."""

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
    """pad_to: to at least `size` voxels, (z, y, x); axes already as large stay. Of the d missing voxels floor(d / 2) go in
      front and the rest behind. Source: MONAI SpatialPad(method="symmetric"), nnU-Net pad_nd_image.
    Errors: negative sizes, an output too large for a grid."""

    size: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/pad.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("size", "extent3"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class crop_or_pad(Operation):
    """crop_or_pad: to exactly `size` voxels, (z, y, x), along each axis as center_crop or as pad_to does.
      Source: MONAI ResizeWithPadOrCrop. Errors: sizes that are not positive, an output too large for a grid."""

    size: AxisIntegers = 0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/pad.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("size", "extent3"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class permute(Operation):
    """permute: output axis k is input axis order[k], as numpy.transpose; 0, 1, 2 are z, y, x.
      The physical place of every voxel is kept: spacing and direction follow. Errors: an order that is no permutation."""

    order: AxisOrder = ("z", "y", "x")

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/permute.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("order", "axis_order"),
    )
    _gives_size: ClassVar[str] = "alike"


@dataclass(frozen=True, kw_only=True)
class random_scale(Operation):
    """random_scale: the scale of `affine` alone, one factor for all axes in `axes`, drawn from `range` by `law` (two
      slots). Whether a factor above 1 enlarges or shrinks the content is the convention's: suture enlarges, nnunet and
      monai shrink.
    Errors: range not positive, not from low to high, or unfit for its law; as affine."""

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
    """resample: to a voxel spacing in millimeters, (z, y, x); 0 keeps the spacing of that axis.
      The map decides size, spacing and place of the output (see coordinate_map). `extents`, where not 0, replaces the
      size the map would choose.
    Errors: a negative spacing, an output of no voxels, an output too large for a grid."""

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
    """resize: to a number of voxels, (z, y, x); 0 keeps an axis. The map is half_pixel or align_corners.
    Errors: negative extents, another map, an output too large for a grid."""

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
    """resample_to: onto another image's grid, through physical space: x_in = A_in^-1 (A_target x_out), oblique included.
    Source: ITK ResampleImageFilter with the identity transform. Errors: a target that is no valid grid."""

    target: Grid | Volume

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/geometry/resample.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("target", "grid"),
    )
    _gives_size: ClassVar[str] = "fixed"


@dataclass(frozen=True, kw_only=True)
class rot90(Operation):
    """rot90: quarter_turns turns by 90 degrees from the first of `axes` towards the second, as numpy.rot90; any integer.
      One turn: out(i, j) = in(j, N_second - 1 - i). The physical place of every voxel is kept: origin, spacing and
      direction follow (as MONAI Rotate90 does). Errors: axes that are not two different ones of 0, 1, 2."""

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
    """random_rot90: 1 to max_quarter_turns turns, each as likely (one slot). Where the two extents differ an odd number of
      turns changes the shape of the output; crop to a cube-shaped patch first for outputs of one shape.
      Source: MONAI RandRotate90 (max_k = 3). Errors: max_quarter_turns outside 1 .. 3; as rot90."""

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
    """one_hot: for labels(convert=one_hot(classes=n)): channel k of the output is 1 where the label is k and 0
      elsewhere, k = 0 .. n - 1; without `background` the channels are the labels 1 .. n - 1. One channel in, any element
      type out (targets of a loss). A label outside 0 .. n - 1, an ignore label too, is 0 in every channel; such voxels
      are not counted here (label_classes and count_classes do).
      ignore: where set, one channel more, the last, 1 where the label is `ignore`.
    Errors: classes outside 1 .. 65534, no channel left, `ignore` within 0 .. n - 1 or not of the input's type."""

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
    """regions: for labels(convert=regions(...)): channel k of the output is 1 where the label is in sets[k] and 0
      elsewhere. One channel in, as many out as there are sets; any element type (targets of a loss).
      ignore: where set, one channel more, the last, 1 where the label is `ignore` (nnU-Net); the regions are 0 there.
        Where not set, an ignore label is in no region, so 0 in all.
    Errors: no set, more than 32 channels, more than 64 different labels, an empty set, `ignore` in a set, a label not
      of the input's type."""

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
    """remap: for labels(convert=remap(...)): a label named in the table is stored as its `to`, any other as `others`, or
      as itself where `others` is not set.  remap(table={-1: 0}) stores -1 as 0 (nnU-Net RemoveLabel).
      The output may have another element type. An ignore label is a label like any other: kept unless the table or
      `others` says otherwise.
    Errors: more than 64 changes, a label twice in the table or not of the input's type, a `to` or `others` that the
      output does not hold, labels kept in an output that does not hold every label of the input's type."""

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
    """y = (x / white - mean) / standard_deviation, channel by channel. Linear: no value is limited; NaN stays NaN.
    Errors: a mean that is not finite, a deviation or white that is not positive. Source: torchvision Normalize."""

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
    """The four steps of torchvision's ColorJitter, in `order`, each limited to [0, white]:
      brightness   x brightness
      contrast     x contrast + (1 - contrast) g, with one gray g for all pixels
      saturation   x saturation + (1 - saturation) gray(x)
      hue          turned by `hue` of a full turn; grays stay
    gray is .299 R + .587 G + .114 B. Torchvision's g is the mean gray of the image as the step finds it. Here it is
    `pivot` or, where `fitted` holds any, the mean gray by what fit_moments left for the three channels of each sample
    (results as for z_score with 3 channels; an empty fit counts as `pivot`); times `brightness` if that step came first.
    That is torchvision's g unless a step before contrast met the limits or was a turn of the hue.
    Values outside of [0, white] are brought to its ends first, NaN to 0.
    Errors: results for some samples only, a factor below 0, hue outside of [-1/2, 1/2], a step twice in the order,
    white not positive. Source: torchvision adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue."""

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
    """color_jitter with each parameter drawn uniformly from its range; where `random_order`, in one of the 24 orders, each
    as likely, as torchvision's ColorJitter does. Torchvision's brightness b is (1 - b, 1 + b) here, its hue h (-h, h).
    Errors: a range not from low to high; those of color_jitter."""

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
    """All three channels become the gray of the color. Linear, so any range of values will do and none is limited; NaN
    stays NaN. pillow is exact for the whole values of uint8."""

    rule: Literal["itu601", "itu709", "pillow"] = 'itu601'

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/stain/grayscale.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("rule", "choice:gray_rule"),
    )


@dataclass(frozen=True, kw_only=True)
class random_grayscale(Operation):
    """grayscale for some of the samples."""

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
    """Concentration k becomes alpha[k] s + beta[k], for hematoxylin, eosin and DAB. In [0, white]: values outside are
    brought to its ends first, NaN to 0, and so is the result. With alpha 1 and beta 0 a color that the three stains can
    make stays as it is; modern brings any other to one they can. Errors: a number that is not finite, white not
    positive. Source: Tellez et al. 2018; scikit-image rgb2hed, hed2rgb."""

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
    """hed_jitter with alpha and beta drawn uniformly, for each stain on its own. Published strengths are in units of
    tellez_plus2: light is alpha (.95, 1.05) and beta (-.05, .05), strong (.8, 1.2) and (-.2, .2); in modern units a beta
    of .05 is .7 of optical density. The limits on a patch's mean brightness of some implementations are left out.
    Errors: a range not from low to high; those of hed_jitter. Source: Tellez et al. 2018, 2019."""

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
    """hue is added, in turns; saturation and value move towards 1 by their share of the way there, or where negative
    towards 0: s + (1 - s) saturation or s (1 + saturation). In [0, white]: values outside are brought to its ends first,
    NaN to 0. Grays gain saturation too, towards red; white moves as any color.
    Errors: hue outside of [-1, 1], saturation or value outside of [-1, 1], white not positive.
    Source: Tellez et al. 2019, pathology-he-auto-augment."""

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
    """hsv_jitter with each share drawn uniformly from its range. Published: light .1, strong .5 to 1 either way.
    Errors: a range not from low to high or outside of [-1, 1]; those of hsv_jitter."""

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
    """Red, green and blue of H&E tiles through optical density: od = -ln(I / white) by the rule of the fit, concentrations
    of the tile's own stains c, each times reference maximum / tile maximum, and back with the stains of the reference,
      I' = min(white exp(-reference c'), 255),
    in the units of the image. `fitted` is one result of fit_macenko per sample of the batch, or with `shared` a single
    one for all (a fit `together`), in the memory of whichever executor runs; it is read when the pipeline runs. A tile
    the fit left `unchanged` keeps its colors. What exceeds 255 becomes `over`. Not a number stays. Errors: no result
    for a sample, other than one with `shared`, stains that were never fitted (on the CPU, when it runs), `over` not in
    [0, 255], a reference that cannot be inverted; images without three channels. Source: Macenko et al. 2009; the named
    modes of macenko_modes.hpp say whose arithmetic they follow."""

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
    """Reinhard's normalization in a color space: each sample from its own mean and deviation, which fit_color_moments
    left in `fitted` (one result per sample, in the memory of whichever executor runs, read when the pipeline runs), to
    those of `target`; either may be stated. A channel without deviation is moved and not scaled; an empty fit leaves
    the sample as it is. In [0, white]: values outside are brought to its ends first, NaN to 0, and so is the result.
    Errors: no result for a sample, a target that is empty, not finite or of negative deviation, white not positive.
    Source: Reinhard et al. 2001 (ruderman); StainTools, TIAToolbox, torchstain (lab)."""

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
    """Concentrations c, the least-squares solution of basis c = d for the optical densities d = -ln(max(x, white / 255) /
    white), become alpha c + beta. The basis is that of the tile, by what fit_macenko left in `fitted` (one result per
    sample, or with `shared` one for all, in the memory of whichever executor runs, read when the pipeline runs), or
    where that is empty `basis`. What the two stains do not explain is kept, so that alpha 1 and beta 0 leave a color as
    it is; with `keep_rest` false it is dropped, as other libraries do. Pixels of a mean optical density below
    `tissue_density` are glass and stay as they are (0: all are tissue), as does a tile the fit left `unchanged`. In [0,
    white]: values outside are brought to its ends first, NaN to 0, and so is the result. Errors: results for some
    samples only, other than one with `shared`, stains that were never fitted (on the CPU, when it runs), a number that
    is not finite, a basis that cannot be inverted, a density below 0, white not positive. Source: StainTools and
    TIAToolbox StainAugmentor, torchstain MacenkoAugmentor."""

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
    """stain_jitter with alpha and beta drawn uniformly, for each stain on its own.
    Errors: a range not from low to high; those of stain_jitter."""

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
    """RandStainNA: reinhard to a target whose means and deviations are drawn from `table`, each on its own, by a law about
    its mean: normal or laplace with its standard deviation (as the scale of laplace) times 1 + widen, or uniform within
    three of them. A deviation drawn below 0 counts by its magnitude. For hed and hsv there is no published table, and
    the stretch of hed to the whole range that the original adds is left out.
    Errors: a table that is not finite or of negative deviations, widen not above -1; those of reinhard.
    Source: Shen et al. 2022, RandStainNA."""

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
    """y = x exp(sum of c_ijk P_i(Z) P_j(Y) P_k(X)): Z, Y and X go from -1 at the first voxel of an axis of the grid to 1 at
    the last and are 0 on an axis of one voxel; P by the basis. The coefficients stand in the published order:
      i + j + k <= degree, i outermost and k innermost: 4, 10, 20, 35, 56 of them for degree 1 .. 5
      legendre in a plane (one voxel along z): P_j(Y) P_k(X) with k <= j <= degree, j outermost: 3, 6, 10, 15, 21. Their
      total degree reaches 2 degree; it is MONAI's rule.
    Those left out are 0. `extents` is the grid the operation stands on.
    Errors: a degree outside 0 .. 5, a coefficient that is not finite or beyond those of the degree, coefficients whose
    magnitudes add up to more than 80 (the field would leave the range of float), extents that are not positive.
    Source: MONAI RandBiasField, TorchIO v1 BiasField; Van Leemput et al. 1999."""

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
    """bias_field over the grid it stands on, one for all channels, each coefficient drawn uniformly from `coefficients`.
    `(coefficients=(-.5, .5), basis="monomial")` is TorchIO's.
    Errors: coefficients not from low to high; those of bias_field, whatever was drawn."""

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
    """y = x + offset, in the units of the image. MONAI ShiftIntensity.
    Errors: an offset that is not finite."""

    offset: float

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/brightness.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("offset", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class brightness_factor(Operation):
    """y = x factor. MONAI ScaleIntensity(factor = factor - 1); nnU-Net MultiplicativeBrightness.
    Errors: a factor that is not finite."""

    factor: float

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/brightness.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("factor", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class random_brightness(Operation):
    """brightness with an offset drawn uniformly from `range`, one for all channels.
    Errors: range not from low to high, a number that is not finite."""

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
    """brightness_factor with a factor drawn from `range`, one for all channels. nnU-Net: law mixture.
    Errors: range not from low to high, or unfit for its law, a number that is not finite."""

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
    """y = min(max(x, low), high); NaN becomes low. Values in the units of the image.
    Errors: low above high, a bound that is NaN."""

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
    """Voxels in any of `count` boxes read `fill`: one value, or (low, high) for one drawn uniformly per voxel and channel
    from `field`. With `keep_holes` it is the voxels outside all of them. Boxes are voxels of the grid the operation
    stands on and may reach beyond it.
    Errors: a count outside 0 .. 32, a negative size, fill not from low to high, a number that is not finite."""

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
    """coarse_dropout with boxes drawn for each sample, the same for all channels: their number from `holes`, the size of
    each along each axis uniform between `size` and `max_size`, the place uniform among those inside the grid. Sizes are
    voxels; 0 is the whole axis, a `max_size` of 0 is `size`, and along an axis shorter than a size the box takes it
    whole. With `may_leave` the center is any voxel, and what of the box lies outside is cut off.
    Errors: holes outside 0 .. 32, a negative size, size above max_size; those of coarse_dropout.
    Source: MONAI RandCoarseDropout; Cutout, DeVries and Taylor 2017 (`may_leave`)."""

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
    """y = (x - pivot) factor + pivot. The pivot is in the units of the image; 0 suits z-scored images.
    Errors: a number that is not finite."""

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
    """contrast with a factor drawn from `range`.
    Errors: range not from low to high, or unfit for its law; those of contrast."""

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
    """y = (min(max(x, lower), upper) - mean) / max(standard_deviation, 1e-8), in units of the deviation: all values of the
    cohort's foreground, the bounds its percentiles 0.5 and 99.5 (cohort_fingerprint in fit/fingerprint.hpp). NaN becomes
    that of lower.
    Errors: a number that is not finite, lower above upper, a negative deviation. Source: nnU-Net CTNormalization."""

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
    """y = sign(n) |n|^exponent (high - low) + low with n = (x - low) / (high - low), [low, high] = range. Both ends stay
    where they are; values below the range keep their sign, as in TorchIO RandomGamma, values above follow the curve on.
    Above 1 the exponent darkens, below 1 it brightens, and 1 changes nothing. The range is in the units of the image.
    Inside it the power is right to 2^-23.5, outside to 3.6 ulp; one beyond float is infinite.
    Errors: exponent not above 0, range not from low to high, a number that is not finite."""

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
    """gamma with an exponent drawn from `range`; `value_range` is what the curve leaves in place.
    Errors: range not positive or not from low to high, a range without 1 for the law mixture; those of gamma."""

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
    """Adds noise of standard deviation `sigma`, in the units of the image: one number, or an interval to draw it from
    uniformly for each sample. `= (0, .1)` is nnU-Net's (its "noise variance" is a standard deviation) and MONAI's
    RandGaussianNoise(std = .1).
    Errors: sigma below 0 or not from low to high, a number that is not finite."""

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
    """The piecewise linear map that fit_landmarks left for the sample and channel: its percentiles go to their targets,
    straight lines between them, and the first and last line on beyond. `fitted` and `channels` as for z_score; N as in
    the fit. An empty fit leaves values as they are. NaN stays NaN.
    Errors: no results for a sample, channels below 1 or not those of the image. Source: Nyul and Udupa 1999, TorchIO
    HistogramStandardization."""

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
    """The curve through `count` control points: the one that is k / (count - 1) of the way from range.low to range.high
    goes to floating[k] of the way, straight lines between. Values outside the range stay as they are, NaN too. The range
    is in the units of the image. Errors: a count outside 2 .. 32, control points that do not rise from 0 to 1 (equal
    ones may follow each other), a range whose extent is not a normal float, a number that is not finite. Source: MONAI
    RandHistogramShift."""

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
    """histogram_shift with a number of control points from `control_points`, the inner ones moved one after the other: each
    uniformly between where the one before went and where the one behind still is. `value_range` is what stays in place.
    Errors: control points outside 3 .. 32; those of histogram_shift."""

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
    """y = 2 pivot - x: values mirrored at the pivot. 0 changes the sign, 0.5 swaps the ends of [0, 1].
    Errors: a pivot that is not finite."""

    pivot: float = 0.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/invert.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("pivot", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class limit_to_range(Operation):
    """y = min(max(x, low), high) by the intensity_range of the sample and channel; `fitted` and `channels` as for z_score.
    Right of the geometry, with what fit_range left of the source, it keeps a cubic interpolation from overshooting: no
    voxel of the output lies outside minimum and maximum of its source. Where value operations stand left of the
    geometry, the range is that of what they make. An empty fit limits nothing. NaN becomes low.
    Errors: no results for a sample, channels below 1 or not those of the image. Source: scikit-image resize (clip),
    nnU-Net."""

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
    """Contrast about the mean by a factor drawn from `range`, for each channel or, with one_factor, for all.
    nnU-Net v2: (law="mixture", probability=.15).
    Errors: range not from low to high, or unfit for its law. Source: batchgeneratorsv2 ContrastTransform."""

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
    """Applies the curve of patch_gamma with an exponent drawn from `range`, for each channel or, with one_exponent, for
    all. nnU-Net v2: (law="mixture", invert=True, probability=.1), then once more without invert
    and with probability=.3. Errors: range not positive or not from low to high, or unfit for its law. Source:
    batchgeneratorsv2 GammaTransform."""

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
    """y = (x - mean) / deviation by the mean and deviation (ddof 0) of each channel of the patch as it is at this point of
    the chain; a deviation of 0 divides by 1, one below 2^-127 by that. NaN, which is not counted, becomes `nan`, or
    stays where that is not set:
      exclude(value=0) | patch_z_score(nan=0)
    is MONAI NormalizeIntensity(nonzero = True, channel_wise = True)."""

    nan: float = NAN

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/patch_z_score.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("nan", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class exclude(Operation):
    """Voxels of `value` become NaN, which statistics of the patch do not count.
    Errors: a value that is not finite."""

    value: float = 0.0

    _random: ClassVar[bool] = False
    _header: ClassVar[str] = "ops/value/patch_z_score.hpp"
    _fields: ClassVar[tuple[tuple[str, str], ...]] = (
        ("value", "float32"),
    )


@dataclass(frozen=True, kw_only=True)
class percentile_scale(Operation):
    """y = (x - low) / (high - low) (b_max - b_min) + b_min by what fit_range left for the sample and channel, clipped to
    [b_min, b_max] unless told otherwise. `fitted` and `channels` as for z_score. A constant sample becomes b_min; an
    empty fit stands for [0, 1]. NaN becomes b_min, unclipped it stays NaN.
    Errors: no results for a sample, channels below 1 or not those of the image, b_min not below b_max, a number that is
    not finite. Source: MONAI ScaleIntensityRangePercentiles."""

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
    """percentile_scale by minimum and maximum, fit_range with its defaults: y = (x - min) / (max - min) (b_max - b_min) +
    b_min, limited to [b_min, b_max] against rounding and values that were not selected. Errors: those of
    percentile_scale. Source: MONAI ScaleIntensity, nnU-Net RescaleTo01Normalization."""

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
    """Poisson noise of `counts` photons where the image reads 1, a number, or an interval to draw it from for each sample:
    the deviation at x is sqrt(x / counts). The image must read 0 where nothing is counted, so apply it before a z-score.
    Errors: counts not positive or not from low to high, a range without 1 for the law mixture, a number that is not
    finite or whose reciprocal is not."""

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
    """y = slope x + intercept: stored CT values to HU, by Rescale Slope and Rescale Intercept (DICOM PS3.3 C.11.1).
    Errors: slope 0, a number that is not finite."""

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
    """The magnitude of a complex image of real value x after noise of standard deviation `sigma` in both parts, in the
    units of the image; sigma is one number, or an interval to draw it from uniformly for each sample. The result is
    never negative, so apply it before a z-score. MONAI RandRicianNoise.
    Errors: sigma below 0 or not from low to high, a number that is not finite."""

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
    """y = (x - a_min) / (a_max - a_min) (b_max - b_min) + b_min, with `clip` limited to [b_min, b_max] (NaN then becomes
    b_min). a in the units of the image. MONAI ScaleIntensityRange; its special case a_min == a_max is an error here.
    Errors: a_min == a_max, with `clip` also a_min above a_max or b_min not below b_max, a number that is not finite."""

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
    """Maps the window about `center` onto [low, high], in the units of the image (HU for CT):
      linear_exact   c = center, w = width           (C.11.2.1.3.2); width > 0
      linear         c = center - 1/2, w = width - 1 (C.11.2.1.2);   width >= 1
      y = low if x <= c - w/2; high if x > c + w/2; else ((x - c) / w + 1/2) (high - low) + low
    linear with width 1 is the step at center - 1/2. linear_exact is clip((x - a) / (b - a)) with a = center - width/2
    and b = center + width/2. NaN becomes low. Errors: a width below its limit, low not below high, a number that is not
    finite."""

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
    """y = (high - low) / (1 + exp(-4 (x - center) / width)) + low: the VOI LUT function SIGMOID of DICOM PS3.3
    C.11.2.1.3.1. Errors: width not above 0, low not below high or too far from it, a number that is not finite."""

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
    """y = (x - mean) / max(standard_deviation, 1e-8) by what fit_moments left for the sample and channel, with its ddof;
    where `nonzero`, voxels of value 0 stay 0. Whichever executor runs, `fitted` lies in its memory: one result per
    sample of the batch and channel, channel fastest, or with channels = 1 one per sample (a pooled fit). It is read when
    the pipeline runs, so the fit may be queued ahead on the same stream. An empty fit leaves values as they are. NaN
    stays NaN. Errors: no results for a sample, channels below 1 or not those of the image, results that were neither
    fitted nor stated (on the CPU, when it runs; on a device they leave values as they are). Source: nnU-Net
    ZScoreNormalization, MONAI NormalizeIntensity."""

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
