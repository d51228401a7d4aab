// SPDX-License-Identifier: Apache-2.0
// Samples that keep the axes of their source: positions along each axis, and taps of a strip along that of the lanes.
#pragma once

#include "sample_map.hpp"

namespace suture::detail {

// Returns the source position along one axis for output index i, where the axes are kept.
template <class Pipeline>
coordinate along_axis(const sample_parameters<Pipeline>& sample, int axis, std::int32_t i) {
  return split(sample.map.offset[axis] + scaled(sample.map.linear[axis][loop_along(sample.loops, axis)], i));
}

// A tap for every lane, along the axis of the lanes.
struct lane_taps {
  std::int64_t offset[strip_width];  // in elements; of the nearest voxel outside
  std::int32_t in[strip_width];
  bool all_in = true;

  template <class Border, class Pipeline, class First>
  void set(const sample_parameters<Pipeline>& sample, std::int32_t x0, std::int32_t n, std::int64_t stride,
           const First& first) {
    for (int l = 0; l < strip_width; ++l) {
      const std::int32_t i =
          first(along_axis(sample, loop_axes[sample.loops][2], std::min(x0 + l, sample.extents[2] - 1)));
      all_in = all_in && inside(i, n);
      in[l] = Border::index(i, n) >= 0;
      offset[l] = readable_index<Border>(i, n) * stride;
    }
  }
};

}  // namespace suture::detail
