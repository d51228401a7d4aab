// SPDX-License-Identifier: Apache-2.0
// Bias fields, counting noise, shifted histograms and dropout against NumPy and SciPy, and their errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "support/expect_close.hpp"
#include "support/expect_says.hpp"
#include "support/library.hpp"
#include "support/lone_voxels.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;
using support::expect_close;
using support::image_result;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr double eps = 0x1p-23;
const site here{"tested operation", 7};

draws random_of(std::uint64_t sample) { return {2024, 3, sample, 11}; }

// What a draw leaves for the next one.
template <class Op>
float next_after(const Op& op, const grid& g) {
  draws random = random_of(5);
  if constexpr (draws_on_grid<Op>)
    op.draw(random, g, here);
  else
    op.draw(random, here);
  return random.uniform(0, 1);
}

// ---- bias fields -----------------------------------------------------------------------------------------------

std::vector<float> field_of(const bias_field& op) {
  const grid g{.extents = op.extents};
  return image_result<float>(op, std::vector<float>(static_cast<std::size_t>(g.voxels()), 1.0f), g);
}

TEST(bias_field, of_one_plane_is_numpy_leggrid2d_with_its_lower_triangle) {
  const bias_field op{
      .coefficients = {-0.414f, -0.263f, 0.301f, 0.082f, -0.406f, -0.067f, -0.021f, -0.340f, 0.235f, -0.386f},
      .extents = {1, 6, 7}};
  const std::vector<double> expected{
      0.69142541, 1.2794207,  1.3941142,  1.1084914,  0.79697982, 0.64205965, 0.71820517, 1.3226536,  0.93236896,
      0.7882132,  0.73975221, 0.71349014, 0.65466825, 0.52900362, 0.79992284, 0.64986276, 0.61452894, 0.63699084,
      0.68158062, 0.70895308, 0.67508275, 0.37710184, 0.49781541, 0.5757928,  0.61962551, 0.65877103, 0.7347825,
      0.91301771, 0.34165289, 0.48159425, 0.5650506,  0.596116,   0.61085642, 0.65681033, 0.800499,   1.466678,
      0.67610465, 0.50614812, 0.4965853,  0.51526493, 0.45630557, 0.27831548};
  expect_close(field_of(op), expected, 2e-6);
}

TEST(bias_field, of_degree_5_is_numpy_leggrid3d) {
  const bias_field op{
      .coefficients = {-0.065f, 0.010f,  -0.042f, 0.052f,  0.143f,  0.274f,  -0.129f, 0.089f,  0.118f,  -0.124f,
                       -0.299f, 0.284f,  -0.121f, -0.112f, 0.235f,  0.051f,  -0.017f, 0.164f,  -0.282f, 0.124f,
                       -0.075f, -0.245f, 0.096f,  0.259f,  -0.176f, 0.078f,  -0.121f, 0.145f,  0.133f,  -0.169f,
                       0.198f,  0.095f,  0.110f,  0.192f,  -0.043f, 0.155f,  0.227f,  -0.239f, 0.210f,  -0.064f,
                       -0.012f, -0.212f, 0.119f,  -0.125f, 0.223f,  -0.135f, 0.037f,  -0.060f, 0.068f,  -0.182f,
                       -0.192f, 0.148f,  0.151f,  0.040f,  0.253f,  -0.177f},
      .extents = {3, 4, 5},
      .degree = 5};
  const std::vector<double> expected{
      0.42358546, 1.1481639,  1.601595,   0.8467485,  1.3620624,  1.6261011,  1.8029167,  1.8539832,  1.4724538,
      2.2161366,  2.0461561,  3.1761478,  2.7906935,  2.3515901,  2.5646949,  0.45703285, 1.5862908,  1.1126561,
      0.97837017, 1.440514,   0.5029573,  1.1050241,  1.3961941,  0.68350354, 1.5884362,  0.63731335, 0.74051254,
      0.9646135,  0.86875129, 1.6400325,  0.37872402, 0.60389051, 0.79551266, 0.87944622, 1.1014558,  0.39951659,
      0.96208888, 0.92104167, 1.0554434,  1.5659615,  0.93332668, 1.2762745,  1.972891,   1.4824256,  7.063919,
      2.0754137,  0.76891653, 0.81175343, 0.77812451, 1.7700362,  1.893276,   0.58400126, 0.54598679, 0.65739134,
      0.96039809, 3.0987537,  0.94264049, 0.67384848, 1.1542076,  2.8950431};
  expect_close(field_of(op), expected, 1e-5);
}

