// SPDX-License-Identifier: Apache-2.0
// Contrast about a stated value.
#pragma once

#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../common/interval.hpp"

namespace suture {

// y = (x - pivot) factor + pivot. The pivot is in the units of the image; 0 suits z-scored images.
// Errors: a number that is not finite.
struct contrast {
  float factor;
  float pivot = 0;

  static constexpr std::string_view name = "contrast";
  static constexpr auto fields = named("factor", &contrast::factor);
  static constexpr auto parameters = named("factor", required(&contrast::factor), "pivot", &contrast::pivot);

  SUTURE_FN float operator()(float x) const { return fma(x - pivot, factor, pivot); }

  void check(const site& where) const {
    require(std::isfinite(factor), where, "factor ", factor, " must be finite");
    detail::check_shift(pivot, "pivot", where);
  }
};

// contrast with a factor drawn from `range`.
// Errors: range not from low to high, or unfit for its law; those of contrast.
struct random_contrast {
  interval range = {.75f, 1.25f};
  float pivot = 0;
  interval_law law = interval_law::uniform;
  float probability = 1;

  static constexpr std::string_view name = "random_contrast";
  static constexpr std::uint16_t kind = 35;
  static constexpr auto parameters =
      named("range", multiplies(&random_contrast::range), "pivot", &random_contrast::pivot, "law",
            &random_contrast::law, "probability", &random_contrast::probability);

  contrast draw(draws& random, const site& where) const {
    detail::check_interval(range, law, "range", where);
    return {.factor = detail::draw_from(range, law, random), .pivot = pivot};
  }
};

}  // namespace suture
