// SPDX-License-Identifier: Apache-2.0
// What a geometry operation does to a grid.
#pragma once

#include "grid.hpp"

namespace suture {

struct geometry_step {
  grid output;
  affine_map pull;  // output continuous index -> input continuous index
};

}  // namespace suture
