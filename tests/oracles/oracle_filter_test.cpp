// SPDX-License-Identifier: Apache-2.0
// Filters and operations on patch statistics, run over whole images, against SciPy, MONAI and batchgenerators.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ref/intensity.hpp"
#include "support/expect_close.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"
#include "suture/ops/filter/gaussian_blur.hpp"
#include "suture/ops/filter/gibbs_ringing.hpp"
#include "suture/ops/filter/kspace_spike.hpp"
#include "suture/ops/filter/median.hpp"
#include "suture/ops/filter/sharpen.hpp"
#include "suture/ops/value/patch_contrast.hpp"
#include "suture/ops/value/patch_gamma.hpp"
#include "suture/ops/value/patch_z_score.hpp"

namespace {

using support::expect_close;
using support::oracle_case;
using support::range_of;

// The pipeline over the image of a case, given the id that random operations need.
template <class Pipeline>
std::vector<float> result(const Pipeline& pipeline, const support::array<float>& x) {
  const std::vector in{suture::contiguous(x.values.data(), support::voxel_grid(support::size_from(x.shape)))};
  const std::vector<std::uint64_t> ids{1};
  const auto plan = suture::plan(pipeline, in, {.sample_ids = ids});
  std::vector<float> out(x.values.size());
  suture::run(suture::cpu{}, plan, suture::image(in, suture::batch_views(out.data(), plan.output_grids())));
  return out;
}

// The pipeline makes of a case's image what the library made of it, within a part of the range of the result.
template <class Pipeline>
void agrees(const Pipeline& pipeline, const oracle_case& c, double tolerance) {
  const auto expected = c.output<double>("y").values;
  expect_close(result(pipeline, c.input<float>("x")), expected, tolerance * range_of(expected));
}

using suture::blur_kernel;

suture::axis_values sigma_of(const nlohmann::json& sigma) {
  if (sigma.is_number()) return sigma.get<double>();
  return {sigma.at(0).get<double>(), sigma.at(1).get<double>(), sigma.at(2).get<double>()};
}

SUTURE_ORACLE_TEST(OracleFilter, BlursAsScipyDoes,
                   support::calls("scipy.ndimage.gaussian_filter", [](const oracle_case& c) {
                     return c.inputs.contains("x") && !c.params.contains("order") &&
                            (c.has("mode", "reflect") || c.has("mode", "mirror"));
                   })) {
  const suture::gaussian_blur blur{.sigma = sigma_of(c.params.at("sigma")),
                                   .kernel = c.has("mode", "mirror") ? blur_kernel::nnunet : blur_kernel::scipy,
                                   .truncate = c.params.value("truncate", 4.0f)};
  agrees(blur, c, 2e-6);
}

SUTURE_ORACLE_TEST(OracleFilter, BlursAsMonaiDoes,
                   support::calls("monai.transforms.GaussianSmooth",
                                  [](const oracle_case& c) { return c.params.value("approx", "erf") == "erf"; })) {
  agrees(suture::gaussian_blur{.sigma = sigma_of(c.params.at("sigma")), .kernel = blur_kernel::monai}, c, 2e-6);
}

// Channel by channel, in the plane; the radius of OpenCV's kernel is given as a number of pixels.
SUTURE_ORACLE_TEST(OracleFilter, BlursAsOpencvDoes, support::calls("cv2.GaussianBlur", [](const oracle_case& c) {
                     return c.has("border", "REFLECT_101");
                   })) {
  const auto rgb = c.input<float>("rgb");
  const auto expected = c.output<double>("y").values;
  const double sigma = c.params.at("sigma");
  const int radius = c.params.at("ksize").get<int>() / 2;
  const suture::gaussian_blur blur{.sigma = {0, sigma, sigma},
                                   .kernel = blur_kernel::nnunet,  // mirrored about the outermost pixels
                                   .truncate = static_cast<float>((radius + .25) / sigma)};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    support::array<float> plane{{1, rgb.shape[0], rgb.shape[1]}, {}};
    std::vector<double> blurred;
    for (std::size_t i = channel; i < rgb.values.size(); i += 3) {
      plane.values.push_back(rgb.values[i]);
      blurred.push_back(expected[i]);
    }
    expect_close(result(blur, plane), blurred, 2e-6 * 255);
  }
}

SUTURE_ORACLE_TEST(OracleFilter, TakesTheMedianOfScipy,
                   support::calls("scipy.ndimage.median_filter",
                                  [](const oracle_case& c) { return c.has("size", 3) && c.has("mode", "reflect"); })) {
  agrees(suture::median_filter{}, c, 0);
}

SUTURE_ORACLE_TEST(OracleFilter, SharpensAsMonaiDoes, support::calls("monai.transforms.GaussianSharpen")) {
  const suture::gaussian_blur blurred{.sigma = sigma_of(c.params.at("sigma1")), .kernel = blur_kernel::monai};
  const suture::sharpen sharper{.sigma = sigma_of(c.params.at("sigma2")),
                                .amount = c.params.at("alpha").get<float>(),
                                .kernel = blur_kernel::monai};
  agrees(blurred | sharper, c, 1e-5);
}

SUTURE_ORACLE_TEST(OracleFilter, RingsAsMonaiDoes, support::calls("monai.transforms.GibbsNoise")) {
  agrees(suture::gibbs_ringing{.alpha = c.params.at("alpha")}, c, 2e-6);
}

// MONAI takes every magnitude to its logarithm and back in float.
SUTURE_ORACLE_TEST(OracleFilter, SpikesAsMonaiDoes, support::calls("monai.transforms.KSpaceSpikeNoise")) {
  const auto at = c.params.at("loc").get<std::vector<std::int64_t>>();
  agrees(
      suture::kspace_spike{
          .location = {at.at(0), at.at(1), at.at(2)}, .intensity = c.params.at("k_intensity"), .relative = false},
      c, 1e-5);
}

SUTURE_ORACLE_TEST(OracleFilter, ChangesContrastAsBatchgeneratorsDoes,
                   support::calls("batchgenerators.augment_contrast")) {
  agrees(suture::random_patch_contrast{.range = c.params.at("factor").get<float>(),
                                       .preserve_range = c.params.at("preserve_range")},
         c, 1e-6);
}

SUTURE_ORACLE_TEST(OracleFilter, NormalisesNonzeroVoxelsAsMonaiDoes,
                   support::calls("monai.transforms.NormalizeIntensity",
                                  [](const oracle_case& c) { return c.has("nonzero", true); })) {
  agrees(suture::exclude{0} | suture::patch_z_score{.nan = 0}, c, 1e-6);
}

// augment_gamma draws its exponent between the recorded end and 1. It is one number, told by the whole result.
SUTURE_ORACLE_TEST(OracleFilter, BendsAsBatchgeneratorsDoes, support::calls("batchgenerators.augment_gamma")) {
  const auto x = c.input<double>("x").values, y = c.output<double>("y").values;
  const bool invert = c.params.at("invert_image");
  const double drawn = reference::exponent_between(x, y, invert), end = c.params.at("gamma");
  EXPECT_GE(drawn, std::min(end, 1.0));
  EXPECT_LE(drawn, std::max(end, 1.0));
  agrees(
      suture::random_patch_gamma{
          .range = static_cast<float>(drawn), .invert = invert, .retain_statistics = c.params.at("retain_stats")},
      c, 2e-5);
}

}  // namespace
