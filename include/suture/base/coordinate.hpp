// SPDX-License-Identifier: Apache-2.0
// Source coordinates in 64-bit fixed point with 24 integer and 40 fraction bits. An affine map of integer output
// indices is then exact integer arithmetic: the bits do not depend on the order in which coordinates are computed, and
// a coordinate keeps its accuracy at 100,000 voxels an axis. The split into integer base and float fraction needs no
// conversion instruction.
#pragma once

#include <cmath>
#include <cstdint>

#include "numeric.hpp"
#include "simd.hpp"
#include "vec.hpp"

namespace suture {

inline constexpr int fixed_fraction_bits = 40;
// Coordinates beyond this many voxels are refused when planning.
inline constexpr double fixed_coordinate_limit = 4194304.0;

// The affine map of an output index to a continuous source index. Numbers are unsigned because intermediate sums may
// wrap although the result does not.
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

namespace detail {

// Raises the offset of a row that has at most one nonzero step, so that no coordinate is below the exact one. Steps and
// offsets are rounded to 2^-40 voxel. A coordinate that should lie on a voxel could therefore fall short of it by the
// sum of these errors, and read the neighbor with a weight of 2^-23. A raised coordinate still counts as on the voxel
// while it is less than 2^-23 beyond it, which holds for up to 2^18 output voxels. A row whose coordinates are all
// multiples of 2^-23 is exact already. A row with several steps is not raised: a rotated coordinate meets a voxel only
// by chance.
inline void round_up(fixed_map& f, const affine_map& a, const extent3& output, int row) {
  const auto& step = f.linear[row];
  if ((step[0] != 0) + (step[1] != 0) + (step[2] != 0) > 1) return;
  constexpr std::uint64_t below_weights = (std::uint64_t{1} << (fixed_fraction_bits - 23)) - 1;
  if (((step[0] | step[1] | step[2] | f.offset[row]) & below_weights) == 0) return;
  constexpr double unit = static_cast<double>(std::uint64_t{1} << fixed_fraction_bits);
  const auto excess = [](std::uint64_t rounded, double exact) {
    return static_cast<double>(static_cast<std::int64_t>(rounded)) - exact * unit;
  };
  double lowest = excess(f.offset[row], a.offset[row]), reach = std::abs(a.offset[row]);
  for (int j = 0; j < 3; ++j) {
    const auto last = static_cast<double>(output[j] - 1);
    lowest += std::fmin(excess(step[j], a.linear[row][j]) * last, 0.0);
    reach = fma(std::abs(a.linear[row][j]), last, reach);
  }
  constexpr double in_double = unit * 0x1p-50;  // rounding error of the map itself, which was composed in double
  lowest -= reach * in_double;
  if (lowest < 0) f.offset[row] += static_cast<std::uint64_t>(std::ceil(-lowest));
}

}  // namespace detail

// Returns the fixed-point map for an output of these extents, with offsets raised by round_up.
SUTURE_INLINE fixed_map to_fixed(const affine_map& a, const extent3& output) {
  fixed_map f = to_fixed(a);
  for (int row = 0; row < 3; ++row) detail::round_up(f, a, output, row);
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
