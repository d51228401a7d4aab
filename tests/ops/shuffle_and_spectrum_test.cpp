// SPDX-License-Identifier: Apache-2.0
// Filters that move voxels and filters of k-space: permutations counted out, spectra against a naive transform in
// double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ref/fourier.hpp"
#include "support/expect_says.hpp"
#include "support/library.hpp"

namespace {

using namespace suture;

const site here{"test"};

random_field field_of(std::uint64_t seed) { return random_field(stream_id{.seed = seed, .purpose = 1}); }

TEST(permuted, is_a_bijection_for_every_size_and_key) {
  for (const std::uint32_t n : {1u, 2u, 3u, 4u, 5u, 7u, 15u, 16u, 17u, 127u, 128u, 1000u, 4097u})
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      std::vector<int> hits(n);
      for (std::uint32_t i = 0; i < n; ++i) ++hits[detail::permuted(i, n, field_of(seed).words(0))];
      EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), n) << n;
    }
}

// Chi-square of counts that should all be alike.
double chi_square(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int c : counts) sum += (c - expected) * (c - expected) / expected;
  return sum;
}

TEST(permuted, is_uniform_over_keys) {
  // All 24 orders of four elements; 23 degrees of freedom, 52 is passed by chance once in 2000.
  std::map<std::vector<std::uint32_t>, int> orders;
  for (std::uint64_t seed = 0; seed < 24000; ++seed) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < 4; ++i) order.push_back(detail::permuted(i, 4, field_of(seed).words(seed)));
    ++orders[order];
  }
  std::vector<int> counts;
  for (const auto& [order, count] : orders) counts.push_back(count);
  EXPECT_EQ(counts.size(), 24u);
  EXPECT_LT(chi_square(counts, 1000), 52);
  // Where the elements of larger ones go, and the pairs of places that two neighbors go to.
  for (const std::uint32_t n : {6u, 17u, 64u, 100u}) {
    std::vector<int> place(n * n), pair(n * n);
    const int draws = 100 * static_cast<int>(n);
    for (int d = 0; d < draws; ++d) {
      const philox_block key = field_of(n).words(static_cast<std::uint64_t>(d));
      std::uint32_t first = 0, second = 0;
      for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint32_t to = detail::permuted(i, n, key);
        ++place[i * n + to];
        if (i == 2) first = to;
        if (i == 3) second = to;
      }
      ++pair[first * n + second];
    }
    // Degrees of freedom (n - 1)^2 and n (n - 1) - 1; five standard deviations above their mean.
    const double free_places = (n - 1.0) * (n - 1.0), free_pairs = n * (n - 1.0) - 1;
    EXPECT_LT(chi_square(place, 100), free_places + 5 * std::sqrt(2 * free_places)) << n;
    std::vector<int> of_two;
    for (std::uint32_t i = 0; i < n * n; ++i)
      if (i / n != i % n)
        of_two.push_back(pair[i]);
      else
        EXPECT_EQ(pair[i], 0);
    EXPECT_LT(chi_square(of_two, draws / (n * (n - 1.0))), free_pairs + 5 * std::sqrt(2 * free_pairs)) << n;
  }
}

std::vector<float> counted_up(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 0.0f);
  return v;
}

// What a box holds, in order of size.
std::vector<float> content(const std::vector<float>& v, const grid& g, const coarse_shuffle::hole& box,
                           std::int64_t channel) {
  std::vector<float> values;
  for (std::int64_t z = 0; z < g.extents[0]; ++z)
    for (std::int64_t y = 0; y < g.extents[1]; ++y)
      for (std::int64_t x = 0; x < g.extents[2]; ++x) {
        const std::int64_t at[3] = {z, y, x};
        bool inside = true;
        for (int k = 0; k < 3; ++k)
          inside = inside && at[k] >= box.start[k] && at[k] < std::int64_t{box.start[k]} + box.size[k];
        if (inside)
          values.push_back(
              v[static_cast<std::size_t>(((channel * g.extents[0] + z) * g.extents[1] + y) * g.extents[2] + x)]);
      }
  std::sort(values.begin(), values.end());
  return values;
}

