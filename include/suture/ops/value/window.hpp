// SPDX-License-Identifier: Apache-2.0
// Intensity windows by center and width: the VOI LUT functions of DICOM PS3.3 C.11.2.
#pragma once

#include <algorithm>
#include <cfloat>
#include <string_view>

#include "../../base/bits.hpp"
#include "../../base/fields.hpp"
#include "../../math/elementary.hpp"
#include "ramp.hpp"

namespace suture {

// linear_exact is what training pipelines mean by a window; linear is what a viewer shows by default.
enum class voi_function { linear_exact, linear };

// Maps the window about `center` onto [low, high], in the units of the image (HU for CT):
//   linear_exact   c = center, w = width           (C.11.2.1.3.2); width > 0
//   linear         c = center - 1/2, w = width - 1 (C.11.2.1.2);   width >= 1
//   y = low if x <= c - w/2; high if x > c + w/2; else ((x - c) / w + 1/2) (high - low) + low
// linear with width 1 is the step at center - 1/2. linear_exact is clip((x - a) / (b - a)) with a = center - width/2
// and b = center + width/2. NaN becomes low. Errors: a width below its limit, low not below high, a number that is not
// finite, a window that begins below every float.
struct window {
  float center;
  float width;
  float low = 0;
  float high = 1;
  voi_function function = voi_function::linear_exact;

  static constexpr std::string_view name = "window";
  static constexpr bool depends_on_grid_alone = true;
  static constexpr auto parameters = named("center", required(&window::center), "width", required(&window::width),
                                           "low", &window::low, "high", &window::high, "function", &window::function);

  detail::ramp prepare(const site& where) const {
    const bool exact = function == voi_function::linear_exact;
    require(std::isfinite(center), where, "center ", center, " must be finite");
    require(std::isfinite(width) && (exact ? width > 0 : width >= 1), where, "width ", width,
            exact ? " must be positive" : " must be at least 1 for the function linear");
    require(std::isfinite(low) && std::isfinite(high) && low < high, where, "low ", low, " must be below high ", high);
    const double c = exact ? static_cast<double>(center) : static_cast<double>(center) - 0.5;
    const double w = exact ? static_cast<double>(width) : static_cast<double>(width) - 1;
    const double bottom = fma(-0.5, w, c);
    require(bottom >= -static_cast<double>(FLT_MAX), where, "center ", center, " and width ", width,
            " begin the window at ", bottom, ", which is below every float");
    return detail::make_ramp(bottom, fma(0.5, w, c), low, high);
  }
};

// y = (high - low) / (1 + exp(-4 (x - center) / width)) + low: the VOI LUT function SIGMOID of DICOM PS3.3
// C.11.2.1.3.1. Errors: width not above 0, low not below high or too far from it, a number that is not finite.
struct sigmoid_window {
  float center;
  float width;
  float low = 0;
  float high = 1;

  static constexpr std::string_view name = "sigmoid_window";
  static constexpr auto parameters =
      named("center", required(&sigmoid_window::center), "width", required(&sigmoid_window::width), "low",
            &sigmoid_window::low, "high", &sigmoid_window::high);

  struct functor {
    float center, steepness, low, range;

    SUTURE_FN float operator()(float x) const {
      const float t = (x - center) * steepness;
      // exp(-|t|) is in [0, 1], so nothing overflows.
      const float decay = math::exp(bit_cast<float>(bit_cast<std::uint32_t>(t) | 0x80000000u));
      const float share = reciprocal_between_1_and_2(1.0f + decay);
      return fma((t < 0 ? decay : 1.0f) * share, range, low);
    }

    // Newton's iteration from a straight line, error below 1/17 squared three times.
    SUTURE_FN static float reciprocal_between_1_and_2(float d) {
      float r = fma(d, -8.0f / 17.0f, 24.0f / 17.0f);
      r = fma(fma(-d, r, 1.0f), r, r);
      r = fma(fma(-d, r, 1.0f), r, r);
      r = fma(fma(-d, r, 1.0f), r, r);
      return r;
    }
  };

  functor prepare(const site& where) const {
    require(std::isfinite(center), where, "center ", center, " must be finite");
    require(std::isfinite(width) && width > 0, where, "width ", width, " must be positive");
    require(std::isfinite(low) && std::isfinite(high) && low < high, where, "low ", low, " must be below high ", high);
    const double range = static_cast<double>(high) - static_cast<double>(low);
    require(range <= static_cast<double>(FLT_MAX), where, "low ", low, " and high ", high, " are too far apart");
    const double steepness = std::min(4 / static_cast<double>(width), static_cast<double>(FLT_MAX));
    return {center, static_cast<float>(steepness), low, static_cast<float>(range)};
  }
};

}  // namespace suture
