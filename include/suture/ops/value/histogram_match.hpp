// SPDX-License-Identifier: Apache-2.0
// Intensities mapped by landmarks to a standard scale or to a reference image.
#pragma once

#include "z_score.hpp"

namespace suture {

// The piecewise linear map that fit_landmarks left for the sample and channel: its percentiles go to their targets,
// straight lines between them, and the first and last line on beyond. `fitted` and `channels` as for z_score; N as in
// the fit. An empty fit leaves values as they are. NaN stays NaN.
// Errors: null pointer, channels below 1. Source: Nyul and Udupa 1999, TorchIO HistogramStandardization.
template <int N>
struct histogram_match {
  const landmark_map<N>* fitted;
  std::int32_t channels = 1;

  static constexpr std::string_view name = "histogram_match";

  SUTURE_FN float operator()(float x, const voxel& at) const {
    const landmark_map<N>& m = detail::fitted_at(fitted, channels, at);
    int k = 0;
    for (int i = 1; i < N - 1; ++i) k += x >= m.source[i] ? 1 : 0;
    return fma(x - m.source[k], m.slope[k], m.target[k]);
  }

  void check(const site& where) const { detail::check_fitted(fitted, channels, where); }
};

template <int N>
histogram_match(const landmark_map<N>*, std::int32_t) -> histogram_match<N>;
template <int N>
histogram_match(const landmark_map<N>*) -> histogram_match<N>;

}  // namespace suture
