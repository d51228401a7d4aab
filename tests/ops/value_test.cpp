// SPDX-License-Identifier: Apache-2.0
// Value operations against their formulas in long double and published values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <suture/ops/value/brightness.hpp>
#include <suture/ops/value/cast.hpp>
#include <suture/ops/value/clamp.hpp>
#include <suture/ops/value/contrast.hpp>
#include <suture/ops/value/gamma.hpp>
#include <suture/ops/value/gaussian_noise.hpp>
#include <suture/ops/value/invert.hpp>
#include <suture/ops/value/rescale.hpp>
#include <suture/ops/value/rician_noise.hpp>
#include <suture/ops/value/scale_intensity.hpp>
#include <suture/ops/value/window.hpp>
#include <suture/pipeline/concepts.hpp>
#include <vector>

#include "support/expect_says.hpp"

namespace {

using namespace suture;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr double eps = 0x1p-23;
const site here{"tested operation", 7};

draws random_of(std::uint64_t sample) { return {2024, 3, sample, 11}; }

// The message of the error must name the operation, the sample and the value.
template <class Call>
void expect_error(Call call, const std::string& value) {
  expect_parts(message(call), {"tested operation", "sample 7", value.c_str()});
}

// ---- windows ---------------------------------------------------------------------------------------------------

struct voi {
  long double c, w, low, high;

