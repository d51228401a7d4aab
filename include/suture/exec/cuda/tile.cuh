// SPDX-License-Identifier: Apache-2.0
// Division of the output among the blocks of the fused kernel. A tile is the part of the output that a block computes;
// its threads compute a column along z each.
#pragma once

#include "../../base/divisor.hpp"
#include "tuning.hpp"

namespace suture::detail {

// The number and the shape of tiles, the same for all samples of a batch.
struct tile_counts {
  std::int32_t x = 1, y = 1, z = 1;  // blocks along each axis; blocks of runs (run_shape) are all counted in x
  std::int32_t rows = 1;             // a block computes this many times tile_y rows
  std::int32_t depth = tile_z;       // planes of a tile
  // If threads share normals, a block computes at most 2^channel_shift channels, and `parts` blocks share a tile.
  std::int32_t channel_shift = 0, parts = 1;
  divisor by_x{}, by_y{};  // fast division by `x` and by `y`

  std::int64_t all() const { return static_cast<std::int64_t>(x) * y * z; }
};

// The voxels of a tile that a thread computes: (z0 .. z1 - 1, y, x), or none if it is not `inside` the output.
struct column_of_thread {
  std::int32_t z0, z1, y, x;
  bool inside;
  std::int32_t tile_y0, tile_x0;  // where the tile begins

  // Returns the column of this thread. Run: the neighbors along x that a thread computes. Wide: the number of a warp's
  // lanes along x; its other lanes are in further rows.
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
