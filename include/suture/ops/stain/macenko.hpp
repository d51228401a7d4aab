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
      const stain_basis& tile = fitted[static_cast<std::int64_t>(at.item) * each];
      if (tile.unchanged != 0) return in;
      float density[3];
      for (int c = 0; c < 3; ++c) density[c] = tile.density.density(fma(in.c[c], tile.to_255, 0.0f));
      const detail::stain_unmixing::pair p = tile.unmixing(density[0], density[1], density[2]);
      float scaled[2];
      for (int k = 0; k < 2; ++k) {
        const float factor = tile.inverse_max[k] > 0 ? most[k] * tile.inverse_max[k] : 1.0f;
        scaled[k] = fma(p.c[k], factor, 0.0f);
      }
      rgb out;
      const float from_255 = math::detail::divide(1.0f, tile.to_255);
      for (int c = 0; c < 3; ++c) {
        const float mixed = fma(stains[c][0], scaled[0], fma(stains[c][1], scaled[1], 0.0f));
        const float light = tile.density.intensity(mixed);
        const float bounded = math::detail::select(light > 255.0f, over, light);
        out.c[c] = fma(rounded(bounded), from_255, 0.0f);
      }
      return out;
    }

  private:
    // Of x in 0 .. 255: in [2^23, 2^24) a float's last bit counts ones.
    SUTURE_FN float rounded(float x) const {
      if (rounding == stain_rounding::unrounded) return x;
      const float shifted = rounding == stain_rounding::truncated ? x + 0x1p-12f : x;
      const float nearest = (shifted + 0x1p23f) - 0x1p23f;
      if (rounding == stain_rounding::nearest) return nearest;
      return nearest > shifted ? nearest - 1.0f : nearest;
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
