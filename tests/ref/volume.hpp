// SPDX-License-Identifier: Apache-2.0
// Plain types of the reference: double volumes, points and 3x4 maps, axes in order (z, y, x). The reference is
// written from definitions alone, in double precision, one voxel at a time, and shares no code with the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace reference {

using integer = std::int64_t;
using size3 = std::array<integer, 3>;
using point = std::array<double, 3>;
using matrix = std::array<std::array<double, 3>, 3>;

struct volume {
  size3 size{0, 0, 0};
  std::vector<double> values;

  volume() = default;
  explicit volume(const size3& s, double fill = 0)
      : size(s), values(static_cast<std::size_t>(s[0] * s[1] * s[2]), fill) {}
  template <class T>
  volume(const size3& s, const std::vector<T>& v) : size(s), values(v.begin(), v.end()) {}

  double& at(integer z, integer y, integer x) {
    return values[static_cast<std::size_t>((z * size[1] + y) * size[2] + x)];
  }
  double at(integer z, integer y, integer x) const {
    return values[static_cast<std::size_t>((z * size[1] + y) * size[2] + x)];
  }
  point center() const {
    return {0.5 * static_cast<double>(size[0] - 1), 0.5 * static_cast<double>(size[1] - 1),
            0.5 * static_cast<double>(size[2] - 1)};
  }
};

inline matrix identity() { return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}; }
inline matrix diagonal(const point& d) { return {{{d[0], 0, 0}, {0, d[1], 0}, {0, 0, d[2]}}}; }

inline matrix product(const matrix& a, const matrix& b) {
  matrix r{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k) r[i][j] += a[i][k] * b[k][j];
  return r;
}

inline point product(const matrix& a, const point& p) {
  point r{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k) r[i] += a[i][k] * p[k];
  return r;
}

inline matrix transposed(const matrix& a) {
  matrix r{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) r[i][j] = a[j][i];
  return r;
}

// Gauss-Jordan elimination with partial pivoting.
inline matrix inverted(matrix a) {
  matrix r = identity();
  for (std::size_t c = 0; c < 3; ++c) {
    std::size_t pivot = c;
    for (std::size_t i = c + 1; i < 3; ++i)
      if ((a[i][c] < 0 ? -a[i][c] : a[i][c]) > (a[pivot][c] < 0 ? -a[pivot][c] : a[pivot][c])) pivot = i;
    std::swap(a[c], a[pivot]);
    std::swap(r[c], r[pivot]);
    const double d = a[c][c];
    for (std::size_t j = 0; j < 3; ++j) {
      a[c][j] /= d;
      r[c][j] /= d;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == c) continue;
      const double f = a[i][c];
      for (std::size_t j = 0; j < 3; ++j) {
        a[i][j] -= f * a[c][j];
        r[i][j] -= f * r[c][j];
      }
    }
  }
  return r;
}

// p -> linear p + offset.
struct affine {
  matrix linear = identity();
  point offset{0, 0, 0};

  point operator()(const point& p) const {
    point r = product(linear, p);
    for (std::size_t i = 0; i < 3; ++i) r[i] += offset[i];
    return r;
  }
};

// composed(a, b)(p) = a(b(p)).
inline affine composed(const affine& a, const affine& b) { return {product(a.linear, b.linear), a(b.offset)}; }

inline affine inverted(const affine& a) {
  affine r{inverted(a.linear), {}};
  const point moved = product(r.linear, a.offset);
  r.offset = {-moved[0], -moved[1], -moved[2]};
  return r;
}

// x_in = center_in + linear (x_out - center_out), section 3.
inline affine about(const matrix& linear, const point& center_in, const point& center_out) {
  const point moved = product(linear, center_out);
  return {linear, {center_in[0] - moved[0], center_in[1] - moved[1], center_in[2] - moved[2]}};
}

}  // namespace reference