TEST(coarse_shuffle, keeps_the_voxels_of_every_box) {
  for (const extent3& n : {extent3{1, 1, 1}, extent3{1, 15, 17}, extent3{16, 17, 15}, extent3{3, 4, 127}}) {
    const grid g{.extents = n};
    const auto x = counted_up(static_cast<std::size_t>(2 * g.voxels()));
    // One box inside, one that reaches beyond, one of no voxel; they do not overlap.
    const coarse_shuffle op{.holes = {{{{0, 2, 3}, {3, 5, 4}}, {{-3, 8, 12}, {4, 60, 200}}, {{0, 0, 0}, {0, 9, 9}}}},
                            .count = 3,
                            .field = field_of(5)};
    const auto y = support::image_result<float>(op, x, g, {}, 2);
    for (std::int64_t channel = 0; channel < 2; ++channel) {
      for (const coarse_shuffle::hole& box : {op.holes[0], op.holes[1]}) {
        EXPECT_EQ(content(y, g, box, channel), content(x, g, box, channel)) << n;
      }
    }
    std::size_t moved = 0, in_boxes = 0;
    for (const coarse_shuffle::hole& box : {op.holes[0], op.holes[1]}) in_boxes += content(x, g, box, 0).size();
    for (std::size_t v = 0; v < x.size(); ++v) moved += x[v] != y[v] ? 1 : 0;
    EXPECT_LE(moved, 2 * in_boxes);
    if (in_boxes > 20) {
      EXPECT_GT(moved, in_boxes);
    }
  }
}

TEST(coarse_shuffle, shuffles_one_box_after_the_other) {
  const grid g{.extents = {5, 9, 11}};
  const auto x = counted_up(static_cast<std::size_t>(g.voxels()));
  const coarse_shuffle::hole first{{0, 1, 2}, {4, 6, 6}}, second{{2, 3, 0}, {3, 5, 7}};
  const auto together =
      support::image_result<float>(coarse_shuffle{.holes = {{first, second}}, .count = 2, .field = field_of(1)}, x, g);
  // The order of a box belongs to its number: an empty one keeps the place of the first.
  const auto one =
      support::image_result<float>(coarse_shuffle{.holes = {{first}}, .count = 1, .field = field_of(1)}, x, g);
  const auto other = support::image_result<float>(
      coarse_shuffle{.holes = {{{{0, 0, 0}, {0, 0, 0}}, second}}, .count = 2, .field = field_of(1)}, one, g);
  EXPECT_EQ(together, other);
  EXPECT_NE(together, one);
}

TEST(random_coarse_shuffle, draws_the_boxes_of_coarse_dropout) {
  const grid g{.extents = {12, 15, 16}};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    draws random(seed, 0, 3, 42 * 16), same(seed, 0, 3, 42 * 16);
    const coarse_shuffle drawn =
        random_coarse_shuffle{.holes = {1, 6}, .size = {2, 0, 3}, .max_size = {5, 0, 9}}.draw(random, g, here);
    const coarse_dropout boxes =
        random_coarse_dropout{.holes = {1, 6}, .size = {2, 0, 3}, .max_size = {5, 0, 9}}.draw(same, g, here);
    EXPECT_EQ(drawn.count, boxes.count);
    for (std::size_t b = 0; b < drawn.holes.size(); ++b)
      for (int k = 0; k < 3; ++k) {
        EXPECT_EQ(drawn.holes[b].start[k], boxes.holes[b].start[k]);
        EXPECT_EQ(drawn.holes[b].size[k], boxes.holes[b].size[k]);
      }
  }
  // Off, and in evaluation, nothing moves; labels never do.
  const auto x = counted_up(static_cast<std::size_t>(g.voxels()));
  const std::uint64_t id = 4;
  const random_coarse_shuffle op{.holes = 3, .size = {4, 4, 4}};
  EXPECT_NE(support::image_result<float>(op, x, g, {.seed = 1, .sample_ids = {&id, 1}}), x);
  EXPECT_EQ(support::image_result<float>(op, x, g, {.seed = 1, .sample_ids = {&id, 1}, .evaluation = true}), x);
}

TEST(coarse_shuffle, errors_name_the_value) {
  EXPECT_SAYS((coarse_shuffle{.holes = {}, .count = 33}.prepare(here)), "count 33 is not in 0 .. 32");
  EXPECT_SAYS((coarse_shuffle{.holes = {{{{0, 0, 0}, {1, -2, 1}}}}, .count = 1}.prepare(here)), "the size -2");
  EXPECT_SAYS((coarse_shuffle{.holes = {{{{0, 0, 0}, {2048, 2048, 1024}}}}, .count = 1}.prepare(here)), "2^31");
  draws random(0, 0, 0, 0);
  EXPECT_SAYS((random_coarse_shuffle{.holes = {2, 1}, .size = {1, 1, 1}}.check(here)), "holes [2, 1]");
  EXPECT_SAYS((random_coarse_shuffle{.holes = 1, .size = {0, 1, 1}, .max_size = {2, 2, 2}}.check(here)),
              "max_size: expected 0 along axis 0");
  // Whatever is drawn: the largest box that may be.
  EXPECT_SAYS((random_coarse_shuffle{.holes = 1, .size = {0, 0, 1}, .max_size = {0, 0, 4096}}.draw(
                  random, {.extents = {1024, 2048, 2048}}, here)),
              "boxes may have 4294967296 voxels, at most 2^31");
}

