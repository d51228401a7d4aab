// SPDX-License-Identifier: Apache-2.0
// Color spaces against their formulas in double, published values, and at the corners of the color cube.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <suture/color/color_space.hpp>
#include <vector>

#include "ref/color.hpp"

namespace {

using suture::rgb;

reference::color double_of(const rgb& v) { return {v.c[0], v.c[1], v.c[2]}; }

// Black, white, grays, saturated colors and their neighbors, the colors of uint8 at random, any color at random.
std::vector<rgb> colors() {
  std::vector<rgb> result;
  for (int r = 0; r <= 16; ++r)
    for (int g = 0; g <= 16; ++g)
      for (int b = 0; b <= 16; ++b)
        result.push_back({{static_cast<float>(r) / 16, static_cast<float>(g) / 16, static_cast<float>(b) / 16}});
  for (int v = 0; v < 256; ++v) {
    const float x = static_cast<float>(v) / 255;
    for (const rgb c : {rgb{{x, x, x}}, rgb{{x, 0, 0}}, rgb{{0, x, 0}}, rgb{{0, 0, x}}, rgb{{1, x, x}}, rgb{{1, 1, x}}})
      result.push_back(c);
  }
  for (const float edge : {0.04045f, 0.0031308f, 0.008856f, 1e-6f, 0x1p-126f, 0x1p-149f, 0.999999f})
    for (const float x : {std::nextafter(edge, 0.0f), edge, std::nextafter(edge, 1.0f)})
      for (const rgb c : {rgb{{x, x, x}}, rgb{{x, 0, 1}}, rgb{{1, x, 0}}, rgb{{0, 1, x}}}) result.push_back(c);
  std::mt19937 random(1);
  std::uniform_int_distribution<int> byte(0, 255);
  std::uniform_real_distribution<float> unit(0, 1);
  for (int i = 0; i < 100000; ++i) {
    result.push_back({{static_cast<float>(byte(random)) / 255, static_cast<float>(byte(random)) / 255,
                       static_cast<float>(byte(random)) / 255}});
    result.push_back({{unit(random), unit(random), unit(random)}});
  }
  return result;
}

double distance(const rgb& a, const reference::color& b, bool first_is_hue) {
  double worst = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    double d = std::abs(a.c[k] - b[k]);
    if (std::isnan(d)) return HUGE_VAL;
    if (first_is_hue && k == 0) d = std::min(d, 1 - d);
    worst = std::max(worst, d);
  }
  return worst;
}

template <class Space, class Reference>
void expect_within(double there, double back, bool first_is_hue = false) {
  double worst = 0, worst_back = 0;
  rgb at{}, at_back{};
  for (const rgb& v : colors()) {
    const rgb w = Space::from_rgb(v);
    const double d = distance(w, Reference::from_rgb(double_of(v)), first_is_hue);
    if (!(d <= worst)) worst = d, at = v;
    const double b = distance(Space::to_rgb(w), Reference::to_rgb(double_of(w)), false);
    if (!(b <= worst_back)) worst_back = b, at_back = v;
  }
  ::testing::Test::RecordProperty("largest_error", std::to_string(worst * 1e6) + "e-6");
  ::testing::Test::RecordProperty("largest_error_back", std::to_string(worst_back * 1e6) + "e-6");
  EXPECT_LE(worst, there) << at.c[0] << ' ' << at.c[1] << ' ' << at.c[2];
  EXPECT_LE(worst_back, back) << at_back.c[0] << ' ' << at_back.c[1] << ' ' << at_back.c[2];
}

TEST(ColorSpace, HedIsWithinItsBound) { expect_within<suture::hed, reference::hed>(3e-7, 1e-6); }
TEST(ColorSpace, HsvIsWithinItsBound) { expect_within<suture::hsv, reference::hsv>(2e-7, 1e-6, true); }
TEST(ColorSpace, LabIsWithinItsBound) { expect_within<suture::lab, reference::lab>(6e-5, 3e-6); }
TEST(ColorSpace, RudermanIsWithinItsBound) { expect_within<suture::ruderman, reference::ruderman>(4e-6, 1e-6); }

rgb of_bytes(int r, int g, int b) {
  return {{static_cast<float>(r) / 255, static_cast<float>(g) / 255, static_cast<float>(b) / 255}};
}
void expect_color(const rgb& v, double a, double b, double c, double tolerance) {
  EXPECT_NEAR(v.c[0], a, tolerance);
  EXPECT_NEAR(v.c[1], b, tolerance);
  EXPECT_NEAR(v.c[2], c, tolerance);
}

