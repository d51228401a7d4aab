// SPDX-License-Identifier: Apache-2.0
// Normalizes the patch to mean 0 and deviation 1.
#pragma once

#include <cmath>
#include <string_view>

#include "../../base/bits.hpp"
#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../math/elementary.hpp"
#include "../../pipeline/stage_schedule.hpp"
#include "../../stats/statistics.hpp"

namespace suture {

// y = (x - mean) / deviation by the mean and deviation (ddof 0) of each channel of the patch as it is at this point of
// the chain; a deviation of 0 divides by 1, one below 2^-127 by that. NaN, which is not counted, becomes `nan`, or
// stays where that is not set:
//   exclude{0} | patch_z_score{.nan = 0}
// is MONAI NormalizeIntensity(nonzero = True, channel_wise = True).
struct patch_z_score {
  float nan = bit_cast<float>(0x7fc00000u);

  static constexpr std::string_view name = "patch_z_score";
  static constexpr auto parameters = named("nan", &patch_z_score::nan);

  struct functor {
    float nan;

    struct with_moments {
      float mean, reciprocal, nan;
      SUTURE_FN float operator()(float x) const { return x == x ? fma(x - mean, reciprocal, 0.0f) : nan; }
    };
    SUTURE_FN bool active(std::int32_t) const { return true; }
    SUTURE_FN with_moments with(const moments& patch, std::int32_t) const {
      constexpr double least = 0x1p-127;  // the reciprocal of a smaller one is beyond float
      const double deviation = patch.standard_deviation > least ? patch.standard_deviation
                               : patch.standard_deviation > 0   ? least
                                                                : 1.0;
      return {patch.center, static_cast<float>(math::detail::divide(1.0, deviation)), nan};
    }
  };

  functor prepare(const site&) const { return {nan}; }
};

// Voxels of `value` become NaN, which statistics of the patch do not count.
// Errors: a value that is not finite.
struct exclude {
  float value = 0;

  static constexpr std::string_view name = "exclude";
  static constexpr auto parameters = named("value", &exclude::value);

  SUTURE_FN float operator()(float x) const { return x == value ? bit_cast<float>(0x7fc00000u) : x; }

  void check(const site& where) const { require(std::isfinite(value), where, "value ", value, " must be finite"); }
};

}  // namespace suture
