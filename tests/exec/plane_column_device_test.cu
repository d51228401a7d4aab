// SPDX-License-Identifier: Apache-2.0
// Samples whose planes stay planes, which the CUDA executor walks in a way of its own: the bits of the CPU, whatever
// the step between planes, the border, the interpolation of labels, the channels, where they lie, and the size.
#include <gtest/gtest.h>
#include <suture/ops/label/one_hot.hpp>
#include <suture/sample/majority.hpp>
#include <suture/suture.cuh>

#include <cstring>

#include "support/executors.cuh"

namespace {

using namespace suture;

constexpr std::int64_t channels = 2;

// How the voxels of a source lie in memory: one channel behind the other, side by side, or so with x from high to low.
enum class layout { planar, side_by_side, side_by_side_backwards };
template <class T>
view<const T> source_view(const T* data, const grid& g, layout how) {
  if (how == layout::planar) return contiguous(data, g, channels);
  auto v = channels_last(data, g, channels);
  if (how == layout::side_by_side) return v;
  v.data += (g.extents[2] - 1) * v.stride[2];
  v.stride[2] = -v.stride[2];
  return v;
}

// Two channels of an image and of a label map through a pipeline, as bytes.
template <class Executor, class Out, class Pipeline, class... Conversion>
std::pair<std::vector<std::byte>, std::vector<std::uint8_t>> through(const Pipeline& pipeline, const grid& g,
                                                                     bool keep_planes, layout how) {
  const auto n = static_cast<std::size_t>(channels * g.voxels());
  std::vector<std::int16_t> values(n);
  std::vector<std::uint8_t> classes(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<std::int16_t>(mix64(i) % 500 - 200);
    classes[i] = static_cast<std::uint8_t>(mix64(i / 3) % 4);
  }
  const std::uint64_t id = 5;
  const auto planned = plan(pipeline, std::span(&g, 1), {.seed = 3, .sample_ids = {&id, 1}});
  EXPECT_EQ(planned.sample(0).kind >= map_kind::keeps_planes, keep_planes);
  const grid& to = planned.output_grid(0);
  const auto m = static_cast<std::size_t>(channels * to.voxels());
  typename Executor::template buffer<std::int16_t> in(values);
  typename Executor::template buffer<std::uint8_t> seg(classes);
  typename Executor::template buffer<Out> out(std::vector<Out>(m, Out{}));
  typename Executor::template buffer<std::uint8_t> seg_out(std::vector<std::uint8_t>(m, 0xab));
  const auto source = source_view<std::int16_t>(in.data(), g, how);
  const auto target = contiguous(out.data(), to, channels);
  const auto source_labels = source_view<std::uint8_t>(seg.data(), g, how);
  const auto target_labels = contiguous(seg_out.data(), to, channels);
  Executor::run(planned, image(source, target), labels(source_labels, target_labels));
  const std::vector<Out> made = out.values();
  std::vector<std::byte> bytes(m * sizeof(Out));
  std::memcpy(bytes.data(), made.data(), bytes.size());
  return {bytes, seg_out.values()};
}

template <class Out = suture::half, class Pipeline>
void expect_the_bits_of_the_cpu(const Pipeline& pipeline, const grid& g, bool keep_planes = true,
                                layout how = layout::planar) {
  const auto device = through<support::device_executor, Out>(pipeline, g, keep_planes, how);
  const auto host = through<support::host_executor, Out>(pipeline, g, keep_planes, how);
  EXPECT_TRUE(device.first == host.first) << "image";
  EXPECT_TRUE(device.second == host.second) << "labels";
}

const auto before = window{.center = 40, .width = 400};
const auto after = cast<suture::half>{};

// Every way from plane to plane: the same again, the next, several on, and all of these backwards.
template <class Sampling>
void walk_every_way(const Sampling& rule) {
  const grid g{.extents = {23, 18, 35}, .spacing = {1, 1, 1}};
  const random_flip upside_down{.axis_probability = {1, 0, 1}};
  for (const double step : {.3, .7, 1., 1.6, 3.7}) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    const resample finer_or_coarser{.spacing_mm = {step, .8, 1.3}};
    expect_the_bits_of_the_cpu(before | finer_or_coarser | rule | after, g);
    expect_the_bits_of_the_cpu(before | finer_or_coarser | upside_down | rule | after, g);
  }
  SCOPED_TRACE("turned about z, and shifted beyond both ends");
  expect_the_bits_of_the_cpu(before | random_affine{.rotate_deg = {value_range{30, 40}, 0, 0}} | rule | after, g);
  expect_the_bits_of_the_cpu(
      before | random_affine{.scale = {1.3f, 1.3f}, .translate = {value_range{9.3f, 9.3f}, 4, 4}} | rule | after, g);
  expect_the_bits_of_the_cpu(before | crop_or_pad{.size = {40, 30, 20}} | rule | after, g);
  for (const layout how : {layout::side_by_side, layout::side_by_side_backwards}) {
    SCOPED_TRACE(testing::Message() << "layout " << static_cast<int>(how));
    expect_the_bits_of_the_cpu(before | resample{.spacing_mm = {.7, .8, 1.3}} | rule | after, g, true, how);
    expect_the_bits_of_the_cpu(before | crop_or_pad{.size = {40, 30, 20}} | rule | after, g, true, how);
  }
}

