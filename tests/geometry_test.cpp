// SPDX-License-Identifier: Apache-2.0
// Geometry operations against the libraries whose conventions they follow, published numbers, and physical space.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ref/coordinates.hpp"
#include "ref/elastic.hpp"
#include "ref/rotation.hpp"
#include "ref/sample.hpp"
#include "support/oracle.hpp"
#include "suture/ops/geometry/affine.hpp"
#include "suture/ops/geometry/crop.hpp"
#include "suture/ops/geometry/elastic.hpp"
#include "suture/ops/geometry/flip.hpp"
#include "suture/ops/geometry/identity.hpp"
#include "suture/ops/geometry/orient.hpp"
#include "suture/ops/geometry/pad.hpp"
#include "suture/ops/geometry/permute.hpp"
#include "suture/ops/geometry/resample.hpp"
#include "suture/ops/geometry/rot90.hpp"

namespace {

using suture::affine_convention;
using suture::coordinate_map;
using suture::extent3;
using suture::geometry_step;
using suture::grid;
using suture::matrix3;
using suture::point3;

const suture::site here{"operation", 7};
const double degree = std::acos(-1.0) / 180;

grid oblique_grid(const extent3& extents) {
  const std::int64_t size[3] = {extents[2], extents[1], extents[0]};
  return suture::grid_from_itk(size, {2.732, 0.9, 5.0}, {10.0, -20.0, 30.0},
                               {0.9393727128473788, -0.33606268070212925, -0.06812327793826828, 0.34289780745545134,
                                0.920647799997774, 0.18662454822852997, 0.0, -0.19866933079506124, 0.9800665778412417});
}

grid plain_grid(const extent3& extents, const point3& spacing = {1, 1, 1}) {
  return {.extents = extents, .spacing = spacing};
}

void expect_near(const point3& actual, const point3& expected, double tolerance, const std::string& what = "") {
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(actual[k], expected[k], tolerance) << what << " component " << k;
}

void expect_near(const matrix3& actual, const reference::matrix& expected, double tolerance) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      EXPECT_NEAR(actual[i][j], expected[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)], tolerance)
          << i << ',' << j;
}

std::vector<point3> corners(const grid& g) {
  std::vector<point3> result;
  for (int i = 0; i < 8; ++i) {
    point3 p{};
    for (int k = 0; k < 3; ++k) p[k] = (i >> k & 1) != 0 ? static_cast<double>(g.extents[k] - 1) : 0.0;
    result.push_back(p);
  }
  return result;
}

// The output's description of physical space and the pull tell the same place.
void expect_place_kept(const grid& input, const geometry_step& s, const std::string& what) {
  const auto to_input = input.index_to_physical(), to_output = s.output.index_to_physical();
  for (const point3& p : corners(s.output)) expect_near(to_output(p), to_input(s.pull(p)), 1e-9, what);
  EXPECT_NO_THROW(suture::check(s.output, here)) << what;
}

template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const suture::error& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

#define EXPECT_REFUSED(expression, part)                                              \
  do {                                                                                \
    const std::string text = message_of([&] { (void)(expression); });                 \
    EXPECT_NE(text.find("suture: operation: sample 7: "), std::string::npos) << text; \
    EXPECT_NE(text.find(part), std::string::npos) << text;                            \
  } while (false)

reference::point to_reference(const point3& p) { return {p[0], p[1], p[2]}; }

reference::volume resampled(const reference::volume& in, const geometry_step& s, const reference::sampling& how) {
  return reference::resampled(
      in, {s.output.extents[0], s.output.extents[1], s.output.extents[2]},
      [&](const reference::point& p) {
        return to_reference(s.pull({p[0], p[1], p[2]}));
      },
      how);
}

reference::volume load(const support::array<double>& a) { return {{a.shape[0], a.shape[1], a.shape[2]}, a.values}; }

// An array in NIfTI order (i, j, k), k fastest, as the volume (z, y, x) = (k, j, i).
reference::volume load_nifti(const support::array<double>& a) {
  reference::volume v({a.shape[2], a.shape[1], a.shape[0]});
  for (std::int64_t i = 0, n = 0; i < a.shape[0]; ++i)
    for (std::int64_t j = 0; j < a.shape[1]; ++j)
      for (std::int64_t k = 0; k < a.shape[2]; ++k) v.at(k, j, i) = a.values[static_cast<std::size_t>(n++)];
  return v;
}

void expect_same(const reference::volume& actual, const reference::volume& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.size, expected.size) << what;
  double worst = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    worst = std::max(worst, std::abs(actual.values[i] - expected.values[i]));
  EXPECT_LE(worst, tolerance) << what;
}

// The grid of a NIfTI affine (index i, j, k -> RAS mm).
grid grid_from_nifti(const nlohmann::json& affine, const std::vector<std::int64_t>& shape) {
  std::int64_t size[3];
  double spacing[3], origin[3], direction[9];
  for (int c = 0; c < 3; ++c) {
    const auto at = [&](int r, int column) {
      return affine[static_cast<std::size_t>(r)][static_cast<std::size_t>(column)].get<double>();
    };
    size[c] = shape[static_cast<std::size_t>(c)];
    spacing[c] = std::sqrt(at(0, c) * at(0, c) + at(1, c) * at(1, c) + at(2, c) * at(2, c));
    origin[c] = c < 2 ? -at(c, 3) : at(c, 3);
    for (int r = 0; r < 3; ++r) direction[r * 3 + c] = (r < 2 ? -at(r, c) : at(r, c)) / spacing[c];
  }
  return suture::grid_from_itk(size, spacing, origin, direction);
}

