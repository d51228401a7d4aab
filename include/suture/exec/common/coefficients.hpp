// SPDX-License-Identifier: Apache-2.0
// Input of the B-spline prefilter: a source extended on every side by Pipeline::padding voxels of its border rule.
#pragma once

#include "../../evaluate/evaluator.hpp"

namespace suture::detail {

// The B-spline coefficients of one image, as a dense (channel, z, y, x) volume in the workspace.
struct record_coefficients {
  float* data;
  std::int32_t extents[3];
};
inline record_coefficients coefficients_of(const source_tensor& s) {
  return {static_cast<float*>(const_cast<void*>(s.data)), {s.extents[0], s.extents[1], s.extents[2]}};
}

// Returns the source voxel at i after the operations before the geometry. Indices outside the source follow the border
// rule; a constant border value is returned as it is.
template <class Pipeline, class Binding>
SUTURE_FN typename Pipeline::value_type padded_source_value(const sample_parameters<Pipeline>& sample,
                                                            const source_tensor& s,
                                                            const typename Pipeline::border_type& border,
                                                            const voxel_index& i) {
  using B = typename Pipeline::border_type;
  const std::int32_t z = B::index(i.z, s.extents[0]), y = B::index(i.y, s.extents[1]), x = B::index(i.x, s.extents[2]);
  if constexpr (B::has_value) {
    if ((z | y | x) < 0) return uniform<typename Pipeline::value_type>(border.value);
  }
  return pair_evaluator<Pipeline, Binding>::source_value(sample, s, {i.sample, i.channel, z, y, x});
}

// Calls store(channel, value) with padded_source_value at (z, y, x) for every channel of one bound image.
SUTURE_NO_EXEC_CHECK
template <class Pipeline, class Binding, class Store>
SUTURE_FN void each_padded_source_value(const sample_parameters<Pipeline>& sample, const source_tensor& s,
                                        const typename Pipeline::border_type& border, std::int32_t sample_index,
                                        std::int32_t z, std::int32_t y, std::int32_t x, const Store& store) {
  if constexpr (Pipeline::is_color) {
    const rgb v = padded_source_value<Pipeline, Binding>(sample, s, border, {sample_index, 0, z, y, x});
    SUTURE_UNROLL
    for (std::int32_t channel = 0; channel < 3; ++channel) store(channel, v.c[channel]);
  } else {
    for (std::int32_t channel = 0; channel < s.channels; ++channel)
      store(channel, padded_source_value<Pipeline, Binding>(sample, s, border, {sample_index, channel, z, y, x}));
  }
}

}  // namespace suture::detail
