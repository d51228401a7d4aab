// SPDX-License-Identifier: Apache-2.0
// The median of the neighborhood of a voxel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../base/simd.hpp"
#include "../../pipeline/stage_schedule.hpp"
#include "../../rng/draw.hpp"
#include "../../sample/border.hpp"
#include "../common/interval.hpp"

namespace suture {

namespace detail {

// Exchanges a and b unless they are in order. -0 and 0 are not exchanged, as by the minimum and maximum of registers.
SUTURE_FN void put_in_order(float& a, float& b) {
  const float low = b < a ? b : a, high = b < a ? a : b;
  a = low;
  b = high;
}
// Returns v if it is NaN, else `nan`.
SUTURE_FN float last_nan(float nan, float v) { return v == v ? nan : v; }

#if defined(SUTURE_HAS_SIMD)
struct lanes_of_median {
  simd::floats values;
};
SUTURE_INLINE void put_in_order(lanes_of_median& a, lanes_of_median& b) {
  const lanes_of_median low{simd::least(b.values, a.values)}, high{simd::greatest(a.values, b.values)};
  a = low;
  b = high;
}
SUTURE_INLINE lanes_of_median last_nan(const lanes_of_median& nan, const lanes_of_median& v) {
  return {simd::second_if_nan(nan.values, v.values)};
}
#endif

// Returns the median of 27 values, voxel(0) to voxel(26), each a float or a register of them; if one is NaN, the last
// NaN. The median is neither the least nor the greatest of any 15 of the values. These two are dropped, and another
// value is added, until the median is left.
template <class T>
struct median_of_27 {
  T v[15];
  T nan{};

  template <class Voxel>
  SUTURE_FN T operator()(const Voxel& voxel) {
    fill(voxel, std::make_index_sequence<15>{});
    narrow<0>(voxel);
    return last_nan(v[1], nan);
  }

private:
  template <class Voxel>
  SUTURE_FN T value(const Voxel& voxel, int i) {
    const T x = voxel(i);
    nan = last_nan(nan, x);
    return x;
  }
  template <class Voxel, std::size_t... I>
  SUTURE_FN void fill(const Voxel& voxel, std::index_sequence<I...>) {
    ((v[I] = value(voxel, static_cast<int>(I))), ...);
  }
  // Writes the median of the first 15 - Round values of v and the 12 - Round that follow to v[1].
  template <int Round, class Voxel>
  SUTURE_FN void narrow(const Voxel& voxel) {
    spread_ends(std::make_index_sequence<static_cast<std::size_t>(13 - Round)>{});
    if constexpr (Round < 12) {
      v[0] = value(voxel, 15 + Round);
      narrow<Round + 1>(voxel);
    }
  }
  // Moves the least of v[0 .. sizeof...(I) + 1] to the front and the greatest to the end.
  template <std::size_t... I>
  SUTURE_FN void spread_ends(std::index_sequence<I...>) {
    constexpr std::size_t last = sizeof...(I) + 1;
    (put_in_order(v[0], v[I + 1]), ...);
    put_in_order(v[0], v[last]);
    (put_in_order(v[I + 1], v[last]), ...);
  }
};

}  // namespace detail

// The median of the 27 voxels around each, the patch continued by reflection about its faces. NaN if one of them is.
struct median_functor {
  std::uint32_t channels;  // bit c: channel c; channels beyond the last use its bit

  SUTURE_FN bool active(std::int32_t channel) const { return (channels >> parameter_channel(channel) & 1u) != 0; }

  template <class Read>
  SUTURE_FN float operator()(const Read& read, const std::int32_t (&n)[3], std::int32_t z, std::int32_t y,
                             std::int32_t x, std::int32_t) const {
    std::int32_t at[3][3];
    for (int k = 0; k < 3; ++k) {
      at[0][k] = index(z + k - 1, n[0]);
      at[1][k] = index(y + k - 1, n[1]);
      at[2][k] = index(x + k - 1, n[2]);
    }
    return detail::median_of_27<float>{}([&](int i) { return read(at[0][i / 9], at[1][i / 3 % 3], at[2][i % 3]); });
  }

  SUTURE_FN static std::int32_t index(std::int32_t i, std::int32_t n) { return reflect::index(i, n); }

  // Filters Count voxels side by side along any axis. Neighbor (k, j, i) of the first is at rows[3 k + j] + along_x[i].
  template <int Count>
  SUTURE_INLINE void filter_run(const float* const (&rows)[9], const std::ptrdiff_t (&along_x)[3],
                                float (&out)[Count]) const {
#if defined(SUTURE_HAS_SIMD)
    static_assert(Count % detail::simd::lanes_32 == 0);
    for (int l = 0; l < Count; l += detail::simd::lanes_32) {
      const auto lanes = detail::median_of_27<detail::lanes_of_median>{}(
          [&](int i) { return detail::lanes_of_median{detail::simd::load(rows[i / 3] + along_x[i % 3] + l)}; });
      detail::simd::store(out + l, lanes.values);
    }
#else
    for (int l = 0; l < Count; ++l)
      out[l] = detail::median_of_27<float>{}([&](int i) { return rows[i / 3][along_x[i % 3] + l]; });
#endif
  }
};

// y = the median of the 3 x 3 x 3 voxels about x. On a patch of one slice that is the median of 3 x 3.
// Source: scipy.ndimage.median_filter (size 3, mode reflect).
struct median_filter {
  static constexpr std::string_view name = "median_filter";
  static constexpr auto parameters = named();

  median_functor prepare(const site&) const { return {~0u}; }
};

// median_filter of some channels, each with probability channel_probability.
// Errors: channel_probability not in [0, 1].
struct random_median_filter {
  float channel_probability = 1;
  float probability = 1;

  static constexpr std::string_view name = "random_median_filter";
  static constexpr std::uint16_t kind = 116;
  static constexpr auto parameters = named("channel_probability", &random_median_filter::channel_probability,
                                           "probability", &random_median_filter::probability);

  struct drawn {
    bool channels[most_channels];

    static constexpr auto fields = named("channels", &drawn::channels);

    auto prepare(const site&) const {
      drawn_for_channels<random_median_filter, median_functor> f{};
      for (int channel = 0; channel < most_channels; ++channel)
        if (channels[channel]) f.channels |= 1u << channel;
      return f;
    }
  };

  drawn draw(draws& random, const site& where) const {
    detail::check_channel_probability(channel_probability, where);
    drawn result{};
    for (bool& on : result.channels) on = random.bernoulli(channel_probability);
    return result;
  }
};

}  // namespace suture
