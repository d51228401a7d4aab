// SPDX-License-Identifier: Apache-2.0
// Geometry on tiles, RGB side by side in one slice: SciPy's numbers, exact moves against indices, and that the missing
// axis leaves no trace.
#include <gtest/gtest.h>

#include <functional>

#include "support/tiles.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;
using bytes = std::vector<std::uint8_t>;
using support::noise;

struct made {
  grid shape;
  std::vector<float> values;  // interleaved
  float at(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return values[static_cast<std::size_t>((y * shape.extents[2] + x) * 3 + c)];
  }
};

template <class Pipeline>
made result(const Pipeline& pipeline, const bytes& rgb, std::int64_t height, std::int64_t width,
            const point3& spacing = {1, 1, 1}) {
  const std::uint64_t ids[] = {5};
  const std::vector<view<const std::uint8_t>> in{
      channels_last<const std::uint8_t>(rgb.data(), {.extents = {1, height, width}, .spacing = spacing}, 3)};
  const auto p = plan(pipeline, in, {.seed = 3, .epoch = 1, .sample_ids = ids});
  made m{p.output_grid(0), {}};
  EXPECT_EQ(m.shape.extents[0], 1);
  m.values.resize(static_cast<std::size_t>(m.shape.voxels() * 3));
  run(cpu{1}, p, image(in, channels_last(m.values.data(), m.shape, 3)));
  return m;
}

constexpr std::int64_t h = 17, w = 23;
using expected = std::array<std::array<double, 3>, 5>;

void expect_pixels(const made& m, const std::array<std::array<int, 2>, 5>& places, const expected& values,
                   double tolerance = 1e-3) {
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(m.at(places[i][0], places[i][1], static_cast<std::int64_t>(c)), values[i][c], tolerance)
          << places[i][0] << ' ' << places[i][1];
}

// scipy.ndimage 1.17: t = noise(17, 23, 12) as float64; R turns by 30 degrees, (y, x) columns (cos, sin), (-sin, cos);
// M = inv(1.2 R), c = (8, 11); affine_transform(t[..., k], M, c - M @ (c + (1.5, -2.25)), order, mode, cval=200).
TEST(TileGeometry, AffineIsThatOfScipy) {
  const bytes t = noise(h, w, 12);
  const affine turn{.rotate_deg = {30, 0, 0}, .scale = {1.2, 1.2, 1.2}, .translate = {0, 1.5, -2.25}};
  const std::array<std::array<int, 2>, 5> places{{{0, 0}, {3, 20}, {8, 11}, {12, 5}, {16, 22}}};
  expect_pixels(result(turn | sampling<linear, mirror>{}, t, h, w), places,
                {{{89.583106, 155.575367, 149.375948},
                  {199.482845, 41.510057, 119.823941},
                  {168.303614, 213.344876, 25.667581},
                  {64.641941, 162.391448, 114.437023},
                  {109.20022, 52.579081, 58.594089}}});
  expect_pixels(result(turn | sampling<linear, constant>{.border = {.value = 200}}, t, h, w), places,
                {{{200.0, 200.0, 200.0},
                  {199.482845, 41.510057, 119.823941},
                  {168.303614, 213.344876, 25.667581},
                  {64.641941, 162.391448, 114.437023},
                  {200.0, 200.0, 200.0}}});
  expect_pixels(result(turn | sampling<linear, edge>{}, t, h, w), places,
                {{{172.643606, 79.356394, 104.495088},
                  {199.482845, 41.510057, 119.823941},
                  {168.303614, 213.344876, 25.667581},
                  {64.641941, 162.391448, 114.437023},
                  {158.867102, 176.191721, 43.642702}}});
  expect_pixels(result(turn | sampling<cubic_bspline, mirror>{}, t, h, w), places,
                {{{94.339908, 178.442986, 153.642365},
                  {213.626734, 19.324813, 115.76301},
                  {185.457424, 243.21323, -1.647769},
                  {24.036824, 197.481851, 107.886506},
                  {119.181412, 19.482157, 33.493035}}},
                5e-3);
}