const extent3 sizes[] = {{1, 1, 1},    {1, 15, 16}, {1, 17, 127}, {1, 128, 96}, {15, 1, 17}, {16, 15, 17},
                         {17, 16, 15}, {5, 127, 3}, {127, 2, 9},  {12, 20, 30}, {7, 49, 11}, {2, 3, 128}};

std::vector<float> some_values(std::int64_t n, float middle = 300) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i)
    v.push_back(middle + static_cast<float>(mix64(static_cast<std::uint64_t>(i)) % 2001) - 1000);
  return v;
}

reference::size3d size_of(const extent3& n) {
  return {static_cast<std::size_t>(n[0]), static_cast<std::size_t>(n[1]), static_cast<std::size_t>(n[2])};
}

// The filtered patch, from the transform by its definition and the mask as its source states it.
std::vector<double> ringing(const std::vector<float>& x, const extent3& extents, double alpha) {
  const reference::size3d n = size_of(extents);
  reference::spectrum k = reference::transformed({x.begin(), x.end()}, n);
  const double radius = (1 - alpha) * static_cast<double>(std::max({n[0], n[1], n[2]})) * std::sqrt(2.0) / 2.0;
  for (std::size_t i = 0; i < k.size(); ++i) {
    const std::size_t at[3] = {i / (n[1] * n[2]), i / n[2] % n[1], i % n[2]};
    double squares = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      const double d = static_cast<double>(reference::shifted(at[a], n[a])) - (static_cast<double>(n[a]) - 1) / 2;
      squares += d * d;
    }
    if (!(std::sqrt(squares) <= radius)) k[i] = 0;
  }
  std::vector<double> y;
  for (const auto& v : reference::transformed(k, n, true)) y.push_back(v.real());
  return y;
}

double largest(const std::vector<float>& x) {
  double most = 0;
  for (const float v : x) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

void expect_near(const std::vector<float>& y, const std::vector<double>& expected, double tolerance, const extent3& n) {
  ASSERT_EQ(y.size(), expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(y[i]) - expected[i]));
  EXPECT_LE(worst, tolerance) << n;
}

TEST(fourier, lines_of_every_length_are_those_of_the_definition) {
  for (std::int32_t n = 1; n <= 132; ++n) {
    const std::vector<math::complex> roots = detail::roots_of_unity(n);
    detail::line_block b(roots);
    const auto size = static_cast<std::size_t>(n);
    std::vector<reference::spectrum> lines(detail::line_lanes, reference::spectrum(size));
    for (std::int32_t i = 0; i < n; ++i)
      for (std::size_t l = 0; l < lines.size(); ++l) {
        const std::uint64_t r = mix64(static_cast<std::uint64_t>(i) * 16 + l);
        b.real(i)[l] = static_cast<float>(r % 2048) - 1024;
        b.imaginary(i)[l] = static_cast<float>(r / 2048 % 2048) - 1024;
        lines[l][static_cast<std::size_t>(i)] = {static_cast<double>(b.real(i)[l]),
                                                 static_cast<double>(b.imaginary(i)[l])};
      }
    b.transform();
    for (std::size_t l = 0; l < lines.size(); ++l) {
      const reference::spectrum expected = reference::transformed(lines[l], {1, 1, size});
      for (std::int32_t i = 0; i < n; ++i) {
        const auto& e = expected[static_cast<std::size_t>(i)];
        ASSERT_NEAR(static_cast<double>(b.real(i)[l]), e.real(), 2e-3 * std::sqrt(n)) << n << ' ' << i;
        ASSERT_NEAR(static_cast<double>(b.imaginary(i)[l]), e.imag(), 2e-3 * std::sqrt(n)) << n << ' ' << i;
      }
    }
  }
}

TEST(gibbs_ringing, is_the_definition_in_double) {
  for (const extent3& n : sizes) {
    const grid g{.extents = n};
    const auto x = some_values(g.voxels());
    for (const float alpha : {0.0f, 0.3f, 0.7f, 1.0f})
      expect_near(support::image_result<float>(gibbs_ringing{.alpha = alpha}, x, g),
                  ringing(x, n, static_cast<double>(alpha)), 5e-6 * largest(x), n);
  }
}

