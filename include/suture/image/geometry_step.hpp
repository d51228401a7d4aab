// SPDX-License-Identifier: Apache-2.0
// Effect of a geometry operation on a grid.
#pragma once

#include "grid.hpp"

namespace suture {

// The output extents of a geometry operation depend on one of these; every operation of the library declares which:
//   static constexpr auto gives_size = output_size::fixed;
//   fixed    on its parameters alone: every sample comes out in one size, whatever goes in
//   alike    on its parameters and the extents of the input: samples of one size come out in one size
//   varying  on more: spacing, direction, what is drawn
enum class output_size { fixed, alike, varying };

struct geometry_step {
  grid output;
  affine_map pull;  // output continuous index -> input continuous index
};

// The output grid of the operations so far, and its position in the source of the sample.
struct placed_grid {
  const grid& output;
  const grid& source;
  const affine_map& to_source;  // output continuous index -> source continuous index
};

// All voxels of a grid, reversed along some axes. A geometry operation that only selects voxels returns this or a
// voxel_box, which may extend beyond the input. Every voxel keeps its physical position.
struct reversed_axes {
  vec3<bool> axes;
};

namespace detail {

// Selects voxels without making a geometry_step: `map` becomes map * pull, and `output`, which may be `input`, becomes
// the new grid. Only the numbers that change are written. Returns whether those are valid.
SUTURE_INLINE bool pick(const voxel_box& box, const grid& input, grid& output, affine_map& map) {
  const auto first = vec_cast<double>(box.first);
  const point3 origin = input.index_to_physical()(first);
  if (&output != &input) output = input;
  output.extents = box.size;
  const point3 offset = map(first);
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) {
    output.origin[k] = origin[k];
    map.offset[k] = offset[k];
  }
  return sound(box.size) && finite(origin);
}
SUTURE_INLINE bool pick(const reversed_axes& reversed, const grid& input, grid& output, affine_map& map) {
  point3 first{}, sense{};
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) {
    // Arithmetic replaces a branch on a random value, which would be mispredicted half the time.
    const int is_reversed = reversed.axes[k] ? 1 : 0;
    first[k] = static_cast<double>((input.extents[k] - 1) * is_reversed);
    sense[k] = 1 - 2 * is_reversed;
  }
  const point3 origin = input.index_to_physical()(first), offset = map(first);
  if (&output != &input) output = input;
  SUTURE_UNROLL
  for (int i = 0; i < 3; ++i) {
    output.origin[i] = origin[i];
    map.offset[i] = offset[i];
    SUTURE_UNROLL
    for (int j = 0; j < 3; ++j) {
      output.direction[i][j] *= sense[j];
      map.linear[i][j] *= sense[j];
    }
  }
  return finite(origin);
}

}  // namespace detail

}  // namespace suture
