// SPDX-License-Identifier: Apache-2.0
// Source positions of samples that keep the axes of their source: along one axis, and of the lanes of a strip.
#pragma once

#include "sample_map.hpp"

namespace suture::detail {

// Returns the source position along one axis for output index i, where the axes are kept.
template <class Pipeline>
coordinate along_axis(const sample_parameters<Pipeline>& sample, int axis, std::int32_t i) {
  return split(sample.map.offset[axis] + scaled(sample.map.linear[axis][loop_along(sample.loops, axis)], i));
}

// The voxel that each lane reads along the axis of the lanes, and whether there is one by the border rule.
struct lane_taps {
  std::int64_t offset[strip_width];  // in elements; where there is no voxel, of the nearest one
  std::int32_t in[strip_width];
  bool all_in = true;  // all indices are inside the source

  // Sets the lanes from x0 on: first(coordinate) is the index on an axis of n voxels that lie `stride` elements apart.
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
