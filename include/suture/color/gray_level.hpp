// SPDX-License-Identifier: Apache-2.0
// This header computes 8-bit levels of an RGB pixel in integers, as OpenCV does.
#pragma once

#include <cstdint>

#include "../base/config.hpp"

namespace suture::detail::masks {

SUTURE_FN std::int32_t gray_level(std::int32_t r, std::int32_t g, std::int32_t b) {
  return (9798 * r + 19235 * g + 3735 * b + 16384) >> 15;
}
SUTURE_FN std::int32_t saturation_level(std::int32_t r, std::int32_t g, std::int32_t b) {
  const std::int32_t most = r > g ? (r > b ? r : b) : (g > b ? g : b);
  const std::int32_t least = r < g ? (r < b ? r : b) : (g < b ? g : b);
  if (most == 0) return 0;
  const std::int32_t scale = (2 * (255 << 12) + most) / (2 * most);  // 255 / max with 12 fractional bits, rounded
  return ((most - least) * scale + (1 << 11)) >> 12;
}

}  // namespace suture::detail::masks
