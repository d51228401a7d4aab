// SPDX-License-Identifier: Apache-2.0
// Macenko normalisation: the stains of a tile replaced by those of a reference.
#pragma once

#include "../../core/pixel.hpp"
#include "../../core/voxel.hpp"
#include "../../fit/stain_basis.hpp"

namespace suture {

// How the new colour is written.
//   unrounded  as it is, at most 255; images of integers round to nearest
//   nearest    rounded to an integer, ties to even
//   truncated  cut off to an integer; a value within 1/4096 below one counts as that one
enum class stain_rounding : std::int32_t { unrounded, nearest, truncated };

// Red, green and blue of H&E tiles through optical density: od = -ln(I / white) by the rule of the fit, concentrations
// of the tile's own stains c, each times reference maximum / tile maximum, and back with the stains of the reference,
//   I' = min(white exp(-reference c'), 255),
// in the units of the image. `fitted` points to one result of fit_macenko per sample of the batch, or with
// `shared` to a single one for all (a fit `together`), in the memory of whichever executor runs; it is read when the
// pipeline runs. A tile the fit left `unchanged` keeps its colours. What exceeds 255 becomes `over`. Not a number
// stays. Errors: null pointer, `over` not in [0, 255], a reference that cannot be inverted; images without three
// channels. Source: Macenko et al. 2009; the named modes of macenko_modes.hpp say whose arithmetic they follow.
struct macenko_normalize {
  const stain_basis* fitted;
  stain_reference reference{};
  bool shared = false;
  stain_rounding rounding = stain_rounding::unrounded;
  float over = 255;

  static constexpr std::string_view name = "macenko_normalize";

  struct functor {
    const stain_basis* fitted;
    std::int32_t each;
    stain_rounding rounding;
    float over;
    float stains[3][2];
    float most[2];

    SUTURE_FN rgb operator()(const rgb& in, const voxel& at) const {
      const stain_basis& basis = of(at.item);
      if (basis.unchanged != 0) return in;
      const tile t = tile_of(basis);
      return basis.unmixing.penalised == 0 ? colour<false>(t, in) : colour<true>(t, in);
    }

    // The lanes of a strip, all of one item, on the host: what belongs to the tile is read once.
    template <int N>
    SUTURE_INLINE void apply_lanes(float (&v)[3][N], std::int32_t item) const {
      const stain_basis& basis = of(item);
      if (basis.unchanged != 0) return;
      const tile t = tile_of(basis);
      for (int c = 0; c < 3; ++c)
        for (int l = 0; l < N; ++l) v[c][l] = t.map.bounded(fma(v[c][l], t.to_255, 0.0f));
      for (int c = 0; c < 3; ++c)
        for (int l = 0; l < N; ++l) v[c][l] = t.map.density_of_bounded(v[c][l]);
      finish_lanes(&v, 1, item);
    }
    // The same in two parts: the optical densities of 8-bit levels, unless the tile is left as it is, and the rest of
    // some strips.
    bool begin(std::int32_t item, float (&density)[256]) const {
      const stain_basis& basis = of(item);
      const tile t = tile_of(basis);
      for (int i = 0; i < 256; ++i) density[i] = t.density(static_cast<float>(i));
      return basis.unchanged == 0;
    }
    template <int N>
    SUTURE_INLINE void finish_lanes(float (*v)[3][N], int strips, std::int32_t item) const {
      const stain_basis& basis = of(item);
      const tile t = tile_of(basis);
      const functor mine = *this;  // stores to the lanes cannot be stores to a copy
      if (basis.unmixing.penalised == 0)
        for (int s = 0; s < strips; ++s) mine.apply_tile<false>(t, v[s]);
      else
        for (int s = 0; s < strips; ++s) mine.apply_tile<true>(t, v[s]);
    }

  private:
    // A copy of what pixels need of a basis.
    struct tile {
      detail::density_map map;
      detail::stain_unmixing unmixing;
      float factor[2];
      float to_255, from_255;

      SUTURE_FN float density(float x) const { return map.density(fma(x, to_255, 0.0f)); }
      // Concentrations as the reference has them.
      template <bool Penalised>
      SUTURE_FN detail::stain_unmixing::pair scaled(float red, float green, float blue) const {
        const detail::stain_unmixing::pair p = unmixing.mixture<Penalised>(red, green, blue);
        return {{fma(p.c[0], factor[0], 0.0f), fma(p.c[1], factor[1], 0.0f)}};
      }
    };

