// SPDX-License-Identifier: Apache-2.0
// A function of a request that computes values that recipes derive from the size of a patch.
#pragma once

#include <algorithm>

#include "../recipe/nnunet_shape.hpp"
#include "reader.hpp"

namespace suture::abi {

// Computes what nnU-Net derives from a patch and its spacing in mm. Results: the size of the enlarged patch and its
// margin in voxels, the largest angle of rotation about each axis in degrees, which axes are augmented, the number of
// scales of deep supervision; then the scales, unless the request has no further result. All go along (z, y, x).
inline void nnunet_shape(const request& given) {
  reader r(given, "nnunet_shape");
  const auto patch = r.next<extent3>("patch");
  const auto spacing = r.next<point3>("spacing_mm");
  for (int k = 0; k < 3; ++k) {
    require(patch[k] > 0 && patch[k] <= (std::int64_t{1} << 21), r.where(), "patch: expected 1 to 2097152, got ",
            patch);
    require(spacing[k] > 0 && std::isfinite(spacing[k]), r.where(), "spacing_mm: expected positive numbers, got ",
            spacing);
  }
  const suture::nnunet_shape shape{patch};
  const std::vector<point3> scales = nnunet_deep_supervision_scales(patch, spacing);
  r.result<extent3>("enlarged", 1)[0] = shape.enlarged();
  r.result<extent3>("margin", 1)[0] = shape.margin();
  const axis_ranges rotation = shape.rotation();
  r.result<point3>("rotation", 1)[0] = {rotation[0].high, rotation[1].high, rotation[2].high};
  const vec3<bool> axes = shape.axes();
  const auto augmented = r.result<std::uint8_t>("axes", 3);
  for (int k = 0; k < 3; ++k) augmented[static_cast<std::size_t>(k)] = axes[k] ? 1 : 0;
  const auto count = static_cast<std::int64_t>(scales.size());
  r.result<std::int64_t>("count", 1)[0] = count;
  if (r.results_left() > 0) std::copy(scales.begin(), scales.end(), r.result<point3>("scales", count).begin());
  r.finish();
}

}  // namespace suture::abi
