// SPDX-License-Identifier: Apache-2.0
// Turns, zooms and deformations, put together as their users would, against MONAI, OpenCV, scikit-image and ITK.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/expect_close.hpp"
#include "support/itk_bspline.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"
#include "support/tiles.hpp"

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
  suture::affine_map m{};
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
       suture::composed(monai_stretch(in), suture::composed(about, suture::inverse(monai_stretch(out))))},
      {}};
  expect_close(support::image_result<float>(geometry | suture::sampling<suture::linear>{}, x.values, g),
               expected.values, 1e-5 * range_of(x.values));
}

// MONAI interpolates to another size and brings the result to the old one, about its middle: padded with its edge, or
// cut so that voxel Z//2 of the one becomes voxel N//2 of the other.
SUTURE_ORACLE_TEST(OracleTransform, ZoomsAsMonai, support::calls("monai.transforms.Zoom", [](const oracle_case& c) {
                     return c.has("mode", "trilinear") && c.has("keep_size", true) && c.has("align_corners", false) &&
                            c.params.value("padding_mode", "edge") == "edge";
                   })) {
  const auto x = c.input<float>("x");
  const suture::grid g = support::voxel_grid(support::size_from(x.shape));
  suture::extent3 zoomed{}, start{}, kept{}, before{}, after{};
  for (int k = 0; k < 3; ++k) {
    const json& zoom = c.params.at("zoom");
    const double factor = zoom.is_number() ? zoom.get<double>() : zoom.at(static_cast<std::size_t>(k)).get<double>();
    zoomed[k] = static_cast<std::int64_t>(std::floor(static_cast<double>(g.extents[k]) * factor));
    const std::int64_t missing = std::max<std::int64_t>(g.extents[k] - zoomed[k], 0);
    start[k] = std::max<std::int64_t>(zoomed[k] / 2 - g.extents[k] / 2, 0);
    kept[k] = std::min(zoomed[k], g.extents[k]);
    before[k] = missing / 2;
    after[k] = missing - before[k];
  }
  const suture::sampling<suture::linear, suture::edge> linear;
  const auto resized = support::image_result<float>(
      suture::resize{zoomed} | suture::crop{.start = start, .size = kept} | linear, x.values, g);
  expect_close(support::image_result<float>(suture::pad{before, after} | linear, resized,
                                            support::voxel_grid({kept[0], kept[1], kept[2]})),
               c.output<double>("y").values, 1e-5 * range_of(x.values));
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

// The image of a case deformed with an interpolation.
template <class Interpolation>
void expect_deformed(const oracle_case& c, double tolerance) {
  const support::itk_bspline b(c);
  const auto x = c.input<float>("x");
  const suture::sampling<Interpolation, suture::default_value> as_itk{.border = {c.params.at("default")}};
  suture::elastic how = b.how;
  how.control_values = b.values;
  expect_close(support::image_result<float>(how | as_itk, x.values, b.grid), c.output<double>("y").values,
               tolerance * range_of(x.values), b.clear(Interpolation::taps == 1));
}

SUTURE_ORACLE_TEST(OracleTransform, DeformsByTheCoefficientsOfItk, support::itk_bsplines_with("linear")) {
  expect_deformed<suture::linear>(c, 1e-5);
}
SUTURE_ORACLE_TEST(OracleTransform, DeformsByTheCoefficientsOfItkWithSplines, support::itk_bsplines_with("bspline")) {
  expect_deformed<suture::cubic_bspline>(c, 3e-5);
}
SUTURE_ORACLE_TEST(OracleTransform, DeformsByTheCoefficientsOfItkToTheNearest, support::itk_bsplines_with("nn")) {
  expect_deformed<suture::nearest>(c, 0);
}

}  // namespace
