// SPDX-License-Identifier: Apache-2.0
// Values outside an image. index(i, n) returns the voxel that replaces index i, or -1 for the constant.
//
//   border    (n = 4)            SciPy          NumPy pad    PyTorch
//   constant  v v | 0 1 2 3 | v  grid-constant  constant     zeros (value 0)
//   edge      0 0 | 0 1 2 3 | 3  nearest        edge         border
//   reflect   1 0 | 0 1 2 3 | 3  reflect        symmetric    reflection, align_corners=False
//   mirror    2 1 | 0 1 2 3 | 2  mirror         reflect      reflection, align_corners=True
//   wrap      2 3 | 0 1 2 3 | 0  grid-wrap      wrap         -
//   default_value   v beyond the rim, nothing of it blended in; SciPy's constant, ITK's default pixel value
//
// `constant` blends with the image over one voxel at the rim. The value of `constant` and of default_value is in the
// units that are sampled, after the value operations that precede the geometry.
#pragma once

#include <cstdint>
#include <string_view>

#include "../base/config.hpp"
#include "../base/fields.hpp"
#include "interpolation.hpp"

namespace suture {

SUTURE_FN std::int32_t floor_modulo(std::int32_t i, std::int32_t n) {
  const std::int32_t r = i % n;
  return r < 0 ? r + n : r;
}
SUTURE_FN bool inside(std::int32_t i, std::int32_t n) {
  return static_cast<std::uint32_t>(i) < static_cast<std::uint32_t>(n);
}

struct constant {
  float value = 0;

  static constexpr std::string_view described_as = "border";
  static constexpr auto fields = named("value", &constant::value);
  static constexpr bool has_value = true;
  static constexpr int prefilter_padding = 12;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) { return inside(i, n) ? i : -1; }
};

namespace detail {
// Members of borders that continue an image by its own voxels.
struct voxel_border {
  static constexpr std::string_view described_as = "border";
  static constexpr auto fields = named();
  static constexpr bool has_value = false;
  static constexpr int prefilter_padding = 0;
};
}  // namespace detail

struct edge : detail::voxel_border {
  static constexpr int prefilter_padding = 12;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) {
    const std::int32_t low = i < 0 ? 0 : i;
    return low < n ? low : n - 1;
  }
};

struct reflect : detail::voxel_border {
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) {
    const std::int32_t up = i ^ (i >> 31), behind = up - n;  // ~i if i is negative: -1 reads voxel 0
    const std::int32_t near = behind < 0 ? up : n - 1 - behind;
    if (near >= 0) return near;  // at most 2 n away: no division needed
    const std::int32_t m = floor_modulo(i, 2 * n);
    return m < n ? m : 2 * n - 1 - m;
  }
};

struct mirror : detail::voxel_border {
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) {
    const std::int32_t up = i < 0 ? -i : i, behind = up - n;
    const std::int32_t near = behind < 0 ? up : n - 2 - behind;
    if (near >= 0) return near;
    if (n == 1) return 0;
    const std::int32_t m = floor_modulo(i, 2 * n - 2);
    return m < n ? m : 2 * n - 2 - m;
  }
};

struct wrap : detail::voxel_border {
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) { return inside(i, n) ? i : floor_modulo(i, n); }
};

// Returns the voxel that a vector lane reads for index i. Outside an image with `constant` this is the nearest voxel,
// whose value the lane discards. That voxel is in memory even if only the source_box() of a sample is.
template <class Border>
SUTURE_FN std::int32_t readable_index(std::int32_t i, std::int32_t n) {
  if constexpr (Border::has_value)
    return edge::index(i, n);
  else
    return Border::index(i, n);
}

// Rim of an image: the faces of its outermost voxels, half a voxel beyond their centers, or the centers.
enum class image_rim : std::int32_t { faces, centers };

// A position beyond the rim along any axis reads the value; any other is interpolated from voxels alone.
//   faces    ITK's default pixel value: [-1/2, n - 1/2) is inside, and what lies between a face and the centers next to
//            it is read at those centers
//   centers  SciPy's mode `constant`, at every order: [0, n - 1] is inside, to 2^-23 voxel
// Interpolations of four taps are mirrored about the outermost centers, as both libraries mirror splines.
struct default_value {
  float value = 0;
  image_rim rim = image_rim::faces;

  static constexpr std::string_view described_as = "border";
  static constexpr auto fields = named("value", &default_value::value, "rim", &default_value::rim);
  static constexpr bool has_value = false;  // every tap is a voxel
  static constexpr int prefilter_padding = 0;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) { return mirror::index(i, n); }

  // Tests whether a coordinate lies beyond the rim of an image of extents n.
  SUTURE_FN bool is_beyond(const coordinate (&c)[3], const std::int32_t (&n)[3]) const {
    constexpr float rounding = 1.0f / 8388608;  // of fractions
    bool beyond = false;
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) {
      const std::int32_t base = c[k].base, last = n[k] - 1;
      const float part = c[k].fraction;
      const bool below = (base < -1) | ((base == -1) & (part < 1.0f - rounding));
      const bool above = (base > last) | ((base == last) & (part >= rounding));
      beyond = beyond | (rim == image_rim::faces ? !inside(nearest::first(c[k]), n[k]) : below | above);
    }
    return beyond;
  }
};

namespace detail {

// Borders that depend on the position that is read, and not on each tap.
template <class Border>
concept ends_at_rim = requires(const Border& b, const coordinate (&c)[3], const std::int32_t (&n)[3]) {
  b.is_beyond(c, n);
};

// Whether positions outside read the value of the border.
template <class Border>
inline constexpr bool reads_outside = Border::has_value || ends_at_rim<Border>;

// Returns the source index that is read at voxel i of an axis of n voxels; negative if the border's value is read.
template <class Border>
SUTURE_FN std::int32_t index_of_voxel(std::int32_t i, std::int32_t n) {
  if constexpr (ends_at_rim<Border>)
    return inside(i, n) ? i : -1;
  else
    return Border::index(i, n);
}

// Moves a position that is not beyond the rim to a readable one: with one or two taps, to the outermost centers at
// most.
template <class Interpolation>
SUTURE_FN void clamp_inside(const coordinate (&c)[3], const std::int32_t (&n)[3], coordinate (&clamped)[3]) {
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) {
    clamped[k] = c[k];
    if constexpr (Interpolation::taps <= 2) {
      if (c[k].base < 0) clamped[k] = {0, 0.0f};
      if (c[k].base >= n[k] - 1) clamped[k] = {n[k] - 1, 0.0f};
    }
  }
}

}  // namespace detail

}  // namespace suture
