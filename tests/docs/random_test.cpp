// SPDX-License-Identifier: Apache-2.0
// Snippets of docs/random.md.
#include <gtest/gtest.h>

#include <suture/suture.hpp>

namespace {

TEST(RandomPage, WhereACropStarts) {
  const std::vector<suture::grid> scans{{.extents = {40, 50, 60}}};
  const std::uint64_t seed = 42, id = 4711;
  const std::uint32_t epoch = 3;
  const std::vector<std::uint64_t> ids{id};
  const auto recipe = suture::random_gamma{} | suture::random_crop{.size = {16, 16, 16}};
  // [crop]
  // The first random_crop of a pipeline, for one sample: kind 3, ordinal 0.
  suture::draws random(seed, epoch, id, (suture::random_crop::kind << 4) | 0);
  const bool fires = random.bernoulli(1);              // slot 0: whether it is applied
  const std::int64_t z = random.integer(40 - 16 + 1);  // slots 1, 2, 3: where the patch starts
  const std::int64_t y = random.integer(50 - 16 + 1);
  const std::int64_t x = random.integer(60 - 16 + 1);
  // [/crop]
  EXPECT_TRUE(fires);
  const auto plan = suture::plan(recipe, scans, {.seed = seed, .epoch = epoch, .sample_ids = ids});
  EXPECT_EQ(plan.geometry(0).to_source.offset, (suture::vec_cast<double>(suture::extent3{z, y, x})));
}

TEST(RandomPage, NoiseOfAVoxel) {
  const suture::grid g{.extents = {3, 4, 5}};
  const std::uint64_t seed = 9, id = 1;
  const std::uint32_t epoch = 0;
  const std::vector<std::uint64_t> ids{id};
  const std::vector<std::int16_t> zeros(60);
  std::vector<float> out(60);
  const auto plan = suture::plan(suture::gaussian_noise{.sigma = 1}, std::vector{g},
                                 {.seed = seed, .epoch = epoch, .sample_ids = ids});
  suture::run(suture::cpu{}, plan,
              suture::image(suture::contiguous(zeros.data(), g), suture::contiguous(out.data(), g)));
  // [field]
  const suture::draws random(seed, epoch, id, suture::gaussian_noise::kind << 4);
  const suture::random_field noise = random.field(1);  // purpose 1
  const float n = noise.normal(2 * 20 + 3 * 5 + 4);    // voxel (2, 3, 4) of a 3 x 4 x 5 patch, channel 0
  // [/field]
  EXPECT_EQ(out[59], n);
}

}  // namespace
