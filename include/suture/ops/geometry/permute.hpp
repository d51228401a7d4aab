// SPDX-License-Identifier: Apache-2.0
// Reordering of the array axes.
#pragma once

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "relabel.hpp"

namespace suture {

// permute: output axis k is input axis order[k], as numpy.transpose; 0, 1, 2 are z, y, x.
//   The physical place of every voxel is kept: spacing and direction follow. Errors: an order that is no permutation.
struct permute {
  static constexpr std::string_view name = "permute";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = false;

  vec3<std::int32_t> order{0, 1, 2};

  static constexpr auto parameters = named("order", orders_axes(&permute::order));

  geometry_step step(const grid& input, const site& where) const {
    int seen = 0;
    for (int k = 0; k < 3; ++k)
      if (order[k] >= 0 && order[k] < 3) seen |= 1 << order[k];
    require(seen == 7, where, "order ", order, " must name each of the axes 0, 1, 2 once");
    return detail::axis_relabeling{.source = vec_cast<int>(order)}.step(input);
  }
};

}  // namespace suture
