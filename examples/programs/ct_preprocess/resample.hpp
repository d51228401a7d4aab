// SPDX-License-Identifier: Apache-2.0
// A case normalized and resampled, on the CPU or on a GPU, with the same bits.
#pragma once

#include <optional>

#include "common/volume.hpp"
#include "suture/image/view.hpp"
#include "suture/ops/value/ct_normalize.hpp"

namespace suture::examples {

struct resampling {
  ct_normalize normalize;
  extent3 extents{};  // of the result
  int separate = -1;  // the axis whose slices are resampled one by one, or -1
};

struct resampled {
  volume<float> image;
  label_volume labels;  // without voxels where the case has none
};

// Normalizes and resamples a case as nnU-Net does: the image by a cubic B-spline over the edge-extended case, limited to
// the range of the normalized case. The mask of each label is interpolated linearly, and the label is written where its
// mask is at least a half. With a separate axis every slice is resampled by itself and limited to its own range; across
// the slices the nearest one is taken. A case that keeps its extents is only normalized. T is int16 or float; `labels`
// has the grid of `image`.
template <class T>
resampled resample_on_cpu(const view<const T>& image, const std::optional<view<const std::uint8_t>>& labels,
                          const resampling& how, int threads);
template <class T>
resampled resample_on_cuda(const view<const T>& image, const std::optional<view<const std::uint8_t>>& labels,
                           const resampling& how, int threads);

}  // namespace suture::examples
