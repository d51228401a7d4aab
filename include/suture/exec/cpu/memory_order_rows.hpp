// SPDX-License-Identifier: Apache-2.0
// A path of the CPU executor: samples that stand on voxels in rows of the source, as after crops and flips, are read
// row by row in the order of memory.
#pragma once

#include <string_view>

#include "axis_aligned_rows.hpp"

namespace suture::detail {

// The axis of the source that lanes run along, in its direction or against it.
struct lane_direction {
  int axis;
  int sign;  // 0 where pixels do not stand on pixels one after the other
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

struct memory_order_rows {
  static constexpr std::string_view name = "memory_order_rows";

  template <class Evaluator>
  static constexpr bool possible = Evaluator::pipeline_type::has_geometry;
  static constexpr bool serves_all = false;

  template <class Parameters>
  static bool serves(const Parameters& sample) {
    return direction_in_memory(sample) != 0;
  }
  // Whole planes, or as many rows of one.
  template <class Parameters>
  static brick_shape shape(const Parameters& sample, std::int32_t depth) {
    const std::int32_t voxels = depth * brick_rows * typical_row, width = sample.extents[2];
    const std::int32_t rows = std::clamp(voxels / width, 1, sample.extents[1]);
    return {std::max(voxels / (rows * width), 1), rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static bool make(const brick_work<Evaluator>& work, Stages& stages) {
    for (std::int32_t z = work.z0; z < work.z1; ++z)
      each_strip_of_plane(work, [&](std::int32_t y, std::int32_t x0) {
        strip<typename Evaluator::pipeline_type> walk(work.r.sample, x0);
        walk.expect(1, 0, 0);
        walk.locate(z, y);
        write_strips<WithLabels>(work.evaluate, work.r, work.sample_index, walk, stages, z, y, x0);
      });
    return true;
  }
};

}  // namespace suture::detail
