// SPDX-License-Identifier: Apache-2.0
// Turns, zooms and deformations, put together as their users would, against MONAI, OpenCV, scikit-image and ITK.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "ref/elastic.hpp"
#include "support/expect_close.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"
#include "support/tiles.hpp"
#include "suture/ops/geometry/elastic.hpp"

namespace {

using nlohmann::json;
using reference::size3;
using support::expect_close;
using support::oracle_case;
using support::range_of;

const double pi = std::acos(-1.0);

// MONAI 1.2 normalizes the map by the faces of the image and samples it with align_corners, by the centers of the
// outermost voxels: a slight extra scaling of each axis.
suture::affine_map monai_stretch(const size3& size) {
  suture::affine_map m{suture::identity3(), {0, 0, 0}};
  for (int k = 0; k < 3; ++k) {
    const auto n = static_cast<double>(size[static_cast<std::size_t>(k)]);
    m.linear[k][k] = (n - 1) / n;
    m.offset[k] = (n - 1) / 2 - (n - 1) / n * (n - 1) / 2;
  }
  return m;
}

SUTURE_ORACLE_TEST(OracleTransform, RotatesAsMonai, support::calls("monai.transforms.Rotate", [](const oracle_case& c) {
                     return c.has("mode", "bilinear") && c.has("padding_mode", "zeros") && c.has("align_corners", true);
                   })) {
  const auto x = c.input<float>("x");
  const auto expected = c.output<double>("y");
  const size3 in = support::size_from(x.shape), out = support::size_from(expected.shape);
  suture::affine turn{.convention = suture::affine_convention::monai};
  for (int k = 0; k < 3; ++k)
    turn.rotate_deg[k] = c.params.at("angle").at(static_cast<std::size_t>(k)).get<double>() * 180 / pi;
  const suture::grid g = support::voxel_grid(in);
  // The library turns the input about its center; MONAI reads a grid of another size about the centers of both.
  suture::affine_map about = turn.step(g, {"affine"}).pull;
  const suture::point3 from = support::voxel_grid(out).center(), to = g.center();
  for (int i = 0; i < 3; ++i) {
    about.offset[i] = to[i];
    for (int j = 0; j < 3; ++j) about.offset[i] -= about.linear[i][j] * from[j];
  }
  const support::any_geometry geometry{
      true,
      {support::voxel_grid(out),
       suture::compose(monai_stretch(in), suture::compose(about, suture::inverse(monai_stretch(out))))},
      {}};
  expect_close(support::image_result<float>(geometry | suture::sampling<suture::linear>{}, x.values, g),
               expected.values, 1e-5 * range_of(x.values));
}

// MONAI interpolates to another size and pads the result with its edge, or cuts it, to the old one. In one map of
// coordinates the edge is that of the image itself, so voxels that were padded are left out.
SUTURE_ORACLE_TEST(OracleTransform, ZoomsAsMonai, support::calls("monai.transforms.Zoom", [](const oracle_case& c) {
                     return c.has("mode", "trilinear") && c.has("keep_size", true) && c.has("align_corners", false);
                   })) {
  const auto x = c.input<float>("x");
  const size3 in = support::size_from(x.shape);
  const suture::grid g = support::voxel_grid(in);
  suture::extent3 zoomed{}, before{}, after{};
  for (int k = 0; k < 3; ++k) {
    const json& zoom = c.params.at("zoom");
    const double factor = zoom.is_number() ? zoom.get<double>() : zoom.at(static_cast<std::size_t>(k)).get<double>();
    ASSERT_LE(factor, 1);
    zoomed[k] = static_cast<std::int64_t>(std::floor(static_cast<double>(g.extents[k]) * factor));
    before[k] = (g.extents[k] - zoomed[k]) / 2;
    after[k] = g.extents[k] - zoomed[k] - before[k];
  }
  const auto zoom =
      suture::resize{zoomed} | suture::pad{before, after} | suture::sampling<suture::linear, suture::edge>{};
  std::vector<double> mask;
  for (std::int64_t z = 0; z < in[0]; ++z)
    for (std::int64_t y = 0; y < in[1]; ++y)
      for (std::int64_t xx = 0; xx < in[2]; ++xx) {
        const std::int64_t at[3] = {z, y, xx};
        bool kept = true;
        for (int k = 0; k < 3; ++k) kept = kept && at[k] >= before[k] && at[k] < before[k] + zoomed[k];
        mask.push_back(kept ? 1 : 0);
      }
  expect_close(support::image_result<float>(zoom, x.values, g), c.output<double>("y").values, 1e-5 * range_of(x.values),
               mask);
}

SUTURE_ORACLE_TEST(OracleTransform, ResizesAsOpencv,
                   support::calls("cv2.resize (float32 input)", [](const oracle_case& c) {
                     return c.has("interpolation", "LINEAR") || c.has("interpolation", "CUBIC");
                   })) {
  const auto rgb = c.input<float>("rgb");
  const suture::resize to{{1, c.params.at("out_hw").at(0), c.params.at("out_hw").at(1)}};
  const auto expected = c.output<double>("y").values;
  const std::int64_t height = rgb.shape[0], width = rgb.shape[1];
  const auto y = c.has("interpolation", "LINEAR")
                     ? support::tile_result<float>(to | suture::sampling<suture::linear, suture::edge>{}, rgb.values,
                                                   height, width)
                     : support::tile_result<float>(to | suture::sampling<suture::torch_cubic, suture::edge>{},
                                                   rgb.values, height, width);
  expect_close(y, expected, (c.has("interpolation", "LINEAR") ? 1e-5 : 3e-5) * 255);
}

SUTURE_ORACLE_TEST(OracleTransform, RotatesAsScikitImage,
                   support::calls("skimage.transform.rotate",
                                  [](const oracle_case& c) { return c.has("order", 1) && c.has("mode", "reflect"); })) {
  const auto rgb = c.input<float>("rgb");
  const double angle = c.params.at("angle_deg").get<double>() * pi / 180;
  // Counterclockwise as the picture is seen, with rows downwards.
  const suture::affine_matrix turn{
      .linear = {{{1, 0, 0}, {0, std::cos(angle), std::sin(angle)}, {0, -std::sin(angle), std::cos(angle)}}}};
  expect_close(support::tile_result<float>(turn | suture::sampling<suture::linear, suture::mirror>{}, rgb.values,
                                           rgb.shape[0], rgb.shape[1]),
               c.output<double>("y").values, 1e-5 * 255);
}

// The B-spline transform of a case as an elastic deformation of given control values.
struct itk_bspline {
  suture::grid grid;
  suture::elastic how;
  std::vector<float> values;                   // (component, z, y, x), millimeters along the axes of the array
  std::array<reference::volume, 3> in_double;  // the same, a component each
  reference::size3 size;

