// SPDX-License-Identifier: Apache-2.0
// Stain fits: known stains, published test values, tiles that cannot be fitted, and parts that merge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <suture/fit/macenko.hpp>
#include <suture/fit/macenko_modes.hpp>
#include <suture/suture.hpp>
#include <vector>

#include "support/expect_says.hpp"
#include "support/fitted_tile.hpp"
#include "support/sparse_objective.hpp"

namespace {

using namespace suture;
using support::fit_tile;
using support::normalized;

double degrees(const stain_basis& b, int stain, support::stain_vector v) {
  v = support::unit(v);
  double dot = 0;
  for (int c = 0; c < 3; ++c) dot += b.stains[c][stain] * v[static_cast<std::size_t>(c)];
  return std::acos(std::min(dot, 1.0)) * 180 / 3.141592653589793;
}

void expect_stains(const stain_basis& b, const double (&h)[3], const double (&e)[3], double tolerance) {
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(b.stains[c][0], h[c], tolerance);
    EXPECT_NEAR(b.stains[c][1], e[c], tolerance);
  }
}

// A tile of 8 x 8 whose optical density is 0.15 i (.65, .70, .29) + 0.1 j (.07, .99, .11); the expected values were
// worked out in double by the definition.
std::vector<std::uint8_t> small_tile() {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      for (const auto& [h, e] : {std::pair(.65, .07), std::pair(.70, .99), std::pair(.29, .11)})
        bytes.push_back(static_cast<std::uint8_t>(std::floor(240 * std::exp(-(.15 * i * h + .1 * j * e)) - .5)));
  return bytes;
}

TEST(Macenko, SmallTileByTheDefinition) {
  const auto tile = small_tile();
  ASSERT_EQ(tile[3 * 27], 174);
  ASSERT_EQ(tile[3 * 63 + 2], 163);
  const stain_basis b = fit_tile(macenko::torchstain.fit, tile);
  EXPECT_EQ(b.status, stain_status::ok);
  EXPECT_EQ(b.tally.count, 40u);
  EXPECT_EQ(b.pixels, 64u);
  expect_stains(b, {0.65411276, 0.69816360, 0.29103966}, {0.26495295, 0.94831732, 0.17462588}, 2e-6);
  EXPECT_NEAR(b.max_concentration[0], 1.0164847373, 1e-5);
  EXPECT_NEAR(b.max_concentration[1], 0.9690350465, 1e-5);
  const auto expect_pixel = [&](std::size_t p, double red, double green, double blue) {
    const rgb in{
        {static_cast<float>(tile[3 * p]), static_cast<float>(tile[3 * p + 1]), static_cast<float>(tile[3 * p + 2])}};
    const rgb out = normalized({.fitted = {&b, 1}}, in);
    EXPECT_NEAR(out.c[0], red, 2e-3);
    EXPECT_NEAR(out.c[1], green, 2e-3);
    EXPECT_NEAR(out.c[2], blue, 2e-3);
  };
  expect_pixel(0, 240, 240, 240);
  expect_pixel(9, 207.05618, 184.25889, 203.63308);
  expect_pixel(27, 154.91776, 108.68895, 146.48220);
  expect_pixel(36, 134.51416, 83.79867, 124.48173);
  expect_pixel(56, 76.75801, 55.55695, 105.04790);
  expect_pixel(63, 86.20710, 37.98923, 76.17804);
}

