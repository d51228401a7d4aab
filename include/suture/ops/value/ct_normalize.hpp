// SPDX-License-Identifier: Apache-2.0
// CT normalization by the statistics of a cohort.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string_view>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../common/interval.hpp"
#include "clamp.hpp"

namespace suture {

// y = (min(max(x, lower), upper) - mean) / max(standard_deviation, 1e-8), in units of the deviation: all values of the
// cohort's foreground, the bounds its percentiles 0.5 and 99.5 (cohort_fingerprint in fit/fingerprint.hpp). NaN becomes
// that of lower.
// Errors: a number that is not finite, lower above upper, a negative deviation. Source: nnU-Net CTNormalization.
struct ct_normalize {
  float lower;
  float upper;
  float mean;
  float standard_deviation;

  static constexpr std::string_view name = "ct_normalize";
  static constexpr auto parameters =
      named("lower", required(&ct_normalize::lower), "upper", required(&ct_normalize::upper), "mean",
            required(&ct_normalize::mean), "standard_deviation", required(&ct_normalize::standard_deviation));

  struct functor {
    float lower, upper, mean, reciprocal;
    // The fma replaces a plain product, which a compiler could contract with the arithmetic of the interpolation.
    SUTURE_FN float operator()(float x) const { return fma(detail::limit(x, lower, upper) - mean, reciprocal, 0.0f); }
  };

  functor prepare(const site& where) const {
    require(std::isfinite(lower) && std::isfinite(upper) && lower <= upper, where, "lower ", lower,
            " must not be above upper ", upper);
    require(std::isfinite(standard_deviation) && standard_deviation >= 0, where, "standard_deviation ",
            standard_deviation, " must not be negative");
    detail::check_shift(mean, "mean", where);
    const double deviation = std::max(static_cast<double>(standard_deviation), 1e-8);
    const double furthest = std::max(std::abs(static_cast<double>(lower) - static_cast<double>(mean)),
                                     std::abs(static_cast<double>(upper) - static_cast<double>(mean)));
    require(furthest / deviation <= static_cast<double>(FLT_MAX), where, "lower ", lower, " and upper ", upper,
            " are too many deviations of ", standard_deviation, " from mean ", mean);
    return {detail::bound(lower), detail::bound(upper), mean, static_cast<float>(1 / deviation)};
  }
};

}  // namespace suture
