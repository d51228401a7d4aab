// SPDX-License-Identifier: Apache-2.0
// Error bounds of the elementary functions over the whole float domain, against the standard library in double and,
// where that error comes near the largest, in long double. SUTURE_WHOLE_DOMAIN=1 takes every float (minutes a function)
// instead of one in 4099.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include "suture/math/elementary.hpp"
#include "suture/math/symmetric_eigen.hpp"

namespace {

namespace math = suture::math;
using suture::bit_cast;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float smallest = std::numeric_limits<float>::denorm_min();
constexpr float largest = std::numeric_limits<float>::max();

// The distance of `got` from the exact result in units of the last place of the latter's binade; a wrong kind of value
// counts as infinitely far. A result beyond the largest number, or not a number, has to be so.
template <class T, class Exact>
double ulps(T got, Exact exact) {
  using limits = std::numeric_limits<T>;
  if (std::isnan(exact)) return std::isnan(got) ? 0 : HUGE_VAL;
  const T rounded = static_cast<T>(exact);
  if (got == rounded) return 0;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return HUGE_VAL;
  const int exponent = std::max(std::ilogb(exact), limits::min_exponent - 1);
  return static_cast<double>(std::abs(static_cast<Exact>(got) - exact) /
                             std::ldexp(Exact{1}, exponent - limits::digits + 1));
}

std::uint64_t stride() {
  const char* whole = std::getenv("SUTURE_WHOLE_DOMAIN");
  return whole != nullptr && *whole == '1' ? 1 : 4099;
}

struct worst {
  double error = 0;
  float at = 0;
};

template <class Function, class Exact>
void compare(worst& w, float x, const Function& function, const Exact& exact) {
  const float got = function(x);
  if (!(ulps(got, exact(static_cast<double>(x))) > w.error * 0.999)) return;
  const double error = ulps(got, exact(static_cast<long double>(x)));
  if (error > w.error) w = {error, x};
}

// The largest error over the floats in [low, high] and, when the range has no end, what is not a number.
template <class Function, class Exact>
void expect_within(double bound, const Function& function, const Exact& exact, float low = -infinity,
                   float high = infinity) {
  worst w;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += stride()) {
    const auto x = bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (x < low || x > high || (std::isnan(x) && high != infinity)) continue;
    compare(w, x, function, exact);
  }
  // The places where formulas meet.
  for (const float center : {0.5f, std::numbers::sqrt2_v<float> / 2, 1.0f, std::numbers::sqrt2_v<float>, 2.0f, 0.9277f,
                             0.25f, std::numbers::pi_v<float>, std::numbers::pi_v<float> / 2, 0x1p-126f}) {
    float x = center;
    for (int i = 0; i < 2000; ++i) x = std::nextafter(x, 0.0f);
    for (int i = 0; i < 4000; ++i, x = std::nextafter(x, infinity))
      for (const float signed_x : {x, -x})
        if (signed_x >= low && signed_x <= high) compare(w, signed_x, function, exact);
  }
  ::testing::Test::RecordProperty("largest_error_ulp", std::to_string(w.error));
  EXPECT_LE(w.error, bound) << "at " << w.at;
}

#define SUTURE_CALL(name) [](auto x) { return math::name(x); }
#define SUTURE_EXACT(name) [](auto x) { return std::name(x); }

TEST(Elementary, Exp2) { expect_within(0.88, SUTURE_CALL(exp2), SUTURE_EXACT(exp2)); }
TEST(Elementary, Exp) { expect_within(0.90, SUTURE_CALL(exp), SUTURE_EXACT(exp)); }
TEST(Elementary, Log2) { expect_within(1.47, SUTURE_CALL(log2), SUTURE_EXACT(log2)); }
TEST(Elementary, Log) { expect_within(0.92, SUTURE_CALL(log), SUTURE_EXACT(log)); }
TEST(Elementary, Sin) { expect_within(1.54, SUTURE_CALL(sin), SUTURE_EXACT(sin), -0x1p17f, 0x1p17f); }
TEST(Elementary, Cos) { expect_within(1.54, SUTURE_CALL(cos), SUTURE_EXACT(cos), -0x1p17f, 0x1p17f); }
TEST(Elementary, Erf) { expect_within(1.06, SUTURE_CALL(erf), SUTURE_EXACT(erf)); }

TEST(Elementary, Cbrt) { expect_within(0.501, SUTURE_CALL(cbrt), SUTURE_EXACT(cbrt)); }