// Computed in double with scikit-image and HistomicsTK.
TEST(ColorSpace, PublishedValues) {
  const rgb purple = of_bytes(128, 64, 160), pink = of_bytes(200, 120, 180), black{}, white{{1, 1, 1}};
  expect_color(suture::hed::from_rgb(purple), .06678836, .04706213, .01178364, 3e-7);
  expect_color(suture::hed::from_rgb(pink), .01425360, .03207877, .02249881, 3e-7);
  expect_color(suture::hed::from_rgb(black), 1.21016731, 0, .88195046, 3e-7);
  expect_color(suture::hed::from_rgb(white), 0, 0, 0, 0);
  expect_color(suture::hsv::from_rgb(purple), .7777777778, .6, .6274509804, 2e-7);
  expect_color(suture::hsv::from_rgb(pink), .875, .4, .7843137255, 2e-7);
  expect_color(suture::lab::from_rgb(purple), 39.2318177905, 44.0803886148, -41.0313919170, 6e-5);
  expect_color(suture::lab::from_rgb(pink), 60.7900335030, 39.8326525287, -18.4581792579, 6e-5);
  expect_color(suture::lab::from_rgb(white), 100, -.0024549379, .0046534212, 6e-5);
  expect_color(suture::lab::from_rgb(black), 0, 0, 0, 6e-5);
  expect_color(suture::ruderman::from_rgb(purple), 8.0495373654, -.4153827463, .0656154529, 4e-6);
  expect_color(suture::ruderman::from_rgb(white), 9.5955537714, .0017583164, .0002122488, 4e-6);
  rgb turned = suture::hsv::from_rgb(pink);
  turned.c[0] += .1f;
  expect_color(suture::hsv::to_rgb(turned), 200 / 255., 120 / 255., 132 / 255., 1e-6);
}

TEST(ColorSpace, ColorsComeBack) {
  double worst = 0;
  for (const rgb& v : colors())
    for (const rgb& back :
         {suture::hsv::to_rgb(suture::hsv::from_rgb(v)), suture::lab::to_rgb(suture::lab::from_rgb(v)),
          suture::ruderman::to_rgb(suture::ruderman::from_rgb(v))})
      worst = std::max(worst, distance(back, double_of(v), false));
  EXPECT_LE(worst, 8e-6);
}

TEST(ColorSpace, MatricesOfHedAreInverses) {
  for (int i = 0; i < 3; ++i) {
    rgb unit{};
    unit.c[i] = 1;
    const rgb there = suture::rgb_from_hed()(suture::hed_from_rgb()(unit));
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(there.c[k], i == k ? 1 : 0, 3e-7);
  }
}

TEST(ColorSpace, HueOfTiesAndGrays) {
  const auto hue = [](float r, float g, float b) { return suture::hsv::from_rgb({{r, g, b}}).c[0]; };
  EXPECT_EQ(hue(1, 1, 0), 1 / 6.0f);  // green before red
  EXPECT_EQ(hue(0, 1, 1), 3 * (1 / 6.0f));
  EXPECT_EQ(hue(1, 0, 1), 5 * (1 / 6.0f));
  EXPECT_EQ(hue(1, 0, 0), 0);
  EXPECT_EQ(hue(0, 1, 0), 2 * (1 / 6.0f));
  EXPECT_EQ(hue(0, 0, 1), 4 * (1 / 6.0f));
  for (const float gray : {0.0f, 0x1p-149f, .3f, 1.0f}) {
    const rgb v = suture::hsv::from_rgb({{gray, gray, gray}});
    EXPECT_EQ(v.c[0], 0);
    EXPECT_EQ(v.c[1], 0);
    EXPECT_EQ(v.c[2], gray);
  }
  EXPECT_LT(hue(1, 0, 0x1p-40f), 1);  // just below a full turn
  EXPECT_LT(hue(1, 0, 1e-7f), 1);
}

TEST(ColorSpace, AnyHueIsItsFraction) {
  for (const float turns : {-3.0f, -1.0f, 0.0f, 1.0f, 2.0f, 1000.0f})
    for (int k = 0; k < 64; ++k) {
      const float h = static_cast<float>(k) / 64;
      const rgb a = suture::hsv::to_rgb({{h, .7f, .9f}}), b = suture::hsv::to_rgb({{h + turns, .7f, .9f}});
      for (int c = 0; c < 3; ++c) EXPECT_EQ(a.c[c], b.c[c]) << h << ' ' << turns;
    }
}

// Whatever the way back is given, it ends within [0, 1].
TEST(ColorSpace, TheWayBackIsLimited) {
  constexpr float large = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0, 1, -1, 50, -200, 300, 1e6f, -1e6f, large, -large, infinity, -infinity};
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  for (const float a : values)
    for (const float b : values)
      for (const float c : values) {
        const rgb v{{a, b, c}};
        for (const rgb& w :
             {suture::hed::to_rgb(v), suture::hsv::to_rgb(v), suture::lab::to_rgb(v), suture::ruderman::to_rgb(v)})
          for (const float x : w.c) ASSERT_TRUE(x >= 0 && x <= 1) << a << ' ' << b << ' ' << c << ": " << x;
      }
}

}  // namespace