// A volume of one voxel along y or x keeps the terms of a volume: P_1(Z) is term 10 of degree 3, and a plane has ten.
TEST(bias_field, of_a_thin_volume_varies_along_z) {
  for (const extent3 n : {extent3{9, 1, 7}, extent3{9, 7, 1}}) {
    bias_field op{.coefficients = {}, .extents = n};
    op.coefficients[10] = .5f;
    const std::vector<float> y = field_of(op);
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], std::exp(.5 * (-1 + static_cast<double>(i / 7) / 4)), 4 * eps) << n << ' ' << i;
  }
}

TEST(bias_field, reaches_its_ends_and_takes_a_single_voxel_as_the_middle) {
  for (const std::int64_t n : {2, 15, 16, 17, 127, 512}) {
    const auto y = field_of({.coefficients = {0, 1}, .extents = {2, 2, n}, .degree = 1});  // exp(X)
    EXPECT_NEAR(y.front(), std::exp(-1.0), eps);
    EXPECT_NEAR(y.back(), std::exp(1.0), 4 * eps);
  }
  const bias_field volume{
      .coefficients = {.5f, 1, 1, 1}, .extents = {1, 1, 1}, .degree = 1, .basis = bias_basis::monomial};
  EXPECT_NEAR(field_of(volume)[0], std::exp(0.5), 2 * eps);
  const bias_field plane{.coefficients = {.5f, 1, 1}, .extents = {1, 1, 1}, .degree = 1};
  EXPECT_NEAR(field_of(plane)[0], std::exp(0.5), 2 * eps);
  EXPECT_EQ((field_of({.coefficients = {}, .extents = {2, 3, 4}, .degree = 0})), std::vector<float>(24, 1.0f));
}

TEST(bias_field, multiplies_and_keeps_what_is_not_a_number) {
  const auto f = bias_field{.coefficients = {.25f}, .extents = {4, 4, 4}}.prepare(here);
  const voxel at{0, 0, 1, 2, 3, 27, 64};
  EXPECT_NEAR(f(-3, at), -3 * std::exp(0.25), 4 * eps);
  EXPECT_EQ(f(0, at), 0);
  EXPECT_TRUE(std::isnan(f(not_a_number, at)));
  EXPECT_EQ(f(infinity, at), infinity);
}

TEST(bias_field, errors_name_the_value) {
  const extent3 n{4, 4, 4};
  EXPECT_SAYS((bias_field{.coefficients = {}, .extents = n, .degree = 6}.prepare(here)), "degree 6 is not in 0 .. 5");
  EXPECT_SAYS((bias_field{.coefficients = {}, .extents = n, .degree = -1}.prepare(here)), "degree -1");
  EXPECT_SAYS((bias_field{.coefficients = {}, .extents = {4, 0, 4}}.prepare(here)), "extents (4, 0, 4)");
  EXPECT_SAYS((bias_field{.coefficients = {1, not_a_number}, .extents = n}.prepare(here)), "coefficient nan");
  EXPECT_SAYS((bias_field{.coefficients = {50, -31}, .extents = n}.prepare(here)), "add up to 81");
  EXPECT_SAYS((bias_field{.coefficients = {1, 1, 1, 1, 2}, .extents = n, .degree = 1}.prepare(here)),
              "coefficient 4 is 2, but degree 1 has 4");
  EXPECT_SAYS((bias_field{.coefficients = {1, 1, 1, 2}, .extents = {1, 4, 4}, .degree = 1}.prepare(here)),
              "coefficient 3 is 2, but degree 1 has 3");
  draws random = random_of(1);
  const grid g{.extents = n};
  EXPECT_SAYS((random_bias_field{.coefficients = {1, 0}}.draw(random, g, here)), "coefficients [1, 0]");
  EXPECT_SAYS((random_bias_field{.degree = 7}.draw(random, g, here)), "sample 7: degree 7");
  EXPECT_SAYS((random_bias_field{.coefficients = {-5, 1}}.draw(random, g, here)),
              "coefficients [-5, 1] of 20 terms may add up to more than 80");
}