TEST(Macenko, SmallTileInOtherModes) {
  const auto tile = small_tile();
  const stain_basis torch = fit_tile(macenko::torchstain_torch.fit, tile);
  expect_stains(torch, {0.65478523, 0.69745869, 0.29121758}, {0.25607015, 0.95128089, 0.17173453}, 2e-6);
  EXPECT_NEAR(torch.max_concentration[0], 1.0016605305, 1e-5);
  EXPECT_NEAR(torch.max_concentration[1], 0.9512892093, 1e-5);
  const stain_basis cucim = fit_tile(macenko::cucim.fit, tile);
  EXPECT_EQ(cucim.tally.count, 54u);
  expect_stains(cucim, {0.65482764, 0.69791955, 0.29001563}, {0.07619573, 0.99093145, 0.11067554}, 2e-6);
  EXPECT_NEAR(cucim.max_concentration[0], 1.0594888423, 1e-5);
  EXPECT_NEAR(cucim.max_concentration[1], 0.7144729048, 1e-5);
  const rgb out = normalized({.fitted = {&cucim, 1}}, {{174, 129, 203}});
  EXPECT_NEAR(out.c[0], 135.38418, 2e-3);
  EXPECT_NEAR(out.c[1], 91.53205, 2e-3);
  EXPECT_NEAR(out.c[2], 132.96971, 3e-3);
  fit_macenko everything_counts = macenko::tiatoolbox.fit;
  everything_counts.stained = stained_rule::luminosity;
  everything_counts.luminosity = 1.01;
  expect_stains(fit_tile(everything_counts, tile), {0.68857152, 0.66063075, 0.29905898},
                {0.16864562, 0.97528549, 0.14274754}, 2e-6);
}

TEST(Macenko, OpticalDensityOf120) {
  const auto density = [](const optical_density& d, float intensity) {
    return suture::detail::map_of(d).density(intensity);
  };
  EXPECT_NEAR(density(optical_density::plus_one(), 120), 0.6848483777, 2e-7);
  EXPECT_NEAR(density(optical_density::clipped(), 120), 0.6931471806, 2e-7);
  EXPECT_NEAR(density(optical_density::positive(), 120), 0.7537718024, 2e-7);
  EXPECT_NEAR(density(optical_density::plus_one(), 255), -0.0645385211, 2e-7);
  EXPECT_EQ(density(optical_density::clipped(), 255), 0);
  EXPECT_EQ(density(optical_density::positive(), 255), 1e-6f);
  EXPECT_NEAR(density(optical_density::plus_one(), 0), 5.4806389233, 1e-6);
  EXPECT_NEAR(density(optical_density::clipped(), 0), 5.4806389233, 1e-6);
  EXPECT_NEAR(density(optical_density::positive(), 0), 5.5412635452, 1e-6);
}

TEST(Macenko, PercentileRules) {
  using suture::detail::locate_percentile;
  const auto at = [](percentile_rule rule, double q, std::uint64_t n) {
    const auto p = locate_percentile(rule, q, n);
    return static_cast<double>(p.lower) + p.fraction;
  };
  EXPECT_DOUBLE_EQ(at(percentile_rule::linear, 25, 10), 2.25);
  EXPECT_EQ(at(percentile_rule::nearest, .5, 10), 0);  // ranks 1, 1, 5, 10 of torchstain
  EXPECT_EQ(at(percentile_rule::nearest, 1, 10), 0);
  EXPECT_EQ(at(percentile_rule::nearest, 50, 10), 4);
  EXPECT_EQ(at(percentile_rule::nearest, 99, 10), 9);
  EXPECT_EQ(at(percentile_rule::hazen, 1, 10), 0);
  EXPECT_DOUBLE_EQ(at(percentile_rule::hazen, 50, 10), 4.5);
  EXPECT_DOUBLE_EQ(at(percentile_rule::hazen, 87, 10), 8.2);
  EXPECT_EQ(at(percentile_rule::hazen, 99, 10), 9);
}

// A tenth of the stained pixels shows one stain alone at either end, so the percentile 5 is the middle of those.
TEST(Macenko, FindsKnownStainsInNoise) {
  const auto clean = support::stained_intensities(512 * 512, 5, {});
  double power = 0;
  for (const double x : clean) power += x * x / static_cast<double>(clean.size());
  const double deviation = std::sqrt(power) / std::pow(10, 30 / 20.0);  // 30 dB below the signal
  const auto noisy = support::stained_intensities(512 * 512, 5, {.deviation = deviation});
  for (const int stain : {0, 1}) {
    const auto& truth = stain == 0 ? support::hematoxylin : support::eosin;
    EXPECT_LT(degrees(fit_tile({}, support::to_bytes(clean)), stain, truth), .3);
    EXPECT_LT(degrees(fit_tile({.alpha = 5}, support::to_bytes(noisy)), stain, truth), 1);
  }
}

