// SPDX-License-Identifier: Apache-2.0
// This header has the cube root in float. See exponential.hpp for what a bound means.
#pragma once

#include <cstdint>

#include "exponential.hpp"

namespace suture::math {

namespace detail {

// Returns the cube root of x >= 2^-78. x^(-1/3) is guessed from the exponent and refined without a division; the cube
// of the result, exact to twice the precision, corrects the last bit.
SUTURE_FN float cube_root_of_large(float x) {
  float y = bit_cast<float>(0x54a23400u - bit_cast<std::uint32_t>(x) / 3u);  // within 3.5 %
  float error = fma(-(x * y), y * y, 1.0f);
  y = fma(y * error, fma(error, fma(error, 0x1.61f9aep-3f, 0x1.c71c72p-3f), 0x1.555556p-2f), y);
  error = fma(-(x * y), y * y, 1.0f);
  y = fma(y * error, 0x1.555556p-2f, y);
  const float root = x * y * y;
  const float square = root * root;
  const float square_rest = fma(root, root, -square);
  const float excess = fma(square_rest, root, fma(square, root, -x));
  return fma(-excess, y * y * 0x1.555556p-2f, root);
}

}  // namespace detail

// Returns x^(1/3), with the sign of x, to 0.51 ulp. 0, infinities and NaN are returned as they are.
SUTURE_FN float cbrt(float x) {
  const std::uint32_t sign = bit_cast<std::uint32_t>(x) & 0x80000000u;
  const float magnitude = bit_cast<float>(bit_cast<std::uint32_t>(x) ^ sign);
  const bool small = magnitude < 0x1p-60f;
  const float root = detail::cube_root_of_large(detail::select(small, magnitude * 0x1p75f, magnitude));
  const float scaled = detail::select(small, fma(root, 0x1p-25f, 0.0f), root);
  const bool ordinary = (magnitude > 0.0f) & (magnitude < detail::infinity);
  return detail::select(ordinary, bit_cast<float>(bit_cast<std::uint32_t>(scaled) | sign), x);
}

}  // namespace suture::math
