// SPDX-License-Identifier: Apache-2.0
// What the 256 levels of 8-bit images stand for, looked up for the three channels of pixels side by side.
#pragma once

#include <cstdint>
#include <cstring>

#include "../core/config.hpp"

namespace suture::detail {

// Of the first n of N pixels; of the others nothing.
template <class V, int N>
SUTURE_INLINE void look_up(const V (&table)[256], V (&to)[3][N], const std::uint8_t* from, std::int64_t channel_stride,
                           std::int64_t stride, int n) {
  const auto all = [&](std::int64_t between, std::int64_t each) {
    for (int i = 0; i + 4 <= n; i += 4) {  // by fours, which one store writes
      const std::uint8_t* const at = from + i * each;
      for (int c = 0; c < 3; ++c) {
        const std::uint8_t* const p = at + c * between;
        const V four[4] = {table[p[0]], table[p[each]], table[p[2 * each]], table[p[3 * each]]};
        std::memcpy(to[c] + i, four, sizeof(four));
      }
    }
    for (int i = n & ~3; i < n; ++i)
      for (int c = 0; c < 3; ++c) to[c][i] = table[from[i * each + c * between]];
  };
  if (channel_stride == 1 && stride == 3)
    all(1, 3);
  else
    all(channel_stride, stride);
}

}  // namespace suture::detail
