// SPDX-License-Identifier: Apache-2.0
// Stain augmentation in the basis of the tile itself.
#pragma once

#include <span>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/voxel.hpp"
#include "../../color/color_range.hpp"
#include "../../stats/stain_basis.hpp"
#include "../common/fitted.hpp"
#include "../common/interval.hpp"

namespace suture {

// Concentrations c, the least-squares solution of basis c = d for the optical densities d = -ln(max(x, white / 255) /
// white), become alpha c + beta. The basis is that of the tile, by what fit_macenko left in `fitted` (one result per
// sample, or with `shared` one for all, in the memory of whichever executor runs, read when the pipeline runs), or
// where that is empty `basis`. What the two stains do not explain is kept, so that alpha 1 and beta 0 leave a color as
// it is, but for values below white / 255, which become that; with `keep_rest` false it is dropped, as other libraries
// do. Pixels of a mean optical density below `tissue_density` are glass and stay as they are (0: all are tissue), as
// does a tile the fit left `unchanged`. In [0, white]: values outside are brought to its ends first, NaN to 0, and so
// is the result. Errors: results for some samples only, other than one with `shared`, stains that were never fitted (on
// the CPU, when it runs), a number that is not finite, a basis that cannot be inverted, a density below 0, white not
// positive. Source: StainTools and TIAToolbox StainAugmentor, torchstain MacenkoAugmentor.
struct stain_jitter {
  std::span<const stain_basis> fitted = {};
  bool shared = false;
  stain_matrix basis = stain_reference{}.stains;
  float alpha[2] = {1, 1};
  float beta[2] = {0, 0};
  bool keep_rest = true;
  float tissue_density = .15f;
  float white = 255;

  static constexpr std::string_view name = "stain_jitter";
  static constexpr auto fields = named("alpha", &stain_jitter::alpha, "beta", &stain_jitter::beta);
  static constexpr auto parameters =
      named("fitted", &stain_jitter::fitted, "shared", &stain_jitter::shared, "basis", &stain_jitter::basis, "alpha",
            &stain_jitter::alpha, "beta", &stain_jitter::beta, "keep_rest", &stain_jitter::keep_rest, "tissue_density",
            &stain_jitter::tissue_density, "white", &stain_jitter::white);

  // Densities and concentrations are in units of the base-2 logarithm.
  struct functor {
    const stain_basis* fitted;
    std::int32_t each;
    detail::color_range range;
    float glass;              // pixels with a greater sum of logarithms are glass
    float rest;               // share of the optical density that is kept
    float share[2], beta[2];  // factor and offset of each concentration
    float unmix[2][3], basis[3][2];

    void check_fitted(const site& where) const {
      if (fitted != nullptr) detail::check_fitted(fitted[where.sample * each], where);
    }

    SUTURE_FN rgb operator()(const rgb& x, const voxel& at) const {
      return detail::by_lanes(*this, x, at.sample_index);
    }

    // Pixels side by side of one sample, whose stains are read once.
    template <int N>
    SUTURE_FN void apply_lanes(float (&v)[3][N], std::int32_t sample_index) const {
      const functor mine = *this;
      const stains tile = mine.of(sample_index);
      const detail::range_of_lanes unit, lit(1 / 255.0f), logarithms(detail::darkest_log2, 0);
      float logs[3][N], sum[N];
      for (int c = 0; c < 3; ++c) {
        SUTURE_LANES
        for (int l = 0; l < N; ++l) {
          v[c][l] = unit.limit(fma(v[c][l], mine.range.inverse, 0.0f));
          logs[c][l] = math::detail::short_log2(lit.lift(v[c][l]));
        }
      }
      SUTURE_LANES
      for (int l = 0; l < N; ++l) {
        const rgb x{{logs[0][l], logs[1][l], logs[2][l]}}, jittered = mine.jittered(x, tile);
        sum[l] = x.c[0] + x.c[1] + x.c[2];
        SUTURE_UNROLL
        for (int c = 0; c < 3; ++c) logs[c][l] = logarithms.limit(jittered.c[c]);
      }
      const float darkest = tile.unchanged ? -math::detail::infinity : mine.glass;
      for (int c = 0; c < 3; ++c) {
        SUTURE_LANES
        for (int l = 0; l < N; ++l) {
          const float color = math::detail::short_exp2(logs[c][l], mine.range.white, 0);
          v[c][l] = math::detail::select(sum[l] <= darkest, color, fma(v[c][l], mine.range.white, 0.0f));
        }
      }
    }

