// SPDX-License-Identifier: Apache-2.0
// Inversion of intensities about a pivot.
#pragma once

#include <cmath>
#include <string_view>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../base/vec.hpp"

namespace suture {

// y = 2 pivot - x mirrors values at the pivot. 0 changes the sign, 0.5 swaps the ends of [0, 1]. Errors: a pivot that
// is not finite.
struct invert {
  float pivot = 0;

  static constexpr std::string_view name = "invert";
  static constexpr auto parameters = named("pivot", &invert::pivot);

  struct functor {
    float twice;
    SUTURE_FN float operator()(float x) const { return twice - x; }
  };

  functor prepare(const site& where) const {
    require(std::isfinite(2 * pivot), where, "pivot ", pivot, " must be finite and so its double");
    return {2 * pivot};
  }
};

}  // namespace suture