  static voi of(const window& op) {
    const bool exact = op.function == voi_function::linear_exact;
    return {exact ? static_cast<long double>(op.center) : op.center - 0.5L,
            exact ? static_cast<long double>(op.width) : op.width - 1.0L, op.low, op.high};
  }
  long double operator()(long double x) const {
    if (x <= c - w / 2) return low;
    if (x > c + w / 2) return high;
    return ((x - c) / w + 0.5L) * (high - low) + low;
  }
};

long double sigmoid(const sigmoid_window& op, long double x) {
  const long double range = static_cast<long double>(op.high) - op.low;
  return range / (1 + std::exp(-4 * (x - op.center) / op.width)) + op.low;
}

TEST(window, published_values) {
  const window exact{.center = 40, .width = 400, .low = 0, .high = 255};
  window linear = exact;
  linear.function = voi_function::linear;
  const struct {
    float x;
    double linear, exact;
  } rows[] = {
      {-24, 86.9172932331, 86.7}, {40, 127.8195488722, 127.5}, {239, 255, 254.3625}, {-160, 0, 0}, {240, 255, 255}};
  for (const auto& row : rows) {
    EXPECT_NEAR(exact.prepare(here)(row.x), row.exact, 4 * eps * 255) << row.x;
    EXPECT_NEAR(linear.prepare(here)(row.x), row.linear, 4 * eps * 255) << row.x;
  }
  const auto step = window{.center = 40, .width = 1, .low = 0, .high = 255, .function = voi_function::linear};
  EXPECT_EQ(step.prepare(here)(39.5f), 0);
  EXPECT_EQ(step.prepare(here)(40), 255);
}

TEST(window, follows_the_formula_and_reaches_its_ends_exactly) {
  const float ranges[][2] = {{0, 1}, {0, 255}, {-1, 1}, {.1f, .9f}, {-1000, -3}};
  const float windows[][2] = {{40, 400}, {-600, 1500}, {300, 1600.5f},    {.1f, .7f},  {1000.3f, 1.7f},
                              {1e5f, 3}, {40, 1},      {1234.567f, .01f}, {0, 1e-30f}, {-3e4f, 6e4f}};
  for (const auto& [center, width] : windows)
    for (const auto& [low, high] : ranges)
      for (const voi_function function : {voi_function::linear_exact, voi_function::linear}) {
        if (function == voi_function::linear && width < 1) continue;
        const window op{.center = center, .width = width, .low = low, .high = high, .function = function};
        const auto f = op.prepare(here);
        const voi expected = voi::of(op);
        const auto check = [&](float x) {
          const float y = f(x);
          const long double right = expected(x);
          ASSERT_NEAR(y, static_cast<double>(right), 4 * eps * std::max(std::abs(op.low), std::abs(op.high)))
              << "center " << op.center << " width " << op.width << " x " << x;
          ASSERT_TRUE(op.low <= y && y <= op.high) << y;
          if (x <= expected.c - expected.w / 2) {
            ASSERT_EQ(y, op.low) << x;
          } else if (x >= expected.c + expected.w / 2) {
            ASSERT_EQ(y, op.high) << x;
          }
        };
        for (int k = -64; k <= 1088; ++k) check(static_cast<float>(expected.c + expected.w * (k / 1024.0L - 0.5L)));
        for (int hu = -1100; hu <= 3100; hu += 7) check(static_cast<float>(hu));
        for (const int side : {-1, 1}) {
          float x = static_cast<float>(expected.c + side * expected.w / 2);
          for (int k = 0; k < 8; ++k) x = std::nextafter(x, -infinity);
          for (int k = 0; k < 16; ++k, x = std::nextafter(x, infinity)) check(x);
        }
        check(infinity);
        check(-infinity);
        ASSERT_EQ(f(not_a_number), low);
      }
}

TEST(window, width_1_of_linear_is_a_step_for_every_float) {
  std::vector<float> centers{40.0f, .5f, 40.1f, 1e6f, 0.0f};
  for (int k = -40; k <= 40; ++k) centers.push_back(.0137f * static_cast<float>(k));  // the step is between two floats
  for (const float center : centers) {
    const window op{.center = center, .width = 1, .low = 2, .high = 3, .function = voi_function::linear};
    const auto f = op.prepare(here);
    const long double at = center - 0.5L;
    float x = static_cast<float>(at);
    for (int k = 0; k < 4; ++k) x = std::nextafter(x, -infinity);
    for (int k = 0; k < 9; ++k, x = std::nextafter(x, infinity)) EXPECT_EQ(f(x), x <= at ? 2 : 3) << center << ' ' << x;
    for (const float far : {-infinity, -1e30f, 1e30f, infinity}) EXPECT_EQ(f(far), far <= at ? 2 : 3);
    EXPECT_EQ(f(not_a_number), 2);
  }
}

TEST(window, zero_is_positive_zero) {
  const auto f = window{.center = 40, .width = 400, .low = -0.0f}.prepare(here);
  EXPECT_FALSE(std::signbit(f(-1000)));
  const auto g = window{.center = 40, .width = 400, .low = -1, .high = -0.0f}.prepare(here);
  EXPECT_FALSE(std::signbit(g(1000)));
}

TEST(window, errors_name_the_value) {
  expect_error([] { return window{.center = 40, .width = 0}.prepare(here); }, "width 0");
  expect_error([] { return window{.center = 40, .width = -3}.prepare(here); }, "width -3");
  expect_error([] { return window{.center = 40, .width = not_a_number}.prepare(here); }, "width nan");
  expect_error([] { return window{.center = 40, .width = infinity}.prepare(here); }, "width inf");
  expect_error([] { return window{.center = infinity, .width = 4}.prepare(here); }, "center inf");
  expect_error([] { return window{.center = 0, .width = .5f, .function = voi_function::linear}.prepare(here); },
               "width 0.5");
  expect_error([] { return window{.center = 40, .width = 4, .low = 1, .high = 1}.prepare(here); }, "low 1");
  expect_error([] { return window{.center = 40, .width = 4, .low = 2, .high = -5}.prepare(here); }, "high -5");
  EXPECT_NO_THROW((window{.center = 0, .width = .5f}.prepare(here)));
  expect_error([] { return window{.center = -3e38f, .width = 1e38f}.prepare(here); },
               "center -3e+38 and width 1e+38 begin the window at -3.5");
  EXPECT_EQ((window{.center = 3e38f, .width = 1e38f}.prepare(here)(3e38f)), .5f);
}

TEST(sigmoid_window, published_values) {
  const auto f = sigmoid_window{.center = 40, .width = 400, .low = 0, .high = 255}.prepare(here);
  EXPECT_NEAR(f(-24), 88.0378675453, 4 * eps * 255);
  EXPECT_NEAR(f(40), 127.5, 4 * eps * 255);
  EXPECT_NEAR(f(239), 224.3345000707, 4 * eps * 255);
  EXPECT_NEAR(f(-160), 30.3967451156, 4 * eps * 255);
  EXPECT_NEAR(f(240), 224.6032548844, 4 * eps * 255);
}

TEST(sigmoid_window, follows_the_formula) {
  for (const sigmoid_window op : {sigmoid_window{.center = 40, .width = 400},
                                  {.center = -600, .width = 3, .low = -1},
                                  {.center = 0, .width = 1e-3f, .low = 5, .high = 1000}}) {
    const auto f = op.prepare(here);
    for (int k = -4000; k <= 4000; ++k) {
      const float x = op.center + op.width * static_cast<float>(k) / 512;
      ASSERT_NEAR(f(x), static_cast<double>(sigmoid(op, x)), 4 * eps * std::max(std::abs(op.low), op.high)) << x;
    }
    EXPECT_EQ(f(-infinity), op.low);
    EXPECT_NEAR(f(infinity), op.high, eps * op.high);
    EXPECT_TRUE(std::isnan(f(not_a_number)));
  }
}

TEST(sigmoid_window, errors_name_the_value) {
  expect_error([] { return sigmoid_window{.center = 40, .width = 0}.prepare(here); }, "width 0");
  expect_error([] { return sigmoid_window{.center = not_a_number, .width = 1}.prepare(here); }, "center nan");
  expect_error([] { return sigmoid_window{.center = 0, .width = 1, .low = 3}.prepare(here); }, "low 3");
}

// ---- ranges ----------------------------------------------------------------------------------------------------

TEST(scale_intensity, published_values) {
  const auto f = scale_intensity{.a_min = -57, .a_max = 164}.prepare(here);
  EXPECT_NEAR(f(0), 0.2579185520, 4 * eps);
  EXPECT_NEAR(f(53.5f), 0.5, 4 * eps);
  EXPECT_NEAR(f(300), 1.6153846154, 4 * eps * 2);
  EXPECT_NEAR(f(-100), -0.1945701357, 4 * eps);
}

TEST(scale_intensity, clips_to_exact_ends) {
  for (const auto& [low, high] : {std::pair(0.0f, 1.0f), std::pair(-1.0f, 1.0f), std::pair(.1f, .9f)})
    for (const auto& [from, to] : {std::pair(-57.0f, 164.0f), std::pair(-160.0f, 240.0f), std::pair(.1f, .3f)}) {
      const auto f =
          scale_intensity{.a_min = from, .a_max = to, .b_min = low, .b_max = high, .clip = true}.prepare(here);
      for (int k = -200; k <= 1200; ++k) {
        const float x = from + (to - from) * static_cast<float>(k) / 1000;
        const long double share = (static_cast<long double>(x) - from) / (static_cast<long double>(to) - from);
        const long double y = std::clamp(share * (static_cast<long double>(high) - low) + low,
                                         static_cast<long double>(low), static_cast<long double>(high));
        ASSERT_NEAR(f(x), static_cast<double>(y), 4 * eps) << x;
      }
      EXPECT_EQ(f(from), low);
      EXPECT_EQ(f(to), high);
      EXPECT_EQ(f(not_a_number), low);
    }
}

TEST(scale_intensity, may_turn_a_range_around_without_clipping) {
  const auto f = scale_intensity{.a_min = 240, .a_max = -160, .b_min = 0, .b_max = 1}.prepare(here);
  EXPECT_NEAR(f(240), 0, 4 * eps);
  EXPECT_NEAR(f(-160), 1, 4 * eps);
  EXPECT_TRUE(std::isnan(f(not_a_number)));
}

TEST(scale_intensity, errors_name_the_value) {
  expect_error([] { return scale_intensity{.a_min = 3, .a_max = 3}.prepare(here); }, "a_max 3");
  expect_error([] { return scale_intensity{.a_min = 3, .a_max = infinity}.prepare(here); }, "a_max inf");
  expect_error([] { return scale_intensity{.a_min = 3, .a_max = 2, .clip = true}.prepare(here); }, "a_min 3");
  expect_error([] { return scale_intensity{.a_min = 1, .a_max = 2, .b_min = 4, .clip = true}.prepare(here); },
               "b_min 4");
  expect_error([] { return scale_intensity{.a_min = 1, .a_max = 2, .b_max = not_a_number}.prepare(here); },
               "b_max nan");
}

TEST(rescale, is_slope_and_intercept) {
  const rescale f{.slope = 1.5f, .intercept = -1024};
  for (int stored = -2000; stored < 4096; ++stored)
    ASSERT_EQ(f(static_cast<float>(stored)), static_cast<float>(1.5 * stored - 1024));
  expect_error([] { rescale{.slope = 0}.check(here); }, "slope 0");
  expect_error([] { rescale{.intercept = infinity}.check(here); }, "intercept inf");
  EXPECT_NO_THROW(rescale{}.check(here));
}

TEST(clamp, limits_and_takes_nan_to_low) {
  const auto f = suture::clamp{.low = -57, .high = 164}.prepare(here);
  EXPECT_EQ(f(-57.001f), -57);
  EXPECT_EQ(f(-56.5f), -56.5f);
  EXPECT_EQ(f(163.5f), 163.5f);
  EXPECT_EQ(f(1e20f), 164);
  EXPECT_EQ(f(-infinity), -57);
  EXPECT_EQ(f(infinity), 164);
  EXPECT_EQ(f(not_a_number), -57);
  EXPECT_EQ((suture::clamp{.low = 3, .high = 3}.prepare(here)(7)), 3);
  EXPECT_EQ((suture::clamp{.low = 0, .high = infinity}.prepare(here)(1e30f)), 1e30f);
  expect_error([] { return suture::clamp{.low = 2, .high = 1.5f}.prepare(here); }, "high 1.5");
  expect_error([] { return suture::clamp{.low = not_a_number}.prepare(here); }, "nan");
}

TEST(invert, mirrors_at_the_pivot) {
  EXPECT_EQ(invert{}.prepare(here)(3.5f), -3.5f);
  const auto f = invert{.pivot = .5f}.prepare(here);
  EXPECT_EQ(f(0), 1);
  EXPECT_EQ(f(1), 0);
  EXPECT_EQ(f(.25f), .75f);
  expect_error([] { return invert{.pivot = not_a_number}.prepare(here); }, "pivot nan");
}

// ---- gamma, contrast, brightness -------------------------------------------------------------------------------

TEST(gamma, published_values) {
  const float x[] = {-1, 0, 1, 2, 6};
  const double up[] = {-1, -0.6220355270, 0.0690449676, 0.9639610121, 6};
  const double down[] = {-1, 0.7927899625, 1.9123958864, 2.8682478276, 6};
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR((suture::gamma{.exponent = 1.5f, .range = {-1, 6}}.prepare(here)(x[i])), up[i], 4 * eps * 7);
    EXPECT_NEAR((suture::gamma{.exponent = .7f, .range = {-1, 6}}.prepare(here)(x[i])), down[i], 4 * eps * 7);
  }
}

