// SPDX-License-Identifier: Apache-2.0
// The walks of the CPU executor beside lone voxels, for every pipeline whose digests are taken.
#include <gtest/gtest.h>

#include "digest/lone_voxels.hpp"
#include "digest/staged_recipes.hpp"

namespace {

using namespace digest_test;

TEST(LoneVoxelsOfRecipes, Fused) {
  const cases data;
  for_each_recipe(
      [&](const char* name, const auto& pipeline) { expect_walk_equals_lone_voxels(data, name, pipeline); });
}

TEST(LoneVoxelsOfRecipes, Staged) {
  const cases data;
  for_each_staged_recipe(
      [&](const char* name, const auto& pipeline) { expect_walk_equals_lone_voxels(data, name, pipeline); });
}

TEST(LoneVoxelsOfRecipes, Colors) {
  const color_cases data;
  for_each_color_recipe(
      [&](const char* name, const auto& pipeline) { expect_walk_equals_lone_voxels(data, name, pipeline); });
}

}  // namespace
