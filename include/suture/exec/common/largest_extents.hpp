// SPDX-License-Identifier: Apache-2.0
// The extents that bound all outputs of a batch.
#pragma once

#include <algorithm>
#include <cstddef>

#include "../../base/vec.hpp"

namespace suture::detail {

// Returns the extents of the outputs of a plan, the largest along each axis.
template <class Plan>
extent3 largest_extents(const Plan& plan) {
  extent3 most{0, 0, 0};
  for (std::size_t i = 0; i < plan.size(); ++i)
    for (int k = 0; k < 3; ++k) most[k] = std::max(most[k], plan.output_grid(i).extents[k]);
  return most;
}

}  // namespace suture::detail
