// SPDX-License-Identifier: Apache-2.0
// Value operations of the library, run over whole images, against pydicom, MONAI, batchgenerators and scikit-image.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ref/intensity.hpp"
#include "support/expect_close.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"
#include "suture/ops/value/bias_field.hpp"
#include "suture/ops/value/clamp.hpp"
#include "suture/ops/value/contrast.hpp"
#include "suture/ops/value/gamma.hpp"
#include "suture/ops/value/scale_intensity.hpp"
#include "suture/ops/value/window.hpp"

namespace {

using nlohmann::json;
using support::expect_close;
using support::image_result;
using support::oracle_case;
using support::range_of;

const double rounding = 0x1p-23;  // of float, relative

SUTURE_ORACLE_TEST(OracleValue, WindowsAsPydicomDoes,
                   support::calls("pydicom apply_windowing (DICOM PS3.3 C.11.2.1)")) {
  const json& p = c.params;
  const auto x = c.input<float>("x");
  const suture::grid g = support::voxel_grid(support::size_from(x.shape));
  const float center = p.at("center");
  const float width = p.at("width");
  const float low = p.at("out_min");
  const float high = p.at("out_max");
  const std::vector<float> y =
      p.at("function") == "SIGMOID"
          ? image_result<float>(suture::sigmoid_window{center, width, low, high}, x.values, g)
          : image_result<float>(suture::window{center, width, low, high,
                                               p.at("function") == "LINEAR" ? suture::voi_function::linear
                                                                            : suture::voi_function::linear_exact},
                                x.values, g);
  expect_close(y, c.output<double>("y").values, 4 * rounding * (static_cast<double>(high) - static_cast<double>(low)));
}

// out_min + (out_max - out_min) / (1 + exp(-4 (x - center) / width)), DICOM's, is 1 / (1 + exp(gain (cutoff - x))).
SUTURE_ORACLE_TEST(OracleValue, FollowsTheSigmoidOfScikitImage,
                   support::calls("skimage.exposure.adjust_sigmoid",
                                  [](const oracle_case& c) { return !c.has("inv", true); })) {
  const auto x = c.input<float>("x");
  const suture::sigmoid_window op{.center = c.params.at("cutoff"), .width = 4 / c.params.at("gain").get<float>()};
  expect_close(image_result<float>(op, x.values, support::voxel_grid(support::size_from(x.shape))),
               c.output<double>("y").values, 4 * rounding);
}

SUTURE_ORACLE_TEST(OracleValue, ScalesAsMonaiDoes, support::calls("monai.transforms.ScaleIntensityRange")) {
  const auto x = c.input<float>("x");
  const suture::scale_intensity op{c.params.at("a_min"), c.params.at("a_max"), c.params.at("b_min"),
                                   c.params.at("b_max"), c.params.at("clip")};
  const std::vector<double> expected = c.output<double>("y").values;
  expect_close(image_result<float>(op, x.values, support::voxel_grid(support::size_from(x.shape))), expected,
               4 * rounding * range_of(expected));
}

SUTURE_ORACLE_TEST(OracleValue, CurvesAsMonaiAndSkimageDo,
                   support::calls_one_of({"monai.transforms.AdjustContrast", "skimage.exposure.adjust_gamma"},
                                         [](const oracle_case& c) { return c.params.value("gain", 1.0) == 1; })) {
  const auto x = c.input<float>("x");
  suture::gamma op{.exponent = c.params.at("gamma")};
  if (c.op.starts_with("monai")) {  // about the range of the image
    const auto [low, high] = std::minmax_element(x.values.begin(), x.values.end());
    op.range = {*low, *high};
  }
  const std::vector<double> expected = c.output<double>("y").values;
  expect_close(image_result<float>(op, x.values, support::voxel_grid(support::size_from(x.shape))), expected,
               2e-5 * range_of(expected));
}

SUTURE_ORACLE_TEST(OracleValue, ChangesContrastAsBatchgeneratorsDoes,
                   support::calls("batchgenerators.augment_contrast")) {
  const auto x = c.input<float>("x");
  const reference::statistics s = reference::statistics_of({x.values.begin(), x.values.end()});
  const suture::grid g = support::voxel_grid(support::size_from(x.shape));
  const suture::contrast op{.factor = c.params.at("factor"), .pivot = static_cast<float>(s.mean)};
  const suture::clamp range{.low = static_cast<float>(s.min), .high = static_cast<float>(s.max)};
  expect_close(c.params.at("preserve_range") == true ? image_result<float>(op | range, x.values, g)
                                                     : image_result<float>(op, x.values, g),
               c.output<double>("y").values, 8 * rounding * range_of(x.values));
}

// A field of the polynomial of a case over its extents.
suture::bias_field bias_field_of(const oracle_case& c, const char* shape, const char* degree) {
  suture::bias_field op{.coefficients = {}, .extents = {}, .degree = c.params.at(degree)};
  const std::vector<float> given = c.params.at(c.params.contains("coeff") ? "coeff" : "coefficients");
  std::copy(given.begin(), given.end(), op.coefficients.begin());
  for (std::size_t k = 0; k < 3; ++k) op.extents[static_cast<int>(k)] = c.params.at(shape)[k];
  return op;
}

SUTURE_ORACLE_TEST(OracleValue, BiasesAsMonaiDoes,
                   support::calls("monai.transforms.RandBiasField._generate_random_field (exp applied)")) {
  const suture::bias_field op = bias_field_of(c, "spatial_shape", "degree");
  const suture::grid g{.extents = op.extents};
  const auto x = c.input<float>("x");
  const std::vector<double> expected = c.output<double>("y").values, field = c.output<double>("field").values;
  expect_close(image_result<float>(op, x.values, g), expected, 1e-5 * range_of(expected));
  expect_close(image_result<float>(op, std::vector<float>(x.values.size(), 1.0F), g), field, 1e-6 * range_of(field));
}

SUTURE_ORACLE_TEST(OracleValue, BiasesAsTorchioDoes, support::calls("torchio.BiasField.generate_bias_field")) {
  suture::bias_field op = bias_field_of(c, "shape", "order");
  op.basis = suture::bias_basis::monomial;
  const suture::grid g{.extents = op.extents};
  const std::vector<double> field = c.output<double>("field").values;
  expect_close(image_result<float>(op, std::vector<float>(field.size(), 1.0F), g), field, 1e-6 * range_of(field));
}

}  // namespace
