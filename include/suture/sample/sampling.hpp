// SPDX-License-Identifier: Apache-2.0
// The rule by which a pipeline reads its source: interpolation and border of images, interpolation of label maps. A
// chain has at most one, among its geometry operations. Without it images are linear, labels nearest, and the outside
// is 0.
//
//   suture::sampling<suture::cubic_bspline, suture::mirror, suture::vote>{}
//   suture::sampling<suture::linear, suture::constant>{.border = {.value = -1}, .label_outside = 255}
//   suture::sampling<suture::linear, suture::default_value>{
//       .border = {.value = -1024, .rim = suture::image_rim::faces}}
//
// Label maps are read by an interpolation that picks a label: nearest, nearest_half_even, vote or majority. They share
// the border rule of the images; under `constant` and `default_value` they read label_outside.
#pragma once

#include <string_view>
#include <type_traits>

#include "../base/fields.hpp"
#include "border.hpp"
#include "interpolation.hpp"

namespace suture {

namespace detail {
template <class I>
concept is_image_interpolation = requires {
  I::taps;
  I::prefiltered;
};
template <class B>
concept is_border = requires {
  B::has_value;
  B::prefilter_padding;
};
template <class L>
concept is_label_interpolation = requires {
  requires L::serves_labels;
};
}  // namespace detail

template <class Interpolation = linear, class Border = constant, class Labels = nearest>
struct sampling {
  static_assert(detail::is_image_interpolation<Interpolation>,
                "suture: sampling<I, B, L>: I, which images are read by, is nearest, nearest_half_even, linear, "
                "catmull_rom, torch_cubic or cubic_bspline; vote and majority are for labels, as L");
  static_assert(detail::is_border<Border>,
                "suture: sampling<I, B, L>: B, what lies outside, is constant, default_value, edge, reflect, mirror or "
                "wrap");
  static_assert(detail::is_label_interpolation<Labels>,
                "suture: sampling<I, B, L>: L, which label maps are read by, is nearest, nearest_half_even, vote or "
                "majority; all others make values of labels, or read the wrong one");
  static constexpr std::string_view name = "sampling";
  using interpolation_type = Interpolation;
  using border_type = Border;
  using label_type = Labels;

  Border border{};
  std::int32_t label_outside = 0;

  static constexpr auto parameters = named("border", &sampling::border, "label_outside", &sampling::label_outside);
};

}  // namespace suture