// To its stated relative error, over the arguments and exponents of color transfer functions.
TEST(Elementary, PowerOfNormal) {
  for (const float y : {2.4f, 1 / 2.4f, 1 / 3.0f, -1.0f, 0.5f, 3.0f}) {
    double worst = 0;
    for (std::uint32_t bits = 0x3b000000u; bits <= 0x41000000u; bits += 97) {  // 2^-9 to 8
      const auto x = bit_cast<float>(bits);
      const long double power = static_cast<long double>(y) * std::log2(static_cast<long double>(x));
      const long double exact = std::exp2(power);
      const long double error = std::abs((math::detail::power_of_normal(x, y) - exact) / exact);
      worst = std::max(worst, static_cast<double>(error / (3 + 3 * std::abs(power))) * 0x1p24);
    }
    EXPECT_LE(worst, 1) << y;
  }
}

// To its stated absolute error, from what counts as 0 up to a little above 1.
TEST(Elementary, PowerOfFraction) {
  for (const float y : {0.05f, 0.7f, 1.0f, 1.5f, 3.0f, 40.0f}) {
    double worst = 0;
    for (std::uint32_t bits = 0x00800000u; bits <= math::detail::largest_fraction; bits += 1009) {
      const auto x = bit_cast<float>(bits);
      const long double exact = std::exp2(static_cast<long double>(y) * std::log2(static_cast<long double>(x)));
      worst = std::max(worst, static_cast<double>(std::abs(math::detail::power_of_fraction(x, y) - exact)));
    }
    EXPECT_LE(worst, std::exp2(-23.5)) << y;
    EXPECT_EQ(math::detail::power_of_fraction(0.0f, y), 0.0f);
    EXPECT_EQ(math::detail::power_of_fraction(0x1p-127f, y), 0.0f);
    EXPECT_EQ(math::detail::power_of_fraction(1.0f, y), 1.0f);
  }
  EXPECT_LE(math::detail::power_of_fraction(0.5f, 0x1p20f), 0x1p-124f);
  EXPECT_NEAR(math::detail::power_of_fraction(bit_cast<float>(math::detail::largest_fraction), 0x1p20f), 7.389f, .01f);
}

// To their stated errors, over what densities and colors need.
TEST(Elementary, ShortLog2) {
  double worst = 0;
  for (std::uint32_t bits = 0x00800000u; bits < 0x7f800000u;
       bits += bits < 0x40000000u && bits > 0x34000000u ? 13 : 1009) {
    const auto x = bit_cast<float>(bits);
    const long double exact = std::log2(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::abs(math::detail::short_log2(x) - exact) / (2 + std::abs(exact))));
  }
  EXPECT_LE(worst, std::exp2(-24));
  EXPECT_EQ(math::detail::short_log2(1.0f), 0.0f);
}

TEST(Elementary, ShortExp2) {
  double worst = 0;
  for (float x = -125; x <= 126; x += 1e-5f * (1 + std::abs(x) / 8)) {
    const long double exact = std::exp2(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::abs(math::detail::short_exp2(x, 1, 0) - exact) / exact));
  }
  EXPECT_LE(worst, std::exp2(-22.5));
  for (float x = -64; x < 0; x += 1e-5f)  // what stains rely on: no color exceeds white
    ASSERT_LE(math::detail::short_exp2(x, 1, 0), 1.0f) << x;
  EXPECT_EQ(math::detail::short_exp2(0, 240, 0), 240.0f);
  EXPECT_EQ(math::detail::short_exp2(3, .5f, -1), 3.0f);
  EXPECT_LE(math::detail::short_exp2(0x1.95c018p0f, 1, 0), 3.0f);  // what hed_jitter relies on
}

// sin pi x by exact reduction to |r| <= 1/2, where the multiplication by pi costs one rounding in T.
template <class T>
T exact_sinpi(T x) {
  if (!std::isfinite(x)) return nan;
  T r = std::remainder(x, T{2});
  if (r > T{0.5}) r = T{1} - r;
  if (r < T{-0.5}) r = T{-1} - r;
  return std::sin(std::numbers::pi_v<T> * r);
}
template <class T>
T exact_cospi(T x) {
  if (!std::isfinite(x)) return nan;
  return exact_sinpi(T{0.5} - std::abs(std::remainder(x, T{2})));
}
TEST(Elementary, SinPi) {
  expect_within(0.97, SUTURE_CALL(sinpi), [](auto x) { return exact_sinpi(x); });
}
TEST(Elementary, CosPi) {
  expect_within(0.88, SUTURE_CALL(cospi), [](auto x) { return exact_cospi(x); });
}

