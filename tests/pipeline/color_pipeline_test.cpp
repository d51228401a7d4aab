// SPDX-License-Identifier: Apache-2.0
// Operations on color in a chain: what they are given, where they act, and what they refuse.
#include <gtest/gtest.h>

#include "digest/samples.hpp"
#include "support/channel_mix.hpp"
#include "support/expect_says.hpp"

namespace {

using namespace suture;
using support::channel_mix;

// Takes the channels together and leaves them as they are.
struct same_color {
  SUTURE_FN rgb operator()(rgb v) const { return v; }
};

template <class Pipeline>
std::vector<float> result(const Pipeline& pipeline, const view<const std::uint8_t>& in,
                          std::vector<grid>* out = nullptr) {
  const std::uint64_t ids[] = {17};
  const std::vector<view<const std::uint8_t>> views{in};
  const auto p = plan(pipeline, views, {.seed = 4, .sample_ids = ids});
  std::vector<float> values(static_cast<std::size_t>(in.channels * p.output_grid(0).voxels()));
  const std::vector<view<float>> outs{contiguous(values.data(), p.output_grid(0), in.channels)};
  run(cpu{}, p, image(views, outs));
  if (out != nullptr) *out = p.output_grids();
  return values;
}

// The same chain, channel by channel and with a color operation that does nothing at either end.
template <class Left, class Middle, class Right>
void expect_same_values(const Left& left, const Middle& middle, const Right& right) {
  const digest_test::color_cases data;
  for (std::size_t i = 0; i < data.grids.size(); ++i) {
    const auto in = channels_last(data.images[i].data(), data.grids[i], 3);
    const auto alone = result(left | middle | right, in);
    EXPECT_EQ(result(same_color{} | left | middle | right, in), alone) << "left, tile " << i;
    EXPECT_EQ(result(left | middle | right | same_color{}, in), alone) << "right, tile " << i;
  }
}

TEST(color_pipeline, channels_taken_together_move_as_channels_alone) {
  const rescale unit{.slope = 1 / 255.0f};
  const gaussian_noise noise{.sigma = .1f};
  expect_same_values(unit, random_affine{.rotate_deg = {0, 0, 30}}, noise);
  expect_same_values(
      noise, affine_matrix{.linear = {{{1, 0, 0}, {0, .9, .2}, {0, -.2, .9}}}} | sampling<linear, reflect>{}, unit);
  expect_same_values(unit,
                     random_elastic{.control_spacing_mm = 12, .max_displacement_mm = {0, 3, 3}} |
                         sampling<linear, constant>{.border = {.value = .5f}},
                     noise);
  expect_same_values(unit, flip{{false, true, true}} | crop_or_pad{{2, 44, 40}}, noise);
  expect_same_values(unit, resample{.spacing_mm = {20, .8, 1.7}} | sampling<cubic_bspline, mirror>{}, noise);
  expect_same_values(unit, resample{.spacing_mm = {13, .8, 1.7}} | sampling<catmull_rom, edge>{}, noise);
}

// Half a pixel between two, each of whose channels is mixed from its own color and place.
TEST(color_pipeline, operations_left_of_the_geometry_act_on_taps) {
  const std::uint8_t tile[2][3] = {{10, 20, 30}, {110, 140, 50}};
  const grid g{.extents = {1, 1, 2}};
  const auto half_a_pixel =
      affine_matrix{.linear = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, .translation = {0, 0, .5}, .about_center = false};
  const auto v =
      result(channel_mix{.amount = .5f} | half_a_pixel | crop{{0, 0, 0}, {1, 1, 1}}, channels_last(&tile[0][0], g, 3));
  // Taps (20, 35, 30 + 0.5 * 0) and (180, 165, 50 + 0.5 * 1).
  ASSERT_EQ(v.size(), 3u);
  EXPECT_FLOAT_EQ(v[0], 100);
  EXPECT_FLOAT_EQ(v[1], 100);
  EXPECT_FLOAT_EQ(v[2], 40.25f);
}

TEST(color_pipeline, a_border_value_stands_for_every_channel_after_the_operations_on_taps) {
  const std::uint8_t pixel[3] = {10, 20, 30};
  const grid g{.extents = {1, 1, 1}};
  const auto v =
      result(channel_mix{.amount = 1} | pad{{0, 0, 1}, {0, 0, 0}} | sampling<nearest, constant>{.border = {.value = 7}},
             channels_last(pixel, g, 3));
  EXPECT_EQ(v, (std::vector<float>{7, 30, 7, 50, 7, 30}));
}

TEST(color_pipeline, interleaved_planar_and_rgba_tiles_give_the_same_values) {
  const digest_test::color_cases data;
  const grid g = data.grids[1];
  const auto n = static_cast<std::size_t>(g.voxels());
  std::vector<std::uint8_t> planar(3 * n), rgba(4 * n);
  for (std::size_t v = 0; v < n; ++v)
    for (std::size_t c = 0; c < 3; ++c) planar[c * n + v] = rgba[4 * v + c] = data.images[1][3 * v + c];
  view<const std::uint8_t> four = channels_last<const std::uint8_t>(rgba.data(), g, 4);
  four.channels = 3;
  const auto chain = channel_mix{.amount = .3f} | random_affine{.rotate_deg = {0, 0, 20}};
  const auto expected = result(chain, channels_last(data.images[1].data(), g, 3));
  EXPECT_EQ(result(chain, contiguous<const std::uint8_t>(planar.data(), g, 3)), expected);
  EXPECT_EQ(result(chain, four), expected);
}

TEST(color_pipeline, labels_follow_and_keep_their_channels) {
  const digest_test::color_cases data;
  const std::vector<view<const std::uint8_t>> tiles{channels_last(data.images[0].data(), data.grids[0], 3)};
  const std::vector<view<const std::uint8_t>> masks{contiguous(data.labels[0].data(), data.grids[0])};
  const auto p = plan(channel_mix{.amount = .3f} | flip{{false, false, true}}, tiles);
  std::vector<float> out(static_cast<std::size_t>(3 * data.grids[0].voxels()));
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(data.grids[0].voxels()));
  const std::vector<view<float>> outs{contiguous(out.data(), p.output_grid(0), 3)};
  const std::vector<view<std::uint8_t>> mask_outs{contiguous(mask.data(), p.output_grid(0))};
  run(cpu{}, p, image(tiles, outs), labels(masks, mask_outs));
  const extent3 n = data.grids[0].extents;
  for (std::int64_t y = 0; y < n[1]; ++y)
    for (std::int64_t x = 0; x < n[2]; ++x)
      ASSERT_EQ(mask[static_cast<std::size_t>(y * n[2] + x)],
                data.labels[0][static_cast<std::size_t>(y * n[2] + n[2] - 1 - x)]);
}

