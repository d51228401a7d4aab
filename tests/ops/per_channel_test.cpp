// SPDX-License-Identifier: Apache-2.0
// Random value operations that draw for each channel.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/channel_mix.hpp"
#include "support/expect_says.hpp"
#include "support/library.hpp"
#include "support/lone_voxels.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;
using support::image_result;

const grid small{.extents = {3, 5, 33}};
const auto voxels = static_cast<std::size_t>(small.voxels());

template <class Operations>
std::vector<float> result(const Operations& operations, std::int64_t channels, std::uint64_t id = 3,
                          std::uint32_t epoch = 0) {
  const std::vector<std::uint64_t> ids{id};
  return image_result<float>(operations, std::vector<float>(voxels * static_cast<std::size_t>(channels), .5f), small,
                             {.seed = 6, .epoch = epoch, .sample_ids = ids}, channels);
}

static_assert(random_operation<per_channel_operation<random_gamma>>);
static_assert(role_of<per_channel_operation<gaussian_noise>>() == role::value);
static_assert(per_channel_operation<random_gamma>::kind == random_gamma::kind);

// The published order of slots, written out: the sample's coin, then for each channel its coin and its parameters.
TEST(per_channel, draws_a_coin_and_parameters_for_each_channel) {
  const random_brightness op{.range = {-2, 2}, .probability = .7f};
  for (std::uint64_t id = 0; id < 40; ++id) {
    const auto y = result(per_channel(op, {.probability = .5f}), 8, id);
    draws random(6, 0, id, random_brightness::kind << 4);
    const bool fires = random.bernoulli(.7f);
    for (std::size_t channel = 0; channel < 8; ++channel) {
      const bool on = random.bernoulli(.5f);
      const float offset = random.uniform(-2, 2);
      const float expected = fires && on ? .5f + offset : .5f;
      for (std::size_t v = 0; v < voxels; ++v) ASSERT_EQ(y[channel * voxels + v], expected) << id << ' ' << channel;
    }
  }
}

TEST(per_channel, does_not_depend_on_how_many_channels_there_are) {
  const auto op = per_channel(random_gamma{.range = {.5f, 2}, .law = interval_law::mixture}) |
                  per_channel(random_contrast{}, {.probability = .5f}) | gaussian_noise{};
  const auto eight = result(op, 8);
  for (const std::int64_t channels : {1, 2, 5}) {
    const auto fewer = result(op, channels);
    EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), eight.begin())) << channels;
  }
}

TEST(per_channel, synchronized_takes_the_parameters_of_the_first) {
  const random_brightness_factor op{.range = {2, 3}};
  int some = 0;
  for (std::uint64_t id = 0; id < 40; ++id) {
    const auto apart = result(per_channel(op), 8, id);
    const auto together = result(per_channel(op, {.synchronized = true}), 8, id);
    const auto at_times = result(per_channel(op, {.probability = .5f, .synchronized = true}), 8, id);
    int on = 0;
    for (std::size_t channel = 0; channel < 8; ++channel) {
      const std::size_t v = channel * voxels;
      EXPECT_EQ(together[v], apart[0]);
      EXPECT_EQ(together[v] == apart[v], channel == 0);
      EXPECT_TRUE(at_times[v] == .5f || at_times[v] == apart[0]);
      on += at_times[v] != .5f ? 1 : 0;
    }
    some += on > 0 && on < 8 ? 1 : 0;
  }
  EXPECT_GT(some, 30);
}

TEST(per_channel, probability_is_that_of_a_channel) {
  int on = 0, samples_on = 0;
  constexpr int samples = 1000;
  for (std::uint64_t id = 0; id < samples; ++id) {
    const auto y = result(per_channel(random_brightness{.range = 1, .probability = .5f}, {.probability = .25f}), 4, id);
    int channels = 0;
    for (std::size_t channel = 0; channel < 4; ++channel) channels += y[channel * voxels] == 1.5f ? 1 : 0;
    on += channels;
    samples_on += channels > 0 ? 1 : 0;
  }
  EXPECT_NEAR(on / (4.0 * samples), .125, .03);
  EXPECT_NEAR(samples_on / 1.0 / samples, .5 * (1 - std::pow(.75, 4)), .07);
}

TEST(per_channel, draws_the_sigma_of_noise) {
  const auto y = result(per_channel(gaussian_noise{.sigma = {0, 4}}), 3);
  draws random(6, 0, 3, gaussian_noise::kind << 4);
  const random_field field = random.field(1);
  random.bernoulli(1);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    random.bernoulli(1);
    const float sigma = random.uniform(0, 4);
    for (std::size_t v = 0; v < voxels; ++v) {
      const std::size_t e = channel * voxels + v;
      ASSERT_EQ(y[e], fma(field.normal(e), sigma, .5f));
    }
  }
}

