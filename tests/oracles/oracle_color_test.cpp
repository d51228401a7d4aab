// SPDX-License-Identifier: Apache-2.0
// Color operations on stained tiles against scikit-image, torchvision, torchstain and TIAToolbox.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "support/expect_close.hpp"
#include "support/oracle.hpp"
#include "support/tiles.hpp"
#include "suture/ops/stain/color_jitter.hpp"
#include "suture/ops/stain/grayscale.hpp"
#include "suture/ops/stain/hed_jitter.hpp"
#include "suture/ops/stain/reinhard.hpp"

namespace {

using nlohmann::json;
using support::expect_close;
using support::oracle_case;
using support::tile_result;
using namespace suture;

using byte = std::uint8_t;

// A tile of a case, and the result of an operation on it.
struct tile {
  support::array<byte> values;
  tile(const oracle_case& c, const char* role) : values(c.input<byte>(role)) {}

  template <class Out, class Operation>
  std::vector<Out> through(const Operation& operation) const {
    return tile_result<Out>(operation, values.values, values.shape[0], values.shape[1]);
  }
};

// Results of uint8: within one level, and equal but for one value in a thousand.
void expect_close_bytes(const std::vector<byte>& actual, const std::vector<byte>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  std::size_t different = 0;
  int worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const int d = std::abs(actual[i] - expected[i]);
    different += d != 0 ? 1 : 0;
    worst = std::max(worst, d);
  }
  EXPECT_LE(worst, 1);
  EXPECT_LE(1000 * different, actual.size()) << different << " of " << actual.size();
}

// Bytes that another library cut off: each in (value - 1, value], but for one in a thousand within one level.
void expect_truncated(const std::vector<float>& values, const std::vector<byte>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  std::vector<byte> nearest;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float lost = values[i] - expected[i];
    nearest.push_back(lost > -1e-3f && lost < 1.001f ? expected[i] : static_cast<byte>(values[i]));
  }
  expect_close_bytes(nearest, expected);
}

// Functions of colors as operations.
const detail::color_range of_bytes{255, 1 / 255.0f};

template <class Space>
struct from_bytes {
  detail::color_range range = of_bytes;
  SUTURE_FN rgb operator()(const rgb& v) const { return Space::from_rgb(range.to_unit(v)); }
};
template <class Space>
struct to_unit {
  SUTURE_FN rgb operator()(const rgb& v) const { return Space::to_rgb(v); }
};
struct unmix_bytes {
  color_matrix unmix{};
  detail::color_range range = of_bytes;
  SUTURE_FN rgb operator()(const rgb& v) const { return separate_stains(range.to_unit(v), unmix); }
};

SUTURE_ORACLE_TEST(OracleColor, StainsAsScikitImage, support::calls("skimage.color.rgb2hed")) {
  expect_close(tile(c, "rgb").through<float>(from_bytes<hed>{}), c.output<double>("y").values, 2e-6);
}

SUTURE_ORACLE_TEST(OracleColor, StainsBackAsScikitImage, support::calls("skimage.color.hed2rgb")) {
  const auto stains = c.input<double>("hed");
  const std::vector<float> in(stains.values.begin(), stains.values.end());
  const auto y = tile_result<float>(to_unit<hed>{}, in, stains.shape[0], stains.shape[1]);
  expect_close(y, c.output<double>("y").values, 2e-6);
}

SUTURE_ORACLE_TEST(OracleColor, SeparatesStainsAsScikitImage, support::calls("skimage.color.separate_stains")) {
  unmix_bytes op;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) op.unmix.row[i][j] = c.params.at("matrix").at(i).at(j);
  const auto y = tile(c, "rgb").through<float>(op);
  expect_close(y, c.output<double>("y").values, 2e-6);
}

SUTURE_ORACLE_TEST(OracleColor, HedJitterAsScikitImage, support::calls("skimage hed2rgb(rgb2hed(rgb)*alpha+beta)")) {
  hed_jitter op;
  for (std::size_t k = 0; k < 3; ++k) {
    op.alpha[k] = c.params.at("alpha").at(k);
    op.beta[k] = c.params.at("beta").at(k);
  }
  const auto expected = c.output<double>("y").values;
  auto y = tile(c, "rgb").through<float>(op);
  for (float& v : y) v /= 255;
  expect_close(y, expected, 2e-6);
  std::vector<byte> rounded;
  for (const double v : expected) rounded.push_back(static_cast<byte>(std::nearbyint(255 * v)));
  expect_close_bytes(tile(c, "rgb").through<byte>(op | cast<byte>{}), rounded);
}

