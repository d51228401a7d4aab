// SPDX-License-Identifier: Apache-2.0
// Operations that apply fitted statistics, by their formulas, per sample and channel of a batch.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <suture/ops/value/ct_normalize.hpp>
#include <suture/ops/value/histogram_match.hpp>
#include <suture/ops/value/limit_to_range.hpp>
#include <suture/ops/value/percentile_scale.hpp>
#include <suture/ops/value/z_score.hpp>
#include <suture/suture.hpp>
#include <vector>

#include "ref/intensity.hpp"
#include "ref/statistics.hpp"
#include "support/expect_says.hpp"

namespace {

using namespace suture;

const site here{"apply"};

// Two samples of different size, two channels each.
struct samples {
  std::vector<grid> grids{{.extents = {3, 7, 11}}, {.extents = {2, 5, 70}}};
  std::vector<std::vector<float>> values;
  std::vector<view<const float>> views;

  samples() {
    std::mt19937 random(8);
    for (const grid& g : grids) {
      std::vector<float> v(static_cast<std::size_t>(2 * g.voxels()));
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] =
            random() % 4 == 0 ? 0.0f : static_cast<float>(random() % 100000) * .013f - (i < v.size() / 2 ? 400 : 100);
      values.push_back(v);
    }
    for (std::size_t i = 0; i < 2; ++i)
      views.push_back(contiguous(static_cast<const float*>(values[i].data()), grids[i], 2));
  }
  std::vector<double> channel(std::size_t sample, std::size_t c) const {
    const auto& v = values[sample];
    const auto half = static_cast<std::ptrdiff_t>(v.size() / 2);
    const auto start = v.begin() + static_cast<std::ptrdiff_t>(c) * half;
    return {start, start + half};
  }
};

template <class Operations>
std::vector<std::vector<float>> run_on(const samples& s, const Operations& operations) {
  std::vector<std::vector<float>> out;
  std::vector<view<float>> out_views;
  for (std::size_t i = 0; i < 2; ++i) out.emplace_back(s.values[i].size());
  for (std::size_t i = 0; i < 2; ++i) out_views.push_back(contiguous(out[i].data(), s.grids[i], 2));
  run(cpu{}, plan(operations, s.grids), image(s.views, out_views));
  return out;
}

// expected(x, values of the channel) for every voxel.
template <class Expected>
void expect_values(const samples& s, const std::vector<std::vector<float>>& out, double tolerance,
                   const Expected& expected) {
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t c = 0; c < 2; ++c) {
      const std::vector<double> x = s.channel(i, c);
      const auto apply = expected(x);
      for (std::size_t v = 0; v < x.size(); ++v)
        ASSERT_NEAR(static_cast<double>(out[i][c * x.size() + v]), apply(x[v]), tolerance)
            << "sample " << i << " channel " << c << " value " << x[v];
    }
}

TEST(apply, z_score_by_sample_and_channel) {
  const samples s;
  std::vector<moments> fitted(4);
  fit(cpu{}, fit_moments{}, s.views, everything{}, std::span(fitted));
  expect_values(s, run_on(s, z_score{.fitted = fitted, .channels = 2}), 1e-6 * 4, [](const std::vector<double>& x) {
    const auto mean = static_cast<double>(reference::mean(x));
    const auto deviation = static_cast<double>(reference::deviation(x, 0));
    return [=](double v) { return (v - mean) / deviation; };
  });
  fit(cpu{}, fit_moments{.ddof = 1}, s.views, nonzero{}, std::span(fitted));
  expect_values(s, run_on(s, z_score{.fitted = fitted, .channels = 2, .nonzero = true}), 1e-6 * 4,
                [](std::vector<double> x) {
                  std::erase(x, 0.0);
                  const auto mean = static_cast<double>(reference::mean(x));
                  const auto deviation = static_cast<double>(reference::deviation(x, 1));
                  return [=](double v) { return v == 0 ? 0 : (v - mean) / deviation; };
                });
}

