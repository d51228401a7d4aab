// SPDX-License-Identifier: Apache-2.0
// Gray of a color.
#pragma once

#include <string_view>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../color/color_space.hpp"
#include "../../rng/draw.hpp"

namespace suture {

// Weights of red, green and blue in gray.
//   itu601   .299, .587, .114                                      OpenCV, torchvision to four digits
//   itu709   .2125, .7154, .0721                                   scikit-image rgb2gray
//   pillow   (19595 R + 38470 G + 7471 B + 32768) >> 16            Pillow convert("L"); whole values 0 .. 255
enum class gray_rule { itu601, itu709, pillow };

namespace detail {

struct gray_weights {
  float red, green, blue;

  SUTURE_FN float operator()(const rgb& v) const {
    return fma(v.c[0], red, fma(v.c[1], green, fma(v.c[2], blue, 0.0f)));
  }
};
SUTURE_FN constexpr gray_weights itu601_weights() { return {.299f, .587f, .114f}; }

}  // namespace detail

// All three channels become the gray of the color. Linear, so any range of values will do and none is limited; NaN
// stays NaN. pillow is exact for the whole values of uint8.
struct grayscale {
  gray_rule rule = gray_rule::itu601;

  static constexpr std::string_view name = "grayscale";
  static constexpr auto parameters = named("rule", &grayscale::rule);
  static constexpr auto fields = named();  // no parameter is drawn

  struct functor {
    detail::gray_weights weights;
    bool to_whole;

    SUTURE_FN rgb operator()(const rgb& x) const {
      const float exact = weights(x);
      // Adds one half and rounds down, as the shift does.
      const float raised = exact + 0.5f;
      const float nearest = (raised + math::detail::round_magic) - math::detail::round_magic;
      const float whole = math::detail::select(nearest > raised, nearest - 1.0f, nearest);
      const float gray = math::detail::select(to_whole, whole, exact);
      return {{gray, gray, gray}};
    }
  };

  functor prepare(const site&) const {
    switch (rule) {
      case gray_rule::itu709:
        return {{.2125f, .7154f, .0721f}, false};
      case gray_rule::pillow:
        return {{19595 / 65536.0f, 38470 / 65536.0f, 7471 / 65536.0f}, true};
      default:
        return {detail::itu601_weights(), false};
    }
  }
};

// grayscale for some of the samples.
struct random_grayscale {
  gray_rule rule = gray_rule::itu601;
  float probability = .1f;

  static constexpr std::string_view name = "random_grayscale";
  static constexpr std::uint16_t kind = 70;
  static constexpr auto parameters =
      named("rule", &random_grayscale::rule, "probability", &random_grayscale::probability);

  grayscale draw(draws&, const site&) const { return {.rule = rule}; }
};

}  // namespace suture
