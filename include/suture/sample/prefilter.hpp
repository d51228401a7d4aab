// SPDX-License-Identifier: Apache-2.0
// Cubic B-spline coefficients of a line of samples: the recursive filter of Unser, with the boundary that goes with
// each border rule (SciPy spline_filter1d: mirror for constant and mirror, reflect for edge and reflect, periodic for
// wrap). Constant and edge first extend the volume by 12 voxels on each side, as SciPy does, so that the rim blends.
#pragma once

#include <cstdint>
#include <type_traits>

#include "border.hpp"
#include "../core/vec.hpp"

namespace suture::detail {

inline constexpr float bspline_pole = -0.267949192431122706f;  // sqrt(3) - 2
// Terms of the boundary sums: |pole|^24 is 2e-14, below float for any n.
inline constexpr std::int32_t bspline_horizon = 24;

template <class Border>
constexpr bool reflect_prefilter = std::is_same_v<Border, reflect> || std::is_same_v<Border, edge>;

// In place along a line of n samples, `stride` elements apart.
template <class Border>
SUTURE_FN void prefilter_line(float* line, std::int64_t stride, std::int32_t n) {
  if (n == 1) return;
  constexpr float z = bspline_pole;
  const auto at = [&](std::int32_t i) -> float& { return line[i * stride]; };
  const std::int32_t terms = n < bspline_horizon ? n : bspline_horizon;
  for (std::int32_t i = 0; i < n; ++i) at(i) *= 6.0f;

  float power = 1.0f, power_n = 1.0f;  // z^i and, where it matters, z^n
  if (n <= bspline_horizon)
    for (std::int32_t i = 0; i < n; ++i) power_n *= z;
  else
    power_n = 0.0f;

  if constexpr (std::is_same_v<Border, wrap>) {
    float sum = at(0);
    for (std::int32_t i = 1; i < terms; ++i) {
      power *= z;
      sum = fma(power, at(n - i), sum);
    }
    at(0) = sum / (1.0f - power_n);
  } else if constexpr (reflect_prefilter<Border>) {
    float sum = fma(power_n, at(n - 1), at(0));
    for (std::int32_t i = 1; i < terms; ++i) {
      power *= z;
      sum = fma(power, fma(power_n, at(n - 1 - i), at(i)), sum);
    }
    at(0) = fma(sum, z / fma(-power_n, power_n, 1.0f), at(0));
  } else {
    const float power_last = power_n * (1.0f / z);  // z^(n-1)
    float sum = fma(power_last, at(n - 1), at(0));
    for (std::int32_t i = 1; i < (terms < n - 1 ? terms : n - 1); ++i) {
      power *= z;
      sum = fma(power, fma(power_last, at(n - 1 - i), at(i)), sum);
    }
    at(0) = sum / fma(-power_last, power_last, 1.0f);
  }
  for (std::int32_t i = 1; i < n; ++i) at(i) = fma(z, at(i - 1), at(i));

  if constexpr (std::is_same_v<Border, wrap>) {
    float sum = at(n - 1);
    power = 1.0f;
    for (std::int32_t i = 0; i < (terms < n - 1 ? terms : n - 1); ++i) {
      power *= z;
      sum = fma(power, at(i), sum);
    }
    at(n - 1) = sum * (z / (power_n - 1.0f));
  } else if constexpr (reflect_prefilter<Border>) {
    at(n - 1) *= z / (z - 1.0f);
  } else {
    at(n - 1) = fma(z, at(n - 2), at(n - 1)) * (z / fma(z, z, -1.0f));
  }
  for (std::int32_t i = n - 2; i >= 0; --i) at(i) = z * (at(i + 1) - at(i));
}

}  // namespace suture::detail