TEST(random_bias_field, draws_each_coefficient_in_its_range) {
  draws random = random_of(3), same = random_of(3);
  const bias_field drawn =
      random_bias_field{.coefficients = {-.5f, .5f}, .degree = 2}.draw(random, {.extents = {3, 4, 5}}, here);
  EXPECT_EQ(drawn.extents, (extent3{3, 4, 5}));
  for (std::size_t n = 0; n < 56; ++n) {
    const float expected = same.uniform(-.5f, .5f);
    EXPECT_EQ(drawn.coefficients[n], n < 10 ? expected : 0) << n;
  }
}

// ---- counting noise --------------------------------------------------------------------------------------------

// scipy.stats.poisson.cdf of SciPy 1.17.1.
const std::vector<std::pair<double, std::vector<std::pair<int, double>>>> distribution{
    {0.05, {{0, 0.951229425}, {1, 0.998790896}}},
    {1, {{0, 0.367879441}, {1, 0.735758882}, {2, 0.919698603}, {3, 0.981011843}, {4, 0.996340153}}},
    {3.7,
     {{0, 0.0247235265},
      {1, 0.116200574},
      {2, 0.285433113},
      {3, 0.494153244},
      {4, 0.687219365},
      {5, 0.830088295},
      {6, 0.918190802},
      {7, 0.96475927},
      {9, 0.995151663}}},
    {11.75,
     {{5, 0.0237688553},
      {6, 0.0526048237},
      {7, 0.101008056},
      {9, 0.264915184},
      {11, 0.490465887},
      {13, 0.707630533},
      {15, 0.86194056},
      {18, 0.968580228},
      {20, 0.990628696}}},
    {12.5,
     {{5, 0.0148228746},
      {7, 0.0698254632},
      {8, 0.124916197},
      {9, 0.201431105},
      {11, 0.405760689},
      {12, 0.518975219},
      {13, 0.627835344},
      {15, 0.806029001},
      {17, 0.915836673},
      {19, 0.969405871},
      {21, 0.990600223}}},
    {40,
     {{26, 0.0123105592},
      {30, 0.0616941531},
      {35, 0.242414198},
      {38, 0.4160241},
      {40, 0.541918178},
      {43, 0.716224163},
      {48, 0.907531161},
      {55, 0.990321197}}},
    {1000,
     {{927, 0.0102821571},
      {960, 0.105256721},
      {983, 0.302251827},
      {1000, 0.508409367},
      {1016, 0.70041949},
      {1041, 0.904674696},
      {1074, 0.990168693}}}};

TEST(poisson_noise, has_the_distribution_of_scipy) {
  const grid g{.extents = {64, 128, 128}};
  const std::vector<std::uint64_t> ids{3};
  const auto n = static_cast<double>(g.voxels());
  for (const auto& [mean, quantiles] : distribution) {
    const std::vector<float> x(static_cast<std::size_t>(g.voxels()), static_cast<float>(mean / 8));
    std::vector<float> y =
        image_result<float>(poisson_noise{.counts = 8}, x, g, {.seed = 5, .epoch = 2, .sample_ids = ids});
    double sum = 0, squares = 0, largest = 0;
    for (float& v : y) {
      v *= 8;
      ASSERT_EQ(v, std::floor(v));
      sum += static_cast<double>(v);
      squares += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
      largest = std::max(largest, static_cast<double>(v));
    }
    // Five standard deviations: the fourth central moment is mean + 3 mean^2.
    EXPECT_NEAR(sum / n, mean, 5 * std::sqrt(mean / n));
    EXPECT_NEAR(squares / n, mean, 5 * std::sqrt((mean + 2 * mean * mean) / n));
    EXPECT_LE(largest, mean + 6.5 * std::sqrt(mean) + 6);
    for (const auto& [k, expected] : quantiles) {
      const auto below =
          std::count_if(y.begin(), y.end(), [&, limit = k](float v) { return v <= static_cast<float>(limit); });
      EXPECT_NEAR(static_cast<double>(below) / n, expected, 5 * std::sqrt(expected * (1 - expected) / n))
          << mean << ' ' << k;
    }
  }
}

