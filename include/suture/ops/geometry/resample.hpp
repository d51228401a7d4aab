// SPDX-License-Identifier: Apache-2.0
// Resampling to a spacing, to a size, or onto another image's grid.
#pragma once

#include <cmath>

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"

namespace suture {

// Alignment of output voxels with input voxels along one axis; N voxels of spacing s, i input, o output.
//   name               input index of output index x        output voxels                    output spacing
//   half_pixel         (x + 1/2) N_i / N_o - 1/2            round(s_i / s_o * N_i)           N_i s_i / N_o
//   align_corners      x (N_i - 1) / (N_o - 1)              round((N_i - 1) s_i / s_o + 1)   (N_i - 1) s_i / (N_o - 1)
//   origin_preserving  x s_o / s_i                          round((N_i - 1) s_i / s_o + 1)   s_o
//   center_preserving  (x - (N_o-1)/2) s_o/s_i + (N_i-1)/2  floor(N_i s_i / s_o), 1 stays 1  s_o
//   physical           (x + 1/2) s_o / s_i - 1/2            round(s_i / s_o * N_i)           s_o
// round is half to even. half_pixel and physical keep the outer edge of voxel 0; half_pixel fits the last edge as well
// and so changes the spacing by up to 1/(2 N_o), physical keeps the spacing asked for. align_corners keeps the centers
// of the first and last voxel (an axis of one output voxel takes voxel 0 at the input's spacing).
// Sources: half_pixel is nnU-Net, torch interpolate(align_corners=False), skimage resize; align_corners is torch and
// scipy zoom; origin_preserving is MONAI Spacing; center_preserving is TorchIO Resample; physical is the ITK resample
// filter given that output grid.
enum class coordinate_map { half_pixel, align_corners, origin_preserving, center_preserving, physical };

namespace detail {

// Returns the number of output voxels along one axis by the rule of the map; a double because it may not fit any
// integer.
inline double resampled_extent(coordinate_map map, double voxels, double from_mm, double to_mm) {
  switch (map) {
    case coordinate_map::align_corners:
    case coordinate_map::origin_preserving:
      return std::nearbyint(fma(voxels - 1, from_mm / to_mm, 1.0));
    case coordinate_map::center_preserving:
      return voxels == 1 ? 1 : std::floor(voxels * from_mm / to_mm);
    case coordinate_map::half_pixel:
    case coordinate_map::physical:
      break;
  }
  return std::nearbyint(from_mm / to_mm * voxels);
}

// Returns the step of the resampling of `input` to `extents` voxels; spacing_mm is used by the maps that keep the
// spacing asked for.
inline geometry_step resample_step(const grid& input, coordinate_map map, const extent3& extents,
                                   const point3& spacing_mm, const site& where) {
  geometry_step result{input, affine_map{}};
  result.output.extents = extents;
  for (int k = 0; k < 3; ++k) {
    require(extents[k] <= 2097152, where, "extents ", extents, " exceed 2097152 along an axis");
    const auto from = static_cast<double>(input.extents[k]), to = static_cast<double>(extents[k]);
    const double ratio = spacing_mm[k] / input.spacing[k];
    double slope = ratio, offset = 0, spacing = spacing_mm[k];
    switch (map) {
      case coordinate_map::half_pixel:
        slope = from / to;
        offset = fma(0.5, slope, -0.5);
        spacing = from * input.spacing[k] / to;
        break;
      case coordinate_map::align_corners:
        require(from > 1 || to == 1, where, "align_corners cannot spread one voxel over ", extents[k], " along axis ",
                k, "; use half_pixel");
        slope = to == 1 ? 1 : (from - 1) / (to - 1);
        spacing = to == 1 ? input.spacing[k] : (from - 1) * input.spacing[k] / (to - 1);
        break;
      case coordinate_map::origin_preserving:
        break;
      case coordinate_map::center_preserving:
        offset = fma(-0.5 * (to - 1), ratio, 0.5 * (from - 1));
        break;
      case coordinate_map::physical:
        offset = fma(0.5, ratio, -0.5);
        break;
    }
    result.pull.linear[k][k] = slope;
    result.pull.offset[k] = offset;
    result.output.spacing[k] = spacing;
  }
  result.output.origin = input.index_to_physical()(result.pull.offset);
  return result;
}

}  // namespace detail

// resample: to a voxel spacing in millimeters, (z, y, x); 0 keeps the spacing of that axis.
//   The map decides size, spacing and place of the output (see coordinate_map). `extents`, where not 0, replaces the
//   size the map would choose.
// Errors: a negative spacing, an output of no voxels, an output too large for a grid.
struct resample {
  static constexpr std::string_view name = "resample";
  static constexpr auto gives_size = output_size::varying;
  static constexpr bool keeps_axes = true;
  static constexpr bool depends_on_grid_alone = true;

