// SPDX-License-Identifier: Apache-2.0
// Resampling, with the conventions and results of the libraries it follows.
#include "suture/ops/geometry/resample.hpp"
#include "support/expect_close.hpp"
#include "support/geometry.hpp"

namespace {

using namespace support;
using suture::coordinate_map;

TEST(Resample, SizesFollowTheirLibraries) {
  struct row {
    std::int64_t voxels;
    double from, to;
    std::int64_t nnunet, monai, torchio;
  };
  for (const row& r : {row{64, 5, 2, 160, 158, 160}, row{40, 3, 1, 120, 118, 120}, row{5, .5, 1, 2, 3, 2},
                       row{7, .5, 1, 4, 4, 3}, row{512, .78125, .8, 500, 500, 500}}) {
    const grid g = plain_grid({r.voxels, 1, 1}, {r.from, 1, 1});
    const auto size = [&](coordinate_map map) {
      return suture::resample{.spacing_mm = {r.to, 1, 1}, .map = map}.step(g, here).output.extents[0];
    };
    EXPECT_EQ(size(coordinate_map::half_pixel), r.nnunet) << r.voxels;
    EXPECT_EQ(size(coordinate_map::physical), r.nnunet) << r.voxels;
    EXPECT_EQ(size(coordinate_map::origin_preserving), r.monai) << r.voxels;
    EXPECT_EQ(size(coordinate_map::align_corners), r.monai) << r.voxels;
    EXPECT_EQ(size(coordinate_map::center_preserving), r.torchio) << r.voxels;
  }
}

TEST(Resample, CoordinatesFollowTheirMaps) {
  for (const std::int64_t n : {1, 2, 15, 16, 17, 127, 512})
    for (const double to : {0.4, 0.78125, 1.0, 3.0}) {
      const double from = 0.78125;
      const grid g = plain_grid({n, 1, 1}, {from, 1, 1});
      for (const auto map : {coordinate_map::half_pixel, coordinate_map::align_corners,
                             coordinate_map::origin_preserving, coordinate_map::center_preserving}) {
        if (map == coordinate_map::half_pixel && reference::nnunet_size(n, from, to) == 0) continue;
        if (map == coordinate_map::center_preserving && reference::torchio_size(n, from, to) == 0) continue;
        const geometry_step s = suture::resample{.spacing_mm = {to, 1, 1}, .map = map}.step(g, here);
        const std::int64_t out = s.output.extents[0];
        for (std::int64_t i = 0; i < out; ++i) {
          const auto x = static_cast<double>(i);
          const double expected = map == coordinate_map::half_pixel      ? reference::half_pixel(x, n, out)
                                  : map == coordinate_map::align_corners ? reference::align_corners(x, n, out)
                                  : map == coordinate_map::origin_preserving
                                      ? reference::origin_preserving(x, from, to)
                                      : reference::center_preserving(x, n, out, from, to);
          ASSERT_NEAR(s.pull({x, 0, 0})[0], expected, 1e-12 * static_cast<double>(n)) << n << ' ' << to;
        }
      }
    }
}

TEST(Resample, HalfPixelFromFiveToEight) {
  const geometry_step s = suture::resize{.extents = {8, 0, 0}}.step(plain_grid({5, 1, 1}), here);
  const double expected[] = {-0.1875, 0.4375, 1.0625, 1.6875, 2.3125, 2.9375, 3.5625, 4.1875};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(s.pull({static_cast<double>(i), 0, 0})[0], expected[i]);
}

TEST(Resample, EveryMapKeepsPlacesInPhysicalSpace) {
  for (const std::int64_t n : {1, 15, 16, 17, 127}) {
    const grid g = oblique_grid({n, 17, 23});
    for (const auto map : {coordinate_map::half_pixel, coordinate_map::align_corners, coordinate_map::origin_preserving,
                           coordinate_map::center_preserving, coordinate_map::physical})
      expect_place_kept(g,
                        suture::resample{.spacing_mm = {2.5, 1.3, 0.7}, .map = map, .extents = {n, 0, 0}}.step(g, here),
                        "map " + std::to_string(static_cast<int>(map)) + " extent " + std::to_string(n));
    expect_place_kept(g, suture::resize{.extents = {5, 0, 46}}.step(g, here), "resize");
    expect_place_kept(g, suture::resample_to{plain_grid({4, 5, 6}, {1, 2, 3})}.step(g, here), "resample_to");
  }
}

TEST(Resample, SpacingIsExactToTheMap) {
  const grid g = plain_grid({64, 33, 20}, {5, 0.7, 3});
  const auto spacing = [&](coordinate_map map) {
    return suture::resample{.spacing_mm = {2, 1.5, 0}, .map = map}.step(g, here).output.spacing;
  };
  expect_near(spacing(coordinate_map::half_pixel), {2, 33 * 0.7 / 15, 3}, 1e-15);  // 33 * 0.7 / 1.5 = 15.4
  expect_near(spacing(coordinate_map::align_corners), {63 * 5 / 157.0, 32 * 0.7 / 15, 3}, 1e-15);
  for (const auto map :
       {coordinate_map::origin_preserving, coordinate_map::center_preserving, coordinate_map::physical})
    EXPECT_EQ(spacing(map), (point3{2, 1.5, 3}));
}

TEST(Resample, OneVoxelOfAlignedCornersIsTheFirst) {
  // Any slope gives coordinate 0; the input's keeps the map invertible for points and boxes.
  const geometry_step s = suture::resize{.extents = {1, 0, 0}, .map = coordinate_map::align_corners}.step(
      plain_grid({9, 4, 4}, {3, 1, 1}), here);
  EXPECT_EQ(s.pull({0, 0, 0}), (point3{0, 0, 0}));
  EXPECT_EQ(s.pull.linear[0][0], 1);
  EXPECT_EQ(s.output.spacing[0], 3);
}

TEST(Resample, SameSpacingIsTheIdentity) {
  const grid g = oblique_grid({17, 33, 20});
  for (const auto map : {coordinate_map::half_pixel, coordinate_map::align_corners, coordinate_map::origin_preserving,
                         coordinate_map::center_preserving, coordinate_map::physical}) {
    const geometry_step s = suture::resample{.spacing_mm = g.spacing, .map = map}.step(g, here);
    EXPECT_EQ(s.output.extents, g.extents);
    for (const point3& p : corners(g)) EXPECT_EQ(s.pull(p), p);
  }
}

TEST(Resample, PhysicalMapIsItkGrid) {
  support::for_each_oracle(
      [](const support::oracle_case& c) {
        // Those whose output is the whole input at another spacing.
        return c.op == "itk.ResampleImageFilter" && c.params.at("transform").at("type") == "identity" &&
               c.params.at("direction") == c.params.at("out_direction");
      },
      [](const support::oracle_case& c) {
        const grid in = grid_from_json(c.params, ""), out = grid_from_json(c.params, "out_");
        const geometry_step s =
            suture::resample{.spacing_mm = out.spacing, .map = coordinate_map::physical}.step(in, here);
        expect_same_grid(s.output, out, 1e-10, c.name);
      });
}

TEST(Resample, OntoAGridMatchesItkValues) {
  support::for_each_oracle(
      support::calls("itk.ResampleImageFilter",
                     [](const support::oracle_case& c) {
                       return c.params.at("transform").at("type") == "identity" && c.has("interpolator", "linear");
                     }),
      [](const support::oracle_case& c) {
        const grid in = grid_from_json(c.params, ""), out = grid_from_json(c.params, "out_");
        const geometry_step s = suture::resample_to{out}.step(in, here);
        const reference::sampling how{reference::interpolation::linear, reference::outside::half_voxel_constant,
                                      c.params.at("default")};
        expect_same(resampled(load(c.input<double>("x")), s, how), load(c.output<double>("y")), 1e-3, c.name);
      });
}

TEST(Resample, OntoAGridMatchesNibabelValues) {
  support::for_each_oracle(
      support::calls("nibabel.processing.resample_to_output",
                     [](const support::oracle_case& c) { return c.has("order", 1); }),
      [](const support::oracle_case& c) {
        const auto x = c.input<double>("x");
        const grid in = grid_from_nifti(c.params.at("affine"), x.shape);
        const grid out = grid_from_nifti(c.params.at("new_affine"), c.params.at("new_shape"));
        const geometry_step s = suture::resample_to{out}.step(in, here);
        const reference::sampling how{reference::interpolation::linear, reference::outside::scipy_constant,
                                      c.params.at("cval")};
        const reference::volume source = load_nifti(x), expected = load_nifti(c.output<double>("y"));
        const reference::volume actual = resampled(source, s, how);
        ASSERT_EQ(actual.size, expected.size);
        std::size_t i = 0, checked = 0;
        for (std::int64_t z = 0; z < out.extents[0]; ++z)
          for (std::int64_t y = 0; y < out.extents[1]; ++y)
            for (std::int64_t xx = 0; xx < out.extents[2]; ++xx, ++i) {
              // scipy's constant rule jumps at the first and last voxel center: leave out what lies within 1e-3 of it.
              const point3 p = s.pull({static_cast<double>(z), static_cast<double>(y), static_cast<double>(xx)});
              bool safe = true;
              for (int k = 0; k < 3; ++k) {
                const auto last = static_cast<double>(in.extents[k] - 1);
                safe = safe && std::abs(p[k]) > 1e-3 && std::abs(p[k] - last) > 1e-3;
              }
              if (!safe) continue;
              ++checked;
              ASSERT_NEAR(actual.values[i], expected.values[i], 1e-2) << c.name;
            }
        EXPECT_GT(checked, expected.values.size() / 2);
      });
}

TEST(Resize, MatchesTorchAndSkimageValues) {
  const auto is_linear = [](const support::oracle_case& c) {
    if (c.op == "torch.nn.functional.interpolate") return c.has("mode", "trilinear");
    return c.op == "skimage.transform.resize" && c.has("order", 1) && c.has("mode", "edge") &&
           !c.has("anti_aliasing", true);
  };
  support::for_each_oracle(is_linear, [](const support::oracle_case& c) {
    const bool torch = c.op == "torch.nn.functional.interpolate";
    const reference::volume x = load(c.input<double>("x"));
    const nlohmann::json& size = c.params.at(torch ? "size" : "output_shape");
    const bool align = torch && c.params.at("align_corners").get<bool>();
    const geometry_step s = suture::resize{.extents = {size[0], size[1], size[2]},
                                           .map = align ? coordinate_map::align_corners : coordinate_map::half_pixel}
                                .step(plain_grid({x.size[0], x.size[1], x.size[2]}), here);
    const reference::sampling how{reference::interpolation::linear, reference::outside::edge, 0};
    expect_same(resampled(x, s, how), load(c.output<double>("y")), 1e-5 * support::range_of(x.values), c.name);
  });
}

TEST(Resample, RefusesWhatItCannotDo) {
  const grid g = plain_grid({5, 64, 64}, {0.5, 1, 1});
  EXPECT_REFUSED((suture::resample{.spacing_mm = {-1, 1, 1}}.step(g, here)), "spacing_mm (-1, 1, 1)");
  EXPECT_REFUSED((suture::resample{.spacing_mm = {NAN, 1, 1}}.step(g, here)), "spacing_mm (nan");
  EXPECT_REFUSED((suture::resample{.spacing_mm = {50, 1, 1}}.step(g, here)),
                 "leaves no voxel of the volume (5, 64, 64)");
  EXPECT_REFUSED((suture::resample{.spacing_mm = {1, 1, 1e-6}}.step(g, here)),
                 "spacing_mm (1, 1, 1e-06) makes 64000000 voxels along axis 2; at most 2097152");
  EXPECT_REFUSED((suture::resample{.spacing_mm = {1e-300, 1, 1}}.step(g, here)), "2097152");
  EXPECT_REFUSED((suture::resample{.extents = {-3, 0, 0}}.step(g, here)), "extents (-3, 0, 0)");
  EXPECT_REFUSED((suture::resize{.extents = {1 << 22, 0, 0}}.step(g, here)), "2097152");
  EXPECT_REFUSED((suture::resize{.extents = {3, 3, 3}, .map = coordinate_map::physical}.step(g, here)), "half_pixel");
  EXPECT_REFUSED(
      (suture::resize{.extents = {3, 3, 3}, .map = coordinate_map::align_corners}.step(plain_grid({1, 4, 4}), here)),
      "align_corners cannot spread one voxel");
  EXPECT_REFUSED((suture::resample_to{plain_grid({4, 0, 4})}.step(g, here)), "extents (4, 0, 4)");
}

}  // namespace
