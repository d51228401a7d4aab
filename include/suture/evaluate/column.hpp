// SPDX-License-Identifier: Apache-2.0
// The map from output to source along one column (fixed y and x, walking along z). Values shared in a column are
// exactly those that a single voxel computes, so walking saves work and never changes a bit.
#pragma once

#include "../math/bspline.hpp"
#include "sample_parameters.hpp"

namespace suture {

// Control cell of a coordinate: coefficients index to index + 3 act in it, and t in [0, 1] is the position. Outside the
// control grid the displacement at its rim continues, so that a padded or rotated field has no jump.
struct control_cell {
  std::int32_t index;
  float t;
};
SUTURE_FN control_cell cell_of(const coordinate& c, std::int32_t control_points) {
  if (c.base < 0) return {0, 0.0f};
  if (c.base > control_points - 4) return {control_points - 4, 1.0f};
  return {c.base, c.fraction};
}

SUTURE_FN control_cell cell_of(std::uint64_t q, std::int32_t control_points) {
  return cell_of(split(q), control_points);
}

// Returns coordinate `axis` of the position that a map assigns to index (z, y, x).
SUTURE_FN std::uint64_t along(const fixed_map& m, int axis, std::int32_t z, std::int32_t y, std::int32_t x) {
  return m.offset[axis] + scaled(m.linear[axis][0], z) + scaled(m.linear[axis][1], y) + scaled(m.linear[axis][2], x);
}

// Adds the weighted 4 x 4 control vectors of a plane to `plane`, along x, then y, for Lanes neighboring voxels that
// share them. wy(j, l) and wx(j, l) are the B-spline weights of lane l. `row` is the first vector and becomes that of
// the next plane, or of the next row if Rows is below 4.
SUTURE_NO_EXEC_CHECK
template <int Rows = 4, int Lanes, class WeightY, class WeightX>
SUTURE_FN void sum_control_plane(const control_vector*& row, const vec3<std::int32_t>& n, const WeightY& wy,
                                 const WeightX& wx, float (&plane)[3][Lanes]) {
  SUTURE_LANES
  for (int b = 0; b < Rows; ++b, row += n[2]) {
    const control_vector v0 = row[0], v1 = row[1], v2 = row[2], v3 = row[3];
    SUTURE_LANES
    for (int l = 0; l < Lanes; ++l) {
      const float y = wy(b, l), x0 = wx(0, l), x1 = wx(1, l), x2 = wx(2, l), x3 = wx(3, l);
      plane[0][l] = fma(y, fma(x3, v3.z, fma(x2, v2.z, fma(x1, v1.z, x0 * v0.z))), plane[0][l]);
      plane[1][l] = fma(y, fma(x3, v3.y, fma(x2, v2.y, fma(x1, v1.y, x0 * v0.y))), plane[1][l]);
      plane[2][l] = fma(y, fma(x3, v3.x, fma(x2, v2.x, fma(x1, v1.x, x0 * v0.x))), plane[2][l]);
    }
  }
  if constexpr (Rows == 4) row += (n[1] - 4) * n[2];
}

// Computes the displacements of Lanes neighboring voxels as cubics in t, the position along z in a control cell. They
// come from sum_control_plane of the four planes of the cell, the first of which begins at `row`.
SUTURE_NO_EXEC_CHECK
template <int Lanes, class WeightY, class WeightX>
SUTURE_FN void control_polynomials(const control_vector* row, const vec3<std::int32_t>& n, const WeightY& wy,
                                   const WeightX& wx, float (&c)[3][4][Lanes]) {
  float p[4][3][Lanes] = {};
  SUTURE_LANES
  for (int a = 0; a < 4; ++a) sum_control_plane(row, n, wy, wx, p[a]);
  SUTURE_LANES
  for (int k = 0; k < 3; ++k) SUTURE_LANES
  for (int l = 0; l < Lanes; ++l) {
    const float q[4] = {p[0][k][l], p[1][k][l], p[2][k][l], p[3][k][l]};
    float cubic[4];
    bspline_polynomial(q, cubic);
    SUTURE_LANES
    for (int j = 0; j < 4; ++j) c[k][j][l] = cubic[j];
  }
}

// The displacement along the part of a column in one control cell: a cubic in t for each axis.
struct displacement_column {
  float c[3][4][1];

