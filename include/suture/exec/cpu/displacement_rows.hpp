// SPDX-License-Identifier: Apache-2.0
// Displacements of the lanes of a strip that runs along an axis of the control points, where the output keeps their
// axes. Consecutive rows reuse sums over control points if they have the same position along one of the other two axes
// and the same control cell along the other. Every lane does the arithmetic of a single voxel.
#pragma once

#include "../../evaluate/column.hpp"
#include "../common/lanes.hpp"

namespace suture::detail {

template <int Width = strip_width>
class displacement_rows {
public:
  float u[3][Width];  // by lane, in source voxels

  // Sets the index x of each lane in the output, along `axis` (0 is z, 1 is y, 2 is x) of output and control points.
  void place(const control_grid& g, int axis, const std::int32_t (&x)[Width]) {
    lane_axis_ = axis;
    place_axis_ = axis == 2 ? 1 : 2;
    cell_axis_ = axis == 0 ? 1 : 0;
    for (int l = 0; l < Width; ++l) {
      const control_cell c =
          cell_of(g.to_control.offset[axis] + scaled(g.to_control.linear[axis][2], x[l]), g.drawn.control_points[axis]);
      cell_[l] = c.index;
      t_[l] = c.t;
      float w[4];
      bspline_weights(c.t, w);
      for (int j = 0; j < 4; ++j) weight_[j][l] = w[j];
    }
  }

  // Computes u for row (z, y) of the loops.
  void set(const control_grid& g, std::int32_t z, std::int32_t y) {
    const control_cell c = cell_of(along(g.to_control, cell_axis_, z, y, 0), g.drawn.control_points[cell_axis_]);
    const std::uint64_t place = along(g.to_control, place_axis_, z, y, 0);
    if (c.index != kept_cell_ || place != kept_place_) {
      kept_cell_ = c.index;
      kept_place_ = place;
      if (lane_axis_ == 2)
        keep_along_x(g);
      else
        keep(g);
    }
    if (lane_axis_ == 0) {
      lanes_along_z(c.t);
    } else {
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < Width; ++l)
          u[k][l] = polynomial({cubic_[k][0][l], cubic_[k][1][l], cubic_[k][2][l], cubic_[k][3][l]}, c.t);
    }
  }

private:
  using components = float[4];  // z, y, x and one that is not used: what a register loads

  // The sum along x at one control row.
  static void sum_row(const control_vector* row, const float (&wx)[4], components& sum) {
    const float* const v = &row->z;
    for (int k = 0; k < 4; ++k)
      sum[k] = fma(wx[3], v[12 + k], fma(wx[2], v[8 + k], fma(wx[1], v[4 + k], wx[0] * v[k])));
  }

  // Calls use(run, begin, end) for every run of lanes, begin to end - 1, that share a cell.
  template <class Use>
  void each_run(const Use& use) const {
    int run = 0;
    for (int begin = 0, end = 0; begin < Width; begin = end) {
      while (end < Width && cell_[end] == cell_[begin]) ++end;
      use(run++, begin, end);
    }
  }