// The least uniform value above which a count exceeds k, found by bisection over the multiples of 2^-24.
double share_up_to(float mean, int k) {
  std::uint32_t low = 0, high = 1u << 24;  // at `low` the count is at most k
  if (detail::poisson_few(mean, 0) > static_cast<float>(k)) return 0;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    const float n = detail::poisson_few(mean, static_cast<float>(middle) * 0x1p-24f);
    (n <= static_cast<float>(k) ? low : high) = middle;
  }
  return high * 0x1p-24;
}

TEST(poisson_noise, inverts_the_distribution_function_below_12) {
  for (const float mean : {0.0f, .001f, .05f, .5f, 1.0f, 2.5f, 3.7f, 6.0f, 9.0f, 11.0f, 11.999f}) {
    double term = std::exp(-static_cast<double>(mean)), sum = term;
    for (int k = 0; k <= 40; ++k) {
      ASSERT_NEAR(share_up_to(mean, k), sum, 1e-6) << mean << ' ' << k;
      term *= static_cast<double>(mean) / (k + 1);
      sum += term;
    }
  }
  EXPECT_LE(detail::poisson_few(.01f, 1 - 0x1p-24f), 4);  // no count far out where the sum falls short of 1
}

TEST(poisson_noise, expands_the_distribution_function_from_12_on) {
  for (const float mean : {12.0f, 12.5f, 20.0f, 50.0f, 300.0f, 5000.0f}) {
    // The normal value at which the count passes k, by bisection; its share of the normal distribution.
    double term = std::exp(-static_cast<double>(mean)), sum = term;
    const int last = static_cast<int>(mean + 6 * std::sqrt(mean));
    for (int k = 0; k < last; ++k) {
      if (mean <= 300 && sum > 1e-6) {
        float low = -7, high = 7;
        for (int step = 0; step < 40; ++step) {
          const float middle = low + (high - low) / 2;
          (detail::poisson_many(mean, middle) <= static_cast<float>(k) ? low : high) = middle;
        }
        const double share = 0.5 * std::erfc(-static_cast<double>(low) / std::sqrt(2.0));
        ASSERT_NEAR(share, sum, 4e-5) << mean << ' ' << k;
      }
      term *= static_cast<double>(mean) / (k + 1);
      sum += term;
    }
  }
  for (const float mean : {12.0f, 1e3f, 1e6f, 0x1p30f, 0x1p47f})
    for (float w = -5.75f; w < 5.8f; w += .25f) {
      const float n = detail::poisson_many(mean, w);
      EXPECT_GE(n, 0);
      EXPECT_EQ(n, std::floor(n));
      const double m = static_cast<double>(mean);
      EXPECT_NEAR(n, m + static_cast<double>(w) * std::sqrt(m), 8 + 2 * eps * m);
    }
}

TEST(poisson_noise, takes_every_value) {
  draws random = random_of(2);
  const shot_noise f = poisson_noise{.counts = 100}.draw(random, here).prepare(here);
  for (std::uint64_t e = 0; e < 64; ++e) {
    const voxel at{0, 0, 0, 0, 0, e, 64};
    EXPECT_EQ(f(0, at), 0);
    EXPECT_EQ(f(-5, at), 0);
    EXPECT_EQ(f(-infinity, at), 0);
    EXPECT_EQ(f(infinity, at), infinity);
    EXPECT_EQ(f(1e20f, at), 1e20f);
    EXPECT_TRUE(std::isnan(f(not_a_number, at)));
    EXPECT_TRUE(std::isfinite(f(1e12f, at)));
  }
}