// The gain of a tile must not depend on how much glass it shows.
TEST(Macenko, SparseTissueKeepsItsConcentrations) {
  const auto full = fit_tile({}, support::to_bytes(support::stained_intensities(40000, 7, {})));
  const auto sparse = fit_tile({}, support::to_bytes(support::stained_intensities(400000, 7, {.tissue = .03})));
  const auto as_library =
      fit_tile(macenko::torchstain.fit, support::to_bytes(support::stained_intensities(400000, 7, {.tissue = .03})));
  EXPECT_EQ(sparse.status, stain_status::ok);
  for (int k = 0; k < 2; ++k) {
    EXPECT_NEAR(sparse.max_concentration[k] / full.max_concentration[k], 1, .03);
    EXPECT_LT(as_library.max_concentration[k] / full.max_concentration[k], .85);
  }
  const auto hardly = fit_tile({}, support::to_bytes(support::stained_intensities(400000, 7, {.tissue = .002})));
  EXPECT_EQ(hardly.status, stain_status::too_little_tissue);
  EXPECT_EQ(hardly.unchanged, 1u);
}

void expect_unchanged(const stain_basis& b) {
  EXPECT_EQ(b.unchanged, 1u);
  for (const float x : {0.0f, 1.0f, 127.5f, 254.0f, 255.0f}) {
    const rgb out = normalized({.fitted = {&b, 1}}, {{x, 255 - x, 3}});
    EXPECT_EQ(out.c[0], x);
    EXPECT_EQ(out.c[1], 255 - x);
    EXPECT_EQ(out.c[2], 3);
  }
}
void expect_finite(const stain_basis& b) {
  for (int k = 0; k < 2; ++k) {
    EXPECT_TRUE(std::isfinite(b.max_concentration[k]));
    for (int c = 0; c < 3; ++c) EXPECT_TRUE(std::isfinite(b.stains[c][k]));
  }
  for (int r = 0; r < 256; r += 15)
    for (int g = 0; g < 256; g += 15)
      for (int blue = 0; blue < 256; blue += 15)
        for (const macenko_mode& m : {macenko::standard, macenko::henorm, macenko::matlab}) {
          const rgb out = normalized(m.normalize({&b, 1}),
                                     {{static_cast<float>(r), static_cast<float>(g), static_cast<float>(blue)}});
          for (const float x : out.c) EXPECT_TRUE(x >= 0 && x <= 255) << x;
        }
}

TEST(Macenko, TilesThatCannotBeFitted) {
  const grid g{.extents = {1, 40, 50}};
  const auto constant = [&](std::uint8_t level) { return std::vector<std::uint8_t>(3 * 40 * 50, level); };
  for (const macenko_mode& m :
       {macenko::standard, macenko::torchstain, macenko::torchstain_torch, macenko::matlab, macenko::henorm,
        macenko::monai, macenko::cucim, macenko::staintools, macenko::tiatoolbox}) {
    for (const int level : {0, 1, 100, 230, 255}) {
      const stain_basis b = fit_tile(m.fit, constant(static_cast<std::uint8_t>(level)), g);
      EXPECT_NE(b.status, stain_status::ok) << level;
      expect_unchanged(b);
    }
    const stain_basis gray = fit_tile(m.fit, support::gray_tile(g), g);
    EXPECT_EQ(gray.status, stain_status::single_stain);
    expect_unchanged(gray);
    expect_unchanged(fit_tile(m.fit, std::vector<std::uint8_t>{90, 60, 120}));  // one pixel
  }
  EXPECT_EQ(fit_tile({}, constant(255), g).status, stain_status::too_little_tissue);
  EXPECT_EQ(fit_tile({}, constant(0), g).status, stain_status::single_stain);
}

TEST(Macenko, SingleStain) {
  std::vector<float> tile;
  for (int i = 0; i < 3000; ++i)
    for (const double v : support::unit(support::hematoxylin))
      tile.push_back(static_cast<float>(240 * std::exp(-v * (.3 + i * .0003)) - 1));
  const stain_basis b = fit_tile({}, tile);
  EXPECT_EQ(b.status, stain_status::single_stain);
  expect_unchanged(b);
  const stain_basis given = fit_tile({.fallback = stain_fallback::given}, tile);
  EXPECT_EQ(given.status, stain_status::single_stain);
  EXPECT_EQ(given.unchanged, 0u);
  EXPECT_EQ(given.reference(), stain_reference{});
  expect_finite(given);
}

