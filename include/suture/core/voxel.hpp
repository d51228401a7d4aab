// SPDX-License-Identifier: Apache-2.0
// Where a value stands: the context a value operation may ask for.
#pragma once

#include <cstdint>

namespace suture {

struct voxel {
  std::int32_t item;      // position in the batch; never reaches a random number
  std::int32_t channel;
  std::int32_t z, y, x;   // index in the grid the operation writes
  std::uint64_t element;  // channel * voxels + linear index in that grid: the counter of per-voxel noise
};

}  // namespace suture
