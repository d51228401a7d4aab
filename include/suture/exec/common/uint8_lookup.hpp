// SPDX-License-Identifier: Apache-2.0
// Lookup of the 256 levels of 8-bit images in a table, for the three channels of neighboring pixels.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>

#include "../../pipeline/pipeline.hpp"

namespace suture::detail {

// Color functors whose first step is a function of one channel, which is tabulated for 8-bit images.
// constants_of(sample_index) returns the constants of a sample. Their members level(x) and finish(pixels) compute the
// first step and the rest, apply(pixels) both; `owner` points to the functor.
template <class F>
concept begins_with_uint8_lookup = requires(const F& f, float (&pixels)[3][1], std::int32_t sample_index) {
  { f.constants_of(sample_index).level(0.0f) } -> std::same_as<float>;
  f.constants_of(sample_index).finish(pixels);
  f.constants_of(sample_index).apply(pixels);
  { f.constants_of(sample_index).owner } -> std::convertible_to<const F*>;
};

template <class Pipeline, class In>
constexpr bool first_begins_with_uint8_lookup() {
  if constexpr (std::is_same_v<In, std::uint8_t> && Pipeline::is_color && Pipeline::output_functors::size > 0)
    return begins_with_uint8_lookup<
        std::remove_cvref_t<decltype(bare(get<0>(std::declval<const typename Pipeline::output_functors&>())))>>;
  else
    return false;
}

// Writes the table values of n pixels, `stride` elements apart, to the first n of N pixels of `to`. The others do not
// change.
template <class V, int N>
SUTURE_INLINE void look_up(const V (&table)[256], V (&to)[3][N], const std::uint8_t* from, std::int64_t channel_stride,
                           std::int64_t stride, int n) {
  const auto all = [&](std::int64_t between_channels, std::int64_t between_pixels) {
    for (int i = 0; i + 4 <= n; i += 4) {  // by fours, which one store writes
      const std::uint8_t* const at = from + i * between_pixels;
      for (int c = 0; c < 3; ++c) {
        const std::uint8_t* const p = at + c * between_channels;
        const V four[4] = {table[p[0]], table[p[between_pixels]], table[p[2 * between_pixels]],
                           table[p[3 * between_pixels]]};
        std::memcpy(to[c] + i, four, sizeof(four));
      }
    }
    for (int i = n & ~3; i < n; ++i)
      for (int c = 0; c < 3; ++c) to[c][i] = table[from[i * between_pixels + c * between_channels]];
  };
  if (channel_stride == 1 && stride == 3)
    all(1, 3);
  else
    all(channel_stride, stride);
}

}  // namespace suture::detail
