// SPDX-License-Identifier: Apache-2.0
// Displacements of the lanes of a strip that is rotated against the control points. Each lane has a cell of its own;
// neighbors mostly have the same cell and share its control vectors. Every lane does the arithmetic of a single voxel.
#pragma once

#include "../../evaluate/column.hpp"
#include "../common/lanes.hpp"

namespace suture::detail {

// Lanes that are summed at once, even if some are in another cell: as many as a register holds. The number is part of
// the type, as it differs between files compiled for different processors.
#if defined(__AVX512F__)
inline constexpr int summed_lanes = 16;
#else
inline constexpr int summed_lanes = 8;
#endif
template <int Lanes = summed_lanes>
class displacement_lanes {
public:
  static constexpr int width = strip_width;

  float u[3][width];  // by lane, in source voxels

  // Sets the output index of each lane along the innermost loop.
  void place(const control_grid& g, const std::int32_t (&x)[width]) {
    for (int k = 0; k < 3; ++k)
      for (int l = 0; l < width; ++l) offset_[k][l] = scaled(g.to_control.linear[k][2], x[l]);
  }

  // Computes u for row y of plane z of the loops.
  void set(const control_grid& g, std::int32_t z, std::int32_t y) {
    const vec3<std::int32_t>& n = g.drawn.control_points;
    std::int32_t cell[width] = {};
    for (int k = 0; k < 3; ++k) {
      const std::uint64_t row = along(g.to_control, k, z, y, 0);
      for (int l = 0; l < width; ++l) {
        const control_cell c = cell_of(row + offset_[k][l], n[k]);
        cell[l] = cell[l] * n[k] + c.index;
        t_[k][l] = c.t;
      }
    }
    for (int k = 1; k < 3; ++k)
      for (int l = 0; l < width; ++l) {
        float w[4];
        bspline_weights(t_[k][l], w);
        for (int j = 0; j < 4; ++j) weight_[k - 1][j][l] = w[j];
      }
    for (int begin = 0, end = 0; begin < width; begin = end) {
      while (end < width && cell[end] == cell[begin]) ++end;
      for (int first = begin / Lanes * Lanes; first < end; first += Lanes)
        sum(g.vectors + cell[begin], n, first, begin, end);
    }
  }

private:
  // Computes u of those lanes begin to end - 1 that are among the `Lanes` lanes from `first` on. They share the control
  // vectors from `row` on.
  void sum(const control_vector* row, const vec3<std::int32_t>& n, int first, int begin, int end) {
    float c[3][4][Lanes];
    control_polynomials(
        row, n, [&](int j, int i) { return weight_[0][j][first + i]; },
        [&](int j, int i) { return weight_[1][j][first + i]; }, c);
    for (int k = 0; k < 3; ++k)
      for (int i = 0; i < Lanes; ++i) {
        const int l = first + i;
        const float own = polynomial({c[k][0][i], c[k][1][i], c[k][2][i], c[k][3][i]}, t_[0][l]);
        u[k][l] = l >= begin && l < end ? own : u[k][l];
      }
  }

  std::uint64_t offset_[3][width];  // control coordinates of each lane relative to lane index 0 of the row
  float t_[3][width];               // position in the cell
  float weight_[2][4][width];       // along y and x
};

}  // namespace suture::detail
