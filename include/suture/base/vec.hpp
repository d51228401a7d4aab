// SPDX-License-Identifier: Apache-2.0
// Triples, 3x3 matrices and 3x4 affine maps. Every triple is in array order (z, y, x), physical ones too. Multiply-adds
// are explicit, so that the bits do not depend on what a compiler contracts.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "config.hpp"
#include "message.hpp"

namespace suture {

template <class T>
struct vec3 {
  T v[3];

  SUTURE_HD constexpr T& operator[](int axis) { return v[axis]; }
  SUTURE_HD constexpr const T& operator[](int axis) const { return v[axis]; }
  SUTURE_HD friend constexpr bool operator==(const vec3& a, const vec3& b) {
    return a.v[0] == b.v[0] && a.v[1] == b.v[1] && a.v[2] == b.v[2];
  }
  friend void append_text(std::string& text, const vec3& a) {
    for (int axis = 0; axis < 3; ++axis) {
      append_text(text, axis == 0 ? "(" : ", ");
      append_text(text, a[axis]);
    }
    append_text(text, ')');
  }
  template <class Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const vec3& a) {
    std::string text;
    append_text(text, a);
    return out << text;
  }
};

using extent3 = vec3<std::int64_t>;  // voxels along z, y, x
using point3 = vec3<double>;         // a continuous index or a position in millimeters

template <class To, class From>
SUTURE_HD constexpr vec3<To> vec_cast(const vec3<From>& a) {
  return {static_cast<To>(a[0]), static_cast<To>(a[1]), static_cast<To>(a[2])};
}

SUTURE_FN float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
SUTURE_FN double fma(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

namespace detail {
// Interpolates from first (t = 0) towards second (t = 1). At 0 the result is first, bit for bit, whatever second is. On
// a GPU this is one predicated multiply-add.
SUTURE_FN float lerp(float first, float second, float t) { return t != 0.0f ? fma(t, second - first, first) : first; }
}  // namespace detail

// Row-major 3x3 matrix acting on column vectors.
struct matrix3 {
  double m[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

  SUTURE_HD constexpr double* operator[](int row) { return m[row]; }
  SUTURE_HD constexpr const double* operator[](int row) const { return m[row]; }
};

SUTURE_HD inline constexpr matrix3 diagonal(const point3& d) { return {{{d[0], 0, 0}, {0, d[1], 0}, {0, 0, d[2]}}}; }

SUTURE_FN point3 operator*(const matrix3& a, const point3& p) {
  point3 r{};
  SUTURE_UNROLL
  for (int i = 0; i < 3; ++i) r[i] = fma(a[i][0], p[0], fma(a[i][1], p[1], a[i][2] * p[2]));
  return r;
}

SUTURE_HD inline matrix3 operator*(const matrix3& a, const matrix3& b) {
  matrix3 r;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) r[i][j] = fma(a[i][0], b[0][j], fma(a[i][1], b[1][j], a[i][2] * b[2][j]));
  return r;
}

// a * diagonal(d).
SUTURE_FN matrix3 scaled_columns(const matrix3& a, const point3& d) {
  matrix3 r;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) r[i][j] = a[i][j] * d[j];
  return r;
}

SUTURE_FN double determinant(const matrix3& a) {
  const double c0 = fma(a[1][1], a[2][2], -(a[1][2] * a[2][1]));
  const double c1 = fma(a[1][2], a[2][0], -(a[1][0] * a[2][2]));
  const double c2 = fma(a[1][0], a[2][1], -(a[1][1] * a[2][0]));
  return fma(a[0][0], c0, fma(a[0][1], c1, a[0][2] * c2));
}

// The caller has checked that the determinant is not zero.
SUTURE_FN matrix3 inverse(const matrix3& a) {
  const double d = determinant(a);
  matrix3 r;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const int r0 = (j + 1) % 3, r1 = (j + 2) % 3, c0 = (i + 1) % 3, c1 = (i + 2) % 3;
      r[i][j] = fma(a[r0][c0], a[r1][c1], -(a[r0][c1] * a[r1][c0]));
    }
  for (int i = 0; i < 9; ++i) r.m[i / 3][i % 3] /= d;
  return r;
}

// p -> linear * p + offset.
struct affine_map {
  matrix3 linear;
  point3 offset{0, 0, 0};

  SUTURE_FN point3 operator()(const point3& p) const {
    point3 r{};
    for (int i = 0; i < 3; ++i)
      r[i] = fma(linear[i][0], p[0], fma(linear[i][1], p[1], fma(linear[i][2], p[2], offset[i])));
    return r;
  }
};

// (outer * inner)(p) == outer(inner(p)).
SUTURE_HD inline affine_map operator*(const affine_map& outer, const affine_map& inner) {
  return {outer.linear * inner.linear, outer(inner.offset)};
}

// Tests whether all elements off the diagonal are zero, of either sign, by their bits.
inline bool is_diagonal(const matrix3& a) {
  std::uint64_t beside = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (i != j) beside |= __builtin_bit_cast(std::uint64_t, a[i][j]);
  return beside << 1 == 0;
}

// Returns outer * inner; if `inner` is diagonal, as for crops, flips and zooms, products with its zeros are skipped.
SUTURE_INLINE affine_map composed(const affine_map& outer, const affine_map& inner) {
  const matrix3 &a = outer.linear, &b = inner.linear;
  const bool scales = is_diagonal(b);
  affine_map r{{}, outer(inner.offset)};
  SUTURE_UNROLL
  for (int i = 0; i < 3; ++i) {
    SUTURE_UNROLL
    for (int j = 0; j < 3; ++j)
      r.linear[i][j] = scales ? a[i][j] * b[j][j] : fma(a[i][0], b[0][j], fma(a[i][1], b[1][j], a[i][2] * b[2][j]));
  }
  return r;
}

SUTURE_FN affine_map inverse(const affine_map& a) {
  affine_map r{inverse(a.linear)};
  const point3 moved = r.linear * a.offset;
  r.offset = {-moved[0], -moved[1], -moved[2]};
  return r;
}

// x_in = center_in + linear * (x_out - center_out).
SUTURE_HD inline affine_map about(const matrix3& linear, const point3& center_in, const point3& center_out) {
  const point3 moved = linear * center_out;
  return {linear, {center_in[0] - moved[0], center_in[1] - moved[1], center_in[2] - moved[2]}};
}

}  // namespace suture
