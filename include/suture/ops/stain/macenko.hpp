// SPDX-License-Identifier: Apache-2.0
// Macenko normalization: replaces the stains of a tile by those of a reference.
#pragma once

#include <span>

#include "../../base/fields.hpp"
#include "../../base/pixel.hpp"
#include "../../base/voxel.hpp"
#include "../../color/color_space.hpp"
#include "../../stats/stain_basis.hpp"
#include "../common/fitted.hpp"
#include "../value/clamp.hpp"

namespace suture {

// Rounding of the new color.
//   unrounded  as it is, at most 255; images of integers round to nearest
//   nearest    rounded to an integer, ties to even
//   truncated  cut off to an integer; a value within 1/4096 below one counts as that one
enum class stain_rounding : std::int32_t { unrounded, nearest, truncated };

// Red, green and blue of H&E tiles through optical density: od = -ln(I / white) by the rule of the fit, concentrations
// of the tile's own stains c, each times reference maximum / tile maximum, and back with the stains of the reference,
//   I' = min(white exp(-reference c'), 255),
// in the units of the image. `fitted` is one result of fit_macenko per sample of the batch, or with `shared` a single
// one for all (a fit `together`), in the memory of whichever executor runs; it is read when the pipeline runs. A tile
// the fit left `unchanged` keeps its colors. What exceeds 255 becomes `over`. Not a number stays. Errors: no result
// for a sample, other than one with `shared`, stains that were never fitted (on the CPU, when it runs), `over` not in
// [0, 255], a reference that cannot be inverted; images without three channels. Source: Macenko et al. 2009; the named
// modes of macenko_modes.hpp say whose arithmetic they follow.
struct macenko_normalize {
  std::span<const stain_basis> fitted;
  stain_reference reference{};
  bool shared = false;
  stain_rounding rounding = stain_rounding::unrounded;
  float over = 255;

  static constexpr std::string_view name = "macenko_normalize";
  static constexpr auto parameters =
      named("fitted", required(&macenko_normalize::fitted), "reference", &macenko_normalize::reference, "shared",
            &macenko_normalize::shared, "rounding", &macenko_normalize::rounding, "over", &macenko_normalize::over);

  struct functor {
    const stain_basis* fitted;
    std::int32_t each;
    stain_rounding rounding;
    float over;
    float log2_transmittance[3][2];  // of one unit of each reference stain
    float most[2];
    detail::log2_range passed_range{};  // that the next operation takes in place of colors, if it is on

    // Asks this operation to pass its result on as base-2 logarithms. Returns whether it does: it must end with a plain
    // exponential.
    bool pass_logarithms(const detail::log2_range& range) {
      passed_range = rounding == stain_rounding::unrounded && over == 255 ? range : detail::log2_range{};
      return passed_range.on();
    }

    // The constants of a sample, which is one tile. `level` computes what depends on one channel of a pixel, `finish`
    // the rest, and `apply` all of it for pixels side by side.
    struct constants {
      const functor* owner;
      const stain_basis* basis;
      detail::density_map map;
      detail::stain_unmixing unmixing;
      float log2_transmittance[3][2];  // the same for one unit of each concentration of the tile
      float to_255, from_255;
      std::uint32_t unchanged;

      float log2_white, least_log2, greatest_log2;  // of white light, and the limits of all

      // NaN stays NaN.
      SUTURE_FN float level(float x) const { return unchanged != 0 ? kept(x) : density(x); }
      SUTURE_FN float density(float x) const { return map.density(fma(x, to_255, 0.0f)); }
      SUTURE_FN float kept(float x) const { return owner->passed_range.on() ? log2_of(x, owner->passed_range) : x; }

      // Applies the whole operation.
      template <int N>
      SUTURE_FN void apply(float (&v)[3][N]) const {
        if (unchanged != 0) {
          const detail::log2_range range = owner->passed_range;
          if (range.on())
            for (auto& channel : v)
              for (float& x : channel) x = log2_of(x, range);
          return;
        }
        if (to_255 != 1.0f)
          for (auto& channel : v) {
            SUTURE_LANES
            for (float& x : channel) x = fma(x, to_255, 0.0f);
          }
        for (auto& channel : v) {
          SUTURE_LANES
          for (float& x : channel) x = map.bounded(x);
          SUTURE_LANES
          for (float& x : channel) x = map.density_of_bounded(x);
        }
        const constants t = *this;  // one copy is enough for what follows: it fits the registers
        t.color(v, [&](float(&h)[N], float(&e)[N]) {
          if (t.unmixing.penalized == 0)
            t.template unmix<false>(v, h, e);
          else
            t.template unmix<true>(v, h, e);
        });
      }

      template <int N>
      SUTURE_FN void finish(float (&v)[3][N]) const {
        if (unchanged != 0) return;
        const constants t = *this;  // a copy, so that stores to the pixels cannot change it
        if (t.unmixing.penalized == 0)
          t.color(v, [&](float(&h)[N], float(&e)[N]) { t.template unmix<false>(v, h, e); });
        else
          t.color(v, [&](float(&h)[N], float(&e)[N]) { t.template unmix<true>(v, h, e); });
      }

