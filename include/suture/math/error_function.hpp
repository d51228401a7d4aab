// SPDX-License-Identifier: Apache-2.0
// This header has the error function in float. See exponential.hpp for what a bound means.
#pragma once

#include "exponential.hpp"

namespace suture::math {

// Returns 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x, to 1.06 ulp.
SUTURE_FN float erf(float x) {
  const float magnitude = bit_cast<float>(bit_cast<std::uint32_t>(x) & 0x7fffffffu);
  const float t = detail::select(magnitude > 4.0f, 4.0f, magnitude);
  const float t2 = t * t;
  float near = detail::polynomial(t2, -0x1.38742ep-11f, 0x1.46d9e4p-8f, -0x1.b67c04p-6f, 0x1.ce1986p-4f,
                                  -0x1.8126e2p-2f, 0x1.06eba6p-3f);
  near = fma(near, t, t);
  // -ln(1 - erf t)
  float far = detail::polynomial(t, 0x1.81e3aep-17f, -0x1.554f6ep-12f, 0x1.dedc94p-9f, -0x1.85b2aap-6f, 0x1.b341b8p-4f,
                                 0x1.45306ap-1f, 0x1.077af8p-3f);
  far = 1.0f - exp(fma(-far, t, -t));
  const float value = detail::select(t > 0.9277f, far, near);
  return bit_cast<float>(bit_cast<std::uint32_t>(value) | (bit_cast<std::uint32_t>(x) & 0x80000000u));
}

}  // namespace suture::math
