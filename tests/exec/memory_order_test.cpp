// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs in every order of axes, with channels first and last: a run leaves the bits that the evaluator
// gives voxel by voxel, and touches no other memory. The evaluator is asked for each voxel in the first order. The runs
// of other orders are held against that one, and against the evaluator at every seventh voxel.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "support/aligned_memory.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

// A view whose axes lie in memory in this order, the last one densest, with channels before or behind all of them.
template <class T>
view<T> in_order(T* data, const grid& g, const int (&order)[3], std::int64_t channels, bool channels_last) {
  view<T> v{data, g, {}, channels, 1};
  std::int64_t step = channels_last ? channels : 1;
  for (int j = 2; j >= 0; --j) {
    v.stride[order[j]] = step;
    step *= g.extents[order[j]];
  }
  if (!channels_last) v.channel_stride = step;
  return v;
}

template <class T>
struct filled {
  std::vector<T> memory;
  view<const T> of;

  filled(const grid& g, const int (&order)[3], std::int64_t channels, bool channels_last, int levels)
      : memory(static_cast<std::size_t>(g.voxels() * channels)) {
    const view<T> v = in_order(memory.data(), g, order, channels, channels_last);
    std::uint64_t state = 5;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t z = 0; z < g.extents[0]; ++z)
        for (std::int64_t y = 0; y < g.extents[1]; ++y)
          for (std::int64_t x = 0; x < g.extents[2]; ++x) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            v.data[c * v.channel_stride + z * v.stride[0] + y * v.stride[1] + x * v.stride[2]] =
                storage<T>::store(static_cast<float>((state >> 40) % static_cast<std::uint64_t>(levels)));
          }
    of = v;
  }
};

struct orders_of {
  const int (&in)[3];
  const int (&out)[3];
  const int (&seg_out)[3];
  bool in_last, out_last;
};

// The result of the first order: the image by place and channel, and the labels by place.
template <class Label>
struct made_in_first_order {
  std::vector<float> image;
  std::vector<Label> labels;
};

template <class Image, class Label, class Pipeline>
void expect_lone_voxels(const Pipeline& pipeline, const extent3& extents, std::int64_t channels, const orders_of& o,
                        made_in_first_order<Label>& first) {
  SCOPED_TRACE(testing::Message() << "in " << o.in[0] << o.in[1] << o.in[2] << (o.in_last ? "c" : "") << " out "
                                  << o.out[0] << o.out[1] << o.out[2] << (o.out_last ? "c" : "") << " labels "
                                  << o.seg_out[0] << o.seg_out[1] << o.seg_out[2]);
  grid g;
  g.extents = extents;
  const filled<Image> images(g, o.in, channels, o.in_last, 4000);
  const filled<Label> maps(g, o.in, 1, false, 3);
  const std::vector in{images.of};
  const std::vector seg{maps.of};
  const std::uint64_t ids[] = {3};
  const auto p = plan(pipeline, in, {.seed = 2, .sample_ids = ids});
  const grid& to = p.output_grid(0);
  const auto voxels = static_cast<std::size_t>(to.voxels());
  std::vector<float> out(voxels * static_cast<std::size_t>(channels));
  std::vector<Label> seg_out(voxels);
  const std::vector out_views{in_order(out.data(), to, o.out, channels, o.out_last)};
  const std::vector seg_views{in_order(seg_out.data(), to, o.seg_out, 1, false)};
  const auto image_pair = image(in, out_views);
  const auto label_pair = labels(seg, seg_views);
  run(cpu{}, p, image_pair, label_pair);
  const support::aligned_memory workspace(workspace_bytes(p, image_pair, label_pair));
  const auto evaluate = prepare(cpu{.workspace = workspace.span()}, p, image_pair, label_pair);
  const auto at = [](const auto& v, std::int64_t c, std::int32_t z, std::int32_t y, std::int32_t x) {
    return v.data[c * v.channel_stride + z * v.stride[0] + y * v.stride[1] + x * v.stride[2]];
  };
  made_in_first_order<Label> made;
  for (std::int32_t z = 0; z < to.extents[0]; ++z)
    for (std::int32_t y = 0; y < to.extents[1]; ++y)
      for (std::int32_t x = 0; x < to.extents[2]; ++x) {
        for (std::int32_t c = 0; c < channels; ++c) made.image.push_back(at(out_views[0], c, z, y, x));
        made.labels.push_back(at(seg_views[0], 0, z, y, x));
        if (!first.labels.empty() && made.labels.size() % 7 != 0) continue;
        for (std::int32_t c = 0; c < channels; ++c) {
          const float expected = [&] {
            const auto v = evaluate(0, z, y, x, c);
            if constexpr (requires { v.c[0]; })
              return v.c[c];
            else
              return v;
          }();
          const float got = at(out_views[0], c, z, y, x);
          ASSERT_EQ(std::memcmp(&expected, &got, sizeof got), 0)
              << c << " " << z << " " << y << " " << x << ": " << got << " instead of " << expected;
        }
        ASSERT_EQ(made.labels.back(), evaluate.template get<1>(0, z, y, x)) << z << " " << y << " " << x;
      }
  if (first.labels.empty()) {
    first = std::move(made);
    return;
  }
  ASSERT_EQ(made.image.size(), first.image.size());
  EXPECT_EQ(std::memcmp(made.image.data(), first.image.data(), first.image.size() * sizeof(float)), 0);
  EXPECT_TRUE(made.labels == first.labels);
}

