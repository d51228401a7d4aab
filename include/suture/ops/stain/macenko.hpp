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
      const stain_basis& tile = of(at.item);
      if (tile.unchanged != 0) return in;
      const float factor[2] = {this->factor(tile, 0), this->factor(tile, 1)};
      return tile.unmixing.penalised == 0 ? colour<false>(tile, factor, in) : colour<true>(tile, factor, in);
    }

    // The lanes of a strip, all of one item, on the host: what belongs to the tile is read once.
    template <int N>
    SUTURE_INLINE void apply_lanes(float (&v)[3][N], std::int32_t item) const {
      const stain_basis tile = of(item);
      if (tile.unchanged != 0) return;
      if (tile.unmixing.penalised == 0)
        apply_tile<false>(tile, v);
      else
        apply_tile<true>(tile, v);
    }

  private:
    SUTURE_FN const stain_basis& of(std::int32_t item) const { return fitted[static_cast<std::int64_t>(item) * each]; }
    SUTURE_FN float factor(const stain_basis& tile, int k) const {
      return tile.inverse_max[k] > 0 ? fma(most[k], tile.inverse_max[k], 0.0f) : 1.0f;
    }

    template <bool Penalised, int N>
    SUTURE_INLINE void apply_tile(const stain_basis& tile, float (&v)[3][N]) const {
      const functor mine = *this;
      const float factor[2] = {mine.factor(tile, 0), mine.factor(tile, 1)};
      float scaled[2][N];
      for (int c = 0; c < 3; ++c)
        for (int l = 0; l < N; ++l) v[c][l] = density(tile, v[c][l]);
      for (int l = 0; l < N; ++l) {
        const detail::stain_unmixing::pair p = tile.unmixing.mixture<Penalised>(v[0][l], v[1][l], v[2][l]);
        scaled[0][l] = fma(p.c[0], factor[0], 0.0f);
        scaled[1][l] = fma(p.c[1], factor[1], 0.0f);
      }
      for (int c = 0; c < 3; ++c)
        for (int l = 0; l < N; ++l) v[c][l] = mine.light(tile, c, scaled[0][l], scaled[1][l]);
    }

    template <bool Penalised>
    SUTURE_FN rgb colour(const stain_basis& tile, const float (&factor)[2], const rgb& in) const {
      float od[3];
      for (int c = 0; c < 3; ++c) od[c] = density(tile, in.c[c]);
      const detail::stain_unmixing::pair p = tile.unmixing.mixture<Penalised>(od[0], od[1], od[2]);
      const float scaled[2] = {fma(p.c[0], factor[0], 0.0f), fma(p.c[1], factor[1], 0.0f)};
      rgb out;
      for (int c = 0; c < 3; ++c) out.c[c] = light(tile, c, scaled[0], scaled[1]);
      return out;
    }

    SUTURE_FN static float density(const stain_basis& tile, float x) {
      return tile.density.density(fma(x, tile.to_255, 0.0f));
    }
    SUTURE_FN float light(const stain_basis& tile, int c, float h, float e) const {
      const float x = tile.density.intensity(fma(stains[c][0], h, fma(stains[c][1], e, 0.0f)));
      return fma(rounded(math::detail::select(x > 255.0f, over, x)), tile.from_255, 0.0f);
    }

    // Of x in 0 .. 255: in [2^23, 2^24) a float's last bit counts ones.
    SUTURE_FN float rounded(float x) const {
      using math::detail::select;
      const bool truncates = rounding == stain_rounding::truncated;
      const float shifted = x + select(truncates, 0x1p-12f, 0.0f);
      const float nearest = (shifted + 0x1p23f) - 0x1p23f;
      const float whole = select(truncates & (nearest > shifted), nearest - 1.0f, nearest);
      return select(rounding == stain_rounding::unrounded, x, whole);
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