TEST(gamma, follows_the_formula_beyond_both_ends) {
  for (const float exponent : {.3f, .7f, 1.0f, 1.5f, 2.0f, 4.5f})
    for (const interval range : {interval(0, 1), interval(-1, 6), interval(-160, 240)}) {
      const auto f = suture::gamma{.exponent = exponent, .range = range}.prepare(here);
      const long double extent = static_cast<long double>(range.high) - range.low;
      for (int k = -1000; k <= 2000; ++k) {
        const float x = range.low + (range.high - range.low) * static_cast<float>(k) / 1000;
        const long double n = (static_cast<long double>(x) - range.low) / extent;
        const long double curve = std::pow(std::abs(n), static_cast<long double>(exponent)) * extent;
        const long double y = (n < 0 ? -curve : curve) + range.low;
        const double size = static_cast<double>(std::max(curve, extent));
        ASSERT_NEAR(f(x), static_cast<double>(y), 6 * eps * size) << exponent << ' ' << x;
      }
      EXPECT_EQ(f(range.low), range.low);
      EXPECT_TRUE(std::isnan(f(not_a_number)));
    }
}

TEST(gamma, errors_name_the_value) {
  expect_error([] { return suture::gamma{.exponent = 0}.prepare(here); }, "exponent 0");
  expect_error([] { return suture::gamma{.exponent = -2}.prepare(here); }, "exponent -2");
  expect_error([] { return suture::gamma{.exponent = not_a_number}.prepare(here); }, "exponent nan");
  expect_error([] { return suture::gamma{.exponent = 1, .range = {2, 1}}.prepare(here); }, "[2, 1]");
  expect_error([] { return suture::gamma{.exponent = 1, .range = 3}.prepare(here); }, "[3, 3]");
}

