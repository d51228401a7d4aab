// SPDX-License-Identifier: Apache-2.0
// Scaling by percentiles, or by minimum and maximum, of each sample.
#pragma once

#include <span>

#include "../../base/fields.hpp"
#include "clamp.hpp"
#include "z_score.hpp"

namespace suture {

namespace detail {

struct range_functor {
  const intensity_range* fitted;
  std::int32_t channels;
  float b_min, b_max, range;
  bool clip;

  void check_fitted(const site& where) const { check_channels_fitted(fitted, channels, where); }

  SUTURE_FN float operator()(float x, const voxel& at) const {
    const intensity_range& r = fitted_at(fitted, channels, at);
    const float y = fma((x - r.origin) * r.reciprocal, range, b_min);
    return clip ? limit(y, b_min, b_max) : y;
  }
};

}  // namespace detail

// y = (x - low) / (high - low) (b_max - b_min) + b_min, where [low, high] is the result of fit_range for the sample and
// channel, limited to [b_min, b_max] unless `clip` is false. `fitted` and `channels` as for z_score. A constant sample
// becomes b_min; an empty fit stands for [0, 1]. NaN becomes b_min; without `clip` it stays NaN. Errors: no results for
// a sample, channels below 1 or not those of the image, b_min not below b_max, a number that is not finite. Source:
// MONAI ScaleIntensityRangePercentiles.
struct percentile_scale {
  std::span<const intensity_range> fitted;
  std::int32_t channels = 1;
  float b_min = 0;
  float b_max = 1;
  bool clip = true;

  static constexpr std::string_view name = "percentile_scale";
  static constexpr auto parameters =
      named("fitted", required(&percentile_scale::fitted), "channels", &percentile_scale::channels, "b_min",
            &percentile_scale::b_min, "b_max", &percentile_scale::b_max, "clip", &percentile_scale::clip);

  detail::range_functor prepare(const site& where) const {
    detail::check_channel_results(fitted, channels, where);
    require(std::isfinite(b_min) && std::isfinite(b_max) && b_min < b_max, where, "b_min ", b_min,
            " must be below b_max ", b_max);
    const double range = static_cast<double>(b_max) - static_cast<double>(b_min);
    require(range <= 3.4028234e38, where, "b_min ", b_min, " and b_max ", b_max, " are too far apart");
    return {fitted.data(), channels, detail::bound(b_min), detail::bound(b_max), static_cast<float>(range), clip};
  }
  void check_image(std::int64_t image_channels, std::size_t samples, const site& where) const {
    detail::check_channels_of_image(fitted, channels, image_channels, samples, where);
  }
};

// percentile_scale by minimum and maximum, fit_range with its defaults: y = (x - min) / (max - min) (b_max - b_min) +
// b_min, limited to [b_min, b_max] against rounding and values that were not selected. Errors: those of
// percentile_scale. Source: MONAI ScaleIntensity, nnU-Net RescaleTo01Normalization.
struct min_max_scale {
  std::span<const intensity_range> fitted;
  std::int32_t channels = 1;
  float b_min = 0;
  float b_max = 1;

  static constexpr std::string_view name = "min_max_scale";
  static constexpr auto parameters =
      named("fitted", required(&min_max_scale::fitted), "channels", &min_max_scale::channels, "b_min",
            &min_max_scale::b_min, "b_max", &min_max_scale::b_max);

  detail::range_functor prepare(const site& where) const {
    return percentile_scale{.fitted = fitted, .channels = channels, .b_min = b_min, .b_max = b_max}.prepare(where);
  }
  void check_image(std::int64_t image_channels, std::size_t samples, const site& where) const {
    detail::check_channels_of_image(fitted, channels, image_channels, samples, where);
  }
};

}  // namespace suture
