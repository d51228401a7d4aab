// SPDX-License-Identifier: Apache-2.0
// The geometry of a whole-slide image: its levels and resolution, and which rectangle to read for a tile of a given
// resolution. Positions are in pixels of level 0, as in OpenSlide's read_region.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "../base/error.hpp"
#include "../base/vec.hpp"

namespace suture {

// A level of a slide.
//   downsample  pixels of level 0 per pixel of this level along an axis; 1 for level 0
struct slide_level {
  std::int64_t height = 0, width = 0;
  double downsample = 1;
};

// The levels and the resolution of a slide.
//   levels  from the largest, level 0, to the smallest
//   mpp     micrometers per pixel of level 0
struct slide_layout {
  std::vector<slide_level> levels;
  double mpp = 0;
};

// Convert nominal objective magnification to resolution and back: 10x is 1 micrometer per pixel, 20x is 0.5, 40x is
// 0.25.
// Errors: a value that is not positive.
inline double mpp_of_magnification(double magnification) {
  require(std::isfinite(magnification) && magnification > 0, {"mpp_of_magnification"}, "magnification ", magnification,
          " must be positive");
  return 10 / magnification;
}
inline double magnification_of_mpp(double mpp) {
  require(std::isfinite(mpp) && mpp > 0, {"magnification_of_mpp"}, "mpp ", mpp, " must be positive");
  return 10 / mpp;
}

// A square to read: `size` pixels of `level` along y and x, from level-0 pixel (y, x) on, which may lie outside the
// slide. `scale` is the number of pixels of the level per pixel of the tile. It is 1 if the level's resolution differs
// from the wanted one by at most resolution_tolerance, as that of scanners does (.499 for .5 micrometers): such tiles
// are not resampled.
struct tile_region {
  std::int64_t y = 0, x = 0;
  std::int32_t level = 0;
  std::int64_t size = 0;
  double scale = 1;
};

namespace detail {

inline void check_slide(const slide_layout& slide, const site& where) {
  require(!slide.levels.empty(), where, "the slide has no levels");
  for (std::size_t i = 0; i < slide.levels.size(); ++i) {
    const slide_level& l = slide.levels[i];
    require(l.height > 0 && l.width > 0 && l.height <= (std::int64_t{1} << 30) && l.width <= (std::int64_t{1} << 30),
            where, "level ", i, " of ", l.height, " by ", l.width, " pixels; 1..2^30 expected");
    require(std::isfinite(l.downsample) && l.downsample >= 1, where, "downsample ", l.downsample, " of level ", i,
            " must be at least 1");
    require(i == 0 ? l.downsample == 1 : l.downsample > slide.levels[i - 1].downsample, where, "downsample ",
            l.downsample, " of level ", i, i == 0 ? " must be 1" : " does not exceed that of the level before");
  }
  require(std::isfinite(slide.mpp) && slide.mpp > 0, where, "mpp ", slide.mpp,
          " must be positive: the slide states no resolution");
}

inline void check_mpp(double mpp, const site& where) {
  require(std::isfinite(mpp) && mpp > 0, where, "mpp ", mpp, " must be positive");
}

// floor(v + 1/2)
inline std::int64_t round_half_up(double v) { return static_cast<std::int64_t>(std::floor(v + 0.5)); }

}  // namespace detail

// The relative difference up to which resolutions count as the same.
inline constexpr double resolution_tolerance = 0.01;

// Returns the level to read for a resolution: the coarsest whose pixels are at most (1 + tolerance) mpp, or level 0 if
// all are coarser. Tiles are then downsampled, not upsampled, wherever the slide allows.
// Errors: no levels, downsamples that do not increase from 1, mpp of the slide or wanted that is not positive.
inline std::int32_t level_for_mpp(const slide_layout& slide, double mpp, double tolerance = resolution_tolerance) {
  const site where{"level_for_mpp"};
  detail::check_slide(slide, where);
  detail::check_mpp(mpp, where);
  require(tolerance >= 0 && tolerance < 1, where, "tolerance ", tolerance, " is not in [0, 1)");
  const double most = fma(mpp, tolerance, mpp);
  std::int32_t level = 0;
  for (std::size_t i = 1; i < slide.levels.size(); ++i)
    if (slide.mpp * slide.levels[i].downsample <= most) level = static_cast<std::int32_t>(i);
  return level;
}

namespace detail {

// Returns how many level-0 pixels a tile of `size` pixels at `mpp` spans, as a real number.
inline double field_of(const slide_layout& slide, double size, double mpp) { return size * (mpp / slide.mpp); }

// Returns the region of a tile that begins at level-0 pixel (y, x). It has floor(size scale + 1/2) pixels of the level
// along an axis, at least 1, or `size` if the scale counts as 1.
inline tile_region region_at(const slide_layout& slide, std::int64_t y, std::int64_t x, std::int64_t size, double mpp) {
  const std::int32_t level = level_for_mpp(slide, mpp);
  const double scale = mpp / (slide.mpp * slide.levels[static_cast<std::size_t>(level)].downsample);
  if (std::abs(scale - 1) <= resolution_tolerance) return {y, x, level, size, 1};
  const auto pixels = static_cast<std::int64_t>(std::floor(fma(static_cast<double>(size), scale, 0.5)));
  return {y, x, level, pixels < 1 ? 1 : pixels, scale};
}

inline void check_tile_size(const slide_layout& slide, std::int64_t size, double mpp, const site& where) {
  require(size > 0 && size <= (std::int64_t{1} << 21), where, "tile size ", size, " must be in 1..2097152");
  require(field_of(slide, static_cast<double>(size), mpp) <= 0x1p30, where, "a tile of ", size, " pixels at ", mpp,
          " micrometers spans more than 2^30 pixels of level 0");
}

}  // namespace detail

// Returns the region of a tile of `size` pixels at `mpp` around a center, a continuous position in level-0 pixels where
// pixel i spans [i, i + 1]. It begins at floor(center - field / 2 + 1/2), where field = size mpp / slide.mpp.
// Errors: those of level_for_mpp, a size that is not positive, a center that is not finite.
inline tile_region region_about(const slide_layout& slide, double center_y, double center_x, std::int64_t size,
                                double mpp) {
  const site where{"region_about"};
  detail::check_slide(slide, where);
  detail::check_mpp(mpp, where);
  detail::check_tile_size(slide, size, mpp, where);
  for (const double c : {center_y, center_x})
    require(std::isfinite(c) && c >= -1e9 && c <= 1e9, where, "center (", center_y, ", ", center_x, ")");
  const double half = detail::field_of(slide, static_cast<double>(size), mpp) * 0.5;
  return detail::region_at(slide, detail::round_half_up(center_y - half), detail::round_half_up(center_x - half), size,
                           mpp);
}

// Returns the regions of concentric tiles of one size at several resolutions, in the order of `mpps`: {0.5, 1, 2} for
// 20x, 10x and 5x. Errors: those of region_about, no resolution.
inline std::vector<tile_region> context_regions(const slide_layout& slide, double center_y, double center_x,
                                                std::int64_t size, std::span<const double> mpps) {
  require(!mpps.empty(), {"context_regions"}, "no resolution is given");
  std::vector<tile_region> regions;
  for (const double mpp : mpps) regions.push_back(region_about(slide, center_y, center_x, size, mpp));
  return regions;
}

}  // namespace suture
