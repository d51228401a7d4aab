// SPDX-License-Identifier: Apache-2.0
// A path of the CPU executor, for samples with a displacement: strips of 32 voxels, plane after plane before row
// after row, along which a displacement keeps what it has worked out; where planes run along x, row after row first.
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
  // Whether planes run along x, and a separable displacement keeps what rows share.
  template <class Pipeline>
  static bool keeps_along_rows(const sample_parameters<Pipeline>& sample) {
    return Pipeline::separable_deformation && loop_axes[sample.loops][0] == 2;
  }
  template <class Pipeline>
  static brick_shape shape(const sample_parameters<Pipeline>& sample, std::int32_t depth) {
    if (turns_over(sample)) return {brick_rows, strip_width};
    return keeps_along_rows(sample) ? brick_shape{brick_rows, depth} : brick_shape{depth, brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static bool make(const brick_work<Evaluator>& work, Stages& stages) {
    const bool by_planes = keeps_along_rows(work.r.sample);
    const std::int32_t width = work.r.sample.extents[2];
    const std::int32_t outer[2] = {by_planes ? work.z0 : work.y0, by_planes ? work.z1 : work.y1};
    const std::int32_t inner[2] = {by_planes ? work.y0 : work.z0, by_planes ? work.y1 : work.z1};
    for (std::int32_t x0 = 0; x0 < width; x0 += strip_width) {
      strip<typename Evaluator::pipeline_type> walk(work.r.sample, x0);
      // Prefetches the block that is read two rows later, in this column of strips or in the next one.
      const bool has_next = x0 + strip_width < width;
      const std::int32_t next_x = has_next ? strip_width : -x0;
      for (std::int32_t i = outer[0]; i < outer[1]; ++i) {
        const std::int32_t ahead = i + 2 < outer[1] ? 2 : has_next ? 2 - brick_rows : 2;
        walk.expect(by_planes ? ahead : 0, by_planes ? 0 : ahead, i + 2 < outer[1] ? 0 : next_x);
        for (std::int32_t j = inner[0]; j < inner[1]; ++j) {
          const std::int32_t z = by_planes ? i : j, y = by_planes ? j : i;
          walk.locate(z, y);
          write_strips<WithLabels>(work.evaluate, work.r, work.sample_index, walk, stages, z, y, x0);
        }
      }
    }
    return true;
  }
};

}  // namespace suture::detail