// scipy.ndimage.zoom(t[..., k], (2, 17 / 23), order=1, mode="nearest", grid_mode=True)
TEST(TileGeometry, ResamplingIsThatOfScipy) {
  const bytes t = noise(h, w, 12);
  // 0.25 micrometers along y and 0.5 along x, to 0.125 and 0.5 * 23 / 17.
  const point3 spacing{1, .00025, .0005};
  const made m =
      result(resample{.spacing_mm = {0, .000125, .0005 * 23 / 17}} | sampling<linear, edge>{}, t, h, w, spacing);
  ASSERT_EQ(m.shape.extents, (extent3{1, 34, 17}));
  expect_pixels(m, {{{0, 0}, {3, 16}, {20, 11}, {33, 5}, {33, 16}}},
                {{{55.176471, 93.705882, 34.235294},
                  {76.044118, 176.102941, 141.941176},
                  {116.220588, 122.411765, 204.441176},
                  {17.352941, 199.470588, 48.058824},
                  {125.058824, 121.470588, 82.235294}}});
}

// Moves that interpolate nothing, pixel by pixel.
TEST(TileGeometry, FlipsTurnsAndCropsMovePixels) {
  const bytes t = noise(h, w, 7);
  const auto expect_moved = [&](const made& m,
                                const std::function<std::array<std::int64_t, 2>(std::int64_t, std::int64_t)>& from) {
    for (std::int64_t y = 0; y < m.shape.extents[1]; ++y)
      for (std::int64_t x = 0; x < m.shape.extents[2]; ++x) {
        const auto [sy, sx] = from(y, x);
        for (std::int64_t c = 0; c < 3; ++c)
          ASSERT_EQ(m.at(y, x, c), static_cast<float>(t[static_cast<std::size_t>((sy * w + sx) * 3 + c)]));
      }
  };
  using at = std::array<std::int64_t, 2>;
  expect_moved(result(flip{{false, true, false}}, t, h, w), [](auto y, auto x) { return at{h - 1 - y, x}; });
  expect_moved(result(flip{{true, false, true}}, t, h, w), [](auto y, auto x) { return at{y, w - 1 - x}; });
  const made transposed = result(permute{.order = {0, 2, 1}}, t, h, w);
  EXPECT_EQ(transposed.shape.extents, (extent3{1, w, h}));
  expect_moved(transposed, [](auto y, auto x) { return at{x, y}; });
  const made turned = result(rot90{.axes = {1, 2}, .quarter_turns = 1}, t, h, w);
  EXPECT_EQ(turned.shape.extents, (extent3{1, w, h}));
  expect_moved(turned, [](auto y, auto x) { return at{x, w - 1 - y}; });
  expect_moved(result(rot90{.axes = {1, 2}, .quarter_turns = 2}, t, h, w), [](auto y, auto x) {
    return at{h - 1 - y, w - 1 - x};
  });
  expect_moved(result(crop{.start = {0, 4, 6}, .size = {1, 9, 8}}, t, h, w), [](auto y, auto x) {
    return at{y + 4, x + 6};
  });
  expect_moved(result(center_crop{.size = {1, 5, 6}}, t, h, w), [](auto y, auto x) { return at{y + 6, x + 8}; });
  // An affine by quarter turns about the center of a square is exact as well.
  expect_moved(result(crop{.size = {1, h, h}} | affine{.rotate_deg = {90, 0, 0}}, t, h, w), [](auto y, auto x) {
    return at{x, h - 1 - y};
  });
}

TEST(TileGeometry, RandomCropsAreCrops) {
  const bytes t = noise(h, w, 8);
  const made m = result(random_crop{.size = {1, 6, 7}}, t, h, w);
  int matches = 0;
  for (std::int64_t sy = 0; sy + 6 <= h; ++sy)
    for (std::int64_t sx = 0; sx + 7 <= w; ++sx) {
      bool same = true;
      for (std::int64_t y = 0; y < 6 && same; ++y)
        for (std::int64_t k = 0; k < 21 && same; ++k)
          same = m.at(y, k / 3, k % 3) == static_cast<float>(t[static_cast<std::size_t>(((sy + y) * w + sx) * 3 + k)]);
      matches += same ? 1 : 0;
    }
  EXPECT_EQ(matches, 1);
}

// The bits do not depend on what is said about the axis that is not there.
template <class Make>
void expect_no_trace_of_z(const Make& pipeline) {
  const bytes t = noise(h, w, 9);
  const made plain = result(pipeline(0.0), t, h, w);
  for (const double z : {.001, 1e3}) {
    EXPECT_EQ(result(pipeline(0.0), t, h, w, {z, 1, 1}).values, plain.values) << "spacing " << z;
    EXPECT_EQ(result(pipeline(z), t, h, w).values, plain.values) << "along z " << z;
  }
}

