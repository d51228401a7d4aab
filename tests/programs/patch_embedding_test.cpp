// SPDX-License-Identifier: Apache-2.0
// The host form of the patch embedding example, on whole numbers, whose sums are exact in any order.
#include <gtest/gtest.h>

#include <vector>

#include "patch_embedding/embedding.hpp"

namespace {

using namespace suture;
using examples::embedding;

int voxel_value(int sample, int z, int y, int x) { return (sample * 5 + z * 7 + y * 3 + x * 11) % 17 - 8; }
int weight_value(int row, int feature) { return (row * 13 + feature * 29) % 23 - 11; }

TEST(PatchEmbedding, ProjectsEveryTokenOfAPatch) {
  const embedding e{.patch = {4, 6, 10}, .token = 2, .features = 5};
  ASSERT_EQ(e.tokens(), 2 * 3 * 5);
  std::vector<float> weights;
  for (int row = 0; row <= 8; ++row)
    for (int f = 0; f < 5; ++f) weights.push_back(static_cast<float>(weight_value(row, f)));
  ASSERT_EQ(weights.size(), static_cast<std::size_t>(e.weights()));
  const auto voxels = [](int sample, int z, int y, int x) {
    return storage<half>::store(static_cast<float>(voxel_value(sample, z, y, x)));
  };

  std::vector<float> features(2 * 30 * 5, -1);
  examples::embed(voxels, e, 2, weights.data(), features.data());

  std::size_t next = 0;
  for (int sample = 0; sample < 2; ++sample)
    for (int z = 0; z < 4; z += 2)
      for (int y = 0; y < 6; y += 2)
        for (int x = 0; x < 10; x += 2)
          for (int f = 0; f < 5; ++f) {
            int sum = weight_value(8, f);
            for (int k = 0; k < 8; ++k)
              sum += weight_value(k, f) * voxel_value(sample, z + k / 4, y + k / 2 % 2, x + k % 2);
            ASSERT_EQ(features[next++], static_cast<float>(sum))
                << sample << ' ' << z << ' ' << y << ' ' << x << ' ' << f;
          }
}

TEST(PatchEmbedding, ReadsStoredPatches) {
  std::vector<half> data;
  for (std::uint16_t i = 0; i < 2 * 3 * 4 * 5; ++i) data.push_back({i});
  const examples::stored_patches patches{data.data(), {3, 4, 5}};
  EXPECT_EQ(patches(0, 0, 0, 0).bits, 0);
  EXPECT_EQ(patches(0, 0, 1, 2).bits, 7);
  EXPECT_EQ(patches(0, 2, 3, 4).bits, 59);
  EXPECT_EQ(patches(1, 1, 0, 0).bits, 80);
}

}  // namespace
