// SPDX-License-Identifier: Apache-2.0
// The path of the CPU executor that takes every sample whose voxels are moved: strips of 32 voxels along x, rows side
// by side before strips end to end, as neighboring rows read the same source.
#pragma once

#include "path.hpp"

namespace suture::detail {

struct turned_strips {
  static constexpr std::string_view name = "turned_strips";

  template <class Evaluator>
  static constexpr bool possible = Evaluator::pipeline_type::has_geometry;
  static constexpr bool serves_all = true;

  template <class Parameters>
  static brick_shape shape(const Parameters& sample, std::int32_t depth) {
    return turns_over(sample) ? brick_shape{brick_rows, strip_width} : brick_shape{depth, brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static void make(const brick_work<Evaluator>& work, Stages& stages) {
    const std::int32_t width = work.r.sample.extents[2];
    const auto [planes, rows] = shape(work.r.sample, work.depth);
    for (std::int32_t x0 = 0; x0 < width; x0 += strip_width) {
      strip<typename Evaluator::pipeline_type> walk(work.r.sample, x0);
      // Prefetches the block that is read two planes later, in this column of strips or in the next one.
      const bool has_next = x0 + strip_width < width;
      const std::int32_t next_y = has_next ? 0 : rows, next_x = has_next ? strip_width : -x0;
      for (std::int32_t z = work.z0; z < work.z1; ++z) {
        z + 2 < work.z1 ? walk.expect(2, 0, 0) : walk.expect(2 - planes, next_y, next_x);
        for (std::int32_t y = work.y0; y < work.y1; ++y) {
          walk.expect_output(y, {work.y0, work.y1});
          walk.locate(z, y);
          write_strips<WithLabels>(work.evaluate, work.r, work.sample_index, walk, stages, z, y, x0);
        }
      }
    }
  }
};

}  // namespace suture::detail