TEST(poisson_noise, errors_name_the_value) {
  draws random = random_of(1);
  EXPECT_SAYS((poisson_noise{.counts = 0}.draw(random, here)), "counts [0, 0]");
  EXPECT_SAYS((poisson_noise{.counts = {-1, 4}}.draw(random, here)), "counts [-1, 4]");
  EXPECT_SAYS((poisson_noise{.counts = {5, 4}}.draw(random, here)), "counts [5, 4]");
  EXPECT_SAYS((poisson_noise{.counts = {5, infinity}}.draw(random, here)), "counts [5, inf]");
  EXPECT_SAYS((poisson_noise{.counts = {5, 9}, .law = interval_law::mixture}.draw(random, here)), "must hold 1");
}

// ---- shifted histograms ----------------------------------------------------------------------------------------

TEST(histogram_shift, is_numpy_interp) {
  const auto f = histogram_shift{.floating = {0, .05f, .35f, .35f, .9f, 1}, .count = 6, .range = {-2, 6}}.prepare(here);
  const float x[] = {-2, -1.9f, -.7f, .4f, 1.1f, 2, 3.3f, 4.4f, 5.9f, 6};
  const double expected[] = {-2, -1.975, -1.675, -0.4, 0.65, 0.8, 2.175, 5.2, 5.95, 6};
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(f(x[i]), expected[i], 4 * eps * 8) << x[i];
  EXPECT_EQ(f(-2), -2);
  for (const float outside : {-3.0f, 6.001f, 1e30f, infinity, -infinity}) EXPECT_EQ(f(outside), outside);
  EXPECT_TRUE(std::isnan(f(not_a_number)));
}

TEST(histogram_shift, of_a_row_is_that_of_each_voxel) {
  const auto f = histogram_shift{.floating = {0, .05f, .35f, .35f, .9f, 1}, .count = 6, .range = {-2, 6}}.prepare(here);
  float row[32], values[32];
  for (int l = 0; l < 32; ++l) row[l] = static_cast<float>(l) * .35f - 3;
  const float others[] = {-2, 6, -0.0f, infinity, -infinity, 1e30f, not_a_number};
  std::copy(std::begin(others), std::end(others), row + 9);
  std::copy(std::begin(row), std::end(row), values);
  f.apply_row(values, voxel{});
  for (int l = 0; l < 32; ++l)
    EXPECT_EQ(std::bit_cast<std::uint32_t>(values[l]), std::bit_cast<std::uint32_t>(f(row[l]))) << row[l];
}

TEST(histogram_shift, never_falls) {
  for (std::uint64_t s = 0; s < 50; ++s) {
    draws random = random_of(s);
    const auto f = random_histogram_shift{.control_points = {3, 32}, .value_range = {-100, 300}}.draw(random, here);
    const auto shift = f.prepare(here);
    float before = -100;
    for (int k = 0; k <= 4000; ++k) {
      const float y = shift(-100 + .1f * static_cast<float>(k));
      ASSERT_GE(y, before - 1e-4f) << s << ' ' << k;
      ASSERT_LE(y, 300.0f + 1e-4f);
      before = y;
    }
    ASSERT_NEAR(before, 300, 1e-4);
  }
}

TEST(random_histogram_shift, moves_each_point_between_its_neighbors) {
  std::map<std::int32_t, int> counts;
  for (std::uint64_t s = 0; s < 3000; ++s) {
    draws random = random_of(s);
    const histogram_shift shift = random_histogram_shift{.control_points = {5, 15}}.draw(random, here);
    ++counts[shift.count];
    const auto last = static_cast<std::size_t>(shift.count - 1);
    ASSERT_EQ(shift.floating[0], 0);
    ASSERT_EQ(shift.floating[last], 1);
    for (std::size_t k = 1; k < last; ++k) {
      ASSERT_GE(shift.floating[k], shift.floating[k - 1]);
      ASSERT_LE(shift.floating[k], static_cast<float>(static_cast<double>(k + 1) / static_cast<double>(last)));
    }
  }
  ASSERT_EQ(counts.size(), 11u);
  for (const auto& [count, times] : counts) EXPECT_NEAR(times, 3000 / 11, 80) << count;
}

