// SPDX-License-Identifier: Apache-2.0
// Values limited to the range of each sample.
#pragma once

#include <span>

#include "../../base/fields.hpp"
#include "clamp.hpp"
#include "z_score.hpp"

namespace suture {

// y = min(max(x, low), high), where [low, high] is the intensity_range of the sample and channel; `fitted` and
// `channels` as for z_score. Right of the geometry, with the result of fit_range for the source, it keeps a cubic
// interpolation from overshooting: no voxel of the output lies outside minimum and maximum of its source. If value
// operations stand left of the geometry, fit the range of their result. An empty fit limits nothing. NaN becomes low.
// Errors: no results for a sample, channels below 1 or not those of the image. Source: scikit-image resize (clip),
// nnU-Net.
struct limit_to_range {
  std::span<const intensity_range> fitted;
  std::int32_t channels = 1;

  static constexpr std::string_view name = "limit_to_range";
  static constexpr auto parameters =
      named("fitted", required(&limit_to_range::fitted), "channels", &limit_to_range::channels);

  struct functor {
    const intensity_range* fitted;
    std::int32_t channels;

    void check_fitted(const site& where) const { detail::check_channels_fitted(fitted, channels, where); }

    SUTURE_FN float operator()(float x, const voxel& at) const {
      const intensity_range& r = detail::fitted_at(fitted, channels, at);
      // Adding 0 makes +0 of a bound of -0: processors differ in how they order zeros.
      const float low = static_cast<float>(r.low) + 0.0f, high = static_cast<float>(r.high) + 0.0f;
      return r.status == fit_status::empty ? x : detail::limit(x, low, high);
    }
  };

  functor prepare(const site& where) const {
    detail::check_channel_results(fitted, channels, where);
    return {fitted.data(), channels};
  }
  void check_image(std::int64_t image_channels, std::size_t samples, const site& where) const {
    detail::check_channels_of_image(fitted, channels, image_channels, samples, where);
  }
};

}  // namespace suture
