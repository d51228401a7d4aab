// SPDX-License-Identifier: Apache-2.0
// Flips, turns, permutations and orientation.
#include "support/geometry.hpp"
#include "suture/ops/geometry/flip.hpp"
#include "suture/ops/geometry/identity.hpp"
#include "suture/ops/geometry/orient.hpp"
#include "suture/ops/geometry/permute.hpp"
#include "suture/ops/geometry/rot90.hpp"

namespace {

using namespace support;

TEST(Flip, ReversesTheAxes) {
  const grid g = plain_grid({1, 2, 3});
  EXPECT_EQ(read(suture::flip{.axes = {false, false, true}}.step(g, here), g.extents),
            (std::vector<double>{2, 1, 0, 12, 11, 10}));
  EXPECT_EQ(read(suture::flip{.axes = {true, true, false}}.step(g, here), g.extents),
            (std::vector<double>{10, 11, 12, 0, 1, 2}));
}

TEST(Flip, RandomAxesAreIndependentAndFair) {
  int counts[8] = {};
  for (std::uint64_t sample = 0; sample < 8000; ++sample) {
    suture::draws random(5, 1, sample, 4);
    const suture::flip f = suture::random_flip{}.draw(random, here);
    ++counts[(f.axes[0] ? 1 : 0) + (f.axes[1] ? 2 : 0) + (f.axes[2] ? 4 : 0)];
  }
  for (int c : counts) EXPECT_NEAR(c, 1000, 150);  // five standard deviations
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    suture::draws random(5, 1, sample, 4);
    EXPECT_EQ((suture::random_flip{.axis_probability = {0, 1, 0}}.draw(random, here).axes),
              (suture::vec3<bool>{false, true, false}));
  }
  EXPECT_REFUSED((suture::random_flip{.axis_probability = {0, 1.5f, 0}}.check(here)), "axis_probability (0, 1.5, 0)");
}

TEST(Rot90, IsNumpyRot90) {
  // numpy.rot90([[0, 1, 2], [10, 11, 12]], k)
  const grid g = plain_grid({1, 2, 3});
  const auto turned = [&](int k) { return read(suture::rot90{.quarter_turns = k}.step(g, here), g.extents); };
  EXPECT_EQ(turned(0), (std::vector<double>{0, 1, 2, 10, 11, 12}));
  EXPECT_EQ(turned(1), (std::vector<double>{2, 12, 1, 11, 0, 10}));
  EXPECT_EQ(turned(2), (std::vector<double>{12, 11, 10, 2, 1, 0}));
  EXPECT_EQ(turned(3), (std::vector<double>{10, 0, 11, 1, 12, 2}));
  EXPECT_EQ(turned(-1), turned(3));
  EXPECT_EQ(turned(9), turned(1));
  const auto exchanged = suture::rot90{.axes = {2, 1}, .quarter_turns = 1}.step(g, here);
  EXPECT_EQ(read(exchanged, g.extents), turned(3));
}

TEST(Rot90, RandomTurnsAreFair) {
  int counts[4] = {};
  for (std::uint64_t sample = 0; sample < 3000; ++sample) {
    suture::draws random(5, 1, sample, 5);
    ++counts[suture::random_rot90{}.draw(random, grid{}, here).quarter_turns];
  }
  EXPECT_EQ(counts[0], 0);
  for (int k = 1; k < 4; ++k) EXPECT_NEAR(counts[k], 1000, 130);  // five standard deviations
}

TEST(Permute, IsNumpyTranspose) {
  const grid g = plain_grid({2, 1, 3}, {3, 2, 1});
  const geometry_step s = suture::permute{.order = {2, 0, 1}}.step(g, here);
  EXPECT_EQ(s.output.extents, (extent3{3, 2, 1}));
  EXPECT_EQ(s.output.spacing, (point3{1, 3, 2}));
  EXPECT_EQ(read(s, g.extents), (std::vector<double>{0, 100, 1, 101, 2, 102}));
}

TEST(Relabeling, KeepsPlacesInPhysicalSpace) {
  for (const std::int64_t n : {1, 15, 16, 17, 127}) {
    const grid g = oblique_grid({n, 17, 5});
    expect_place_kept(g, suture::identity{}.step(g, here), "identity");
    for (int bits = 0; bits < 8; ++bits)
      expect_place_kept(g, suture::flip{.axes = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}}.step(g, here),
                        "flip");
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        for (int turns = 0; turns < 4 && a != b; ++turns)
          expect_place_kept(g, suture::rot90{.axes = {a, b}, .quarter_turns = turns}.step(g, here), "rot90");
    suture::vec3<std::int32_t> order{0, 1, 2};
    do expect_place_kept(g, suture::permute{.order = order}.step(g, here), "permute");
    while (std::next_permutation(order.v, order.v + 3));
    for (const char* code : {"RAS", "LPS", "PIR", "ASL", "IRP"})
      expect_place_kept(g, suture::orient{.to = code}.step(g, here), code);
  }
}

TEST(Relabeling, RefusesAxesThatAreNone) {
  const grid g = plain_grid({3, 4, 5});
  EXPECT_REFUSED((suture::rot90{.axes = {1, 1}}.step(g, here)), "axes (1, 1)");
  EXPECT_REFUSED((suture::rot90{.axes = {0, 3}}.step(g, here)), "axes (0, 3)");
  EXPECT_REFUSED((suture::random_rot90{.max_quarter_turns = 4}.check(here)), "max_quarter_turns 4");
  EXPECT_REFUSED((suture::random_rot90{.axes = {1, 1}}.check(here)), "axes (1, 1)");
  EXPECT_REFUSED((suture::permute{.order = {0, 1, 1}}.step(g, here)), "order (0, 1, 1)");
  EXPECT_REFUSED((suture::permute{.order = {0, 1, 3}}.step(g, here)), "order (0, 1, 3)");
  EXPECT_REFUSED((suture::orient{.to = "RA"}.step(g, here)), "\"RA\"");
  EXPECT_REFUSED((suture::orient{.to = "RAX"}.step(g, here)), "\"RAX\"");
  EXPECT_REFUSED((suture::orient{.to = "RLS"}.step(g, here)), "\"RLS\"");
}

TEST(Orient, MatchesNibabel) {
  support::for_each_oracle(support::calls("nibabel.orientations"), [](const support::oracle_case& c) {
    const auto x = c.input<double>("x"), y = c.output<double>("y");
    const std::string code = c.params.at("target");
    const geometry_step s = suture::orient{.to = code}.step(grid_from_nifti(c.params.at("affine"), x.shape), here);
    expect_same_grid(s.output, grid_from_nifti(c.params.at("new_affine"), y.shape), 1e-9, c.name);
    const reference::sampling how{reference::interpolation::nearest, reference::outside::blend_constant, -99999};
    expect_same(resampled(load_nifti(x), s, how), load_nifti(y), 0, c.name);
  });
}

}  // namespace