// All orders of the output with the input in the same and in another one, and label maps in their own.
template <class Image, class Label, class Pipeline>
void expect_all_orders(const Pipeline& pipeline, const extent3& extents, std::int64_t channels = 1) {
  made_in_first_order<Label> first;
  for (int i = 0; i < 6; ++i)
    for (const bool last : {false, true}) {
      if (last && channels == 1) continue;
      expect_lone_voxels<Image, Label>(pipeline, extents, channels, {orders[i], orders[i], orders[i], last, last},
                                       first);
      expect_lone_voxels<Image, Label>(pipeline, extents, channels,
                                       {orders[(i + 1) % 6], orders[i], orders[(i + 5) % 6], last, !last}, first);
      if (channels == 1)
        expect_lone_voxels<Image, Label>(pipeline, extents, channels, {orders[0], orders[i], orders[i], false, false},
                                         first);
    }
}

const extent3 odd = {41, 37, 70};

// Adds a number that every voxel of every channel has for itself.
struct by_place {
  static constexpr std::string_view name = "by_place";
  float operator()(float value, const voxel& at) const {
    return value + static_cast<float>(at.z * 10007 + at.y * 101 + at.x + static_cast<std::int32_t>(at.element % 13));
  }
};

TEST(MemoryOrder, PointwiseOperations) {
  expect_all_orders<std::int16_t, std::uint8_t>(brightness{1.5f} | contrast{1.2f}, odd, 2);
  expect_all_orders<float, std::uint16_t>(brightness{1.5f} | gaussian_noise{.sigma = 3}, odd, 2);
  expect_all_orders<float, std::uint16_t>(brightness{1.5f} | by_place{}, odd, 2);
}

TEST(MemoryOrder, CropsAndFlips) {
  const auto moves = random_crop{.size = {33, 34, 35}} | random_flip{.axis_probability = {1, 0, 1}};
  expect_all_orders<std::int16_t, std::uint8_t>(
      window{.center = 2000, .width = 400} | moves | permute{.order = {2, 0, 1}}, odd);
  expect_all_orders<float, std::int32_t>(gaussian_noise{.sigma = 2} | by_place{} | pad_to{.size = {45, 44, 76}} |
                                             moves | gaussian_noise{.sigma = 3} | random_gamma{},
                                         odd, 2);
  expect_all_orders<float, std::int32_t>(moves | by_place{} | gaussian_blur{.sigma = {.3, .5, .4}} |
                                             random_low_resolution{.zoom = {.3f, .9f}} | by_place{},
                                         odd, 2);
  expect_all_orders<half, std::uint8_t>(pad_to{.size = {50, 50, 80}} | random_crop{.size = {45, 44, 70}} |
                                            sampling<linear, constant, nearest>{.border = {.value = -5}} |
                                            random_coarse_dropout{.holes = 9, .size = {12, 9, 15}, .fill = {3, 9}},
                                        odd);
}

// Row functors ahead of a geometry get rows of taps, which have no positions.
TEST(MemoryOrder, RowsOfTaps) {
  const extent3 small = {11, 9, 37};
  const auto gamma = random_gamma{.range = {.7f, 1.5f}, .value_range = {0, 4000}};
  const auto turned = random_affine{.rotate_deg = 25} | random_crop{.size = {10, 9, 35}};
  expect_all_orders<std::uint8_t, std::uint8_t>(gamma | random_crop{.size = {9, 8, 33}}, small);
  expect_all_orders<std::uint8_t, std::uint8_t>(
      gamma | resample{.spacing_mm = {1.3, .8, 1.1}} | sampling<catmull_rom, mirror, nearest>{}, small);
  expect_all_orders<std::uint8_t, std::uint8_t>(
      gamma | turned | sampling<catmull_rom, constant, nearest>{.border = {.value = 7}}, small);
  // Three bytes may be pixels, which are copied together.
  expect_all_orders<std::uint8_t, std::uint8_t>(
      random_bias_field{} | random_coarse_dropout{.holes = 2, .size = 4} | random_flip{}, small, 3);
}

