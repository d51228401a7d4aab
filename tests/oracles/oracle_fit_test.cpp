// SPDX-License-Identifier: Apache-2.0
// Fits and what applies them against NumPy, scikit-image, OpenCV, MONAI and TorchIO.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <suture/ops/value/histogram_match.hpp>
#include <suture/ops/value/percentile_scale.hpp>
#include <suture/suture.hpp>

#include "support/expect_close.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"

namespace {

using namespace suture;
using nlohmann::json;
using support::oracle_case;

template <class Fit, class T, class Selection>
typename Fit::result fitted(const Fit& how, const support::array<T>& x, const Selection& selection) {
  std::vector<typename Fit::result> result(1);
  const auto seen = contiguous(x.values.data(), grid{.extents = {1, 1, x.size()}});
  fit(cpu{}, how, seen, selection, std::span(result));
  return result[0];
}

void expect_relative(double actual, double expected) { EXPECT_NEAR(actual, expected, 1e-13 * std::abs(expected)); }

template <class T>
void expect_statistics(const oracle_case& c) {
  const auto x = c.input<T>("x");
  const json& e = c.expected;
  const std::vector<double> q = c.params.at("q");
  const auto check = [&](const auto& selection, const json& percentiles, double mean, double deviation) {
    const auto m = fitted(fit_moments{}, x, selection);
    expect_relative(m.mean, mean);
    expect_relative(m.standard_deviation, deviation);
    for (std::size_t first = 0; first < q.size(); first += 4) {  // four at a time; the last once more, to fill up
      fit_percentiles<4> how{};
      for (std::size_t k = 0; k < 4; ++k) how.q[k] = q[std::min(first + k, q.size() - 1)];
      const auto p = fitted(how, x, selection);
      for (std::size_t k = first; k < std::min(first + 4, q.size()); ++k)
        EXPECT_EQ(p.value[k - first], percentiles.at(k).get<double>()) << "percentile " << q[k];
    }
    return m;
  };
  const auto m = check(everything{}, e.at("percentiles").at("linear"), e.at("mean"), e.at("std0"));
  EXPECT_EQ(m.minimum, e.at("min").get<double>());
  EXPECT_EQ(m.maximum, e.at("max").get<double>());
  expect_relative(fitted(fit_moments{.ddof = 1}, x, everything{}).standard_deviation, e.at("std1"));
  const above masked(e.at("masked_threshold").get<float>());
  const auto inside = check(masked, e.at("masked_percentiles_linear"), e.at("masked_mean"), e.at("masked_std0"));
  EXPECT_EQ(inside.tally.count, e.at("masked_count").get<std::uint64_t>());

  const auto y = support::image_result<float>(z_score{.fitted = {&m, 1}}, x.values,
                                              support::voxel_grid(support::size_from(x.shape)));
  const auto expected = c.output<double>("y").values;
  support::expect_close(y, expected, 8 * 0x1p-23 * support::range_of(expected));
}

SUTURE_ORACLE_TEST(OracleFit, StatisticsAsNumpy, support::calls("numpy.percentile/mean/std (float64)")) {
  if (c.input_type("x") == "<i2")
    expect_statistics<std::int16_t>(c);
  else
    expect_statistics<float>(c);
}

SUTURE_ORACLE_TEST(OracleFit, OtsuAsScikitImage, support::calls("skimage.filters.threshold_*")) {
  expect_relative(fitted(fit_otsu{}, c.input<float>("x"), everything{}).value, c.expected.at("otsu256"));
}

SUTURE_ORACLE_TEST(OracleFit, OtsuAsOpenCV, support::calls("skimage.filters.threshold_otsu")) {
  const auto rgb = c.input<std::uint8_t>("rgb");
  support::array<std::uint8_t> gray;
  for (std::size_t i = 0; i < rgb.values.size(); i += 3)
    gray.values.push_back(static_cast<std::uint8_t>(
        (9798 * rgb.values[i] + 19235 * rgb.values[i + 1] + 3735 * rgb.values[i + 2] + 16384) >> 15));
  EXPECT_EQ(fitted(fit_otsu{.rule = otsu_rule::opencv}, gray, everything{}).value,
            c.expected.at("u8_gray_cv2").get<double>());
}

SUTURE_ORACLE_TEST(OracleFit, NormalisesNonzeroVoxelsAsMonai,
                   support::calls("monai.transforms.NormalizeIntensity",
                                  [](const oracle_case& c) { return c.has("nonzero", true); })) {
  const auto x = c.input<float>("x");
  const moments m = fitted(fit_moments{}, x, nonzero{});
  const auto y = support::image_result<float>(z_score{.fitted = {&m, 1}, .nonzero = true}, x.values,
                                              support::voxel_grid(support::size_from(x.shape)));
  const auto expected = c.output<double>("y").values;
  support::expect_close(y, expected, 8 * 0x1p-23 * support::range_of(expected));
}

// The image of a case scaled between two of its percentiles.
std::vector<float> scaled(const oracle_case& c, double lower, double upper, float b_min, float b_max, bool clip) {
  const auto x = c.input<float>("x");
  const intensity_range r = fitted(fit_range{.lower = lower, .upper = upper}, x, everything{});
  const percentile_scale scale{.fitted = {&r, 1}, .b_min = b_min, .b_max = b_max, .clip = clip};
  return support::image_result<float>(scale, x.values, support::voxel_grid(support::size_from(x.shape)));
}

SUTURE_ORACLE_TEST(OracleFit, ScalesBetweenPercentilesAsMonai,
                   support::calls("monai.transforms.ScaleIntensityRangePercentiles",
                                  [](const oracle_case& c) { return !c.has("relative", true); })) {
  const json& p = c.params;
  const float b_min = p.at("b_min"), b_max = p.at("b_max");
  const auto expected = c.output<double>("y").values;
  support::expect_close(scaled(c, p.at("lower"), p.at("upper"), b_min, b_max, p.at("clip")), expected,
                        4 * 0x1p-23 * support::range_of(expected));
}

SUTURE_ORACLE_TEST(OracleFit, ScalesBetweenPercentilesAsScikitImage,
                   support::calls("skimage.exposure.rescale_intensity")) {
  const json &from = c.params.at("in_range_percentiles"), &to = c.params.at("out_range");
  const auto expected = c.output<double>("y").values;
  support::expect_close(scaled(c, from.at(0), from.at(1), to.at(0), to.at(1), true), expected,
                        4 * 0x1p-23 * support::range_of(expected));
}

SUTURE_ORACLE_TEST(OracleFit, StandardisesAsTorchio, support::calls("torchio.HistogramStandardization")) {
  const auto x = c.input<float>("x");
  const std::vector<double> q = c.params.at("percentiles"), landmarks = c.params.at("landmarks");
  std::vector<std::pair<double, double>> kept;  // TorchIO keeps the quartiles out of its map
  for (std::size_t i = 0; i < q.size(); ++i)
    if (q[i] != 25 && q[i] != 75) kept.emplace_back(q[i], landmarks[i]);
  const auto compare = [&]<int N>(std::integral_constant<int, N>) {
    fit_landmarks<N> how{};
    for (int k = 0; k < N; ++k) {
      how.q[k] = kept[static_cast<std::size_t>(k)].first;
      how.target[k] = kept[static_cast<std::size_t>(k)].second;
    }
    const landmark_map<N> m = fitted(how, x, above{0});
    const auto y = support::image_result<float>(histogram_match{std::span(&m, 1)}, x.values,
                                                support::voxel_grid(support::size_from(x.shape)));
    const auto expected = c.output<double>("y").values;
    support::expect_close(y, expected, 8 * 0x1p-23 * support::range_of(expected));
  };
  const auto compiled = [&]<int... N>(std::integer_sequence<int, N...>) {
    return ((kept.size() == N + 2 ? (compare(std::integral_constant<int, N + 2>{}), true) : false) || ...);
  };
  ASSERT_TRUE(compiled(std::make_integer_sequence<int, 15>{})) << kept.size() << " landmarks; this test has 2 to 16";
}

}  // namespace
