// SPDX-License-Identifier: Apache-2.0
// Tiles that stand on voxels are copied by the CUDA executor: the bits of the CPU, whatever a voxel or its neighbor is.
// The same of other paths, where a tap of weight 0 must not be read.
#include <gtest/gtest.h>
#include <suture/suture.cuh>

#include <cstring>
#include <limits>

#include "support/executors.cuh"

namespace {

using namespace suture;

const extent3 volume{21, 22, 71};
const std::size_t voxels = 21 * 22 * 71;

template <class Executor, class Out, class Pipeline, class T>
std::pair<std::vector<Out>, std::vector<std::uint8_t>> through(const Pipeline& pipeline, const std::vector<T>& values,
                                                               const std::vector<std::uint8_t>& classes,
                                                               std::uint64_t id) {
  const grid g{.extents = volume};
  const auto p = plan(pipeline, std::span(&g, 1), {.seed = 3, .sample_ids = {&id, 1}});
  const grid& to = p.output_grid(0);
  const std::int64_t channels = static_cast<std::int64_t>(values.size() / voxels);
  const auto n = static_cast<std::size_t>(to.voxels());
  typename Executor::template buffer<T> in(values);
  typename Executor::template buffer<std::uint8_t> seg(classes);
  typename Executor::template buffer<Out> out(std::vector<Out>(n * static_cast<std::size_t>(channels), Out{}));
  typename Executor::template buffer<std::uint8_t> seg_out(std::vector<std::uint8_t>(n, 0xab));
  const auto source = contiguous<const T>(in.data(), g, channels);
  const auto target = contiguous(out.data(), to, channels);
  const auto source_labels = contiguous<const std::uint8_t>(seg.data(), g);
  const auto target_labels = contiguous(seg_out.data(), to);
  Executor::run(p, image(source, target), labels(source_labels, target_labels));
  return {out.values(), seg_out.values()};
}

template <class Out, class Pipeline, class T>
void expect_the_bits_of_the_cpu(const Pipeline& pipeline, const std::vector<T>& values, std::uint64_t id = 5) {
  std::vector<std::uint8_t> classes(voxels);
  for (std::size_t i = 0; i < voxels; ++i) classes[i] = static_cast<std::uint8_t>(mix64(i / 3) % 4);
  const auto device = through<support::device_executor, Out>(pipeline, values, classes, id);
  const auto host = through<support::host_executor, Out>(pipeline, values, classes, id);
  EXPECT_EQ(std::memcmp(device.first.data(), host.first.data(), host.first.size() * sizeof(Out)), 0) << "image";
  EXPECT_TRUE(device.second == host.second) << "labels";
}

template <class T>
std::vector<T> ordinary(std::size_t channels = 1) {
  std::vector<T> values(channels * voxels);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = storage<T>::store(static_cast<float>(mix64(i) % 1000) - 500);
  return values;
}

// Voxels about the corners of tiles of 32 x 8 x 16 are as likely as all others together.
std::size_t somewhere(std::uint64_t seed) {
  const auto along = [&](std::uint64_t salt, std::int64_t n, std::int64_t tile) {
    const std::uint64_t r = mix64(seed * 8 + salt);
    const auto any = static_cast<std::int64_t>(r % static_cast<std::uint64_t>(n));
    return (r >> 40) % 2 == 0 ? any : std::clamp<std::int64_t>((any + tile / 2) / tile * tile + any % 3, 0, n - 1);
  };
  return static_cast<std::size_t>((along(0, volume[0], 16) * volume[1] + along(1, volume[1], 8)) * volume[2] +
                                  along(2, volume[2], 32));
}

const float special[] = {-0.0f,
                         std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::max(),
                         -0x1p126f};

TEST(integer_shift_tile, one_special_voxel) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::vector<float> values = ordinary<float>();
    values[somewhere(seed)] = special[seed % 6];
    const extent3 start{static_cast<std::int64_t>(seed % 3), static_cast<std::int64_t>(seed % 5), 1};
    const flip mirrored{{seed % 2 == 1, seed / 2 % 2 == 1, seed / 4 % 2 == 1}};
    expect_the_bits_of_the_cpu<float>(
        crop_at{.starts = std::span(&start, 1), .size = {18, 17, 69}} | mirrored | sampling<linear, constant, vote>{},
        values);
  }
}

