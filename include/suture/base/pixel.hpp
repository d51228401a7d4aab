// SPDX-License-Identifier: Apache-2.0
// The three channels of a voxel taken together: what color and stain operations work on.
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

// Colors as powers of 2: log2(x inverse_white), brought to the nearer end of [least, 0], not a number to least. Where
// an operation ends with an exponential and the next begins with a logarithm, colors go from one to the other so.
struct power_range {
  float inverse_white = 0, least = 0;
  SUTURE_FN bool on() const { return inverse_white > 0; }
};

}  // namespace detail

}  // namespace suture