    private:
      SUTURE_FN static float log2_of(float x, const detail::log2_range& range) {
        const float share = math::detail::clamp_number(fma(x, range.inverse_white, 0.0f), 0x1p-126f, 1.0f);
        return math::detail::at_least(math::detail::short_log2(share), range.least);
      }
      // Parameters of penalized tiles, which are few, are read from memory and take no registers otherwise.
      template <bool Penalized, int N>
      SUTURE_FN void unmix(const float (&v)[3][N], float (&h)[N], float (&e)[N]) const {
        const detail::stain_unmixing mixing = Penalized ? basis->unmixing : unmixing;
        SUTURE_LANES
        for (int l = 0; l < N; ++l) {
          const detail::stain_unmixing::pair p = mixing.mixture<Penalized>(v[0][l], v[1][l], v[2][l]);
          h[l] = p.c[0];
          e[l] = p.c[1];
        }
      }
      // `mix` computes the concentrations.
      template <int N, class Mix>
      SUTURE_FN void color(float (&v)[3][N], const Mix& mix) const {
        float h[N], e[N];
        mix(h, e);
        for (int c = 0; c < 3; ++c) {
          SUTURE_LANES
          for (int l = 0; l < N; ++l) {
            const float log2_color =
                fma(log2_transmittance[c][0], h[l], fma(log2_transmittance[c][1], e[l], log2_white));
            v[c][l] = detail::limit(log2_color, least_log2, greatest_log2);
          }
        }
        if (owner->passed_range.on()) return;
        const float above_255 = owner->over;
        const stain_rounding way = owner->rounding;
        float zero[N];  // or not a number
        SUTURE_LANES
        for (int l = 0; l < N; ++l) zero[l] = fma(h[l], 0.0f, 0.0f);
        for (int c = 0; c < 3; ++c) {
          SUTURE_LANES
          for (int l = 0; l < N; ++l) v[c][l] = math::detail::short_exp2(v[c][l], map.white, zero[l]);
          SUTURE_LANES
          for (int l = 0; l < N; ++l) v[c][l] = math::detail::select(v[c][l] > 255.0f, above_255, v[c][l]);
        }
        // Rounds x in 0 .. 255 to the nearest integer; truncation subtracts a little less than one half first.
        if (way != stain_rounding::unrounded) {
          const float shift = way == stain_rounding::truncated ? 0x1p-12f - 0.5f : 0.0f;
          for (auto& channel : v) {
            SUTURE_LANES
            for (float& x : channel) x = ((x + shift) + math::detail::round_magic) - math::detail::round_magic;
          }
        }
        for (auto& channel : v) {
          SUTURE_LANES
          for (float& x : channel) x = fma(x, from_255, 0.0f);
        }
      }
    };

    SUTURE_FN constants constants_of(std::int32_t sample_index) const {
      const stain_basis& b = fitted[static_cast<std::int64_t>(sample_index) * each];
      constants t{this, &b, b.density, b.unmixing, {}, b.to_255, b.from_255, b.unchanged, 0, -64, 64};
      for (int k = 0; k < 2; ++k) {
        const float ratio = fma(most[k], b.inverse_max[k], 0.0f);
        const float factor = math::detail::select(b.inverse_max[k] > 0, ratio, 1.0f);
        for (int c = 0; c < 3; ++c) t.log2_transmittance[c][k] = fma(log2_transmittance[c][k], factor, 0.0f);
      }
      if (passed_range.on()) {
        const auto log2_of_level = [&](float level) {
          return math::detail::short_log2(fma(fma(level, b.from_255, 0.0f), passed_range.inverse_white, 0.0f));
        };
        t.log2_white = log2_of_level(b.density.white);
        t.least_log2 = passed_range.least;
        const float brightest = log2_of_level(255);
        t.greatest_log2 = math::detail::select(brightest < 0, brightest, 0.0f);
      }
      return t;
    }

    void check_fitted(const site& where) const { detail::check_fitted(fitted[where.sample * each], where); }

    SUTURE_FN rgb operator()(const rgb& in, const voxel& at) const {
      return detail::by_lanes(*this, in, at.sample_index);
    }

    // Pixels side by side of one sample.
    template <int N>
    SUTURE_FN void apply_lanes(float (&v)[3][N], std::int32_t sample_index) const {
      constants_of(sample_index).apply(v);
    }
  };

  functor prepare(const site& where) const {
    detail::check_results(fitted, where, shared);
    require(over >= 0 && over <= 255, where, "over ", over, " is not in [0, 255]");
    reference.check(where);
    functor f{fitted.data(), shared ? 0 : 1, rounding, over, {}, {}};
    for (int c = 0; c < 3; ++c)
      for (int k = 0; k < 2; ++k)
        f.log2_transmittance[c][k] = static_cast<float>(reference.stains[c][k] * -0x1.71547652b82fep0);  // log2 e
    for (int k = 0; k < 2; ++k) f.most[k] = static_cast<float>(reference.max_concentration[k]);
    return f;
  }
};

}  // namespace suture
