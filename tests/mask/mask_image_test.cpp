// SPDX-License-Identifier: Apache-2.0
// Images masked by label maps, against plain loops.
#include <gtest/gtest.h>

#include "support/expect_says.hpp"
#include "suture/image/digest.hpp"
#include "suture/mask/mask_image.hpp"

namespace {

using suture::extent3;

const extent3 sizes[] = {{1, 1, 1}, {1, 15, 17}, {17, 1, 16}, {16, 17, 1}, {2, 3, 127}};

struct batch {
  std::vector<std::vector<std::int8_t>> maps;
  std::vector<std::vector<float>> images;
  std::vector<suture::view<const std::int8_t>> map_views;
  std::vector<suture::view<float>> image_views;

  // Interleaved are the channels of images, and map voxels with something else.
  explicit batch(bool interleaved) {
    const std::size_t step = interleaved ? 2 : 1;
    for (const extent3& n : sizes) {
      const suture::grid g{.extents = n};
      const auto voxels = static_cast<std::size_t>(g.voxels());
      maps.emplace_back(step * voxels, std::int8_t{-9});
      images.emplace_back(3 * voxels);
      for (std::size_t i = 0; i < voxels; ++i)  // voxel by voxel, then in runs
        maps.back()[step * i] = static_cast<std::int8_t>(suture::mix64(i < voxels / 2 ? i : i / 40) % 4) - 1;
      for (std::size_t i = 0; i < 3 * voxels; ++i) images.back()[i] = static_cast<float>(i + 1);
      map_views.push_back(interleaved ? suture::channels_last<const std::int8_t>(maps.back().data(), g, 2)
                                      : suture::contiguous<const std::int8_t>(maps.back().data(), g));
      map_views.back().channels = 1;
      image_views.push_back(interleaved ? suture::channels_last(images.back().data(), g, 3)
                                        : suture::contiguous(images.back().data(), g, 3));
    }
  }
};

TEST(MaskImage, ChosenChannelsBecomeTheValue) {
  const std::int64_t chosen[] = {0, 2};
  for (const bool interleaved : {false, true})
    for (const std::int32_t below : {0, 2})
      for (const bool all : {false, true}) {
        batch b(interleaved);
        const batch before(interleaved);
        suture::image_mask rule{.below = below, .value = -2.5f};
        if (!all) rule.channels = chosen;
        suture::mask_image(suture::cpu{}, b.map_views, b.image_views, rule);
        for (std::size_t s = 0; s < b.maps.size(); ++s) {
          const std::size_t step = interleaved ? 2 : 1, voxels = b.maps[s].size() / step;
          for (std::size_t i = 0; i < 3 * voxels; ++i) {
            const std::size_t channel = interleaved ? i % 3 : i / voxels, voxel = interleaved ? i / 3 : i % voxels;
            const bool masked = b.maps[s][step * voxel] < below && (all || channel != 1);
            ASSERT_EQ(b.images[s][i], masked ? -2.5f : before.images[s][i]);
          }
        }
      }
}

TEST(MaskImage, StoresOfAnyType) {
  const std::vector<std::int32_t> map{-1, 0, 5};
  const suture::grid g{.extents = {1, 1, 3}};
  std::vector<suture::half> halves(3, suture::storage<suture::half>::store(7));
  std::vector<std::uint8_t> bytes(3, 7);
  const auto labels = suture::contiguous(map.data(), g);
  suture::mask_image(suture::cpu{}, labels, suture::contiguous(halves.data(), g), {.value = 1});
  suture::mask_image(suture::cpu{}, labels, suture::contiguous(bytes.data(), g), {.below = 1, .value = 300});
  EXPECT_EQ(halves[0].bits, 0x3c00);
  EXPECT_EQ(halves[1].bits, halves[2].bits);
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{255, 255, 7}));
}

TEST(MaskImage, Errors) {
  batch b(false);
  const std::int64_t fourth[] = {3}, negative[] = {-1};
  const auto run = [&](const suture::image_mask& rule) {
    suture::mask_image(suture::cpu{}, b.map_views, b.image_views, rule);
  };
  EXPECT_SAYS(run({.value = NAN}), "mask_image: value nan must be finite");
  EXPECT_SAYS(run({.channels = fourth}), "mask_image: sample 0: the image has 3 channels, not channel 3");
  EXPECT_SAYS(run({.channels = negative}), "channel -1");
  b.image_views[1] = b.image_views[2];
  EXPECT_SAYS(run({}), "sample 1: image extents (17, 1, 16) differ from the label map's (1, 15, 17)");
  b.map_views[1] = b.map_views[2];
  EXPECT_SAYS(run({}), "output overlaps an input or another output");
  b.map_views.pop_back();
  EXPECT_SAYS(run({}), "4 label maps for 5 images");
}

}  // namespace
