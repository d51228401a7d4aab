// SPDX-License-Identifier: Apache-2.0
// The result of a fit of colors: mean and standard deviation of each channel of a color space.
#pragma once

#include "../base/fields.hpp"
#include "statistics.hpp"

namespace suture {

namespace detail {
SUTURE_HD constexpr bool all_of(const double (&values)[3], double one) {
  return values[0] == one && values[1] == one && values[2] == one;
}
}  // namespace detail

// Moments of each channel of the color space, in its units: the mean and sqrt(sum((x - mean)^2) / (count - ddof)).
//   tally    numbers of pixels; `excluded` are those with a channel that is NaN or infinite
//   status   constant: a deviation is 0, or below what the conversion resolves (Space::resolution); empty: mean 0,
//            deviation 1
// Users may state them, as a target or as `fitted`: color_moments<lab>{.mean = {...}, .standard_deviation = {...}}.
// Means of 0 and deviations of 1 need .status = fit_status::stated.
template <class Space>
struct color_moments {
  double mean[3] = {};
  double standard_deviation[3] = {1, 1, 1};
  fit_tally tally{};
  fit_status status = detail::stated_unless(detail::all_of(mean, 0) && detail::all_of(standard_deviation, 1));
  std::int32_t ddof = 0;
  // Constants of reinhard; the reciprocal of a zero deviation is 0.
  float center[3] = {static_cast<float>(mean[0]), static_cast<float>(mean[1]), static_cast<float>(mean[2])};
  float deviation[3] = {static_cast<float>(standard_deviation[0]), static_cast<float>(standard_deviation[1]),
                        static_cast<float>(standard_deviation[2])};
  float reciprocal[3] = {reciprocal_of(standard_deviation[0]), reciprocal_of(standard_deviation[1]),
                         reciprocal_of(standard_deviation[2])};
  bool operator==(const color_moments&) const = default;

  static constexpr std::string_view described_as = "color_target";
  static constexpr auto fields =
      named("mean", &color_moments::mean, "standard_deviation", &color_moments::standard_deviation);

  // Recomputes the constants after mean and deviation were assigned, and makes the status `stated`.
  void state() {
    status = fit_status::stated;
    for (int k = 0; k < 3; ++k) {
      center[k] = static_cast<float>(mean[k]);
      deviation[k] = static_cast<float>(standard_deviation[k]);
      reciprocal[k] = reciprocal_of(standard_deviation[k]);
    }
  }
  SUTURE_HD static float reciprocal_of(double deviation) {
    if (deviation == 1) return 1;
    return deviation > Space::resolution ? static_cast<float>(math::detail::divide(1.0, deviation)) : 0.0f;
  }
};

namespace detail {

// Checks color moments that an operation is about to read, in host memory: fitted or stated, with matching constants.
template <class Space>
void check_fitted(const color_moments<Space>& m, const site& where) {
  check_fitted(m.status, where, "fit_color_moments",
               "color_moments<Space>{.mean = {...}, .standard_deviation = {...}}");
  for (int k = 0; k < 3; ++k) {
    check_mean(m.mean[k], where);
    check_deviation(m.standard_deviation[k], where);
    require(m.center[k] == static_cast<float>(m.mean[k]) &&
                m.deviation[k] == static_cast<float>(m.standard_deviation[k]) &&
                m.reciprocal[k] == color_moments<Space>::reciprocal_of(m.standard_deviation[k]),
            where, "the moments of channel ", k,
            " were changed after they were made; state them whole: {.mean = {...}, .standard_deviation = {...}}");
  }
}

}  // namespace detail
}  // namespace suture