// Of a tile of eosin the fallback's hematoxylin is no more than a trace, which must stay one.
TEST(Macenko, ATileOfOneStainIsNotAmplified) {
  std::vector<float> tile;
  for (int i = 0; i < 3000; ++i)
    for (const double v : {.18, .69, .34})
      tile.push_back(static_cast<float>(240 * std::exp(-v * (.5 + i * .0003)) - 1));
  const stain_basis given = fit_tile({.fallback = stain_fallback::given}, tile);
  EXPECT_EQ(given.status, stain_status::single_stain);
  EXPECT_EQ(given.unchanged, 0u);
  EXPECT_EQ(given.reference(), stain_reference{});
  const rgb out = normalized({.fitted = {&given, 1}}, {{200, 120, 170}});
  EXPECT_NEAR(out.c[0], 200, 15);
  EXPECT_NEAR(out.c[1], 120, 15);
  EXPECT_NEAR(out.c[2], 170, 15);
  // From the angle between the vectors, found in a later round, as from the eigenvalues; and black stays dark.
  const auto wide = support::stained_tile({.extents = {1, 64, 64}}, 3);
  for (const fit_macenko& how :
       {fit_macenko{.single_stain_angle = 85, .fallback = stain_fallback::given},
        fit_macenko{.refinements = 2, .single_stain_angle = 85, .fallback = stain_fallback::given}}) {
    const stain_basis b = fit_tile(how, wide);
    EXPECT_EQ(b.status, stain_status::single_stain);
    EXPECT_EQ(b.reference(), how.fallback_stains);
  }
  const stain_basis black = fit_tile({.fallback = stain_fallback::given}, std::vector<std::uint8_t>(3000, 0));
  EXPECT_EQ(black.status, stain_status::single_stain);
  for (const float c : normalized({.fitted = {&black, 1}}, {{0, 0, 0}}).c) EXPECT_LT(c, 30);
}

// How far apart the vectors are tells noise about one stain from two.
TEST(Macenko, AngleBetweenTheVectors) {
  const auto of = [](double degrees) {
    const double x = degrees * 3.141592653589793 / 180;
    return basis_of({.stains = {{{2, std::cos(x)}, {0, std::sin(x)}, {0, 0}}}}).angle();
  };
  for (const double degrees : {.2, 1., 22., 90., 135.}) EXPECT_NEAR(of(degrees), degrees, 1e-6 * degrees);
  EXPECT_NEAR(stain_basis{}.angle(), 22.3201, 1e-4);
  const support::stain_vector eosin = support::unit(support::eosin);
  const auto bytes =
      support::to_bytes(support::stained_intensities(256 * 256, 3, {.first = eosin, .second = eosin, .deviation = .5}));
  const stain_basis by_default = fit_tile({}, bytes);
  EXPECT_EQ(by_default.status, stain_status::ok);
  EXPECT_GT(by_default.angle(), 1);
  EXPECT_LT(by_default.angle(), 3);
  EXPECT_EQ(fit_tile({.single_stain_angle = 5}, bytes).status, stain_status::single_stain);
}

TEST(Macenko, FallbackOfAGroup) {
  const stain_reference group{{{{.6, .2}, {.7, .9}, {.3, .3}}}, {1.5, 1.25}};
  const stain_basis b =
      fit_tile({.fallback = stain_fallback::given, .fallback_stains = group}, std::vector<std::uint8_t>(300, 250));
  EXPECT_EQ(b.status, stain_status::too_little_tissue);
  EXPECT_EQ(b.reference(), group);
  expect_finite(b);
}