TEST(MemoryOrder, KeptAxes) {
  const auto resampled = resample{.spacing_mm = {1.3, .8, 1.1}};
  expect_all_orders<std::int16_t, std::uint8_t>(window{.center = 2000, .width = 400} | resampled, odd);
  for (const float probability : {1.0f, 0.0f})  // lanes need not lie along x for noise that is not drawn
    expect_all_orders<float, std::uint16_t>(
        resampled | sampling<linear, edge, vote>{} | gaussian_noise{.sigma = 3, .probability = probability}, odd, 2);
  expect_all_orders<std::uint8_t, std::uint8_t>(resampled | sampling<catmull_rom, mirror, nearest>{}, odd);
  expect_all_orders<half, std::int32_t>(resampled | sampling<cubic_bspline, mirror, nearest>{}, odd);
}

// Flips, paddings on every side, and lanes that read more of the source than a run of it holds.
TEST(MemoryOrder, KeptAxesPastTheRim) {
  const extent3 small = {19, 17, 43};
  const auto padded = resample{.spacing_mm = {1.3, .8, 1.1}} | pad_to{.size = {35, 40, 60}};
  expect_all_orders<std::int16_t, std::uint8_t>(
      padded | random_flip{} | sampling<linear, constant, vote>{.border = {.value = -7}}, small);
  expect_all_orders<float, std::int32_t>(
      padded | random_flip{} | sampling<catmull_rom, constant, vote>{.border = {.value = 9}}, small, 2);
  expect_all_orders<std::uint8_t, std::uint16_t>(resample{.spacing_mm = {4.5, 4.2, 6}} | sampling<linear, edge, vote>{},
                                                 {150, 140, 200});
}

TEST(MemoryOrder, Turns) {
  const auto turned = random_affine{.rotate_deg = 25, .scale = {.8f, 1.3f}} | random_crop{.size = {33, 30, 40}};
  expect_all_orders<std::int16_t, std::uint8_t>(window{.center = 2000, .width = 400} | turned, odd);
  for (const float probability : {1.0f, 0.0f})
    expect_all_orders<float, std::uint16_t>(random_bias_field{.probability = probability} | brightness{.5f} | turned |
                                                sampling<linear, constant, vote>{.border = {.value = 7}} |
                                                gaussian_noise{.sigma = 3, .probability = probability} |
                                                random_bias_field{.probability = probability},
                                            odd, 2);
  expect_all_orders<float, std::uint16_t>(by_place{} | turned | gaussian_blur{.sigma = {.3, .5, .4}}, odd);
  expect_all_orders<std::uint8_t, std::uint8_t>(turned | sampling<catmull_rom, mirror, nearest>{}, odd);
}

TEST(MemoryOrder, Displacements) {
  const auto elastic = random_elastic{.control_spacing_mm = 16, .max_displacement_mm = 5};
  expect_all_orders<std::int16_t, std::uint8_t>(elastic | random_crop{.size = {33, 30, 40}}, odd);
  expect_all_orders<float, std::uint16_t>(random_affine{.rotate_deg = 25} | elastic, odd, 2);
  expect_all_orders<float, std::uint16_t>(elastic | random_affine{.rotate_deg = 25}, odd);
}

TEST(MemoryOrder, Colors) {
  const extent3 tile = {1, 18, 35};
  const auto jitter = random_color_jitter{.brightness = {.8f, 1.2f}, .hue = {-.05f, .05f}};
  expect_all_orders<std::uint8_t, std::uint8_t>(jitter | brightness{1.5f}, tile, 3);
  expect_all_orders<std::uint8_t, std::uint8_t>(random_flip{} | jitter, tile, 3);
  expect_all_orders<std::uint8_t, std::uint8_t>(jitter | random_affine{.rotate_deg = {25, 0, 0}}, tile, 3);
}

TEST(MemoryOrder, Levels) {
  grid g;
  g.extents = odd;
  const filled<std::uint8_t> map(g, orders[0], 1, false, 5);
  const std::vector seg{map.of};
  const std::uint64_t ids[] = {3};
  const auto p = plan(random_affine{.rotate_deg = 25}, seg, {.seed = 2, .sample_ids = ids});
  const grid half = level_grid(g, level_extents(g.extents, {.5, .5, .5}));
  std::vector<std::uint8_t> expected;
  for (const auto& order : orders) {
    std::vector<std::uint8_t> full(static_cast<std::size_t>(g.voxels())),
        level(static_cast<std::size_t>(half.voxels()));
    const std::vector to{in_order(full.data(), g, order, 1, false)};
    const std::vector level_to{in_order(level.data(), half, order, 1, false)};
    run(cpu{}, p, labels(seg, to, deep_supervision(level_to)));
    std::vector<std::uint8_t> got;
    const auto& v = level_to[0];
    for (std::int64_t z = 0; z < half.extents[0]; ++z)
      for (std::int64_t y = 0; y < half.extents[1]; ++y)
        for (std::int64_t x = 0; x < half.extents[2]; ++x)
          got.push_back(v.data[z * v.stride[0] + y * v.stride[1] + x * v.stride[2]]);
    if (expected.empty()) expected = got;  // label_test.cpp holds (z, y, x)
    EXPECT_TRUE(got == expected) << order[0] << order[1] << order[2];
  }
}

}  // namespace
