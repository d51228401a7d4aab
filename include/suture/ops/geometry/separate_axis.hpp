// SPDX-License-Identifier: Apache-2.0
// Volumes of thick slices are resampled slice by slice: within the slices by one interpolation, across them by the
// nearest slice. The slices of a volume are the samples of a batch; one plan makes them all.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "../../image/view.hpp"

namespace suture {

// The axis whose slices are to be resampled one by one, or -1 if the volume is to be resampled as a whole. Spacings
// along (z, y, x): where the largest is more than `threshold` times the smallest the volume is anisotropic, and the
// axis is that of the largest, if it is the only one. The source decides; where it is not anisotropic, the target.
// Source: nnU-Net determine_do_sep_z_and_axis. Errors: spacings that are not positive, a threshold below 1.
inline int separate_axis(const point3& spacing, const point3& target, double threshold = 3) {
  const site where{"separate_axis"};
  require(std::isfinite(threshold) && threshold >= 1, where, "threshold ", threshold, " must be at least 1");
  for (const point3& s : {spacing, target}) {
    for (int k = 0; k < 3; ++k)
      require(std::isfinite(s[k]) && s[k] > 0, where, "spacing ", s, " must be positive and finite");
  }
  for (const point3& s : {spacing, target}) {
    const double largest = std::max({s[0], s[1], s[2]}), least = std::min({s[0], s[1], s[2]});
    if (!(largest / least > threshold)) continue;
    int axis = -1, count = 0;
    for (int k = 0; k < 3; ++k)
      if (s[k] == largest) {
        axis = k;
        ++count;
      }
    return count == 1 ? axis : -1;
  }
  return -1;
}

// Returns for each of `to` slices laid over `from` slices (the map half_pixel) the nearest one: floor((k + 1/2) from /
// to), ties to the later. Errors: numbers that are not positive or above 2^21.
inline std::vector<std::int64_t> nearest_slices(std::int64_t from, std::int64_t to) {
  for (const std::int64_t n : {from, to})
    require(n > 0 && n <= (std::int64_t{1} << 21), {"nearest_slices"}, n, " slices are not in 1..2^21");
  std::vector<std::int64_t> nearest;
  for (std::int64_t k = 0; k < to; ++k) nearest.push_back((2 * k + 1) * from / (2 * to));
  return nearest;
}

// Views of single slices of a volume across `axis`, in their physical place; they share its memory.
// Errors: an axis other than 0, 1, 2, a view of a box, a slice that is not there.
template <class T>
std::vector<view<T>> slices(const view<T>& whole, int axis, std::span<const std::int64_t> which) {
  const site where{"slices"};
  require(axis >= 0 && axis < 3, where, "axis ", axis, " must be 0, 1 or 2");
  check(whole, where);
  std::vector<view<T>> result;
  for (const std::int64_t k : which) {
    require(k >= 0 && k < whole.grid.extents[axis], where, "slice ", k, " of ", whole.grid.extents[axis]);
    view<T> slice = whole;
    slice.data += k * whole.stride[axis];
    slice.grid.extents[axis] = 1;
    point3 first{0, 0, 0};
    first[axis] = static_cast<double>(k);
    slice.grid.origin = whole.grid.index_to_physical()(first);
    result.push_back(slice);
  }
  return result;
}

}  // namespace suture