    SUTURE_FN const stain_basis& of(std::int32_t item) const { return fitted[static_cast<std::int64_t>(item) * each]; }
    SUTURE_FN tile tile_of(const stain_basis& b) const {
      tile t{b.density, b.unmixing, {}, b.to_255, b.from_255};
      for (int k = 0; k < 2; ++k) t.factor[k] = b.inverse_max[k] > 0 ? fma(most[k], b.inverse_max[k], 0.0f) : 1.0f;
      return t;
    }

    template <bool Penalised, int N>
    SUTURE_INLINE void apply_tile(const tile& t, float (&v)[3][N]) const {
      float h[N], e[N];
      for (int l = 0; l < N; ++l) {
        const detail::stain_unmixing::pair p = t.template scaled<Penalised>(v[0][l], v[1][l], v[2][l]);
        h[l] = p.c[0];
        e[l] = p.c[1];
      }
      float w[3 * N];  // all channels in a row
      for (int c = 0; c < 3; ++c)
        for (int l = 0; l < N; ++l) w[c * N + l] = -fma(stains[c][0], h[l], fma(stains[c][1], e[l], 0.0f));
      const bool plain = math::detail::exp_of_row(w);
      if (!plain)
        for (float& x : w) x = math::exp(x);
      for (float& x : w) x = fma(t.map.white, x, 0.0f);
      for (float& x : w) x = math::detail::select(x > 255.0f, over, x);
      const auto write = [&](auto rule) {  // a loop for each rule, so that none has a choice in it
        const float from_255 = t.from_255;
        for (int c = 0; c < 3; ++c)
          for (int l = 0; l < N; ++l) v[c][l] = fma(rounded_number(w[c * N + l], rule), from_255, 0.0f);
      };
      if (!plain && rounding != stain_rounding::unrounded) {
        for (float& x : w) x = rounded(x, rounding);
        write(std::integral_constant<stain_rounding, stain_rounding::unrounded>{});
        return;
      }
      using enum stain_rounding;
      if (rounding == unrounded)
        write(std::integral_constant<stain_rounding, unrounded>{});
      else if (rounding == nearest)
        write(std::integral_constant<stain_rounding, nearest>{});
      else
        write(std::integral_constant<stain_rounding, truncated>{});
    }

    template <bool Penalised>
    SUTURE_FN rgb colour(const tile& t, const rgb& in) const {
      const detail::stain_unmixing::pair p =
          t.template scaled<Penalised>(t.density(in.c[0]), t.density(in.c[1]), t.density(in.c[2]));
      rgb out;
      for (int c = 0; c < 3; ++c) out.c[c] = written(t, light(t, c, p.c[0], p.c[1]), rounding);
      return out;
    }

    SUTURE_FN float light(const tile& t, int c, float h, float e) const {
      return t.map.intensity(fma(stains[c][0], h, fma(stains[c][1], e, 0.0f)));
    }
    SUTURE_FN float written(const tile& t, float x, stain_rounding rule) const {
      return fma(rounded(math::detail::select(x > 255.0f, over, x), rule), t.from_255, 0.0f);
    }

    // The same of what is a number.
    template <stain_rounding Rule>
    SUTURE_FN static float rounded_number(float x, std::integral_constant<stain_rounding, Rule>) {
      if constexpr (Rule == stain_rounding::truncated)
        return static_cast<float>(static_cast<std::int32_t>(x + 0x1p-12f));
      else
        return rounded(x, Rule);
    }
    // Of x in 0 .. 255: in [2^23, 2^24) a float's last bit counts ones.
    SUTURE_FN static float rounded(float x, stain_rounding rule) {
      using math::detail::select;
      const bool truncates = rule == stain_rounding::truncated;
      const float shifted = x + select(truncates, 0x1p-12f, 0.0f);
      const float nearest = (shifted + 0x1p23f) - 0x1p23f;
      const float whole = select(truncates & (nearest > shifted), nearest - 1.0f, nearest);
      return select(rule == stain_rounding::unrounded, x, whole);
    }
  };

  functor prepare(const site& where) const {
    require(fitted != nullptr, where, "null pointer to the fitted stains");
    require(over >= 0 && over <= 255, where, "over ", over, " is not in [0, 255]");
    reference.check(where);
    functor f{fitted, shared ? 0 : 1, rounding, over, {}, {}};
    for (int c = 0; c < 3; ++c)
      for (int k = 0; k < 2; ++k) f.stains[c][k] = static_cast<float>(reference.stains[c][k]);
    for (int k = 0; k < 2; ++k) f.most[k] = static_cast<float>(reference.max_concentration[k]);
    return f;
  }
};

}  // namespace suture