TEST(gibbs_ringing, keeps_and_loses_what_it_says) {
  const grid plane{.extents = {1, 33, 47}}, odd{.extents = {5, 7, 9}}, even{.extents = {5, 8, 9}};
  const auto x = some_values(plane.voxels());
  // alpha = 0 keeps all of a plane, to rounding.
  expect_near(support::image_result<float>(gibbs_ringing{.alpha = 0}, x, plane), {x.begin(), x.end()}, 1e-3,
              plane.extents);
  // alpha = 1 the mean, or nothing.
  const auto v = some_values(odd.voxels());
  const double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  expect_near(support::image_result<float>(gibbs_ringing{.alpha = 1}, v, odd), std::vector<double>(v.size(), mean),
              1e-3, odd.extents);
  const auto w = some_values(even.voxels());
  EXPECT_EQ(support::image_result<float>(gibbs_ringing{.alpha = 1}, w, even), std::vector<float>(w.size(), 0.0f));
  // A constant stays.
  const std::vector<float> constant(static_cast<std::size_t>(even.voxels()), 7.25f);
  expect_near(support::image_result<float>(gibbs_ringing{.alpha = .5f}, constant, even),
              {constant.begin(), constant.end()}, 1e-5, even.extents);
}

TEST(random_gibbs_ringing, works_where_it_was_drawn) {
  const grid g{.extents = {6, 15, 17}};
  const std::uint64_t id = 3;
  const auto x = some_values(3 * g.voxels());
  const auto n = static_cast<std::size_t>(g.voxels());
  const settings s{.seed = 4, .sample_ids = {&id, 1}};
  const auto own = random_gibbs_ringing{.alpha = {.2f, .9f}, .one_alpha = false, .channel_probability = .5f};
  const std::vector<grid> batch{g};
  const auto planned = suture::plan(own | brightness{.offset = 1}, batch, s);
  const auto& drawn = planned.template drawn<0>(0).parameters;
  const auto y = support::image_result<float>(own | brightness{.offset = 1}, x, g, s, 3);
  int rings = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::vector<float> in(x.begin() + static_cast<std::ptrdiff_t>(c * n),
                                x.begin() + static_cast<std::ptrdiff_t>((c + 1) * n));
    const std::vector<float> out(y.begin() + static_cast<std::ptrdiff_t>(c * n),
                                 y.begin() + static_cast<std::ptrdiff_t>((c + 1) * n));
    std::vector<double> expected(in.begin(), in.end());
    if (drawn.channels[c]) expected = ringing(in, g.extents, static_cast<double>(drawn.alpha[c]));
    rings += drawn.channels[c] ? 1 : 0;
    for (double& v : expected) v += 1;
    expect_near(out, expected, drawn.channels[c] ? 1e-3 : 0, g.extents);
  }
  EXPECT_GT(rings, 0);
  EXPECT_LT(rings, 3);
  draws random(1, 0, 0, 0);
  const auto together = random_gibbs_ringing{}.draw(random, here);
  for (const float alpha : together.alpha) EXPECT_EQ(alpha, together.alpha[0]);
  EXPECT_EQ(support::image_result<float>(random_gibbs_ringing{.probability = 0}, x, g, s, 3), x);
}

// The spike put into the transform by its definition, as its source does.
std::vector<double> spiked(const std::vector<float>& x, const extent3& extents, const kspace_spike& spike) {
  const reference::size3d n = size_of(extents);
  reference::spectrum k = reference::transformed({x.begin(), x.end()}, n);
  double mean = 0;
  for (const auto& v : k) mean += std::log(std::abs(v) + 1e-10) / static_cast<double>(k.size());
  std::size_t index = 0;
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t f = 0; f < n[a]; ++f)
      if (reference::shifted(f, n[a]) == static_cast<std::size_t>(spike.location[static_cast<int>(a)]))
        index = index * n[a] + f;
  const double log_magnitude = static_cast<double>(spike.intensity) * (spike.relative ? mean : 1);
  k[index] = std::polar(std::exp(log_magnitude), std::arg(k[index]));
  std::vector<double> y;
  for (const auto& v : reference::transformed(k, n, true)) y.push_back(v.real());
  return y;
}

TEST(kspace_spike, is_the_definition_in_double) {
  for (const extent3& n : sizes) {
    const grid g{.extents = n};
    const auto x = some_values(g.voxels());
    const extent3 places[] = {{n[0] / 2, n[1] / 2, n[2] / 2}, {0, 0, n[2] - 1}, {n[0] - 1, n[1] / 3, n[2] / 4}};
    for (const extent3& place : places)
      for (const kspace_spike& spike : {kspace_spike{.location = place, .intensity = 1.4f},
                                        kspace_spike{.location = place, .intensity = 12, .relative = false}}) {
        const auto expected = spiked(x, n, spike);
        double most = 0;
        for (const double v : expected) most = std::max(most, std::abs(v));
        expect_near(support::image_result<float>(spike, x, g), expected, 1e-5 * most, n);
      }
  }
}