TEST(contrast, published_values) {
  const float x[] = {-1, 0, 1, 2, 6};
  const double up[] = {-1.65, -0.4, 0.85, 2.1, 7.1}, down[] = {-0.35, 0.4, 1.15, 1.9, 4.9};
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR((contrast{.factor = 1.25f, .pivot = 1.6f}(x[i])), up[i], 4 * eps * 7);
    EXPECT_NEAR((contrast{.factor = .75f, .pivot = 1.6f}(x[i])), down[i], 4 * eps * 7);
  }
  EXPECT_EQ((contrast{.factor = 3, .pivot = 12.3f}(12.3f)), 12.3f);
  expect_error([] { contrast{.factor = infinity}.check(here); }, "factor inf");
  expect_error([] { contrast{.factor = 1, .pivot = not_a_number}.check(here); }, "pivot nan");
}

TEST(brightness, adds_or_multiplies) {
  EXPECT_EQ(brightness{.offset = 2.5f}(4), 6.5f);
  EXPECT_EQ(brightness_factor{.factor = .75f}(-8), -6);
  EXPECT_FALSE(std::signbit(brightness_factor{.factor = -1}(0)));
  expect_error([] { brightness{.offset = infinity}.check(here); }, "offset inf");
  expect_error([] { brightness_factor{.factor = not_a_number}.check(here); }, "factor nan");
}

