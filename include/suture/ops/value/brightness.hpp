// SPDX-License-Identifier: Apache-2.0
// Brightness, added or multiplied.
#pragma once

#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../common/interval.hpp"

namespace suture {

// y = x + offset, in the units of the image. MONAI ShiftIntensity.
// Errors: an offset that is not finite.
struct brightness {
  float offset;

  static constexpr std::string_view name = "brightness";
  static constexpr auto fields = named("offset", required(&brightness::offset));
  static constexpr auto parameters = fields;

  SUTURE_FN float operator()(float x) const { return x + offset; }

  void check(const site& where) const { require(std::isfinite(offset), where, "offset ", offset, " must be finite"); }
};

// y = x factor. MONAI ScaleIntensity(factor = factor - 1); nnU-Net MultiplicativeBrightness.
// Errors: a factor that is not finite.
struct brightness_factor {
  float factor;

  static constexpr std::string_view name = "brightness_factor";
  static constexpr auto fields = named("factor", required(&brightness_factor::factor));
  static constexpr auto parameters = fields;

  // A bare product could be contracted with an addition that follows in the chain. -0 becomes +0.
  SUTURE_FN float operator()(float x) const { return fma(x, factor, 0.0f); }

  void check(const site& where) const { require(std::isfinite(factor), where, "factor ", factor, " must be finite"); }
};

// brightness with an offset drawn uniformly from `range`, one for all channels.
// Errors: range not from low to high, a number that is not finite.
struct random_brightness {
  interval range = {-.1f, .1f};
  float probability = 1;

  static constexpr std::string_view name = "random_brightness";
  static constexpr std::uint16_t kind = 36;
  static constexpr auto parameters =
      named("range", &random_brightness::range, "probability", &random_brightness::probability);

  void check(const site& where) const { detail::check_interval(range, "range", where); }

  brightness draw(draws& random, const site&) const { return {.offset = random.uniform(range.low, range.high)}; }
};

// brightness_factor with a factor drawn from `range`, one for all channels. nnU-Net: law mixture.
// Errors: range not from low to high, or unfit for its law, a number that is not finite.
struct random_brightness_factor {
  interval range = {.75f, 1.25f};
  interval_law law = interval_law::uniform;
  float probability = 1;

  static constexpr std::string_view name = "random_brightness_factor";
  static constexpr std::uint16_t kind = 37;
  static constexpr auto parameters =
      named("range", multiplies(&random_brightness_factor::range), "law", &random_brightness_factor::law, "probability",
            &random_brightness_factor::probability);

  void check(const site& where) const { detail::check_interval(range, law, "range", where); }

  brightness_factor draw(draws& random, const site&) const { return {.factor = detail::draw_from(range, law, random)}; }
};

}  // namespace suture
