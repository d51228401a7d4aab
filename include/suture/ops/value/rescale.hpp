// SPDX-License-Identifier: Apache-2.0
// Conversion of stored values to physical ones.
#pragma once

#include <cmath>
#include <string_view>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../base/vec.hpp"

namespace suture {

// y = slope x + intercept: stored CT values to HU, by Rescale Slope and Rescale Intercept (DICOM PS3.3 C.11.1).
// Errors: slope 0, a number that is not finite.
struct rescale {
  float slope = 1;
  float intercept = 0;

  static constexpr std::string_view name = "rescale";
  static constexpr auto parameters = named("slope", &rescale::slope, "intercept", &rescale::intercept);

  SUTURE_FN float operator()(float x) const { return fma(x, slope, intercept); }

  void check(const site& where) const {
    require(std::isfinite(slope) && slope != 0, where, "slope ", slope, " must be finite and not 0");
    require(std::isfinite(intercept), where, "intercept ", intercept, " must be finite");
  }
};

}  // namespace suture