TEST(apply, pooled_statistics_serve_all_channels) {
  const samples s;
  std::vector<moments> fitted(2);
  fit(cpu{}, fit_moments{.pooled = true}, s.views, everything{}, std::span(fitted));
  const auto out = run_on(s, z_score{.fitted = fitted});
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<double> all(s.values[i].begin(), s.values[i].end());
    const auto mean = static_cast<double>(reference::mean(all));
    const auto deviation = static_cast<double>(reference::deviation(all, 0));
    for (std::size_t v = 0; v < all.size(); ++v)
      ASSERT_NEAR(static_cast<double>(out[i][v]), (all[v] - mean) / deviation, 4e-6);
  }
}

TEST(apply, percentile_and_min_max_scales) {
  const samples s;
  std::vector<intensity_range> fitted(4);
  fit(cpu{}, fit_range{.lower = 1, .upper = 99}, s.views, everything{}, std::span(fitted));
  for (const bool clip : {false, true})
    expect_values(s,
                  run_on(s, percentile_scale{.fitted = fitted, .channels = 2, .b_min = -1, .b_max = 3, .clip = clip}),
                  4e-6, [clip](const std::vector<double>& x) {
                    const double low = reference::percentile(x, 1), high = reference::percentile(x, 99);
                    return [=](double v) { return reference::scale_range(v, low, high, -1, 3, clip); };
                  });
  fit(cpu{}, fit_range{}, s.views, everything{}, std::span(fitted));
  expect_values(s, run_on(s, min_max_scale{.fitted = fitted, .channels = 2}), 1e-6, [](const std::vector<double>& x) {
    const double low = *std::min_element(x.begin(), x.end()), high = *std::max_element(x.begin(), x.end());
    return [=](double v) { return (v - low) / (high - low); };
  });
}

TEST(apply, landmarks_match_a_reference_image) {
  const samples s;
  const double q[] = {1, 25, 50, 75, 99};
  const std::vector<double> wanted = s.channel(1, 1);
  fit_landmarks<5> how{};
  for (int k = 0; k < 5; ++k) {
    how.q[k] = q[k];
    how.target[k] = reference::percentile(wanted, q[k]);
  }
  std::vector<landmark_map<5>> fitted(4);
  fit(cpu{}, how, s.views, everything{}, std::span(fitted));
  expect_values(s, run_on(s, histogram_match{fitted, 2}), 4e-3, [&](const std::vector<double>& x) {
    std::vector<double> source;
    for (const double p : q) source.push_back(reference::percentile(x, p));
    return [source, &how](double v) {
      std::size_t k = 0;
      while (k < 3 && v >= source[k + 1]) ++k;
      if (source[k + 1] == source[k]) return how.target[k];
      return how.target[k] + (v - source[k]) / (source[k + 1] - source[k]) * (how.target[k + 1] - how.target[k]);
    };
  });
}

TEST(apply, ct_normalize_known_answers) {
  // The colon data set's fingerprint.
  const ct_normalize colon{.lower = -30, .upper = 165.82f, .mean = 62.18f, .standard_deviation = 32.65f};
  const auto f = colon.prepare(here);
  EXPECT_NEAR(f(-1000), -2.8232771822, 1e-6);
  EXPECT_NEAR(f(0), -1.9044410413, 1e-6);
  EXPECT_NEAR(f(100), 1.1583460949, 1e-6);
  EXPECT_NEAR(f(500), 3.1742725881, 1e-6);
  EXPECT_EQ(f(std::numeric_limits<float>::quiet_NaN()), f(-30));
  for (float x = -60; x < 200; x += .37f)
    EXPECT_NEAR(static_cast<double>(f(x)), reference::ct_normalized(static_cast<double>(x), -30, 165.82, 62.18, 32.65),
                1e-6);
  const ct_normalize constant{.lower = 5, .upper = 5, .mean = 5, .standard_deviation = 0};
  EXPECT_EQ(constant.prepare(here)(7), 0);
}

