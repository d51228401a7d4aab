// SPDX-License-Identifier: Apache-2.0
// The objective that the sparse factorization of stains minimizes, computed pixel by pixel for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <suture/fit/macenko_modes.hpp>
#include <vector>

namespace support {

// The objective of Vahadane et al. 2016 over all pixels of a tile, halved, at the best concentrations, in double.
inline double sparse_objective(const suture::stain_matrix& w, double sparsity, const std::vector<std::uint8_t>& tile) {
  const auto density = suture::detail::map_of(suture::macenko::vahadane.fit.density);
  double hh = 0, ee = 0, he = 0, sum = 0;
  for (int c = 0; c < 3; ++c) {
    hh += w[c][0] * w[c][0];
    ee += w[c][1] * w[c][1];
    he += w[c][0] * w[c][1];
  }
  for (std::size_t p = 0; p < tile.size(); p += 3) {
    double h = -sparsity, e = -sparsity, square = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const auto od = static_cast<double>(density.density(tile[p + c]));
      h += w[static_cast<int>(c)][0] * od;
      e += w[static_cast<int>(c)][1] * od;
      square += od * od;
    }
    double best = std::fmin(0, std::fmin(h > 0 ? -h * h / hh / 2 : 0, e > 0 ? -e * e / ee / 2 : 0));
    const double a = (ee * h - he * e) / (hh * ee - he * he), b = (hh * e - he * h) / (hh * ee - he * he);
    if (a > 0 && b > 0) best = std::fmin(best, -(a * h + b * e) / 2);
    sum += square / 2 + best;
  }
  return sum;
}

// Expects that no change of one stain by about a degree makes the factorization of all pixels better.
inline void expect_least_objective(const suture::stain_matrix& found, double sparsity,
                                   const std::vector<std::uint8_t>& tile) {
  const double least = sparse_objective(found, sparsity, tile);
  for (int k = 0; k < 2; ++k)
    for (int c = 0; c < 3; ++c)
      for (const double step : {-.02, .02}) {
        suture::stain_matrix other = found;
        other[c][k] = std::fmax(other[c][k] + step, 0);
        const double length = std::hypot(other[0][k], other[1][k], other[2][k]);
        for (int i = 0; i < 3; ++i) other[i][k] /= length;
        EXPECT_LE(least, sparse_objective(other, sparsity, tile) * (1 + 1e-7))
            << "stain " << k << ", channel " << c << " by " << step;
      }
}

}  // namespace support
