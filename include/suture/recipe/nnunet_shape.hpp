// SPDX-License-Identifier: Apache-2.0
// nnU-Net v2 derives these values from the patch of training: the enlarged patch, angles, axes, scales of deep
// supervision.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../ops/geometry/affine.hpp"

namespace suture {

// The shape of training follows from the patch that goes into the network, in voxels (z, y, x); of one slice for the 2D
// configuration.
struct nnunet_shape {
  extent3 patch{0, 0, 0};

  bool two_dimensional() const { return patch[0] == 1; }
  // Tests whether slices are so thick that each is rotated and scaled in its plane.
  bool dummy_2d() const { return !two_dimensional() && largest() > 3 * patch[0]; }
  bool in_plane() const { return two_dimensional() || dummy_2d(); }
  vec3<bool> axes() const { return {!in_plane(), true, true}; }

  // Returns half the width of the range of angles about z, y and x, in degrees.
  axis_ranges rotation() const {
    if (!in_plane()) return 30;
    const bool oblong = 2 * largest() > 3 * std::min(patch[1], patch[2]);
    return two_dimensional() && oblong ? axis_ranges{15, 0, 0} : axis_ranges{180, 0, 0};
  }

  // Returns the patch that is read, large enough to be rotated about one axis and scaled (get_patch_size), and how much
  // larger it is: size and margin of oversampled_patch.
  extent3 enlarged() const {
    double reach[3];
    for (int k = 0; k < 3; ++k) reach[k] = static_cast<double>(patch[k]);
    for (int axis = 0; axis < 3; ++axis) {
      const double degrees = std::min(90.0, static_cast<double>(rotation()[axis].high));
      const matrix3 turn = detail::rotation(axis, degrees);
      for (int j = 0; j < 3; ++j) {
        double turned = 0;
        for (int i = 0; i < 3; ++i) turned += static_cast<double>(patch[i]) * turn[i][j];
        reach[j] = std::max(reach[j], std::abs(turned));
      }
    }
    extent3 size{};
    for (int k = 0; k < 3; ++k) size[k] = k == 0 && in_plane() ? patch[0] : static_cast<std::int64_t>(reach[k] / 0.85);
    return size;
  }

  extent3 margin() const {
    extent3 m = enlarged();
    for (int k = 0; k < 3; ++k) m[k] -= patch[k];
    return m;
  }

private:
  std::int64_t largest() const { return std::max(patch[0], std::max(patch[1], patch[2])); }
};

// The scales, along (z, y, x), of the smaller targets of deep supervision: an axis is halved (rounded up) while it has
// at least 8 voxels and its spacing is below twice the finest of those axes, and the last pooling has no target.
// `spacing` is that of the patch. Source: get_pool_and_conv_props, nnUNetTrainer._get_deep_supervision_scales.
inline std::vector<point3> nnunet_deep_supervision_scales(extent3 patch, point3 spacing) {
  std::vector<point3> scales;
  for (point3 scale{1, 1, 1};;) {
    double finest = INFINITY;
    for (int k = 0; k < 3; ++k)
      if (patch[k] >= 8) finest = std::min(finest, spacing[k]);
    vec3<bool> pooled{};
    int axes = 0, last = 0;
    for (int k = 0; k < 3; ++k)
      if (patch[k] >= 8 && spacing[k] / finest < 2) {
        pooled[k] = true;
        ++axes;
        last = k;
      }
    if (axes == 0 || (axes == 1 && patch[last] < 12)) break;
    for (int k = 0; k < 3; ++k)
      if (pooled[k]) {
        scale[k] /= 2;
        spacing[k] *= 2;
        patch[k] = (patch[k] + 1) / 2;
      }
    scales.push_back(scale);
  }
  if (!scales.empty()) scales.pop_back();
  return scales;
}

}  // namespace suture
