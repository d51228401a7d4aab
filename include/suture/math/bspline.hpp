// SPDX-License-Identifier: Apache-2.0
// This header has the uniform cubic B-spline on one cell, t in [0, 1]: basis weights, and the same cell as a polynomial
// in t.
#pragma once

#include "../base/vec.hpp"

namespace suture {

// Computes the basis weights; w[a] weighs the coefficient at cell - 1 + a.
SUTURE_FN void bspline_weights(float t, float (&w)[4]) {
  constexpr float sixth = 1.0f / 6.0f;
  const float s = 1.0f - t;
  w[0] = (s * s) * s * sixth;
  w[1] = fma(fma(0.5f, t, -1.0f), t * t, 2.0f / 3.0f);
  w[2] = fma(fma(0.5f, s, -1.0f), s * s, 2.0f / 3.0f);
  w[3] = (t * t) * t * sixth;
}

// Converts the coefficients p of one cell to c with value = c0 + c1 t + c2 t^2 + c3 t^3.
SUTURE_FN void bspline_polynomial(const float (&p)[4], float (&c)[4]) {
  constexpr float sixth = 1.0f / 6.0f;
  c[0] = fma(4.0f, p[1], p[0] + p[2]) * sixth;
  c[1] = (p[2] - p[0]) * 0.5f;
  c[2] = fma(-2.0f, p[1], p[0] + p[2]) * 0.5f;
  c[3] = fma(3.0f, p[1] - p[2], p[3] - p[0]) * sixth;
}

SUTURE_FN float polynomial(const float (&c)[4], float t) { return fma(fma(fma(c[3], t, c[2]), t, c[1]), t, c[0]); }

}  // namespace suture
