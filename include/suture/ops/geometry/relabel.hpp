// SPDX-License-Identifier: Apache-2.0
// Reordering and reversing array axes: what flip, rot90, permute and orient have in common.
#pragma once

#include "../../image/geometry_step.hpp"

namespace suture::detail {

// Output axis k is input axis source[k], read backwards where reversed[k]. Voxels keep their physical positions:
// origin, spacing and direction change accordingly, exactly (as in MONAI and nibabel).
struct axis_relabeling {
  vec3<int> source{0, 1, 2};
  vec3<bool> reversed{false, false, false};

  geometry_step step(const grid& input) const {
    geometry_step result{input, affine_map{diagonal({0, 0, 0})}};
    for (int k = 0; k < 3; ++k) {
      const int from = source[k];
      // Arithmetic is used, since branches on random values are often mispredicted.
      const int is_reversed = reversed[k] ? 1 : 0;
      const double sign = 1 - 2 * is_reversed;
      result.pull.linear[from][k] = sign;
      result.pull.offset[from] = static_cast<double>((input.extents[from] - 1) * is_reversed);
      result.output.extents[k] = input.extents[from];
      result.output.spacing[k] = input.spacing[from];
      for (int i = 0; i < 3; ++i) result.output.direction[i][k] = sign * input.direction[i][from];
    }
    result.output.origin = input.index_to_physical()(result.pull.offset);
    return result;
  }
};

}  // namespace suture::detail