// Saturated pen marks among tissue, and a tile of noise: whatever comes out, it is a color.
TEST(Macenko, PenMarksAndNoise) {
  const grid g{.extents = {1, 100, 100}};
  auto marked = support::stained_tile(g, 11);
  for (std::size_t i = 0; i < 3000; i += 3) {
    marked[i] = 0;
    marked[i + 1] = i % 2 == 0 ? 255 : 0;
    marked[i + 2] = 255;
  }
  std::vector<std::uint8_t> noise;
  for (std::uint64_t i = 0; i < 30000; ++i) noise.push_back(static_cast<std::uint8_t>(mix64(i)));
  for (const macenko_mode& m : {macenko::standard, macenko::torchstain, macenko::cucim, macenko::staintools,
                                macenko::tiatoolbox, macenko::monai})
    for (const auto& tile : {marked, noise}) expect_finite(fit_tile(m.fit, tile, g));
}

TEST(Macenko, NegativeConcentrationsStay) {
  const stain_basis b = fit_tile({}, support::stained_tile({.extents = {1, 64, 64}}, 1));
  const auto c = b.unmixing(.1f, .1f, 1.5f);  // blue light alone is taken away: no mixture of the two
  EXPECT_LT(c.c[0], 0);
  expect_finite(b);
}

TEST(Macenko, LassoIsTheMinimum) {
  const stain_matrix m = stain_reference{}.stains;
  const double penalty = .05;
  const auto lasso = suture::detail::unmix(m, penalty);
  const auto objective = [&](const double(&od)[3], double h, double e) {
    double sum = penalty * (h + e);
    for (int c = 0; c < 3; ++c) sum += .5 * std::pow(m[c][0] * h + m[c][1] * e - od[c], 2);
    return sum;
  };
  for (std::uint64_t i = 0; i < 2000; ++i) {
    double od[3];
    for (std::uint64_t c = 0; c < 3; ++c) od[c] = static_cast<double>(mix64(3 * i + c) % 1000) / 700 - .3;
    const auto p = lasso(static_cast<float>(od[0]), static_cast<float>(od[1]), static_cast<float>(od[2]));
    ASSERT_GE(p.c[0], 0);
    ASSERT_GE(p.c[1], 0);
    const double found = objective(od, p.c[0], p.c[1]);
    for (const double step : {-1e-2, -1e-3, 1e-3, 1e-2})
      for (const auto& [h, e] : {std::pair(1.0, 0.0), std::pair(0.0, 1.0), std::pair(1.0, -1.0), std::pair(1.0, 1.0)})
        ASSERT_LE(found, objective(od, std::fmax(p.c[0] + step * h, 0), std::fmax(p.c[1] + step * e, 0)) + 1e-7);
  }
}

TEST(Macenko, VahadaneIsAMinimum) {
  const auto tile = support::to_bytes(support::stained_intensities(20000, 21, {.deviation = 2}));
  fit_macenko how = macenko::vahadane.fit;
  how.luminosity = 1.01;  // every pixel
  how.refinements = 300;
  const stain_basis b = fit_tile(how, tile);
  EXPECT_EQ(b.status, stain_status::ok);
  fit_macenko plain = how;
  plain.refinements = 0;
  EXPECT_LT(support::sparse_objective(b.stains, how.sparsity, tile),
            support::sparse_objective(fit_tile(plain, tile).stains, how.sparsity, tile));
  support::expect_least_objective(b.stains, how.sparsity, tile);
}

TEST(Macenko, VahadaneFindsKnownStains) {
  const stain_basis b =
      fit_tile(macenko::vahadane.fit, support::to_bytes(support::stained_intensities(100000, 22, {.deviation = 1})));
  EXPECT_LT(degrees(b, 0, support::hematoxylin), 5);
  EXPECT_LT(degrees(b, 1, support::eosin), 5);
  for (int k = 0; k < 2; ++k)
    for (int c = 0; c < 3; ++c) EXPECT_GE(b.stains[c][k], 0);
}

TEST(Macenko, FloatAndBytesLeaveTheSameBits) {
  const grid g{.extents = {1, 63, 65}};
  const auto bytes = support::stained_tile(g, 3, .7);
  const std::vector<float> floats(bytes.begin(), bytes.end());
  for (const macenko_mode& m : {macenko::standard, macenko::cucim, macenko::staintools, macenko::tiatoolbox}) {
    const stain_basis b = fit_tile(m.fit, bytes, g);
    EXPECT_EQ(b, fit_tile(m.fit, floats, g));
    EXPECT_EQ(b.status, stain_status::ok);
  }
}

