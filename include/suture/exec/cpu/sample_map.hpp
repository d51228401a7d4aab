// SPDX-License-Identifier: Apache-2.0
// Properties of the map of a sample on the CPU: whether it keeps the axes of the source, the direction of lanes whose
// voxels coincide with voxels of the source, as after crops, flips and quarter turns, and the order in which the sample
// is visited.
#pragma once

#include <algorithm>

#include "path.hpp"

namespace suture::detail {

// Tests whether every axis of the output runs along the same axis of the source, as after resampling.
template <class P>
bool keeps_axes(const sample_parameters<P>& sample) {
  return sample.kind >= map_kind::keeps_axes;
}

// The axis of the source that lanes run along, and the direction.
struct lane_direction {
  int axis;
  int sign;  // 0 if lanes do not follow consecutive voxels
};

// The lanes of a strip on a row of the source. The first `count` are in the row of the output; the others repeat the
// last of these.
template <class Border>
struct lanes_on_row {
  std::int32_t first, direction, extent;
  int count;

  std::int32_t of_lane(int l) const { return first + direction * std::min(l, count - 1); }
  bool has(int l) const { return inside(of_lane(l), extent); }
  // Returns the voxel that lane l reads: that of the border rule or, if the rule has a constant there, the nearest one,
  // whose value is not used. Both are in memory, even if only a box of the source is.
  std::int32_t readable(int l) const {
    const std::int32_t i = index_of_voxel<Border>(of_lane(l), extent);
    return i < 0 ? std::clamp(of_lane(l), 0, extent - 1) : i;
  }
  // Tests whether a full strip is inside the source, and whether a strip is entirely outside.
  bool is_inside() const { return count == strip_width && inside(first, extent) && inside(last(), extent); }
  bool is_beyond() const { return std::max(first, last()) < 0 || std::min(first, last()) >= extent; }

private:
  std::int32_t last() const { return first + direction * (strip_width - 1); }
};

// Returns the direction of lanes if every voxel of the sample coincides with a source voxel; otherwise sign is 0.
template <class P>
lane_direction direction_of_lanes(const sample_parameters<P>& sample) {
  constexpr std::uint64_t one = std::uint64_t{1} << fixed_fraction_bits;
  if (sample.kind == map_kind::displaced) return {};
  const fixed_map& map = sample.map;
  lane_direction along{};
  std::uint64_t fractions = 0;
  for (int k = 0; k < 3; ++k) {
    fractions |= map.offset[k] | map.linear[k][0] | map.linear[k][1];
    const std::uint64_t step = map.linear[k][2];
    if (step == 0) continue;
    if (along.sign != 0 || (step != one && step != 0 - one)) return {};
    along = {k, step == one ? 1 : -1};
  }
  return fractions % one == 0 ? along : lane_direction{};
}

// Returns 1 or -1 if a sample is read row by row, forwards or backwards: its voxels coincide with voxels of the source,
// and lanes run along the same axis in source and output. Otherwise returns 0, also for samples that keep their axes
// with interpolation of more than two voxels along an axis, as their rows share sums.
template <class P>
int direction_in_memory(const sample_parameters<P>& sample) {
  if constexpr (P::interpolation_type::taps > 2)
    if (keeps_axes(sample)) return 0;
  const lane_direction along = direction_of_lanes(sample);
  return along.axis == loop_axes[sample.loops][2] ? along.sign : 0;
}

// Shape of the bricks of a sample that is read in the order of memory: as many whole planes, or rows of one plane, as
// have the voxels of a brick of `depth` planes of brick_rows typical rows.
template <class P>
brick_shape shape_in_memory_order(const sample_parameters<P>& sample, std::int32_t depth) {
  const std::int32_t voxels = depth * brick_rows * typical_row, width = sample.extents[2];
  const std::int32_t rows = std::clamp(voxels / width, 1, sample.extents[1]);
  return {std::max(voxels / (rows * width), 1), rows};
}

// Returns the order of loops for a sample whose output lies in `memory_order`. It is that order, except that:
// - With geometry and x innermost in memory it is z, y, x, as sums are reused from one plane of z to the next. A source
//   that is read row by row keeps the memory order.
// - If a functor needs strips along x, rows run along x, and squares of strips are transposed (rows_along_x.hpp).
// - If a later stage or a functor of a color pipeline needs them, lanes run along x, and rows along z or y, whichever
//   has the smaller stride: they share cache lines. Rows that share sums run along y.
template <class Pipeline>
std::uint8_t loops_of_strips(const sample_parameters<Pipeline>& sample, std::uint8_t memory_order) {
  if constexpr (Pipeline::has_geometry)
    if (loop_axes[memory_order][2] == 2 && direction_in_memory(sample) == 0) return 0;
  if (!lanes_stay_along_x(sample)) return memory_order;
  if constexpr (can_transpose_strips<Pipeline>)
    return loop_axes[memory_order][2] == 2 ? memory_order : with_rows_along_x(memory_order);
  if constexpr (Pipeline::has_geometry)
    if (sample.kind == map_kind::displaced || (keeps_axes(sample) && direction_in_memory(sample) == 0)) return 0;
  return with_lanes_along_x(memory_order);
}

}  // namespace suture::detail
