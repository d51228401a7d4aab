// SPDX-License-Identifier: Apache-2.0
// Gaussian blur.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string_view>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../image/grid.hpp"
#include "../../math/elementary.hpp"
#include "../../math/error_function.hpp"
#include "../../pipeline/stage_schedule.hpp"
#include "../../rng/draw.hpp"
#include "../../sample/border.hpp"
#include "../common/axis_values.hpp"
#include "../common/interval.hpp"

namespace suture {

// Weights of a Gaussian of a given sigma, in voxels:
//   scipy    w_k ~ exp(-k^2 / 2 sigma^2), |k| <= int(4 sigma + 1/2), sum 1; the patch continues by reflection about
//            its faces (border reflect). scipy.ndimage.gaussian_filter, batchgenerators v1.
//   nnunet   the same weights for |k| <= int(3 sigma + 1/4), by reflection about the outermost voxels (border mirror).
//            batchgeneratorsv2.
//   monai    w_k = (erf((k + 1/2) / sigma sqrt 2) - erf((k - 1/2) / sigma sqrt 2)) / 2,
//            |k| <= int(max(4 sigma, 1/2) + 1/2), not made to sum to 1; 0 outside, which darkens the rim. An axis of
//            one voxel is not filtered, as MONAI's 2D images have no such axis. MONAI GaussianSmooth.
enum class blur_kernel { scipy, nnunet, monai };

namespace detail {

// The radius of a sigma: the whole part of sigma * factor + rest, at least `least`; 0 for a sigma of 0.
struct blur_reach {
  double factor = 4, rest = 0.5;
  std::int32_t least = 0;

  // truncate: the radius in sigmas, rounded; 0 for that of the kernel.
  explicit blur_reach(blur_kernel kernel, float truncate = 0) {
    if (truncate > 0) {
      factor = static_cast<double>(truncate);
    } else if (kernel == blur_kernel::nnunet) {
      factor = 3;
      rest = 0.25;
    } else if (kernel == blur_kernel::monai) {
      least = 1;
    }
  }
  std::int32_t operator()(float sigma) const {
    const auto reach = static_cast<std::int32_t>(fma(static_cast<double>(sigma), factor, rest));
    const std::int32_t own = reach > least ? reach : least;
    return sigma > 0 ? own : 0;
  }
};

}  // namespace detail

// The blur of one sample: sigma in voxels by channel and axis (z, y, x); channels beyond the last use its sigmas.
struct blur_filter {
  blur_kernel kernel;
  std::int32_t radii[most_channels][3];
  float sigmas[most_channels][3];  // a channel whose sigmas are all 0 is unchanged

  SUTURE_FN bool active(std::int32_t channel) const {
    const float* const s = sigmas[parameter_channel(channel)];
    return s[0] > 0 || s[1] > 0 || s[2] > 0;
  }
  SUTURE_FN std::int32_t radius(int axis, std::int32_t channel) const {
    return radii[parameter_channel(channel)][axis];
  }

  SUTURE_FN void weights_along(int axis, std::int32_t channel, float* w) const {
    const std::int32_t r = radius(axis, channel);
    const float sigma = sigmas[parameter_channel(channel)][axis];
    if (!(sigma > 0)) {
      w[0] = 1;
      return;
    }
    if (kernel == blur_kernel::monai) {
      const float scale = math::detail::divide(0.70710678f, sigma);
      for (std::int32_t k = -r; k <= r; ++k) {
        const auto c = static_cast<float>(k);
        const float above = fma(math::erf(fma(c + 0.5f, scale, 0.0f)), 1.0f, 0.0f);
        const float below = fma(math::erf(fma(c - 0.5f, scale, 0.0f)), 1.0f, 0.0f);
        w[k + r] = fma(0.5f, above - below, 0.0f);
      }
      return;
    }
    const float falloff = math::detail::divide(-0.5f, sigma * sigma);
    float sum = 0;
    for (std::int32_t k = -r; k <= r; ++k) {
      w[k + r] = fma(math::exp(fma(static_cast<float>(k * k), falloff, 0.0f)), 1.0f, 0.0f);
      sum += w[k + r];
    }
    const float share = math::detail::divide(1.0f, sum);
    for (std::int32_t k = -r; k <= r; ++k) w[k + r] = fma(w[k + r], share, 0.0f);
  }