grid grid_from_json(const nlohmann::json& p, const std::string& prefix) {
  std::int64_t size[3];
  double spacing[3], origin[3], direction[9];
  for (std::size_t i = 0; i < 3; ++i) {
    size[i] = p.at(prefix + "size")[i];
    spacing[i] = p.at(prefix + "spacing")[i];
    origin[i] = p.at(prefix + "origin")[i];
  }
  for (std::size_t i = 0; i < 9; ++i) direction[i] = p.at(prefix + "direction")[i];
  return suture::grid_from_itk(size, spacing, origin, direction);
}

void expect_same_grid(const grid& actual, const grid& expected, double tolerance, const std::string& what) {
  EXPECT_EQ(actual.extents, expected.extents) << what;
  expect_near(actual.spacing, expected.spacing, tolerance, what + " spacing");
  expect_near(actual.origin, expected.origin, tolerance, what + " origin");
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(actual.direction[i][j], expected.direction[i][j], tolerance) << what;
}

// ---- resampling

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
  SUTURE_NEEDS_ORACLES("itk_resample");
  int compared = 0;
  for (const auto& c : support::oracle_cases("itk_resample")) {
    if (c.name.find("_iso") == std::string::npos) continue;
    const grid in = grid_from_json(c.params, ""), out = grid_from_json(c.params, "out_");
    const geometry_step s = suture::resample{.spacing_mm = out.spacing, .map = coordinate_map::physical}.step(in, here);
    expect_same_grid(s.output, out, 1e-10, c.name);
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

TEST(Resample, OntoAGridMatchesItkValues) {
  SUTURE_NEEDS_ORACLES("itk_resample");
  int compared = 0;
  for (const auto& c : support::oracle_cases("itk_resample")) {
    if (c.params.at("transform").at("type") != "identity" || c.params.at("interpolator") != "linear") continue;
    const grid in = grid_from_json(c.params, ""), out = grid_from_json(c.params, "out_");
    const geometry_step s = suture::resample_to{out}.step(in, here);
    const reference::sampling how{reference::interpolation::linear, reference::outside::half_voxel_constant, -1000};
    expect_same(resampled(load(c.input<double>("x")), s, how), load(c.output<double>("y")), 1e-3, c.name);
    ++compared;
  }
  EXPECT_GE(compared, 4);
}

TEST(Resample, OntoAGridMatchesNibabelValues) {
  SUTURE_NEEDS_ORACLES("orientation");
  int compared = 0;
  for (const auto& c : support::oracle_cases("orientation")) {
    if (c.op != "nibabel.processing.resample_to_output") continue;
    const auto x = c.input<double>("x");
    const grid in = grid_from_nifti(c.params.at("affine"), x.shape);
    const grid out = grid_from_nifti(c.params.at("new_affine"), c.params.at("new_shape"));
    const geometry_step s = suture::resample_to{out}.step(in, here);
    const reference::sampling how{reference::interpolation::linear, reference::outside::scipy_constant, -50};
    const reference::volume source = load_nifti(x), expected = load_nifti(c.output<double>("y"));
    const reference::volume actual = resampled(source, s, how);
    ASSERT_EQ(actual.size, expected.size);
    std::size_t i = 0, checked = 0;
    for (std::int64_t z = 0; z < out.extents[0]; ++z)
      for (std::int64_t y = 0; y < out.extents[1]; ++y)
        for (std::int64_t xx = 0; xx < out.extents[2]; ++xx, ++i) {
          // scipy's constant rule jumps at the first and last voxel centre: leave out what lies within 1e-3 of it.
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
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

TEST(Resize, MatchesTorchAndSkimageValues) {
  SUTURE_NEEDS_ORACLES("zoom3d");
  int compared = 0;
  for (const auto& c : support::oracle_cases("zoom3d")) {
    const bool torch = c.op == "torch.nn.functional.interpolate" && c.params.at("mode") == "trilinear";
    const bool skimage = c.name.ends_with("_o1_noaa");
    if (!torch && !skimage) continue;
    const reference::volume x = load(c.input<double>("x"));
    const nlohmann::json& size = c.params.at(torch ? "size" : "output_shape");
    const bool align = torch && c.params.at("align_corners").get<bool>();
    const geometry_step s = suture::resize{.extents = {size[0], size[1], size[2]},
                                           .map = align ? coordinate_map::align_corners : coordinate_map::half_pixel}
                                .step(plain_grid({x.size[0], x.size[1], x.size[2]}), here);
    const reference::sampling how{reference::interpolation::linear, reference::outside::edge, 0};
    expect_same(resampled(x, s, how), load(c.output<double>("y")), 0.04, c.name);  // 1e-5 of the range of HU
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

TEST(Resample, RefusesWhatItCannotDo) {
  const grid g = plain_grid({5, 64, 64}, {0.5, 1, 1});
  EXPECT_REFUSED((suture::resample{.spacing_mm = {-1, 1, 1}}.step(g, here)), "spacing_mm (-1, 1, 1)");
  EXPECT_REFUSED((suture::resample{.spacing_mm = {NAN, 1, 1}}.step(g, here)), "spacing_mm (nan");
  EXPECT_REFUSED((suture::resample{.spacing_mm = {50, 1, 1}}.step(g, here)),
                 "leaves no voxel of the volume (5, 64, 64)");
  EXPECT_REFUSED((suture::resample{.spacing_mm = {1e-6, 1, 1}}.step(g, here)), "2097152");
  EXPECT_REFUSED((suture::resample{.spacing_mm = {1e-300, 1, 1}}.step(g, here)), "2097152");
  EXPECT_REFUSED((suture::resample{.extents = {-3, 0, 0}}.step(g, here)), "extents (-3, 0, 0)");
  EXPECT_REFUSED((suture::resize{.extents = {1 << 22, 0, 0}}.step(g, here)), "2097152");
  EXPECT_REFUSED((suture::resize{.extents = {3, 3, 3}, .map = coordinate_map::physical}.step(g, here)), "half_pixel");
  EXPECT_REFUSED(
      (suture::resize{.extents = {3, 3, 3}, .map = coordinate_map::align_corners}.step(plain_grid({1, 4, 4}), here)),
      "align_corners cannot spread one voxel");
  EXPECT_REFUSED((suture::resample_to{plain_grid({4, 0, 4})}.step(g, here)), "extents (4, 0, 4)");
}

// ---- crops and padding

TEST(Crop, TakesTheBoxAndMovesTheOrigin) {
  const grid g = oblique_grid({9, 12, 20});
  const geometry_step s = suture::crop{.start = {2, 0, 7}, .size = {3, 12, 5}}.step(g, here);
  EXPECT_EQ(s.output.extents, (extent3{3, 12, 5}));
  EXPECT_EQ(s.pull({1, 4, 2}), (point3{3, 4, 9}));
  expect_place_kept(g, s, "crop");
}

TEST(Crop, CentreStartsWhereMonaiAndNnunetStart) {
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

TEST(Crop, EvaluationIsTheCentre) {
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

// ---- relabelling of axes

// Values 100 z + 10 y + x of a volume read through a relabelling.
std::vector<double> read(const geometry_step& s, const extent3& extents) {
  reference::volume v({extents[0], extents[1], extents[2]});
  for (std::int64_t z = 0; z < extents[0]; ++z)
    for (std::int64_t y = 0; y < extents[1]; ++y)
      for (std::int64_t x = 0; x < extents[2]; ++x) v.at(z, y, x) = static_cast<double>(100 * z + 10 * y + x);
  return resampled(v, s, {reference::interpolation::nearest, reference::outside::blend_constant, -1}).values;
}

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
    const suture::flip f = suture::random_flip{}.draw(random, grid{}, here);
    ++counts[(f.axes[0] ? 1 : 0) + (f.axes[1] ? 2 : 0) + (f.axes[2] ? 4 : 0)];
  }
  for (int c : counts) EXPECT_NEAR(c, 1000, 150);  // five standard deviations
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    suture::draws random(5, 1, sample, 4);
    EXPECT_EQ((suture::random_flip{.axis_probability = {0, 1, 0}}.draw(random, grid{}, here).axes),
              (suture::vec3<bool>{false, true, false}));
  }
  suture::draws random(5, 1, 0, 4);
  EXPECT_REFUSED((suture::random_flip{.axis_probability = {0, 1.5f, 0}}.draw(random, grid{}, here)),
                 "axis_probability (0, 1.5, 0)");
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

TEST(Relabelling, KeepsPlacesInPhysicalSpace) {
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

TEST(Relabelling, RefusesAxesThatAreNone) {
  const grid g = plain_grid({3, 4, 5});
  suture::draws random(1, 0, 0, 5);
  EXPECT_REFUSED((suture::rot90{.axes = {1, 1}}.step(g, here)), "axes (1, 1)");
  EXPECT_REFUSED((suture::rot90{.axes = {0, 3}}.step(g, here)), "axes (0, 3)");
  EXPECT_REFUSED((suture::random_rot90{.max_quarter_turns = 4}.draw(random, g, here)), "max_quarter_turns 4");
  EXPECT_REFUSED((suture::permute{.order = {0, 1, 1}}.step(g, here)), "order (0, 1, 1)");
  EXPECT_REFUSED((suture::permute{.order = {0, 1, 3}}.step(g, here)), "order (0, 1, 3)");
  EXPECT_REFUSED((suture::orient{.to = "RA"}.step(g, here)), "\"RA\"");
  EXPECT_REFUSED((suture::orient{.to = "RAX"}.step(g, here)), "\"RAX\"");
  EXPECT_REFUSED((suture::orient{.to = "RLS"}.step(g, here)), "\"RLS\"");
}

TEST(Orient, MatchesNibabel) {
  SUTURE_NEEDS_ORACLES("orientation");
  int compared = 0;
  for (const auto& c : support::oracle_cases("orientation")) {
    if (c.op != "nibabel.orientations") continue;
    const auto x = c.input<double>("x"), y = c.output<double>("y");
    const std::string code = c.params.at("target");
    const geometry_step s = suture::orient{.to = code}.step(grid_from_nifti(c.params.at("affine"), x.shape), here);
    expect_same_grid(s.output, grid_from_nifti(c.params.at("new_affine"), y.shape), 1e-9, c.name);
    const reference::sampling how{reference::interpolation::nearest, reference::outside::blend_constant, -99999};
    expect_same(resampled(load_nifti(x), s, how), load_nifti(y), 0, c.name);
    ++compared;
  }
  EXPECT_EQ(compared, 8);
}

// ---- affine

TEST(Affine, MonaiNumbers) {
  // In the plane: rotation by 30 degrees, shear (.1, .2), translation (3, -2), scale (1.1, .9).
  const grid g = plain_grid({1, 41, 51});
  const geometry_step s = suture::affine{.rotate_deg = {30, 0, 0},
                                         .scale = {1, 1.1, 0.9},
                                         .shear = {0, 0, 0, 0.1, 0, 0.2},
                                         .translate = {0, 3, -2},
                                         .convention = affine_convention::monai}
                              .step(g, here);
  expect_near(s.pull.linear, {{{1, 0, 0}, {0, 0.8426279442, -0.3720577137}, {0, 0.7405255888, 0.8244228634}}}, 1e-9);
  const point3 moved = s.pull(g.center());
  EXPECT_NEAR(moved[1] - 20, 3.1248711306, 1e-9);
  EXPECT_NEAR(moved[2] - 25, 0.1875644347, 1e-9);

  const auto rotation =
      suture::affine{.rotate_deg = {0.1 / degree, 0.2 / degree, 0.3 / degree}, .convention = affine_convention::monai}
          .step(plain_grid({9, 9, 9}), here);
  expect_near(rotation.pull.linear,
              {{{0.9362933636, -0.2896294776, 0.1986693308},
                {0.3129918258, 0.9447024860, -0.0978433950},
                {-0.1593450793, 0.1537919980, 0.9751703272}}},
              1e-9);
}

TEST(Affine, MonaiValues) {
  SUTURE_NEEDS_ORACLES("torch_grid");
  const auto c = support::find_case("torch_grid", "monai_affine");
  const reference::volume x = load(c.input<double>("x"));
  const nlohmann::json &r = c.params.at("rotate_params"), &h = c.params.at("shear_params"),
                       &t = c.params.at("translate_params"), &k = c.params.at("scale_params");
  const auto angle = [&](std::size_t i) { return r[i].get<double>() / degree; };
  const geometry_step s = suture::affine{.rotate_deg = {angle(0), angle(1), angle(2)},
                                         .scale = {k[0], k[1], k[2]},
                                         .shear = {h[0], h[1], h[2], h[3], h[4], h[5]},
                                         .translate = {t[0], t[1], t[2]},
                                         .convention = affine_convention::monai}
                              .step(plain_grid({x.size[0], x.size[1], x.size[2]}, {5, 2, 3}), here);
  expect_same(resampled(x, s, {reference::interpolation::linear, reference::outside::clamp_coordinate, 0}),
              load(c.output<double>("y")), 0.04, c.name);  // float32 coordinates, 1e-5 of the range of HU
}

TEST(Affine, NnunetNumbers) {
  const point3 degrees{0.1 / degree, 0.2 / degree, 0.3 / degree};
  const auto s =
      suture::affine{.rotate_deg = degrees, .scale = {1.2, 1.2, 1.2}, .convention = affine_convention::nnunet}.step(
          plain_grid({9, 9, 9}), here);
  expect_near(s.pull.linear,
              {{{1.1235520363, -0.3301150168, 0.2620207958},
                {0.3475553732, 1.1477101030, -0.0443484162},
                {-0.2384031970, 0.1174120740, 1.1702043926}}},
              1e-9);
}

TEST(Affine, NnunetQuarterTurn) {
  // in = 10 i + j on 4 x 4, turned by +90 degrees: rows 30 20 10 0 to 33 23 13 3, exactly.
  const grid g = plain_grid({1, 4, 4});
  const auto s = suture::affine{.rotate_deg = {90, 0, 0}, .convention = affine_convention::nnunet}.step(g, here);
  EXPECT_EQ(read(s, g.extents), (std::vector<double>{30, 20, 10, 0, 31, 21, 11, 1, 32, 22, 12, 2, 33, 23, 13, 3}));
  EXPECT_EQ(s.pull({0, 0, 1}), (point3{0, 2, 0}));
}

TEST(Affine, QuarterTurnsAreExact) {
  const grid g = plain_grid({5, 5, 5});
  for (int axis = 0; axis < 3; ++axis)
    for (int turns = -8; turns <= 8; ++turns) {
      suture::affine a{.convention = affine_convention::nnunet};
      a.rotate_deg[axis] = 90.0 * turns;
      const auto s = a.step(g, here);
      const double sine[] = {0, 1, 0, -1};
      const int i = (axis + 1) % 3, j = (axis + 2) % 3, k = ((turns % 4) + 4) % 4;
      EXPECT_EQ(s.pull.linear[i][i], sine[(k + 1) % 4]);
      EXPECT_EQ(s.pull.linear[j][i], sine[k]);
      EXPECT_EQ(s.pull.linear[i][j], -sine[k]);
      EXPECT_EQ(s.pull.linear[axis][axis], 1);
    }
}

TEST(Affine, AnglesMatchTheStandardLibrary) {
  for (double degrees = -400; degrees <= 400; degrees += 0.73) {
    const auto s = suture::affine{.rotate_deg = {degrees, 0, 0}, .convention = affine_convention::nnunet}.step(
        plain_grid({5, 5, 5}), here);
    ASSERT_NEAR(s.pull.linear[1][1], std::cos(degrees * degree), 4e-15);
    ASSERT_NEAR(s.pull.linear[2][1], std::sin(degrees * degree), 4e-15);
  }
}

TEST(Affine, ItkEulerIsItk) {
  SUTURE_NEEDS_ORACLES("itk_resample");
  const auto c = support::find_case("itk_resample", "lung_euler_linear");
  const grid g = grid_from_json(c.params, "");
  const nlohmann::json& t = c.params.at("transform");
  const nlohmann::json &a = t.at("angles_xyz"), &move = t.at("translation");
  const auto angle = [&](std::size_t i) { return a[i].get<double>() / degree; };
  const auto s = suture::affine{.rotate_deg = {angle(2), angle(1), angle(0)},
                                .translate = {move[2], move[1], move[0]},
                                .convention = affine_convention::itk}
                     .step(g, here);
  for (const point3& p : corners(g)) {
    const point3 out = g.index_to_physical()(p), in = g.index_to_physical()(s.pull(p));
    for (std::size_t i = 0; i < 3; ++i) {  // x, y, z
      double expected = t.at("offset")[i];
      for (std::size_t j = 0; j < 3; ++j)
        expected += t.at("matrix")[3 * i + j].get<double>() * out[static_cast<int>(2 - j)];
      EXPECT_NEAR(in[static_cast<int>(2 - i)], expected, 1e-9);
    }
  }
  const reference::sampling how{reference::interpolation::linear, reference::outside::half_voxel_constant, -1000};
  expect_same(resampled(load(c.input<double>("x")), s, how), load(c.output<double>("y")), 1e-3, c.name);
}

TEST(Affine, TorchioIsInPatientSpace) {
  const grid g = oblique_grid({9, 12, 20});
  // TorchIO lists (x, y, z); here the triples are (z, y, x).
  const auto s = suture::affine{.rotate_deg = {12, -7, 25},
                                .scale = {1.1, 0.8, 1.3},
                                .translate = {4, -3, 2},
                                .convention = affine_convention::torchio}
                     .step(g, here);
  const reference::affine forward = reference::torchio_forward({25, -7, 12}, {1.3, 0.8, 1.1}, {2, -3, 4});
  const point3 center = g.index_to_physical()(g.center());
  for (const point3& p : corners(g)) {
    const point3 in = g.index_to_physical()(s.pull(p));
    const reference::point moved = forward({in[2] - center[2], in[1] - center[1], in[0] - center[0]});
    const point3 expected = g.index_to_physical()(p);
    expect_near({moved[2] + center[0], moved[1] + center[1], moved[0] + center[2]}, expected, 1e-9);
  }
}

TEST(Affine, KorniaTurnsAboutItsVector) {
  const grid g = plain_grid({9, 12, 20}, {5, 1, 1});
  const double r[3] = {25, -7, 12};  // x, y, z, degrees
  const auto s = suture::affine{.rotate_deg = {r[2], r[1], r[0]},
                                .scale = {1.1, 0.8, 1.3},
                                .translate = {4, -3, 2},
                                .convention = affine_convention::kornia}
                     .step(g, here);
  // The rotation by -r through its unit quaternion, in (x, y, z).
  const double angle = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]), half = -0.5 * angle * degree;
  const double w = std::cos(half), x = std::sin(half) * r[0] / angle, y = std::sin(half) * r[1] / angle,
               z = std::sin(half) * r[2] / angle;
  const reference::matrix turn{{{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                                {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                                {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}}};
  const reference::affine forward{reference::product(turn, reference::diagonal({1.3, 0.8, 1.1})), {2, -3, 4}};
  const point3 c = g.center();
  for (const point3& p : corners(g)) {
    const point3 in = s.pull(p);
    const reference::point moved = forward({in[2] - c[2], in[1] - c[1], in[0] - c[0]});
    expect_near({moved[2] + c[0], moved[1] + c[1], moved[0] + c[2]}, p, 1e-10);
  }
}

// The forward map of the default convention from its definition, in long form.
TEST(Affine, DefaultWorksInMillimetres) {
  const grid g = oblique_grid({9, 12, 20});
  const auto s = suture::affine{
      .rotate_deg = {12, -7, 25},
      .scale = {1.1, 0.8, 1.3},
      .shear = {0.1, -0.05, 0.2, 0.02, 0.03, -0.1},
      .translate = {
          4, -3, 2}}.step(g, here);
  using reference::product;
  const reference::matrix turn =
      product(product(reference::rotation_2(25 * degree), reference::rotation_1(-7 * degree)),
              reference::rotation_0(12 * degree));
  const reference::matrix shear{{{1, 0.1, -0.05}, {0.2, 1, 0.02}, {0.03, -0.1, 1}}};
  const reference::affine forward{product(product(turn, shear), reference::diagonal({1.1, 0.8, 1.3})), {4, -3, 2}};
  for (const point3& p : corners(g)) {
    const point3 in = s.pull(p), c = g.center();
    reference::point mm{};
    for (int k = 0; k < 3; ++k) mm[static_cast<std::size_t>(k)] = (in[k] - c[k]) * g.spacing[k];
    const reference::point moved = forward(mm);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(moved[static_cast<std::size_t>(k)] / g.spacing[k] + c[k], p[k], 1e-10);
  }
}

TEST(Affine, DefaultRotationIsRigidWhereVoxelsAreNot) {
  const grid g = plain_grid({11, 64, 64}, {5, 0.7, 0.7});
  const auto s = suture::affine{.rotate_deg = {10, 20, 30}}.step(g, here);
  const auto distance = [&](const point3& a, const point3& b) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) sum += std::pow((a[k] - b[k]) * g.spacing[k], 2);
    return std::sqrt(sum);
  };
  for (const point3& p : corners(g))
    for (const point3& q : corners(g)) EXPECT_NEAR(distance(s.pull(p), s.pull(q)), distance(p, q), 1e-10);
  EXPECT_EQ(s.output.extents, g.extents);
  EXPECT_EQ(s.output.origin, g.origin);
}

TEST(Affine, DefaultMovesContentForwards) {
  const grid g = plain_grid({11, 21, 21}, {5, 0.5, 0.5});
  // Content moves along +translate: the output at index 12 shows what stood 1 mm, two voxels, before.
  expect_near(suture::affine{.translate = {5, 1, 0}}.step(g, here).pull({6, 12, 10}), {5, 10, 10}, 1e-12);
  // Scale above 1 enlarges: output 4 voxels from the centre shows what stood 2 from it.
  expect_near(suture::affine{.scale = {1, 2, 2}}.step(g, here).pull({5, 14, 6}), {5, 12, 8}, 1e-12);
  // +90 degrees about axis 0 takes the y axis to the x axis.
  expect_near(suture::affine{.rotate_deg = {90, 0, 0}}.step(g, here).pull({5, 10, 14}), {5, 14, 10}, 1e-12);
}

TEST(Affine, NothingIsTheIdentity) {
  const grid g = oblique_grid({9, 12, 20});
  for (const auto convention : {affine_convention::suture, affine_convention::itk, affine_convention::torchio,
                                affine_convention::monai, affine_convention::nnunet, affine_convention::kornia})
    for (const point3& p : corners(g))
      expect_near(suture::affine{.convention = convention}.step(g, here).pull(p), p, 1e-13);
  for (const point3& p : corners(g)) EXPECT_EQ(suture::affine{}.step(g, here).pull(p), p);
}

TEST(Affine, MatrixAboutCentreOrIndexZero) {
  const grid g = plain_grid({5, 7, 9});
  const matrix3 m{{{1, 0.1, 0}, {0, 2, 0}, {0.3, 0, 1}}};
  const auto centered = suture::affine_matrix{.linear = m, .translation = {1, 2, 3}}.step(g, here);
  expect_near(centered.pull(g.center()), {3, 5, 7}, 1e-14);
  expect_near(centered.pull({3, 3, 4}), {4, 5, 7.3}, 1e-14);
  const auto plain = suture::affine_matrix{.linear = m, .translation = {1, 2, 3}, .about_center = false}.step(g, here);
  EXPECT_EQ(plain.pull({0, 0, 0}), (point3{1, 2, 3}));
}

TEST(Affine, RefusesWhatCannotBeInverted) {
  const grid g = plain_grid({5, 7, 9});
  EXPECT_REFUSED((suture::affine{.scale = {1, 0, 1}}.step(g, here)), "scale (1, 0, 1) must be positive");
  EXPECT_REFUSED((suture::affine{.scale = {1, NAN, 1}}.step(g, here)), "scale (1, nan, 1)");
  EXPECT_REFUSED((suture::affine{.scale = {1e-200, 1e-200, 1}}.step(g, here)), "too extreme");
  EXPECT_REFUSED((suture::affine{.rotate_deg = {INFINITY, 0, 0}}.step(g, here)), "rotate_deg (inf");
  EXPECT_REFUSED((suture::affine{.translate = {0, NAN, 0}}.step(g, here)), "translate (0, nan");
  EXPECT_REFUSED((suture::affine{.shear = {1, 0, 1, 0, 0, 0}}.step(g, here)), "shear with determinant 0");
  EXPECT_REFUSED((suture::affine{.shear = {1}, .convention = affine_convention::nnunet}.step(g, here)), "shear");
  EXPECT_REFUSED((suture::affine{.translate = {1, 0, 0}, .convention = affine_convention::nnunet}.step(g, here)),
                 "nnunet convention has no translation");
  EXPECT_REFUSED((suture::affine{.scale = {1, 2, 1}, .convention = affine_convention::itk}.step(g, here)),
                 "itk convention has no scale");
  EXPECT_REFUSED((suture::affine_matrix{.linear = {{{1, 1, 0}, {1, 1, 0}, {0, 0, 1}}}}.step(g, here)), "determinant 0");
  EXPECT_REFUSED((suture::affine_matrix{.translation = {0, 0, INFINITY}}.step(g, here)), "translation");
}

TEST(RandomAffine, DrawsWithinItsRanges) {
  const suture::random_affine op{.rotate_deg = {{-30, 10}, {0, 0}, {5, 6}},
                                 .scale = {.85f, 1.25f},
                                 .shear = .1f,
                                 .translate = {0, 10, 20},
                                 .probability = .5f};
  double lowest = 10, highest = -100, mean = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    suture::draws random(9, 0, sample, 1);
    const suture::affine a = op.draw(random, grid{}, here);
    EXPECT_TRUE(a.rotate_deg[0] >= -30 && a.rotate_deg[0] < 10);
    EXPECT_EQ(a.rotate_deg[1], 0);
    EXPECT_TRUE(a.rotate_deg[2] >= 5 && a.rotate_deg[2] < 6);
    EXPECT_TRUE(a.scale[0] >= .85f && a.scale[0] < 1.25f);
    EXPECT_EQ(a.scale[1], a.scale[0]);
    EXPECT_EQ(a.scale[2], a.scale[0]);
    for (double s : a.shear.v) EXPECT_LE(std::abs(s), .1f);
    EXPECT_EQ(a.translate[0], 0);
    EXPECT_LE(std::abs(a.translate[1]), 10);
    EXPECT_LE(std::abs(a.translate[2]), 20);
    lowest = std::min(lowest, a.rotate_deg[0]);
    highest = std::max(highest, a.rotate_deg[0]);
    mean += a.rotate_deg[0] / 2000;
  }
  EXPECT_LT(lowest, -29.8);
  EXPECT_GT(highest, 9.8);
  EXPECT_NEAR(mean, -10, 1.3);  // five standard deviations of the mean, 40 / sqrt(12 * 2000) each
}

TEST(RandomAffine, NoRangeShiftsAnother) {
  suture::draws a(9, 0, 3, 1), b(9, 0, 3, 1);
  const suture::affine with =
      suture::random_affine{.rotate_deg = 15, .scale = {.5, 2}, .shear = .1f, .translate = 8}.draw(a, grid{}, here);
  const suture::affine without = suture::random_affine{.translate = 8}.draw(b, grid{}, here);
  EXPECT_EQ(with.translate, without.translate);
  EXPECT_NE(with.translate[0], 0);
  EXPECT_EQ(a.uniform(0, 1), b.uniform(0, 1));
}

TEST(RandomAffine, AxesDrawSeparateScalesOnRequest) {
  suture::draws random(9, 0, 3, 1);
  const suture::affine a =
      suture::random_affine{.scale = {{.5f, 1}, {1, 2}, {3, 4}}, .isotropic_scale = false}.draw(random, grid{}, here);
  EXPECT_TRUE(a.scale[0] < 1 && a.scale[1] >= 1 && a.scale[1] < 2 && a.scale[2] >= 3);
}

TEST(RandomAffine, RefusesBadRanges) {
  suture::draws random(9, 0, 3, 1);
  const auto drawn = [&](const suture::random_affine& op) { return op.draw(random, grid{}, here); };
  EXPECT_REFUSED(drawn({.rotate_deg = {10, -10}}), "rotate_deg [10, -10]");
  EXPECT_REFUSED(drawn({.scale = 0.2f}), "scale [-0.2, 0.2] must be positive");
  EXPECT_REFUSED(drawn({.scale = {{.5f, 1}, {1, 2}, {1, 2}}}), "isotropic_scale");
  EXPECT_REFUSED(drawn({.shear = INFINITY}), "shear");
  EXPECT_REFUSED(drawn({.translate = NAN}), "translate");
}

// ---- elastic

suture::elastic elastic_with(suture::elastic e, std::uint64_t sample = 0) {
  suture::draws random(3, 0, sample, 2);
  e.field = random.field(3);
  return e;
}

TEST(Elastic, ControlCoordinatesFollowTheSplineDefinition) {
  for (const bool itk : {false, true})
    for (const std::int64_t n : {15, 16, 17, 64, 127}) {
      const grid g = plain_grid({n, 40, 64}, {1, 2, 0.5});
      const auto d =
          suture::elastic{.max_displacement_mm = 0.5, .control_points = {7, 5, 9}, .itk_domain = itk}.deform(g, here);
      for (const point3& p : corners(g)) {
        const point3 q = d.to_control(p);
        for (int k = 0; k < 3; ++k)
          EXPECT_NEAR(q[k], reference::control_position(p[k], g.extents[k], d.control_points[k], itk ? 0.125 : 0),
                      1e-12);
      }
    }
}

TEST(Elastic, PublishedDisplacements) {
  const std::vector<double> phi{0, 0, 1, -1, .5, 0, 0};
  const grid g = plain_grid({64, 64, 64});
  const auto displacement = [&](bool itk, double v) {
    const auto d =
        suture::elastic{.max_displacement_mm = 6, .control_points = {7, 7, 7}, .itk_domain = itk}.deform(g, here);
    return reference::bspline_field_1d(phi, d.to_control({v, 0, 0})[0]);
  };
  EXPECT_NEAR(displacement(false, 0), 0.1827596029, 1e-9);
  EXPECT_NEAR(displacement(false, 10), 0.5217081706, 1e-9);
  EXPECT_NEAR(displacement(false, 63), 0.0913772583, 1e-8);
  EXPECT_NEAR(displacement(true, 0), 0.1868396589, 1e-9);
  EXPECT_NEAR(displacement(true, 31.5), -0.4166666667, 1e-9);
}

TEST(Elastic, ControlPointsFromSpacing) {
  // Extents of 100, 40 and 15 mm hold round(extent / 32) cells, at least one: 3, 1, 1; three more points than cells.
  const auto d = suture::elastic{.max_displacement_mm = 1}.deform(plain_grid({20, 80, 15}, {5, 0.5, 1}), here);
  EXPECT_EQ(d.control_points, (suture::vec3<std::int32_t>{6, 4, 4}));
  expect_near(d.amplitude, {0.2, 2, 1}, 1e-15);
  // Two locked layers leave nothing of four control points: such an axis is not locked.
  EXPECT_EQ(d.locked, (suture::vec3<std::int32_t>{2, 0, 0}));
  const auto each = suture::elastic{.control_spacing_mm = {50, 10, 5}, .max_displacement_mm = {1, 2, 0.5}}.deform(
      plain_grid({20, 80, 15}, {5, 0.5, 1}), here);
  EXPECT_EQ(each.control_points, (suture::vec3<std::int32_t>{5, 7, 6}));
  expect_near(each.amplitude, {0.2, 4, 0.5}, 1e-15);
}

TEST(Elastic, ControlValuesAreTheFieldsNumbers) {
  const auto op = elastic_with({.max_displacement_mm = {2, 3, 2.5}, .locked_borders = 1, .control_points = {5, 6, 7}});
  const auto d = op.deform(plain_grid({60, 60, 60}, {2, 1, 0.5}), here);
  const double amplitude[] = {1, 3, 5};
  std::set<float> seen;
  int moving = 0;
  for (std::int32_t k = 0; k < 3; ++k)
    for (std::int32_t z = 0; z < 5; ++z)
      for (std::int32_t y = 0; y < 6; ++y)
        for (std::int32_t x = 0; x < 7; ++x) {
          const float value = suture::control_value(d, k, z, y, x);
          if (z == 0 || y == 0 || x == 0 || z == 4 || y == 5 || x == 6) {
            ASSERT_EQ(value, 0);
            continue;
          }
          const auto element = static_cast<std::uint64_t>(((k * 5 + z) * 6 + y) * 7 + x);
          const double u = static_cast<double>(op.field.uniform(element));  // a multiple of 2^-24: 2u - 1 is exact
          ASSERT_EQ(value, static_cast<float>(amplitude[k] * (2 * u - 1)));
          seen.insert(value);
          ++moving;
        }
  EXPECT_EQ(moving, 3 * 3 * 4 * 5);
  EXPECT_GT(seen.size(), static_cast<std::size_t>(moving - 3));
  EXPECT_LT(*seen.begin(), -4);
  EXPECT_GT(*seen.rbegin(), 4);
}

TEST(Elastic, NeverFoldsByDefault) {
  // The cap must lie below the smallest displacement that can fold, cell / K (Choi and Lee), found here by search.
  const grid volume = plain_grid({64, 64, 64}), slice = plain_grid({1, 64, 64});
  const auto allowed = [&](const grid& g, double cells_of_displacement) {
    try {
      (void)suture::elastic{.max_displacement_mm = 16 * cells_of_displacement, .control_points = {7, 7, 7}}.deform(
          g, here);
      return true;
    } catch (const suture::error&) {
      return false;
    }
  };
  EXPECT_TRUE(allowed(volume, 0.3999));
  EXPECT_FALSE(allowed(volume, 1 / reference::folding_constant(3)));
  EXPECT_TRUE(allowed(slice, 0.4799));
  EXPECT_FALSE(allowed(slice, 1 / reference::folding_constant(2)));
}

TEST(Elastic, ASliceStaysInItsPlane) {
  const auto d = elastic_with({.max_displacement_mm = 5}).deform(plain_grid({1, 256, 256}, {5, 1, 1}), here);
  EXPECT_EQ(d.amplitude[0], 0);
  EXPECT_EQ(d.amplitude[1], 5);
  EXPECT_EQ(d.locked, (suture::vec3<std::int32_t>{0, 2, 2}));
  EXPECT_EQ(suture::control_value(d, 0, 1, 5, 5), 0);
  EXPECT_NE(suture::control_value(d, 1, 1, 5, 5), 0);
}

TEST(Elastic, SamplesDiffer) {
  const grid g = plain_grid({64, 64, 64});
  const auto value = [&](std::uint64_t sample) {
    suture::draws random(3, 0, sample, 2);
    const suture::elastic e =
        suture::random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 2}.draw(random, g, here);
    return suture::control_value(e.deform(g, here), 0, 4, 4, 4);
  };
  EXPECT_EQ(value(1), value(1));
  EXPECT_NE(value(1), value(2));
}

TEST(Elastic, DrawingTakesNoSlot) {
  suture::draws a(3, 0, 1, 2), b(3, 0, 1, 2);
  (void)suture::random_elastic{}.draw(a, grid{}, here);
  EXPECT_EQ(a.uniform(0, 1), b.uniform(0, 1));
}

TEST(Elastic, RefusesWhatMayFoldOrMakesNoGrid) {
  const grid g = plain_grid({64, 64, 64});
  const std::string folding =
      message_of([&] { (void)suture::elastic{.control_spacing_mm = 16, .max_displacement_mm = 8}.deform(g, here); });
  EXPECT_NE(
      folding.find("max_displacement_mm 8 along axis 0 may fold space: with control points 16 mm apart at most 6.4 mm"),
      std::string::npos)
      << folding;
  EXPECT_NO_THROW(
      ((void)suture::elastic{.control_spacing_mm = 16, .max_displacement_mm = 8, .allow_folding = true}.deform(g,
                                                                                                               here)));
  EXPECT_REFUSED((suture::elastic{.control_spacing_mm = 0.0}.deform(g, here)), "control_spacing_mm 0 must be positive");
  EXPECT_REFUSED((suture::elastic{.control_spacing_mm = 1e-6}.deform(g, here)), "cells over 64 mm");
  EXPECT_REFUSED((suture::elastic{.max_displacement_mm = -1}.deform(g, here)), "max_displacement_mm -1");
  EXPECT_REFUSED((suture::elastic{.max_displacement_mm = NAN, .allow_folding = true}.deform(g, here)),
                 "max_displacement_mm nan");
  EXPECT_REFUSED((suture::elastic{.locked_borders = -1}.deform(g, here)), "locked_borders -1");
  EXPECT_REFUSED((suture::elastic{.control_points = {3, 7, 7}}.deform(g, here)), "control_points (3, 7, 7)");
}

}  // namespace
