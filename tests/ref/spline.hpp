// SPDX-License-Identifier: Apache-2.0
// Interpolation weights of the four neighbors floor(x) - 1 ... floor(x) + 2, and the B-spline prefilter.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "border.hpp"
#include "volume.hpp"

namespace reference {

using weights4 = std::array<double, 4>;

inline weights4 bspline_weights(double t) {
  const double s = 1 - t;
  return {s * s * s / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (-3 * t * t * t + 3 * t * t + 3 * t + 1) / 6,
          t * t * t / 6};
}

inline weights4 bspline_derivative_weights(double t) {
  return {-(1 - t) * (1 - t) / 2, (9 * t * t - 12 * t) / 6, (-9 * t * t + 6 * t + 3) / 6, t * t / 2};
}

// Keys' kernel: a = -1/2 is Catmull-Rom, a = -3/4 is torch's bicubic.
inline double keys(double s, double a) {
  s = std::abs(s);
  if (s <= 1) return ((a + 2) * s - (a + 3)) * s * s + 1;
  if (s < 2) return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
  return 0;
}
inline weights4 keys_weights(double t, double a) {
  return {keys(t + 1, a), keys(t, a), keys(1 - t, a), keys(2 - t, a)};
}

// Cubic B-spline coefficients of one line: poles z and 1/z with z = sqrt(3) - 2, gain 6, both recursions started
// with the exact sum over the periodic extension the border rule implies. There is no edge rule: see the padding of
// SciPy in sample.hpp.
inline void bspline_prefilter_line(std::vector<double>& c, border rule) {
  const auto n = static_cast<integer>(c.size());
  if (n == 1) return;
  const double z = std::sqrt(3.0) - 2.0;
  const auto at = [&](integer i) -> double& { return c[static_cast<std::size_t>(i)]; };
  for (double& value : c) value *= 6;

  // Causal: y[0] = sum over k >= 0 of z^k x[-k], x extended; one period has the length below.
  const integer period = rule == border::mirror ? 2 * n - 2 : rule == border::reflect ? 2 * n : n;
  double sum = 0;
  double power = 1;
  for (integer k = 0; k < period; ++k) {
    sum += power * at(border_index(rule, -k, n));
    power *= z;
  }
  at(0) = sum / (1 - power);  // power is now z^period
  for (integer i = 1; i < n; ++i) at(i) += z * at(i - 1);

  // Anticausal: the causal output extends by the same rule only for wrap; for the symmetric rules the closed forms.
  if (rule == border::mirror) {
    at(n - 1) = (z * at(n - 2) + at(n - 1)) * z / (z * z - 1);
  } else if (rule == border::reflect) {
    at(n - 1) *= z / (z - 1);
  } else {
    double tail = 0;
    double factor = 1;
    for (integer k = 0; k < n; ++k) {
      tail += factor * at(modulo(n - 1 + k, n));
      factor *= z;
    }
    at(n - 1) = -z * tail / (1 - factor);
  }
  for (integer i = n - 2; i >= 0; --i) at(i) = z * (at(i + 1) - at(i));
}

inline volume bspline_prefilter(volume v, border rule) {
  const size3 n = v.size;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t b = (axis + 1) % 3;
    const std::size_t c = (axis + 2) % 3;
    for (integer j = 0; j < n[b]; ++j)
      for (integer k = 0; k < n[c]; ++k) {
        std::vector<double> line(static_cast<std::size_t>(n[axis]));
        size3 p{};
        p[b] = j;
        p[c] = k;
        for (integer i = 0; i < n[axis]; ++i) {
          p[axis] = i;
          line[static_cast<std::size_t>(i)] = v.at(p[0], p[1], p[2]);
        }
        bspline_prefilter_line(line, rule);
        for (integer i = 0; i < n[axis]; ++i) {
          p[axis] = i;
          v.at(p[0], p[1], p[2]) = line[static_cast<std::size_t>(i)];
        }
      }
  }
  return v;
}

}  // namespace reference
