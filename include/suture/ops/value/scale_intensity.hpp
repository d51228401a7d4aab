// SPDX-License-Identifier: Apache-2.0
// One range of values mapped onto another.
#pragma once

#include <cfloat>
#include <cmath>
#include <string_view>

#include "../../base/fields.hpp"
#include "../common/interval.hpp"
#include "ramp.hpp"

namespace suture {

// y = (x - a_min) / (a_max - a_min) (b_max - b_min) + b_min, with `clip` limited to [b_min, b_max] (NaN then becomes
// b_min). a in the units of the image. MONAI ScaleIntensityRange; its special case a_min == a_max is an error here.
// Errors: a_min == a_max, with `clip` also a_min above a_max or b_min not below b_max, a number that is not finite.
struct scale_intensity {
  float a_min;
  float a_max;
  float b_min = 0;
  float b_max = 1;
  bool clip = false;

  static constexpr std::string_view name = "scale_intensity";
  static constexpr auto parameters =
      named("a_min", required(&scale_intensity::a_min), "a_max", required(&scale_intensity::a_max), "b_min",
            &scale_intensity::b_min, "b_max", &scale_intensity::b_max, "clip", &scale_intensity::clip);

  struct functor {
    detail::ramp scaled;
    bool clip;
    SUTURE_FN float operator()(float x) const { return clip ? scaled(x) : scaled.line(x); }
  };

  functor prepare(const site& where) const {
    require(std::isfinite(a_min) && std::isfinite(a_max) && a_min != a_max, where, "a_min ", a_min, " and a_max ",
            a_max, " must be finite and different");
    require(std::isfinite(b_min) && std::isfinite(b_max), where, "b_min ", b_min, " and b_max ", b_max,
            " must be finite");
    const double bottom = static_cast<double>(a_min), top = static_cast<double>(a_max);
    if (clip) {
      require(a_min < a_max, where, "a_min ", a_min, " must be below a_max ", a_max, " to clip");
      require(b_min < b_max, where, "b_min ", b_min, " must be below b_max ", b_max, " to clip");
      return {detail::make_ramp(bottom, top, b_min, b_max), true};
    }
    detail::check_shift(a_min, "a_min", where);
    const double slope = (static_cast<double>(b_max) - static_cast<double>(b_min)) / (top - bottom);
    require(std::abs(slope) <= static_cast<double>(FLT_MAX), where, "a_min ", a_min, " and a_max ", a_max,
            " are too close for b_min ", b_min, " and b_max ", b_max);
    return {{a_min, static_cast<float>(slope), b_min, b_min, b_max}, false};
  }
};

}  // namespace suture
