// SPDX-License-Identifier: Apache-2.0
// Tiles of rows along x in memory that is dense along the rows: value operations that treat rows along x at once get
// such rows, while memory is read and written along itself.
#pragma once

#include <algorithm>

#include "strip_writer.hpp"

namespace suture::detail {

// Whether the functors of a pipeline want rows along x from an output that is denser along another axis.
template <class Evaluator>
bool wants_tiles(const typename Evaluator::record_type& r, std::size_t binding) {
  using P = typename Evaluator::pipeline_type;
  if constexpr (any_asks_along_x<typename P::outputs> && !P::is_color && !P::is_staged) {
    const auto apart = [&](int k) {
      const std::int64_t stride = r.out[binding].stride[k];
      return stride < 0 ? -stride : stride;
    };
    return r.sample.extents[1] > 1 && apart(1) < apart(2) && lanes_stay_along_x(r.sample);
  } else {
    return false;
  }
}

// Makes voxels x0 .. of rows y0 .. y0 + rows - 1 of a plane: as many rows as a strip has lanes, or fewer. `from` is the
// source of (z, y0, x0), `steps` lead on from there along rows and lanes; left(v) makes what the outputs get.
template <std::size_t B, class Evaluator, class In, class Left>
void write_tile(const typename Evaluator::record_type& r, const In* from, const std::int64_t (&steps)[2],
                const Left& left, const voxel_index& at, std::int32_t rows) {
  using P = typename Evaluator::pipeline_type;
  using Out = typename Evaluator::template pair<B>::Out;
  constexpr int width = strip_width;
  const target_tensor& out = r.out[B];
  const int lanes = std::min(width, r.sample.extents[2] - at.x);
  Out* const to = static_cast<Out*>(out.data) + at.channel * out.channel_stride + at.z * out.stride[0] +
                  at.y * out.stride[1] + at.x * out.stride[2];
  alignas(lane_alignment) float across[width][width];
  alignas(lane_alignment) float along[width][width];
  for (int l = 0; l < width; ++l) {
    const In* const line = from + std::min(l, lanes - 1) * steps[1];
    load_strip(line, steps[0], rows, across[l]);
    if (l < lanes) {
      __builtin_prefetch(line + (rows + width - 1) * steps[0]);
      prefetch_strip(to + l * out.stride[2] + rows * out.stride[1], out.stride[1]);
    }
  }
  simd::transpose(across, along);
  const typename P::outputs outputs = r.sample.outputs;  // which no store can change
  alignas(lane_alignment) Out finished_rows[width][width];
  alignas(lane_alignment) Out finished_lines[width][width];
  for (int row = 0; row < rows; ++row) {
    float(&v)[width] = along[row];
    left(v);
    with_place<typename P::outputs>(r.sample, {at.sample, at.channel, at.z, at.y + row, at.x}, [&](const auto& place) {
      apply_lanes(outputs, v, place,
                  [&]<class R>(const R(&finished)[width]) { write_stored(finished_rows[row], 1, finished, width); });
    });
  }
  for (int row = rows; row < width; ++row) copy_strip(finished_rows[row], finished_rows[rows - 1]);
  simd::transpose(finished_rows, finished_lines);
  for (int l = 0; l < lanes; ++l) write_row(to + l * out.stride[2], out.stride[1], finished_lines[l], rows);
}

}  // namespace suture::detail
