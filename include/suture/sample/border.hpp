// SPDX-License-Identifier: Apache-2.0
// What lies outside an image. index(i, n) gives the voxel that stands for index i, or -1 for the constant.
//
//   border    (n = 4)            SciPy          NumPy pad    PyTorch
//   constant  v v | 0 1 2 3 | v  grid-constant  constant     zeros (value 0)
//   edge      0 0 | 0 1 2 3 | 3  nearest        edge         border
//   reflect   1 0 | 0 1 2 3 | 3  reflect        symmetric    reflection, align_corners=False (up to the clamp)
//   mirror    2 1 | 0 1 2 3 | 2  mirror         reflect      reflection, align_corners=True
//   wrap      2 3 | 0 1 2 3 | 0  grid-wrap      wrap         -
//
// The constant is blended over one voxel at the rim and lives in the value domain at the point of sampling, that is
// after the value operations left of the geometry.
#pragma once

#include <cstdint>

#include "../base/config.hpp"

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

}  // namespace suture
