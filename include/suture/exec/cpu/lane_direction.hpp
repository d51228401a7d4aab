// SPDX-License-Identifier: Apache-2.0
// Samples that stand on voxels in rows of the source, as after crops, flips and quarter turns: where their lanes lead.
#pragma once

#include <algorithm>

#include "path.hpp"
#include "strip.hpp"

namespace suture::detail {

// The axis of the source that lanes run along, in its direction or against it.
struct lane_direction {
  int axis;
  int sign;  // 0 where pixels do not stand on pixels one after the other
};

// The lanes of a strip on a row of the source, of which `count` are in the row of the output; those behind repeat the
// last.
template <class Border>
struct lanes_on_row {
  std::int32_t first, direction, extent;
  int count;

  std::int32_t of_lane(int l) const { return first + direction * std::min(l, count - 1); }
  bool has(int l) const { return inside(of_lane(l), extent); }
  // The nearest voxel in place of one outside, which is dropped: it is in memory, also where only a box is.
  std::int32_t readable(int l) const {
    const std::int32_t i = index_of_voxel<Border>(of_lane(l), extent);
    return i < 0 ? std::clamp(of_lane(l), 0, extent - 1) : i;
  }
  // Whether a full strip stands in the source, and whether all of one stands beyond it.
  bool is_inside() const { return count == strip_width && has(0) && has(strip_width - 1); }
  bool is_beyond() const {
    const std::int32_t last = of_lane(strip_width - 1);
    return std::max(first, last) < 0 || std::min(first, last) >= extent;
  }
};

template <class P>
lane_direction direction_of_lanes(const sample_parameters<P>& sample) {
  constexpr std::uint64_t one = std::uint64_t{1} << fixed_fraction_bits;
  if (strip<P>::deformed(sample)) return {};
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

// 1 or -1 where a sample is read row by row in the order of memory or against it: it stands on voxels, and lanes run
// along the same axis in source and output. Else 0, also where interpolation has more than two taps: rows that keep
// their axes share the sums of those.
template <class P>
int direction_in_memory(const sample_parameters<P>& sample) {
  if constexpr (P::interpolation_type::taps > 2)
    if (sample.kind >= map_kind::keeps_axes) return 0;
  const lane_direction along = direction_of_lanes(sample);
  return along.axis == loop_axes[sample.loops][2] ? along.sign : 0;
}

// Bricks of a sample that is read in the order of memory: whole planes, or as many rows of one.
template <class P>
brick_shape shape_in_memory_order(const sample_parameters<P>& sample, std::int32_t depth) {
  const std::int32_t voxels = depth * brick_rows * typical_row, width = sample.extents[2];
  const std::int32_t rows = std::clamp(voxels / width, 1, sample.extents[1]);
  return {std::max(voxels / (rows * width), 1), rows};
}

}  // namespace suture::detail