// Statistics written down, where others are fitted: operations act on them as on those of a fit.
TEST(apply, statistics_may_be_stated) {
  const voxel at{0, 0, 0, 0, 0, 0, 1};
  const moments m{.mean = 40, .standard_deviation = 12};
  EXPECT_EQ(status_name(m.status), "stated");
  EXPECT_NEAR((z_score{.fitted = {&m, 1}}.prepare(here)(64, at)), 2, 1e-6);
  EXPECT_EQ((z_score{.fitted = {&m, 1}}.prepare(here)(40, at)), 0);
  const intensity_range r{.low = -160, .high = 240}, unit{.low = 0, .high = 1};
  EXPECT_NEAR((min_max_scale{.fitted = {&r, 1}}.prepare(here)(40, at)), .5, 1e-6);
  EXPECT_EQ((limit_to_range{.fitted = {&r, 1}}.prepare(here)(300, at)), 240);
  EXPECT_EQ((limit_to_range{.fitted = {&unit, 1}}.prepare(here)(300, at)), 1);
  const landmark_map<3> l{.source = {0, 40, 100}, .target = {0, 50, 100}};
  EXPECT_NEAR((histogram_match{std::span(&l, 1)}.prepare(here)(20, at)), 25, 1e-5);
  EXPECT_NEAR((histogram_match{std::span(&l, 1)}.prepare(here)(70, at)), 75, 1e-5);

  // As those of a fit to the bit; and not with half of them changed later.
  const std::vector<float> x{3, 1, 4, 1, 5, 9, 2, 6};
  const auto row = contiguous(x.data(), grid{.extents = {1, 2, 4}});
  moments found;
  fit(cpu{}, fit_moments{}, row, everything{}, std::span(&found, 1));
  const moments stated{.mean = found.mean, .standard_deviation = found.standard_deviation};
  EXPECT_EQ(stated.center, found.center);
  EXPECT_EQ(stated.reciprocal, found.reciprocal);
  intensity_range found_range;
  fit(cpu{}, fit_range{}, row, everything{}, std::span(&found_range, 1));
  const intensity_range stated_range{.low = found_range.low, .high = found_range.high};
  EXPECT_EQ(stated_range.origin, found_range.origin);
  EXPECT_EQ(stated_range.reciprocal, found_range.reciprocal);
  std::vector<float> y(8);
  moments changed{.mean = 3};
  changed.mean = 40;
  const auto made = [&](const moments& from) {
    run(cpu{}, plan(z_score{.fitted = {&from, 1}}, std::vector{row.grid}), image(row, contiguous(y.data(), row.grid)));
  };
  EXPECT_SAYS(made(changed), "z_score: sample 0: the moments were changed");
  const auto matched = [&](const landmark_map<3>& from) {
    run(cpu{}, plan(histogram_match{std::span(&from, 1)}, std::vector{row.grid}),
        image(row, contiguous(y.data(), row.grid)));
  };
  landmark_map<3> moved = l;
  moved.target[1] = 60;
  EXPECT_SAYS(matched(moved), "histogram_match: sample 0: the landmarks were changed");
  EXPECT_SAYS(matched(landmark_map<3>{.source = {0, 40, 30}, .target = {0, 50, 100}}),
              "histogram_match: sample 0: source: landmark 2 is 30, below 40 before it");
  matched(l);
  made(stated);
  EXPECT_NEAR(y[5], (9 - found.mean) / found.standard_deviation, 1e-6);
}

TEST(apply, what_could_not_be_fitted_does_no_harm) {
  const voxel at{0, 0, 0, 0, 0, 0, 1};
  const moments nothing{};
  EXPECT_EQ((z_score{.fitted = {&nothing, 1}}.prepare(here)(17.5f, at)), 17.5f);
  moments constant = nothing;
  constant.center = 3;
  constant.reciprocal = 1e8f;
  EXPECT_EQ((z_score{.fitted = {&constant, 1}}.prepare(here)(3, at)), 0);

  const std::vector<float> same(60, 4.0f), bad(60, std::numeric_limits<float>::quiet_NaN());
  const auto fitted_range = [](const std::vector<float>& v) {
    std::vector<intensity_range> r(1);
    fit(cpu{}, fit_range{}, contiguous(v.data(), grid{.extents = {3, 4, 5}}), everything{}, std::span(r));
    return r[0];
  };
  const intensity_range one = fitted_range(same), none = fitted_range(bad);
  EXPECT_EQ(one.status, fit_status::constant);
  EXPECT_EQ(none.status, fit_status::empty);
  EXPECT_EQ(none.tally.excluded, 60u);
  EXPECT_EQ((min_max_scale{.fitted = {&one, 1}, .b_min = -1}.prepare(here)(4, at)), -1);
  EXPECT_EQ((min_max_scale{.fitted = {&none, 1}}.prepare(here)(.25f, at)), .25f);
  std::vector<landmark_map<3>> m(1);
  fit(cpu{}, fit_landmarks<3>{{1, 50, 99}, {0, 20, 100}}, contiguous(bad.data(), grid{.extents = {3, 4, 5}}),
      everything{}, std::span(m));
  for (const float x : {-7.0f, 3.0f, 60.0f, 1000.0f}) EXPECT_EQ((histogram_match{m}.prepare(here)(x, at)), x);
  fit(cpu{}, fit_landmarks<3>{{1, 50, 99}, {0, 20, 100}}, contiguous(same.data(), grid{.extents = {3, 4, 5}}),
      everything{}, std::span(m));
  for (const float x : {-7.0f, 4.0f, 60.0f}) EXPECT_TRUE(std::isfinite((histogram_match{m}.prepare(here)(x, at))));
}

