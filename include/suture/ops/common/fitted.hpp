// SPDX-License-Identifier: Apache-2.0
// Checks of the number of fitted results that an operation takes, before anything runs.
#pragma once

#include <cstdint>
#include <span>

#include "../../base/error.hpp"
#include "../../stats/statistics.hpp"

namespace suture::detail {

template <class Result>
void check_results_given(std::span<const Result> fitted, const site& where) {
  require(!fitted.empty(), where, "no fitted results given");
  require(fitted.data() != nullptr, where, "null pointer to the fitted results");
}

template <class Result>
bool has_results(std::span<const Result> fitted, std::int64_t channels, const site& where) {
  const std::int64_t sample = where.sample < 0 ? 0 : where.sample;
  return static_cast<std::int64_t>(fitted.size()) / channels > sample;
}

// Checks that there is a result for the sample of `where`: one per sample, or if `shared` a single one for all.
template <class Result>
void check_results(std::span<const Result> fitted, const site& where, bool shared) {
  check_results_given(fitted, where);
  if (shared)
    require(fitted.size() == 1, where, fitted.size(), " fitted results given, shared uses one for all");
  else if (!has_results(fitted, 1, where))
    fail(where, "no fitted result for it, ", fitted.size(), " given",
         fitted.size() == 1 ? " (shared = true uses one for all)" : "");
}
template <class Result>
void check_results(std::span<const Result> fitted, const site& where) {
  check_results_given(fitted, where);
  require(has_results(fitted, 1, where), where, "no fitted result for it, ", fitted.size(), " given");
}

// Checks the results of an operation for which they are optional.
template <class Result>
void check_results_if_any(std::span<const Result> fitted, const site& where, bool shared) {
  if (shared || !fitted.empty()) check_results(fitted, where, shared);
}
template <class Result>
const Result* pointer_if_any(std::span<const Result> fitted) {
  return fitted.empty() ? nullptr : fitted.data();
}

// Checks that there are `channels` results for the sample of `where`.
template <class Result>
void check_channel_results(std::span<const Result> fitted, std::int32_t channels, const site& where) {
  check_results_given(fitted, where);
  require(channels >= 1 && channels <= 65535, where, "channels ", channels, " must be in 1..65535");
  require(has_results(fitted, channels, where), where, "no fitted results for it, ", fitted.size(), " given, ",
          channels, " per sample");
}

// Checks the results of fits for the channels of a sample, in host memory.
template <class Result>
void check_channels_fitted(const Result* fitted, std::int32_t channels, const site& where) {
  for (std::int32_t c = 0; c < channels; ++c) check_fitted(fitted[where.sample * channels + c], where);
}

// Checks that an image has the channels that the results belong to; otherwise wrong results would be read unnoticed.
// The number of channels is known when an image is bound.
template <class Result>
void check_channels_of_image(std::span<const Result> fitted, std::int32_t channels, std::int64_t image_channels,
                             std::size_t samples, const site& where) {
  if (channels > 1)
    require(image_channels == channels, where, "the image has ", image_channels, " channels, fitted results are for ",
            channels);
  else if (image_channels > 1)
    require(fitted.size() != samples * static_cast<std::size_t>(image_channels), where, fitted.size(),
            " fitted results given, one for each of the ", image_channels, " channels: say channels = ", image_channels,
            ", or give one per sample (a pooled fit)");
}

}  // namespace suture::detail
