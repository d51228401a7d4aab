// SPDX-License-Identifier: Apache-2.0
// Elastic deformations against the definition.
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "ref/elastic.hpp"
#include "support/expect_says.hpp"
#include "support/geometry.hpp"
#include "suture/suture.hpp"

namespace {

using namespace support;

suture::elastic elastic_with(suture::elastic e, std::uint64_t sample = 0) {
  suture::draws random(3, 0, sample, 2);
  e.field = random.field(3);
  return e;
}

TEST(Elastic, ControlCoordinatesFollowTheSplineDefinition) {
  for (const auto& [mesh, epsilon] :
       {std::pair{suture::mesh_span::faces, 0.0}, std::pair{suture::mesh_span::itk, 0.125},
        std::pair{suture::mesh_span::centers, -0.5}})
    for (const std::int64_t n : {15, 16, 17, 64, 127}) {
      const grid g = plain_grid({n, 40, 64}, {1, 2, 0.5});
      const auto d =
          suture::elastic{.max_displacement_mm = 0.5, .control_points = {7, 5, 9}, .mesh = mesh}.deform(g, here);
      for (const point3& p : corners(g)) {
        const point3 q = d.to_control(p);
        for (int k = 0; k < 3; ++k)
          EXPECT_NEAR(q[k], reference::control_position(p[k], g.extents[k], d.control_points[k], epsilon), 1e-12);
      }
    }
}

TEST(Elastic, PublishedDisplacements) {
  const std::vector<double> phi{0, 0, 1, -1, .5, 0, 0};
  const grid g = plain_grid({64, 64, 64});
  const auto displacement = [&](bool itk, double v) {
    const auto mesh = itk ? suture::mesh_span::itk : suture::mesh_span::faces;
    const auto d = suture::elastic{.max_displacement_mm = 6, .control_points = {7, 7, 7}, .mesh = mesh}.deform(g, here);
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

// A pad behind an elastic reaches beyond its grid. In an image of x coordinates, what is read less where it stands is
// the displacement.
TEST(Elastic, GoesOnBeyondItsGridAsOnItsRim) {
  constexpr std::int64_t n = 40, margin = 8, inner = n - 2 * margin;
  const grid g = plain_grid({4, n, n});
  std::vector<float> in(4 * n * n), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % n);
  suture::elastic bent{
      .max_displacement_mm = 3, .locked_borders = 0, .control_points = {4, 6, 6}, .limit_to_safe = true};
  bent.field = suture::draws(3, 0, 1, 2).field(3);
  const auto p = suture::plan(suture::center_crop{{4, inner, inner}} | bent |
                                  suture::pad{.before = {0, margin, margin}, .after = {0, margin, margin}} |
                                  suture::sampling<suture::linear, suture::edge>{},
                              g);
  suture::run(suture::cpu{}, p,
              suture::image(suture::contiguous<const float>(in.data(), g), suture::contiguous(out.data(), g)));
  const auto displacement = [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    return static_cast<double>(out[static_cast<std::size_t>((z * n + y) * n + x)]) - static_cast<double>(x);
  };
  double largest = 0;
  for (std::int64_t z = 0; z < 4; ++z)
    for (std::int64_t y = margin; y < n - margin; ++y)
      for (const auto& [rim, step] : {std::pair{margin, -1}, {n - margin - 1, 1}}) {
        const double beyond = displacement(z, y, rim + step);
        // The rim is half a voxel from the last center.
        EXPECT_NEAR(beyond, displacement(z, y, rim), .5) << z << ", " << y;
        largest = std::max(largest, std::abs(beyond));
        for (int further = 2; further <= 4; ++further)
          EXPECT_NEAR(displacement(z, y, rim + further * step), beyond, 1e-5) << z << ", " << y << ", " << further;
      }
  EXPECT_GT(largest, .7);
}

TEST(Elastic, ASliceStaysInItsPlane) {
  const auto d = elastic_with({.max_displacement_mm = 5}).deform(plain_grid({1, 256, 256}, {5, 1, 1}), here);
  EXPECT_EQ(d.amplitude[0], 0);
  EXPECT_EQ(d.amplitude[1], 5);
  EXPECT_EQ(d.locked, (suture::vec3<std::int32_t>{0, 2, 2}));
  EXPECT_EQ(suture::control_value(d, 0, 1, 5, 5), 0);
  EXPECT_NE(suture::control_value(d, 1, 1, 5, 5), 0);
}

TEST(Elastic, ASliceAveragesFourLayersOfControlPoints) {
  for (const auto mesh : {suture::mesh_span::faces, suture::mesh_span::centers, suture::mesh_span::itk}) {
    const auto d = elastic_with({.max_displacement_mm = 5, .mesh = mesh}).deform(plain_grid({1, 256, 256}), here);
    ASSERT_EQ(d.control_points[0], 4);
    const double weights[] = {1, 23, 23, 1};
    double squares = 0;
    for (std::size_t layer = 0; layer < 4; ++layer) {
      std::vector<double> values(4, 0);
      values[layer] = 1;
      const double share = reference::bspline_field_1d(values, d.to_control({0, 128, 128})[0]);
      EXPECT_NEAR(share, weights[layer] / 48, 1e-12);
      squares += share * share;
    }
    EXPECT_NEAR(std::sqrt(squares), .678, 5e-4);  // of independent values
    EXPECT_NEAR(1 / std::sqrt(squares), 1.47, 5e-3);
  }
}

TEST(Elastic, SamplesDiffer) {
  const grid g = plain_grid({64, 64, 64});
  const auto value = [&](std::uint64_t sample) {
    suture::draws random(3, 0, sample, 2);
    const suture::elastic e =
        suture::random_elastic{.control_spacing_mm = 8, .max_displacement_mm = 2}.draw(random, here);
    return suture::control_value(e.deform(g, here), 0, 4, 4, 4);
  };
  EXPECT_EQ(value(1), value(1));
  EXPECT_NE(value(1), value(2));
}

TEST(Elastic, DrawingTakesNoSlot) {
  suture::draws a(3, 0, 1, 2), b(3, 0, 1, 2);
  (void)suture::random_elastic{}.draw(a, here);
  EXPECT_EQ(a.uniform(0, 1), b.uniform(0, 1));
}

TEST(Elastic, RefusesWhatMayFoldOrMakesNoGrid) {
  const grid g = plain_grid({64, 64, 64});
  suture::draws random(1, 0, 1, 2);
  const std::string folding =
      message([&] { (void)suture::elastic{.control_spacing_mm = 16, .max_displacement_mm = 8}.deform(g, here); });
  EXPECT_NE(
      folding.find("max_displacement_mm 8 along axis 0 may fold space: with control points 16 mm apart at most 6.4 mm"),
      std::string::npos)
      << folding;
  EXPECT_NO_THROW(
      ((void)suture::elastic{.control_spacing_mm = 16, .max_displacement_mm = 8, .allow_folding = true}.deform(g,
                                                                                                               here)));
  // Along each axis no more than is safe: 32 and 18 mm, one cell each, and 64 mm, two.
  const suture::deformation limited = suture::random_elastic{.max_displacement_mm = 10, .limit_to_safe = true}
                                          .draw(random, here)
                                          .deform(plain_grid({18, 32, 64}), here);
  EXPECT_DOUBLE_EQ(limited.amplitude[0], .4 * 18);
  EXPECT_DOUBLE_EQ(limited.amplitude[1], 10);
  EXPECT_DOUBLE_EQ(limited.amplitude[2], 10);
  EXPECT_REFUSED((suture::elastic{.control_spacing_mm = 0.0}.deform(g, here)), "control_spacing_mm 0 must be positive");
  EXPECT_REFUSED((suture::elastic{.control_spacing_mm = 1e-6}.deform(g, here)), "cells over 64 mm");
  EXPECT_REFUSED((suture::elastic{.max_displacement_mm = -1}.deform(g, here)), "max_displacement_mm -1");
  EXPECT_REFUSED((suture::elastic{.max_displacement_mm = NAN, .allow_folding = true}.deform(g, here)),
                 "max_displacement_mm nan");
  EXPECT_REFUSED((suture::elastic{.locked_borders = -1}.deform(g, here)), "locked_borders -1");
  EXPECT_REFUSED((suture::elastic{.control_points = {3, 7, 7}}.deform(g, here)), "control_points (3, 7, 7)");
  const std::vector<float> values(3 * 7 * 7 * 7);
  EXPECT_REFUSED((suture::elastic{.max_displacement_mm = 1, .control_values = values}.deform(g, here)),
                 "control_values need control_points");
  EXPECT_REFUSED(
      (suture::elastic{.control_points = {7, 7, 7}, .limit_to_safe = true, .control_values = values}.deform(g, here)),
      "control_values are given, which limit_to_safe would change");
  EXPECT_REFUSED(
      (suture::elastic{.max_displacement_mm = 1, .control_points = {7, 7, 6}, .control_values = values}.deform(g,
                                                                                                               here)),
      "1029 control_values for (7, 7, 6) control points, which take 882");
}

// Control points that nobody would wait for are refused at once, whether the elastic acts or not.
TEST(Elastic, RefusesMoreControlPointsThanItIsWorth) {
  const std::vector<suture::grid> batch{plain_grid({8, 8, 8}), plain_grid({7, 7, 7})};
  const std::uint64_t ids[] = {3, 4};
  suture::random_elastic fine{.control_spacing_mm = .01, .max_displacement_mm = .001, .probability = 0};
  EXPECT_SAYS((suture::plan(fine, batch, {.sample_ids = ids})),
              "random_elastic: sample 0 (id 3): 517781627 control points, (803, 803, 803) along the axes, are more "
              "than 16777216 a sample");
  suture::elastic counted{.max_displacement_mm = 1e-4, .control_points = {256, 256, 257}};
  EXPECT_SAYS((suture::plan(counted, batch)), "elastic: sample 0: 16842752 control points");
  counted.control_points = {256, 256, 256};
  EXPECT_NO_THROW((suture::plan(counted, batch)));
}

// Parameters of itk::BSplineTransform name the displacements along x of all control points, then y, then z, and the
// control points with x fastest.
TEST(Elastic, TakesParametersOfItk) {
  const std::size_t points = 6 * 8 * 7;
  std::vector<double> parameters;
  for (std::size_t i = 0; i < 3 * points; ++i) parameters.push_back(static_cast<double>(i) / 128);
  // `parameters` of an itk::BSplineTransform with a mesh of 4 x 5 x 3 cells, of an image along the axes of the patient.
  std::vector<float> values;
  for (const std::size_t axis : {2, 1, 0})  // z, y, x
    for (std::size_t i = 0; i < points; ++i) values.push_back(static_cast<float>(parameters[axis * points + i]));
  // [given_control_values]
  const suture::elastic deformed{.max_displacement_mm = 12,
                                 .locked_borders = 0,
                                 .allow_folding = true,
                                 .control_points = {6, 8, 7},  // three more than cells
                                 .mesh = suture::mesh_span::centers,
                                 .control_values = values};
  // [/given_control_values]
  const suture::deformation d = deformed.deform(plain_grid({24, 28, 27}), here);
  for (std::size_t axis = 0; axis < 3; ++axis)
    EXPECT_EQ(suture::control_value(d, 2 - static_cast<int>(axis), 4, 3, 5),
              static_cast<float>(parameters[axis * points + (4 * 8 + 3) * 7 + 5]));
}

TEST(Elastic, TakesGivenControlValues) {
  const grid g = plain_grid({16, 18, 20}, {2, 1, 4});
  std::vector<float> values(3 * 5 * 6 * 7);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
  values[0] = NAN, values[1] = 100, values[2] = -INFINITY;
  const suture::elastic given{.max_displacement_mm = 1.5,
                              .locked_borders = 0,
                              .allow_folding = true,
                              .control_points = {5, 6, 7},
                              .control_values = values};
  const suture::deformation d = given.deform(g, here);
  const auto at = [&](int component, int z, int y, int x) {
    return values[static_cast<std::size_t>(((component * 5 + z) * 6 + y) * 7 + x)];
  };
  EXPECT_EQ(suture::control_value(d, 0, 0, 0, 0), 0);      // not a number
  EXPECT_EQ(suture::control_value(d, 0, 0, 0, 1), 0.75f);  // held to 1.5 mm, of voxels of 2 mm
  EXPECT_EQ(suture::control_value(d, 0, 0, 0, 2), -0.75f);
  for (const auto& [z, y, x] : {std::array{4, 5, 6}, std::array{1, 0, 3}, std::array{2, 3, 0}}) {
    EXPECT_EQ(suture::control_value(d, 0, z, y, x), at(0, z, y, x) / 2);
    EXPECT_EQ(suture::control_value(d, 1, z, y, x), at(1, z, y, x));
    EXPECT_EQ(suture::control_value(d, 2, z, y, x), at(2, z, y, x) / 4);
  }
  suture::elastic locked = given;
  locked.locked_borders = 1;
  const suture::deformation inner = locked.deform(g, here);
  EXPECT_EQ(suture::control_value(inner, 1, 4, 3, 3), 0);
  EXPECT_EQ(suture::control_value(inner, 1, 3, 3, 3), at(1, 3, 3, 3));
}

}  // namespace