TEST(Elementary, SquareRootIsCorrectlyRounded) {
  expect_within(0.5, SUTURE_CALL(sqrt), [](auto x) { return std::sqrt(x); });
}

// The powers in use: gamma, cube roots, transfer functions.
TEST(Elementary, Pow) {
  for (const float y : {0.3f, 1 / 3.0f, 1 / 2.4f, 0.5f, 0.7f, 1.5f, 2.0f, 2.4f, 3.0f, -1.0f, -0.4f})
    expect_within(
        1.10, [y](float x) { return math::pow(x, y); },
        [y](auto x) { return x < 0 ? decltype(x){nan} : std::pow(x, static_cast<decltype(x)>(y)); });
}

TEST(Elementary, PowOfAnyExponent) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> unit(-1, 1);
  worst w;
  for (int i = 0; i < 1000000; ++i) {
    const bool near_one = i % 2 == 0;
    const float x = near_one ? 1 + 0.5f * unit(random) : bit_cast<float>(static_cast<std::uint32_t>(random()) >> 1);
    const float y = unit(random) * 150 / (std::abs(std::log2(x)) + 1e-7f);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    compare(
        w, x, [y](float b) { return math::pow(b, y); },
        [y](auto b) { return std::pow(b, static_cast<decltype(b)>(y)); });
  }
  ::testing::Test::RecordProperty("largest_error_ulp", std::to_string(w.error));
  EXPECT_LE(w.error, 3.6) << "at " << w.at;
}

TEST(Elementary, PowAtTheEndsOfItsDomain) {
  for (std::uint64_t bits = 0; bits <= 0x7f800000u; bits += 1009) {
    const auto x = bit_cast<float>(static_cast<std::uint32_t>(bits));
    EXPECT_EQ(math::pow(x, 1.0f), x);
    EXPECT_EQ(math::pow(x, 0.0f), 1.0f);
    EXPECT_EQ(math::pow(1.0f, x), 1.0f);
    EXPECT_EQ(math::pow(1.0f, -x), 1.0f);
  }
  for (const float x : {0.0f, smallest, 0.25f, 1.0f, 3.0f, largest, infinity, nan})
    for (const float y :
         {-infinity, -largest, -3.0f, -0.5f, 0.0f, smallest, 0.5f, 1.0f, 3.0f, largest, infinity, nan}) {
      const double expected = std::pow(static_cast<double>(x), static_cast<double>(y));
      EXPECT_LE(ulps(math::pow(x, y), expected), 1.0) << x << ' ' << y;
    }
  EXPECT_EQ(math::pow(-0.0f, 2.5f), 0.0f);
  EXPECT_TRUE(std::isnan(math::pow(-2.0f, 2.0f)));
  EXPECT_TRUE(std::isnan(math::pow(-infinity, 0.5f)));
  EXPECT_EQ(math::pow(-2.0f, 0.0f), 1.0f);
}

TEST(Elementary, PowersOfTwoAreExact) {
  for (int n = -149; n <= 127; ++n) {
    const float power = std::ldexp(1.0f, n);
    EXPECT_EQ(math::exp2(static_cast<float>(n)), power);
    EXPECT_EQ(math::log2(power), static_cast<float>(n));
    EXPECT_EQ(math::pow(2.0f, static_cast<float>(n)), power);
  }
  EXPECT_EQ(math::exp2(128.0f), infinity);
  EXPECT_EQ(math::exp2(-150.0f), 0.0f);
}

TEST(Elementary, LogarithmsOutsideTheirDomain) {
  for (const float zero : {0.0f, -0.0f}) {
    EXPECT_EQ(math::log2(zero), -infinity);
    EXPECT_EQ(math::log(zero), -infinity);
    EXPECT_EQ(math::log(static_cast<double>(zero)), -HUGE_VAL);
  }
  for (const float x : {-smallest, -1.0f, -infinity, nan}) {
    EXPECT_TRUE(std::isnan(math::log2(x))) << x;
    EXPECT_TRUE(std::isnan(math::log(x))) << x;
    EXPECT_TRUE(std::isnan(math::log(static_cast<double>(x)))) << x;
  }
  EXPECT_EQ(math::log(infinity), infinity);
  EXPECT_EQ(math::log2(infinity), infinity);
  EXPECT_EQ(math::log(HUGE_VAL), HUGE_VAL);
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_EQ(math::log(1.0), 0.0);
}

