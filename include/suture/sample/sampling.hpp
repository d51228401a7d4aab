// SPDX-License-Identifier: Apache-2.0
// How a pipeline reads its source: interpolation and border of images, interpolation of label maps. Stands in a
// chain among the geometry operations, at most once; without it images are linear, labels nearest, outside is 0.
//
//   suture::sampling<suture::cubic_bspline, suture::mirror, suture::vote>{}
//   suture::sampling<suture::linear, suture::constant>{.border = {.value = -1}, .label_outside = 255}
//
// Label maps share the border rule of the images; under `constant` they read label_outside.
#pragma once

#include <string_view>
#include <type_traits>

#include "border.hpp"
#include "interpolation.hpp"

namespace suture {

template <class Interpolation = linear, class Border = constant, class Labels = nearest>
struct sampling {
  static_assert(!std::is_same_v<Interpolation, vote>, "suture: vote is for labels: sampling<linear, constant, vote>");
  static constexpr std::string_view name = "sampling";
  using interpolation_type = Interpolation;
  using border_type = Border;
  using label_type = Labels;

  Border border{};
  std::int32_t label_outside = 0;
};

}  // namespace suture