SUTURE_ORACLE_TEST(OracleColor, LabAsScikitImage, support::calls("skimage.color.rgb2lab")) {
  expect_close(tile(c, "rgb").through<float>(from_bytes<lab>{}), c.output<double>("y").values, 1e-4);
}

SUTURE_ORACLE_TEST(OracleColor, LabBackAsScikitImage, support::calls("skimage.color.lab2rgb")) {
  const auto in = c.input<float>("lab");
  const auto y = tile_result<float>(to_unit<lab>{}, in.values, in.shape[0], in.shape[1]);
  expect_close(y, c.output<double>("y").values, 2e-6);
}

SUTURE_ORACLE_TEST(OracleColor, HsvAsScikitImage, support::calls("skimage.color.rgb2hsv")) {
  expect_close(tile(c, "rgb").through<float>(from_bytes<hsv>{}), c.output<double>("y").values, 2e-6);
}

SUTURE_ORACLE_TEST(OracleColor, GrayAsScikitImage, support::calls("skimage.color.rgb2gray")) {
  const auto y = tile(c, "rgb").through<float>(grayscale{.rule = gray_rule::itu709});
  const auto expected = c.output<double>("y").values;
  std::vector<float> first;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(y[3 * i], y[3 * i + 1]);
    EXPECT_EQ(y[3 * i], y[3 * i + 2]);
    first.push_back(y[3 * i] / 255);
  }
  expect_close(first, expected, 2e-6);
}

// The operation that does what a call of torchvision with this factor does, about this gray.
color_jitter jitter_of(const oracle_case& c, float mean_gray) {
  const float factor = c.params.at("factor");
  const std::string step = c.op.substr(c.op.rfind('_') + 1);
  if (step == "brightness") return {.brightness = factor};
  if (step == "contrast") return {.contrast = factor, .pivot = mean_gray};
  if (step == "saturation") return {.saturation = factor};
  return {.hue = factor};
}

const std::string adjust = "torchvision.transforms.functional.adjust_";

// Float results, and those of uint8, which torchvision truncates.
SUTURE_ORACLE_TEST(OracleColor, ColorJitterAsTorchvision,
                   support::calls_one_of({adjust + "brightness", adjust + "contrast", adjust + "saturation",
                                          adjust + "hue"})) {
  const tile in(c, "rgb");
  double sum = 0, whole_sum = 0;
  for (std::size_t i = 0; i < in.values.values.size(); i += 3) {
    const byte* v = in.values.values.data() + i;
    const double gray = .2989 * v[0] + .587 * v[1] + .114 * v[2];
    sum += gray;
    whole_sum += std::floor(gray);
  }
  const double pixels = static_cast<double>(in.values.values.size()) / 3;
  auto y = in.through<float>(jitter_of(c, static_cast<float>(sum / pixels)));
  for (float& v : y) v /= 255;
  expect_close(y, c.output<float>("y").values, 1e-4);  // gray by .2989, not .299
  if (c.op.ends_with("saturation")) return;            // of rounded grays
  const auto bytes = in.through<float>(jitter_of(c, static_cast<float>(whole_sum / pixels)));
  expect_truncated(bytes, c.output<byte>("y_u8").values);
}

// The colors of the tile of a role.
template <class Space>
color_moments<Space> moments_of(const oracle_case& c, const char* role) {
  const tile t(c, role);
  color_moments<Space> fitted{};
  fit(cpu{}, fit_color_moments<Space>{},
      channels_last<const byte>(t.values.values.data(), {.extents = {1, t.values.shape[0], t.values.shape[1]}}, 3),
      everything{}, std::span(&fitted, 1));
  return fitted;
}

// A source tile normalized to a target tile, each by its own fit.
template <class Space>
std::vector<float> normalized(const oracle_case& c, reinhard_rule rule) {
  const color_moments<Space> source = moments_of<Space>(c, "source");
  return tile(c, "source")
      .template through<float>(
          reinhard<Space>{.fitted = {&source, 1}, .target = moments_of<Space>(c, "target"), .rule = rule});
}