  private:
    struct stains {
      float unmix[2][3], basis[3][2];
      bool unchanged;
    };

    SUTURE_FN stains of(std::int32_t sample_index) const {
      stains result{{}, {}, false};
      const stain_basis* tile = fitted == nullptr ? nullptr : fitted + static_cast<std::int64_t>(sample_index) * each;
      result.unchanged = tile != nullptr && tile->unchanged != 0;
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c) {
        SUTURE_UNROLL
        for (int k = 0; k < 2; ++k) {
          result.basis[c][k] = tile == nullptr ? basis[c][k] : static_cast<float>(tile->stains[c][k]);
          result.unmix[k][c] = tile == nullptr ? unmix[k][c] : tile->unmixing.row[k][c];
        }
      }
      return result;
    }

    // Maps the logarithms of colors in [0, 1] to those of the jittered colors.
    SUTURE_FN rgb jittered(const rgb& logs, const stains& tile) const {
      float added[2];
      SUTURE_UNROLL
      for (int k = 0; k < 2; ++k)  // the logarithm is -d
        added[k] = fma(detail::weigh(logs, tile.unmix[k][0], tile.unmix[k][1], tile.unmix[k][2]), share[k], -beta[k]);
      rgb result{};
      SUTURE_UNROLL
      for (int c = 0; c < 3; ++c)
        result.c[c] = fma(tile.basis[c][0], added[0], fma(tile.basis[c][1], added[1], logs.c[c] * rest));
      return result;
    }
  };

  functor prepare(const site& where) const {
    detail::check_results_if_any(fitted, where, shared);
    require(std::isfinite(tissue_density) && tissue_density >= 0, where, "tissue_density ", tissue_density,
            " must be 0 or above");
    functor f{.fitted = detail::pointer_if_any(fitted),
              .each = shared ? 0 : 1,
              .range = detail::make_color_range(white, where),
              .glass = tissue_density > 0 ? -3 * detail::log2_of_e * tissue_density : 1.0f,
              .rest = keep_rest ? 1.0f : 0.0f,
              .share = {},
              .beta = {},
              .unmix = {},
              .basis = {}};
    stain_reference{.stains = basis}.check(where);
    const detail::stain_unmixing solved = detail::unmix(basis, 0);
    for (int k = 0; k < 2; ++k) {
      for (int c = 0; c < 3; ++c) {
        f.basis[c][k] = static_cast<float>(basis[c][k]);
        f.unmix[k][c] = solved.row[k][c];
      }
      require(std::isfinite(alpha[k]), where, "alpha ", alpha[k], " must be finite");
      require(std::isfinite(beta[k]), where, "beta ", beta[k], " must be finite");
      f.share[k] = keep_rest ? alpha[k] - 1 : alpha[k];
      f.beta[k] = beta[k] * detail::log2_of_e;
    }
    return f;
  }
};

// stain_jitter with alpha and beta drawn uniformly, for each stain on its own.
// Errors: a range not from low to high; those of stain_jitter.
struct random_stain_jitter {
  std::span<const stain_basis> fitted = {};
  bool shared = false;
  stain_matrix basis = stain_reference{}.stains;
  interval alpha = {.8f, 1.2f};
  interval beta = {-.2f, .2f};
  bool keep_rest = true;
  float tissue_density = .15f;
  float white = 255;
  float probability = 1;

  static constexpr std::string_view name = "random_stain_jitter";
  static constexpr std::uint16_t kind = 72;
  static constexpr auto parameters = named(
      "fitted", &random_stain_jitter::fitted, "shared", &random_stain_jitter::shared, "basis",
      &random_stain_jitter::basis, "alpha", multiplies(&random_stain_jitter::alpha), "beta", &random_stain_jitter::beta,
      "keep_rest", &random_stain_jitter::keep_rest, "tissue_density", &random_stain_jitter::tissue_density, "white",
      &random_stain_jitter::white, "probability", &random_stain_jitter::probability);

  void check_sample(const site& where) const { detail::check_results_if_any(fitted, where, shared); }

  stain_jitter draw(draws& random, const site& where) const {
    detail::check_interval(alpha, "alpha", where);
    detail::check_interval(beta, "beta", where);
    stain_jitter result{.fitted = fitted,
                        .shared = shared,
                        .basis = basis,
                        .keep_rest = keep_rest,
                        .tissue_density = tissue_density,
                        .white = white};
    for (float& a : result.alpha) a = random.uniform(alpha.low, alpha.high);
    for (float& b : result.beta) b = random.uniform(beta.low, beta.high);
    return result;
  }
};

}  // namespace suture
