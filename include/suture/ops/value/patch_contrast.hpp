// SPDX-License-Identifier: Apache-2.0
// Contrast about the mean of the patch.
#pragma once

#include <string_view>

#include "../../base/bits.hpp"
#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../pipeline/stage_schedule.hpp"
#include "../../stats/statistics.hpp"
#include "../common/interval.hpp"

namespace suture {

// y = (x - mean) factor + mean, the mean of each channel of the patch as it is at this point of the chain; kept within
// the patch's [minimum, maximum] where preserve_range. NaN stays NaN.
struct patch_contrast_functor {
  float factor[most_channels];
  bool preserve_range;

  struct with_moments {
    float mean, factor, low, high;
    SUTURE_FN float operator()(float x) const {
      const float y = fma(x - mean, factor, mean);
      return y < low ? low : y > high ? high : y;
    }
  };

  SUTURE_FN bool active(std::int32_t) const { return true; }
  SUTURE_FN with_moments with(const moments& patch, std::int32_t channel) const {
    const float infinity = bit_cast<float>(0x7f800000u);
    return {patch.center, factor[parameter_channel(channel)],
            preserve_range ? static_cast<float>(patch.minimum) : -infinity,
            preserve_range ? static_cast<float>(patch.maximum) : infinity};
  }
};

// Contrast about the mean by a factor drawn from `range`, for each channel or, with one_factor, for all.
// nnU-Net v2: {.law = interval_law::mixture, .probability = .15f}.
// Errors: range not from low to high, or unfit for its law. Source: batchgeneratorsv2 ContrastTransform.
struct random_patch_contrast {
  interval range = {.75f, 1.25f};
  interval_law law = interval_law::uniform;
  bool preserve_range = true;
  bool one_factor = false;
  float probability = 1;

  static constexpr std::string_view name = "random_patch_contrast";
  static constexpr std::uint16_t kind = 114;
  static constexpr auto parameters =
      named("range", multiplies(&random_patch_contrast::range), "law", &random_patch_contrast::law, "preserve_range",
            &random_patch_contrast::preserve_range, "one_factor", &random_patch_contrast::one_factor, "probability",
            &random_patch_contrast::probability);

  struct drawn : patch_contrast_functor {
    static constexpr auto fields = named("factor", &drawn::factor);
    auto prepare(const site&) const { return drawn_for_channels<random_patch_contrast, patch_contrast_functor>{*this}; }
  };

  void check(const site& where) const { detail::check_interval(range, law, "range", where); }

  drawn draw(draws& random, const site&) const {
    drawn result{};
    result.preserve_range = preserve_range;
    detail::draw_from(range, law, random, result.factor);
    if (one_factor)
      for (float& f : result.factor) f = result.factor[0];
    return result;
  }
};

}  // namespace suture
