// SPDX-License-Identifier: Apache-2.0
// A crop whose start is chosen for every sample of a batch beforehand.
#pragma once

#include <span>

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "crop.hpp"

namespace suture {

// Crop of one sample by crop_at.
struct crop_from {
  static constexpr std::string_view name = "crop_from";
  static constexpr bool keeps_axes = true;

  extent3 start{0, 0, 0};
  extent3 size{0, 0, 0};
  bool may_leave = false;

  static constexpr auto fields = named("start", &crop_from::start);

  voxel_box picked(const grid& input, const site& where) const {
    if (!may_leave) return crop{start, size}.picked(input, where);
    detail::check_size(size, where);
    for (int k = 0; k < 3; ++k)
      require(start[k] >= -(std::int64_t{1} << 21) && start[k] <= (std::int64_t{1} << 21), where, "start ", start,
              " is more than 2097152 voxels away");
    return {start, size};
  }
  geometry_step step(const grid& input, const site& where) const {
    return detail::box_step(input, picked(input, where));
  }
};

// crop_at: sample i of the batch keeps the box of `size` voxels that begins at input index starts[i].
//   out(p) = in(starts[i] + p); voxels along (z, y, x); physical positions are kept (the origin moves).
//   The starts are read while the pipeline is planned and never again: the plan keeps those of its samples, and so does
//   its record (replay/json.hpp). Where `may_leave` is set a box may leave the volume, wholly even, and the border rule
//   of the pipeline's sampling fills what lies outside (nnU-Net's loader, see oversampled_patch).
// Errors: a size that is not positive, not one start for each sample, a box that leaves the volume without `may_leave`.
struct crop_at {
  static constexpr std::string_view name = "crop_at";
  static constexpr auto gives_size = output_size::fixed;

  std::span<const extent3> starts = {};
  extent3 size{0, 0, 0};
  bool may_leave = false;

  static constexpr auto parameters =
      named("starts", &crop_at::starts, "size", &crop_at::size, "may_leave", &crop_at::may_leave);

  void check_samples(std::size_t samples, const site& where) const {
    require(starts.size() == samples, where, starts.size(), starts.size() == 1 ? " start" : " starts", " for ", samples,
            samples == 1 ? " sample" : " samples");
  }
  crop_from chosen(std::size_t sample) const { return {starts[sample], size, may_leave}; }
  crop_from unchosen() const { return {{0, 0, 0}, size, may_leave}; }
};

}  // namespace suture