// ---- casts -----------------------------------------------------------------------------------------------------

TEST(cast, stores) {
  EXPECT_EQ(suture::cast<std::uint8_t>{}(254.5f), 254);
  EXPECT_EQ(suture::cast<std::uint8_t>{}(300), 255);
  EXPECT_EQ(suture::cast<std::int16_t>{}(-1024.5f), -1024);
  EXPECT_EQ(suture::cast<half>{}(1.0f).bits, 0x3c00);
  EXPECT_EQ(suture::cast<bfloat16>{}(-1.0f).bits, 0xbf80);
  EXPECT_EQ(suture::cast<float>{}(1.25f), 1.25f);
}

TEST(cast, of_a_uint8_window_rounds_ties_to_even) {
  const auto f = window{.center = 40, .width = 400, .low = 0, .high = 255}.prepare(here);
  EXPECT_EQ(suture::cast<std::uint8_t>{}(f(40)), 128);  // 127.5
  EXPECT_EQ(suture::cast<std::uint8_t>{}(f(-24)), 87);  // 86.7
}

// ---- random operations -----------------------------------------------------------------------------------------

static_assert(random_operation<random_gamma> && random_operation<random_contrast>);
static_assert(random_operation<random_brightness> && random_operation<random_brightness_factor>);
static_assert(random_operation<gaussian_noise> && random_operation<rician_noise>);
static_assert(role_of<random_gamma>() == role::value && role_of<gaussian_noise>() == role::value);
static_assert(role_of<window>() == role::value && role_of<suture::cast<half>>() == role::value);
static_assert(std::is_trivially_copyable_v<additive_noise> && std::is_trivially_copyable_v<magnitude_noise>);

TEST(random_value_operations, have_kinds_of_their_own_and_probability_1) {
  EXPECT_EQ(random_gamma::kind, 32);
  EXPECT_EQ(gaussian_noise::kind, 33);
  EXPECT_EQ(rician_noise::kind, 34);
  EXPECT_EQ(random_contrast::kind, 35);
  EXPECT_EQ(random_brightness::kind, 36);
  EXPECT_EQ(random_brightness_factor::kind, 37);
  EXPECT_EQ(random_gamma{}.probability, 1);
  EXPECT_EQ(gaussian_noise{}.probability, 1);
  EXPECT_EQ(rician_noise{}.probability, 1);
  EXPECT_EQ(random_contrast{}.probability, 1);
  EXPECT_EQ(random_brightness{}.probability, 1);
  EXPECT_EQ(random_brightness_factor{}.probability, 1);
}

