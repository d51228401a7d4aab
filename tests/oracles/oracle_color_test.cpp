// SPDX-License-Identifier: Apache-2.0
// Color operations on stained tiles against scikit-image, torchvision, torchstain and TIAToolbox.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
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
  SUTURE_FN rgb operator()(const rgb& v) const { return Space::from_rgb(range.enter(v)); }
};
template <class Space>
struct to_unit {
  SUTURE_FN rgb operator()(const rgb& v) const { return Space::to_rgb(v); }
};
struct unmix_bytes {
  color_matrix unmix{};
  detail::color_range range = of_bytes;
  SUTURE_FN rgb operator()(const rgb& v) const { return separate_stains(range.enter(v), unmix); }
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

// Returns the factor by which a normalization enlarges rounding ahead of it: the largest ratio of two deviations, at least 1.
double growth(const oracle_case& c) {
  const auto source = moments_of<lab>(c, "source"), target = moments_of<lab>(c, "target");
  double most = 1;
  for (int k = 0; k < 3; ++k)
    most = std::max(most, static_cast<double>(target.standard_deviation[k]) / source.standard_deviation[k]);
  return most;
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

// TIAToolbox rounds Lab to 8 bits on its way in and out, which costs a level on average and some at dark pixels. What it
// rounds on the way in grows by the ratio of the deviations, where the target has the larger ones. The other rule of the
// two, which is told apart by how far it changes the deviations, is farther away.
SUTURE_ORACLE_TEST(OracleColor, ReinhardNearTiatoolbox, support::calls("tiatoolbox ReinhardNormalizer")) {
  const auto expected = c.output<byte>("normalized").values;
  const auto distances = [&](reinhard_rule rule) {
    const auto y = normalized<lab>(c, rule);
    std::vector<double> d;
    for (std::size_t i = 0; i < y.size(); ++i) d.push_back(std::abs(static_cast<double>(y[i]) - expected[i]));
    std::sort(d.begin(), d.end());
    return d;
  };
  const auto mean = [](const std::vector<double>& d) {
    return std::accumulate(d.begin(), d.end(), 0.0) / static_cast<double>(d.size());
  };
  const std::vector<double> plain = distances(reinhard_rule::plain);
  EXPECT_LE(mean(plain), 1.25 * growth(c));
  EXPECT_LE(plain[plain.size() * 99 / 100], 7 * growth(c));
  EXPECT_GT(mean(distances(reinhard_rule::modified)), mean(plain));
}

}  // namespace
