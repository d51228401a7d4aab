// SPDX-License-Identifier: Apache-2.0
// The counter-based generator against Random123's known answers, the layout of streams and elements against known
// answers, and the statistics of what is drawn. Statistical bounds are five standard deviations of the statistic.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "suture/rng/draw.hpp"

namespace {

using suture::bit_cast;
using suture::draws;
using suture::philox4x32;
using suture::philox_block;
using suture::random_field;
using suture::stream;
using suture::stream_id;

using words = std::array<std::uint32_t, 4>;

words to_words(const philox_block& b) { return {b[0], b[1], b[2], b[3]}; }

constexpr std::uint32_t ones = 0xffffffffu;

static_assert(std::is_trivially_copyable_v<random_field> && std::is_trivially_copyable_v<draws>);

TEST(Philox, KnownAnswersOfTenRounds) {
  EXPECT_EQ(to_words(philox4x32({{0, 0, 0, 0}}, {{0, 0}})), (words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(to_words(philox4x32({{ones, ones, ones, ones}}, {{ones, ones}})),
            (words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(to_words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}})),
            (words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KnownAnswersOfSevenRounds) {
  EXPECT_EQ(to_words(philox4x32<7>({{0, 0, 0, 0}}, {{0, 0}})), (words{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(to_words(philox4x32<7>({{ones, ones, ones, ones}}, {{ones, ones}})),
            (words{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(to_words(philox4x32<7>({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}})),
            (words{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

// cuRAND's state of seed 1234, subsequence 5, offset 6 and the one after it.
TEST(Philox, BlocksOfACurandState) {
  EXPECT_EQ(to_words(philox4x32({{1, 0, 5, 0}}, {{1234, 0}})), (words{0x5c5cf6f4, 0x3fc0ce58, 0x32773955, 0x72c26332}));
  EXPECT_EQ(to_words(philox4x32({{2, 0, 5, 0}}, {{1234, 0}})), (words{0x26a9bd1b, 0xd88ecb0d, 0x088f2111, 0xd1e85602}));
}

TEST(Distribution, WordsToUnitInterval) {
  EXPECT_FLOAT_EQ(suture::unit_half_open(0xd16cfe09), 0.8180693388f);
  EXPECT_FLOAT_EQ(suture::unit_positive(0xd16cfe09), 0.8180693984f);
  EXPECT_EQ(suture::unit_half_open(0), 0.0f);
  EXPECT_EQ(suture::unit_positive(0), 0x1p-24f);
  EXPECT_EQ(suture::unit_half_open(0xffffff80), 1 - 0x1p-24f);
  EXPECT_EQ(suture::unit_half_open(ones), 1 - 0x1p-24f);
  EXPECT_EQ(suture::unit_positive(ones), 1.0f);
}

TEST(Distribution, WordsToIntegers) {
  EXPECT_EQ(suture::integer_below(0xd16cfe09, 10), 8);
  EXPECT_EQ(suture::integer_below(ones, 10), 9);
  EXPECT_EQ(suture::integer_below(0, 10), 0);
  EXPECT_EQ(suture::integer_below(ones, 1), 0);
  EXPECT_EQ(suture::integer_below(0xd16cfe09, std::int64_t{1} << 32), 0xd16cfe09);
}

// What the semantics allow a normal value to be off by.
void expect_normal(float got, double expected) { EXPECT_NEAR(got, expected, 2e-6 * std::max(1.0, std::abs(expected))); }

TEST(Distribution, BoxMuller) {
  const suture::normal_pair a = suture::box_muller(0xd16cfe09, 0x94fdcceb);
  expect_normal(a.cosine, -0.5514679118);
  expect_normal(a.sine, -0.3122488687);
  const suture::normal_pair b = suture::box_muller(0x5001e420, 0x24126ea1);
  expect_normal(b.cosine, 0.9654673559);
  expect_normal(b.sine, 1.1806732825);
  const suture::normal_pair c = suture::box_muller(0x6627e8d5, 0xe169c58d);
  expect_normal(c.cosine, 0.9911374751);
  expect_normal(c.sine, -0.9246627804);
  const suture::normal_pair d = suture::box_muller(0xbc57ac4c, 0x9b00dbd8);
  expect_normal(d.cosine, -0.6176090550);
  expect_normal(d.sine, -0.4820683473);
}

// Against the definition in long double, and the ends of both words.
TEST(Distribution, BoxMullerEverywhere) {
  const auto check = [](std::uint32_t v, std::uint32_t u) {
    const long double r = std::sqrt(-2 * std::log(static_cast<long double>((v >> 8) + 1) * 0x1p-24L));
    const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(u >> 8) * 0x1p-24L;
    const suture::normal_pair got = suture::box_muller(v, u);
    expect_normal(got.cosine, static_cast<double>(r * std::cos(angle)));
    expect_normal(got.sine, static_cast<double>(r * std::sin(angle)));
  };
  for (const std::uint32_t v : {0u, 1u << 8, 2u << 8, 0x7fffffffu, 0x80000000u, 0xfffffe00u, ones})
    for (const std::uint32_t u : {0u, 1u << 8, 0x3fffff00u, 0x40000000u, 0x80000000u, 0xc0000000u, ones}) check(v, u);
  for (std::uint32_t i = 0; i < 200000; ++i) {
    const philox_block w = philox4x32({{i, 0, 0, 0}}, {{7, 0}});
    check(w[0], w[1]);
  }
}

constexpr std::uint64_t seed = 0x0123456789ABCDEFu;

TEST(Layout, StreamsAndBlocks) {
  const stream noise(stream_id{.seed = seed, .epoch = 7, .sample = 42, .operation = 3, .purpose = 1});
  EXPECT_EQ(to_words(noise.state()), (words{0x17e2f7ab, 0x7ec8a0c7, 0x35b35051, 0x1631c6f7}));
  EXPECT_EQ(to_words(noise.block(0)), (words{0xd97f32c4, 0xc8a761b7, 0xa61e98a9, 0x33e0b186}));
  EXPECT_EQ(to_words(noise.block(1)), (words{0xfe6a5f67, 0x8bec4184, 0xf645cac3, 0xc5b22b4e}));
  EXPECT_EQ(to_words(noise.block(12345678901)), (words{0x8a56cdac, 0x14602d04, 0xa9694c85, 0x9f6ca0ad}));
  const stream parameters(stream_id{.seed = seed, .epoch = 7, .sample = 42, .operation = 3});
  EXPECT_EQ(to_words(parameters.state()), (words{0x5ef70e88, 0xeba9a57f, 0xbfe4a152, 0xe2aee08a}));
  EXPECT_EQ(to_words(parameters.block(0)), (words{0x6ee6257f, 0x0a8f8c8e, 0xab8874f9, 0x7b5bc23e}));
}

TEST(Layout, StreamsSideBySide) {
  const std::uint64_t samples[16] = {42, 0, 1, 0xffffffffu, 1ull << 40, 7, 42, 43, 44, 45, 46, 47, 48, 49, 50, ~0ull};
  suture::stream_row<16> row;
  row.begin({.seed = seed, .epoch = 7, .operation = 3}, samples);
  for (int l = 0; l < 16; ++l) {
    const stream alone({.seed = seed, .epoch = 7, .sample = samples[l], .operation = 3});
    EXPECT_EQ(to_words(row[l].state()), to_words(alone.state()));
    EXPECT_EQ(to_words(row.first(l)), to_words(alone.block(0)));
    EXPECT_EQ(row.below(.25f) >> l & 1, suture::unit_half_open(alone.block(0)[0]) < .25f ? 1u : 0u);
  }
  for (const std::uint16_t purpose : std::initializer_list<std::uint16_t>{1, 3, 1, 0})
    for (const int l : {5, 0, 15}) {
      const stream alone({.seed = seed, .epoch = 7, .sample = samples[l], .operation = 3, .purpose = purpose});
      EXPECT_EQ(to_words(row.of_purpose(purpose, l).state()), to_words(alone.state()));
      EXPECT_EQ(draws(row, l).field(purpose).uniform(9), suture::random_field(alone).uniform(9));
    }
}

// As a plan draws, and by itself.
TEST(Layout, DrawsOfAPlan) {
  const std::uint64_t samples[16] = {42, 0, 1, 0xffffffffu, 1ull << 40, 7, 42, 43, 44, 45, 46, 47, 48, 49, 50, ~0ull};
  suture::planned_streams row;
  row.begin({.seed = seed, .epoch = 7, .operation = 3}, samples);
  for (int l = 0; l < 16; ++l) {
    draws planned(row, l), alone(seed, 7, samples[l], 3);
    alone.uniform(0, 1);
    for (int i = 0; i < 80; ++i) ASSERT_EQ(planned.uniform(-1, 2), alone.uniform(-1, 2));
    ASSERT_EQ(planned.mixture(.5f, 3), alone.mixture(.5f, 3));
  }
}

// Many draws at once are the same draws, wherever they begin.
TEST(Layout, DrawsAtOnce) {
  for (int skipped = 0; skipped < 9; ++skipped) {
    draws at_once(seed, 7, 42, 3), one_by_one(seed, 7, 42, 3);
    for (int i = 0; i < skipped; ++i) EXPECT_EQ(at_once.uniform(0, 1), one_by_one.uniform(0, 1));
    float few[5], many[33];
    at_once.units(few);
    at_once.units(many);
    for (const float u : few) EXPECT_EQ(u, one_by_one.uniform(0, 1));
    for (const float u : many) EXPECT_EQ(u, one_by_one.uniform(0, 1));
    for (int i = 0; i < 40; ++i) EXPECT_EQ(at_once.uniform(0, 1), one_by_one.uniform(0, 1));
  }
}

TEST(Layout, UniformBetween) {
  const float tiny = 0x1p-149f;
  for (const auto& [a, b] : std::initializer_list<std::pair<float, float>>{
           {.5f, 1}, {-1, 2}, {3, 3}, {0, tiny}, {-tiny, 0}, {1, 1 + 0x1p-23f}, {-3, -1}, {0, 0}, {-1e30f, 1e30f}}) {
    draws random(seed, 7, 42, 3), units(seed, 7, 42, 3);
    const suture::uniform_between between(a, b);
    for (int i = 0; i < 200; ++i) {
      const float value = random.uniform(a, b);
      EXPECT_EQ(between(units.uniform(0, 1)), value);
      EXPECT_TRUE(value == a || (a < value && value < b));
    }
  }
}

// However far ahead the words are made, and whatever is left out.
TEST(Layout, SlotsThatNobodyLooksAt) {
  draws random(seed, 7, 42, 3);
  const stream blocks(stream_id{.seed = seed, .epoch = 7, .sample = 42, .operation = 3});
  for (std::uint32_t slot = 0; slot < 300; ++slot) {
    if (slot % 7 < 4 || slot / 70 == 2) {
      EXPECT_EQ(random.uniform(3, 3), 3);
      continue;
    }
    EXPECT_EQ(random.uniform(0, 1), suture::unit_half_open(blocks.block(slot / 4)[slot])) << slot;
  }
}

TEST(Layout, ElementsOfAField) {
  const random_field field = draws(seed, 7, 42, 3).field(1);
  const double uniforms[] = {0.8495970964, 0.7838039994, 0.6489043236, 0.2026472688};
  const double normals[] = {0.1203586001, -0.5581216348, 0.2726411565, 0.8891606182};
  float u[4], z[4];
  field.uniform4(0, u);
  field.normal4(0, z);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(field.uniform(i), uniforms[i], 1e-10);
    expect_normal(field.normal(i), normals[i]);
    EXPECT_EQ(u[i], field.uniform(i));
    EXPECT_EQ(z[i], field.normal(i));
  }
  // Beyond 32 bits of elements.
  const std::uint32_t far_words[] = {0x8a56cdac, 0x14602d04, 0xa9694c85, 0x9f6ca0ad};
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(field.uniform(std::uint64_t{12345678901} * 4 + i), static_cast<float>(far_words[i] >> 8) * 0x1p-24f);
}

TEST(Layout, FourAtOnceAreTheFourAlone) {
  const random_field field = draws(5, 1, 2, 3).field(2);
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 50, std::uint64_t{1} << 60})
    for (std::uint64_t block = first; block < first + 100; ++block) {
      float u[4], z[4];
      field.uniform4(block, u);
      field.normal4(block, z);
      for (std::uint32_t i = 0; i < 4; ++i) {
        ASSERT_EQ(bit_cast<std::uint32_t>(u[i]), bit_cast<std::uint32_t>(field.uniform(4 * block + i)));
        ASSERT_EQ(bit_cast<std::uint32_t>(z[i]), bit_cast<std::uint32_t>(field.normal(4 * block + i)));
      }
    }
}

TEST(Layout, RowsAreTheElementsAlone) {
  const random_field field = draws(5, 1, 2, 3).field(2);
  for (const std::uint64_t from : {std::uint64_t{0}, (std::uint64_t{1} << 34) - 50, std::uint64_t{1} << 60})
    for (std::uint64_t first = from; first < from + 100; ++first) {
      float u[32], z[32];
      field.uniform_row(first, u);
      field.normal_row(first, z);
      for (std::uint32_t i = 0; i < 32; ++i) {
        ASSERT_EQ(bit_cast<std::uint32_t>(u[i]), bit_cast<std::uint32_t>(field.uniform(first + i)));
        ASSERT_EQ(bit_cast<std::uint32_t>(z[i]), bit_cast<std::uint32_t>(field.normal(first + i)));
      }
    }
}

TEST(Layout, ScalarsTakeConsecutiveSlots) {
  const std::uint32_t slots[] = {0x6ee6257f, 0x0a8f8c8e, 0xab8874f9, 0x7b5bc23e};
  draws random(seed, 7, 42, 3);
  for (const std::uint32_t word : slots) EXPECT_EQ(random.uniform(0, 1), static_cast<float>(word >> 8) * 0x1p-24f);
  const philox_block second = stream(stream_id{.seed = seed, .epoch = 7, .sample = 42, .operation = 3}).block(1);
  EXPECT_EQ(random.uniform(0, 1), static_cast<float>(second[0] >> 8) * 0x1p-24f);
}

// After any draw the next one finds the slot it would find after as many uniform draws as stated.
TEST(Layout, EveryDrawTakesItsSlots) {
  const auto next_after = [](auto draw) {
    std::vector<float> next;
    for (std::uint64_t sample = 0; sample < 50; ++sample) {
      draws random(seed, 0, sample, 1);
      draw(random);
      next.push_back(random.uniform(0, 1));
    }
    return next;
  };
  const auto one = next_after([](draws& d) { d.uniform(0, 1); });
  const auto two = next_after([](draws& d) { d.uniform(0, 1), d.uniform(0, 1); });
  EXPECT_NE(one, two);
  EXPECT_EQ(next_after([](draws& d) { d.uniform(3, 3); }), one);
  EXPECT_EQ(next_after([](draws& d) { d.bernoulli(0.0f); }), one);
  EXPECT_EQ(next_after([](draws& d) { d.bernoulli(0.5f); }), one);
  EXPECT_EQ(next_after([](draws& d) { d.integer(1); }), one);
  EXPECT_EQ(next_after([](draws& d) { d.integer(1000); }), one);
  EXPECT_EQ(next_after([](draws& d) { d.log_uniform(1, 2); }), one);
  EXPECT_EQ(next_after([](draws& d) { d.normal(0, 1); }), two);
  EXPECT_EQ(next_after([](draws& d) { d.mixture(0.5f, 2); }), two);
}

TEST(Layout, EveryPartOfAnIdMatters) {
  const std::uint16_t short_words[] = {0, 1, 2, 256, 65535};
  std::set<words> states;
  std::size_t count = 0;
  for (std::uint64_t sample : {0ull, 1ull, 2ull, 1ull << 32, 1ull << 63})
    for (std::uint32_t epoch : {0u, 1u, 2u, 1u << 16, ones})
      for (std::uint16_t operation : short_words)
        for (std::uint16_t purpose : short_words)
          for (std::uint64_t s : {0ull, 1ull, 1ull << 32}) {
            states.insert(to_words(stream(stream_id{s, epoch, sample, operation, purpose}).state()));
            ++count;
          }
  EXPECT_EQ(states.size(), count);
}

TEST(Draws, UniformStaysBelowItsEnd) {
  const float ranges[][2] = {{0, 1},
                             {-1, 1},
                             {1, std::nextafter(1.0f, 2.0f)},
                             {-0x1p-149f, 0},
                             {0, 0x1p-149f},
                             {1e8f, 1e8f + 8},
                             {-3.4e38f, 3.4e38f},
                             {-0.3f, 0.2f}};
  for (const auto& [a, b] : ranges) {
    draws random(1, 2, 3, 4);
    for (int i = 0; i < 20000; ++i) {
      const float x = random.uniform(a, b);
      ASSERT_GE(x, a);
      ASSERT_LT(x, b);
    }
  }
  draws random(1, 2, 3, 4);
  EXPECT_EQ(random.uniform(0.1f, 0.1f), 0.1f);
}

TEST(Draws, BernoulliAtItsEnds) {
  draws random(1, 2, 3, 4);
  for (int i = 0; i < 20000; ++i) {
    ASSERT_FALSE(random.bernoulli(0));
    ASSERT_TRUE(random.bernoulli(1));
  }
}

constexpr int count = 1 << 18;

double chi_square(const std::vector<std::int64_t>& cells, double total) {
  const double expected = total / static_cast<double>(cells.size());
  double sum = 0;
  for (const std::int64_t n : cells) sum += (static_cast<double>(n) - expected) * (static_cast<double>(n) - expected);
  return sum / expected;
}

// Values in [0, 1) that should be uniform: chi-square has mean k - 1 and variance 2 (k - 1).
template <class Next>
void expect_uniform(Next next) {
  constexpr int cells = 256;
  std::vector<std::int64_t> histogram(cells);
  for (int i = 0; i < count; ++i) {
    const double u = next();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++histogram[static_cast<std::size_t>(u * cells)];
  }
  EXPECT_NEAR(chi_square(histogram, count), cells - 1, 5 * std::sqrt(2.0 * (cells - 1)));
}

TEST(Statistics, Uniform) {
  draws random(11, 0, 0, 1);
  expect_uniform([&] { return (static_cast<double>(random.uniform(-3, 5)) + 3) / 8; });
  const random_field field = random.field(1);
  std::uint64_t element = 0;
  expect_uniform([&] { return static_cast<double>(field.uniform(element++)); });
}

TEST(Statistics, LogUniform) {
  draws random(12, 0, 0, 1);
  expect_uniform([&] {
    const double x = random.log_uniform(0.5f, 2.0f);
    EXPECT_GE(x, 0.5);
    EXPECT_LE(x, 2.0);
    return std::min(std::log2(2 * x) / 2, 1 - 1e-9);
  });
}

TEST(Statistics, Mixture) {
  draws random(13, 0, 0, 1);
  expect_uniform([&] {
    const double x = random.mixture(0.7f, 1.5f);
    return x < 1 ? (x - 0.7f) / (1 - 0.7f) / 2 : 0.5 + (x - 1) / 0.5 / 2;
  });
}

TEST(Statistics, Integer) {
  draws random(14, 0, 0, 1);
  std::vector<std::int64_t> histogram(10);
  for (int i = 0; i < count; ++i) ++histogram.at(static_cast<std::size_t>(random.integer(10)));
  EXPECT_NEAR(chi_square(histogram, count), 9, 5 * std::sqrt(18.0));
}

TEST(Statistics, Bernoulli) {
  for (const float p : {0.01f, 0.15f, 0.5f, 0.9f}) {
    draws random(15, 0, 0, 1);
    int hits = 0;
    for (int i = 0; i < count; ++i) hits += random.bernoulli(p);
    EXPECT_NEAR(hits, count * p, 5 * std::sqrt(count * p * (1 - p)));
  }
}

// Moments of n normal values: variances 1/n, 2/n, 15/n, 96/n of the mean, second, third and fourth moment.
template <class Next>
void expect_standard_normal(Next next) {
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, tail = 0;
  for (int i = 0; i < count; ++i) {
    const double z = next();
    m1 += z;
    m2 += z * z;
    m3 += z * z * z;
    m4 += z * z * z * z;
    tail += std::abs(z) > 3;
  }
  EXPECT_NEAR(m1 / count, 0, 5 * std::sqrt(1.0 / count));
  EXPECT_NEAR(m2 / count, 1, 5 * std::sqrt(2.0 / count));
  EXPECT_NEAR(m3 / count, 0, 5 * std::sqrt(15.0 / count));
  EXPECT_NEAR(m4 / count, 3, 5 * std::sqrt(96.0 / count));
  const double beyond = std::erfc(3 / std::numbers::sqrt2);
  EXPECT_NEAR(tail, count * beyond, 5 * std::sqrt(count * beyond));
}

TEST(Statistics, Normal) {
  draws random(16, 0, 0, 1);
  expect_standard_normal([&] { return (static_cast<double>(random.normal(5, 2)) - 5) / 2; });
  const random_field field = random.field(1);
  std::uint64_t element = 0;
  expect_standard_normal([&] { return static_cast<double>(field.normal(element++)); });
}

// Fields whose ids differ in one part, and neighbors in one field: the correlation of n independent normal values has
// standard deviation 1 / sqrt(n).
TEST(Statistics, Independence) {
  const stream_id base{.seed = 99, .epoch = 3, .sample = 1000, .operation = 5, .purpose = 1};
  const auto correlation = [](const random_field& a, const random_field& b, std::uint64_t shift) {
    double sum = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      sum += static_cast<double>(a.normal(i)) * static_cast<double>(b.normal(i + shift));
    return sum / count;
  };
  const double bound = 5 / std::sqrt(static_cast<double>(count));
  const random_field field(base);
  for (const std::uint64_t shift : {1u, 2u, 3u, 4u}) EXPECT_NEAR(correlation(field, field, shift), 0, bound) << shift;
  std::vector<stream_id> neighbors(5, base);
  ++neighbors[0].seed;
  ++neighbors[1].epoch;
  ++neighbors[2].sample;
  ++neighbors[3].operation;
  ++neighbors[4].purpose;
  for (const stream_id& id : neighbors) EXPECT_NEAR(correlation(field, random_field(id), 0), 0, bound);
}

// First draws of consecutive samples, as a training run sees them.
TEST(Statistics, FirstDrawAcrossSamples) {
  std::uint64_t sample = 0;
  expect_uniform([&] { return static_cast<double>(draws(42, 0, sample++, 1).uniform(0, 1)); });
  double sum = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    sum += (draws(42, 0, i, 1).uniform(0, 1) - 0.5) * (draws(42, 0, i + 1, 1).uniform(0, 1) - 0.5);
  EXPECT_NEAR(12 * sum / count, 0, 5 / std::sqrt(static_cast<double>(count)));
}

}  // namespace