// Draws the parameter for many samples; each must lie in [low, high]. Returns the share below `split`.
template <class Draw>
double share_below(Draw draw, float low, float high, float split) {
  constexpr int samples = 20000;
  int below = 0;
  for (int s = 0; s < samples; ++s) {
    draws random = random_of(static_cast<std::uint64_t>(s));
    const float value = draw(random);
    EXPECT_TRUE(low <= value && value <= high) << value;
    below += value < split ? 1 : 0;
  }
  return static_cast<double>(below) / samples;
}
// Five standard deviations of a share near 1/2 among 20000.
constexpr double noise_of_share = 5 * 0.5 / 141.4;

TEST(random_value_operations, draw_by_their_law) {
  const auto gamma_by = [](interval_law law, interval range) {
    return [=](draws& random) { return random_gamma{.range = range, .law = law}.draw(random, here).exponent; };
  };
  EXPECT_NEAR(share_below(gamma_by(interval_law::uniform, {.5f, 4.5f}), .5f, 4.5f, 2.5f), 0.5, noise_of_share);
  EXPECT_NEAR(share_below(gamma_by(interval_law::uniform, {.5f, 4.5f}), .5f, 4.5f, 1.5f), 0.25, noise_of_share);
  EXPECT_NEAR(share_below(gamma_by(interval_law::log_uniform, {.25f, 4}), .25f, 4, 1), 0.5, noise_of_share);
  EXPECT_NEAR(share_below(gamma_by(interval_law::log_uniform, {.25f, 4}), .25f, 4, .5f), 0.25, noise_of_share);
  EXPECT_NEAR(share_below(gamma_by(interval_law::mixture, {.7f, 1.5f}), .7f, 1.5f, 1), 0.5, noise_of_share);
  EXPECT_NEAR(share_below(gamma_by(interval_law::mixture, {.7f, 1.5f}), .7f, 1.5f, .85f), 0.25, noise_of_share);
  EXPECT_NEAR(share_below(gamma_by(interval_law::mixture, {.7f, 1.5f}), .7f, 1.5f, 1.25f), 0.75, noise_of_share);

  EXPECT_NEAR(share_below([](draws& r) { return random_contrast{}.draw(r, here).factor; }, .75f, 1.25f, 1), 0.5,
              noise_of_share);
  EXPECT_NEAR(share_below([](draws& r) { return random_brightness{}.draw(r, here).offset; }, -.1f, .1f, 0), 0.5,
              noise_of_share);
  EXPECT_NEAR(share_below([](draws& r) { return random_brightness_factor{}.draw(r, here).factor; }, .75f, 1.25f, 1),
              0.5, noise_of_share);
  EXPECT_NEAR(share_below(
                  [](draws& r) {
                    return gaussian_noise{.sigma = {0, .1f}}.draw(r, here).sigma;
                  },
                  0, .1f, .05f),
              0.5, noise_of_share);
  EXPECT_NEAR(share_below(
                  [](draws& r) {
                    return rician_noise{.sigma = {0, .1f}}.draw(r, here).sigma;
                  },
                  0, .1f, .05f),
              0.5, noise_of_share);
}

TEST(random_value_operations, draw_a_single_number_as_it_is) {
  for (std::uint64_t s = 0; s < 100; ++s) {
    draws random = random_of(s);
    ASSERT_EQ((random_gamma{.range = 1.3f}.draw(random, here).exponent), 1.3f);
    ASSERT_EQ((random_gamma{.range = 1.3f, .law = interval_law::log_uniform}.draw(random, here).exponent), 1.3f);
    ASSERT_EQ((random_gamma{.range = 1, .law = interval_law::mixture}.draw(random, here).exponent), 1);
    ASSERT_EQ((gaussian_noise{.sigma = .02f}.draw(random, here).sigma), .02f);
  }
}

TEST(random_value_operations, pass_on_what_is_not_drawn) {
  draws random = random_of(1);
  const auto g = random_gamma{.value_range = {-1, 6}}.draw(random, here);
  EXPECT_EQ(g.range.low, -1);
  EXPECT_EQ(g.range.high, 6);
  EXPECT_EQ((random_contrast{.pivot = 1.6f}.draw(random, here).pivot), 1.6f);
  EXPECT_EQ((gaussian_noise{.mean = 3}.draw(random, here).mean), 3);
  EXPECT_EQ((rician_noise{.mean = 3}.draw(random, here).mean), 3);
}

// What a draw leaves for the next one.
template <class Op>
float next_after(const Op& op) {
  draws random = random_of(5);
  op.draw(random, here);
  return random.uniform(0, 1);
}

