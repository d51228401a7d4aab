// SPDX-License-Identifier: Apache-2.0
// Filters that move voxels and filters of k-space: permutations counted out, spectra against a naive transform in
// double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

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
  // Where the elements of larger ones go, and the pairs of places that two neighbours go to.
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
  EXPECT_SAYS((random_coarse_shuffle{.holes = {2, 1}, .size = {1, 1, 1}}.draw(random, {}, here)), "holes [2, 1]");
}

}  // namespace