// At the border of the source, beyond it, and with others mixed in from elsewhere.
template <class Border>
void at_every_border(const Border& border) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::vector<float> values = ordinary<float>();
    if (seed % 3 != 0) values[somewhere(seed)] = seed % 3 == 1 ? -0.0f : std::numeric_limits<float>::max();
    const extent3 starts[] = {{0, 0, 0}, {3, 5, 2}, {-4, 3, -7}, {9, -3, 30}};
    const flip mirrored{{seed % 2 == 1, seed / 2 % 2 == 1, seed / 4 % 2 == 1}};
    expect_the_bits_of_the_cpu<float>(
        crop_at{.starts = std::span(&starts[seed / 2 % 4], 1), .size = {18, 17, 69}, .may_leave = true} | mirrored |
            border,
        values);
  }
}
TEST(integer_shift_tile, constant_border) { at_every_border(sampling<linear, constant, vote>{.border = {.value = 7}}); }
TEST(integer_shift_tile, constant_border_of_negative_zero) {
  at_every_border(sampling<linear, constant>{.border = {.value = -0.0f}});
}
TEST(integer_shift_tile, edge) { at_every_border(sampling<linear, edge, vote>{}); }
TEST(integer_shift_tile, mirror) { at_every_border(sampling<linear, mirror>{}); }
TEST(integer_shift_tile, wrap) { at_every_border(sampling<linear, wrap, vote>{}); }

// What lies beyond the border is mixed in too: a value so large that differences overflow, or the first column.
TEST(integer_shift_tile, what_the_border_mixes_in) {
  const extent3 start{0, 0, 2};
  const crop_at last_columns{.starts = std::span(&start, 1), .size = {21, 22, 69}};
  expect_the_bits_of_the_cpu<float>(
      last_columns | sampling<linear, constant>{.border = {.value = std::numeric_limits<float>::max()}},
      std::vector<float>(voxels, -0x1.fffffep125f));
  std::vector<float> values = ordinary<float>();
  for (std::size_t row = 0; row < 21 * 22; ++row) values[row * 71] = std::numeric_limits<float>::infinity();
  expect_the_bits_of_the_cpu<float>(last_columns | sampling<linear, wrap, vote>{}, values);
}

// Value operations on either side, noise made ahead, channels, stages; half and int16.
TEST(integer_shift_tile, what_else_is_done_to_a_voxel) {
  const extent3 start{1, 2, 1};
  for (std::uint64_t id = 0; id < 12; ++id) {
    SCOPED_TRACE(testing::Message() << "id " << id);
    std::vector<suture::half> values = ordinary<suture::half>(2);
    if (id % 2 == 1) values[voxels + somewhere(id)] = storage<suture::half>::store(-0.0f);
    expect_the_bits_of_the_cpu<suture::half>(crop_at{.starts = std::span(&start, 1), .size = {18, 17, 69}} |
                                                 random_flip{} | sampling<linear, constant, vote>{} |
                                                 gaussian_noise{.probability = .5f} |
                                                 random_patch_contrast{.probability = .5f} | cast<suture::half>{},
                                             values, id);
    // The end of the window is 0, of a side that may be -0 once it is negated.
    expect_the_bits_of_the_cpu<bfloat16>(window{.center = 40, .width = 400} | brightness_factor{.factor = -1} |
                                             random_crop{.size = {18, 17, 69}} | random_flip{} | cast<bfloat16>{},
                                         ordinary<std::int16_t>(2), id);
  }
}

// A third of all voxels, so that they are copied, mixed and beside both.
std::vector<float> full_of_special() {
  std::vector<float> values = ordinary<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const std::uint64_t r = mix64(i + 77); r % 3 == 0) values[i] = special[r / 3 % std::size(special)];
  return values;
}

// Voxels that stand still, that turn onto others, half of them, and some along a row, by every interpolation.
template <class Sampling>
void expect_special_values(const Sampling& by) {
  const std::vector<float> values = full_of_special();
  const auto moved = [](const matrix3& linear) {
    return affine_matrix{.linear = linear, .translation = {3, 5, 2}, .about_center = false};
  };
  expect_the_bits_of_the_cpu<float>(identity{} | by, values);
  expect_the_bits_of_the_cpu<float>(identity{} | by | gaussian_noise{.sigma = 0}, values);
  expect_the_bits_of_the_cpu<float>(moved({{{1, 0, 0}, {0, 1, 0}, {0, 0, .5}}}) | by, values);
  expect_the_bits_of_the_cpu<float>(moved({{{.5, 0, 0}, {0, .5, 0}, {0, 0, -1}}}) | by, values);
  expect_the_bits_of_the_cpu<float>(moved({{{0, .5, 0}, {0, 0, .5}, {.5, 0, 1}}}) | by, values);
  expect_the_bits_of_the_cpu<float>(random_elastic{.max_displacement_mm = .1, .probability = .5f} | by, values);
}
TEST(special_values, by_linear) {
  expect_special_values(sampling<linear, constant>{});
  expect_special_values(sampling<linear, edge, vote>{});
}
TEST(special_values, by_catmull_rom) { expect_special_values(sampling<catmull_rom, mirror>{}); }
TEST(special_values, in_a_low_resolution) {
  for (std::uint64_t id = 0; id < 4; ++id)
    expect_the_bits_of_the_cpu<float>(flip{} | random_low_resolution{}, full_of_special(), id);
}

}  // namespace