  // Computes the sums along x for lanes along z or y. Lanes along z keep these, lanes along y the cubics along z that
  // follow from them.
  void keep(const control_grid& g) {
    const vec3<std::int32_t>& n = g.drawn.control_points;
    const control_cell cx = cell_of(kept_place_, n[2]);
    float wx[4];
    bspline_weights(cx.t, wx);
    each_run([&](int run, int begin, int end) {
      const std::int32_t z = lane_axis_ == 0 ? cell_[begin] : kept_cell_,
                         y = lane_axis_ == 0 ? kept_cell_ : cell_[begin];
      components(&sum)[4][4] = sums_[lane_axis_ == 0 ? run : 0];
      for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) sum_row(g.vectors + ((z + a) * n[1] + y + b) * n[2] + cx.index, wx, sum[a][b]);
      if (lane_axis_ == 1) cubics_along_z(sum, begin, end);
    });
  }

  // Computes the cubics along z for lanes along x, with the sums of sum_control_plane. Loops over runs of any length
  // take two thirds of the time of loops over a fixed number of lanes.
  void keep_along_x(const control_grid& g) {
    const vec3<std::int32_t>& n = g.drawn.control_points;
    const control_cell cy = cell_of(kept_place_, n[1]);
    float wy[4];
    bspline_weights(cy.t, wy);
    each_run([&](int, int begin, int end) {
      float p[3][4][Width];
      for (int a = 0; a < 4; ++a) {
        for (int k = 0; k < 3; ++k)
          for (int l = begin; l < end; ++l) p[k][a][l] = 0.0f;
        for (int b = 0; b < 4; ++b) {
          const control_vector* row = g.vectors + ((kept_cell_ + a) * n[1] + cy.index + b) * n[2] + cell_[begin];
          const control_vector v0 = row[0], v1 = row[1], v2 = row[2], v3 = row[3];
          const float w = wy[b];
          for (int l = begin; l < end; ++l) {
            const float x0 = weight_[0][l], x1 = weight_[1][l], x2 = weight_[2][l], x3 = weight_[3][l];
            p[0][a][l] = fma(w, fma(x3, v3.z, fma(x2, v2.z, fma(x1, v1.z, x0 * v0.z))), p[0][a][l]);
            p[1][a][l] = fma(w, fma(x3, v3.y, fma(x2, v2.y, fma(x1, v1.y, x0 * v0.y))), p[1][a][l]);
            p[2][a][l] = fma(w, fma(x3, v3.x, fma(x2, v2.x, fma(x1, v1.x, x0 * v0.x))), p[2][a][l]);
          }
        }
      }
      for (int k = 0; k < 3; ++k)
        for (int l = begin; l < end; ++l) {
          const float q[4] = {p[k][0][l], p[k][1][l], p[k][2][l], p[k][3][l]};
          set_cubic(k, l, q);
        }
    });
  }

  void set_cubic(int k, int l, const float (&q)[4]) {
    float c[4];
    bspline_polynomial(q, c);
    for (int j = 0; j < 4; ++j) cubic_[k][j][l] = c[j];
  }

  void cubics_along_z(const components (&sum)[4][4], int begin, int end) {
    for (int k = 0; k < 3; ++k)
      for (int l = begin; l < end; ++l) {
        float q[4];
        SUTURE_UNROLL
        for (int a = 0; a < 4; ++a) {
          q[a] = 0.0f;
          SUTURE_UNROLL
          for (int b = 0; b < 4; ++b) q[a] = fma(weight_[b][l], sum[a][b][k], q[a]);
        }
        set_cubic(k, l, q);
      }
  }

  void lanes_along_z(float ty) {
    float wy[4];
    bspline_weights(ty, wy);
    each_run([&](int run, int begin, int end) {
      components plane[4];
      for (int a = 0; a < 4; ++a)
        for (int k = 0; k < 4; ++k) {
          plane[a][k] = 0.0f;
          for (int b = 0; b < 4; ++b) plane[a][k] = fma(wy[b], sums_[run][a][b][k], plane[a][k]);
        }
      for (int k = 0; k < 3; ++k) {
        const float q[4] = {plane[0][k], plane[1][k], plane[2][k], plane[3][k]};
        float c[4];
        bspline_polynomial(q, c);
        for (int l = begin; l < end; ++l) u[k][l] = polynomial(c, t_[l]);
      }
    });
  }

  int lane_axis_ = 0, place_axis_ = 2, cell_axis_ = 1;  // the latter two: of kept_place_ and kept_cell_
  std::int32_t cell_[Width];
  float t_[Width];
  alignas(lane_alignment) float weight_[4][Width];
  std::int32_t kept_cell_ = -1;
  std::uint64_t kept_place_ = 0;
  components sums_[Width][4][4];                      // along x, by run
  alignas(lane_alignment) float cubic_[3][4][Width];  // along z, of lanes along y or x
};

}  // namespace suture::detail