TEST(histogram_shift, errors_name_the_value) {
  EXPECT_SAYS((histogram_shift{.floating = {0, 1}, .count = 1}.prepare(here)), "count 1 is not in 2 .. 32");
  EXPECT_SAYS((histogram_shift{.floating = {0, 1}, .count = 33}.prepare(here)), "count 33");
  EXPECT_SAYS((histogram_shift{.floating = {.1f, 1}, .count = 2}.prepare(here)), "from 0.1 to 1");
  EXPECT_SAYS((histogram_shift{.floating = {0, .5f, .4f, 1}, .count = 4}.prepare(here)), "control point 2 at 0.4");
  EXPECT_SAYS((histogram_shift{.floating = {0, not_a_number, 1}, .count = 3}.prepare(here)), "at nan");
  EXPECT_SAYS((histogram_shift{.floating = {0, 1}, .count = 2, .range = {3, 2}}.prepare(here)), "range [3, 2]");
  EXPECT_SAYS((histogram_shift{.floating = {0, 1}, .count = 2, .range = 3}.prepare(here)), "range [3, 3]");
  EXPECT_SAYS((random_histogram_shift{.control_points = 2}.check(here)), "control_points [2, 2]");
  EXPECT_SAYS((random_histogram_shift{.control_points = {9, 5}}.check(here)), "control_points [9, 5]");
  EXPECT_SAYS((random_histogram_shift{.control_points = {5, 40}}.check(here)), "within 3 .. 32");
  // 9 / 1.2e-38 is no float: the place of a voxel would not be a number.
  const interval narrow = {0, 1.2e-38f};
  EXPECT_SAYS((histogram_shift{.floating = {0, .1f, .2f, .3f, .4f, .5f, .6f, .7f, .8f, 1}, .count = 10, .range = narrow}
                   .prepare(here)),
              "range [0, 1.2e-38] is too narrow for 10 control points");
  EXPECT_SAYS((random_histogram_shift{.control_points = {3, 10}, .value_range = narrow}.check(here)),
              "too narrow for 10");
  histogram_shift{.floating = {0, 1}, .count = 2, .range = narrow}.prepare(here);
}

// ---- dropout ---------------------------------------------------------------------------------------------------

TEST(coarse_dropout, fills_boxes_or_keeps_them) {
  const grid g{.extents = {5, 6, 40}};
  const std::vector<float> x = support::uneven_values(g.voxels() * 2);
  coarse_dropout op{
      .holes = {{{{1, 2, 30}, {2, 3, 5}}, {{-3, -1, -2}, {5, 3, 4}}, {{4, 5, 39}, {9, 9, 9}}}}, .count = 3, .fill = -7};
  for (const bool keep : {false, true}) {
    op.keep_holes = keep;
    const auto y = image_result<float>(op, x, g, {}, 2);
    std::size_t i = 0;
    for (int channel = 0; channel < 2; ++channel)
      for (int z = 0; z < 5; ++z)
        for (int row = 0; row < 6; ++row)
          for (int column = 0; column < 40; ++column, ++i) {
            const bool first = z >= 1 && z < 3 && row >= 2 && row < 5 && column >= 30 && column < 35;
            const bool second = z < 2 && row < 2 && column < 2;
            const bool third = z == 4 && row == 5 && column == 39;
            ASSERT_EQ(y[i], (first || second || third) == keep ? x[i] : -7) << z << ' ' << row << ' ' << column;
          }
  }
}

TEST(coarse_dropout, fills_at_random) {
  const grid g{.extents = {8, 32, 128}};
  const std::vector<std::uint64_t> ids{9};
  const auto y = image_result<float>(random_coarse_dropout{.holes = 1, .size = {0, 0, 0}, .fill = {-2, 6}},
                                     std::vector<float>(static_cast<std::size_t>(2 * g.voxels()), 100.0f), g,
                                     {.sample_ids = ids}, 2);
  double sum = 0, squares = 0;
  for (const float v : y) {
    ASSERT_GE(v, -2);
    ASSERT_LE(v, 6);
    sum += static_cast<double>(v) - 2;
    squares += (static_cast<double>(v) - 2) * (static_cast<double>(v) - 2);
  }
  const auto n = static_cast<double>(y.size());
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(64.0 / 12 / n));
  EXPECT_NEAR(squares / n, 64.0 / 12, 5 * std::sqrt(4096.0 / 180 / n));
  EXPECT_NE(y[0], y[y.size() / 2]);  // every channel its own
}

