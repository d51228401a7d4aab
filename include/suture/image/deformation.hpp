// SPDX-License-Identifier: Apache-2.0
// A free-form deformation: a cubic B-spline over a grid of control points. The control values are given, or random
// numbers that are computed where they are used and never stored.
#pragma once

#include "../base/error.hpp"
#include "../base/vec.hpp"
#include "../rng/draw.hpp"

namespace suture {

// x_in = x + u(x) in voxels of the grid the deformation acts on, with
//   u_k(x) = sum over e of B(q_z - e_z) B(q_y - e_y) B(q_x - e_x) control_value(k, e),   q = to_control(x).
// Along each axis cell i = floor(q) of n - 3 cells uses the control points i .. i + 3 with the cubic weights of
// t = q - i; at the upper end i is at most n - 4. Beyond the grid, which a pad or a later step may reach, the
// displacement is that of the nearest point of its boundary. It is continuous there, so that the image is not torn and
// the map can be inverted. (ITK's BSplineTransform jumps to 0 there.)
struct deformation {
  vec3<std::int32_t> control_points;  // n, at least 4 along each axis
  affine_map to_control;              // continuous index -> q; diagonal
  point3 amplitude;                   // largest control value along each axis, voxels
  vec3<std::int32_t> locked;          // outer layers of control points held at 0, along each axis
  random_field field;
  const float* given;  // control values used instead of the field, millimeters, (component, z, y, x); or null
  vec3<float> per_mm;  // voxels per millimeter, for given values
};

// Tests whether the deformed grid has a single voxel along an axis. The mesh is as far from the outermost voxel centers at
// one end as at the other.
inline bool has_single_voxel(const deformation& d, int axis) {
  const double between_centers =
      static_cast<double>(d.control_points[axis] - 3) - 2 * d.to_control.offset[axis];  // cells
  return between_centers < 0.5 * d.to_control.linear[axis][axis];
}

// Largest number of control points. Each costs some 200 ns and 12 bytes per sample before launch. This many make cells
// of two voxels throughout a volume of 500^3, finer than any useful deformation that does not fold.
inline constexpr std::int64_t most_deformation_points = std::int64_t{1} << 24;

inline void check_control_points(const deformation& d, const site& where) {
  double n = 1;
  for (int k = 0; k < 3; ++k) n *= static_cast<double>(d.control_points[k]);
  require(n <= static_cast<double>(most_deformation_points), where, static_cast<std::int64_t>(n), " control points, ",
          d.control_points, " along the axes, are more than ", most_deformation_points,
          " a sample; widen control_spacing_mm or lower control_points");
}

// Returns the displacement along axis `component` at control point (z, y, x) in voxels. It is 0 in locked layers, else
// uniform in [-amplitude, amplitude), or the given one limited to [-amplitude, amplitude], where NaN becomes 0.
SUTURE_FN float control_value(const deformation& d, std::int32_t component, std::int32_t z, std::int32_t y,
                              std::int32_t x) {
  const vec3<std::int32_t>& n = d.control_points;
  const std::int32_t at[3] = {z, y, x};
  for (int k = 0; k < 3; ++k)
    if (at[k] < d.locked[k] || at[k] >= n[k] - d.locked[k]) return 0;
  std::uint64_t element = static_cast<std::uint64_t>(component);
  for (int k = 0; k < 3; ++k) element = element * static_cast<std::uint64_t>(n[k]) + static_cast<std::uint64_t>(at[k]);
  const auto most = static_cast<float>(d.amplitude[component]);
  if (d.given != nullptr) {
    const float value = d.given[element] * d.per_mm[component];
    return value > most ? most : value < -most ? -most : value == value ? value : 0.0f;
  }
  return most * fma(d.field.uniform(element), 2.0f, -1.0f);
}

}  // namespace suture
