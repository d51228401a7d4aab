// SPDX-License-Identifier: Apache-2.0
// Where a value stands: the context a value operation may ask for.
#pragma once

#include <cstdint>

#include "config.hpp"

namespace suture {

namespace detail {
struct shared_normals;
}

struct voxel {
  std::int32_t sample_index;  // position in the batch; never reaches a random number
  std::int32_t channel;
  std::int32_t z, y, x;   // index in the grid the operation writes
  std::uint64_t element;  // channel * voxels + linear index in that grid: the counter of per-voxel noise
  std::uint64_t voxels;   // of that grid
  const detail::shared_normals* normals = nullptr;  // where some were made ahead, see normal_at
  int first_normal = 0;                             // of the operation
};

// The voxel at (z, y, x) of a channel in a grid of these extents.
SUTURE_FN voxel voxel_at(const std::int32_t (&extents)[3], std::int32_t sample_index, std::int32_t channel,
                         std::int32_t z, std::int32_t y, std::int32_t x) {
  const std::int64_t row = (channel * static_cast<std::int64_t>(extents[0]) + z) * extents[1] + y;
  const std::int64_t voxels = static_cast<std::int64_t>(extents[0]) * extents[1] * extents[2];
  return {sample_index,
          channel,
          z,
          y,
          x,
          static_cast<std::uint64_t>(row * extents[2] + x),
          static_cast<std::uint64_t>(voxels)};
}

// The voxel at the same place in another channel.
SUTURE_FN voxel in_channel(voxel at, std::int32_t channel) {
  at.element += static_cast<std::uint64_t>(static_cast<std::int64_t>(channel - at.channel)) * at.voxels;
  at.channel = channel;
  return at;
}

}  // namespace suture
