// SPDX-License-Identifier: Apache-2.0
// Color operations against their formulas in double, at the corners of the color cube and outside of it, and what
// their random forms draw.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ref/color.hpp"
#include "support/expect_says.hpp"
#include "support/tiles.hpp"
#include "suture/ops/stain/channel_normalize.hpp"
#include "suture/ops/stain/color_jitter.hpp"
#include "suture/ops/stain/grayscale.hpp"
#include "suture/ops/stain/hed_jitter.hpp"
#include "suture/ops/stain/hsv_jitter.hpp"
#include "suture/ops/stain/stain_jitter.hpp"
#include "suture/ops/stain/stain_na.hpp"

namespace {

using namespace suture;
using reference::color;

const site here{"tested operation", 0};
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// Black, white, grays, saturated colors and others, of white 255.
std::vector<rgb> colors() {
  std::vector<rgb> result;
  for (int r = 0; r <= 255; r += 51)
    for (int g = 0; g <= 255; g += 51)
      for (int b = 0; b <= 255; b += 51)
        result.push_back({{static_cast<float>(r), static_cast<float>(g), static_cast<float>(b)}});
  std::mt19937 random(3);
  std::uniform_real_distribution<float> value(0, 255);
  for (int i = 0; i < 5000; ++i) result.push_back({{value(random), value(random), value(random)}});
  for (int i = 0; i < 256; ++i) {
    const auto v = static_cast<float>(i);
    result.push_back({{v, v, v}});
  }
  return result;
}

color unit_of(const rgb& v) { return {v.c[0] / 255.0, v.c[1] / 255.0, v.c[2] / 255.0}; }

// f on values of white 255 against a formula on [0, 1], to a tolerance for white 1.
template <class F, class Formula>
void expect_formula(const F& f, const Formula& formula, double tolerance) {
  for (const rgb& v : colors()) {
    const rgb got = f(v);
    const color expected = formula(unit_of(v));
    for (std::size_t k = 0; k < 3; ++k)
      ASSERT_NEAR(got.c[k] / 255, expected[k], tolerance) << v.c[0] << ' ' << v.c[1] << ' ' << v.c[2] << " [" << k;
  }
}

// For functors that ask where the pixel stands.
template <class F>
auto at(const F& f, std::int32_t sample_index = 0) {
  voxel where{};
  where.sample_index = sample_index;
  return [=](const rgb& v) { return f(v, where); };
}

TEST(hed_jitter, published_values) {
  const auto f = hed_jitter{.alpha = {1.05f, .95f, 1}, .beta = {.02f, -.01f, 0}}.prepare(here);
  const rgb v = f({{128, 64, 160}});
  EXPECT_NEAR(v.c[0], 105.0447963, 255 * 2e-6);
  EXPECT_NEAR(v.c[1], 60.4688722, 255 * 2e-6);
  EXPECT_NEAR(v.c[2], 148.4781149, 255 * 2e-6);
}

template <class Hed>
color jittered(const color& v, const hed_jitter& op) {
  color s = Hed::from_rgb(v);
  for (std::size_t k = 0; k < 3; ++k) s[k] = s[k] * static_cast<double>(op.alpha[k]) + static_cast<double>(op.beta[k]);
  return Hed::to_rgb(s);
}

TEST(hed_jitter, follows_its_formula_in_both_units) {
  for (hed_jitter op : {hed_jitter{}, hed_jitter{.alpha = {1.2f, .8f, .95f}, .beta = {.05f, -.04f, .01f}},
                        hed_jitter{.alpha = {0, 3, -1}, .beta = {.1f, .2f, .3f}}}) {
    expect_formula(
        op.prepare(here), [&](const color& v) { return jittered<reference::hed>(v, op); }, 2e-6);
    op.units = hed_units::tellez_plus2;
    expect_formula(
        op.prepare(here), [&](const color& v) { return jittered<reference::hed_plus2>(v, op); }, 6e-6);
  }
}

TEST(hed_jitter, without_jitter_keeps_what_the_stains_can_make) {
  const auto modern = hed_jitter{}.prepare(here), plus2 = hed_jitter{.units = hed_units::tellez_plus2}.prepare(here);
  for (const rgb& v : colors()) {
    const color s = reference::hed::from_rgb(unit_of(v));
    const bool inside = *std::min_element(s.begin(), s.end()) > 0;
    for (int k = 0; k < 3; ++k) {
      if (inside) {
        ASSERT_NEAR(modern(v).c[k], v.c[k], 255 * 3e-6);
      }
      ASSERT_NEAR(plus2(v).c[k], v.c[k], 255 * 3e-6);
    }
  }
}

TEST(hsv_jitter, follows_its_formula) {
  for (const hsv_jitter op : {hsv_jitter{}, hsv_jitter{.hue = .1f, .saturation = .3f, .value = -.2f},
                              hsv_jitter{.hue = -.4f, .saturation = -.5f, .value = .7f},
                              hsv_jitter{.hue = 1, .saturation = 1, .value = 1}, hsv_jitter{.hue = -1, .value = -1}})
    expect_formula(
        op.prepare(here),
        [&](const color& v) {
          const auto moved = [](double x, double share) { return share < 0 ? x * (1 + share) : x + (1 - x) * share; };
          const color w = reference::hsv::from_rgb(v);
          return reference::hsv::to_rgb({w[0] + static_cast<double>(op.hue),
                                         moved(w[1], static_cast<double>(op.saturation)),
                                         moved(w[2], static_cast<double>(op.value))});
        },
        8e-6);  // near gray the hue rests on differences that are rounded, and saturation is added
}

// torchvision's steps one after the other, each limited to [0, 1].
color stepped(color v, const color_jitter& op, double gray) {
  const auto blend = [](const color& x, const color& to, double factor) {
    return reference::unit({factor * x[0] + (1 - factor) * to[0], factor * x[1] + (1 - factor) * to[1],
                            factor * x[2] + (1 - factor) * to[2]});
  };
  const auto gray_of = [](const color& x) { return .299 * x[0] + .587 * x[1] + .114 * x[2]; };
  for (const color_step step : op.order) {
    if (step == color_step::brightness) {
      v = blend(v, {0, 0, 0}, static_cast<double>(op.brightness));
      gray *= static_cast<double>(op.brightness);
    }
    if (step == color_step::contrast) v = blend(v, {gray, gray, gray}, static_cast<double>(op.contrast));
    if (step == color_step::saturation)
      v = blend(v, {gray_of(v), gray_of(v), gray_of(v)}, static_cast<double>(op.saturation));
    if (step == color_step::hue) {
      color w = reference::hsv::from_rgb(v);
      w[0] += static_cast<double>(op.hue);
      v = reference::hsv::to_rgb(w);
    }
  }
  return v;
}

TEST(color_jitter, follows_its_steps_in_every_order) {
  std::array<color_step, 4> order{color_step::brightness, color_step::contrast, color_step::saturation,
                                  color_step::hue};
  do {
    color_jitter op{.brightness = 1.3f, .contrast = .7f, .saturation = 1.5f, .hue = -.12f, .pivot = 140};
    std::copy(order.begin(), order.end(), op.order);
    // A color near gray turns by any angle for a difference of its channels that is rounding alone.
    expect_formula(
        at(op.prepare(here)), [&](const color& v) { return stepped(v, op, 140 / 255.0); }, 3e-6);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(color_jitter, of_ones_keeps_the_color) {
  expect_formula(
      at(color_jitter{}.prepare(here)), [](const color& v) { return v; }, 1e-6);
}

// Contrast about the mean gray of each of two tiles, found by the fit of their channels.
TEST(color_jitter, contrast_about_a_fitted_mean) {
  moments fitted[9];
  const double means[3][3] = {{200, 120, 180}, {90, 60, 30}, {0, 0, 0}};
  for (std::size_t i = 0; i < 9; ++i) {
    fitted[i].center = static_cast<float>(means[i / 3][i % 3]);
    fitted[i].status = i < 6 ? fit_status::ok : fit_status::empty;
  }
  const color_jitter op{.brightness = 1.1f, .contrast = .6f, .pivot = 77, .fitted = fitted};
  for (std::int32_t item = 0; item < 3; ++item) {
    const double* m = means[item];
    const double gray = item == 2 ? 77 : .299 * m[0] + .587 * m[1] + .114 * m[2];
    expect_formula(
        at(op.prepare(here), item), [&](const color& v) { return stepped(v, op, gray / 255); }, 2e-6);
  }
}

TEST(grayscale, follows_its_weights) {
  const auto same = [](double gray) { return color{gray, gray, gray}; };
  expect_formula(
      grayscale{}.prepare(here), [&](const color& v) { return same(.299 * v[0] + .587 * v[1] + .114 * v[2]); }, 2e-7);
  expect_formula(
      grayscale{.rule = gray_rule::itu709}.prepare(here),
      [&](const color& v) { return same(.2125 * v[0] + .7154 * v[1] + .0721 * v[2]); }, 2e-7);
}

TEST(grayscale, is_that_of_pillow_for_every_third_color_of_uint8) {
  const auto f = grayscale{.rule = gray_rule::pillow}.prepare(here);
  for (int r = 0; r < 256; ++r)
    for (int g = 0; g < 256; ++g)
      for (int b = r % 3; b < 256; b += 3) {
        const int expected = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
        ASSERT_EQ(f({{static_cast<float>(r), static_cast<float>(g), static_cast<float>(b)}}).c[1], expected)
            << r << ' ' << g << ' ' << b;
      }
}

TEST(channel_normalize, follows_its_formula) {
  const auto f = channel_normalize{}.prepare(here);
  const auto g = channel_normalize{.of = {{0, .5f, 1}, {1, .5f, .01f}}, .white = 1}.prepare(here);
  for (const rgb& v : colors())
    for (int k = 0; k < 3; ++k) {
      const double mean = imagenet.mean[k], deviation = imagenet.standard_deviation[k];
      ASSERT_NEAR(f(v).c[k], (v.c[k] / 255.0 - mean) / deviation, 6e-7);
      ASSERT_NEAR(g(v).c[k], (v.c[k] - .5 * k) / (k == 0 ? 1 : k == 1 ? .5 : static_cast<double>(.01f)), 4e-3);
    }
  EXPECT_TRUE(std::isnan(f({{not_a_number, 0, 0}}).c[0]));
  EXPECT_FALSE(std::isnan(f({{not_a_number, 0, 0}}).c[1]));
}

// Concentrations by the normal equations, in double.
color restained(const color& v, const stain_jitter& op) {
  color density{};
  for (std::size_t c = 0; c < 3; ++c) density[c] = -std::log(std::max(v[c], 1 / 255.0));
  if (density[0] + density[1] + density[2] < 3 * static_cast<double>(op.tissue_density)) return v;
  double gram[2][2] = {}, right[2] = {};
  for (std::size_t c = 0; c < 3; ++c)
    for (int i = 0; i < 2; ++i) {
      const double b = op.basis[static_cast<int>(c)][i];
      right[i] += b * density[c];
      for (int j = 0; j < 2; ++j) gram[i][j] += b * op.basis[static_cast<int>(c)][j];
    }
  const double determinant = gram[0][0] * gram[1][1] - gram[0][1] * gram[1][0];
  for (int k = 0; k < 2; ++k) {
    const double s = (gram[1 - k][1 - k] * right[k] - gram[k][1 - k] * right[1 - k]) / determinant;
    const double t = static_cast<double>(op.alpha[k]) * s + static_cast<double>(op.beta[k]);
    for (std::size_t c = 0; c < 3; ++c) {
      if (!op.keep_rest && k == 0) density[c] = 0;
      density[c] += op.basis[static_cast<int>(c)][k] * (op.keep_rest ? t - s : t);
    }
  }
  return reference::unit(reference::each(density, [](double d) { return std::exp(-d); }));
}

TEST(stain_jitter, follows_its_formula) {
  for (const bool keep_rest : {true, false}) {
    const stain_jitter of_other_stains{.basis = {{{.65, .07}, {.70, .99}, {.29, .11}}},
                                       .alpha = {.7f, 1.3f},
                                       .keep_rest = keep_rest,
                                       .tissue_density = 0};
    for (const stain_jitter& op : {stain_jitter{.alpha = {1.2f, .8f}, .beta = {.1f, -.2f}, .keep_rest = keep_rest},
                                   of_other_stains, stain_jitter{.keep_rest = keep_rest}})
      expect_formula(
          at(op.prepare(here)), [&](const color& v) { return restained(v, op); }, 3e-6);
  }
}

// Each tile in its own basis, one that could not be fitted, and all in that of the first.
TEST(stain_jitter, in_fitted_bases) {
  stain_basis fitted[3];
  fitted[0].stains = {{{.65, .07}, {.70, .99}, {.29, .11}}};
  for (stain_basis& b : fitted) b.unmixing = detail::unmix(b.stains, 0);
  fitted[0].unchanged = fitted[1].unchanged = 0;
  stain_jitter op{.fitted = fitted, .alpha = {1.3f, .6f}, .beta = {.05f, .1f}};
  for (std::int32_t item = 0; item < 3; ++item) {
    stain_jitter stated = op;
    stated.basis = fitted[item].stains;
    expect_formula(
        at(op.prepare(here), item), [&](const color& v) { return item == 2 ? v : restained(v, stated); }, 3e-6);
  }
  op.fitted = std::span(fitted).first(1);
  op.shared = true;
  for (const rgb& v : colors())
    for (int c = 0; c < 3; ++c) ASSERT_EQ(at(op.prepare(here), 2)(v).c[c], at(op.prepare(here), 0)(v).c[c]);
}

TEST(stain_jitter, leaves_glass_and_what_is_not_stain) {
  const auto f = at(stain_jitter{.alpha = {1.5f, 1.5f}, .beta = {.3f, .3f}}.prepare(here));
  const rgb glass{{240, 238, 242}};
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(f(glass).c[c], glass.c[c], 2e-5);
  const auto same = at(stain_jitter{}.prepare(here));
  for (const rgb& v : colors())
    for (int c = 0; c < 3; ++c) ASSERT_NEAR(same(v).c[c], std::max(v.c[c], same(v).c[c] < 1.01f ? 1.0f : 0.0f), 2e-4);
  const rgb dark = same({{0, .5f, 100}});
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(dark.c[c], c == 2 ? 100 : 1, 2e-5);  // white / 255 at least
}

// Every operation of limited colors: what lies outside counts as the nearer end, not a number as 0; and white 1 is
// white 255 by another unit.
template <class Op>
void expect_limits(Op op) {
  const auto f = op.prepare(here);
  const auto call = [](const auto& functor, const rgb& v) {
    if constexpr (requires { functor(v); })
      return functor(v);
    else
      return functor(v, voxel{});
  };
  const struct {
    rgb given, counts_as;
  } rows[] = {{{{-5, 300, 128}}, {{0, 255, 128}}},
              {{{-infinity, infinity, 255.01f}}, {{0, 255, 255}}},
              {{{not_a_number, 12, not_a_number}}, {{0, 12, 0}}},
              {{{-0.0f, 1e30f, -1e30f}}, {{0, 255, 0}}}};
  for (const auto& row : rows) {
    const rgb a = call(f, row.given), b = call(f, row.counts_as);
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(a.c[k], b.c[k]) << Op::name;
      EXPECT_TRUE(a.c[k] >= 0 && a.c[k] <= 255) << Op::name << ' ' << a.c[k];
    }
  }
  op.white = 1;
  if constexpr (requires { op.pivot; }) op.pivot /= 255;
  const auto g = op.prepare(here);
  for (const rgb& v : colors()) {
    const rgb a = call(f, v), b = call(g, {{v.c[0] / 255, v.c[1] / 255, v.c[2] / 255}});
    for (int k = 0; k < 3; ++k) ASSERT_NEAR(a.c[k] / 255, b.c[k], 8e-6) << Op::name;
  }
}

TEST(color_operations, take_colors_from_0_to_white) {
  expect_limits(hed_jitter{.alpha = {1.1f, .9f, 1}, .beta = {.01f, .02f, -.01f}});
  expect_limits(hed_jitter{.alpha = {1.1f, .9f, 1}, .units = hed_units::tellez_plus2});
  expect_limits(stain_jitter{.alpha = {1.1f, .9f}, .tissue_density = 0});
  expect_limits(color_jitter{.brightness = 1.1f, .contrast = .9f, .saturation = 1.2f});
  const color_moments<lab> fitted{.mean = {60, 20, -10},
                                  .status = fit_status::ok,
                                  .center = {60, 20, -10},
                                  .deviation = {20, 10, 10},
                                  .reciprocal = {.05f, .1f, .1f}};
  expect_limits(
      reinhard<lab>{.fitted = {&fitted, 1}, .target = {.mean = {70, 15, -5}, .standard_deviation = {15, 12, 9}}});
}

// Rows of any length, whose ends do not fill the lanes.
TEST(color_operations, give_a_row_what_they_give_a_pixel) {
  const auto chain = hed_jitter{.alpha = {1.1f, .9f, 1.05f}} | hsv_jitter{.hue = .05f, .saturation = -.1f} |
                     color_jitter{.brightness = .9f, .contrast = 1.2f, .saturation = 1.1f, .hue = .03f} |
                     stain_jitter{.alpha = {.9f, 1.2f}} | channel_normalize{};
  for (const std::int64_t width : {1, 15, 16, 17, 31, 32, 33, 127})
    for (const std::int64_t height : {1, 2}) {
      std::vector<std::uint8_t> tile(static_cast<std::size_t>(3 * width * height));
      std::mt19937 random(static_cast<unsigned>(width));
      for (auto& v : tile) v = static_cast<std::uint8_t>(random());
      const std::vector<float> got = support::tile_result<float>(chain, tile, height, width);
      for (std::size_t i = 0; i < tile.size(); i += 3) {
        rgb v{{static_cast<float>(tile[i]), static_cast<float>(tile[i + 1]), static_cast<float>(tile[i + 2])}};
        v = get<0>(chain.operations).prepare(here)(v);
        v = get<1>(chain.operations).prepare(here)(v);
        v = get<2>(chain.operations).prepare(here)(v, voxel{});
        v = get<3>(chain.operations).prepare(here)(v, voxel{});
        v = get<4>(chain.operations).prepare(here)(v);
        for (std::size_t k = 0; k < 3; ++k) ASSERT_EQ(got[i + k], v.c[k]) << width;
      }
    }
}

TEST(color_operations, errors_name_the_value) {
  EXPECT_SAYS(hed_jitter{.white = 0}.prepare(here), "tested operation: sample 0: white 0 must be");
  EXPECT_SAYS(hed_jitter{.white = not_a_number}.prepare(here), "white nan");
  EXPECT_SAYS((hed_jitter{.alpha = {1, infinity, 1}}.prepare(here)), "alpha inf must be finite");
  EXPECT_SAYS((hed_jitter{.beta = {0, 0, not_a_number}}.prepare(here)), "beta nan must be finite");
  EXPECT_SAYS(hsv_jitter{.hue = 1.5f}.prepare(here), "hue 1.5 must be in [-1, 1]");
  EXPECT_SAYS(hsv_jitter{.saturation = -1.1f}.prepare(here), "saturation -1.1 must be in [-1, 1]");
  EXPECT_SAYS(hsv_jitter{.value = not_a_number}.prepare(here), "value nan must be in [-1, 1]");
  EXPECT_SAYS(color_jitter{.brightness = -1}.prepare(here), "brightness -1 must be 0 or above");
  EXPECT_SAYS(color_jitter{.contrast = infinity}.prepare(here), "contrast inf must be 0 or above");
  EXPECT_SAYS(color_jitter{.saturation = not_a_number}.prepare(here), "saturation nan must be 0 or above");
  EXPECT_SAYS(color_jitter{.hue = .6f}.prepare(here), "hue 0.6 must be in [-0.5, 0.5]");
  // Of a range it is the range that is wrong, whatever is drawn.
  draws random(1, 0, 0, 71);
  EXPECT_SAYS((random_color_jitter{.hue = {-.55f, .5f}}.draw(random, here)), "hue [-0.55, 0.5] must be in [-0.5, 0.5]");
  EXPECT_SAYS((random_color_jitter{.brightness = {-.1f, 2}}.draw(random, here)), "brightness [-0.1, 2] must be 0 or");
  EXPECT_SAYS(color_jitter{.pivot = infinity}.prepare(here), "pivot inf must be finite");
  EXPECT_SAYS(
      (color_jitter{.order = {color_step::hue, color_step::hue, color_step::contrast, color_step::brightness}}.prepare(
          here)),
      "order must hold each of the four steps once");
  EXPECT_SAYS((channel_normalize{.of = {{0, 0, 0}, {1, 0, 1}}}.prepare(here)), "standard_deviation 0 must be positive");
  EXPECT_SAYS((channel_normalize{.of = {{0, infinity, 0}, {1, 1, 1}}}.prepare(here)), "mean inf must be finite");
  EXPECT_SAYS((channel_normalize{.white = -255}.prepare(here)), "white -255");
  EXPECT_SAYS((stain_jitter{.basis = {{{.5, 1}, {.5, 1}, {.5, 1}}}}.prepare(here)), "cannot be inverted");
  EXPECT_SAYS((stain_jitter{.basis = {{{0, 1}, {0, 1}, {0, 1}}}}.prepare(here)), "has no length");
  EXPECT_SAYS((stain_jitter{.basis = {{{HUGE_VAL, 1}, {0, 1}, {0, 1}}}}.prepare(here)),
              "stain matrix element (0, 0) is inf");
  EXPECT_SAYS((stain_jitter{.alpha = {infinity, 1}}.prepare(here)), "alpha inf");
  EXPECT_SAYS((stain_jitter{.beta = {0, infinity}}.prepare(here)), "beta inf");
  EXPECT_SAYS(stain_jitter{.tissue_density = -1}.prepare(here), "tissue_density -1");
  const color_moments<lab> empty{.status = fit_status::empty}, fitted{};
  EXPECT_SAYS((reinhard<lab>{.fitted = {}, .target = {}}.prepare(here)), "no fitted results given");
  EXPECT_SAYS((reinhard<lab>{.fitted = {&fitted, 1}, .target = empty}.prepare(here)), "the fit of the target is empty");
  EXPECT_SAYS((reinhard<lab>{.fitted = {&fitted, 1}, .target = {}}.prepare(here)),
              "target: expected moments of a fit or stated ones, got the status not_fitted");
  EXPECT_SAYS((reinhard<lab>{.fitted = {&fitted, 1}, .target = {.standard_deviation = {1, -1, 1}}}.prepare(here)),
              "target standard_deviation -1");
  EXPECT_SAYS((reinhard<lab>{.fitted = {&fitted, 1}, .target = {.mean = {HUGE_VAL, 0, 0}}}.prepare(here)),
              "target mean inf");
  const auto check_stated = [](const color_moments<lab>& m) { detail::check_fitted(m, here); };
  EXPECT_SAYS(check_stated({.standard_deviation = {1, -2, 1}}),
              "standard_deviation: expected a finite number of 0 or above, got -2");
  EXPECT_SAYS(check_stated({.mean = {0, 0, HUGE_VAL}}), "mean: expected a finite float, got inf");
  check_stated({.mean = {70, 15, -5}, .standard_deviation = {15, 0, 9}});
}

// ---- random operations -----------------------------------------------------------------------------------------

draws random_of(std::uint64_t sample) { return {2024, 3, sample, 11}; }

constexpr int samples = 100000;

// Mean and deviation of a drawn parameter over many samples, within five standard errors; all within [low, high].
template <class Draw>
void expect_spread(const Draw& draw, double mean, double deviation, double low, double high) {
  double sum = 0, squares = 0;
  for (int s = 0; s < samples; ++s) {
    draws random = random_of(static_cast<std::uint64_t>(s));
    const double x = draw(random);
    ASSERT_TRUE(x >= low && x <= high) << x;
    sum += x - mean;
    squares += (x - mean) * (x - mean);
  }
  EXPECT_NEAR(sum / samples, 0, 5 * deviation / std::sqrt(samples));
  EXPECT_NEAR(std::sqrt(squares / samples), deviation, .02 * deviation);
}

template <class Draw>
void expect_uniform(const Draw& draw, double low, double high) {
  expect_spread(draw, (low + high) / 2, (high - low) / std::sqrt(12), low - 1e-7, high + 1e-7);
}

TEST(random_color_operations, draw_uniformly_from_their_ranges) {
  for (std::size_t k = 0; k < 3; ++k) {
    expect_uniform([=](draws& r) { return random_hed_jitter{}.draw(r, here).alpha[k]; }, .95, 1.05);
    expect_uniform([=](draws& r) { return random_hed_jitter{}.draw(r, here).beta[k]; }, -.01, .01);
  }
  for (std::size_t k = 0; k < 2; ++k) {
    expect_uniform([=](draws& r) { return random_stain_jitter{}.draw(r, here).alpha[k]; }, .8, 1.2);
    expect_uniform([=](draws& r) { return random_stain_jitter{.beta = {-.1f, .3f}}.draw(r, here).beta[k]; }, -.1, .3);
  }
  expect_uniform([](draws& r) { return random_hsv_jitter{}.draw(r, here).hue; }, -.1, .1);
  expect_uniform([](draws& r) { return random_hsv_jitter{}.draw(r, here).saturation; }, -.1, .1);
  expect_uniform([](draws& r) { return random_hsv_jitter{.value = {0, .5f}}.draw(r, here).value; }, 0, .5);
  expect_uniform([](draws& r) { return random_color_jitter{}.draw(r, here).brightness; }, .8, 1.2);
  expect_uniform([](draws& r) { return random_color_jitter{}.draw(r, here).contrast; }, .8, 1.2);
  expect_uniform([](draws& r) { return random_color_jitter{}.draw(r, here).saturation; }, .8, 1.2);
  expect_uniform([](draws& r) { return random_color_jitter{.hue = {-.3f, .1f}}.draw(r, here).hue; }, -.3, .1);
}

TEST(random_color_operations, draw_stains_independently) {
  double product = 0;
  for (int s = 0; s < samples; ++s) {
    draws random = random_of(static_cast<std::uint64_t>(s));
    const hed_jitter op = random_hed_jitter{}.draw(random, here);
    product += static_cast<double>((op.alpha[0] - 1) * (op.alpha[1] - 1) + op.beta[1] * op.beta[2]);
  }
  EXPECT_NEAR(product / samples, 0, 5 * .05 * .05 / 3 / std::sqrt(samples));
}

TEST(random_color_operations, draw_every_order_alike) {
  std::array<int, 256> counts{};
  for (int s = 0; s < samples; ++s) {
    draws random = random_of(static_cast<std::uint64_t>(s));
    const color_jitter op = random_color_jitter{.random_order = true}.draw(random, here);
    int code = 0;
    for (const color_step step : op.order) code = 4 * code + static_cast<int>(step);
    ++counts[static_cast<std::size_t>(code)];
  }
  int orders = 0;
  for (const int n : counts) {
    if (n == 0) continue;
    ++orders;
    EXPECT_NEAR(n, samples / 24.0, 5 * std::sqrt(samples / 24.0));
  }
  EXPECT_EQ(orders, 24);
  draws random = random_of(1);
  const color_jitter op = random_color_jitter{}.draw(random, here);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(op.order[i], static_cast<color_step>(i));
}

TEST(random_color_operations, stain_na_draws_by_its_law) {
  const color_moments<lab> fitted{};
  const auto of = [&](stain_na_law law, double widen, std::size_t k, bool deviation) {
    return [=, &fitted](draws& r) {
      const auto op =
          random_stain_na<lab>{.fitted = {&fitted, 1}, .table = crc_lab, .law = law, .widen = widen}.draw(r, here);
      return deviation ? op.target.standard_deviation[k] : op.target.mean[k];
    };
  };
  for (std::size_t k = 0; k < 3; ++k) {
    const auto& m = crc_lab.mean[k];
    const double s = m.standard_deviation;
    expect_spread(of(stain_na_law::normal, 0, k, false), m.mean, s, -HUGE_VAL, HUGE_VAL);
    expect_spread(of(stain_na_law::normal, .5, k, false), m.mean, 1.5 * s, -HUGE_VAL, HUGE_VAL);
    expect_spread(of(stain_na_law::laplace, 0, k, false), m.mean, std::sqrt(2) * s, -HUGE_VAL, HUGE_VAL);
    expect_spread(of(stain_na_law::uniform, 0, k, false), m.mean, std::sqrt(3) * s, m.mean - 3.001 * s,
                  m.mean + 3.001 * s);
    // A deviation below 0, at 2.6 to 3 standard deviations, counts by its magnitude: the mean hardly moves.
    const auto& d = crc_lab.standard_deviation[k];
    expect_spread(of(stain_na_law::normal, 0, k, true), d.mean, d.standard_deviation, 0, HUGE_VAL);
  }
  EXPECT_NEAR(crc_lab.mean[0].mean, 61.9737, 1e-4);
  EXPECT_NEAR(crc_lab.mean[2].mean, -11.188, 1e-9);
}

// What a draw leaves for the next one.
template <class Op>
float next_after(const Op& op) {
  draws random = random_of(5);
  op.draw(random, here);
  return random.uniform(0, 1);
}

TEST(random_color_operations, take_the_same_slots_whatever_their_parameters) {
  EXPECT_EQ(next_after(random_hed_jitter{.alpha = 1, .units = hed_units::tellez_plus2}),
            next_after(random_hed_jitter{}));
  EXPECT_EQ(next_after(random_hsv_jitter{.hue = 0}), next_after(random_hsv_jitter{}));
  EXPECT_EQ(next_after(random_stain_jitter{.alpha = {1, 3}}), next_after(random_stain_jitter{}));
  EXPECT_EQ(next_after(random_color_jitter{.random_order = true}), next_after(random_color_jitter{}));
  const color_moments<lab> fitted{};
  for (const stain_na_law law : {stain_na_law::laplace, stain_na_law::uniform})
    EXPECT_EQ(next_after(random_stain_na<lab>{.fitted = {&fitted, 1}, .table = crc_lab, .law = law}),
              next_after(random_stain_na<lab>{.fitted = {&fitted, 1}, .table = crc_lab}));
}

TEST(random_color_operations, errors_name_the_value) {
  draws random = random_of(1);
  EXPECT_SAYS((random_hed_jitter{.alpha = {2, 1}}.draw(random, here)), "alpha [2, 1] must go from low to high");
  EXPECT_SAYS((random_hed_jitter{.beta = {0, infinity}}.draw(random, here)), "beta [0, inf] must be finite");
  EXPECT_SAYS((random_hsv_jitter{.hue = {-2, 0}}.draw(random, here)), "hue [-2, 0] must be within [-1, 1]");
  EXPECT_SAYS((random_color_jitter{.contrast = {2, 1}}.draw(random, here)), "contrast [2, 1] must go from low to high");
  EXPECT_SAYS((random_stain_jitter{.beta = {1, 0}}.draw(random, here)), "beta [1, 0] must go from low to high");
  const color_moments<lab> fitted{};
  EXPECT_SAYS((random_stain_na<lab>{.fitted = {&fitted, 1}, .table = crc_lab, .widen = -1}.draw(random, here)),
              "widen -1");
  // The farthest draw of so wide a law may lie beyond what reinhard takes.
  EXPECT_SAYS((random_stain_na<lab>{.fitted = {&fitted, 1}, .table = crc_lab, .widen = 501}.draw(random, here)),
              "widen 501 must be in (-1, 500]");
  EXPECT_SAYS((random_stain_na<lab>{.fitted = {&fitted, 1}, .table = {{{0, -1}}, {}}}.draw(random, here)),
              "standard deviation -1 of the table");
  EXPECT_SAYS((random_stain_na<lab>{.fitted = {&fitted, 1}, .table = {{{HUGE_VAL, 1}}, {}}}.draw(random, here)),
              "mean inf of the table");
}

// What a recipe of three tiles says of results for too few of them.
template <class Operation>
std::string said_of(const Operation& operation, const settings& how = {}) {
  const std::vector<grid> tiles(3, grid{.extents = {1, 4, 4}});
  return message([&] { plan(operation | cast<float>{}, tiles, how); });
}

TEST(fitted_colors, are_asked_for_for_every_sample) {
  const std::vector<stain_basis> stains(3);
  const std::vector<color_moments<lab>> colors(3);
  const std::vector<moments> channels(9);
  const auto two = std::span(stains).first(2);
  EXPECT_EQ(said_of(stain_jitter{}), "no error");
  EXPECT_EQ(said_of(stain_jitter{.fitted = stains}), "no error");
  EXPECT_EQ(said_of(stain_jitter{.fitted = {stains.data(), 1}, .shared = true}), "no error");
  EXPECT_EQ(said_of(stain_jitter{.fitted = two}), "suture: stain_jitter: sample 2: no fitted result for it, 2 given");
  EXPECT_EQ(said_of(stain_jitter{.fitted = two.first(1)}),
            "suture: stain_jitter: sample 1: no fitted result for it, 1 given (shared = true uses one for all)");
  EXPECT_EQ(said_of(stain_jitter{.fitted = two, .shared = true}),
            "suture: stain_jitter: sample 0: 2 fitted results given, shared uses one for all");
  EXPECT_EQ(said_of(stain_jitter{.shared = true}), "suture: stain_jitter: sample 0: no fitted results given");
  const color_moments<lab> target{.mean = {50, 0, 0}, .standard_deviation = {1, 1, 1}, .status = fit_status::ok};
  EXPECT_EQ(said_of(reinhard<lab>{.fitted = colors, .target = target}), "no error");
  EXPECT_EQ(said_of(reinhard<lab>{.fitted = std::span(colors).first(1), .target = target}),
            "suture: reinhard: sample 1: no fitted result for it, 1 given");
  EXPECT_EQ(said_of(color_jitter{}), "no error");
  EXPECT_EQ(said_of(color_jitter{.fitted = channels}), "no error");
  EXPECT_EQ(said_of(color_jitter{.fitted = std::span(channels).first(8)}),
            "suture: color_jitter: sample 2: no fitted results for it, 8 given, 3 per sample");
}

// Whatever chance has in store.
TEST(fitted_colors, are_asked_for_for_every_sample_of_random_operations) {
  const std::uint64_t ids[] = {1, 2, 3};
  const std::vector<stain_basis> stains(3);
  const std::vector<color_moments<lab>> colors(3);
  const std::vector<moments> channels(9);
  for (const settings& how : {settings{.sample_ids = ids}, settings{.sample_ids = ids, .evaluation = true}})
    for (const float p : {0.0f, 1e-3f, 1.0f}) {
      EXPECT_EQ(said_of(random_stain_jitter{.probability = p}, how), "no error");
      EXPECT_EQ(said_of(random_stain_jitter{.fitted = stains, .probability = p}, how), "no error");
      EXPECT_EQ(
          said_of(random_stain_jitter{.fitted = std::span(stains).first(1), .probability = p}, how),
          "suture: random_stain_jitter: sample 1 (id 2): no fitted result for it, 1 given (shared = true uses one for "
          "all)");
      EXPECT_EQ(said_of(random_stain_jitter{.fitted = {stains.data(), 1}, .shared = true, .probability = p}, how),
                "no error");
      EXPECT_EQ(said_of(random_color_jitter{.fitted = channels, .probability = p}, how), "no error");
      EXPECT_EQ(said_of(random_color_jitter{.fitted = std::span(channels).first(3), .probability = p}, how),
                "suture: random_color_jitter: sample 1 (id 2): no fitted results for it, 3 given, 3 per sample");
      EXPECT_EQ(said_of(random_stain_na<lab>{.fitted = colors, .table = crc_lab, .probability = p}, how), "no error");
      EXPECT_EQ(
          said_of(random_stain_na<lab>{.fitted = std::span(colors).first(2), .table = crc_lab, .probability = p}, how),
          "suture: random_stain_na: sample 2 (id 3): no fitted result for it, 2 given");
      EXPECT_EQ(said_of(random_stain_na<lab>{.fitted = {}, .table = crc_lab, .probability = p}, how),
                "suture: random_stain_na: sample 0 (id 1): no fitted results given");
    }
}

static_assert(random_operation<random_hed_jitter> && random_operation<random_hsv_jitter>);
static_assert(random_operation<random_color_jitter> && random_operation<random_grayscale>);
static_assert(random_operation<random_stain_jitter> && random_operation<random_stain_na<lab>>);
static_assert(role_of<reinhard<hsv>>() == role::value && role_of<random_grayscale>() == role::value);
static_assert(random_hed_jitter::kind == 68 && random_hsv_jitter::kind == 69 && random_grayscale::kind == 70 &&
              random_color_jitter::kind == 71 && random_stain_jitter::kind == 72 && random_stain_na<lab>::kind == 73);

}  // namespace
