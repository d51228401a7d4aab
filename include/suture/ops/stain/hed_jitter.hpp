// SPDX-License-Identifier: Apache-2.0
// Stain augmentation in the fixed haematoxylin, eosin, DAB basis.
#pragma once

#include <cfloat>
#include <string_view>

#include "../../core/fields.hpp"
#include "../value/interval.hpp"
#include "colour_range.hpp"

namespace suture {

// What concentrations are counted in.
//   modern        scikit-image 0.18 and later: six decades of optical density, typically up to .2, not below 0
//   tellez_plus2  before, and in published strengths: -ln(v + 2) unmixed, of either sign
enum class hed_units { modern, tellez_plus2 };

// Concentration k becomes alpha[k] s + beta[k], for haematoxylin, eosin and DAB. In [0, white]: values outside are
// brought to its ends first, NaN to 0, and so is the result. With alpha 1 and beta 0 a colour that the three stains can
// make stays as it is; modern brings any other to one they can. Errors: a number that is not finite, white not
// positive. Source: Tellez et al. 2018; scikit-image rgb2hed, hed2rgb.
struct hed_jitter {
  float alpha[3] = {1, 1, 1};
  float beta[3] = {0, 0, 0};
  hed_units units = hed_units::modern;
  float white = 255;

  static constexpr std::string_view name = "hed_jitter";
  static constexpr auto fields = named("alpha", &hed_jitter::alpha, "beta", &hed_jitter::beta);

  struct functor {
    detail::colour_range range;
    float offset, least_colour, unit, least, inverse_unit;
    float alpha[3], beta[3];

    SUTURE_FN rgb operator()(const rgb& x) const {
      rgb v = range.enter(x);
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) v.c[k] = detail::larger(v.c[k] + offset, least_colour);
      rgb stains = hed_from_rgb()(detail::log_of_normal(v));
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k)
        stains.c[k] = fma(detail::larger(fma(stains.c[k], unit, 0.0f), least), alpha[k], beta[k]);
      v = rgb_from_hed()(stains);
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) v.c[k] = math::exp(fma(v.c[k], inverse_unit, 0.0f)) - offset;
      return range.leave(detail::limit(v, 0, 1));
    }
  };

  functor prepare(const site& where) const {
    detail::check_finite(alpha, "alpha", where);
    detail::check_finite(beta, "beta", where);
    const bool modern = units == hed_units::modern;
    constexpr float decades = 0x1.ba18aap3f;  // ln 1e6
    return {detail::make_colour_range(white, where), modern ? 0.0f : 2.0f,       modern ? 1e-6f : 2.0f,
            modern ? -1 / decades : -1.0f,           modern ? 0.0f : -FLT_MAX,   modern ? -decades : -1.0f,
            {alpha[0], alpha[1], alpha[2]},          {beta[0], beta[1], beta[2]}};
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
