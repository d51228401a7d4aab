// SPDX-License-Identifier: Apache-2.0
// Source coordinates in 64-bit fixed point (24.40): an affine map of integer output indices is then exact integer
// arithmetic, so any order of evaluation and any walk gives the same bits, and a coordinate keeps its accuracy
// at 100,000 voxels an axis. The split into integer base and float fraction needs no conversion instruction.
#pragma once

#include <cstdint>

#include "numeric.hpp"
#include "simd.hpp"
#include "vec.hpp"

namespace suture {

inline constexpr int fixed_fraction_bits = 40;
// Coordinates beyond this many voxels are refused when planning.
inline constexpr double fixed_coordinate_limit = 4194304.0;

// Output index -> continuous index. Unsigned because sums wrap on the way to a result that does not.
struct fixed_map {
  std::uint64_t linear[3][3];
  std::uint64_t offset[3];
};

inline std::uint64_t to_fixed(double x) {
  const double scaled = x * static_cast<double>(std::uint64_t{1} << fixed_fraction_bits);  // exact
  return static_cast<std::uint64_t>(detail::simd::rounded(scaled));
}

SUTURE_INLINE fixed_map to_fixed(const affine_map& a) {
  fixed_map f{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) f.linear[i][j] = to_fixed(a.linear[i][j]);
    f.offset[i] = to_fixed(a.offset[i]);
  }
  return f;
}

SUTURE_FN std::uint64_t scaled(std::uint64_t step, std::int32_t index) {
  return step * static_cast<std::uint64_t>(static_cast<std::int64_t>(index));
}

SUTURE_FN std::int32_t whole(std::uint64_t s) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(s >> 32)) >> (fixed_fraction_bits - 32);
}
SUTURE_FN float fraction(std::uint64_t s) {
  const auto mantissa = static_cast<std::uint32_t>(s >> (fixed_fraction_bits - 23)) & 0x007fffffu;
  return float_from_bits(0x3f800000u | mantissa) - 1.0f;
}

// A continuous index on one axis: base + fraction, fraction in [0, 1].
struct coordinate {
  std::int32_t base;
  float fraction;
};

SUTURE_FN coordinate split(std::uint64_t s) { return {whole(s), fraction(s)}; }

// Moves a coordinate by a displacement in voxels.
SUTURE_FN coordinate moved(coordinate c, float displacement) {
  const float t = c.fraction + displacement;
#if defined(__CUDA_ARCH__)
  const float below = floorf(t);
#else
  const float below = __builtin_floorf(t);
#endif
  return {c.base + static_cast<std::int32_t>(below), t - below};
}

}  // namespace suture
