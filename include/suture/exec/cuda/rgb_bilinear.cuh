// SPDX-License-Identifier: Apache-2.0
// Linear interpolation of colors, for several neighbors of a row by one thread.
#pragma once

#include "../../evaluate/evaluator.hpp"

namespace suture::detail {

// Appends a pixel to those of a run and drops the first. All indices are constants, so the run stays in registers.
template <int N>
__device__ __forceinline__ void append(float (&v)[3][N], const rgb& pixel) {
  SUTURE_UNROLL
  for (int c = 0; c < 3; ++c) {
    SUTURE_UNROLL
    for (int i = 1; i < N; ++i) v[c][i - 1] = v[c][i];
    v[c][N - 1] = pixel.c[c];
  }
}

// Returns the color at position c, which may lie anywhere: the border rule applies to pixels outside. It interpolates
// one plane after the other, so that planar samples and volumes share the code.
template <class Border, class In>
__device__ __forceinline__ rgb pixel_between(const source_tensor& s, const coordinate (&c)[3], bool planar,
                                             const Border& border) {
  using offset = tap_offset<Border>;
  std::int32_t index[2][2];
  SUTURE_UNROLL
  for (int k = 0; k < 2; ++k) SUTURE_UNROLL
  for (int j = 0; j < 2; ++j) index[k][j] = Border::index(linear::first(c[k + 1]) + j, s.extents[k + 1]);
  const In* const start = in_global_memory(static_cast<const In*>(s.data));
  const int count = planar ? 1 : 2;  // of planes; with one plane there is no position along z
  rgb below{}, made{};
  SUTURE_NO_UNROLL
  for (int a = 0; a < count; ++a) {
    const std::int32_t z = Border::index(linear::first(c[0]) + a, s.extents[0]);
    const In* const plane = start + product(z, static_cast<offset>(s.stride[0]));
    below = made;  // no array index
    made = combine_plane<rgb, linear>(c, [&](int b, int j) -> rgb {
      if constexpr (Border::has_value)
        if ((z | index[0][b] | index[1][j]) < 0) return uniform<rgb>(border.value);
      const In* const p = plane + product(index[0][b], static_cast<offset>(s.stride[1])) +
                          product(index[1][j], static_cast<offset>(s.stride[2]));
      return {{storage<In>::load(p[0]), storage<In>::load(p[s.channel_stride]),
               storage<In>::load(p[2 * s.channel_stride])}};
    });
  }
  if (planar) return made;
  const rgb planes[2] = {below, made};
  float w[2];
  linear::weights(c[0].fraction, w);
  return combine<linear>(planes, w);
}

// Returns p + count * step bytes, computed by one instruction.
__device__ __forceinline__ const char* stepped(const char* p, std::int32_t count, std::int32_t step) {
  std::uint64_t result;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(result) : "r"(count), "r"(step), "l"(p));
  return reinterpret_cast<const char*>(result);
}

// pixels_inside counts positions from the first pixel of its run and shifts them left by this. Their upper 32 bits are
// then enough: nine bits of the whole number, and the 23 bits of the fraction that a float keeps. Steps from pixel to
// pixel must be less than 64 pixels along each axis for this.
inline constexpr int place_shift = 23 + 32 - fixed_fraction_bits;
inline constexpr std::uint64_t most_place_step = std::uint64_t{64} << fixed_fraction_bits;
SUTURE_FN bool is_place_step(std::uint64_t step) { return step + most_place_step < 2 * most_place_step; }

// Tests whether both pixels next to a position along an axis of `pairs` + 1 pixels exist.
SUTURE_FN bool begins_pair(std::uint64_t place, std::int32_t pairs) {
  return static_cast<std::uint32_t>(place >> 32) < static_cast<std::uint32_t>(pairs) << (fixed_fraction_bits - 32);
}

// Interpolates N colors in one plane, the first at (y, x) and each (step_y, step_x) from the one before. All pixels
// that they need are inside the source, and the steps pass is_place_step. Neighbors of a source row are `apart`
// elements from each other: 3 if channels are interleaved, 1 if each channel has a plane.
template <class In, int N>
__device__ __forceinline__ void pixels_inside(const source_tensor& s, std::int32_t apart, std::uint64_t y,
                                              std::uint64_t x, std::uint64_t step_y, std::uint64_t step_x,
                                              float (&v)[3][N]) {
  constexpr auto size = static_cast<std::int32_t>(sizeof(In));
  const std::int64_t row = s.stride[1] * size;
  const auto row_step = static_cast<std::int32_t>(row);
  const std::int32_t step = apart * size;
  const char* const first = stepped(stepped(static_cast<const char*>(s.data), whole(y), row_step), whole(x), step);
  constexpr std::uint64_t fractions = (std::uint64_t{1} << fixed_fraction_bits) - 1;
  y = (y & fractions) << place_shift;
  x = (x & fractions) << place_shift;
  step_y <<= place_shift;
  step_x <<= place_shift;
  // The loop is not unrolled, which would repeat the code of the loads for every pixel.
  SUTURE_NO_UNROLL
  for (int i = 0; i < N; ++i, y += step_y, x += step_x) {
    const auto of = [](std::uint64_t place) -> coordinate {
      const auto upper = static_cast<std::uint32_t>(place >> 32);
      return {static_cast<std::int32_t>(upper) >> 23, float_from_bits(0x3f800000u | (upper & 0x7fffffu)) - 1.0f};
    };
    const coordinate c[3] = {{}, of(y), of(x)};
    const char* const at = stepped(stepped(first, c[1].base, row_step), c[2].base, step);
    const In* const rows[2] = {in_global_memory(reinterpret_cast<const In*>(at)),
                               in_global_memory(reinterpret_cast<const In*>(at + row))};
    In taps[2][2][3];
    const auto read = [&](std::int64_t pixel, std::int64_t channel) {
      SUTURE_UNROLL
      for (int b = 0; b < 2; ++b) SUTURE_UNROLL
      for (int j = 0; j < 2; ++j) SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) taps[b][j][k] = rows[b][j * pixel + k * channel];
    };
    if (apart == 3) {
      read(3, 1);
      asm volatile("");  // keeps the compiler from merging both branches, which loses constant offsets
    } else {
      read(1, s.channel_stride);
    }
    append(v, combine_plane<rgb, linear>(c, [&](int b, int j) -> rgb {
             const In(&tap)[3] = taps[b][j];
             return {{storage<In>::load(tap[0]), storage<In>::load(tap[1]), storage<In>::load(tap[2])}};
           }));
  }
}

}  // namespace suture::detail