SUTURE_ORACLE_TEST(OracleColor, ReinhardAsTorchstain, support::calls("torchstain.numpy Reinhard")) {
  const bool modified = c.params.at("method") == "modified";
  const color_moments<lab> target = moments_of<lab>(c, "target");
  const auto y = normalized<lab>(c, modified ? reinhard_rule::modified : reinhard_rule::plain);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(target.mean[k], c.expected.at("target_means").at(k).get<double>(), 1e-3);
    EXPECT_NEAR(target.standard_deviation[k], c.expected.at("target_stds").at(k).get<double>(), 1e-3);
  }
  expect_truncated(y, c.output<byte>("normalized").values);
}

// Lab in 8 bits, as OpenCV has it: the steps of L, a and b, and the range that they cover.
constexpr double lab_step[3] = {1 / 2.55, 1, 1}, lab_low[3] = {0, -128, -128}, lab_high[3] = {100, 127, 127};

// The normalization of one color in Lab.
struct normalized_color {
  double value[3];
  double ratio[3];       // of the deviations, which enlarges what is rounded before
  bool in_range = true;  // TIAToolbox clips what is not

  normalized_color(const rgb& color, const color_moments<lab>& source, const color_moments<lab>& target) {
    const rgb from = lab::from_rgb(of_bytes.to_unit(color));
    for (int k = 0; k < 3; ++k) {
      ratio[k] = static_cast<double>(target.standard_deviation[k]) / source.standard_deviation[k];
      value[k] = (from.c[k] - static_cast<double>(source.mean[k])) * ratio[k] + target.mean[k];
      in_range = in_range && value[k] >= lab_low[k] && value[k] <= lab_high[k];
    }
  }

  // The color in levels, with L, a and b moved by so many steps.
  rgb moved(const double (&steps)[3]) const {
    rgb v{};
    for (int k = 0; k < 3; ++k) v.c[k] = static_cast<float>(value[k] + steps[k] * lab_step[k]);
    v = lab::to_rgb(v);
    for (float& level : v.c) level *= 255;
    return v;
  }
};

// TIAToolbox has Lab in 8 bits. On the way in that moves L, a and b by up to a step: half of it is rounding, half of it
// the tables of OpenCV. The ratio of the deviations enlarges it. On the way out it takes off up to a step, since it cuts,
// and rounds levels by up to a half. Every value has to be as near as that at its own color.
SUTURE_ORACLE_TEST(OracleColor, ReinhardNearTiatoolbox, support::calls("tiatoolbox ReinhardNormalizer")) {
  const auto source = moments_of<lab>(c, "source"), target = moments_of<lab>(c, "target");
  const tile in(c, "source");
  const auto y = normalized<lab>(c, reinhard_rule::plain);
  const auto expected = c.output<byte>("normalized").values;
  ASSERT_EQ(y.size(), expected.size());
  std::size_t compared = 0, outside = 0;
  for (std::size_t i = 0; i < y.size(); i += 3) {
    const byte* v = in.values.values.data() + i;
    const normalized_color color({{float(v[0]), float(v[1]), float(v[2])}}, source, target);
    if (!color.in_range) continue;
    const rgb middle = color.moved({0, 0, 0});
    rgb low = middle, high = middle;
    for (unsigned corner = 0; corner < 8; ++corner) {
      double steps[3];
      for (int k = 0; k < 3; ++k) steps[k] = (corner >> k & 1) != 0 ? color.ratio[k] : -color.ratio[k] - 1;
      const rgb at = color.moved(steps);
      for (int k = 0; k < 3; ++k) low.c[k] = std::min(low.c[k], at.c[k]), high.c[k] = std::max(high.c[k], at.c[k]);
    }
    for (int k = 0; k < 3; ++k, ++compared) {
      const auto value = i + static_cast<std::size_t>(k);
      const float away = static_cast<float>(expected[value]) - y[value];
      outside += away < low.c[k] - middle.c[k] - .5f || away > high.c[k] - middle.c[k] + .5f ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 0U);
  EXPECT_EQ(outside, 0U) << "of " << compared;
}

}  // namespace