  SUTURE_FN std::int32_t index(std::int32_t i, std::int32_t n) const {
    return kernel == blur_kernel::scipy    ? reflect::index(i, n)
           : kernel == blur_kernel::nnunet ? mirror::index(i, n)
                                           : constant::index(i, n);
  }
};

namespace detail {

// Refuses a sigma that is negative, not finite or reaches too far.
inline void check_sigma(float sigma, const blur_reach& reach, const site& where) {
  require(std::isfinite(sigma) && sigma >= 0, where, "sigma ", sigma, " voxels must not be negative");
  const double far = reach.factor * static_cast<double>(sigma), own = far <= 1e9 ? reach(sigma) : far;
  require(own <= largest_radius, where, "sigma ", sigma, " voxels reaches ", own, " voxels far, at most ",
          largest_radius, " are possible; resample to a coarser grid first");
}
// Refuses an interval that sigmas are drawn from, before any is drawn.
inline void check_sigmas(const interval& sigmas, blur_kernel kernel, const site& where) {
  check_interval(sigmas, "sigma", where);
  for (const float end : {sigmas.low, sigmas.high}) check_sigma(end, blur_reach(kernel), where);
}

// Sets kernel, sigmas and radii; one test covers all sigmas, since almost none is refused.
inline void set_sigmas(blur_filter& f, blur_kernel kernel, const float (&sigmas)[most_channels][3],
                       const extent3& patch, const site& where, float truncate = 0) {
  constexpr int count = 3 * most_channels;
  const blur_reach reach(kernel, truncate);
  float sigma[count];
  std::int32_t radius[count], furthest = 0;
  std::memcpy(sigma, sigmas, sizeof sigma);
  // Sigmas below this limit give the same weights, and their squares would leave the range of a float.
  for (float& s : sigma) s = s > 0 && s < 1e-18f ? 1e-18f : s;
  // The reach of a sigma up to this one fits an integer.
  const auto most = static_cast<float>(std::min(1e9 / reach.factor, double{FLT_MAX}));
  for (int i = 0; i < count; ++i) furthest |= sigma[i] >= 0 && sigma[i] <= most ? 0 : largest_radius + 1;
  if (furthest == 0)
    for (int i = 0; i < count; ++i) {
      radius[i] = reach(sigma[i]);
      furthest = radius[i] > furthest ? radius[i] : furthest;
    }
  if (furthest > largest_radius)
    for (const float s : sigma) check_sigma(s, reach, where);
  f.kernel = kernel;
  std::memcpy(f.sigmas, sigma, sizeof sigma);
  std::memcpy(f.radii, radius, sizeof radius);
  for (int axis = 0; axis < 3; ++axis) {
    if (kernel != blur_kernel::monai || patch[axis] != 1) continue;
    for (auto& channel : f.sigmas) channel[axis] = 0;
    for (auto& channel : f.radii) channel[axis] = 0;
  }
}

}  // namespace detail

// y = G(sigma) x along each axis, sigma in voxels of the patch (z, y, x). An axis with sigma 0 is not filtered, nor, by
// the kernel monai, an axis of one voxel. `truncate`, where given, takes the place of the kernel's radius: int(truncate
// sigma + 1/2) voxels.
// Errors: a sigma that is negative, not finite, or reaches more than 15 voxels far, a truncate that is negative.
// Source: scipy.ndimage.gaussian_filter.
struct gaussian_blur {
  axis_values sigma = 1;
  blur_kernel kernel = blur_kernel::scipy;
  float truncate = 0;

  static constexpr std::string_view name = "gaussian_blur";
  static constexpr auto parameters =
      named("sigma", &gaussian_blur::sigma, "kernel", &gaussian_blur::kernel, "truncate", &gaussian_blur::truncate);

  blur_filter prepare(const grid& patch, const site& where) const {
    require(std::isfinite(truncate) && truncate >= 0 && truncate <= 100, where, "truncate ", truncate,
            " sigmas is not in [0, 100]");
    blur_filter f{};
    float sigmas[most_channels][3];
    for (auto& channel : sigmas)
      for (int axis = 0; axis < 3; ++axis) channel[axis] = static_cast<float>(sigma[axis]);
    detail::set_sigmas(f, kernel, sigmas, patch.extents, where, truncate);
    return f;
  }
};

// Scope of a drawn sigma: every channel and axis by itself, every channel, or the sample.
enum class sigma_of { axis, channel, sample };

// gaussian_blur of some channels, each with probability channel_probability, by a sigma drawn uniformly from `sigma`
// for each axis, channel or sample.
// nnU-Net v2: {.sigma = {.5f, 1}, .kernel = blur_kernel::nnunet, .channel_probability = .5f, .probability = .2f}.
// Errors: sigma not from low to high, channel_probability not in [0, 1]; those of gaussian_blur.
struct random_gaussian_blur {
  interval sigma = {.5f, 1};
  blur_kernel kernel = blur_kernel::scipy;
  sigma_of each = sigma_of::axis;
  float channel_probability = 1;
  float probability = 1;

  static constexpr std::string_view name = "random_gaussian_blur";
  static constexpr std::uint16_t kind = 112;
  static constexpr auto parameters =
      named("sigma", &random_gaussian_blur::sigma, "kernel", &random_gaussian_blur::kernel, "each",
            &random_gaussian_blur::each, "channel_probability", &random_gaussian_blur::channel_probability,
            "probability", &random_gaussian_blur::probability);

  struct drawn {
    blur_kernel kernel;
    float sigma[most_channels][3];  // 0: the channel is unchanged

    static constexpr auto fields = named("sigma", &drawn::sigma);

    auto prepare(const grid& patch, const site& where) const {
      drawn_for_channels<random_gaussian_blur, blur_filter> f{};
      detail::set_sigmas(f, kernel, sigma, patch.extents, where);
      return f;
    }
  };

  void check(const site& where) const {
    detail::check_sigmas(sigma, kernel, where);
    detail::check_channel_probability(channel_probability, where);
  }

  drawn draw(draws& random, const site&) const {
    drawn result{.kernel = kernel, .sigma = {}};
    const float shared = random.uniform(sigma.low, sigma.high);
    float u[4 * most_channels];  // for each channel whether it is blurred, and three sigmas
    random.units(u);
    const uniform_between own(sigma.low, sigma.high);
    SUTURE_KEEP_LOOP
    for (int channel = 0; channel < most_channels; ++channel) {
      const float* const drawn_for = u + 4 * channel;
      const bool blurs = drawn_for[0] < channel_probability;
      const float first = math::detail::select(each == sigma_of::sample, shared, own(drawn_for[1]));
      const float second = math::detail::select(each == sigma_of::axis, own(drawn_for[2]), first);
      const float third = math::detail::select(each == sigma_of::axis, own(drawn_for[3]), first);
      result.sigma[channel][0] = math::detail::select(blurs, first, 0.0f);
      result.sigma[channel][1] = math::detail::select(blurs, second, 0.0f);
      result.sigma[channel][2] = math::detail::select(blurs, third, 0.0f);
    }
    return result;
  }
};

}  // namespace suture
