// SPDX-License-Identifier: Apache-2.0
// Stain augmentation in the basis of the tile itself.
#pragma once

#include <string_view>

#include "../value/interval.hpp"
#include "colour_range.hpp"

namespace suture {

// Concentrations c, the least-squares solution of basis c = d for the optical densities d = -ln(max(x, white / 255) /
// white), become alpha c + beta. `basis` is the optical density of a unit of each stain: rows red, green, blue; columns
// haematoxylin, eosin. What the two stains do not explain is kept, so that alpha 1 and beta 0 leave a colour as it is;
// with `keep_rest` false it is dropped, as other libraries do. Pixels of a mean optical density below `tissue_density`
// are glass and stay as they are (0: all are tissue).
// In [0, white]: values outside are brought to its ends first, NaN to 0, and so is the result.
// Errors: a number that is not finite, stains of one direction, a density below 0, white not positive.
// Source: StainTools and TIAToolbox StainAugmentor, torchstain MacenkoAugmentor.
struct stain_jitter {
  float basis[3][2] = {{.5626f, .2159f}, {.7201f, .8012f}, {.4062f, .5581f}};
  float alpha[2] = {1, 1};
  float beta[2] = {0, 0};
  bool keep_rest = true;
  float tissue_density = .15f;
  float white = 255;

  static constexpr std::string_view name = "stain_jitter";

  struct functor {
    detail::colour_range range;
    float glass;              // the sum of logarithms above which a pixel is
    float rest;               // share of the optical density that stays
    float share[2], beta[2];  // what is added: of each concentration, and to it
    float unmix[2][3], basis[3][2];

    SUTURE_FN rgb operator()(const rgb& x) const {
      const rgb v = range.enter(x);
      const rgb logs = detail::log_of_normal(detail::limit(v, 1 / 255.0f, 1));
      float added[2];
      SUTURE_UNROLL
      for (int k = 0; k < 2; ++k)  // of -d, which the logarithm is
        added[k] = fma(detail::weigh(logs, unmix[k][0], unmix[k][1], unmix[k][2]), share[k], -beta[k]);
      rgb result{};
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c)
        result.c[c] = fma(basis[c][0], added[0], fma(basis[c][1], added[1], logs.c[c] * rest));
      result = detail::limit(detail::exp(result), 0, 1);
      const bool tissue = logs.c[0] + logs.c[1] + logs.c[2] <= glass;
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c) result.c[c] = math::detail::select(tissue, result.c[c], v.c[c]);
      return range.leave(result);
    }
  };

  functor prepare(const site& where) const {
    require(std::isfinite(tissue_density) && tissue_density >= 0, where, "tissue_density ", tissue_density,
            " must be 0 or above");
    functor f{.range = detail::make_colour_range(white, where),
              .glass = tissue_density > 0 ? -3 * tissue_density : 1.0f,
              .rest = keep_rest ? 1.0f : 0.0f,
              .share = {},
              .beta = {},
              .unmix = {},
              .basis = {}};
    double b[3][2], hh = 0, ee = 0, he = 0;
    for (int c = 0; c < 3; ++c) {
      for (int k = 0; k < 2; ++k) {
        require(std::isfinite(basis[c][k]), where, "basis ", basis[c][k], " must be finite");
        b[c][k] = static_cast<double>(f.basis[c][k] = basis[c][k]);
      }
      hh = fma(b[c][0], b[c][0], hh);
      ee = fma(b[c][1], b[c][1], ee);
      he = fma(b[c][0], b[c][1], he);
    }
    const double determinant = fma(hh, ee, -(he * he));
    require(determinant > 1e-6 * hh * ee && std::isfinite(determinant), where,
            "the two stains of the basis have one direction, or none");
    for (int c = 0; c < 3; ++c) {
      f.unmix[0][c] = static_cast<float>(fma(ee, b[c][0], -(he * b[c][1])) / determinant);
      f.unmix[1][c] = static_cast<float>(fma(hh, b[c][1], -(he * b[c][0])) / determinant);
    }
    for (int k = 0; k < 2; ++k) {
      require(std::isfinite(alpha[k]), where, "alpha ", alpha[k], " must be finite");
      require(std::isfinite(beta[k]), where, "beta ", beta[k], " must be finite");
      f.share[k] = keep_rest ? alpha[k] - 1 : alpha[k];
      f.beta[k] = beta[k];
    }
    return f;
  }
};

// stain_jitter with alpha and beta drawn uniformly, for each stain on its own.
// Errors: a range not from low to high; those of stain_jitter.
struct random_stain_jitter {
  float basis[3][2] = {{.5626f, .2159f}, {.7201f, .8012f}, {.4062f, .5581f}};
  interval alpha = {.8f, 1.2f};
  interval beta = {-.2f, .2f};
  bool keep_rest = true;
  float tissue_density = .15f;
  float white = 255;
  float probability = 1;

  static constexpr std::string_view name = "random_stain_jitter";
  static constexpr std::uint16_t kind = 72;

  stain_jitter draw(draws& random, const site& where) const {
    detail::check_interval(alpha, "alpha", where);
    detail::check_interval(beta, "beta", where);
    stain_jitter result{.keep_rest = keep_rest, .tissue_density = tissue_density, .white = white};
    for (int c = 0; c < 3; ++c)
      for (int k = 0; k < 2; ++k) result.basis[c][k] = basis[c][k];
    for (float& a : result.alpha) a = random.uniform(alpha.low, alpha.high);
    for (float& b : result.beta) b = random.uniform(beta.low, beta.high);
    return result;
  }
};

}  // namespace suture