  explicit itk_bspline(const oracle_case& c) {
    const json &p = c.params, &transform = p.at("transform");
    std::int64_t extents[3];
    double spacing[3], origin[3], direction[9];
    for (std::size_t k = 0; k < 3; ++k)
      extents[k] = p.at("size").at(k), spacing[k] = p.at("spacing").at(k), origin[k] = p.at("origin").at(k);
    for (std::size_t k = 0; k < 9; ++k) direction[k] = p.at("direction").at(k);
    grid = suture::grid_from_itk(extents, spacing, origin, direction);
    size = support::itk_size(p.at("size"));
    const size3 mesh = support::itk_size(transform.at("mesh_size"));
    const size3 points{mesh[0] + 3, mesh[1] + 3, mesh[2] + 3};
    // All displacements along x, then y, then z of the patient; an array axis points along a column of the direction.
    const std::vector<double> given = c.input<double>("coefs").values;
    const std::size_t count = given.size() / 3;
    how = {.locked_borders = 0, .allow_folding = true, .center_domain = true};
    for (std::size_t k = 0; k < 3; ++k) {
      in_double[k] = reference::volume(points);
      double most = 0;
      for (std::size_t i = 0; i < count; ++i) {
        double along = 0;
        for (std::size_t r = 0; r < 3; ++r) along += direction[3 * r + 2 - k] * given[r * count + i];
        in_double[k].values[i] = along;
        values.push_back(static_cast<float>(along));
        most = std::max(most, std::abs(along));
      }
      how.max_displacement_mm[static_cast<int>(k)] = most;
      how.control_points[static_cast<int>(k)] = static_cast<std::int32_t>(points[k]);
    }
    how.control_values = values;
  }

  // Where a voxel is read, in double.
  reference::point pull(const reference::point& v) const {
    reference::point q{}, result{};
    for (std::size_t k = 0; k < 3; ++k)
      q[k] = v[k] * static_cast<double>(in_double[0].size[k] - 3) / static_cast<double>(size[k] - 1);
    for (std::size_t k = 0; k < 3; ++k)
      result[k] = v[k] + reference::bspline_field(in_double[k], q) / grid.spacing[static_cast<int>(k)];
    return result;
  }
};

support::oracle_filter bsplines_with(const char* interpolator) {
  return support::calls("itk.ResampleImageFilter", [=](const oracle_case& c) {
    return c.params.at("transform").at("type") == "BSplineTransform" && c.has("interpolator", interpolator);
  });
}

// The image of a case deformed with an interpolation, but where rounding decides: on the faces of the domain whether
// ITK moves a point at all, at the rim of the image, and between two voxels.
template <class Interpolation>
void expect_deformed(const oracle_case& c, double tolerance) {
  const itk_bspline b(c);
  const auto x = c.input<float>("x");
  const suture::sampling<Interpolation, suture::default_value> as_itk{.border = {c.params.at("default")}};
  const auto stay = [](const reference::point& v) { return v; };
  const auto move = [&](const reference::point& v) { return b.pull(v); };
  std::vector<double> mask = support::away_from_ties(b.size, b.size, stay, 1e-9, false, 0);
  const std::vector<double> clear = support::away_from_ties(b.size, b.size, move, 1e-4, Interpolation::taps == 1, .5);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] *= clear[i];
  expect_close(support::image_result<float>(b.how | as_itk, x.values, b.grid), c.output<double>("y").values,
               tolerance * range_of(x.values), mask);
}

SUTURE_ORACLE_TEST(OracleTransform, DeformsByTheCoefficientsOfItk, bsplines_with("linear")) {
  expect_deformed<suture::linear>(c, 1e-5);
}
SUTURE_ORACLE_TEST(OracleTransform, DeformsByTheCoefficientsOfItkWithSplines, bsplines_with("bspline")) {
  expect_deformed<suture::cubic_bspline>(c, 3e-5);
}
SUTURE_ORACLE_TEST(OracleTransform, DeformsByTheCoefficientsOfItkToTheNearest, bsplines_with("nn")) {
  expect_deformed<suture::nearest>(c, 0);
}

}  // namespace
