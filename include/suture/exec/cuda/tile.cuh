// SPDX-License-Identifier: Apache-2.0
// Division of the output among the blocks of the fused kernel, and which voxels of its tile a thread makes.
#pragma once

#include "../../base/divisor.hpp"
#include "tuning.hpp"

namespace suture::detail {

struct tile_counts {
  std::int32_t x = 1, y = 1, z = 1;  // in runs x alone
  std::int32_t rows = 1;             // of tiles that a block makes
  std::int32_t depth = tile_z;       // of a tile
  // Normals made by a block: 2^channel_shift channels for a block, and how many parts these make.
  std::int32_t channel_shift = 0, parts = 1;
  // Precomputed fast division by `x` and by `y`.
  divisor by_x{}, by_y{};

  std::int64_t all() const { return static_cast<std::int64_t>(x) * y * z; }
};

// Voxels of a tile that a thread computes: (z0 .. z1 - 1, y, x), if there are any.
struct column_of_thread {
  std::int32_t z0, z1, y, x;
  bool inside;
  std::int32_t tile_y0, tile_x0;  // where the tile begins

  // Run: how many neighbors along x a thread makes. Wide: lanes of a warp along x, the others along y.
  template <int Run, int Wide>
  __device__ __forceinline__ static column_of_thread in_tile(const tile_counts& tiles,
                                                             const std::int32_t (&extents)[3]) {
    const std::uint32_t row = tiles.by_x(blockIdx.x), layer = tiles.by_y(row);
    const auto tile_of_row = static_cast<std::int32_t>(blockIdx.x - row * static_cast<std::uint32_t>(tiles.x));
    const auto row_of_layer = static_cast<std::int32_t>(row - layer * static_cast<std::uint32_t>(tiles.y));
    const std::int32_t lane = static_cast<std::int32_t>(threadIdx.x) & 31;
    const std::int32_t warp = static_cast<std::int32_t>(threadIdx.x) >> 5;
    column_of_thread c;
    c.tile_x0 = tile_of_row * tile_x * Run;
    c.tile_y0 = row_of_layer * (tiles.rows * tile_y);
    constexpr std::int32_t across = tile_x / Wide;
    c.x = c.tile_x0 + (warp % across * Wide + lane % Wide) * Run;
    c.y = c.tile_y0 + warp / across * (32 / Wide) + lane / Wide;
    c.inside = c.x < extents[2] && c.y < extents[1];
    c.z0 = static_cast<std::int32_t>(layer) * tiles.depth;
    c.z1 = min(c.z0 + tiles.depth, extents[0]);
    return c;
  }
};

}  // namespace suture::detail
