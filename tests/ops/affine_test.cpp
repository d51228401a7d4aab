// SPDX-License-Identifier: Apache-2.0
// Affine maps in the conventions of the libraries they follow.
#include <algorithm>

#include "ref/rotation.hpp"
#include "support/expect_close.hpp"
#include "support/geometry.hpp"
#include "suture/ops/geometry/affine.hpp"
#include "suture/ops/geometry/random_scale.hpp"

namespace {

using namespace support;
using suture::affine_convention;

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
  support::for_each_oracle(support::calls("monai.transforms.Affine"), [](const support::oracle_case& c) {
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
                load(c.output<double>("y")), 1e-5 * support::range_of(x.values), c.name);  // coordinates in float
  });
}

// MONAI's matrix of an array (x, y, z): components, angles and shears in that order, read here as (z, y, x).
TEST(Affine, MonaiValuesOfTheOtherOrder) {
  support::for_each_oracle(support::calls("monai.transforms.Affine"), [](const support::oracle_case& c) {
    const reference::volume x = load(c.input<double>("x"));
    const nlohmann::json &r = c.params.at("rotate_params"), &h = c.params.at("shear_params"),
                         &t = c.params.at("translate_params"), &k = c.params.at("scale_params");
    const auto angle = [&](std::size_t i) { return r[i].get<double>() / degree; };
    const geometry_step s = suture::affine{.rotate_deg = {angle(2), angle(1), angle(0)},
                                           .scale = {k[2], k[1], k[0]},
                                           .shear = {h[5], h[4], h[3], h[2], h[1], h[0]},
                                           .translate = {t[2], t[1], t[0]},
                                           .convention = affine_convention::monai_xyz}
                                .step(plain_grid({x.size[2], x.size[1], x.size[0]}, {3, 2, 5}), here);
    geometry_step seen{plain_grid({x.size[0], x.size[1], x.size[2]}), {}};
    for (int i = 0; i < 3; ++i) {
      seen.pull.offset[i] = s.pull.offset[2 - i];
      for (int j = 0; j < 3; ++j) seen.pull.linear[i][j] = s.pull.linear[2 - i][2 - j];
    }
    expect_same(resampled(x, seen, {reference::interpolation::linear, reference::outside::clamp_coordinate, 0}),
                load(c.output<double>("y")), 1e-5 * support::range_of(x.values), c.name);  // coordinates in float
  });
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
  const auto turns = [](const support::oracle_case& c) {
    return c.params.at("transform").at("type") == "Euler3DTransform";
  };
  support::for_each_oracle(support::calls("itk.ResampleImageFilter", turns), [](const support::oracle_case& c) {
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
    if (!c.has("interpolator", "linear")) return;
    const reference::sampling how{reference::interpolation::linear, reference::outside::half_voxel_constant,
                                  c.params.at("default")};
    expect_same(resampled(load(c.input<double>("x")), s, how), load(c.output<double>("y")), 1e-3, c.name);
  });
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
TEST(Affine, DefaultWorksInMillimeters) {
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
  // Scale above 1 enlarges: output 4 voxels from the center shows what stood 2 from it.
  expect_near(suture::affine{.scale = {1, 2, 2}}.step(g, here).pull({5, 14, 6}), {5, 12, 8}, 1e-12);
  // +90 degrees about axis 0 takes the y axis to the x axis.
  expect_near(suture::affine{.rotate_deg = {90, 0, 0}}.step(g, here).pull({5, 10, 14}), {5, 14, 10}, 1e-12);
}

TEST(Affine, NothingIsTheIdentity) {
  const grid g = oblique_grid({9, 12, 20});
  for (const auto convention :
       {affine_convention::suture, affine_convention::itk, affine_convention::torchio, affine_convention::monai,
        affine_convention::nnunet, affine_convention::kornia, affine_convention::monai_xyz})
    for (const point3& p : corners(g))
      expect_near(suture::affine{.convention = convention}.step(g, here).pull(p), p, 1e-13);
  for (const point3& p : corners(g)) EXPECT_EQ(suture::affine{}.step(g, here).pull(p), p);
}

TEST(Affine, MatrixAboutCenterOrIndexZero) {
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
    const suture::affine a = op.draw(random, plain_grid({5, 6, 7}), here);
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
      suture::random_affine{.rotate_deg = 15, .scale = {.5, 2}, .shear = .1f, .translate = 8}.draw(
          a, plain_grid({5, 6, 7}), here);
  const suture::affine without = suture::random_affine{.translate = 8}.draw(b, plain_grid({5, 6, 7}), here);
  EXPECT_EQ(with.translate, without.translate);
  EXPECT_NE(with.translate[0], 0);
  EXPECT_EQ(a.uniform(0, 1), b.uniform(0, 1));
}

TEST(RandomAffine, AxesDrawSeparateScalesOnRequest) {
  suture::draws random(9, 0, 3, 1);
  const suture::affine a = suture::random_affine{.scale = {{.5f, 1}, {1, 2}, {3, 4}}, .isotropic_scale = false}.draw(
      random, plain_grid({5, 6, 7}), here);
  EXPECT_TRUE(a.scale[0] < 1 && a.scale[1] >= 1 && a.scale[1] < 2 && a.scale[2] >= 3);
}

TEST(RandomAffine, RefusesBadRanges) {
  const auto checked = [](const suture::random_affine& op) { op.check(here); };
  EXPECT_REFUSED(checked({.rotate_deg = {10, -10}}), "rotate_deg [10, -10]");
  EXPECT_REFUSED(checked({.scale = 0.2f}), "scale [-0.2, 0.2] must be positive");
  EXPECT_REFUSED(checked({.scale = {{.5f, 1}, {1, 2}, {1, 2}}}), "isotropic_scale");
  EXPECT_REFUSED(checked({.shear = INFINITY}), "shear");
  EXPECT_REFUSED(checked({.translate = NAN}), "translate");
}

// Only some samples draw the parameter that the convention lacks.
TEST(RandomAffine, RefusesRangesBeyondTheConvention) {
  const auto checked = [](const suture::random_affine& op) { op.check(here); };
  EXPECT_REFUSED(checked({.rotate_deg = {0, 2e6f}}), "rotate_deg");
  EXPECT_REFUSED(checked({.scale = {1, 1.1f}, .convention = affine_convention::itk}), "itk");
  EXPECT_REFUSED(checked({.shear = {0, .1f}, .convention = affine_convention::nnunet}), "shear");
  EXPECT_REFUSED(checked({.translate = {0, 1}, .convention = affine_convention::nnunet}), "nnunet");
  checked({.scale = {.5f, 2}, .shear = 1, .translate = 3, .convention = affine_convention::monai});
  EXPECT_REFUSED((suture::random_scale{.range = {1, 1.1f}, .convention = affine_convention::itk}.check(here)), "itk");
  suture::random_scale{.range = {.5f, 2}}.check(here);
}

}  // namespace
