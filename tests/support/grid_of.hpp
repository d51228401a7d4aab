// SPDX-License-Identifier: Apache-2.0
// A grid of these extents, and of what a grid has by default.
#pragma once

#include "suture/image/grid.hpp"

namespace support {

inline suture::grid grid_of(std::int64_t z, std::int64_t y, std::int64_t x) { return {.extents = {z, y, x}}; }

}  // namespace support
