// SPDX-License-Identifier: Apache-2.0
// Normalization by given statistics of each channel.
#pragma once

#include <cmath>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../color/color_range.hpp"

namespace suture {

// Means and standard deviations of red, green and blue, for white 1.
struct channel_statistics {
  float mean[3];
  float standard_deviation[3];

  static constexpr auto fields =
      named("mean", &channel_statistics::mean, "standard_deviation", &channel_statistics::standard_deviation);
};

// Statistics of the ImageNet training set, which most pretrained networks were trained with.
inline constexpr channel_statistics imagenet{{.485f, .456f, .406f}, {.229f, .224f, .225f}};

// y = (x / white - mean) / standard_deviation, channel by channel. Linear: no value is limited; NaN stays NaN.
// Errors: a mean that is not finite, a deviation or white that is not positive. Source: torchvision Normalize.
struct channel_normalize {
  channel_statistics of = imagenet;
  float white = 255;

  static constexpr std::string_view name = "channel_normalize";
  static constexpr auto parameters = named("of", &channel_normalize::of, "white", &channel_normalize::white);

  struct functor {
    float factor[3], offset[3];

    SUTURE_FN rgb operator()(const rgb& x) const {
      return {
          {fma(x.c[0], factor[0], offset[0]), fma(x.c[1], factor[1], offset[1]), fma(x.c[2], factor[2], offset[2])}};
    }
  };

  functor prepare(const site& where) const {
    detail::make_color_range(white, where);
    detail::check_finite(of.mean, "mean", where);
    functor result{};
    for (int k = 0; k < 3; ++k) {
      const double deviation = of.standard_deviation[k];
      require(std::isfinite(deviation) && deviation >= static_cast<double>(0x1p-60f), where, "standard_deviation ",
              of.standard_deviation[k], " must be positive");
      result.factor[k] = static_cast<float>(1 / (static_cast<double>(white) * deviation));
      result.offset[k] = static_cast<float>(-static_cast<double>(of.mean[k]) / deviation);
    }
    return result;
  }
};

}  // namespace suture
