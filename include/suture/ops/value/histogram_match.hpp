// SPDX-License-Identifier: Apache-2.0
// Intensities mapped by landmarks to a standard scale or to a reference image.
#pragma once

#include <span>

#include "../../base/fields.hpp"
#include "z_score.hpp"

namespace suture {

// The piecewise linear map of fit_landmarks for the sample and channel: its percentiles go to their targets, with
// straight lines between them; the first and the last line continue beyond. `fitted` and `channels` as for z_score; N
// as in the fit. An empty fit leaves values unchanged. NaN stays NaN. Errors: no results for a sample, channels below 1
// or not those of the image. Source: Nyul and Udupa 1999, TorchIO HistogramStandardization.
template <int N>
struct histogram_match {
  std::span<const landmark_map<N>> fitted;
  std::int32_t channels = 1;

  static constexpr std::string_view name = "histogram_match";
  static constexpr auto parameters =
      named("fitted", required(&histogram_match::fitted), "channels", &histogram_match::channels);

  struct functor {
    const landmark_map<N>* fitted;
    std::int32_t channels;

    void check_fitted(const site& where) const { detail::check_channels_fitted(fitted, channels, where); }

    SUTURE_FN float operator()(float x, const voxel& at) const {
      const landmark_map<N>& m = detail::fitted_at(fitted, channels, at);
      int k = 0;
      for (int i = 1; i < N - 1; ++i) k += x >= m.source[i] ? 1 : 0;
      return fma(x - m.source[k], m.slope[k], m.target[k]);
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

namespace detail {
template <int N>
constexpr int landmarks_of(const landmark_map<N>*) {
  return N;
}
template <class Results>
inline constexpr int landmarks_in = landmarks_of(static_cast<std::ranges::range_value_t<Results>*>(nullptr));
}  // namespace detail

template <std::ranges::contiguous_range Results>
histogram_match(const Results&, std::int32_t = 1) -> histogram_match<detail::landmarks_in<Results>>;

}  // namespace suture
