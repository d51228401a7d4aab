// SPDX-License-Identifier: Apache-2.0
// Effect of a geometry operation on a grid.
#pragma once

#include "grid.hpp"

namespace suture {

// Dependence of the output extents of a geometry operation. Every operation of the library declares it:
//   static constexpr auto gives_size = output_size::fixed;
//   fixed    on its parameters alone: every sample comes out in one size, whatever goes in
//   alike    on its parameters and the extents of the input: samples of one size come out in one size
//   varying  on more: spacing, direction, what is drawn
enum class output_size { fixed, alike, varying };

struct geometry_step {
  grid output;
  affine_map pull;  // output continuous index -> input continuous index
};

// The grid that a chain has reached, and its position in the source of the sample.
struct placed_grid {
  const grid& output;
  const grid& source;
  const affine_map& to_source;  // output continuous index -> source continuous index
};

// All voxels of a grid, read backwards along some axes. An operation that only picks voxels returns this or a
// voxel_box, which may leave the input. Every voxel keeps its physical position.
struct reversed_axes {
  vec3<bool> axes;
};

namespace detail {

// Picks voxels without making a geometry_step: `map` becomes map * pull, `output`, which may be the input, the grid. In
// few numbers, each of them where it stays. Returns whether what has changed is sound.
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
    // Arithmetic replaces a branch: half of those on random values are mispredicted.
    const int turned = reversed.axes[k] ? 1 : 0;
    first[k] = static_cast<double>((input.extents[k] - 1) * turned);
    sense[k] = 1 - 2 * turned;
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
