// SPDX-License-Identifier: Apache-2.0
// The three channels of a pixel, on which color and stain operations work together.
#pragma once

#include "config.hpp"

namespace suture {

template <class T>
struct pixel {
  T c[3];
};

// Red, green, blue, in the units of the image (0 .. 255 for uint8 tiles).
using rgb = pixel<float>;

namespace detail {

// The range of colors that are passed as base-2 logarithms: log2(x inverse_white), limited to [least, 0], where NaN
// becomes least. An operation that ends with an exponential passes them so to one that begins with a logarithm.
struct log2_range {
  float inverse_white = 0, least = 0;
  SUTURE_FN bool on() const { return inverse_white > 0; }
};

}  // namespace detail

}  // namespace suture