TEST(random_value_operations, take_the_same_slots_whatever_their_parameters) {
  for (const interval_law law : {interval_law::uniform, interval_law::log_uniform, interval_law::mixture})
    for (const interval range : {interval(.7f, 1.5f), interval(1, 1), interval(.01f, 100)}) {
      EXPECT_EQ(next_after(random_gamma{.range = range, .law = law}), next_after(random_gamma{}));
      EXPECT_EQ(next_after(random_contrast{.range = range, .law = law}), next_after(random_contrast{}));
      EXPECT_EQ(next_after(random_brightness_factor{.range = range, .law = law}),
                next_after(random_brightness_factor{}));
    }
  EXPECT_EQ(next_after(random_brightness{.range = {-5, 9}}), next_after(random_brightness{}));
  EXPECT_EQ(next_after(gaussian_noise{.sigma = {0, .1f}}), next_after(gaussian_noise{.sigma = 3}));
  EXPECT_EQ(next_after(rician_noise{.sigma = {0, .1f}}), next_after(rician_noise{.sigma = 3}));
}

TEST(random_value_operations, do_not_see_whether_they_fired) {
  // The planner's Bernoulli draw comes first, whatever the probability.
  for (const float probability : {0.0f, .3f, 1.0f}) {
    draws random = random_of(9), certain = random_of(9);
    random.bernoulli(probability);
    certain.bernoulli(1);
    EXPECT_EQ(random_gamma{}.draw(random, here).exponent, random_gamma{}.draw(certain, here).exponent);
  }
}

TEST(draws, several_at_once_are_those_one_by_one) {
  for (const interval_law law : {interval_law::uniform, interval_law::log_uniform, interval_law::mixture})
    for (const interval range : {interval{.7f, 1.5f}, interval{1, 2}, interval{.5f, 1}, interval{1}}) {
      draws at_once(1, 2, 3, 4), one_by_one(1, 2, 3, 4);
      float several[8];
      detail::draw_from(range, law, at_once, several);
      for (const float value : several) EXPECT_EQ(value, detail::draw_from(range, law, one_by_one));
      EXPECT_EQ(at_once.uniform(0, 1), one_by_one.uniform(0, 1));
    }
}

TEST(random_value_operations, errors_name_the_value) {
  draws random = random_of(1);
  expect_error([&] { random_gamma{.range = {2, 1}}.draw(random, here); }, "range [2, 1]");
  expect_error([&] { random_gamma{.range = {0, 1}}.draw(random, here); }, "range [0, 1]");
  expect_error(
      [&] {
        random_gamma{.range = {-1, 1}, .law = interval_law::log_uniform}.draw(random, here);
      },
      "range [-1, 1]");
  expect_error(
      [&] {
        random_gamma{.range = {1.5f, 2}, .law = interval_law::mixture}.draw(random, here);
      },
      "range [1.5, 2]");
  expect_error([&] { random_contrast{.range = {.5f, infinity}}.draw(random, here); }, "range [0.5, inf]");
  expect_error(
      [&] {
        random_contrast{.range = {.2f, .9f}, .law = interval_law::mixture}.draw(random, here);
      },
      "range [0.2, 0.9]");
  expect_error([&] { random_brightness{.range = {1, -1}}.check(here); }, "range [1, -1]");
  expect_error([&] { random_brightness_factor{.range = {2, 1}}.check(here); }, "range [2, 1]");
  expect_error([&] { gaussian_noise{.sigma = -.5f}.check(here); }, "sigma [-0.5, -0.5]");
  expect_error([&] { gaussian_noise{.mean = not_a_number}.check(here); }, "mean nan");
  expect_error([&] { rician_noise{.sigma = {1, .5f}}.draw(random, here); }, "sigma [1, 0.5]");
  expect_error([&] { rician_noise{.mean = infinity}.draw(random, here); }, "mean inf");
}

// ---- noise -----------------------------------------------------------------------------------------------------

voxel at_element(std::uint64_t element) { return {3, 0, 1, 2, 4, element, 0}; }

long double rician(long double x, long double n1, long double n2) { return std::sqrt((x + n1) * (x + n1) + n2 * n2); }

