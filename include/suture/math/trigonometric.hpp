// SPDX-License-Identifier: Apache-2.0
// This header has sine, cosine and their like, in float and double. See exponential.hpp for what a bound means. The
// sign of a result that is zero is unspecified.
#pragma once

#include <cstdint>

#include "exponential.hpp"
#include "root.hpp"

namespace suture::math {

template <class T>
struct sine_cosine {
  T sine;
  T cosine;
};

namespace detail {

// Returns the sine and cosine of r + n pi/2 from those of r, n in the low bits of `rounded`.
SUTURE_FN sine_cosine<float> turn_quarters(sine_cosine<float> of_rest, float rounded) {
  const auto n = bit_cast<std::uint32_t>(rounded);
  const bool odd = (n & 1u) != 0;
  const float sine = select(odd, of_rest.cosine, of_rest.sine);
  const float cosine = select(odd, of_rest.sine, of_rest.cosine);
  return {bit_cast<float>(bit_cast<std::uint32_t>(sine) ^ ((n & 2u) << 30)),
          bit_cast<float>(bit_cast<std::uint32_t>(cosine) ^ (((n + 1u) & 2u) << 30))};
}
SUTURE_FN sine_cosine<double> turn_quarters(sine_cosine<double> of_rest, double rounded) {
  const auto n = bit_cast<std::uint64_t>(rounded);
  const bool odd = (n & 1u) != 0;
  const double sine = odd ? of_rest.cosine : of_rest.sine;
  const double cosine = odd ? of_rest.sine : of_rest.cosine;
  return {bit_cast<double>(bit_cast<std::uint64_t>(sine) ^ ((n & 2u) << 62)),
          bit_cast<double>(bit_cast<std::uint64_t>(cosine) ^ (((n + 1u) & 2u) << 62))};
}

// Returns sin pi x and cos pi x for |x| <= 2^20.
SUTURE_FN sine_cosine<float> sincospi_small(float x) {
  const float rounded = fma(x, 2.0f, round_magic);
  const float r = fma(rounded - round_magic, -0.5f, x);  // exact, |r| <= 1/4
  const float r2 = r * r;
  float s = detail::polynomial(r2, -0x1.2db5cep-1f, 0x1.465facp1f, -0x1.4abbbep2f);
  s = fma(s, r2, -0x1.777a5cp-24f);  // pi in two parts
  s = fma(r, 0x1.921fb6p1f, r * s);
  const float c = detail::polynomial(r2, 0x1.d4f7eep-3f, -0x1.55b2b6p0f, 0x1.03c1b0p2f, -0x1.3bd3ccp2f, 1.0f);
  return turn_quarters({s, c}, rounded);
}

}  // namespace detail

// Returns sin pi x and cos pi x, to 0.97 and 0.88 ulp: the reduction is exact for every x, the results at multiples of
// 1/2. They are not a number for infinite x.
SUTURE_FN sine_cosine<float> sincospi(float x) {
  const std::uint32_t sign = bit_cast<std::uint32_t>(x) & 0x80000000u;
  const float magnitude = bit_cast<float>(bit_cast<std::uint32_t>(x) ^ sign);
  // Every float of 2^24 or more is an even integer.
  const float beyond = magnitude < detail::infinity ? 0.0f : detail::not_a_number;
  const float a = magnitude < 0x1p24f ? magnitude : beyond;
  const float turns = fma(a, 0.5f, 0x1p23f) - 0x1p23f;
  const sine_cosine<float> value = detail::sincospi_small(fma(turns, -2.0f, a));
  return {bit_cast<float>(bit_cast<std::uint32_t>(value.sine) ^ sign), value.cosine};
}
SUTURE_FN float sinpi(float x) { return sincospi(x).sine; }
SUTURE_FN float cospi(float x) { return sincospi(x).cosine; }

// Returns sin x and cos x, to 1.54 ulp, x in radians, |x| <= 2^17 = 131072; beyond, where the reduction would lose
// accuracy, not a number.
SUTURE_FN sine_cosine<float> sincos(float x) {
  const float magnitude = bit_cast<float>(bit_cast<std::uint32_t>(x) & 0x7fffffffu);
  const float bounded = magnitude <= 0x1p17f ? x : detail::not_a_number;
  const float rounded = fma(bounded, 0x1.45f306p-1f, detail::round_magic);
  const float n = rounded - detail::round_magic;
  // This is x - n pi/2 with pi/2 in three parts; the first step is exact.
  const float r = fma(n, 0x1.ee59dap-50f, fma(n, 0x1.777a5cp-25f, fma(n, -0x1.921fb6p0f, bounded)));
  const float r2 = r * r;
  float s = detail::polynomial(r2, -0x1.995406p-13f, 0x1.110778p-7f, -0x1.555546p-3f);
  s = fma(s * r2, r, r);
  const float c = detail::polynomial(r2, 0x1.99e80cp-16f, -0x1.6c0c28p-10f, 0x1.55554ap-5f, -0.5f, 1.0f);
  return detail::turn_quarters({s, c}, rounded);
}
SUTURE_FN float sin(float x) { return sincos(x).sine; }
SUTURE_FN float cos(float x) { return sincos(x).cosine; }

// Returns the angle of the point (x, y) in [-pi, pi], to 1.8 ulp, as C's atan2: signed zeros and infinities included.
SUTURE_FN float atan2(float y, float x) {
  const std::uint32_t y_sign = bit_cast<std::uint32_t>(y) & 0x80000000u;
  const float ay = bit_cast<float>(bit_cast<std::uint32_t>(y) ^ y_sign);
  const float ax = bit_cast<float>(bit_cast<std::uint32_t>(x) & 0x7fffffffu);
  const bool steep = ay > ax;
  const float small = steep ? ax : ay;
  const float large = steep ? ay : ax;
  float a = detail::select(large == 0.0f, 0.0f, detail::divide(small, large));
  a = detail::select(small == detail::infinity, 1.0f, a);
  const float a2 = a * a;
  float p = detail::polynomial(a2, 0x1.7eab64p-9f, -0x1.0c198ap-6f, 0x1.61ef92p-5f, -0x1.35510cp-4f, 0x1.b4deb8p-4f,
                               -0x1.230a94p-3f, 0x1.9978ecp-3f, -0x1.5554dcp-2f);
  p = fma(p * a2, a, a);
  // pi as a product of two floats is closer than either.
  p = detail::select(steep, fma(0x1.ddcb02p-1f, 0x1.aee9d6p0f, -p), p);
  p = detail::select(static_cast<std::int32_t>(bit_cast<std::uint32_t>(x)) < 0, fma(0x1.ddcb02p0f, 0x1.aee9d6p0f, -p),
                     p);
  return bit_cast<float>(bit_cast<std::uint32_t>(p) | y_sign);
}

// Returns sin x, cos x (1.5 ulp) and tan x (3.1 ulp, at the sampled arguments of the test) in double, x in radians, |x|
// <= 2^20; beyond, not a number. The polynomials are those of fdlibm (k_sin.c, k_cos.c, Copyright 1993 Sun
// Microsystems).
SUTURE_FN sine_cosine<double> sincos(double x) {
  const double bounded = x <= 0x1p20 && x >= -0x1p20 ? x : static_cast<double>(detail::not_a_number);
  constexpr double magic = 0x1.8p52;
  const double rounded = fma(bounded, 0x1.45f306dc9c883p-1, magic);
  const double n = rounded - magic;
  const double r =
      fma(n, 0x1.f1976b7ed8fbcp-110, fma(n, -0x1.1a62633145c07p-54, fma(n, -0x1.921fb54442d18p0, bounded)));
  const double r2 = r * r;
  double s = detail::polynomial(r2, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                                -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01);
  s = fma(s * r2, r, r);
  const double c = detail::polynomial(r2, -1.13596475577881948265e-11, 2.08757232129817482790e-09,
                                      -2.75573143513906633035e-07, 2.48015872894767294178e-05,
                                      -1.38888888888741095749e-03, 4.16666666666666019037e-02, -0.5, 1.0);
  return detail::turn_quarters({s, c}, rounded);
}
SUTURE_FN double sin(double x) { return sincos(x).sine; }
SUTURE_FN double cos(double x) { return sincos(x).cosine; }
SUTURE_FN double tan(double x) {
  const sine_cosine<double> value = sincos(x);
  return detail::divide(value.sine, value.cosine);
}

}  // namespace suture::math
