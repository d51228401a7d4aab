// SPDX-License-Identifier: Apache-2.0
// Label maps of smaller grids for deep supervision, stored in the same run as the full one: labels(in, out,
// deep_supervision(half, quarter)).
//
// Voxel i of a level with n voxels along an axis is voxel floor((2 i + 1) N / (2 n)) of the N of the full output, in
// integers: torch's nearest-exact. Voxels are copied from the finished full map, on a device by a separate kernel.
#pragma once

#include <array>
#include <cmath>

#include "given_views.hpp"

namespace suture {

inline constexpr std::size_t most_levels = 8;
inline constexpr std::int64_t longest_axis_with_levels = 32768;

// Outputs of the levels: for each level one view per sample.
template <class Out>
struct level_views {
  using output = Out;
  std::array<given_views<Out>, most_levels> views{};
  std::size_t count = 0;
};

struct no_levels {};

// The size of a level: extents x scale along each axis, rounded half to even (nnU-Net).
inline extent3 level_extents(const extent3& full, const point3& scale) {
  extent3 n{};
  for (int k = 0; k < 3; ++k) {
    require(scale[k] > 0 && scale[k] <= 1, {"deep_supervision"}, "scale ", scale, " is not in (0, 1]");
    n[k] = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(full[k]) * scale[k]));
    require(n[k] > 0, {"deep_supervision"}, "scale ", scale, " leaves no voxel of ", full);
  }
  return n;
}

// Returns the grid of a level: that many voxels over the physical box of the full grid.
inline grid level_grid(const grid& full, const extent3& extents) {
  grid level = full;
  point3 first{};
  for (int k = 0; k < 3; ++k) {
    require(extents[k] > 0, {"deep_supervision"}, "extents ", extents, " must be positive");
    const double ratio = static_cast<double>(full.extents[k]) / static_cast<double>(extents[k]);
    level.spacing[k] = full.spacing[k] * ratio;
    first[k] = fma(0.5, ratio, -0.5);
  }
  level.extents = extents;
  level.origin = full.index_to_physical()(first);
  return level;
}

namespace detail {

// The numbers of voxels of a level and of the full grid along one axis.
struct level_axis {
  std::uint32_t level, full;  // voxels

  // The voxel of the full grid that voxel i of the level picks.
  SUTURE_FN std::uint32_t picked(std::uint32_t i) const { return (2 * i + 1) * full / (2 * level); }
};

}  // namespace detail

}  // namespace suture
