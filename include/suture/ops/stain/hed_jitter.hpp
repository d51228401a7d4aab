// SPDX-License-Identifier: Apache-2.0
// Stain augmentation in the fixed hematoxylin, eosin, DAB basis.
#pragma once

#include <cfloat>
#include <cstdint>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../color/color_range.hpp"
#include "../common/interval.hpp"

namespace suture {

// Unit of concentrations.
//   modern        scikit-image 0.18 and later: six decades of optical density, typically up to .2, not below 0
//   tellez_plus2  before, and in published strengths: -ln(v + 2) unmixed, of either sign
enum class hed_units { modern, tellez_plus2 };

// Concentration k becomes alpha[k] s + beta[k], for hematoxylin, eosin and DAB. In [0, white]: values outside are
// brought to its ends first, NaN to 0, and so is the result. With alpha 1 and beta 0 a color that the three stains can
// make stays as it is; modern brings any other to one they can. Errors: a number that is not finite, white not
// positive. Source: Tellez et al. 2018; scikit-image rgb2hed, hed2rgb.
struct hed_jitter {
  float alpha[3] = {1, 1, 1};
  float beta[3] = {0, 0, 0};
  hed_units units = hed_units::modern;
  float white = 255;

  static constexpr std::string_view name = "hed_jitter";
  static constexpr auto fields = named("alpha", &hed_jitter::alpha, "beta", &hed_jitter::beta);
  static constexpr auto parameters = named("alpha", &hed_jitter::alpha, "beta", &hed_jitter::beta, "units",
                                           &hed_jitter::units, "white", &hed_jitter::white);

  static constexpr float log2_of_1e6 = 0x1.3ee7b4p4f;

  // Densities and concentrations are in units of the base-2 logarithm.
  struct functor {
    float white, inverse, least_color, offset;  // of a color, and what is added to it in [0, 1]
    float least;                                // of a concentration
    float alpha[3], beta[3];
    float least_log2, greatest_log2, added;
    std::uint32_t given_logarithms = 0;  // 1: the operation before passed base-2 logarithms in place of colors

    detail::log2_range accepted_logarithms() const {
      return offset == 0 ? detail::log2_range{inverse, -log2_of_1e6} : detail::log2_range{};
    }

    SUTURE_FN rgb operator()(const rgb& x) const { return detail::by_lanes(*this, x, 0); }

    // Applies the functor to pixels side by side.
    template <int N>
    SUTURE_FN void apply_lanes(float (&v)[3][N], std::int32_t) const {
      const functor f = *this;
      const detail::range_of_lanes colors(f.least_color, f.white), logarithms(f.least_log2, f.greatest_log2);
      if (f.given_logarithms == 0) {
        for (auto& channel : v) {
          SUTURE_LANES
          for (float& x : channel) {
            x = math::detail::short_log2(fma(colors.limit(x), f.inverse, f.offset));
          }
        }
      }
      detail::in_steps(
          v, [&](const rgb& x) SUTURE_INLINE_LAMBDA { return f.jittered(x); },
          [&](const rgb& x) SUTURE_INLINE_LAMBDA { return f.colors_of(x, logarithms); });
    }

  private:
    SUTURE_FN rgb jittered(const rgb& x) const {
      rgb v = (-hed_from_rgb())(x);
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) v.c[k] = fma(math::detail::at_least(v.c[k], least), alpha[k], beta[k]);
      return (-rgb_from_hed())(v);
    }
    SUTURE_FN rgb colors_of(rgb v, const detail::range_of_lanes& logarithms) const {
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) v.c[k] = math::detail::short_exp2(logarithms.limit(v.c[k]), white, added);
      return v;
    }
  };

  functor prepare(const site& where) const {
    detail::check_finite(alpha, "alpha", where);
    detail::check_finite(beta, "beta", where);
    const detail::color_range range = detail::make_color_range(white, where);
    constexpr float log2_of_3 = 0x1.95c018p0f;  // the greatest x for which short_exp2 returns 3 at most
    const bool modern = units == hed_units::modern;
    functor f = modern ? functor{white, range.inverse, 1e-6f * white, 0, 0, {}, {}, detail::darkest_log2, 0, 0}
                       : functor{white, range.inverse, 0, 2, -FLT_MAX, {}, {}, 1, log2_of_3, -2 * white};
    for (int k = 0; k < 3; ++k) {
      f.alpha[k] = alpha[k];
      f.beta[k] = beta[k] * (modern ? log2_of_1e6 : detail::log2_of_e);
    }
    return f;
  }
};

// hed_jitter with alpha and beta drawn uniformly, for each stain on its own. Published strengths are in units of
// tellez_plus2: light is alpha {.95, 1.05} and beta {-.05, .05}, strong {.8, 1.2} and {-.2, .2}; in modern units a beta
// of .05 is .7 of optical density. The limits on a patch's mean brightness of some implementations are left out.
// Errors: a range not from low to high; those of hed_jitter. Source: Tellez et al. 2018, 2019.
struct random_hed_jitter {
  interval alpha = {.95f, 1.05f};
  interval beta = {-.01f, .01f};
  hed_units units = hed_units::modern;
  float white = 255;
  float probability = 1;

  static constexpr std::string_view name = "random_hed_jitter";
  static constexpr std::uint16_t kind = 68;
  static constexpr auto parameters = named("alpha", multiplies(&random_hed_jitter::alpha), "beta",
                                           &random_hed_jitter::beta, "units", &random_hed_jitter::units, "white",
                                           &random_hed_jitter::white, "probability", &random_hed_jitter::probability);

  hed_jitter draw(draws& random, const site& where) const {
    detail::check_interval(alpha, "alpha", where);
    detail::check_interval(beta, "beta", where);
    hed_jitter result{.units = units, .white = white};
    for (float& a : result.alpha) a = random.uniform(alpha.low, alpha.high);
    for (float& b : result.beta) b = random.uniform(beta.low, beta.high);
    return result;
  }
};

}  // namespace suture
