// SPDX-License-Identifier: Apache-2.0
// Z-score normalization by the moments of each sample.
#pragma once

#include <span>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../base/voxel.hpp"
#include "../../stats/statistics.hpp"
#include "../common/fitted.hpp"

namespace suture {

namespace detail {

// Returns the result of a fit for a voxel: one per sample and channel, or with channels = 1 one per sample.
template <class Result>
SUTURE_FN const Result& fitted_at(const Result* fitted, std::int32_t channels, const voxel& at) {
  const std::int32_t channel = at.channel < channels ? at.channel : channels - 1;
  return fitted[static_cast<std::int64_t>(at.sample_index) * channels + channel];
}

}  // namespace detail

// y = (x - mean) / max(standard_deviation, 1e-8) by the result of fit_moments for the sample and channel, with the ddof
// of the fit; where `nonzero`, voxels of value 0 stay 0. `fitted` lies in memory of the executor that runs: one result
// per sample of the batch and channel, channel fastest, or with channels = 1 one per sample (a pooled fit). It is read
// when the pipeline runs, so the fit may be queued before on the same stream. An empty fit leaves values unchanged. NaN
// stays NaN. Errors: no results for a sample, channels below 1 or not those of the image, results that were neither
// fitted nor stated (on the CPU, when it runs; on a device they leave values unchanged). Source: nnU-Net
// ZScoreNormalization, MONAI NormalizeIntensity.
struct z_score {
  std::span<const moments> fitted;
  std::int32_t channels = 1;
  bool nonzero = false;

  static constexpr std::string_view name = "z_score";
  static constexpr auto parameters =
      named("fitted", required(&z_score::fitted), "channels", &z_score::channels, "nonzero", &z_score::nonzero);

  struct functor {
    const moments* fitted;
    std::int32_t channels;
    bool nonzero;

    void check_fitted(const site& where) const { detail::check_channels_fitted(fitted, channels, where); }

    SUTURE_FN float operator()(float x, const voxel& at) const {
      const moments& m = detail::fitted_at(fitted, channels, at);
      // The fma replaces a plain product, which a compiler could contract with the arithmetic of the interpolation.
      const float y = fma(x - m.center, m.reciprocal, 0.0f);
      return nonzero && x == 0 ? 0.0f : y;
    }
  };

  functor prepare(const site& where) const {
    detail::check_channel_results(fitted, channels, where);
    return {fitted.data(), channels, nonzero};
  }
  void check_image(std::int64_t image_channels, std::size_t samples, const site& where) const {
    detail::check_channels_of_image(fitted, channels, image_channels, samples, where);
  }
};

}  // namespace suture
