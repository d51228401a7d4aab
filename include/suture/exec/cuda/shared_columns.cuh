// SPDX-License-Identifier: Apache-2.0
// Displacements for samples whose lanes run along z. Along z, within one control cell, each component of a displacement
// is a cubic polynomial. The threads of a block compute these cubics once and share them. The bits are those of a walk
// along z.
#pragma once

#include "../../evaluate/evaluator.hpp"
#include "tile.cuh"

namespace suture::detail {

// Tests whether kernels of an evaluator compute such columns. Kernels that share normals (shared_normals.cuh) have
// neither the shared memory nor the registers for it.
template <class Evaluator>
inline constexpr bool makes_columns = [] {
  using P = typename Evaluator::pipeline_type;
  return P::separable_deformation && !P::is_staged && !P::is_color && Evaluator::normals == 0;
}();

// Tests whether a row of lanes along z lies in at most room_cells control cells, so that there is room for their
// columns.
inline bool fit_in_room(const control_grid& g) {
  const auto step = static_cast<std::int64_t>(g.to_control.linear[0][0]);
  return whole(static_cast<std::uint64_t>((step < 0 ? -step : step) * (tile_x - 1))) < room_cells - 1;
}

// The columns of displacements of a block, in shared memory.
struct room_for_columns {
  static constexpr bool crosses = true;
  static constexpr std::uint32_t most = tile_y * room_planes * room_cells;

  displacement_column columns[most];      // by control cell, plane of the loops and row; rows vary fastest
  std::int32_t of_thread[fused_threads];  // the column of each thread in plane 0
  bool made, keeps;                       // whether there are columns; whether threads walk along z

  // Computes the columns of a tile that overlaps the grid, if lanes run along z. All threads of a block call this. A
  // graph that was captured for another order may have tiles too deep for the room; displacements are then summed at
  // every voxel.
  __device__ __forceinline__ void make(const control_grid& g, std::uint8_t loops, const std::int32_t (&extents)[3],
                                       const column_of_thread& at) {
    if (threadIdx.x == 0) {
      made = false;
      keeps = loops != lanes_along_z;
    }
    if (g.on && loops == lanes_along_z) make_across(g, extents, at);
    __syncthreads();
  }

  // The interface that column::locate uses.
  __device__ __forceinline__ bool any() const { return made; }
  __device__ __forceinline__ const displacement_column& at(std::int32_t plane) const {
    return columns[of_thread[threadIdx.x] + plane * tile_y];
  }
  // Returns cell_z if the next voxel of a walk may use the column of this cell again, and otherwise -1.
  __device__ __forceinline__ std::int32_t kept(std::int32_t cell_z) const { return keeps ? cell_z : -1; }

private:
  __device__ __forceinline__ void make_across(const control_grid& g, const std::int32_t (&extents)[3],
                                              const column_of_thread& at) {
    const vec3<std::int32_t>& n = g.drawn.control_points;
    const auto cell_at = [&](std::int32_t lane) { return cell_of(along(g.to_control, 0, 0, 0, lane), n[0]).index; };
    const std::int32_t a = cell_at(at.tile_x0), b = cell_at(min(at.tile_x0 + tile_x, extents[2]) - 1);
    const std::int32_t low = min(a, b), planes = at.z1 - at.z0;
    const auto all = static_cast<std::uint32_t>(planes * tile_y * (abs(a - b) + 1));
    if (all > most) return;  // too deep, or beyond the grid
    if (threadIdx.x == 0) made = true;
    of_thread[threadIdx.x] = ((cell_at(at.x) - low) * planes - at.z0) * tile_y + at.y - at.tile_y0;
    SUTURE_NO_UNROLL
    for (std::uint32_t i = threadIdx.x; i < all; i += fused_threads) {
      const auto row = static_cast<std::int32_t>(i % tile_y), line = static_cast<std::int32_t>(i / tile_y);
      const auto cell = static_cast<std::int32_t>(i / tile_y / static_cast<std::uint32_t>(planes));
      const std::int32_t plane = line - cell * planes;
      const auto place = [&](int axis) {
        return cell_of(along(g.to_control, axis, at.z0 + plane, at.tile_y0 + row, 0), n[axis]);
      };
      make_one(g, low + cell, place(1), place(2), columns[i].c);
    }
  }

  // Computes what displacement_column::set does, but one row of control vectors after the other, with fewer registers.
  __device__ __forceinline__ static void make_one(const control_grid& g, std::int32_t cell_z, const control_cell& cy,
                                                  const control_cell& cx, float (&c)[3][4][1]) {
    float wy[4], wx[4];
    bspline_weights(cy.t, wy);
    bspline_weights(cx.t, wx);
    const vec3<std::int32_t>& n = g.drawn.control_points;
    const control_vector* row = g.vectors + (cell_z * n[1] + cy.index) * n[2] + cx.index;
    SUTURE_NO_UNROLL
    for (int a = 0; a < 4; ++a, row += (n[1] - 4) * n[2]) {
      float plane[3][1] = {};
      SUTURE_NO_UNROLL
      for (int j = 0; j < 4; ++j) {
        sum_control_plane<1>(
            row, n, [&](int k, int) { return wy[k]; }, [&](int k, int) { return wx[k]; }, plane);
        const float used = wy[0];  // rotates the weights: a variable index would move them out of registers
        SUTURE_UNROLL
        for (int k = 0; k < 3; ++k) wy[k] = wy[k + 1];
        wy[3] = used;
      }
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) c[k][a][0] = plane[k][0];
    }
    SUTURE_NO_UNROLL
    for (int k = 0; k < 3; ++k) {
      const float q[4] = {c[k][0][0], c[k][1][0], c[k][2][0], c[k][3][0]};
      float cubic[4];
      bspline_polynomial(q, cubic);
      SUTURE_UNROLL
      for (int j = 0; j < 4; ++j) c[k][j][0] = cubic[j];
    }
  }
};

}  // namespace suture::detail