TEST(apply, fits_then_normalizes) {
  const samples s;
  const auto& mris = s.views;
  std::vector<std::uint8_t> foreground(static_cast<std::size_t>(s.grids[0].voxels()), 1),
      other(static_cast<std::size_t>(s.grids[1].voxels()), 1);
  other[3] = 0;
  const std::vector<view<const std::uint8_t>> masks{
      contiguous(static_cast<const std::uint8_t*>(foreground.data()), s.grids[0]),
      contiguous(static_cast<const std::uint8_t*>(other.data()), s.grids[1])};
  // [fits]
  std::vector<suture::moments> fitted(mris.size() * 2);  // samples times channels
  suture::fit(suture::cpu{}, suture::fit_moments{.ddof = 0}, mris, suture::inside(masks), std::span(fitted));
  const auto pipeline = suture::z_score{.fitted = fitted, .channels = 2} | suture::resample{.spacing_mm = {1, 1, 1}} |
                        suture::cast<float>{};
  // [/fits]
  const auto out = run_on(s, pipeline);
  std::vector<double> z(out[0].begin(), out[0].begin() + s.grids[0].voxels());
  EXPECT_NEAR(static_cast<double>(reference::mean(z)), 0, 1e-6);
  EXPECT_NEAR(static_cast<double>(reference::deviation(z, 0)), 1, 1e-6);
}

// One result for a sample or channel too few is told when the plan is made.
TEST(apply, asks_for_results_for_every_sample) {
  const samples s;  // two, of two channels
  const auto says = [&](const auto& operation, const std::string& text) {
    EXPECT_SAYS(plan(operation, s.views), text);
  };
  const std::vector<moments> m(4);
  const std::vector<intensity_range> r(4);
  const std::vector<landmark_map<3>> l(4);
  const auto first = [](const auto& results, std::size_t n) { return std::span(results).first(n); };
  EXPECT_NO_THROW(plan(z_score{.fitted = m, .channels = 2}, s.views));
  EXPECT_NO_THROW(plan(z_score{.fitted = std::span(m.data(), 2)}, s.views));
  says(z_score{.fitted = first(m, 3), .channels = 2},
       "suture: z_score: sample 1: no fitted results for it, 3 given, 2 per sample");
  says(z_score{.fitted = {m.data(), 1}}, "z_score: sample 1: no fitted results for it, 1 given, 1 per sample");
  says(z_score{.fitted = first(m, 1), .channels = 2}, "z_score: sample 0: no fitted results for it, 1 given");
  says(percentile_scale{.fitted = first(r, 1)}, "percentile_scale: sample 1: no fitted results for it");
  says(min_max_scale{.fitted = first(r, 2), .channels = 2}, "min_max_scale: sample 1: no fitted results for it");
  says(limit_to_range{.fitted = first(r, 1)}, "limit_to_range: sample 1: no fitted results for it");
  says(histogram_match{first(l, 1)}, "histogram_match: sample 1: no fitted results for it");
  says(resample{.spacing_mm = {1, 1, 1}} | z_score{.fitted = first(m, 1)}, "z_score: sample 1: no fitted results");
  says(z_score{.fitted = std::vector<moments>{}}, "z_score: sample 0: no fitted results given");
  const moments* const null = nullptr;
  says(z_score{.fitted = {null, 4}, .channels = 2}, "z_score: sample 0: null pointer to the fitted results");

  landmark_map<3> array[2];
  static_assert(std::is_same_v<decltype(histogram_match{array}), histogram_match<3>>);
  static_assert(std::is_same_v<decltype(histogram_match{l, 2}), histogram_match<3>>);
  static_assert(std::is_same_v<decltype(histogram_match{std::span(array), 2}), histogram_match<3>>);
  static_assert(std::is_same_v<decltype(histogram_match{std::span(l)}), histogram_match<3>>);
}

