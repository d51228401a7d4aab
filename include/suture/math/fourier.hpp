// SPDX-License-Identifier: Apache-2.0
// This header has the discrete Fourier transform of a line, X_k = sum over j of x_j exp(-2 pi i j k / n), as passes
// that are loops over independent butterflies: radix 4, 2, 3 and 5, and the plain sum for other primes. Each pass sorts
// as it goes (Stockham), so no separate sorting is needed. Executors differ only in who computes which butterfly.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../base/vec.hpp"
#include "trigonometric.hpp"

namespace suture::math {

struct complex {
  float real, imaginary;
};

SUTURE_FN complex operator+(const complex& a, const complex& b) { return {a.real + b.real, a.imaginary + b.imaginary}; }
SUTURE_FN complex operator-(const complex& a, const complex& b) { return {a.real - b.real, a.imaginary - b.imaginary}; }
SUTURE_FN complex times(const complex& a, const complex& b) {
  return {fma(a.real, b.real, -(a.imaginary * b.imaginary)), fma(a.real, b.imaginary, a.imaginary * b.real)};
}
// Returns factor a + c.
SUTURE_FN complex multiply_add(float factor, const complex& a, const complex& c) {
  return {fma(factor, a.real, c.real), fma(factor, a.imaginary, c.imaginary)};
}
// Returns a b + c.
SUTURE_FN complex multiply_add(const complex& a, const complex& b, const complex& c) {
  return {fma(a.real, b.real, fma(-a.imaginary, b.imaginary, c.real)),
          fma(a.real, b.imaginary, fma(a.imaginary, b.real, c.imaginary))};
}

// Returns exp(-2 pi i j / n), 0 <= j < n <= 2^21; exact at quarter turns.
SUTURE_FN complex root_of_unity(std::int32_t j, std::int32_t n) {
  const std::int32_t quarter = 4 * j / n, rest = 4 * j - quarter * n;
  const sine_cosine<float> of_rest = sincospi(detail::divide(static_cast<float>(rest), static_cast<float>(2 * n)));
  const float cosine = (quarter & 1) != 0 ? -of_rest.sine : of_rest.cosine;
  const float sine = (quarter & 1) != 0 ? of_rest.cosine : of_rest.sine;
  return quarter < 2 ? complex{cosine, -sine} : complex{-cosine, sine};
}

// Returns the radix of the next pass; `rest` is the part of the length that is yet to be factored.
SUTURE_FN std::int32_t next_radix(std::int32_t rest) {
  if (rest % 4 == 0) return 4;
  for (std::int32_t p = 2; p * p <= rest; ++p)
    if (rest % p == 0) return p;
  return rest;
}

// Computes the discrete Fourier transform of Radix values, in place.
SUTURE_FN void dft(complex (&v)[2]) {
  const complex a = v[0];
  v[0] = a + v[1];
  v[1] = a - v[1];
}
SUTURE_FN void dft(complex (&v)[3]) {
  constexpr float sine = 0x1.bb67aep-1f;  // of a third of a turn
  const complex sum = v[1] + v[2], difference = v[1] - v[2], middle = multiply_add(-0.5f, sum, v[0]);
  v[0] = v[0] + sum;
  v[1] = {fma(sine, difference.imaginary, middle.real), fma(-sine, difference.real, middle.imaginary)};
  v[2] = {fma(-sine, difference.imaginary, middle.real), fma(sine, difference.real, middle.imaginary)};
}
SUTURE_FN void dft(complex (&v)[4]) {
  const complex a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
  v[0] = a + c;
  v[1] = {b.real + d.imaginary, b.imaginary - d.real};
  v[2] = a - c;
  v[3] = {b.real - d.imaginary, b.imaginary + d.real};
}
SUTURE_FN void dft(complex (&v)[5]) {
  constexpr float c1 = 0x1.3c6ef4p-2f, c2 = -0x1.9e377ap-1f;  // cosines of one and two fifths of a turn
  constexpr float s1 = 0x1.e6f0e2p-1f, s2 = 0x1.2cf230p-1f;   // sines
  const complex a = v[1] + v[4], b = v[2] + v[3], c = v[1] - v[4], d = v[2] - v[3];
  const complex p = multiply_add(c1, a, multiply_add(c2, b, v[0])), q = multiply_add(c2, a, multiply_add(c1, b, v[0]));
  const complex r = {fma(s1, c.real, s2 * d.real), fma(s1, c.imaginary, s2 * d.imaginary)};
  const complex s = {fma(s2, c.real, -(s1 * d.real)), fma(s2, c.imaginary, -(s1 * d.imaginary))};
  v[0] = (v[0] + a) + b;
  v[1] = {p.real + r.imaginary, p.imaginary - r.real};
  v[2] = {q.real + s.imaginary, q.imaginary - s.real};
  v[3] = {q.real - s.imaginary, q.imaginary + s.real};
  v[4] = {p.real - r.imaginary, p.imaginary + r.real};
}

// Calls f(radix), with the radix as a constant if there is a dft() for it.
SUTURE_NO_EXEC_CHECK template <class F>
SUTURE_FN void with_radix(std::int32_t radix, const F& f) {
  if (radix == 4)
    f(std::integral_constant<int, 4>{});
  else if (radix == 2)
    f(std::integral_constant<int, 2>{});
  else if (radix == 3)
    f(std::integral_constant<int, 3>{});
  else if (radix == 5)
    f(std::integral_constant<int, 5>{});
  else
    f(radix);
}

// Butterfly i of a pass, 0 <= i < n / radix, after passes whose radices multiply to `done`. It reads the values at
// i + q * stride() for 0 <= q < radix, multiplies value q by root_of_unity(q * factor(), n), and writes the results to
// first_result() + q * done.
struct butterfly {
  std::int32_t i, n, radix, done;

  SUTURE_FN std::int32_t stride() const { return n / radix; }
  SUTURE_FN std::int32_t factor() const { return i % done * (n / (radix * done)); }
  SUTURE_FN std::int32_t first_result() const { return i / done * (done * radix) + i % done; }
};

// Returns result `s` of a butterfly of any radix: the plain sum of read(q); `roots` are those of the line.
template <class Read>
SUTURE_FN complex plain_sum(const butterfly& b, std::int32_t s, const complex* roots, const Read& read) {
  const std::int32_t twiddle_step = b.factor() + s * b.stride();
  complex sum = read(0);
  std::int32_t at = 0;
  for (std::int32_t q = 1; q < b.radix; ++q) {
    at += twiddle_step;
    if (at >= b.n) at -= b.n;
    sum = multiply_add(read(q), roots[at], sum);
  }
  return sum;
}

}  // namespace suture::math
