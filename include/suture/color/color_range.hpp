// SPDX-License-Identifier: Apache-2.0
// Color operations work on values in [0, white], in the units of the image.
#pragma once

#include <cmath>

#include "../base/error.hpp"
#include "color_space.hpp"

namespace suture::detail {

inline constexpr float log2_of_e = 0x1.715476p0f;
// Least base-2 logarithm of a color in [0, 1]: 2^-64 times the least white that make_color_range takes is still normal.
inline constexpr float darkest_log2 = -64;

// Maps values into [0, 1], the range of color spaces, and back. A value outside [0, white] becomes the nearer bound and
// NaN becomes 0, so that later code need not expect either.
struct color_range {
  float white, inverse;

  template <class Unit = unit_range>
  SUTURE_FN rgb to_unit(const rgb& x, const Unit& unit = {}) const {
    return unit.limit({{fma(x.c[0], inverse, 0.0f), fma(x.c[1], inverse, 0.0f), fma(x.c[2], inverse, 0.0f)}});
  }
  SUTURE_FN rgb from_unit(const rgb& x) const {
    return {{fma(x.c[0], white, 0.0f), fma(x.c[1], white, 0.0f), fma(x.c[2], white, 0.0f)}};
  }
};

inline color_range make_color_range(float white, const site& where) {
  require(std::isfinite(white) && white >= 0x1p-60f && white <= 0x1p60f, where, "white ", white,
          " must be the positive value of white in the image");
  return {white, 1 / white};
}

inline void check_finite(const float (&values)[3], std::string_view what, const site& where) {
  for (const float v : values) require(std::isfinite(v), where, what, ' ', v, " must be finite");
}

}  // namespace suture::detail
