// SPDX-License-Identifier: Apache-2.0
// The straight line between two levels that windowing and range scaling share.
#pragma once

#include <cfloat>
#include <cmath>

#include "../../base/vec.hpp"
#include "../../math/exponential.hpp"
#include "clamp.hpp"

namespace suture::detail {

// y = offset + (x - origin) scale, limited to [low, high]; NaN becomes low. The difference comes first, so that a
// narrow window far from zero keeps its accuracy.
struct ramp {
  float origin, scale, offset, low, high;

  SUTURE_FN float line(float x) const { return fma(x - origin, scale, offset); }
  SUTURE_FN float operator()(float x) const { return limit(line(x), low, high); }
};

inline float greatest_float_not_above(double x) {
  const float nearest = static_cast<float>(x);
  return static_cast<double>(nearest) > x ? std::nextafter(nearest, -math::detail::infinity) : nearest;
}
inline float least_float_not_below(double x) {
  const float nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x ? std::nextafter(nearest, math::detail::infinity) : nearest;
}

// Returns the ramp that is low for x <= bottom, high for x >= top and straight between, low < high. Where bottom == top
// it is the step: low for x <= bottom, high for x > bottom.
inline ramp make_ramp(double bottom, double top, float low, float high) {
  low = bound(low);
  high = bound(high);
  const double slope = (static_cast<double>(high) - static_cast<double>(low)) / (top - bottom);
  if (!(bottom < top) || slope > static_cast<double>(FLT_MAX))  // 0 * infinity is NaN, which becomes low
    return {greatest_float_not_above(bottom), math::detail::infinity, low, low, high};
  ramp r{static_cast<float>(bottom), static_cast<float>(slope), 0, low, high};
  r.offset = static_cast<float>(fma(static_cast<double>(r.origin) - bottom, slope, static_cast<double>(low)));
  // Rounding must not keep the line from reaching the top.
  const float end = least_float_not_below(top);
  while (r.line(end) < high) r.scale = std::nextafter(r.scale, math::detail::infinity);
  return r;
}

}  // namespace suture::detail