TEST(Elementary, CubesAreExactAndSignsStay) {
  for (int n = -1000; n <= 1000; ++n) {
    const auto x = static_cast<float>(n) / 4;
    if (std::abs(n) <= 255) {
      EXPECT_EQ(math::cbrt(x * x * x), x);
    }
  }
  EXPECT_EQ(bit_cast<std::uint32_t>(math::cbrt(-0.0f)), 0x80000000u);
  EXPECT_EQ(math::cbrt(0.0f), 0.0f);
  EXPECT_EQ(math::cbrt(-infinity), -infinity);
  EXPECT_EQ(math::cbrt(infinity), infinity);
  EXPECT_TRUE(std::isnan(math::cbrt(nan)));
  for (int n = -49; n <= 42; ++n) EXPECT_EQ(math::cbrt(std::ldexp(1.0f, 3 * n)), std::ldexp(1.0f, n));
}

TEST(Elementary, HalfTurnsAreExact) {
  for (int n = -4000; n <= 4000; ++n) {
    const float sines[] = {0, 1, 0, -1};
    const float x = static_cast<float>(n) / 2;
    EXPECT_EQ(math::sinpi(x), sines[n & 3]) << x;
    EXPECT_EQ(math::cospi(x), sines[(n + 1) & 3]) << x;
  }
  EXPECT_EQ(math::cospi(8388607.0f), -1.0f);
  EXPECT_EQ(math::cospi(16777215.0f), -1.0f);
  EXPECT_EQ(math::sinpi(4194303.5f), -1.0f);
  EXPECT_EQ(math::sinpi(-4194303.5f), 1.0f);
  EXPECT_EQ(math::cospi(-largest), 1.0f);
}

TEST(Elementary, SineOfAnArgumentTooLargeToReduceIsRefused) {
  EXPECT_TRUE(std::isnan(math::sin(0x1.000002p17f)));
  EXPECT_TRUE(std::isnan(math::cos(-0x1.000002p17f)));
  EXPECT_TRUE(std::isnan(math::sin(infinity)));
  EXPECT_TRUE(std::isnan(math::sin(nan)));
  EXPECT_TRUE(std::isnan(math::sin(0x1.0000000000001p20)));
  EXPECT_TRUE(std::isnan(math::cos(HUGE_VAL)));
}

