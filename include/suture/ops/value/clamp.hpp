// SPDX-License-Identifier: Apache-2.0
// Values limited to an interval.
#pragma once

#include <cmath>
#include <string_view>

#include "../../base/config.hpp"
#include "../../base/error.hpp"
#include "../../base/fields.hpp"

namespace suture {

namespace detail {

// Limits x to [low, high], where NaN becomes low: the values of math::detail::clamp_number. Host and device take one
// instruction per bound. If arithmetic on the bits of the result follows, host compilers may make a branch;
// clamp_number prevents it, for two instructions more. Host and device agree on the sign of zero if no bound is -0, see
// `bound`.
SUTURE_FN float limit(float x, float low, float high) {
#if defined(__CUDA_ARCH__)
  return fminf(fmaxf(x, low), high);
#else
  const float raised = x > low ? x : low;
  return high < raised ? high : raised;
#endif
}

// Turns -0 into +0.
inline float bound(float x) { return x == 0 ? 0.0f : x; }

}  // namespace detail

// y = min(max(x, low), high); NaN becomes low. Values in the units of the image.
// Errors: low above high, a bound that is NaN.
struct clamp {
  float low = 0;
  float high = 1;

  static constexpr std::string_view name = "clamp";
  static constexpr auto parameters = named("low", &clamp::low, "high", &clamp::high);

  struct functor {
    float low, high;
    SUTURE_FN float operator()(float x) const { return detail::limit(x, low, high); }
  };

  functor prepare(const site& where) const {
    require(!std::isnan(low) && !std::isnan(high), where, "bounds [", low, ", ", high, "] must be numbers");
    require(low <= high, where, "low ", low, " is above high ", high);
    return {detail::bound(low), detail::bound(high)};
  }
};

}  // namespace suture