// So is a number of channels that is not the image's, when the image is bound: the results would be read as others'.
TEST(apply, asks_for_results_of_the_channels_of_the_image) {
  const samples s;  // two, of two channels
  const auto says = [&](const auto& operation, const std::string& text) { EXPECT_SAYS(run_on(s, operation), text); };
  const std::vector<moments> m(6, {.mean = 3});
  const std::vector<intensity_range> r(6, {.high = 3});
  const std::vector<landmark_map<3>> l(6, {.source = {0, 1, 2}, .target = {0, 2, 3}});
  const auto four = [](const auto& results) { return std::span(results).first(4); };
  const std::string missing =
      "sample 0: 4 fitted results given, one for each of the 2 channels: say channels = 2, or give one per sample";
  says(z_score{.fitted = four(m)}, "suture: z_score: " + missing);
  says(percentile_scale{.fitted = four(r)}, "percentile_scale: " + missing);
  says(min_max_scale{.fitted = four(r)}, "min_max_scale: " + missing);
  says(limit_to_range{.fitted = four(r)}, "limit_to_range: " + missing);
  says(histogram_match{four(l)}, "histogram_match: " + missing);
  const std::string others = "sample 0: the image has 2 channels, fitted results are for 3";
  says(z_score{.fitted = m, .channels = 3}, "suture: z_score: " + others);
  says(percentile_scale{.fitted = r, .channels = 3}, "percentile_scale: " + others);
  says(min_max_scale{.fitted = r, .channels = 3}, "min_max_scale: " + others);
  says(identity{} | limit_to_range{.fitted = r, .channels = 3}, "limit_to_range: " + others);
  says(histogram_match{l, 3}, "histogram_match: " + others);
}

// Results that no fit has filled, one of them among stated ones, are refused before anything is written. Defaults that
// are meant say so.
TEST(apply, refuses_results_that_no_fit_has_filled) {
  const samples s;  // two, of two channels
  const auto says = [&](const auto& operation, const std::string& fit) {
    EXPECT_SAYS(run_on(s, operation),
                "sample 1: fitted: expected the results of a fit, got the status not_fitted. Run " + fit +
                    " before, or state them");
  };
  std::vector<moments> m(4, {.mean = 3});
  std::vector<intensity_range> r(4, {.high = 3});
  std::vector<landmark_map<3>> l(4, {.source = {0, 1, 2}, .target = {0, 2, 3}});
  m[3] = {};
  r[3] = {};
  l[3] = {};
  says(z_score{.fitted = m, .channels = 2}, "fit_moments");
  const auto p = plan(z_score{.fitted = m, .channels = 2}, s.grids);
  std::vector<float> out(s.values[0].size() + s.values[1].size());
  const std::vector to{contiguous(out.data(), s.grids[0], 2),
                       contiguous(out.data() + s.values[0].size(), s.grids[1], 2)};
  EXPECT_SAYS(prepare(cpu{}, p, image(s.views, to)), "got the status not_fitted");
  says(identity{} | z_score{.fitted = m, .channels = 2}, "fit_moments");
  says(percentile_scale{.fitted = r, .channels = 2}, "fit_range");
  says(min_max_scale{.fitted = r, .channels = 2}, "fit_range");
  says(limit_to_range{.fitted = r, .channels = 2}, "fit_range");
  says(histogram_match{l, 2}, "fit_landmarks");
  m[3] = {.status = fit_status::stated};
  r[3] = {.status = fit_status::stated};
  l[3] = {.status = fit_status::stated};
  EXPECT_NO_THROW(run_on(s, z_score{.fitted = m, .channels = 2}));
  EXPECT_NO_THROW(run_on(s, limit_to_range{.fitted = r, .channels = 2}));
  EXPECT_NO_THROW(run_on(s, histogram_match{l, 2}));

  EXPECT_EQ(moments{}.status, fit_status::not_fitted);
  EXPECT_EQ(moments{.minimum = -1}.status, fit_status::stated);
  EXPECT_EQ(intensity_range{}.status, fit_status::not_fitted);
  EXPECT_EQ(landmark_map<2>{}.status, fit_status::not_fitted);
  EXPECT_EQ(status_name(fit_status::not_fitted), "not_fitted");

  r[3].high = 7;  // what follows from it is left behind
  EXPECT_SAYS(run_on(s, percentile_scale{.fitted = r, .channels = 2}), "sample 1: the range was changed");
}

