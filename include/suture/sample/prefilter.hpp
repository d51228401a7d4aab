// SPDX-License-Identifier: Apache-2.0
// Cubic B-spline coefficients of a line of voxels: the recursive filter of Unser, with the boundary that belongs to
// each border rule (SciPy spline_filter1d: mirror for constant and mirror, reflect for edge and reflect, periodic for
// wrap). Constant and edge first extend the volume by 12 voxels on each side, as SciPy does, so that the rim blends.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../base/vec.hpp"
#include "border.hpp"

namespace suture::detail {

inline constexpr float bspline_pole = -0.267949192431122706f;  // sqrt(3) - 2
// Terms of the boundary sums: |pole|^24 is 2e-14, below float for any n.
inline constexpr std::int32_t bspline_horizon = 24;

template <class Border>
constexpr bool reflect_prefilter = std::is_same_v<Border, reflect> || std::is_same_v<Border, edge>;

// Filters Lanes neighboring lines of n values each in place: the values of a line are `stride` elements apart, lines
// are one apart. The arithmetic of a line does not depend on how many are filtered side by side.
template <class Border, int Lanes = 1>
SUTURE_FN void prefilter_line(float* line, std::int64_t stride, std::int32_t n) {
  if (n == 1) return;
  constexpr float z = bspline_pole;
  // Multiplies. A bare product would feed the subtraction for the next value, and a compiler could fuse the two.
  const auto product = [](float a, float b) { return fma(a, b, 0.0f); };
  // Sets value i of every line to f(lane).
  const auto set = [&](std::int32_t i, const auto& f) {
    float* to = line + i * stride;
    for (int l = 0; l < Lanes; ++l) to[l] = f(l);
  };
  const auto at = [&](std::int32_t i, int l) { return line[i * stride + l]; };
  const std::int32_t terms = n < bspline_horizon ? n : bspline_horizon;
  const std::int32_t inner_terms = terms < n - 1 ? terms : n - 1;  // of sums that leave out voxel n - 1
  for (std::int32_t i = 0; i < n; ++i) set(i, [&](int l) { return at(i, l) * 6.0f; });

  float power_n = 0.0f;  // z^n, where it matters
  if (n <= bspline_horizon) {
    power_n = 1.0f;
    for (std::int32_t i = 0; i < n; ++i) power_n *= z;
  }
  const float power_last = power_n * (1.0f / z);  // z^(n-1)

  float power = 1.0f;  // z^i
  float sum[Lanes];
  const auto add = [&](float factor, const auto& f) {
    for (int l = 0; l < Lanes; ++l) sum[l] = fma(factor, f(l), sum[l]);
  };
  for (int l = 0; l < Lanes; ++l) sum[l] = at(0, l);
  if constexpr (std::is_same_v<Border, wrap>) {
    for (std::int32_t i = 1; i < terms; ++i) {
      power *= z;
      add(power, [&](int l) { return at(n - i, l); });
    }
    set(0, [&](int l) { return sum[l] / (1.0f - power_n); });
  } else if constexpr (reflect_prefilter<Border>) {
    add(power_n, [&](int l) { return at(n - 1, l); });
    for (std::int32_t i = 1; i < terms; ++i) {
      power *= z;
      add(power, [&](int l) { return fma(power_n, at(n - 1 - i, l), at(i, l)); });
    }
    set(0, [&](int l) { return fma(sum[l], z / fma(-power_n, power_n, 1.0f), at(0, l)); });
  } else {
    add(power_last, [&](int l) { return at(n - 1, l); });
    for (std::int32_t i = 1; i < inner_terms; ++i) {
      power *= z;
      add(power, [&](int l) { return fma(power_last, at(n - 1 - i, l), at(i, l)); });
    }
    set(0, [&](int l) { return sum[l] / fma(-power_last, power_last, 1.0f); });
  }
  for (std::int32_t i = 1; i < n; ++i) set(i, [&](int l) { return fma(z, at(i - 1, l), at(i, l)); });

  if constexpr (std::is_same_v<Border, wrap>) {
    for (int l = 0; l < Lanes; ++l) sum[l] = at(n - 1, l);
    power = 1.0f;
    for (std::int32_t i = 0; i < inner_terms; ++i) {
      power *= z;
      add(power, [&](int l) { return at(i, l); });
    }
    set(n - 1, [&](int l) { return product(sum[l], z / (power_n - 1.0f)); });
  } else if constexpr (reflect_prefilter<Border>) {
    set(n - 1, [&](int l) { return product(at(n - 1, l), z / (z - 1.0f)); });
  } else {
    set(n - 1, [&](int l) { return product(fma(z, at(n - 2, l), at(n - 1, l)), z / fma(z, z, -1.0f)); });
  }
  for (std::int32_t i = n - 2; i >= 0; --i) set(i, [&](int l) { return product(z, at(i + 1, l) - at(i, l)); });
}

// Filters any number of neighboring lines.
template <class Border>
void prefilter_lines(float* line, std::int64_t stride, std::int32_t n, std::int32_t lines) {
  constexpr int lanes = 32;
  std::int32_t x = 0;
  for (; x + lanes <= lines; x += lanes) prefilter_line<Border, lanes>(line + x, stride, n);
  for (; x < lines; ++x) prefilter_line<Border>(line + x, stride, n);
}

}  // namespace suture::detail
