// SPDX-License-Identifier: Apache-2.0
// Colors moved to the mean and deviation of a target.
#pragma once

#include <cfloat>
#include <span>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/voxel.hpp"
#include "../../color/color_range.hpp"
#include "../../stats/color_moments.hpp"
#include "../common/fitted.hpp"

namespace suture {

//   plain      every channel: (x - mean) target deviation / deviation + target mean
//   modified   torchstain's: the first channel keeps its mean and is stretched by 1 + q, q = 1 - deviation / target
//              deviation, or .05 where that is not positive; the others take the mean of the target
enum class reinhard_rule { plain, modified };

// Reinhard's normalization in a color space: each sample from its own mean and deviation, which fit_color_moments
// left in `fitted` (one result per sample, in the memory of whichever executor runs, read when the pipeline runs), to
// those of `target`; either may be stated. A channel without deviation is moved and not scaled; an empty fit leaves
// the sample as it is. In [0, white]: values outside are brought to its ends first, NaN to 0, and so is the result.
// Errors: no result for a sample, a target that is empty, not finite or of negative deviation, white not positive.
// Source: Reinhard et al. 2001 (ruderman); StainTools, TIAToolbox, torchstain (lab).
template <class Space>
struct reinhard {
  std::span<const color_moments<Space>> fitted;
  color_moments<Space> target;
  reinhard_rule rule = reinhard_rule::plain;
  float white = 255;

  static constexpr std::string_view name = "reinhard";
  static constexpr auto fields = named("target", &reinhard::target);
  static constexpr auto parameters = named("fitted", required(&reinhard::fitted), "target", required(&reinhard::target),
                                           "rule", &reinhard::rule, "white", &reinhard::white);

  struct functor {
    const color_moments<Space>* fitted;
    detail::color_range range;
    float mean[3], deviation[3];
    float inverse_first;  // 1 / deviation[0], very large where that is 0
    bool modified;

    void check_fitted(const site& where) const { detail::check_fitted(fitted[where.sample], where); }

    SUTURE_FN rgb operator()(const rgb& x, const voxel& at) const {
      return detail::by_lanes(*this, x, at.sample_index);
    }

    // Pixels side by side of one sample, whose constants are computed once.
    template <int N>
    SUTURE_FN void apply_lanes(float (&v)[3][N], std::int32_t sample_index) const {
      const functor mine = *this;
      const mapping m = mine.of(sample_index);
      detail::in_steps(v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mine.range.to_unit(x); });
      if (!m.empty) {
        from_rgb(v);
        detail::in_steps(v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mapped(x, m); });
        to_rgb(v);
      }
      detail::in_steps(v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return mine.range.from_unit(x); });
    }

  private:
    // x becomes (x - from) scale + to.
    struct mapping {
      float from[3], scale[3], to[3];
      bool empty;
    };

    SUTURE_FN mapping of(std::int32_t sample_index) const {
      const color_moments<Space>& m = fitted[sample_index];
      mapping result{{}, {}, {}, m.status == fit_status::empty};
      const float change = fma(-m.deviation[0], inverse_first, 1.0f);
      const float stretch = 1.0f + (change > 0 ? change : .05f);
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) {
        result.from[k] = m.center[k];
        const float plain = m.reciprocal[k] > 0 ? fma(deviation[k], m.reciprocal[k], 0.0f) : 1.0f;
        result.scale[k] = !modified ? plain : k == 0 ? stretch : 1.0f;
        result.to[k] = modified && k == 0 ? m.center[k] : mean[k];
      }
      return result;
    }

    // A color space may convert pixels in several steps, by lanes_from_rgb and lanes_to_rgb.
    template <int N>
    SUTURE_FN static void from_rgb(float (&v)[3][N]) {
      if constexpr (requires { Space::lanes_from_rgb(v); })
        Space::lanes_from_rgb(v);
      else
        detail::in_steps(v, [](const rgb& x) SUTURE_INLINE_LAMBDA { return Space::from_rgb(x); });
    }
    template <int N>
    SUTURE_FN static void to_rgb(float (&v)[3][N]) {
      if constexpr (requires { Space::lanes_to_rgb(v); })
        Space::lanes_to_rgb(v);
      else
        detail::in_steps(v, [](const rgb& x) SUTURE_INLINE_LAMBDA { return Space::to_rgb(x); });
    }
    SUTURE_FN static rgb mapped(rgb v, const mapping& m) {
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) v.c[k] = fma(v.c[k] - m.from[k], m.scale[k], m.to[k]);
      return v;
    }
  };

  functor prepare(const site& where) const {
    detail::check_results(fitted, where);
    require(target.status != fit_status::not_fitted, where,
            "target: expected moments of a fit or stated ones, got the status not_fitted. State them: .target = "
            "{.mean = {...}, .standard_deviation = {...}}");
    require(target.status != fit_status::empty, where, "the fit of the target is empty");
    functor f{fitted.data(), detail::make_color_range(white, where), {}, {}, 0, rule == reinhard_rule::modified};
    for (int k = 0; k < 3; ++k) {
      require(std::abs(target.mean[k]) <= 1e6, where, "target mean ", target.mean[k], " must be within 1e6");
      require(target.standard_deviation[k] >= 0 && target.standard_deviation[k] <= 1e6, where,
              "target standard_deviation ", target.standard_deviation[k], " must be in [0, 1e6]");
      f.mean[k] = static_cast<float>(target.mean[k]);
      f.deviation[k] = static_cast<float>(target.standard_deviation[k]);
    }
    // A target without deviation makes q negative, unless the sample has none either; q then changes nothing.
    f.inverse_first = f.deviation[0] > FLT_MIN ? 1 / f.deviation[0] : FLT_MAX;
    return f;
  }
};

}  // namespace suture
