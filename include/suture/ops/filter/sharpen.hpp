// SPDX-License-Identifier: Apache-2.0
// Sharpening by an unsharp mask.
#pragma once

#include "../../base/fields.hpp"
#include "../common/interval.hpp"
#include "gaussian_blur.hpp"

namespace suture {

// The sharpening of one sample, by channel: its blur, and the factor of the difference that is added.
struct sharpen_filter {
  blur_filter blur;
  float amount[most_channels];

  SUTURE_FN bool active(std::int32_t channel) const { return blur.active(channel); }
  SUTURE_FN std::int32_t radius(int axis, std::int32_t channel) const { return blur.radius(axis, channel); }
  SUTURE_FN void weights_along(int axis, std::int32_t channel, float* w) const { blur.weights_along(axis, channel, w); }
  SUTURE_FN std::int32_t index(std::int32_t i, std::int32_t n) const { return blur.index(i, n); }
  SUTURE_FN float blend(float x, float blurred, std::int32_t channel) const {
    return fma(amount[parameter_channel(channel)], x - blurred, x);
  }
};

// y = x + amount (x - G(sigma) x), G the blur of gaussian_blur; sigma in voxels of the patch (z, y, x).
// MONAI GaussianSharpen(sigma1, sigma2, alpha) is gaussian_blur{.sigma = sigma1, .kernel = blur_kernel::monai} |
// sharpen{.sigma = sigma2, .amount = alpha, .kernel = blur_kernel::monai}.
// Errors: an amount that is not finite; those of gaussian_blur. Source: skimage.filters.unsharp_mask.
struct sharpen {
  axis_values sigma = 1;
  float amount = 1;
  blur_kernel kernel = blur_kernel::scipy;

  static constexpr std::string_view name = "sharpen";
  static constexpr auto parameters =
      named("sigma", &sharpen::sigma, "amount", &sharpen::amount, "kernel", &sharpen::kernel);

  sharpen_filter prepare(const grid& patch, const site& where) const {
    require(std::isfinite(amount), where, "amount ", amount, " must be finite");
    sharpen_filter f{gaussian_blur{.sigma = sigma, .kernel = kernel}.prepare(patch, where), {}};
    for (float& each : f.amount) each = amount;
    return f;
  }
};

// sharpen of some channels, each with probability channel_probability, by a sigma and an amount drawn uniformly for
// every channel.
// Errors: sigma or amount not from low to high, channel_probability not in [0, 1]; those of gaussian_blur.
struct random_sharpen {
  interval sigma = {.5f, 1};
  interval amount = {.5f, 1.5f};
  blur_kernel kernel = blur_kernel::scipy;
  float channel_probability = 1;
  float probability = 1;

  static constexpr std::string_view name = "random_sharpen";
  static constexpr std::uint16_t kind = 117;
  static constexpr auto parameters =
      named("sigma", &random_sharpen::sigma, "amount", &random_sharpen::amount, "kernel", &random_sharpen::kernel,
            "channel_probability", &random_sharpen::channel_probability, "probability", &random_sharpen::probability);

  struct drawn {
    blur_kernel kernel;
    float sigma[most_channels];  // 0: the channel is unchanged
    float amount[most_channels];

    static constexpr auto fields = named("sigma", &drawn::sigma, "amount", &drawn::amount);

    auto prepare(const grid& patch, const site& where) const {
      drawn_for_channels<random_sharpen, sharpen_filter> f{};
      float sigmas[most_channels][3];
      for (int channel = 0; channel < most_channels; ++channel) {
        for (float& along : sigmas[channel]) along = sigma[channel];
        f.amount[channel] = amount[channel];
      }
      detail::set_sigmas(f.blur, kernel, sigmas, patch.extents, where);
      return f;
    }
  };

  void check(const site& where) const {
    detail::check_sigmas(sigma, kernel, where);
    detail::check_interval(amount, "amount", where);
    detail::check_channel_probability(channel_probability, where);
  }

  drawn draw(draws& random, const site&) const {
    drawn result{.kernel = kernel, .sigma = {}, .amount = {}};
    for (int channel = 0; channel < most_channels; ++channel) {
      const bool on = random.bernoulli(channel_probability);
      const float own = random.uniform(sigma.low, sigma.high);
      result.sigma[channel] = on ? own : 0.0f;
      result.amount[channel] = random.uniform(amount.low, amount.high);
    }
    return result;
  }
};

}  // namespace suture
