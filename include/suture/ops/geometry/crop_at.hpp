// SPDX-License-Identifier: Apache-2.0
// A crop whose start is chosen for every sample of a batch beforehand.
#pragma once

#include <span>

#include "crop.hpp"

namespace suture {

// crop_at: sample i of the batch keeps the box of `size` voxels that begins at input index starts[i].
//   out(p) = in(starts[i] + p); voxels along (z, y, x); physical positions are kept (the origin moves).
//   The starts are read when the pipeline is planned. Where `may_leave` is set a box may leave the volume, wholly even,
//   and the border rule of the pipeline's sampling fills what lies outside (nnU-Net's loader, see oversampled_patch).
// Errors: a size that is not positive, no start for a sample, a box that leaves the volume without `may_leave`.
struct crop_at {
  static constexpr std::string_view name = "crop_at";
  static constexpr bool keeps_axes = true;

  std::span<const extent3> starts = {};
  extent3 size{0, 0, 0};
  bool may_leave = false;

  voxel_box picked(const grid& input, const site& where) const {
    require(where.sample >= 0 && static_cast<std::size_t>(where.sample) < starts.size(), where, starts.size(),
            " starts given; one per sample is needed");
    const extent3& start = starts[static_cast<std::size_t>(where.sample)];
    if (!may_leave) return crop{start, size}.picked(input, where);
    for (int k = 0; k < 3; ++k) {
      require(size[k] > 0, where, "patch ", size, " must be positive");
      require(start[k] >= -(std::int64_t{1} << 21) && start[k] <= (std::int64_t{1} << 21), where, "start ", start,
              " is more than 2097152 voxels away");
    }
    return {start, size};
  }
  geometry_step step(const grid& input, const site& where) const {
    return detail::box_step(input, picked(input, where));
  }
};

}  // namespace suture