// Numbers that no fit returns would be taken for others: a deviation below 0 for 1e-8, a falling range for its low end.
TEST(apply, refuses_stated_results_that_no_fit_returns) {
  const samples s;
  const auto says = [&](const auto& operation, const std::string& text) {
    EXPECT_SAYS(run_on(s, operation), "sample 0: " + text);
  };
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const double deviation : {-12., -1e-300, std::nan(""), infinite}) {
    const std::vector<moments> m(2, {.mean = 3, .standard_deviation = deviation});
    says(z_score{.fitted = m}, "standard_deviation: expected a finite number of 0 or above, got ");
  }
  for (const double mean : {std::nan(""), infinite, -3.5e38}) {
    const std::vector<moments> m(2, {.mean = mean});
    says(z_score{.fitted = m}, "mean: expected a finite float, got ");
  }
  for (const auto& [low, high] : {std::pair{240., -160.}, {std::nan(""), 1.}, {0., infinite}, {-3.5e38, 0.}}) {
    const std::vector<intensity_range> r(2, {.low = low, .high = high});
    const std::string text = "low and high: expected finite floats, low first, got ";
    says(percentile_scale{.fitted = r}, text);
    says(min_max_scale{.fitted = r}, text);
    says(limit_to_range{.fitted = r}, text);
  }
  for (const float number : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    const std::vector<landmark_map<3>> source(2, {.source = {number, 1, 2}, .target = {0, 2, 3}});
    const std::vector<landmark_map<3>> target(2, {.source = {0, 1, 2}, .target = {0, 2, number}});
    says(histogram_match{source}, "landmark 0: expected finite numbers, got the source ");
    says(histogram_match{target}, "landmark 2: expected finite numbers, got the source 2 and the target ");
  }
  constexpr double largest = std::numeric_limits<float>::max();
  const std::vector<intensity_range> widest(2, {.low = -largest, .high = largest});
  EXPECT_NO_THROW(run_on(s, percentile_scale{.fitted = widest}));
  const std::vector<intensity_range> level(2, {.low = 3, .high = 3});
  EXPECT_NO_THROW(run_on(s, limit_to_range{.fitted = level}));
  const std::vector<moments> flat(2, {.mean = 3, .standard_deviation = 0});
  EXPECT_NO_THROW(run_on(s, z_score{.fitted = flat}));
}

TEST(apply, refuses_bad_parameters) {
  const samples s;
  const intensity_range r{};
  EXPECT_THROW(run_on(s, z_score{.fitted = {}}), error);
  EXPECT_THROW(run_on(s, histogram_match<3>{.fitted = {}}), error);
  const moments m{};
  EXPECT_THROW((z_score{.fitted = {&m, 1}, .channels = 0}.prepare(here)), error);
  EXPECT_THROW((percentile_scale{.fitted = {}}.prepare(here)), error);
  EXPECT_THROW((percentile_scale{.fitted = {&r, 1}, .b_min = 1, .b_max = 1}.prepare(here)), error);
  EXPECT_THROW((min_max_scale{.fitted = {&r, 1}, .b_min = -std::numeric_limits<float>::infinity()}.prepare(here)),
               error);
  EXPECT_THROW((min_max_scale{.fitted = {&r, 1}, .b_min = -3e38f, .b_max = 3e38f}.prepare(here)), error);
  EXPECT_THROW((ct_normalize{.lower = 2, .upper = 1, .mean = 0, .standard_deviation = 1}.prepare(here)), error);
  EXPECT_THROW((ct_normalize{.lower = 0, .upper = 1, .mean = 0, .standard_deviation = -1}.prepare(here)), error);
  EXPECT_THROW((ct_normalize{.lower = 0, .upper = 1, .mean = std::nanf(""), .standard_deviation = 1}.prepare(here)),
               error);
}

}  // namespace
