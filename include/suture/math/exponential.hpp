// SPDX-License-Identifier: Apache-2.0
// This header has exp2, exp, log2, log and pow in float, exp and log in double. Polynomials are minimax (Remez) with
// coefficients rounded to the type one after another; every multiply-add is explicit. A bound "n ulp" is against the
// exact result over the whole domain, subnormal arguments and results included; it is measured by
// tests/math/math_test.cpp. For NaN the result is NaN with unspecified bits. Functions add to their argument only by
// fma and never return a bare product, so that no compiler can contract a caller's arithmetic with theirs.
#pragma once

#include <cstdint>

#include "../base/bits.hpp"
#include "../base/vec.hpp"
#include "root.hpp"

namespace suture::math {

namespace detail {

inline constexpr float infinity = __builtin_inff();
inline constexpr float not_a_number = __builtin_nanf("");

// Selects one of two computed values. The host selects by mask: compilers turn a conditional expression with arithmetic
// into a branch, and a loop with a branch is not vectorized.
SUTURE_FN float select(bool first, float a, float b) {
#if defined(__CUDA_ARCH__)
  return first ? a : b;
#else
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(first);
  const auto other = bit_cast<std::uint32_t>(b);
  return bit_cast<float>(other ^ ((bit_cast<std::uint32_t>(a) ^ other) & mask));
#endif
}

// Computes c0 x^n + c1 x^(n - 1) + ... + cn, for coefficients from the highest power down.
template <class T, class... Coefficients>
SUTURE_FN T polynomial(T x, T highest, Coefficients... lower) {
  T sum = highest;
  ((sum = fma(sum, x, lower)), ...);
  return sum;
}

// Adding this number rounds to the nearest integer (ties to even) and leaves that integer in the low bits; |x| <= 2^22.
inline constexpr float round_magic = 0x1.8p23f;
// Added to x / 2, rounds it to a multiple of 1/2: the low bits then hold x rounded.
inline constexpr float round_half_magic = 0x1.8p22f;

// Returns value * 2^n for the n in the low bits of `rounded`, a float near one of the two above; value > 0. Two factors
// let -252 <= n <= 254 reach overflow, and round once on the way to a subnormal.
SUTURE_FN float scale_by_power(float value, float rounded) {
  const auto n = bit_cast<std::uint32_t>(rounded);
  const std::uint32_t half = n >> 1;
  const float scaled = value * bit_cast<float>((half << 23) + 0x3f800000u);
  return fma(scaled, bit_cast<float>(((n - half) << 23) + 0x3f800000u), 0.0f);
}

// Limits x to [low, high]; NaN is returned as it is.
SUTURE_FN float clamp(float x, float low, float high) {
  const float bounded = select(x < low, low, x);
  return select(bounded > high, high, bounded);
}

// Limits x to [low, high], where not a number becomes low: two instructions on a GPU. detail::limit of
// ops/value/clamp.hpp is faster on a host where nothing but a store or a multiply-add follows.
SUTURE_FN float clamp_number(float x, float low, float high) {
#if defined(__CUDA_ARCH__)
  return fminf(fmaxf(x, low), high);
#else
  const float bounded = select(x > low, x, low);
  return select(bounded > high, high, bounded);
#endif
}

// Returns the larger of x and low; not a number becomes low.
SUTURE_FN float at_least(float x, float low) {
#if defined(__CUDA_ARCH__)
  return fmaxf(x, low);
#else
  return select(x > low, x, low);
#endif
}

// Returns 2^f for |f| <= 1/2, by a polynomial of relative error 2^-28.3.
SUTURE_FN float exp2_fraction(float f) {
  return polynomial(f, 0x1.417a5cp-13f, 0x1.5f0946p-10f, 0x1.3b2dd2p-7f, 0x1.c6af7ap-5f, 0x1.ebfbdcp-3f, 0x1.62e430p-1f,
                    1.0f);
}

// The parts of a positive normal x = 2^exponent * (1 + fraction), fraction in [sqrt(1/2) - 1, sqrt(2) - 1).
struct binary_parts {
  float exponent;
  float fraction;
};
SUTURE_FN binary_parts split_binary(float x, float exponent_zero = round_magic) {
  const auto bits = bit_cast<std::uint32_t>(x);
  const std::uint32_t above = bits - 0x3f3504f3u;  // sqrt(1/2)
  // This gets the exponent without a conversion instruction, which is slow on a GPU.
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(above) >> 23);
  return {bit_cast<float>(0x4b400000u + exponent) - exponent_zero,
          bit_cast<float>(bits - (above & 0xff800000u)) - 1.0f};
}

// Splits x as split_binary does, subnormal x as well.
SUTURE_FN binary_parts split_binary_any(float x) {
  const bool subnormal = x < 0x1p-126f;
  return split_binary(select(subnormal, x * 0x1p23f, x), select(subnormal, round_magic + 23.0f, round_magic));
}

// The parts that a logarithm is computed from. For 0, infinity, NaN and negative x the exponent is the logarithm itself
// (-infinity, infinity, NaN and NaN) and the fraction is finite.
SUTURE_FN binary_parts split_for_log(float x) {
  binary_parts parts = split_binary_any(x);
  parts.exponent = select(bit_cast<std::uint32_t>(x) < 0x7f800000u, parts.exponent, fma(x, infinity, infinity));
  parts.exponent = select(x == 0.0f, -infinity, parts.exponent);
  return parts;
}

SUTURE_FN float log_of_parts(const binary_parts& x) {
  const float f = x.fraction;
  const float p = polynomial(f, -0x1.37a748p-4f, 0x1.0830e8p-3f, -0x1.0f4640p-3f, 0x1.2274f4p-3f, -0x1.5425f4p-3f,
                             0x1.99a3dap-3f, -0x1.000430p-2f, 0x1.555550p-2f, -0x1.fffff8p-2f);
  return fma(x.exponent, 0x1.62e430p-1f, fma(f * f, p, f));
}

SUTURE_FN float log2_of_parts(const binary_parts& x) {
  const float f = x.fraction;
  const float p = polynomial(f, -0x1.663bb0p-4f, 0x1.5ef766p-3f, -0x1.8c3f2ep-3f, 0x1.a8ce16p-3f, -0x1.eacdd8p-3f,
                             0x1.274f94p-2f, -0x1.715844p-2f, 0x1.ec71a2p-2f, -0x1.715476p-1f, 0x1.715476p0f);
  return fma(p, f, x.exponent);
}

// Returns ln x for positive normal x.
SUTURE_FN float log_of_normal(float x) { return log_of_parts(split_binary(x)); }

// Returns x^y where x is positive and normal and |y log2 x| <= 20, to a relative error of 2^-24 (3 + 3 |y log2 x|), for
// a third of the work of pow.
SUTURE_FN float power_of_normal(float x, float y) {
  const float power = fma(y, log2_of_parts(split_binary(x)), 0.0f);
  const float rounded = fma(power, 1.0f, round_magic);
  const float value = exp2_fraction(power - (rounded - round_magic));
  return bit_cast<float>(bit_cast<std::uint32_t>(value) + (bit_cast<std::uint32_t>(rounded) << 23));
}

// Returns x^y for 0 <= x <= 1 + 2^-19 and 0 < y <= 2^20, to an absolute error of 2^-23.5, for half the work of pow. x
// below 2^-126 counts as 0, and a power below 2^-125 is computed as if it were 2^-125.
SUTURE_FN float power_of_fraction(float x, float y) {
  const float power = fma(y, log2_of_parts(split_binary(x)), 0.0f);
  const float bounded = select(power > -125.0f, power, -125.0f);
  const float rounded = fma(bounded, 1.0f, round_magic);
  const float value = exp2_fraction(bounded - (rounded - round_magic));
  const std::uint32_t bits = bit_cast<std::uint32_t>(value) + (bit_cast<std::uint32_t>(rounded) << 23);
  return select(x < 0x1p-126f, 0.0f, bit_cast<float>(bits));
}
inline constexpr std::uint32_t largest_fraction = 0x3f800010u;  // the bits of 1 + 2^-19
inline constexpr float largest_exponent = 0x1p20f;

// Short forms for colors take two thirds of the work. Their errors are far below the last bit of a half, which is at
// least 2^-11 of the value.

// Returns log2 x for positive normal x, to an absolute error of 2^-24 (2 + |log2 x|); log2 1 is 0.
SUTURE_FN float short_log2(float x) {
  const std::uint32_t above = bit_cast<std::uint32_t>(x) + (0x3f800000u - 0x3f3504f3u);  // from sqrt(1/2)
#if defined(__CUDA_ARCH__)
  const std::uint32_t exponent = __funnelshift_r(above, 0x4b000000u >> 9, 23);  // in one instruction
#else
  const std::uint32_t exponent = (above >> 23) + 0x4b000000u;
#endif
  const float f = bit_cast<float>((above & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float p = polynomial(f, -0x1.2a53cap-3f, 0x1.e5331cp-3f, -0x1.003a42p-2f, 0x1.259fa2p-2f, -0x1.70b7e2p-2f,
                             0x1.ec7b08p-2f, -0x1.7155c0p-1f, 0x1.715472p0f);
  return fma(p, f, bit_cast<float>(exponent) - (0x1p23f + 127.0f));
}

// Returns 2^x scale + added, the product to a relative error of 2^-22.5; 2^0 is 1. The scale is positive, and scale and
// product lie in [2^-125, 2^126].
SUTURE_FN float short_exp2(float x, float scale, float added) {
  const float rounded = fma(x, 1.0f, round_magic);
  const float f = fma(rounded - round_magic, -1.0f, x);
  const float p = polynomial(f, 0x1.5cba56p-10f, 0x1.3cf3b2p-7f, 0x1.c6b596p-5f, 0x1.ebf9a4p-3f, 0x1.62e42ap-1f, 1.0f);
  return fma(p, bit_cast<float>(bit_cast<std::uint32_t>(scale) + (bit_cast<std::uint32_t>(rounded) << 23)), added);
}

}  // namespace detail

// Returns 2^x, to 0.88 ulp; powers of two are exact.
SUTURE_FN float exp2(float x) {
  const float bounded = detail::clamp(x, -152.0f, 129.0f);
  const float rounded = fma(bounded, 0.5f, detail::round_half_magic);
  const float f = fma(rounded - detail::round_half_magic, -2.0f, bounded);
  return detail::scale_by_power(detail::exp2_fraction(f), rounded);
}

namespace detail {

// Returns e^(x - n ln 2), near 1.
SUTURE_FN float exp_fraction(float x, float n) {
  const float f = fma(n, 0x1.05c610p-29f, fma(n, -0x1.62e430p-1f, x));
  return polynomial(f, 0x1.6ac74ep-10f, 0x1.123de0p-7f, 0x1.555858p-5f, 0x1.55548cp-3f, 0x1.fffffcp-2f, 1.0f, 1.0f);
}

}  // namespace detail

// Returns e^x, to 0.90 ulp.
SUTURE_FN float exp(float x) {
  const float bounded = detail::clamp(x, -105.0f, 90.0f);
  const float rounded = fma(bounded, 0x1.715476p0f, detail::round_magic);
  return detail::scale_by_power(detail::exp_fraction(bounded, rounded - detail::round_magic), rounded);
}

// Returns log2 x, to 1.47 ulp; exact for powers of two. 0 gives -infinity, negative x not a number.
SUTURE_FN float log2(float x) { return detail::log2_of_parts(detail::split_for_log(x)); }

// Returns ln x, to 0.92 ulp. 0 gives -infinity, negative x not a number.
SUTURE_FN float log(float x) { return detail::log_of_parts(detail::split_for_log(x)); }

namespace detail {

// The log2 of the number with these parts, as the sum of two floats.
struct log2_sum {
  float high, low;
};
SUTURE_FN log2_sum log2_in_two(const binary_parts& parts) {
  // log2 x = exponent + log2((1 + s) / (1 - s)), s = f / (2 + f), kept as the sum of two floats.
  const float f = parts.fraction;
  const float reciprocal = polynomial(f, -0x1.d40b0cp-5f, 0x1.066aaap-3f, -0x1.006542p-2f, 0x1.fff4b8p-2f);
  const float guess = f * reciprocal;
  const float s = fma(fma(-guess, f, fma(-2.0f, guess, f)), reciprocal, guess);
  const float s_rest = fma(-s, f, fma(-2.0f, s, f)) * reciprocal;
  const float s_squared = s * s;
  float p = polynomial(s_squared, 0x1.58901ep-2f, 0x1.a5d048p-2f, 0x1.2776e0p-1f, 0x1.ec709ep-1f);
  p = p * s_squared;
  constexpr float two_over_ln2 = 0x1.715476p1f, two_over_ln2_rest = 0x1.4ae0c0p-25f;
  const float sum = fma(s, two_over_ln2, parts.exponent);
  float rest = fma(s, two_over_ln2, parts.exponent - sum);
  rest = fma(s, two_over_ln2_rest, rest);
  rest = fma(s_rest, two_over_ln2, rest);
  rest = fma(s, p, rest);
  const float high = sum + rest;
  return {high, rest - (high - sum)};
}

}  // namespace detail

// Returns x^y for x >= 0, to 1.1 ulp for |y| <= 3 and 3.6 ulp for any y. Negative x gives not a number unless y is 0.
// x^1 is x, x^0 and 1^y are 1 as in C; 0^y is 0 or, for negative y, infinity.
SUTURE_FN float pow(float x, float y) {
  const detail::log2_sum log = detail::log2_in_two(detail::split_binary_any(x));

  // 2^(y log2 x)
  const float rounded = detail::clamp_number(fma(y, log.high, detail::round_magic), detail::round_magic - 152.0f,
                                             detail::round_magic + 130.0f);
  const float n = rounded - detail::round_magic;
  const float fraction = detail::clamp_number(fma(y, log.low, fma(y, log.high, -n)), -1.0f, 1.0f);
  const float formula = detail::scale_by_power(detail::exp2_fraction(fraction), rounded);

  const float at_end = detail::select((x == 0.0f) == (y < 0.0f), detail::infinity, 0.0f);
  float result = detail::select((x == 0.0f) | (x == detail::infinity), at_end, formula);
  result = detail::select((x >= 0.0f) & (y == y), result, detail::not_a_number);
  result = detail::select((x >= 0.0f) & (y == 1.0f), x, result);
  return detail::select((x == 1.0f) | (y == 0.0f), 1.0f, result);
}

// Returns e^x in double, to 0.9 ulp (at the sampled arguments of the test).
SUTURE_FN double exp(double x) {
  const double low = x < -746.0 ? -746.0 : x;
  const double bounded = low > 710.0 ? 710.0 : low;
  constexpr double magic = 0x1.8p52;
  const double rounded = fma(bounded, 0x1.71547652b82fep0, magic);
  const double n = rounded - magic;
  const double f = fma(n, -0x1.abc9e3b39803fp-56, fma(n, -0x1.62e42fefa39efp-1, bounded));
  const double p =
      detail::polynomial(f, 0x1.adb16ac7e0787p-26, 0x1.28add793433a0p-22, 0x1.71df03fc349bdp-19, 0x1.a0199985f8cddp-16,
                         0x1.a01a013a48dccp-13, 0x1.6c16c18469fbfp-10, 0x1.11111111248bdp-7, 0x1.55555555506e8p-5,
                         0x1.5555555555508p-3, 0x1.000000000000ap-1, 1.0, 1.0);
  // Scales by 2^n in two factors, as for float.
  const auto bits = bit_cast<std::uint64_t>(rounded);
  const std::uint64_t half = bits >> 1;
  const double scaled = p * bit_cast<double>((half << 52) + 0x3ff0000000000000u);
  return fma(scaled, bit_cast<double>(((bits - half) << 52) + 0x3ff0000000000000u), 0.0);
}

// Returns ln x in double, to 0.8 ulp (at the sampled arguments of the test). 0 gives -infinity, negative x not a
// number. The polynomial is that of fdlibm (e_log.c, Copyright 1993 Sun Microsystems).
SUTURE_FN double log(double x) {
  const bool subnormal = x < 0x1p-1022;
  const auto bits = bit_cast<std::uint64_t>(subnormal ? x * 0x1p54 : x);
  const std::uint64_t above = bits - 0x3fe6a09e667f3bcdu;  // sqrt(1/2)
  const auto exponent = static_cast<std::uint64_t>(static_cast<std::int64_t>(above) >> 52);
  constexpr double magic = 0x1.8p52;
  const double k = bit_cast<double>(bit_cast<std::uint64_t>(magic) + exponent) - (subnormal ? magic + 54.0 : magic);
  const double f = bit_cast<double>(bits - (above & 0xfff0000000000000u)) - 1.0;
  const double s = detail::divide(f, 2.0 + f);
  const double s2 = s * s;
  const double p = detail::polynomial(s2, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                                      2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                                      6.666666666666735130e-01);
  // ln(1 + f) = f - f^2/2 + s (f^2/2 + p s^2)
  const double half_f = 0.5 * f;
  const double correction = fma(s, fma(half_f, f, p * s2), k * 1.90821492927058770002e-10);
  const double rest = fma(half_f, f, -correction) - f;
  const double result = fma(k, 6.93147180369123816490e-01, -rest);
  const double positive = bits < 0x7ff0000000000000u ? result : fma(x, __builtin_inf(), __builtin_inf());
  return x == 0.0 ? -__builtin_inf() : positive;
}

}  // namespace suture::math