TEST(per_channel, rows_give_the_bits_of_lone_voxels) {
  support::expect_rows_of_lone_voxels(per_channel(random_gamma{}), 3);
  support::expect_rows_of_lone_voxels(per_channel(gaussian_noise{}, {.probability = .5f}), 8);
  support::expect_rows_of_lone_voxels(per_channel(random_bias_field{}), 2);
  support::expect_rows_of_lone_voxels(per_channel(random_coarse_dropout{.holes = 2, .size = {1, 2, 4}}), 2);
  support::expect_rows_of_lone_voxels(per_channel(random_brightness{}), 1);
}

TEST(per_channel, acts_on_taps_and_color) {
  const std::vector<std::uint64_t> ids{3};
  const std::vector<float> x(3 * voxels, 2.0f);
  const settings s{.seed = 6, .sample_ids = ids};
  const auto op = per_channel(random_brightness{.range = {-2, 2}});
  const auto expected = image_result<float>(op, x, small, s, 3);
  EXPECT_EQ(image_result<float>(op | identity{}, x, small, s, 3), expected);
  EXPECT_EQ(image_result<float>(identity{} | op, x, small, s, 3), expected);
  const support::channel_mix mix{.amount = .25f};
  const auto mixed = image_result<float>(mix, expected, small, {}, 3);
  EXPECT_EQ(image_result<float>(op | mix, x, small, s, 3), mixed);
  EXPECT_EQ(image_result<float>(op | mix | identity{}, x, small, s, 3), mixed);
}

// Right of a filter, in a stage of their own, operations draw and compute what they do in a chain without one.
TEST(per_channel, acts_in_a_later_stage) {
  const random_gaussian_blur none{.probability = 0};
  const auto ops = per_channel(random_brightness{.range = {-2, 2}, .probability = .5f}, {.probability = .5f}) |
                   per_channel(gaussian_noise{.sigma = 3}, {.probability = .5f}) |
                   per_channel(random_bias_field{.coefficients = {-.5f, .5f}}) | random_bias_field{.probability = .5f} |
                   random_histogram_shift{.value_range = {-5, 5}} |
                   random_coarse_dropout{.holes = 3, .size = {2, 2, 5}, .fill = {0, 1}, .probability = .5f};
  for (std::uint64_t id = 0; id < 20; ++id) EXPECT_EQ(result(none | ops, 4, id), result(ops, 4, id)) << id;
}

TEST(per_channel, takes_what_the_page_says) {
  // [per_channel]
  const auto gammas = suture::per_channel(suture::random_gamma{.range = {.7f, 1.5f}, .probability = .3f});
  const auto at_times = suture::per_channel(suture::random_contrast{.probability = .15f}, {.probability = .5f});
  const auto alike = suture::per_channel(suture::random_brightness{}, {.probability = .5f, .synchronized = true});
  // [/per_channel]
  EXPECT_EQ(result(gammas | at_times | alike, 4), result(gammas | at_times | alike, 4));
  EXPECT_EQ(gammas.probability, .3f);
}

TEST(per_channel, is_off_in_evaluation) {
  const std::vector<float> x(2 * voxels, 2.0f);
  EXPECT_EQ(image_result<float>(per_channel(random_brightness{}), x, small, {.evaluation = true}, 2), x);
}

TEST(per_channel, errors_name_operation_and_value) {
  EXPECT_SAYS(result(per_channel(random_gamma{}), 9),
              "the image has 9 channels, random_gamma draws for each of at most 8");
  EXPECT_SAYS(result(window{.center = 0, .width = 1} | per_channel(random_contrast{}) | identity{}, 12),
              "sample 0: the image has 12 channels, random_contrast");
  EXPECT_SAYS(result(gaussian_blur{} | per_channel(random_contrast{}), 12), "random_contrast draws for each");
  EXPECT_SAYS(result(per_channel(random_gamma{}, {.probability = 1.5f}), 2),
              "random_gamma: sample 0 (id 3): probability of a channel 1.5");
  EXPECT_SAYS(result(per_channel(random_gamma{.range = {-1, 2}}), 2), "random_gamma: sample 0 (id 3): range [-1, 2]");
  EXPECT_SAYS(result(per_channel(random_gamma{.probability = 2}), 2), "random_gamma: sample 0 (id 3): probability 2");
}

}  // namespace
