// SPDX-License-Identifier: Apache-2.0
// The position of a value, which a value operation may take as an argument.
#pragma once

#include <cstdint>

#include "config.hpp"

namespace suture {

namespace detail {
struct shared_normals;
}

struct voxel {
  std::int32_t sample_index;  // position in the batch; random numbers do not depend on it
  std::int32_t channel;
  std::int32_t z, y, x;   // index in the grid the operation writes
  std::uint64_t element;  // channel * voxels + linear index in that grid: the counter of per-voxel noise
  std::uint64_t voxels;   // of that grid
  const detail::shared_normals* normals = nullptr;  // normals computed in advance, or null; see normal_at
  int first_normal = 0;                             // number of the operation's first normal among them
  std::int32_t walk_index = 0;                      // position of the voxel in the walk of its thread
};

// One voxel of one channel of one sample of a batch.
struct voxel_index {
  std::int32_t sample, channel, z, y, x;
};

// Returns the voxel at index i of a grid of these extents.
SUTURE_FN voxel voxel_at(const std::int32_t (&extents)[3], const voxel_index& i) {
  const std::int64_t row = (i.channel * static_cast<std::int64_t>(extents[0]) + i.z) * extents[1] + i.y;
  const std::int64_t voxels = static_cast<std::int64_t>(extents[0]) * extents[1] * extents[2];
  return {i.sample,
          i.channel,
          i.z,
          i.y,
          i.x,
          static_cast<std::uint64_t>(row * extents[2] + i.x),
          static_cast<std::uint64_t>(voxels)};
}

// The voxel at the same place in another channel.
SUTURE_FN voxel in_channel(voxel at, std::int32_t channel) {
  at.element += static_cast<std::uint64_t>(static_cast<std::int64_t>(channel - at.channel)) * at.voxels;
  at.channel = channel;
  return at;
}

}  // namespace suture