  SUTURE_FN void set(const control_grid& g, std::int32_t cell_z, control_cell cy, control_cell cx) {
    float wy[4], wx[4];
    bspline_weights(cy.t, wy);
    bspline_weights(cx.t, wx);
    set(g, cell_z, cy.index, wy, cx.index, wx);
  }
  SUTURE_FN void set(const control_grid& g, std::int32_t cell_z, std::int32_t iy, const float (&wy)[4], std::int32_t ix,
                     const float (&wx)[4]) {
    const vec3<std::int32_t>& n = g.drawn.control_points;
    control_polynomials(
        g.vectors + (cell_z * n[1] + iy) * n[2] + ix, n, [&](int j, int) { return wy[j]; },
        [&](int j, int) { return wx[j]; }, c);
  }
  SUTURE_FN float at(int axis, float t) const {
    return polynomial({c[axis][0][0], c[axis][1][0], c[axis][2][0], c[axis][3][0]}, t);
  }
};

// The displacement u at a position in control cells, in units of the control vectors.
SUTURE_FN void displacement_at(const control_grid& g, const coordinate (&place)[3], float (&u)[3]) {
  const vec3<std::int32_t>& n = g.drawn.control_points;
  control_cell cell[3];
  float w[3][4];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) {
    cell[k] = cell_of(place[k], n[k]);
    bspline_weights(cell[k].t, w[k]);
  }
  const control_vector* row = g.vectors + (cell[0].index * n[1] + cell[1].index) * n[2] + cell[2].index;
  SUTURE_UNROLL
  for (float& component : u) component = 0;
  // 64 control vectors at once would leave no registers for the rest.
  SUTURE_NO_UNROLL
  for (int a = 0; a < 4; ++a) {
    float plane[3][1] = {};
    sum_control_plane(
        row, n, [&](int b, int) { return w[1][b]; }, [&](int b, int) { return w[2][b]; }, plane);
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) u[k] = fma(w[0][0], plane[k][0], u[k]);
    SUTURE_UNROLL
    for (int j = 0; j < 3; ++j) w[0][j] = w[0][j + 1];  // of the next plane, without an index
  }
}

// Computes the displacement that undoes a deformation u at a voxel x. It is -u(v), where v + u(v) = x, in source
// voxels. The iteration v <- x - u(v) finds v, in control cells.
SUTURE_FN void undo_displacement(const inverse_control_grid& g, std::int32_t z, std::int32_t y, std::int32_t x,
                                 float (&displacement)[3]) {
  coordinate start[3], place[3];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) place[k] = start[k] = split(along(g.to_control, k, z, y, x));
  float u[3] = {0, 0, 0};
  for (int i = 0; i < most_inverse_iterations; ++i) {
    float next[3];
    displacement_at(g, place, next);
    bool converged = true;
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) {
      const float change = next[k] - u[k];
      converged = converged && change < g.tolerance[k] && change > -g.tolerance[k];
      u[k] = next[k];
      place[k] = moved(start[k], -next[k]);
    }
    if (converged) break;
  }
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k)
    displacement[k] = -fma(g.from_control[k][0], u[0], fma(g.from_control[k][1], u[1], g.from_control[k][2] * u[2]));
}

// The absence of precomputed columns of displacements: a walk computes the column of each control cell that it enters.
struct no_columns {
  static constexpr bool crosses = false;  // whether walks may run across z
  SUTURE_FN static constexpr bool any() { return false; }
  SUTURE_FN static displacement_column at(std::int32_t) { return {}; }
  SUTURE_FN static constexpr std::int32_t kept(std::int32_t cell_z) { return cell_z; }
};

// Source coordinates of the voxels of one column. Construct at (y, x), start at z, then step.
template <class Pipeline>
class column {
public:
  SUTURE_FN column(const sample_parameters<Pipeline>& sample, std::int32_t z, std::int32_t y, std::int32_t x)
      : sample_(&sample), z_(z), y_(y), x_(x) {
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) position_[k] = along(sample.map, k, z, y, x);
    if constexpr (Pipeline::separable_deformation) {
      cell_z_ = -1;
    }
  }

  // Moves to the next voxel along z. Keep is that of value_of.
  template <bool Keep = true>
  SUTURE_FN void step() {
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) position_[k] += detail::value_of<Keep>(sample_->map.linear[k][0]);
    ++z_;
  }

  // Computes the source coordinate of the current voxel. `made` has the precomputed columns of displacements, if any.
  template <class Made = no_columns>
  SUTURE_FN void locate(coordinate (&c)[3], const Made& made = {}) {
    if constexpr (Pipeline::inverts_deformation) {
      float u[3] = {0, 0, 0};
      if (sample_->controls.on) undo_displacement(sample_->controls, z_, y_, x_, u);
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) c[k] = moved(split(position_[k]), u[k]);
    } else {
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) c[k] = split(position_[k]);
      if constexpr (Pipeline::has_deformation)
        if (sample_->controls.on) displace(sample_->controls, c, made);
    }
  }

private:
  template <class Made>
  SUTURE_FN void displace(const control_grid& g, coordinate (&c)[3], const Made& made) {
    float t;
    if constexpr (Pipeline::separable_deformation) {
      const control_cell cz = cell_of(along(g.to_control, 0, z_, 0, Made::crosses ? x_ : 0), g.drawn.control_points[0]);
      if (made.any()) {
        displacement_ = made.at(z_);
      } else if (cz.index != cell_z_) {
        cell_z_ = made.kept(cz.index);
        displacement_.set(g, cz.index, cell_of(along(g.to_control, 1, 0, y_, x_), g.drawn.control_points[1]),
                          cell_of(along(g.to_control, 2, 0, y_, x_), g.drawn.control_points[2]));
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

  const sample_parameters<Pipeline>* sample_;
  std::uint64_t position_[3];
  std::int32_t z_, y_, x_;
  std::int32_t cell_z_ = -1;
  std::conditional_t<Pipeline::has_deformation && !Pipeline::inverts_deformation, displacement_column, no_controls>
      displacement_{};
};

}  // namespace suture