// Filters and patch statistics read what the color operations before them leave: as in two plans, one after the other.
TEST(color_pipeline, filters_follow_colors) {
  const digest_test::color_cases data;
  const std::vector<view<const std::uint8_t>> tiles{channels_last(data.images[0].data(), data.grids[0], 3)};
  const std::vector<std::uint64_t> ids{5};
  const settings how{.seed = 3, .sample_ids = ids};
  const std::vector<float> colors = result(hsv_jitter{.hue = .1f} | cast<float>{}, tiles[0]);
  const auto expect_filtered = [&](const auto& filter) {
    const auto count = static_cast<std::size_t>(3 * data.grids[0].voxels());
    std::vector<float> together(count), apart(count);
    const std::vector<view<float>> out{contiguous(together.data(), data.grids[0], 3)};
    const auto p = plan(hsv_jitter{.hue = .1f} | filter, tiles, how);
    run(cpu{}, p, image(tiles, out));
    const std::vector<view<const float>> between{contiguous(colors.data(), data.grids[0], 3)};
    const std::vector<view<float>> behind{contiguous(apart.data(), data.grids[0], 3)};
    const auto second = plan(filter | brightness{.offset = 0}, between, how);
    run(cpu{}, second, image(between, behind));
    EXPECT_EQ(together, apart);
    EXPECT_NE(together, colors);
  };
  expect_filtered(gaussian_blur{});
  expect_filtered(random_patch_contrast{.range = 1.5f, .preserve_range = false});
}

TEST(color_pipeline, an_evaluator_gives_pixels) {
  const std::uint8_t tile[2][3] = {{10, 20, 30}, {110, 140, 50}};
  const std::vector<view<const std::uint8_t>> in{channels_last(&tile[0][0], {.extents = {1, 1, 2}}, 3)};
  const auto p = plan(channel_mix{.amount = 1} | cast<std::uint8_t>{}, in);
  const auto tiles = image<std::uint8_t>(in);
  alignas(256) static std::byte workspace[4096];
  ASSERT_LE(workspace_bytes(p, tiles), sizeof workspace);
  const auto evaluate = prepare(cpu{.workspace = workspace}, p, tiles);
  const pixel<std::uint8_t> v = evaluate(0, 0, 0, 1);
  EXPECT_EQ(v.c[0], 250);
  EXPECT_EQ(v.c[1], 190);
  EXPECT_EQ(v.c[2], 51);
}

TEST(color_pipeline, three_channels_are_needed) {
  const std::vector<std::uint8_t> tile(16, 200);
  for (std::int64_t channels : {1, 2, 4}) {
    const auto in = channels_last(tile.data(), {.extents = {1, 2, 2}}, channels);
    EXPECT_SAYS(result(channel_mix{.amount = 1} | identity{}, in),
                "suture: image: sample 0: operations on color take 3 channels (red, green, blue), the image has " +
                    std::to_string(channels));
  }
}

}  // namespace