TEST(kspace_spike, of_a_constant_and_of_nothing) {
  const grid g{.extents = {1, 16, 18}};
  const std::vector<float> constant(static_cast<std::size_t>(g.voxels()), 4.0f);
  // Frequency (0, 2): a wave of two periods along x, of magnitude e^7 / V, in whatever phase rounding left.
  const auto y = support::image_result<float>(kspace_spike{.location = {0, 8, 11}, .intensity = 7, .relative = false},
                                              constant, g);
  const double amplitude = std::exp(7.0) / static_cast<double>(y.size());
  const auto [low, high] = std::minmax_element(y.begin(), y.end());
  EXPECT_LE(static_cast<double>(*high), 4 + amplitude * (1 + 1e-5));
  EXPECT_GE(static_cast<double>(*high), 4 + amplitude * .9);
  EXPECT_GE(static_cast<double>(*low), 4 - amplitude * (1 + 1e-5));
  // Where nothing is, a spike stands in phase 0, and the mean of the logarithms is ln 1e-10.
  const std::vector<float> nothing(constant.size(), 0.0f);
  const auto stripes = support::image_result<float>(kspace_spike{.location = {0, 8, 9}, .intensity = -.5f}, nothing, g);
  for (const float v : stripes) EXPECT_NEAR(static_cast<double>(v), 1e5 / static_cast<double>(y.size()), 1e-3);
}

TEST(kspace_spike, errors_name_the_value) {
  const grid g{.extents = {4, 5, 6}}, long_line{.extents = {1, 2, 2049}};
  EXPECT_SAYS((kspace_spike{.location = {4, 0, 0}}.prepare(g, here)), "location (4, 0, 0) is outside a patch");
  EXPECT_SAYS((kspace_spike{.location = {0, 0, -1}}.prepare(g, here)), "location (0, 0, -1)");
  EXPECT_SAYS((kspace_spike{.location = {0, 0, 0}, .intensity = INFINITY}.prepare(g, here)), "intensity inf");
  EXPECT_SAYS((kspace_spike{.location = {0, 0, 0}}.prepare(long_line, here)), "at most 2048 along an axis");
  EXPECT_SAYS((gibbs_ringing{}.prepare(long_line, here)), "at most 2048 along an axis");
  EXPECT_SAYS((gibbs_ringing{.alpha = 1.5f}.prepare(g, here)), "alpha 1.5 is not in [0, 1]");
  draws random(0, 0, 0, 0);
  EXPECT_SAYS((random_gibbs_ringing{.alpha = {.5f, 2}}.draw(random, here)), "alpha [0.5, 2]");
  EXPECT_SAYS((random_kspace_spike{.intensity = {2, 1}}.draw(random, g, here)), "intensity [2, 1]");
  const std::vector<float> x(9 * static_cast<std::size_t>(g.voxels()));
  const std::uint64_t id = 1;
  EXPECT_SAYS((support::image_result<float>(random_kspace_spike{}, x, g, {.sample_ids = {&id, 1}}, 9)),
              "draws for each of at most 8");
}

// Statistics, filters and casts around filters of k-space, and samples that drew nothing.
TEST(spectral_stages, join_the_others) {
  const grid g{.extents = {4, 9, 18}};
  const auto x = some_values(g.voxels());
  const auto rings = ringing(x, g.extents, .4f);
  double mean = 0;
  for (const double v : rings) mean += v / static_cast<double>(rings.size());
  double variance = 0;
  for (const double v : rings) variance += (v - mean) * (v - mean) / static_cast<double>(rings.size());
  std::vector<double> expected;
  for (const double v : rings) expected.push_back((v - mean) / std::sqrt(variance));
  expect_near(support::image_result<float>(gibbs_ringing{.alpha = .4f} | patch_z_score{}, x, g), expected, 1e-5,
              g.extents);
  const auto twice = support::image_result<float>(
      brightness{.offset = 2} | gibbs_ringing{.alpha = .4f} | gibbs_ringing{.alpha = .4f} | brightness{.offset = -2}, x,
      g);
  std::vector<float> shifted(x);
  for (float& v : shifted) v += 2;
  const auto once = ringing(shifted, g.extents, .4f);
  auto again = ringing({once.begin(), once.end()}, g.extents, .4f);
  for (double& v : again) v -= 2;
  expect_near(twice, again, 2e-3, g.extents);
}

}  // namespace