TEST(random_coarse_dropout, draws_boxes_inside_the_grid) {
  const grid g{.extents = {10, 20, 30}};
  std::map<std::int64_t, int> sides, starts;
  std::map<std::int32_t, int> counts;
  for (std::uint64_t s = 0; s < 2000; ++s) {
    draws random = random_of(s);
    const coarse_dropout drawn =
        random_coarse_dropout{.holes = {2, 6}, .size = {4, 0, 3}, .max_size = {6, 0, 40}}.draw(random, g, here);
    ++counts[drawn.count];
    for (std::size_t n = 0; n < static_cast<std::size_t>(drawn.count); ++n) {
      const auto& box = drawn.holes[n];
      for (int axis = 0; axis < 3; ++axis) {
        ASSERT_GE(box.start[axis], 0);
        ASSERT_LE(box.start[axis] + box.size[axis], g.extents[axis]);
      }
      ASSERT_TRUE(box.size[0] >= 4 && box.size[0] <= 6);
      ASSERT_EQ(box.size[1], 20);
      ASSERT_TRUE(box.size[2] >= 3 && box.size[2] <= 30);
      ++sides[box.size[0]];
      if (box.size[0] == 4) ++starts[box.start[0]];
    }
  }
  ASSERT_EQ(counts.size(), 5u);
  for (const auto& [count, times] : counts) EXPECT_NEAR(times, 400, 90) << count;
  for (const auto& [side, times] : sides) EXPECT_NEAR(times, 8000 / 3, 220) << side;
  ASSERT_EQ(starts.size(), 7u);
  for (const auto& [start, times] : starts) EXPECT_NEAR(times, 8000 / 21, 100) << start;
}

TEST(random_coarse_dropout, of_cutout_has_its_center_anywhere) {
  const grid g{.extents = {1, 20, 20}};
  bool below = false, beyond = false;
  for (std::uint64_t s = 0; s < 200; ++s) {
    draws random = random_of(s);
    const auto box =
        random_coarse_dropout{.holes = 1, .size = {1, 8, 8}, .may_leave = true}.draw(random, g, here).holes[0];
    ASSERT_TRUE(box.start[1] >= -4 && box.start[1] <= 15);
    ASSERT_EQ(box.size[1], 8);
    below |= box.start[1] == -4;
    beyond |= box.start[1] == 15;
  }
  EXPECT_TRUE(below && beyond);
}

TEST(coarse_dropout, errors_name_the_value) {
  EXPECT_SAYS((coarse_dropout{.holes = {}, .count = 33}.prepare(here)), "count 33 is not in 0 .. 32");
  EXPECT_SAYS((coarse_dropout{.holes = {}, .count = -1}.prepare(here)), "count -1");
  EXPECT_SAYS((coarse_dropout{.holes = {{{{0, 0, 0}, {1, -2, 1}}}}, .count = 1}.prepare(here)), "the size -2");
  EXPECT_SAYS((coarse_dropout{.holes = {}, .count = 0, .fill = {1, 0}}.prepare(here)), "fill [1, 0]");
  EXPECT_SAYS((coarse_dropout{.holes = {}, .count = 0, .fill = {-3e38f, 3e38f}}.prepare(here)), "too wide");
  EXPECT_SAYS((random_coarse_dropout{.holes = {4, 40}, .size = {1, 1, 1}}.check(here)), "holes [4, 40]");
  EXPECT_SAYS((random_coarse_dropout{.holes = 1, .size = {1, -1, 1}}.check(here)), "(1, -1, 1)");
  EXPECT_SAYS((random_coarse_dropout{.holes = 1, .size = {3, 0, 3}, .max_size = {3, 7, 0}}.check(here)),
              "max_size: expected 0 along axis 1, got 7. A size of 0 is the whole axis");
  EXPECT_SAYS((random_coarse_dropout{.holes = 1, .size = {3, 3, 3}, .max_size = {4294967296, 0, 0}}.check(here)),
              "max_size (4294967296, 0, 0) must be at most 2147483647");
  random_coarse_dropout{.holes = 1, .size = {3, 0, 3}, .max_size = {2147483647, 0, 0}}.check(here);
  EXPECT_SAYS((random_coarse_dropout{.holes = 1, .size = {3, 3, 3}, .max_size = {0, 2, 0}}.check(here)),
              "to (0, 2, 0)");
}

