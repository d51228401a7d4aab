// SPDX-License-Identifier: Apache-2.0
// A random scale, the same for several axes.
#pragma once

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "../common/interval.hpp"
#include "affine.hpp"

namespace suture {

// random_scale: the scale of `affine` alone, one factor for all axes in `axes`, drawn from `range` by `law` (two
//   slots). Whether a factor above 1 enlarges or shrinks the content is the convention's: suture enlarges, nnunet and
//   monai shrink.
// Errors: range not positive, not from low to high, or unfit for its law; as affine.
struct random_scale {
  static constexpr std::string_view name = "random_scale";
  static constexpr auto gives_size = output_size::alike;
  static constexpr std::uint16_t kind = 118;

  interval range = {.9f, 1.1f};
  interval_law law = interval_law::uniform;
  vec3<bool> axes{true, true, true};
  affine_convention convention = affine_convention::suture;
  float probability = 1;

  static constexpr auto parameters =
      named("range", multiplies(&random_scale::range), "law", &random_scale::law, "axes", &random_scale::axes,
            "convention", &random_scale::convention, "probability", &random_scale::probability);

  void check(const site& where) const {
    detail::check_interval(range, law, "range", where);
    require(range.low > 0, where, "range ", range, " must be positive");
    for (const float end : {range.low, range.high}) scaled(end).check(where);
  }

  affine draw(draws& random, const site&) const { return scaled(detail::draw_from(range, law, random)); }

private:
  affine scaled(float factor) const {
    affine result{.convention = convention};
    for (int k = 0; k < 3; ++k) result.scale[k] = axes[k] ? static_cast<double>(factor) : 1;
    return result;
  }
};

}  // namespace suture