TEST(plane_column, constant_border_nearest_labels) {
  walk_every_way(sampling<linear, constant>{.border = {.value = -.5f}, .label_outside = 9});
}
TEST(plane_column, constant_border_voted_labels) {
  walk_every_way(sampling<linear, constant, vote>{.border = {.value = -.5f}, .label_outside = 9});
}
TEST(plane_column, edge) { walk_every_way(sampling<linear, edge, vote>{}); }
TEST(plane_column, reflect) { walk_every_way(sampling<linear, reflect, nearest_half_even>{}); }
TEST(plane_column, mirror) { walk_every_way(sampling<linear, mirror, vote>{}); }
TEST(plane_column, wrap) { walk_every_way(sampling<linear, wrap>{}); }
TEST(plane_column, labels_by_majority) { walk_every_way(sampling<linear, edge, majority>{}); }

TEST(plane_column, volumes_of_any_size) {
  for (const std::int64_t depth : {1, 2, 17})
    for (const std::int64_t width : {1, 15, 16, 17, 127}) {
      SCOPED_TRACE(testing::Message() << depth << " planes, " << width << " wide");
      const grid g{.extents = {depth, 5, width}, .spacing = {1, 1, 1}};
      expect_the_bits_of_the_cpu(before | resample{.spacing_mm = {.6, .9, .7}} | after, g);
      expect_the_bits_of_the_cpu(before | resample{.spacing_mm = {.6, .9, .7}} | sampling<linear, edge, vote>{} | after,
                                 g);
    }
}

// Tiles that are deeper, as there are many of them.
TEST(plane_column, a_large_volume) {
  const grid g{.extents = {1500, 520, 1}, .spacing = {1, 1, 1}};
  expect_the_bits_of_the_cpu<std::int16_t>(resample{.spacing_mm = {.7, .8, 1}} | cast<std::int16_t>{}, g);
}

TEST(plane_column, noise_made_ahead_for_each_channel) {
  const grid g{.extents = {23, 18, 36}, .spacing = {1, 1, 1}};
  expect_the_bits_of_the_cpu(before | resample{.spacing_mm = {.7, .8, 1.3}} | gaussian_noise{.sigma = .1f} | after, g);
}

TEST(plane_column, planes_that_are_left_go_another_way) {
  const grid g{.extents = {23, 18, 35}, .spacing = {1, 1, 1}};
  expect_the_bits_of_the_cpu(before | random_affine{.rotate_deg = {0, value_range{9, 12}, 0}} | after, g, false);
  expect_the_bits_of_the_cpu(before | rot90{.axes = {0, 2}} | after, g, false);
  expect_the_bits_of_the_cpu(before | random_elastic{.control_spacing_mm = 14, .max_displacement_mm = 4} | after, g,
                             false);
}

// Labels with a conversion and smaller grids.
template <class Executor>
std::vector<std::uint8_t> converted(const grid& g) {
  std::vector<std::uint8_t> classes(static_cast<std::size_t>(g.voxels()));
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::uint8_t>(mix64(i / 3) % 4);
  const auto planned = plan(resample{.spacing_mm = {.7, .8, 1.3}} | sampling<linear, edge, vote>{}, std::span(&g, 1));
  const grid& full = planned.output_grid(0);
  const grid half = level_grid(full, level_extents(full.extents, {.5, .5, .5}));
  const auto n = static_cast<std::size_t>(4 * full.voxels()), m = static_cast<std::size_t>(4 * half.voxels());
  typename Executor::template buffer<std::uint8_t> seg(classes), out(std::vector<std::uint8_t>(n + m, 0xab));
  const auto source = contiguous<const std::uint8_t>(seg.data(), g);
  const auto target = contiguous(out.data(), full, 4), level = contiguous(out.data() + n, half, 4);
  Executor::run(planned, labels(source, target, one_hot{4}, deep_supervision(level)));
  return out.values();
}
TEST(plane_column, labels_with_conversion_and_levels) {
  const grid g{.extents = {23, 18, 35}, .spacing = {1, 1, 1}};
  EXPECT_EQ(converted<support::device_executor>(g), converted<support::host_executor>(g));
}

}  // namespace
