// SPDX-License-Identifier: Apache-2.0
// This path of the CPU executor (path.hpp) serves every sample with geometry. It writes a brick strip by strip; a strip
// is strip_width voxels of a row. Strips at the same x form a column, which is finished before the next one, because
// neighboring rows read the same source. A deformation reuses sums from plane to plane, so for it the outer loop runs
// over rows; otherwise it runs over planes.
#pragma once

#include "path.hpp"

namespace suture::detail {

struct moved_strips {
  static constexpr std::string_view name = "moved_strips";

  template <class Evaluator>
  static constexpr bool possible = Evaluator::pipeline_type::has_geometry;

  template <class Pipeline>
  static brick_shape shape(const sample_parameters<Pipeline>& sample, std::int32_t depth) {
    if (transposes_strips(sample)) return {brick_rows, strip_width};
    return keeps_along_rows(sample) ? brick_shape{brick_rows, depth} : brick_shape{depth, brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static void make(const brick_work<Evaluator>& work, Stages& stages) {
    if constexpr (Evaluator::pipeline_type::has_deformation)
      if (work.r.sample.kind == map_kind::displaced && !keeps_along_rows(work.r.sample))
        return walk<1, WithLabels>(work, stages);
    walk<0, WithLabels>(work, stages);
  }

private:
  // Outer is the outer loop: planes (0) or rows (1). Deformations take 7 to 12 % less time with it as a constant.
  template <int Outer, bool WithLabels, class Evaluator, class Stages>
  static void walk(const brick_work<Evaluator>& work, Stages& stages) {
    const auto& sample = work.r.sample;
    constexpr int inner = 1 - Outer;
    const std::int32_t width = sample.extents[2];
    const auto [planes, rows] = shape(sample, work.depth);
    const std::int32_t begin[2] = {work.z0, work.y0}, end[2] = {work.z1, work.y1};
    for (std::int32_t x0 = 0; x0 < width; x0 += strip_width) {
      strip<typename Evaluator::pipeline_type> s(sample, x0);
      // Prefetches what the outer loop reads two steps later: in this column, the next column or the next brick.
      const bool has_next = x0 + strip_width < width;
      std::int32_t at[2];
      for (at[Outer] = begin[Outer]; at[Outer] < end[Outer]; ++at[Outer]) {
        std::int32_t ahead[2] = {};
        ahead[Outer] = 2;
        const bool past_end = at[Outer] + 2 >= end[Outer];
        if (past_end) ahead[Outer] -= Outer == 0 ? planes : rows;
        if (past_end && !has_next) ahead[1] += rows;
        s.expect(ahead[0], ahead[1], !past_end ? 0 : has_next ? strip_width : -x0);
        for (at[inner] = begin[inner]; at[inner] < end[inner]; ++at[inner]) {
          s.locate(at[0], at[1]);
          each_pair<Evaluator, WithLabels>([&]<std::size_t B>() { write_strip<B>(work, s, stages, at[0], at[1], x0); });
        }
      }
    }
  }

  // Tests whether the outer loop runs along x of the output: a separable deformation then reuses its sums from row to
  // row instead.
  template <class Pipeline>
  static bool keeps_along_rows(const sample_parameters<Pipeline>& sample) {
    return Pipeline::separable_deformation && sample.kind == map_kind::displaced && loop_axes[sample.loops][0] == 2;
  }
};

}  // namespace suture::detail
