// SPDX-License-Identifier: Apache-2.0
// Strips that run along z or y, for value operations that process strips along x: 32 strips that are neighbors along x
// are transposed, passed to the operations, and transposed back. Memory is read and written in its order.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "path.hpp"

namespace suture::detail {

// Collects the strips of a brick into squares of up to 32 rows and passes these to the operations after the geometry.
// In each plane and channel, all strips of one square must come before those of the next.
template <class Evaluator, class Stages>
class rows_along_x {
  using P = typename Evaluator::pipeline_type;
  static constexpr int width = strip_width;

public:
  const bool transposes;

  rows_along_x(const brick_work<Evaluator>& work, Stages& stages)
      : transposes(transposes_strips(work.r.sample)), work_(work), stages_(stages) {
    if (!transposes) return;
    std::size_t channels = 0;
    for (std::size_t b = 0; b < Evaluator::pairs; ++b) {
      first_[b] = channels;
      channels += static_cast<std::size_t>(work.r.in[b].channels);
    }
    squares_.resize(channels * static_cast<std::size_t>(work.z1 - work.z0));
  }

  template <std::size_t B>
  void receive(float (&v)[width], const voxel_index& at) {
    stages_.template receive<B>(v, at);
  }

  // Receives a strip before the operations after the geometry, and finishes a square with its last strip.
  template <std::size_t B>
  void receive_unfinished(const float (&v)[width], const voxel_index& at) {
    const auto planes = static_cast<std::size_t>(work_.z1 - work_.z0);
    square& s = squares_[(first_[B] + static_cast<std::size_t>(at.channel)) * planes +
                         static_cast<std::size_t>(at.z - work_.z0)];
    const std::int32_t row = (at.y - work_.y0) % width, y0 = at.y - row, rows = std::min(width, work_.y1 - y0);
    copy_strip(s.strips[row], v);
    if (++s.count < rows) return;
    s.count = 0;
    for (int i = rows; i < width; ++i) copy_strip(s.strips[i], v);
    finish<B>(s.strips, {at.sample, at.channel, at.z, y0, at.x}, rows);
  }

private:
  struct square {
    alignas(lane_alignment) float strips[width][width];
    int count = 0;
  };

  template <std::size_t B>
  void finish(const float (&strips)[width][width], const voxel_index& at, std::int32_t rows) {
    using Out = std::conditional_t<P::is_staged, float, typename Evaluator::template pair<B>::Out>;
    const auto& r = work_.r;
    const int lanes = work_.lanes_from(at.x);
    // Row i of the square, and where it lies in the output.
    const auto index_of = [&](std::int32_t i) { return voxel_index{at.sample, at.channel, at.z, at.y + i, at.x}; };
    const auto line_of = [&](std::int32_t i) { return element_at<Out>(r.out[B], index_of(i)); };
    const typename P::output_functors outputs = r.sample.output_functors;  // a copy, which no store can change
    alignas(lane_alignment) float along[width][width];
    alignas(lane_alignment) Out finished_rows[width][width];
    alignas(lane_alignment) Out finished_strips[width][width];
    if constexpr (!P::is_staged)
      for (int i = 0; i < rows; ++i) prefetch_strip(line_of(i), r.out[B].stride[2]);
    simd::transpose(strips, along);
    for (int l = 0; l < lanes; ++l)
      apply_lanes(outputs, along[l], along_x{voxel_of_loops(r.sample, {at.sample, at.channel, at.z, at.y, at.x + l})},
                  [&]<class R>(const R(&finished)[width]) {
                    if constexpr (P::is_staged)
                      copy_strip(finished_rows[l], finished);
                    else
                      write_stored(finished_rows[l], 1, finished, width);
                  });
    for (int l = lanes; l < width; ++l) copy_strip(finished_rows[l], finished_rows[lanes - 1]);
    simd::transpose(finished_rows, finished_strips);
    for (int i = 0; i < rows; ++i) {
      if constexpr (P::is_staged)
        stages_.template receive<B>(finished_strips[i], index_of(i));
      else
        write_row(line_of(i), r.out[B].stride[2], finished_strips[i], lanes);
    }
  }

  const brick_work<Evaluator>& work_;
  Stages& stages_;
  std::array<std::size_t, Evaluator::pairs> first_{};  // number of the first channel of each pair
  std::vector<square> squares_;
};

}  // namespace suture::detail
