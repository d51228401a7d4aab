// SPDX-License-Identifier: Apache-2.0
// The output -> source map along one column (fixed y and x, z walking). Whatever a column shares is exactly what a
// lone voxel computes, so walking saves work and never changes a bit.
#pragma once

#include "../math/bspline.hpp"
#include "item.hpp"

namespace suture {

// Cell of a control coordinate: coefficients cell .. cell + 3, t in [0, 1]. Outside the grid the displacement of its
// rim continues, so that a padded or rotated field has no tear.
struct control_cell {
  std::int32_t index;
  float t;
};
SUTURE_FN control_cell cell_of(std::uint64_t q, std::int32_t control_points) {
  const coordinate c = split(q);
  if (c.base < 0) return {0, 0.0f};
  if (c.base > control_points - 4) return {control_points - 4, 1.0f};
  return {c.base, c.fraction};
}

SUTURE_FN std::uint64_t along(const fixed_map& m, int axis, std::int32_t z, std::int32_t y, std::int32_t x) {
  return m.offset[axis] + scaled(m.linear[axis][0], z) + scaled(m.linear[axis][1], y) + scaled(m.linear[axis][2], x);
}

// Displacement along control cell z of a column as three cubics in t: the B-spline summed over x, then y.
struct displacement_column {
  float c[3][4];

  SUTURE_FN void set(const control_grid& g, std::int32_t cell_z, control_cell cy, control_cell cx) {
    float wy[4], wx[4];
    bspline_weights(cy.t, wy);
    bspline_weights(cx.t, wx);
    set(g, cell_z, cy.index, wy, cx.index, wx);
  }
  SUTURE_FN void set(const control_grid& g, std::int32_t cell_z, std::int32_t iy, const float (&wy)[4], std::int32_t ix,
                     const float (&wx)[4]) {
    const std::int32_t ny = g.drawn.control_points[1], nx = g.drawn.control_points[2];
    const control_vector* row = g.vectors + (cell_z * ny + iy) * nx + ix;
    float p[3][4];
    SUTURE_UNROLL
    for (int a = 0; a < 4; ++a, row += (ny - 4) * nx) {
      float plane[3] = {0, 0, 0};
      SUTURE_UNROLL
      for (int b = 0; b < 4; ++b, row += nx) {
        const control_vector v0 = row[0], v1 = row[1], v2 = row[2], v3 = row[3];
        plane[0] = fma(wy[b], fma(wx[3], v3.z, fma(wx[2], v2.z, fma(wx[1], v1.z, wx[0] * v0.z))), plane[0]);
        plane[1] = fma(wy[b], fma(wx[3], v3.y, fma(wx[2], v2.y, fma(wx[1], v1.y, wx[0] * v0.y))), plane[1]);
        plane[2] = fma(wy[b], fma(wx[3], v3.x, fma(wx[2], v2.x, fma(wx[1], v1.x, wx[0] * v0.x))), plane[2]);
      }
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) p[k][a] = plane[k];
    }
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) bspline_polynomial(p[k], c[k]);
  }
  SUTURE_FN float at(int axis, float t) const { return polynomial(c[axis], t); }
};

// Source coordinates of the voxels of one column. Construct at (y, x), start at z, then step.
template <class Pipeline>
class column {
public:
  SUTURE_FN column(const item<Pipeline>& sample, std::int32_t z, std::int32_t y, std::int32_t x)
      : sample_(&sample), z_(z), y_(y), x_(x) {
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) position_[k] = along(sample.map, k, z, y, x);
    if constexpr (Pipeline::separable_deformation) {
      cell_z_ = -1;
    }
  }

  SUTURE_FN void step() {
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) position_[k] += sample_->map.linear[k][0];
    ++z_;
  }

  SUTURE_FN void locate(coordinate (&c)[3]) {
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) c[k] = split(position_[k]);
    if constexpr (Pipeline::has_deformation) {
      const control_grid& g = sample_->controls;
      if (!g.on) return;
      float t;
      if constexpr (Pipeline::separable_deformation) {
        const control_cell cz =
            cell_of(g.to_control.offset[0] + scaled(g.to_control.linear[0][0], z_), g.drawn.control_points[0]);
        if (cz.index != cell_z_) {
          cell_z_ = cz.index;
          displacement_.set(
              g, cell_z_,
              cell_of(g.to_control.offset[1] + scaled(g.to_control.linear[1][1], y_), g.drawn.control_points[1]),
              cell_of(g.to_control.offset[2] + scaled(g.to_control.linear[2][2], x_), g.drawn.control_points[2]));
        }
        t = cz.t;
      } else {
        const control_cell cz = cell_of(along(g.to_control, 0, z_, y_, x_), g.drawn.control_points[0]);
        displacement_.set(g, cz.index, cell_of(along(g.to_control, 1, z_, y_, x_), g.drawn.control_points[1]),
                          cell_of(along(g.to_control, 2, z_, y_, x_), g.drawn.control_points[2]));
        t = cz.t;
      }
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) c[k] = moved(c[k], displacement_.at(k, t));
    }
  }

private:
  const item<Pipeline>* sample_;
  std::uint64_t position_[3];
  std::int32_t z_, y_, x_;
  std::int32_t cell_z_ = -1;
  std::conditional_t<Pipeline::has_deformation, displacement_column, no_controls> displacement_{};
};

}  // namespace suture
