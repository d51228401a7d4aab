// SPDX-License-Identifier: Apache-2.0
// undo_displacement for several neighboring voxels, the lanes. Each lane does the arithmetic of a single voxel; the
// iteration ends when all lanes have converged.
#pragma once

#include "../../evaluate/column.hpp"

namespace suture::detail {

inline constexpr int undo_width = 8;

struct inverse_displacement_lanes {
  static constexpr int width = undo_width;

  const inverse_control_grid& grid;
  std::int32_t start_base[3][width], base[3][width];  // positions where u is evaluated, in control cells
  float start_fraction[3][width], fraction[3][width];
  float u[3][width] = {};
  std::uint32_t converged[width] = {};

  inverse_displacement_lanes(const inverse_control_grid& g, std::int32_t z, std::int32_t y, const std::int32_t* x)
      : grid(g) {
    for (int k = 0; k < 3; ++k)
      for (int l = 0; l < width; ++l) {
        const coordinate c = split(along(g.to_control, k, z, y, x[l]));
        start_base[k][l] = base[k][l] = c.base;
        start_fraction[k][l] = fraction[k][l] = c.fraction;
      }
  }

  // Computes u, the displacement in control cells.
  void solve() {
    for (int i = 0; i < most_inverse_iterations; ++i) {
      float next[3][width] = {};
      displacements(next);
      std::uint32_t all = 1;
      for (int l = 0; l < width; ++l) {
        std::uint32_t here = 1;
        for (int k = 0; k < 3; ++k) {
          const float change = next[k][l] - u[k][l];
          here &= static_cast<std::uint32_t>(change < grid.tolerance[k]) &
                  static_cast<std::uint32_t>(change > -grid.tolerance[k]);
        }
        for (int k = 0; k < 3; ++k) u[k][l] = converged[l] != 0 ? u[k][l] : next[k][l];
        converged[l] |= here;
        all &= converged[l];
      }
      if (all != 0) return;
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < width; ++l) {
          const coordinate c = moved({start_base[k][l], start_fraction[k][l]}, -u[k][l]);
          base[k][l] = c.base;
          fraction[k][l] = c.fraction;
        }
    }
  }

  // Returns the source coordinate c of lane l along axis k, moved back by the displacement.
  coordinate undone(const coordinate& c, int k, int l) const {
    const float(&m)[3] = grid.from_control[k];
    return moved(c, -fma(m[0], u[0][l], fma(m[1], u[1][l], m[2] * u[2][l])));
  }

private:
  void displacements(float (&next)[3][width]) const {
    const vec3<std::int32_t>& n = grid.drawn.control_points;
    std::int32_t first_of_cell[width] = {};
    float w[3][4][width];
    for (int k = 0; k < 3; ++k)
      for (int l = 0; l < width; ++l) {
        const control_cell cell = cell_of(coordinate{base[k][l], fraction[k][l]}, n[k]);
        first_of_cell[l] = first_of_cell[l] * n[k] + cell.index;
        float own[4];
        bspline_weights(cell.t, own);
        for (int j = 0; j < 4; ++j) w[k][j][l] = own[j];
      }
    for (int begin = 0, end = 0; begin < width; begin = end) {
      std::uint32_t done = 1;
      for (; end < width && first_of_cell[end] == first_of_cell[begin]; ++end) done &= converged[end];
      if (done == 0) sum(grid.vectors + first_of_cell[begin], w, begin, end, next);
    }
  }

  // Sums the displacements of lanes begin to end - 1, which share their control vectors.
  void sum(const control_vector* row, const float (&w)[3][4][width], int begin, int end,
           float (&next)[3][width]) const {
    const vec3<std::int32_t>& n = grid.drawn.control_points;
    float volume[3][width] = {};
    for (int a = 0; a < 4; ++a) {
      float plane[3][width] = {};
      sum_control_plane(
          row, n, [&](int j, int l) { return w[1][j][l]; }, [&](int j, int l) { return w[2][j][l]; }, plane);
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < width; ++l) volume[k][l] = fma(w[0][a][l], plane[k][l], volume[k][l]);
    }
    for (int k = 0; k < 3; ++k)
      for (int l = 0; l < width; ++l) next[k][l] = l >= begin && l < end ? volume[k][l] : next[k][l];
  }
};

}  // namespace suture::detail
