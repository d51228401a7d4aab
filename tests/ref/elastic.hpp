// SPDX-License-Identifier: Apache-2.0
// Elastic displacement by a grid of cubic B-spline coefficients (no prefilter), and the inverse of y -> y + u(y).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "spline.hpp"
#include "volume.hpp"

namespace reference {

// Position of voxel v in control cells. The domain is the image extent enlarged by epsilon voxels on either side and
// holds control_points - 3 cells: TorchIO and ITK's initializer have epsilon = 1/8, the plain definition 0.
inline double control_position(double v, integer voxels, integer control_points, double epsilon) {
  const double cell = (static_cast<double>(voxels) + 2 * epsilon) / static_cast<double>(control_points - 3);
  return (v + 0.5 + epsilon) / cell;
}

// The spline of one component at position q (in cells): the four coefficients from floor(q) on along each axis.
inline double bspline_field(const volume& coefficients, const point& q) {
  std::array<integer, 3> first{};
  std::array<weights4, 3> w{};
  for (std::size_t k = 0; k < 3; ++k) {
    first[k] = std::clamp<integer>(static_cast<integer>(std::floor(q[k])), 0, coefficients.size[k] - 4);
    w[k] = bspline_weights(q[k] - static_cast<double>(first[k]));
  }
  double sum = 0;
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      for (std::size_t c = 0; c < 4; ++c)
        sum += w[0][a] * w[1][b] * w[2][c] *
               coefficients.at(first[0] + static_cast<integer>(a), first[1] + static_cast<integer>(b),
                               first[2] + static_cast<integer>(c));
  return sum;
}

// The same in one dimension, for the published numbers.
inline double bspline_field_1d(const std::vector<double>& coefficients, double q) {
  const auto n = static_cast<integer>(coefficients.size());
  const integer first = std::clamp<integer>(static_cast<integer>(std::floor(q)), 0, n - 4);
  const weights4 w = bspline_weights(q - static_cast<double>(first));
  double sum = 0;
  for (std::size_t a = 0; a < 4; ++a) sum += w[a] * coefficients[static_cast<std::size_t>(first) + a];
  return sum;
}

// Displacement in millimeters of voxel v, components (z, y, x).
inline point bspline_displacement(const std::array<volume, 3>& coefficients, const point& v, const size3& voxels,
                                  double epsilon) {
  point q{};
  for (std::size_t k = 0; k < 3; ++k) q[k] = control_position(v[k], voxels[k], coefficients[0].size[k], epsilon);
  return {bspline_field(coefficients[0], q), bspline_field(coefficients[1], q), bspline_field(coefficients[2], q)};
}

// Choi and Lee: control displacements below cell / K cannot fold. K is the largest sum over the support of
// |sign . gradient of the tensor B-spline|, over positions in the cell and signs; by symmetry it lies on the cell's
// diagonal. Found by refining a search, as a check on the published constants.
inline double folding_constant(int dimensions) {
  const auto at = [&](double t) {
    const weights4 w = bspline_weights(t);
    const weights4 g = bspline_derivative_weights(t);
    double sum = 0;
    for (std::size_t i = 0; i < (std::size_t{1} << (2 * static_cast<unsigned>(dimensions))); ++i) {
      double gradient = 0;
      for (int axis = 0; axis < dimensions; ++axis) {
        double factor = 1;
        for (int other = 0; other < dimensions; ++other) {
          const std::size_t tap = (i >> (2 * static_cast<unsigned>(other))) & 3U;
          factor *= other == axis ? g[tap] : w[tap];
        }
        gradient += factor;
      }
      sum += std::abs(gradient);
    }
    return sum;
  };
  double best = 0;
  double where = 0.5;
  for (double step = 0.005; step > 1e-9; step /= 10) {
    const double from = where;
    for (int i = -100; i <= 100; ++i) {
      const double t = from + step * i;
      if (t >= 0 && t <= 1 && at(t) > best) {
        best = at(t);
        where = t;
      }
    }
  }
  return best;
}

// Solves y + u(y) = x by y <- x - u(y).
template <class Displacement>
point inverse_of_displacement(const point& x, Displacement&& u) {
  point y = x;
  for (int i = 0; i < 10000; ++i) {
    const point d = u(y);
    const point next{x[0] - d[0], x[1] - d[1], x[2] - d[2]};
    const double moved = std::abs(next[0] - y[0]) + std::abs(next[1] - y[1]) + std::abs(next[2] - y[2]);
    y = next;
    if (moved < 1e-13) break;
  }
  return y;
}

}  // namespace reference