// ---- all of them -----------------------------------------------------------------------------------------------

TEST(intensity, rows_give_the_bits_of_lone_voxels) {
  support::expect_rows_of_lone_voxels(random_bias_field{});
  for (const int degree : {0, 1, 4, 5}) support::expect_rows_of_lone_voxels(random_bias_field{.degree = degree});
  support::expect_rows_of_lone_voxels(random_bias_field{.coefficients = {-.5f, .5f}, .basis = bias_basis::monomial});
  for (const float counts : {8.0f, 20.0f, 5000.0f})
    support::expect_rows_of_lone_voxels(poisson_noise{.counts = counts});
  support::expect_rows_of_lone_voxels(random_histogram_shift{.control_points = {3, 32}});
  support::expect_rows_of_lone_voxels(random_coarse_dropout{.holes = 3, .size = {2, 2, 5}, .max_size = {3, 4, 60}});
  support::expect_rows_of_lone_voxels(
      random_coarse_dropout{.holes = 3, .size = {2, 2, 5}, .fill = {0, 1}, .keep_holes = true});
}

TEST(intensity, takes_the_same_slots_whatever_its_parameters) {
  const grid g{.extents = {8, 9, 10}}, plane{.extents = {1, 9, 10}};
  EXPECT_EQ(next_after(random_bias_field{}, g), next_after(random_bias_field{.degree = 5}, plane));
  EXPECT_EQ(next_after(random_bias_field{}, g), next_after(random_bias_field{.coefficients = 0, .degree = 0}, g));
  EXPECT_EQ(next_after(poisson_noise{}, g),
            next_after(poisson_noise{.counts = {1, 9}, .law = interval_law::log_uniform}, g));
  EXPECT_EQ(next_after(random_histogram_shift{}, g), next_after(random_histogram_shift{.control_points = 3}, g));
  EXPECT_EQ(next_after(random_histogram_shift{}, g), next_after(random_histogram_shift{.control_points = {4, 32}}, g));
  const random_coarse_dropout one{.holes = 1, .size = {1, 1, 1}};
  EXPECT_EQ(next_after(one, g), next_after(random_coarse_dropout{.holes = {0, 32}, .size = {0, 0, 0}}, g));
  EXPECT_EQ(next_after(one, g), next_after(random_coarse_dropout{.holes = 2, .size = {1, 2, 3}, .may_leave = true}, g));
}

TEST(intensity, kinds_are_their_own) {
  EXPECT_EQ(random_bias_field::kind, 38);
  EXPECT_EQ(poisson_noise::kind, 39);
  EXPECT_EQ(random_histogram_shift::kind, 40);
  EXPECT_EQ(random_coarse_dropout::kind, 41);
}

// sign(x) |x|^gamma with gamma = exp(uniform), as TorchIO RandomGamma.
TEST(intensity, gamma_of_torchio_is_log_uniform_over_0_and_1) {
  const float low = static_cast<float>(std::exp(-.3)), high = static_cast<float>(std::exp(.3));
  for (std::uint64_t s = 0; s < 20; ++s) {
    draws random = random_of(s), same = random_of(s);
    const auto drawn = random_gamma{.range = {low, high}, .law = interval_law::log_uniform}.draw(random, here);
    const double exponent = std::exp(static_cast<double>(same.uniform(-.3f, .3f)));
    EXPECT_NEAR(drawn.exponent, exponent, 1e-6);
    const auto f = drawn.prepare(here);
    for (const float x : {-400.0f, -2.5f, 0.0f, .3f, 7.0f, 1000.0f}) {
      const double y = std::copysign(std::pow(std::abs(static_cast<double>(x)), exponent), static_cast<double>(x));
      EXPECT_NEAR(f(x), y, 1e-5 * std::abs(y));
    }
  }
}

}  // namespace
