// SPDX-License-Identifier: Apache-2.0
// Displacements of the lanes of a strip that runs along z or y of the control points, where the output keeps their
// axes. What the lanes share along the two other axes is summed once for all of them. Every lane does the arithmetic of
// a lone voxel.
#pragma once

#include "../../evaluate/column.hpp"
#include "../common/lanes.hpp"

namespace suture::detail {

template <int Width = strip_width>
class displacement_rows {
public:
  float u[3][Width];  // by lane, in source voxels

  // The lanes stand at x of the output, which runs along `axis` (0 is z, 1 is y) of the control points.
  void place(const control_grid& g, int axis, const std::int32_t (&x)[Width]) {
    axis_ = axis;
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

  // Makes u for row (z, y) of the loops.
  void set(const control_grid& g, std::int32_t z, std::int32_t y) {
    const vec3<std::int32_t>& n = g.drawn.control_points;
    const int other = 1 - axis_;
    const control_cell c = cell_of(along(g.to_control, other, z, y, 0), n[other]);
    const control_cell cx = cell_of(along(g.to_control, 2, z, y, 0), n[2]);
    float wx[4];
    bspline_weights(cx.t, wx);
    for (int begin = 0, end = 0; begin < Width; begin = end) {
      while (end < Width && cell_[end] == cell_[begin]) ++end;
      if (axis_ == 0)
        lanes_along_z(g, {cell_[begin], c.index, cx.index}, c.t, wx, begin, end);
      else
        lanes_along_y(g, {c.index, cell_[begin], cx.index}, c.t, wx, begin, end);
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

  void lanes_along_z(const control_grid& g, const std::int32_t (&cell)[3], float ty, const float (&wx)[4], int begin,
                     int end) {
    const vec3<std::int32_t>& n = g.drawn.control_points;
    float wy[4];
    bspline_weights(ty, wy);
    components plane[4];
    for (int a = 0; a < 4; ++a) {
      for (float& p : plane[a]) p = 0.0f;
      for (int b = 0; b < 4; ++b) {
        components sum;
        sum_row(g.vectors + ((cell[0] + a) * n[1] + cell[1] + b) * n[2] + cell[2], wx, sum);
        for (int k = 0; k < 4; ++k) plane[a][k] = fma(wy[b], sum[k], plane[a][k]);
      }
    }
    for (int k = 0; k < 3; ++k) {
      const float q[4] = {plane[0][k], plane[1][k], plane[2][k], plane[3][k]};
      float c[4];
      bspline_polynomial(q, c);
      for (int l = begin; l < end; ++l) u[k][l] = polynomial(c, t_[l]);
    }
  }

  void lanes_along_y(const control_grid& g, const std::int32_t (&cell)[3], float tz, const float (&wx)[4], int begin,
                     int end) {
    const vec3<std::int32_t>& n = g.drawn.control_points;
    components sum[4][4];
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b < 4; ++b)
        sum_row(g.vectors + ((cell[0] + a) * n[1] + cell[1] + b) * n[2] + cell[2], wx, sum[a][b]);
    for (int k = 0; k < 3; ++k)
      for (int l = begin; l < end; ++l) {
        float q[4], c[4];
        SUTURE_UNROLL
        for (int a = 0; a < 4; ++a) {
          q[a] = 0.0f;
          SUTURE_UNROLL
          for (int b = 0; b < 4; ++b) q[a] = fma(weight_[b][l], sum[a][b][k], q[a]);
        }
        bspline_polynomial(q, c);
        u[k][l] = polynomial(c, tz);
      }
  }

  int axis_ = 0;
  std::int32_t cell_[Width];
  float t_[Width], weight_[4][Width];
};

}  // namespace suture::detail
