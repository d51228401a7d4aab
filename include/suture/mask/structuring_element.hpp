// SPDX-License-Identifier: Apache-2.0
// Structuring elements of morphology: box, cross and ball, in three dimensions or within slices.
#pragma once

#include "../base/error.hpp"
#include "../base/vec.hpp"

namespace suture {

enum class element_shape : std::int32_t {
  box,    // |dz| <= rz, |dy| <= ry, |dx| <= rx
  cross,  // |dz| + |dy| + |dx| <= r: the face neighbors, dilated r times
  ball,   // dz^2 + dy^2 + dx^2 <= r^2
};

// A symmetric neighborhood of a voxel, with its radius along (z, y, x) in voxels. It does not extend along an axis of
// radius 0: {0, r, r} is a square, a diamond or a disk within each slice, {0, 0, 0} the voxel itself.
// Errors: a radius outside 0..63, a cross or ball whose radii other than 0 differ.
// Source: scipy.ndimage.generate_binary_structure(3, 1) iterated (cross), skimage.morphology.ball and disk (ball).
struct structuring_element {
  element_shape shape = element_shape::cross;
  extent3 radius{1, 1, 1};
};

namespace detail::masks {

inline void check(const structuring_element& e, const site& where) {
  std::int64_t r = 0;
  for (int k = 0; k < 3; ++k) {
    require(e.radius[k] >= 0, where, "radius ", e.radius, " must not be negative");
    require(e.radius[k] <= 63, where, "radius ", e.radius, " exceeds 63 voxels");
    if (e.radius[k] == 0 || e.shape == element_shape::box) continue;
    require(r == 0 || r == e.radius[k], where, "radius ", e.radius, " of a cross or ball must be equal along its axes");
    r = e.radius[k];
  }
}

// An element in the form that loops need. For |dz| <= z and |dy| <= y, half_width returns the half width along x of the
// row at (dz, dy), or a number below 0 if there is none.
struct element_rows {
  element_shape shape;
  std::int32_t z, y, x, r;

  SUTURE_FN std::int32_t half_width(std::int32_t dz, std::int32_t dy) const {
    if (shape == element_shape::box) return x;
    const std::int32_t az = dz < 0 ? -dz : dz, ay = dy < 0 ? -dy : dy;
    if (shape == element_shape::cross) {
      const std::int32_t left = r - az - ay;
      return left < 0 ? -1 : x == 0 ? 0 : left;
    }
    const std::int32_t left = r * r - dz * dz - dy * dy;
    if (left < 0) return -1;
    if (x == 0) return 0;
    std::int32_t h = r;
    while (h * h > left) --h;
    return h;
  }
};

inline element_rows rows_of(element_shape shape, const extent3& radius) {
  const auto n = vec_cast<std::int32_t>(radius);
  const std::int32_t zy = n[0] > n[1] ? n[0] : n[1];
  return {shape, n[0], n[1], n[2], zy > n[2] ? zy : n[2]};
}

}  // namespace detail::masks
}  // namespace suture
