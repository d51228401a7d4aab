// SPDX-License-Identifier: Apache-2.0
// A path of the CPU executor, for samples with a displacement: strips of 32 voxels along x, plane after plane before
// row after row, along which a displacement keeps what it has worked out.
#pragma once

#include "path.hpp"

namespace suture::detail {

struct displaced_strips {
  static constexpr std::string_view name = "displaced_strips";

  template <class Evaluator>
  static constexpr bool possible = Evaluator::pipeline_type::has_deformation;
  static constexpr bool serves_all = false;

  template <class Pipeline>
  static bool serves(const sample_parameters<Pipeline>& sample) {
    return strip<Pipeline>::deformed(sample);
  }
  template <class Parameters>
  static brick_shape shape(const Parameters&, std::int32_t depth) {
    return {depth, brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static bool make(const brick_work<Evaluator>& work, Stages& stages) {
    const std::int32_t width = work.r.sample.extents[2];
    for (std::int32_t x0 = 0; x0 < width; x0 += strip_width) {
      strip<typename Evaluator::pipeline_type> walk(work.r.sample, x0);
      // Prefetches the block that is read two rows later, in this column of strips or in the next one.
      const bool has_next = x0 + strip_width < width;
      const std::int32_t next_y = has_next ? 0 : brick_rows, next_x = has_next ? strip_width : -x0;
      for (std::int32_t y = work.y0; y < work.y1; ++y) {
        y + 2 < work.y1 ? walk.expect(0, 2, 0) : walk.expect(0, 2 - brick_rows + next_y, next_x);
        for (std::int32_t z = work.z0; z < work.z1; ++z) {
          walk.locate(z, y);
          write_strips<WithLabels>(work.evaluate, work.r, work.sample_index, walk, stages, z, y, x0);
        }
      }
    }
    return true;
  }
};

}  // namespace suture::detail
