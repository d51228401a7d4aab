// SPDX-License-Identifier: Apache-2.0
// Grids of overlapping patches that cover a volume, for sliding-window inference: their starts, and the weight of each
// voxel of a patch.
#pragma once

#include <cmath>
#include <vector>

#include "../base/error.hpp"
#include "../base/vec.hpp"
#include "../math/exponential.hpp"

namespace suture {

// The patches of a volume: all combinations of a start along each axis, numbered in (z, y, x) order with x fastest.
struct patch_grid {
  extent3 image{0, 0, 0};
  extent3 size{0, 0, 0};
  std::vector<std::int64_t> starts[3];  // along z, y, x; ascending, possibly with repeats

  std::int64_t along(int axis) const { return static_cast<std::int64_t>(starts[axis].size()); }
  std::int64_t count() const { return along(0) * along(1) * along(2); }
  extent3 start(std::int64_t p) const {
    const auto at = [&](int axis, std::int64_t i) { return starts[axis][static_cast<std::size_t>(i)]; };
    return {at(0, p / (along(1) * along(2))), at(1, p / along(2) % along(1)), at(2, p % along(2))};
  }
  // Returns the starts of all patches, for crop_at.
  std::vector<extent3> all_starts() const {
    std::vector<extent3> all;
    all.reserve(static_cast<std::size_t>(count()));
    for (std::int64_t p = 0; p < count(); ++p) all.push_back(start(p));
    return all;
  }
};

namespace detail {
inline void check_patch_grid(const extent3& image, const extent3& size, const site& where) {
  for (int k = 0; k < 3; ++k) {
    require(image[k] > 0 && image[k] <= (std::int64_t{1} << 21), where, "extents ", image, " must be in 1..2097152");
    require(size[k] > 0, where, "patch ", size, " must be positive");
    require(size[k] <= image[k], where, "patch ", size, " is larger than the volume ", image,
            "; pad the volume first (pad_to, crop_or_pad)");
  }
}
}  // namespace detail

// Returns patches that follow each other in steps of floor(size (1 - overlap)) voxels, at least 1. The last patch is
// moved back to end with the volume.
//   overlap  of neighboring patches, a share of the patch along (z, y, x), in [0, 1)
// Source: MONAI dense_patch_slices with the interval of sliding_window_inference.
// Errors: a patch larger than the volume, an overlap outside [0, 1).
inline patch_grid dense_patch_grid(const extent3& image, const extent3& size, const point3& overlap = {.25, .25, .25}) {
  const site where{"dense_patch_grid"};
  detail::check_patch_grid(image, size, where);
  patch_grid g{image, size, {}};
  for (int k = 0; k < 3; ++k) {
    require(overlap[k] >= 0 && overlap[k] < 1, where, "overlap ", overlap, " is not in [0, 1)");
    const double part = 1.0 - overlap[k];
    const auto step = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(size[k]) * part));
    const std::int64_t last = image[k] - size[k];
    for (std::int64_t s = 0; s < last; s += step) g.starts[k].push_back(s);
    g.starts[k].push_back(last);
  }
  return g;
}

// Returns the fewest patches at distances of at most size * step, evenly spread over extents N. Starts are round(i last
// / (n - 1)), halves to even, for i < n = ceil(last / (size step)) + 1 and last = N - size. If size * step is below one
// voxel, starts repeat, as they do in nnU-Net.
//   step  largest distance of neighboring patches, as a share of the patch, in (0, 1]
// Source: nnU-Net v2 compute_steps_for_sliding_window. Errors: a patch larger than the volume, a step outside (0, 1], a
// step so small that an axis has more than 2^27 patches.
inline patch_grid sliding_window_grid(const extent3& image, const extent3& size, double step = 0.5) {
  const site where{"sliding_window_grid"};
  detail::check_patch_grid(image, size, where);
  require(step > 0 && step <= 1, where, "step ", step, " is not in (0, 1]");
  patch_grid g{image, size, {}};
  for (int k = 0; k < 3; ++k) {
    const auto last = static_cast<double>(image[k] - size[k]);
    const double apart = static_cast<double>(size[k]) * step;
    const double steps = std::ceil(last / apart);
    require(steps < 0x1p27, where, "step: expected at most 2^27 patches along an axis, got ", step, " for patches of ",
            size, " in ", image, ". Give a larger step");
    const auto n = static_cast<std::int64_t>(steps) + 1;
    const double actual = n > 1 ? last / static_cast<double>(n - 1) : 0.0;
    for (std::int64_t i = 0; i < n; ++i)
      g.starts[k].push_back(static_cast<std::int64_t>(std::nearbyint(actual * static_cast<double>(i))));
  }
  return g;
}

// The weights of the voxels of a patch in the mean of overlapping patches. Voxel (i, j, k) has max(z[i] y[j] x[k],
// least), where z, y, x are weight[0], weight[1], weight[2].
struct patch_window {
  std::vector<float> weight[3];  // along z, y, x
  float least = 0;
};

inline patch_window constant_window(const extent3& size) {
  patch_window w;
  for (int k = 0; k < 3; ++k) w.weight[k].assign(static_cast<std::size_t>(std::max<std::int64_t>(0, size[k])), 1.0f);
  return w;
}

namespace detail {
inline patch_window gaussian(const extent3& size, double sigma_scale, bool whole_center, float least,
                             const site& where) {
  require(sigma_scale > 0 && sigma_scale <= 10, where, "sigma_scale ", sigma_scale, " is not in (0, 10]");
  patch_window w{{}, least};
  for (int k = 0; k < 3; ++k) {
    require(size[k] > 0, where, "patch ", size, " must be positive");
    const double sigma = sigma_scale * static_cast<double>(size[k]);
    const double center = whole_center ? static_cast<double>(size[k] / 2) : 0.5 * static_cast<double>(size[k] - 1);
    for (std::int64_t i = 0; i < size[k]; ++i) {
      const double d = (static_cast<double>(i) - center) / sigma;
      w.weight[k].push_back(static_cast<float>(math::exp(-0.5 * (d * d))));
    }
  }
  return w;
}
}  // namespace detail

// Returns Gaussian weights exp(-d^2 / (2 sigma^2)) along each axis, at least 1e-3 in all. d is the distance from the
// center (size - 1) / 2, and sigma = sigma_scale size.
// Source: MONAI compute_importance_map (mode "gaussian").
// Errors: a size that is not positive, sigma_scale not in (0, 10].
inline patch_window gaussian_window(const extent3& size, double sigma_scale = 0.125) {
  return detail::gaussian(size, sigma_scale, false, 1e-3f, {"gaussian_window"});
}

// Returns the weights of gaussian_window with d from voxel floor(size / 2), sigma = size / 8 and no least weight.
// Source: nnU-Net v2 compute_gaussian; its scale cancels in the weighted mean.
inline patch_window sliding_window_gaussian(const extent3& size) {
  return detail::gaussian(size, 0.125, true, 0, {"sliding_window_gaussian"});
}

}  // namespace suture