TEST(gaussian_noise, adds_the_field_of_purpose_1) {
  draws random = random_of(4);
  const random_field field = random.field(1);
  const additive_noise f = gaussian_noise{.sigma = .25f, .mean = .5f}.draw(random, here);
  for (std::uint64_t e = 0; e < 1000; ++e)
    for (const float x : {0.0f, 1.0f, -160.5f}) {
      const long double expected = x + .5L + .25L * static_cast<long double>(field.normal(e));
      ASSERT_NEAR(f(x, at_element(e)), static_cast<double>(expected), eps * (std::abs(x) + 2));
    }
}

TEST(gaussian_noise, has_the_stated_mean_and_deviation) {
  draws random = random_of(8);
  const additive_noise f = gaussian_noise{.sigma = .02f, .mean = .1f}.draw(random, here);
  constexpr int n = 1 << 18;
  double sum = 0, squares = 0, neighbors = 0, previous = 0;
  for (int e = 0; e < n; ++e) {
    const double y = static_cast<double>(f(0, at_element(static_cast<std::uint64_t>(e)))) - .1;
    sum += y;
    squares += y * y;
    neighbors += y * previous;
    previous = y;
  }
  const double deviation = std::sqrt(squares / n);
  EXPECT_NEAR(sum / n, 0, 5 * .02 / 512);
  EXPECT_NEAR(deviation, .02, 5 * .02 / std::sqrt(2.0 * n));
  EXPECT_NEAR(neighbors / n, 0, 5 * .02 * .02 / 512);
}

TEST(gaussian_noise, depends_on_the_element_and_not_on_the_place_in_the_batch) {
  draws random = random_of(4);
  const additive_noise f = gaussian_noise{.sigma = 1}.draw(random, here);
  EXPECT_EQ(f(0, {0, 0, 0, 0, 0, 77, 0}), f(0, {9, 3, 4, 5, 6, 77, 0}));
  EXPECT_NE(f(0, {0, 0, 0, 0, 0, 77, 0}), f(0, {0, 0, 0, 0, 0, 78, 0}));
  EXPECT_NE(f(0, {0, 0, 0, 0, 0, 77, 0}), f(0, {0, 0, 0, 0, 0, 77 + (std::uint64_t{1} << 32), 0}));
}

TEST(gaussian_noise, of_deviation_0_changes_nothing) {
  draws random = random_of(4);
  const additive_noise f = gaussian_noise{.sigma = 0}.draw(random, here);
  for (std::uint64_t e = 0; e < 100; ++e) EXPECT_EQ(f(1.25f, at_element(e)), 1.25f);
}

TEST(rician_noise, is_the_magnitude_of_two_noisy_parts) {
  ASSERT_NEAR(static_cast<double>(rician(3, .5L, -1.2L)), 3.7, 1e-12);  // the published value
  draws random = random_of(4);
  const random_field first = random.field(1), second = random.field(2);
  const magnitude_noise f = rician_noise{.sigma = .5f, .mean = .125f}.draw(random, here);
  for (std::uint64_t e = 0; e < 1000; ++e)
    for (const float x : {0.0f, 3.0f, -1.0f, 250.0f}) {
      const long double n1 = .125L + .5L * static_cast<long double>(first.normal(e));
      const long double n2 = .125L + .5L * static_cast<long double>(second.normal(e));
      ASSERT_NEAR(f(x, at_element(e)), static_cast<double>(rician(x, n1, n2)), 4 * eps * (std::abs(x) + 3));
    }
}

TEST(rician_noise, of_zero_signal_has_rayleigh_mean_and_second_moment) {
  draws random = random_of(21);
  const magnitude_noise f = rician_noise{.sigma = 1}.draw(random, here);
  constexpr int n = 1 << 17;
  double sum = 0, squares = 0;
  for (int e = 0; e < n; ++e) {
    const double y = static_cast<double>(f(0, at_element(static_cast<std::uint64_t>(e))));
    sum += y;
    squares += y * y;
  }
  // Rayleigh: mean sqrt(pi / 2), variance 2 - pi / 2; the second moment is 2, its variance 4.
  EXPECT_NEAR(sum / n, 1.2533141373, 5 * .6552 / std::sqrt(1.0 * n));
  EXPECT_NEAR(squares / n, 2, 5 * 2 / std::sqrt(1.0 * n));
}

}  // namespace
