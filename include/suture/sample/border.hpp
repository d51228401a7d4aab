// SPDX-License-Identifier: Apache-2.0
// What lies outside an image. index(i, n) gives the voxel that stands for index i, or -1 for the constant.
//
//   border    (n = 4)            SciPy          NumPy pad    PyTorch
//   constant  v v | 0 1 2 3 | v  grid-constant  constant     zeros (value 0)
//   edge      0 0 | 0 1 2 3 | 3  nearest        edge         border
//   reflect   1 0 | 0 1 2 3 | 3  reflect        symmetric    reflection, align_corners=False (up to the clamp)
//   mirror    2 1 | 0 1 2 3 | 2  mirror         reflect      reflection, align_corners=True
//   wrap      2 3 | 0 1 2 3 | 0  grid-wrap      wrap         -
//   default_value   v beyond the outermost voxels, nothing blended:
//                                constant       -            -
//
// The constant is blended over one voxel at the rim and lives in the value domain at the point of sampling, that is
// after the value operations left of the geometry.
#pragma once

#include <cstdint>

#include "../base/config.hpp"
#include "../base/coordinate.hpp"

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
  static constexpr bool has_value = true;
  static constexpr int prefilter_padding = 12;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) { return inside(i, n) ? i : -1; }
};

struct edge {
  static constexpr bool has_value = false;
  static constexpr int prefilter_padding = 12;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) {
    const std::int32_t low = i < 0 ? 0 : i;
    return low < n ? low : n - 1;
  }
};

struct reflect {
  static constexpr bool has_value = false;
  static constexpr int prefilter_padding = 0;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) {
    const std::int32_t up = i ^ (i >> 31), behind = up - n;  // -1 is at 0
    const std::int32_t near = behind < 0 ? up : n - 1 - behind;
    if (near >= 0) return near;  // no further away than 2 n: without a division
    const std::int32_t m = floor_modulo(i, 2 * n);
    return m < n ? m : 2 * n - 1 - m;
  }
};

struct mirror {
  static constexpr bool has_value = false;
  static constexpr int prefilter_padding = 0;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) {
    const std::int32_t up = i < 0 ? -i : i, behind = up - n;
    const std::int32_t near = behind < 0 ? up : n - 2 - behind;
    if (near >= 0) return near;
    if (n == 1) return 0;
    const std::int32_t m = floor_modulo(i, 2 * n - 2);
    return m < n ? m : 2 * n - 2 - m;
  }
};

struct wrap {
  static constexpr bool has_value = false;
  static constexpr int prefilter_padding = 0;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) { return inside(i, n) ? i : floor_modulo(i, n); }
};

// Where an image ends: at the faces of its outermost voxels, half a voxel beyond their centers, or at the centers.
enum class image_rim : std::int32_t { faces, centers };

// A sample whose coordinate lies beyond the rim, along any axis, is the value; inside nothing of it is blended in.
//   faces    ITK's default pixel value: up to half a voxel beyond the outermost centers they stand for what is there
//   centers  SciPy's mode `constant`: at every order the image ends at the outermost centers, and values jump there
// Interpolations of more than two taps are mirrored about the outermost voxels, as both libraries filter splines.
struct default_value {
  float value = 0;
  image_rim rim = image_rim::faces;

  static constexpr bool has_value = false;  // of taps: they are always voxels
  static constexpr int prefilter_padding = 0;
  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) { return mirror::index(i, n); }

  // Whether a coordinate lies beyond the rim of an image of extents n.
  SUTURE_FN bool is_beyond(const coordinate (&c)[3], const std::int32_t (&n)[3]) const {
    const bool at_faces = rim == image_rim::faces;
    bool beyond = false;
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) {
      const std::int32_t base = c[k].base, last = n[k] - 1;
      const float part = c[k].fraction;
      beyond = beyond | (base < -1) | ((base == -1) & (part < (at_faces ? 0.5f : 1.0f)));
      beyond = beyond | (base > last) | ((base == last) & (at_faces ? part >= 0.5f : part > 0.0f));
    }
    return beyond;
  }
};

namespace detail {

// Borders that are a property of the coordinate of a sample, not of the voxels about it.
template <class Border>
inline constexpr bool ends_at_rim = requires(const Border& b, const coordinate (&c)[3], const std::int32_t (&n)[3]) {
  b.is_beyond(c, n);
};

// What lies between the rim and the outermost centers is taken to these, but for interpolations that mirror.
template <class Interpolation>
SUTURE_FN void hold_inside(const coordinate (&c)[3], const std::int32_t (&n)[3], coordinate (&held)[3]) {
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) {
    held[k] = c[k];
    if constexpr (Interpolation::taps <= 2) {
      if (c[k].base < 0) held[k] = {0, 0.0f};
      if (c[k].base >= n[k] - 1) held[k] = {n[k] - 1, 0.0f};
    }
  }
}

}  // namespace detail

}  // namespace suture
