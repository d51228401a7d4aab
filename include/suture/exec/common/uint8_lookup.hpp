// SPDX-License-Identifier: Apache-2.0
// Table of the 256 levels of 8-bit images, looked up for the three channels of pixels side by side.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>

#include "../../pipeline/pipeline.hpp"

namespace suture::detail {

// Color functors that begin with a function of each channel alone, of which 8-bit images make a table once for many
// pixels: what the pixels of a sample share, tile_of(sample_index), has level(x) for that, finish(pixels) for the rest,
// and apply(pixels) for both. It points to the functor by `how`.
template <class F>
concept begins_with_uint8_lookup = requires(const F& f, float (&pixels)[3][1], std::int32_t sample_index) {
  { f.tile_of(sample_index).level(0.0f) } -> std::same_as<float>;
  f.tile_of(sample_index).finish(pixels);
  f.tile_of(sample_index).apply(pixels);
  { f.tile_of(sample_index).how } -> std::convertible_to<const F*>;
};

template <class Pipeline, class In>
constexpr bool first_begins_with_uint8_lookup() {
  if constexpr (std::is_same_v<In, std::uint8_t> && Pipeline::is_color && Pipeline::outputs::size > 0)
    return begins_with_uint8_lookup<
        std::remove_cvref_t<decltype(bare(get<0>(std::declval<const typename Pipeline::outputs&>())))>>;
  else
    return false;
}

// Looks up the first n of N pixels and leaves the others alone.
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
