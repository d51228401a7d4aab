// SPDX-License-Identifier: Apache-2.0
// Augmentation of hue, saturation and value.
#pragma once

#include <cstdint>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../color/color_range.hpp"
#include "../common/interval.hpp"

namespace suture {

// hue is added, in turns; saturation and value move towards 1 by their share of the way there, or where negative
// towards 0: s + (1 - s) saturation or s (1 + saturation). In [0, white]: values outside are brought to its ends first,
// NaN to 0. Grays gain saturation too, towards red; white moves as any color.
// Errors: hue outside of [-1, 1], saturation or value outside of [-1, 1], white not positive.
// Source: Tellez et al. 2019, pathology-he-auto-augment.
struct hsv_jitter {
  float hue = 0;
  float saturation = 0;
  float value = 0;
  float white = 255;

  static constexpr std::string_view name = "hsv_jitter";
  static constexpr auto fields =
      named("hue", &hsv_jitter::hue, "saturation", &hsv_jitter::saturation, "value", &hsv_jitter::value);
  static constexpr auto parameters = named("hue", &hsv_jitter::hue, "saturation", &hsv_jitter::saturation, "value",
                                           &hsv_jitter::value, "white", &hsv_jitter::white);

  struct functor {
    detail::color_range range;
    float sixths;
    float saturation_factor, saturation_offset, value_factor, value_offset;

    SUTURE_FN rgb operator()(const rgb& x) const {
      const detail::unit_range unit;
      return to_rgb(from_rgb(x, unit), unit);
    }

    // Applies the functor to pixels side by side.
    template <int N>
    SUTURE_FN void apply_lanes(float (&v)[3][N], std::int32_t) const {
      const functor mine = *this;
      const detail::range_of_lanes unit;
      detail::in_steps(
          v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mine.from_rgb(x, unit); },
          [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mine.to_rgb(x, unit); });
    }

  private:
    using space = detail::hue_chroma_value;

    // Returns hue, saturation and value.
    template <class Unit>
    SUTURE_FN rgb from_rgb(const rgb& x, const Unit& unit) const {
      const rgb v = space::from_rgb(range.to_unit(x, unit));
      return {{math::detail::select(v.c[1] > 0.0f, v.c[0], 0.0f), space::saturation(v), v.c[2]}};
    }
    template <class Unit>
    SUTURE_FN rgb to_rgb(const rgb& v, const Unit& unit) const {
      const float new_saturation = fma(v.c[1], saturation_factor, saturation_offset);
      const float new_value = fma(v.c[2], value_factor, value_offset);
      return range.from_unit(
          space::to_rgb({{space::rotate(v.c[0], sixths), new_saturation * new_value, new_value}}, unit));
    }
  };

  functor prepare(const site& where) const {
    const auto check_share = [&](float share, std::string_view what) {
      require(share >= -1 && share <= 1, where, what, ' ', share, " must be in [-1, 1]");
    };
    check_share(hue, "hue");
    check_share(saturation, "saturation");
    check_share(value, "value");
    const float turns = hue < 0 ? hue + 1 : hue;
    return {detail::make_color_range(white, where), turns < 1 ? 6 * turns : 0.0f, 1 - std::abs(saturation),
            saturation > 0 ? saturation : 0.0f,     1 - std::abs(value),          value > 0 ? value : 0.0f};
  }
};

// hsv_jitter with each share drawn uniformly from its range. Published: light .1, strong .5 to 1 either way.
// Errors: a range not from low to high or outside of [-1, 1]; those of hsv_jitter.
struct random_hsv_jitter {
  interval hue = {-.1f, .1f};
  interval saturation = {-.1f, .1f};
  interval value = {-.1f, .1f};
  float white = 255;
  float probability = 1;

  static constexpr std::string_view name = "random_hsv_jitter";
  static constexpr std::uint16_t kind = 69;
  static constexpr auto parameters = named("hue", &random_hsv_jitter::hue, "saturation", &random_hsv_jitter::saturation,
                                           "value", &random_hsv_jitter::value, "white", &random_hsv_jitter::white,
                                           "probability", &random_hsv_jitter::probability);

  hsv_jitter draw(draws& random, const site& where) const {
    const auto draw_share = [&](const interval& range, std::string_view what) {
      detail::check_interval(range, what, where);
      require(range.low >= -1 && range.high <= 1, where, what, ' ', range, " must be within [-1, 1]");
      return random.uniform(range.low, range.high);
    };
    hsv_jitter result{.white = white};
    result.hue = draw_share(hue, "hue");
    result.saturation = draw_share(saturation, "saturation");
    result.value = draw_share(value, "value");
    return result;
  }
};

}  // namespace suture