TEST(TileGeometry, SpacingAndDisplacementAlongZLeaveNoTrace) {
  expect_no_trace_of_z([](double z) {
    return random_elastic{.control_spacing_mm = 7, .max_displacement_mm = {z, 2, 2}} | sampling<linear, mirror>{};
  });
  expect_no_trace_of_z([](double) {
    return random_affine{.rotate_deg = {30, 0, 0}, .scale = {.8f, 1.3f}, .translate = {0, 3, 3}} |
           random_elastic{.control_spacing_mm = 7, .max_displacement_mm = 2} | random_crop{.size = {1, 9, 9}} |
           sampling<linear, reflect>{};
  });
  expect_no_trace_of_z([](double z) {
    return affine{.rotate_deg = {17, 0, 0}, .scale = {z > 0 ? z : 1, 1.1, 1.1}} | sampling<catmull_rom, edge>{};
  });
}

// Ranges for a volume do to a tile what those for a tile do: nothing tilts it or moves it along z.
TEST(TileGeometry, RandomAffineKeepsATileInItsPlane) {
  const bytes t = noise(h, w, 11);
  for (const affine_convention convention : {affine_convention::suture, affine_convention::monai}) {
    const random_affine tile{.rotate_deg = {30, 0, 0}, .translate = {0, 3, 3}, .convention = convention};
    const random_affine volume{.rotate_deg = 30, .translate = 3, .convention = convention};
    EXPECT_EQ(result(volume | sampling<linear, constant>{}, t, h, w).values,
              result(tile | sampling<linear, constant>{}, t, h, w).values);
  }
  const random_affine sheared{.shear = .2f};
  const grid g{.extents = {1, h, w}};
  const std::uint64_t ids[] = {5};
  const auto p = plan(sheared, std::vector<grid>{g}, {.seed = 2, .sample_ids = ids});
  const affine_map& map = p.geometry(0).to_source;
  EXPECT_EQ(map.linear[0][1], 0);
  EXPECT_EQ(map.linear[0][2], 0);
  EXPECT_EQ(map.offset[0], 0);
  EXPECT_NE(map.linear[1][2], 0);
}

// A mask goes with its tile through every one of them, by vote, and gains no value.
TEST(TileGeometry, MasksFollowTheirTile) {
  bytes tile(static_cast<std::size_t>(h * w * 3), 0), mask(static_cast<std::size_t>(h * w), 0);
  for (std::int64_t y = 5; y < 12; ++y)
    for (std::int64_t x = 7; x < 17; ++x) {
      mask[static_cast<std::size_t>(y * w + x)] = 3;
      for (std::size_t c = 0; c < 3; ++c) tile[static_cast<std::size_t>((y * w + x) * 3) + c] = 200;
    }
  const grid g{.extents = {1, h, w}};
  const std::vector<view<const std::uint8_t>> in{channels_last<const std::uint8_t>(tile.data(), g, 3)};
  const std::vector<view<const std::uint8_t>> labels_in{contiguous<const std::uint8_t>(mask.data(), g)};
  const std::uint64_t ids[] = {5};
  const auto p = plan(random_affine{.rotate_deg = {30, 0, 0}, .scale = {.8f, 1.3f}} |
                          random_elastic{.control_spacing_mm = 7, .max_displacement_mm = {0, 2, 2}} | random_flip{} |
                          sampling<linear, constant, vote>{},
                      in, {.seed = 2, .sample_ids = ids});
  std::vector<float> values(tile.size());
  bytes labels_out(mask.size());
  run(cpu{1}, p, image(in, channels_last(values.data(), p.output_grid(0), 3)),
      labels(labels_in, contiguous(labels_out.data(), p.output_grid(0))));
  int inside = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    ASSERT_TRUE(labels_out[i] == 0 || labels_out[i] == 3);
    if (std::abs(values[3 * i] - 100) < 1) continue;  // half and half
    EXPECT_EQ(labels_out[i] == 3, values[3 * i] > 100);
    inside += labels_out[i] == 3 ? 1 : 0;
  }
  EXPECT_GT(inside, 30);
}

}  // namespace
