// SPDX-License-Identifier: Apache-2.0
// Snippets of docs/conventions.md.
#include <gtest/gtest.h>

#include <cmath>
#include <suture/suture.hpp>

namespace {

TEST(Conventions, PlaceOfAVoxel) {
  suture::grid g{.extents = {10, 20, 30}, .spacing = {5, .7, .7}, .origin = {-100, -60, 40}};
  // [place]
  const suture::point3 mm = g.index_to_physical()({4, 2, 0});  // slice 4, row 2, column 0
  const suture::point3 index = g.physical_to_index()(mm);
  // [/place]
  EXPECT_DOUBLE_EQ(mm[0], -100 + 4 * 5.0);
  EXPECT_DOUBLE_EQ(mm[1], -60 + 2 * 0.7);
  EXPECT_DOUBLE_EQ(mm[2], 40);
  EXPECT_NEAR(index[0], 4, 1e-12);
  EXPECT_NEAR(index[1], 2, 1e-12);
}

TEST(Conventions, GridOfAnItkImage) {
  // [itk]
  const std::int64_t size[3] = {512, 512, 120};             // image->GetLargestPossibleRegion().GetSize()
  const double spacing[3] = {.7, .7, 5};                    // GetSpacing()
  const double origin[3] = {-180, -170, -600};              // GetOrigin()
  const double direction[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};  // GetDirection(), row by row
  const suture::grid g = suture::grid_from_itk(size, spacing, origin, direction);
  // [/itk]
  EXPECT_EQ(g.extents, (suture::extent3{120, 512, 512}));
  EXPECT_EQ(g.spacing, (suture::point3{5, .7, .7}));
  EXPECT_EQ(g.origin, (suture::point3{-600, -170, -180}));
}

TEST(Conventions, GridOfANiftiImage) {
  const std::int64_t nx = 40, ny = 30, nz = 20;
  const double affine[3][4] = {{-.9, 0, 0, 90}, {0, .9, 0, -120}, {0, 0, 2.5, -70}};  // rows x, y, z of RAS
  // [nifti]
  // `affine` is nibabel's: voxel (i, j, k, 1) to RAS millimeters. RAS to LPS negates x and y.
  suture::grid g{.extents = {nz, ny, nx}};
  for (int axis = 0; axis < 3; ++axis) {  // array axis z, y, x is column 2, 1, 0 of the affine
    const int column = 2 - axis;
    double length = 0;
    for (int row = 0; row < 3; ++row) length = std::hypot(length, affine[row][column]);
    g.spacing[axis] = length;
    for (int row = 0; row < 3; ++row)  // physical component z, y, x is row 2, 1, 0
      g.direction[2 - row][axis] = (row < 2 ? -1 : 1) * affine[row][column] / length;
  }
  for (int row = 0; row < 3; ++row) g.origin[2 - row] = (row < 2 ? -1 : 1) * affine[row][3];
  // [/nifti]
  suture::check(g, {"nifti"});
  const suture::point3 place = g.index_to_physical()({3, 2, 1});
  EXPECT_NEAR(place[0], -70 + 3 * 2.5, 1e-12);
  EXPECT_NEAR(place[1], -(-120 + 2 * .9), 1e-12);
  EXPECT_NEAR(place[2], -(90 - 1 * .9), 1e-12);
}

TEST(Conventions, ScipyAffineTransform) {
  const suture::grid g{.extents = {4, 5, 6}};
  const suture::matrix3 matrix{{{1, .1, 0}, {0, .9, .2}, {0, 0, 1.1}}};
  const suture::point3 offset{.5, -1, 2};
  // [scipy]
  // scipy.ndimage.affine_transform(image, matrix, offset, order=1, mode="grid-constant", cval=-1000)
  const auto same = suture::affine_matrix{.linear = matrix, .translation = offset, .about_center = false} |
                    suture::sampling<suture::linear, suture::constant>{.border = {.value = -1000}};
  // [/scipy]
  const auto plan = suture::plan(same, std::vector{g});
  const suture::point3 p = plan.geometry(0).to_source({1, 2, 3});
  EXPECT_DOUBLE_EQ(p[0], 1 + .1 * 2 + .5);
  EXPECT_NEAR(p[1], .9 * 2 + .2 * 3 - 1, 1e-12);
  EXPECT_NEAR(p[2], 1.1 * 3 + 2, 1e-12);
}

TEST(Conventions, OpencvWarpAffine) {
  const suture::grid g{.extents = {1, 5, 6}};
  const double m[2][3] = {{.9, .1, 2}, {-.2, 1.1, -1}};
  // [opencv]
  // cv::warpAffine(src, dst, M, src.size(), cv::INTER_LINEAR | cv::WARP_INVERSE_MAP): M takes (x, y) of dst to src
  const auto same = suture::affine_matrix{.linear = {{{1, 0, 0}, {0, m[1][1], m[1][0]}, {0, m[0][1], m[0][0]}}},
                                          .translation = {0, m[1][2], m[0][2]},
                                          .about_center = false};
  // [/opencv]
  const suture::point3 p = suture::plan(same, std::vector{g}).geometry(0).to_source({0, 2, 3});
  EXPECT_NEAR(p[2], m[0][0] * 3 + m[0][1] * 2 + m[0][2], 1e-12);
  EXPECT_NEAR(p[1], m[1][0] * 3 + m[1][1] * 2 + m[1][2], 1e-12);
}

TEST(Conventions, TorchAffineGrid) {
  const suture::grid g{.extents = {4, 5, 6}};
  const double theta[3][4] = {{.9, .1, 0, .2}, {-.1, 1.1, .05, 0}, {0, .2, 1, -.1}};
  // grid_sample(image, affine_grid(theta, image.shape, align_corners=False), align_corners=False), zeros outside.
  // theta acts on (x, y, z) in [-1, 1]; a normalized coordinate is (2 i + 1) / N - 1, so half an extent scales each
  // axis.
  suture::affine_matrix same{};
  for (int i = 0; i < 3; ++i) {
    const double half = 0.5 * static_cast<double>(g.extents[i]);
    for (int j = 0; j < 3; ++j)
      same.linear[i][j] = theta[2 - i][2 - j] * half / (0.5 * static_cast<double>(g.extents[j]));
    same.translation[i] = theta[2 - i][3] * half;
  }
  const suture::point3 at{1, 2, 3};
  const suture::point3 p = suture::plan(same, std::vector{g}).geometry(0).to_source(at);
  for (int i = 0; i < 3; ++i) {  // torch's formulas as they stand
    double normalized[3];
    for (int k = 0; k < 3; ++k)
      normalized[k] = (2 * at[2 - k] + 1) / static_cast<double>(g.extents[2 - k]) - 1;  // (x, y, z)
    double to = theta[2 - i][3];
    for (int k = 0; k < 3; ++k) to += theta[2 - i][k] * normalized[k];
    EXPECT_NEAR(p[i], ((to + 1) * static_cast<double>(g.extents[i]) - 1) / 2, 1e-12);
  }
}

}  // namespace