TEST(Macenko, FloatOfUnitScale) {
  const auto intensities = support::stained_intensities(20000, 8, {});
  std::vector<float> full, unit;
  for (const double x : intensities) {
    full.push_back(static_cast<float>(x));
    unit.push_back(static_cast<float>(x / 255));
  }
  unit[3] = std::numeric_limits<float>::quiet_NaN();
  const stain_basis a = fit_tile({}, full), b = fit_tile({.full_scale = 1}, unit);
  EXPECT_EQ(b.tally.excluded, 1u);
  EXPECT_EQ(b.pixels, 19999u);
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(a.max_concentration[k], b.max_concentration[k], 1e-3);
  const rgb x = normalized({.fitted = {&a, 1}}, {{150, 100, 160}});
  const rgb y = normalized({.fitted = {&b, 1}}, {{150 / 255.0f, 100 / 255.0f, 160 / 255.0f}});
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(x.c[c], 255 * y.c[c], .2);
  const rgb nan = normalized({.fitted = {&b, 1}}, {{std::numeric_limits<float>::quiet_NaN(), .5f, .5f}});
  EXPECT_TRUE(std::isnan(nan.c[0]));
}

TEST(Macenko, AnyDivisionLeavesTheSameBits) {
  const grid g{.extents = {1, 400, 700}};
  const auto tile = support::stained_tile(g, 9, .5);
  const auto image = channels_last(tile.data(), g, 3);
  for (const macenko_mode& m : {macenko::standard, macenko::staintools, macenko::vahadane}) {
    fit_macenko how = m.fit;
    const stain_basis whole = fit_tile(how, tile, g, {.threads = 1});
    EXPECT_EQ(fit_tile(how, tile, g, {.threads = 7}), whole);
    // Planar, and upside down.
    std::vector<std::uint8_t> planes(tile.size());
    for (std::size_t i = 0; i < tile.size(); ++i) planes[i % 3 * tile.size() / 3 + i / 3] = tile[i];
    view<const std::uint8_t> planar = contiguous<const std::uint8_t>(planes.data(), g, 3);
    planar.data += 399 * 700;
    planar.stride[1] = -700;
    stain_basis b;
    fit(cpu{}, how, planar, everything{}, std::span(&b, 1));
    EXPECT_EQ(b, whole);
    // Two halves, as images together and as two searches.
    std::vector<view<const std::uint8_t>> halves(2, image);
    halves[0].grid.extents[1] = 123;
    halves[1].grid.extents[1] = 277;
    halves[1].data += 123 * 700 * 3;
    how.together = true;
    fit(cpu{}, how, halves, everything{}, std::span(&b, 1));
    EXPECT_EQ(b, whole);
    macenko_search here(how), there(how);
    while (!here.done()) {
      here.add(cpu{}, halves[0]);
      there.add(cpu{}, halves[1]);
      macenko_counts theirs = there.counts();
      there.merge(here);
      here.add_counts(theirs);
      here.advance();
      there.advance();
    }
    EXPECT_EQ(here.basis(), whole);
    EXPECT_EQ(there.basis(), whole);
  }
}

TEST(Macenko, SearchesOfOtherParametersDoNotMerge) {
  macenko_search here(fit_macenko{}), there(fit_macenko{.least_density = .2f});
  EXPECT_SAYS(here.merge(there), "fit_macenko: fits of different parameters, at different rounds or of other pixels");
}

// Each ended the first round by itself, so that their directions differ.
TEST(Macenko, SearchesThatDidNotMergeEarlierDoNotMerge) {
  const grid g{.extents = {1, 40, 50}};
  const auto one = support::stained_tile(g, 3, .5), other = support::stained_tile(g, 4, .9);
  macenko_search here(fit_macenko{}), there(fit_macenko{});
  here.add(cpu{}, channels_last<const std::uint8_t>(one.data(), g, 3));
  there.add(cpu{}, channels_last<const std::uint8_t>(other.data(), g, 3));
  here.advance();
  there.advance();
  EXPECT_SAYS(here.merge(there), "of other pixels in earlier rounds do not merge");
}