TEST(Elementary, ArcTangent) {
  std::mt19937_64 random(2);
  worst w;
  for (int i = 0; i < 2000000; ++i) {
    const std::uint64_t bits = random();
    float y = bit_cast<float>(static_cast<std::uint32_t>(bits));
    float x = bit_cast<float>(static_cast<std::uint32_t>(bits >> 32));
    if (i % 2 == 0) {  // of like size
      y = static_cast<float>(static_cast<std::int32_t>(bits));
      x = static_cast<float>(static_cast<std::int32_t>(bits >> 32));
    }
    compare(
        w, x, [y](float b) { return math::atan2(y, b); },
        [y](auto b) { return std::atan2(static_cast<decltype(b)>(y), b); });
  }
  ::testing::Test::RecordProperty("largest_error_ulp", std::to_string(w.error));
  EXPECT_LE(w.error, 1.8) << "at " << w.at;

  for (const float y : {0.0f, -0.0f, smallest, 1.0f, -1.0f, largest, -largest, infinity, -infinity})
    for (const float x : {0.0f, -0.0f, smallest, 1.0f, -1.0f, largest, -largest, infinity, -infinity}) {
      EXPECT_LE(ulps(math::atan2(y, x), std::atan2(static_cast<double>(y), static_cast<double>(x))), 1.8)
          << y << ' ' << x;
      EXPECT_EQ(std::signbit(math::atan2(y, x)), std::signbit(y)) << y << ' ' << x;
    }
  EXPECT_TRUE(std::isnan(math::atan2(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(math::atan2(1.0f, nan)));
}

template <class Function, class Exact>
double worst_in_double(double low, double high, const Function& function, const Exact& exact) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> inside(low, high);
  double error = 0;
  for (int i = 0; i < 400000; ++i) {
    const double x = inside(random);
    error = std::max(error, ulps(function(x), exact(static_cast<long double>(x))));
  }
  return error;
}

TEST(Elementary, InDouble) {
  for (const double reach : {1.0, 7.0, 1000.0, 0x1p20}) {
    EXPECT_LE(worst_in_double(-reach, reach, SUTURE_CALL(sin), SUTURE_EXACT(sin)), 1.5) << reach;
    EXPECT_LE(worst_in_double(-reach, reach, SUTURE_CALL(cos), SUTURE_EXACT(cos)), 1.5) << reach;
    EXPECT_LE(worst_in_double(-reach, reach, SUTURE_CALL(tan), SUTURE_EXACT(tan)), 3.1) << reach;
  }
  for (const double reach : {1.0, 709.0, 750.0})
    EXPECT_LE(worst_in_double(-reach, reach, SUTURE_CALL(exp), SUTURE_EXACT(exp)), 0.9) << reach;
  for (const double reach : {1.0, 2.0, 1e-310, 1e300})
    EXPECT_LE(worst_in_double(0, reach, SUTURE_CALL(log), SUTURE_EXACT(log)), 0.8) << reach;
  EXPECT_EQ(math::exp(HUGE_VAL), HUGE_VAL);
  EXPECT_EQ(math::exp(-HUGE_VAL), 0.0);
  EXPECT_EQ(math::exp(0.0), 1.0);
  EXPECT_TRUE(std::isnan(math::exp(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_EQ(math::sin(0.0), 0.0);
  EXPECT_EQ(math::cos(0.0), 1.0);
  EXPECT_EQ(math::tan(0.0), 0.0);
}

// Values and vectors by numpy.linalg.eigh.
TEST(SymmetricEigen, AsNumpy) {
  struct example {
    suture::matrix3 matrix;
    double values[3], vectors[3][3];
  };
  const example examples[] = {{{{{0.0212032315, 0.0193851491, 0.0091567114},
                                 {0.0193851491, 0.0612207886, 0.0120803776},
                                 {0.0091567114, 0.0120803776, 0.0042727705}}},
                               {0.0722346991050755, 0.01446017208094759, 1.9194139769415183e-06},
                               {{0.37999333977472544, 0.8631284595990413, -0.332587317793442},
                                {0.9005386855332036, -0.42733181028901923, -0.08010992306349812},
                                {0.2112702950842358, 0.26906650877672517, 0.9396638102373234}}},
                              {{{{1e6, 1, 1e-3}, {1, 1e-6, .5}, {1e-3, .5, 3}}},
                               {1000000.000001, 3.0811388297669073, -0.0811388297679085},
                               {{0.9999999999995, -1.611698267550322e-07, -9.869271953642336e-07},
                                {1.0000000004997515e-06, 0.16018224271073522, 0.9870874576850622},
                                {1.0005030015077537e-09, 0.9870874576855554, -0.1601822427108163}}}};
  for (const example& e : examples) {
    const math::symmetric_eigen found = math::eigen_of_symmetric(e.matrix);
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(found.values[k], e.values[k], 4e-16 * e.values[0]);
      double dot = 0;
      for (int i = 0; i < 3; ++i) dot += found.vectors[i][k] * e.vectors[i][k];
      EXPECT_NEAR(std::abs(dot), 1, 1e-15);
    }
  }
}

TEST(SymmetricEigen, DecomposesAnyMatrix) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (int n = 0; n < 20000; ++n) {
    suture::matrix3 a;
    double largest_element = 0;
    for (int i = 0; i < 3; ++i)
      for (int j = i; j < 3; ++j) {
        a[i][j] = a[j][i] = n % 7 == 0 && i != j ? 0 : normal(random) * std::pow(10, n % 5 * normal(random));
        if (n % 11 == 0) a[i][j] = a[j][i] = 1;  // one value three times, or of rank one
        largest_element = std::max(largest_element, std::abs(a[i][j]));
      }
    const math::symmetric_eigen e = math::eigen_of_symmetric(a);
    EXPECT_GE(e.values[0], e.values[1]);
    EXPECT_GE(e.values[1], e.values[2]);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        long double sum = 0, dot = 0;
        for (int k = 0; k < 3; ++k) {
          sum += static_cast<long double>(e.vectors[i][k]) * e.values[k] * e.vectors[j][k];
          dot += static_cast<long double>(e.vectors[k][i]) * e.vectors[k][j];
        }
        ASSERT_NEAR(static_cast<double>(sum), a[i][j], 5e-15 * largest_element);
        ASSERT_NEAR(static_cast<double>(dot), i == j ? 1 : 0, 2e-15);
      }
  }
}

}  // namespace
