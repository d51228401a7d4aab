// SPDX-License-Identifier: Apache-2.0
// Channels that lie side by side, which the CUDA executor reads four at a time where they are four: the bits of the
// CPU, whatever their number, type and place.
#include <gtest/gtest.h>
#include <suture/suture.cuh>

#include <cstring>

#include "support/executors.cuh"

namespace {

using namespace suture;

const extent3 volume{17, 22, 35};

struct layout {
  std::int64_t channels = 4, first = 0, pitch = 35 * 4;  // elements before the first one, and of a row
};

template <class Executor, class Out, class T, class Pipeline>
std::vector<Out> through(const Pipeline& pipeline, const layout& l, bool& side_by_side) {
  const grid g{.extents = volume};
  std::vector<T> values(static_cast<std::size_t>(l.first + volume[0] * volume[1] * l.pitch));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = storage<T>::store(static_cast<float>(mix64(i) % 200));
  const std::uint64_t id = 5;
  const auto p = plan(pipeline, std::span(&g, 1), {.seed = 3, .sample_ids = {&id, 1}});
  const grid& to = p.output_grid(0);
  typename Executor::template buffer<T> in(values);
  typename Executor::template buffer<Out> out(
      std::vector<Out>(static_cast<std::size_t>(l.channels * to.voxels()), Out{}));
  const view<const T> source{.data = in.data() + l.first,
                             .grid = g,
                             .stride = {volume[1] * l.pitch, l.pitch, l.channels},
                             .channels = l.channels,
                             .channel_stride = 1};
  const auto target = channels_last(out.data(), to, l.channels);
  const auto pair = image(source, target);
  side_by_side = detail::raw_source(pair, 0).side_by_side != 0;
  Executor::run(p, pair);
  return out.values();
}

template <class Out, class T, class Pipeline>
void expect_the_bits_of_the_cpu(const Pipeline& pipeline, const layout& l, bool by_fours) {
  bool on_device = false, on_host = false;
  const auto device = through<support::device_executor, Out, T>(pipeline, l, on_device);
  const auto host = through<support::host_executor, Out, T>(pipeline, l, on_host);
  EXPECT_EQ(std::memcmp(device.data(), host.data(), host.size() * sizeof(Out)), 0);
  EXPECT_EQ(on_device, by_fours);
}

const auto turned = random_affine{.rotate_deg = {value_range{15, 20}, 10, value_range{-9, -5}}};

template <class T>
class side_by_side : public testing::Test {};
using types = testing::Types<std::int16_t, suture::half, std::uint8_t, float>;
TYPED_TEST_SUITE(side_by_side, types);

TYPED_TEST(side_by_side, at_every_border) {
  const auto at = [](const auto& rule) {
    expect_the_bits_of_the_cpu<suture::half, TypeParam>(turned | rule | cast<suture::half>{}, {}, true);
  };
  at(sampling<linear, constant>{.border = {.value = -7}});
  at(sampling<linear, edge>{});
  at(sampling<linear, mirror>{});
  at(sampling<linear, wrap>{});
}

TYPED_TEST(side_by_side, wherever_they_lie) {
  const auto pipeline = window{.center = 90, .width = 150} | turned | random_flip{} | gaussian_noise{.sigma = .1f} |
                        random_gamma{} | cast<suture::half>{};
  // Rows with more behind them, one element too far on, rows of no whole number of fours, other numbers of channels.
  expect_the_bits_of_the_cpu<suture::half, TypeParam>(pipeline, {.pitch = 35 * 4 + 12}, true);
  expect_the_bits_of_the_cpu<suture::half, TypeParam>(pipeline, {.first = 4}, true);
  expect_the_bits_of_the_cpu<suture::half, TypeParam>(pipeline, {.first = 1}, false);
  expect_the_bits_of_the_cpu<suture::half, TypeParam>(pipeline, {.pitch = 35 * 4 + 2}, false);
  expect_the_bits_of_the_cpu<suture::half, TypeParam>(pipeline, {.channels = 3, .pitch = 35 * 3}, false);
  expect_the_bits_of_the_cpu<suture::half, TypeParam>(pipeline, {.channels = 5, .pitch = 35 * 5}, false);
}

TYPED_TEST(side_by_side, before_stages_and_with_a_deformation) {
  expect_the_bits_of_the_cpu<suture::half, TypeParam>(
      turned | random_gaussian_blur{.channel_probability = .5f} | random_patch_contrast{} | cast<suture::half>{}, {},
      true);
  expect_the_bits_of_the_cpu<float, TypeParam>(
      random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4} | turned, {}, true);
}

}  // namespace