// On the CPU a fit of one image looks at every 7th row and 5th column to guess where its percentiles lie.
TEST(Macenko, GuessesThatMislead) {
  const grid g{.extents = {1, 140, 150}};
  for (const double tissue : {.3, .9}) {
    auto tile = support::stained_tile(g, 3, .5);
    const auto dark = support::stained_tile(g, 4, tissue);
    for (std::size_t i = 0; i < tile.size(); ++i)
      if (i / 450 % 7 == 0 && i / 3 % 150 % 5 == 0) tile[i] = static_cast<std::uint8_t>(dark[i] / 2);
    for (const macenko_mode& m : {macenko::standard, macenko::torchstain, macenko::staintools}) {
      macenko_search search(m.fit);
      while (!search.done()) {
        search.add(cpu{}, channels_last<const std::uint8_t>(tile.data(), g, 3));
        search.advance();
      }
      EXPECT_EQ(fit_tile(m.fit, tile, g), search.basis());
    }
  }
}

TEST(Macenko, EdgeSizes) {
  for (const std::int64_t n : {1, 2, 15, 16, 17, 127, 255, 256, 257}) {
    const grid g{.extents = {1, n, n}};
    const auto tile = support::stained_tile(g, 12);
    const stain_basis b = fit_tile({.least_pixels = 2}, tile, g);
    EXPECT_EQ(b.pixels, static_cast<std::uint64_t>(n * n));
    EXPECT_TRUE(n <= 2 || b.status == stain_status::ok) << n;
    expect_finite(b);
  }
}

TEST(Macenko, MaskSelectsPixels) {
  const grid g{.extents = {1, 100, 100}};
  const auto tile = support::stained_tile(g, 2);
  std::vector<std::uint8_t> mask(10000, 0), upper(tile.begin(), tile.begin() + 15000);
  std::fill_n(mask.begin(), 5000, std::uint8_t{1});
  stain_basis b;
  const auto seen = contiguous<const std::uint8_t>(mask.data(), g);
  fit(cpu{}, fit_macenko{}, channels_last(tile.data(), g, 3), inside(seen), std::span(&b, 1));
  EXPECT_EQ(b, fit_tile({}, upper));
}

TEST(Macenko, ReferenceOfTargets) {
  const grid g{.extents = {1, 64, 64}};
  std::vector<stain_basis> targets;
  for (std::uint64_t seed = 0; seed < 3; ++seed) targets.push_back(fit_tile({}, support::stained_tile(g, seed)));
  const stain_reference one = average_reference(std::span(targets).first(1));
  const stain_reference all = average_reference(targets);
  for (int k = 0; k < 2; ++k) {
    EXPECT_DOUBLE_EQ(one.max_concentration[k], targets[0].max_concentration[k]);
    EXPECT_NEAR(
        all.max_concentration[k],
        (targets[0].max_concentration[k] + targets[1].max_concentration[k] + targets[2].max_concentration[k]) / 3,
        1e-12);
    double length = 0;
    for (int c = 0; c < 3; ++c) length += all.stains[c][k] * all.stains[c][k];
    EXPECT_NEAR(length, 1, 1e-14);
  }
  // A tile normalized to itself keeps its colors, up to what two stains cannot tell.
  const rgb out = normalized({.fitted = {&targets[0], 1}, .reference = reference_of(targets[0])}, {{150, 90, 160}});
  const auto c = targets[0].unmixing(0, 0, 0);
  EXPECT_EQ(c.c[0], 0);
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(out.c[k], (rgb{{150, 90, 160}}.c[k]), 25);
  const stain_basis blank = fit_tile({}, std::vector<std::uint8_t>(300, 255));
  EXPECT_SAYS(reference_of(blank), "too_little_tissue");
}

