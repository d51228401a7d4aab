// SPDX-License-Identifier: Apache-2.0
// This header computes eigenvalues and eigenvectors of a symmetric 3x3 matrix by cyclic Jacobi rotations, a fixed
// number in a fixed order, so that host and device give the same bits.
#pragma once

#include "../base/vec.hpp"
#include "root.hpp"

namespace suture::math {

// values[0] >= values[1] >= values[2]; column k of `vectors` is the unit eigenvector of values[k], its sign
// unspecified. Values are accurate to a few 1e-16 of the largest.
struct symmetric_eigen {
  double values[3];
  matrix3 vectors;
};

namespace detail {

// Rotates rows and columns p and q so that the element between them vanishes.
SUTURE_HD inline void rotate(matrix3& a, matrix3& v, int p, int q) {
  const double off = a[p][q];
  if (off == 0) return;
  const int r = 3 - p - q;
  const double cotangent = divide(a[q][q] - a[p][p], 2 * off);  // of twice the angle
  const double magnitude = cotangent < 0 ? -cotangent : cotangent;
  const double tangent = divide(cotangent < 0 ? -1.0 : 1.0, magnitude + sqrt(fma(cotangent, cotangent, 1.0)));
  const double cosine = divide(1.0, sqrt(fma(tangent, tangent, 1.0)));
  const double sine = fma(tangent, cosine, 0.0);
  const double half_tangent = divide(sine, 1.0 + cosine);
  a[p][p] = fma(-tangent, off, a[p][p]);
  a[q][q] = fma(tangent, off, a[q][q]);
  a[p][q] = a[q][p] = 0;
  const auto turn = [&](double& x, double& y) {
    const double before = x;
    x = fma(-sine, fma(half_tangent, x, y), x);
    y = fma(sine, fma(-half_tangent, y, before), y);
  };
  turn(a[p][r], a[q][r]);
  a[r][p] = a[p][r];
  a[r][q] = a[q][r];
  for (int k = 0; k < 3; ++k) turn(v[k][p], v[k][q]);
}

}  // namespace detail

// Decomposes the symmetric matrix with the upper triangle of `matrix`, whose elements are finite and of moderate size
// (below 1e100).
SUTURE_HD inline symmetric_eigen eigen_of_symmetric(matrix3 matrix) {
  for (int i = 1; i < 3; ++i)
    for (int j = 0; j < i; ++j) matrix[i][j] = matrix[j][i];
  symmetric_eigen e{};
  constexpr int sweeps = 8;  // convergence is quadratic; five reach the last bit
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    detail::rotate(matrix, e.vectors, 0, 1);
    detail::rotate(matrix, e.vectors, 0, 2);
    detail::rotate(matrix, e.vectors, 1, 2);
  }
  for (int k = 0; k < 3; ++k) e.values[k] = matrix[k][k];
  const auto order = [&](int i, int j) {
    if (e.values[i] >= e.values[j]) return;
    const double value = e.values[i];
    e.values[i] = e.values[j];
    e.values[j] = value;
    for (int k = 0; k < 3; ++k) {
      const double element = e.vectors[k][i];
      e.vectors[k][i] = e.vectors[k][j];
      e.vectors[k][j] = element;
    }
  };
  order(0, 1);
  order(0, 2);
  order(1, 2);
  return e;
}

}  // namespace suture::math
