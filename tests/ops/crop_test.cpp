// SPDX-License-Identifier: Apache-2.0
// Crops and padding: boxes, places and random starts.
#include "suture/ops/geometry/crop.hpp"

#include "support/geometry.hpp"
#include "suture/ops/geometry/pad.hpp"

namespace {

using namespace support;

TEST(Crop, TakesTheBoxAndMovesTheOrigin) {
  const grid g = oblique_grid({9, 12, 20});
  const geometry_step s = suture::crop{.start = {2, 0, 7}, .size = {3, 12, 5}}.step(g, here);
  EXPECT_EQ(s.output.extents, (extent3{3, 12, 5}));
  EXPECT_EQ(s.pull({1, 4, 2}), (point3{3, 4, 9}));
  expect_place_kept(g, s, "crop");
}

TEST(Crop, CenterStartsWhereMonaiAndNnunetStart) {
  // start = floor(N / 2) - floor(P / 2)
  struct row {
    std::int64_t voxels, patch, start;
  };
  for (const row& r : {row{4, 3, 1}, row{5, 4, 0}, row{5, 3, 1}, row{4, 2, 1}, row{1, 1, 0}, row{127, 96, 15},
                       row{16, 15, 1}, row{17, 16, 0}}) {
    const grid g = plain_grid({r.voxels, 1, 1});
    EXPECT_EQ((suture::center_crop{.size = {r.patch, 1, 1}}.step(g, here).pull.offset[0]), r.start) << r.voxels;
    EXPECT_EQ((suture::crop_or_pad{.size = {r.patch, 1, 1}}.step(g, here).pull.offset[0]), r.start) << r.voxels;
  }
}

TEST(Crop, RandomStartsAreUniformAndInside) {
  const grid g = plain_grid({10, 7, 96});
  const suture::random_crop op{.size = {8, 7, 96}};
  int counts[3] = {};
  for (std::uint64_t sample = 0; sample < 3000; ++sample) {
    suture::draws random(1, 0, sample, 3);
    const suture::crop box = op.draw(random, g, here);
    ASSERT_GE(box.start[0], 0);
    ASSERT_LE(box.start[0], 2);
    EXPECT_EQ(box.start[1], 0);
    EXPECT_EQ(box.start[2], 0);
    ++counts[box.start[0]];
    EXPECT_NO_THROW((void)box.step(g, here));
  }
  // 1000 +- 5 standard deviations (25.8) each.
  for (int c : counts) EXPECT_NEAR(c, 1000, 130);
}

TEST(Crop, EvaluationIsTheCenter) {
  const grid g = plain_grid({10, 9, 8});
  EXPECT_EQ((suture::random_crop{.size = {4, 4, 4}}.evaluation(g, here).start), (extent3{3, 2, 2}));
}

TEST(Crop, RefusesWhatLeavesTheVolume) {
  const grid g = plain_grid({64, 96, 96});
  suture::draws random(1, 0, 0, 3);
  const std::string patch = "patch (96, 96, 96) is larger than the volume (64, 96, 96); pad the volume first";
  EXPECT_REFUSED((suture::random_crop{.size = {96, 96, 96}}.draw(random, g, here)), patch);
  EXPECT_REFUSED((suture::random_crop{.size = {96, 96, 96}}.evaluation(g, here)), patch);
  EXPECT_REFUSED((suture::center_crop{.size = {96, 96, 96}}.step(g, here)), patch);
  EXPECT_REFUSED((suture::crop{.size = {96, 96, 96}}.step(g, here)), patch);
  EXPECT_REFUSED((suture::crop{}.step(g, here)), "patch (0, 0, 0) must be positive");
  // What `.size = 8` compiles to.
  const std::string number = "size (8, 0, 0): give three numbers, {8, 8, 8}, or {1, 8, 8} for a tile";
  EXPECT_REFUSED((suture::random_crop{.size = {8, 0, 0}}.draw(random, g, here)), number);
  EXPECT_REFUSED((suture::center_crop{.size = {8, 0, 0}}.step(g, here)), number);
  EXPECT_REFUSED((suture::crop_or_pad{.size = {8, 0, 0}}.step(g, here)), number);
  EXPECT_REFUSED((suture::crop{.size = {0, 8, 0}}.step(g, here)), "patch (0, 8, 0) must be positive");
  EXPECT_REFUSED((suture::center_crop{.size = {224, 224, 0}}.step(g, here)), "those of a tile (1, y, x)");
  EXPECT_REFUSED((suture::crop{.start = {1, 0, 0}, .size = {64, 1, 1}}.step(g, here)), "leaves the volume");
  EXPECT_REFUSED((suture::crop{.start = {0, -1, 0}, .size = {4, 4, 4}}.step(g, here)), "leaves the volume");
  EXPECT_REFUSED((suture::crop{.start = {INT64_MAX, 0, 0}, .size = {4, 4, 4}}.step(g, here)), "leaves the volume");
}

TEST(Pad, AddsVoxelsAndKeepsPlaces) {
  const grid g = oblique_grid({3, 4, 5});
  const geometry_step s = suture::pad{.before = {1, 0, 2}, .after = {0, 0, 3}}.step(g, here);
  EXPECT_EQ(s.output.extents, (extent3{4, 4, 10}));
  EXPECT_EQ(s.pull({1, 0, 2}), (point3{0, 0, 0}));
  expect_place_kept(g, s, "pad");
}

TEST(Pad, ToASizePutsTheSmallerHalfInFront) {
  // MONAI SpatialPad and nnU-Net pad_nd_image: floor(d / 2) in front.
  const geometry_step s = suture::pad_to{.size = {8, 3, 4}}.step(plain_grid({3, 5, 3}), here);
  EXPECT_EQ(s.output.extents, (extent3{8, 5, 4}));
  EXPECT_EQ(s.pull.offset, (point3{-2, 0, 0}));
  EXPECT_EQ((suture::pad_to{}.step(plain_grid({3, 5, 3}), here).output.extents), (extent3{3, 5, 3}));
}

TEST(Pad, CropOrPadReachesTheSize) {
  for (const std::int64_t n : {1, 15, 16, 17, 127}) {
    const grid g = oblique_grid({n, 16, 16});
    const geometry_step s = suture::crop_or_pad{.size = {16, 8, 32}}.step(g, here);
    EXPECT_EQ(s.output.extents, (extent3{16, 8, 32}));
    expect_place_kept(g, s, "crop_or_pad");
  }
  EXPECT_EQ((suture::crop_or_pad{.size = {4, 4, 4}}.step(plain_grid({3, 1, 9}), here).pull.offset), (point3{0, -1, 2}));
}

TEST(Pad, RefusesWhatIsTooLarge) {
  const grid g = plain_grid({3, 4, 5});
  EXPECT_REFUSED((suture::pad{.before = {-1, 0, 0}}.step(g, here)), "(-1, 0, 0)");
  EXPECT_REFUSED((suture::pad{.before = {INT64_MAX, 0, 0}, .after = {1, 0, 0}}.step(g, here)), "overflow");
  EXPECT_REFUSED((suture::pad{.after = {1 << 22, 0, 0}}.step(g, here)), "2097152");
  EXPECT_REFUSED((suture::pad_to{.size = {1 << 22, 0, 0}}.step(g, here)), "2097152");
  EXPECT_REFUSED((suture::crop_or_pad{.size = {0, 1, 1}}.step(g, here)), "(0, 1, 1) must be positive");
}

}  // namespace