// What was fitted, kept as vectors and maxima and read again, is the same source: every number that follows from them,
// and every color.
TEST(Macenko, StoredStainsAreTheBasisOfTheFit) {
  const grid g{.extents = {1, 64, 64}};
  const auto bytes = support::stained_tile(g, 3, .8);
  std::vector<float> floats;
  for (const std::uint8_t x : bytes) floats.push_back(static_cast<float>(x) / 255);
  const auto expect_same = [](const stain_basis& fitted, const fit_macenko& how, float full_scale) {
    ASSERT_EQ(fitted.unchanged, 0u);
    const stain_basis stored = basis_of(fitted.reference(), how);
    stain_basis expected = fitted;  // but for what a reference does not hold
    expected.tally = {};
    expected.pixels = 0;
    expected.status = stain_status::ok;
    EXPECT_TRUE(stored == expected);
    for (int level = 0; level < 256; ++level) {
      const auto of = [&](int x) { return static_cast<float>(x % 256) * full_scale / 255; };
      const rgb in{{of(level), of(7 * level + 90), of(3 * level + 50)}};
      const rgb now = normalized({.fitted = {&stored, 1}}, in), then = normalized({.fitted = {&fitted, 1}}, in);
      for (int c = 0; c < 3; ++c) EXPECT_EQ(float_bits(now.c[c]), float_bits(then.c[c]));
    }
  };
  for (const macenko_mode& m : {macenko::standard, macenko::torchstain, macenko::monai, macenko::cucim,
                                macenko::staintools, macenko::tiatoolbox, macenko::vahadane}) {
    expect_same(fit_tile(m.fit, bytes, g), m.fit, 255);
    fit_macenko of_unit_scale = m.fit;
    of_unit_scale.full_scale = 1;
    expect_same(fit_tile(of_unit_scale, floats, g), of_unit_scale, 1);
  }
  // A fallback that was given is such a basis as well.
  const fit_macenko given{.fallback = stain_fallback::given};
  expect_same(fit_tile(given, std::vector<std::uint8_t>(300, 255)), given, 255);

  EXPECT_SAYS(basis_of({.max_concentration = {1, 0}}), "basis_of: maximum concentration 0");
  EXPECT_SAYS(basis_of({.stains = {{{.5, .5}, {.7, .7}, {.4, .4}}}}), "cannot be inverted");
  EXPECT_SAYS(basis_of({}, {.penalty = 2}), "penalty 2");
}

TEST(Macenko, RefusesBadInput) {
  const grid g{.extents = {1, 4, 4}};
  std::vector<std::uint8_t> bytes(64);
  std::vector<std::uint16_t> words(48);
  stain_basis b;
  const auto run = [&](const fit_macenko& how, const auto& image) {
    fit(cpu{}, how, image, everything{}, std::span(&b, 1));
  };
  EXPECT_SAYS(run({}, channels_last(bytes.data(), g, 4)), "channels = 3 with the strides of RGBA");
  EXPECT_SAYS(run({}, channels_last(bytes.data(), g, 1)), "1 channels");
  EXPECT_SAYS(run({}, channels_last(words.data(), g, 3)), "convert images of other types");
  const auto good = channels_last(bytes.data(), g, 3);
  EXPECT_SAYS(run({.alpha = 50}, good), "alpha 50");
  EXPECT_SAYS(run({.concentration_percentile = -1}, good), "concentration_percentile -1");
  EXPECT_SAYS(run({.density = {.white = 0}}, good), "white 0");
  EXPECT_SAYS(run({.penalty = 2}, good), "penalty 2");
  EXPECT_SAYS(run({.full_scale = 0}, good), "full_scale 0");
  EXPECT_SAYS(run({.refinements = -1}, good), "refinements -1");
  EXPECT_SAYS(run({.sparsity = 0}, good), "sparsity 0");
  EXPECT_SAYS(run({.stained = stained_rule::stretched_luminosity, .together = true}, good), "stretches every image");
  EXPECT_SAYS(run({.fallback_stains = {{{{.6, .6}, {.7, .7}, {.3, .3}}}, {1, 1}}}, good), "cannot be inverted");
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_SAYS(run({.fallback_stains = {{{{.6, nan}, {.7, .7}, {.3, .3}}}, {1, 1}}}, good), "element (0, 1)");
  EXPECT_SAYS(fit(cpu{}, fit_macenko{}, good, everything{}, std::span(&b, 0)), "1 needed: one per image");
}

}  // namespace