  point3 spacing_mm{1, 1, 1};
  coordinate_map map = coordinate_map::half_pixel;
  extent3 extents{0, 0, 0};

  static constexpr auto parameters =
      named("spacing_mm", &resample::spacing_mm, "map", &resample::map, "extents", &resample::extents);

  geometry_step step(const grid& input, const site& where) const {
    extent3 size{};
    point3 target{};
    for (int k = 0; k < 3; ++k) {
      require(std::isfinite(spacing_mm[k]) && spacing_mm[k] >= 0, where, "spacing_mm ", spacing_mm,
              " must be positive, or 0 to keep an axis");
      require(extents[k] >= 0, where, "extents ", extents, " must not be negative");
      target[k] = spacing_mm[k] > 0 ? spacing_mm[k] : input.spacing[k];
      const double voxels =
          detail::resampled_extent(map, static_cast<double>(input.extents[k]), input.spacing[k], target[k]);
      require(extents[k] > 0 || voxels >= 1, where, "spacing_mm ", spacing_mm, " leaves no voxel of the volume ",
              input.extents, " with spacing ", input.spacing);
      require(extents[k] > 0 || voxels <= 2097152, where, "spacing_mm ", spacing_mm, " makes ", voxels,
              " voxels along axis ", k, "; at most 2097152 are possible");
      size[k] = extents[k] > 0 ? extents[k] : static_cast<std::int64_t>(voxels);
    }
    return detail::resample_step(input, map, size, target, where);
  }
};

// resize: to a number of voxels, (z, y, x); 0 keeps an axis. The map is half_pixel or align_corners.
// Errors: negative extents, another map, an output too large for a grid.
struct resize {
  static constexpr std::string_view name = "resize";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = true;
  static constexpr bool depends_on_grid_alone = true;

  extent3 extents{0, 0, 0};
  coordinate_map map = coordinate_map::half_pixel;

  static constexpr auto parameters = named("extents", &resize::extents, "map", &resize::map);

  geometry_step step(const grid& input, const site& where) const {
    require(map == coordinate_map::half_pixel || map == coordinate_map::align_corners, where,
            "the map must be half_pixel or align_corners: a size alone fixes no spacing");
    extent3 size{};
    for (int k = 0; k < 3; ++k) {
      require(extents[k] >= 0, where, "extents ", extents, " must not be negative");
      size[k] = extents[k] > 0 ? extents[k] : input.extents[k];
    }
    return detail::resample_step(input, map, size, input.spacing, where);
  }
};

// resample_to: onto another image's grid, through physical space: x_in = A_in^-1 (A_target x_out), oblique included.
// Source: ITK ResampleImageFilter with the identity transform. Errors: a target that is no valid grid.
struct resample_to {
  static constexpr std::string_view name = "resample_to";
  static constexpr auto gives_size = output_size::fixed;
  static constexpr bool keeps_axes = false;

  grid target;

  static constexpr auto parameters = named("target", required(&resample_to::target));

  geometry_step step(const grid& input, const site& where) const {
    check(target, where);
    return {target, input.physical_to_index() * target.index_to_physical()};
  }
};

}  // namespace suture
