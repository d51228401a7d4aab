// SPDX-License-Identifier: Apache-2.0
// Filters and operations on patch statistics, run over whole images, against SciPy, MONAI and batchgenerators.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ref/intensity.hpp"
#include "support/expect_close.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"
#include "support/oracle_geometry.hpp"
#include "suture/ops/filter/gaussian_blur.hpp"
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

template <class Pipeline>
void agrees(const Pipeline& pipeline, const std::string& group, const std::string& name, double tolerance) {
  SCOPED_TRACE(name);
  const oracle_case c = support::find_case(group, name);
  const auto expected = c.output<double>("y").values;
  expect_close(result(pipeline, c.input<float>("x")), expected, tolerance * range_of(expected));
}

TEST(OracleFilter, BlursAsScipyDoes) {
  SUTURE_NEEDS_ORACLES("filters3d");
  using suture::blur_kernel;
  using suture::gaussian_blur;
  agrees(gaussian_blur{.sigma = 1.3}, "filters3d", "gauss_iso_reflect", 2e-6);
  agrees(gaussian_blur{.sigma = 1.3, .kernel = blur_kernel::nnunet, .truncate = 4}, "filters3d", "gauss_iso_mirror",
         2e-6);
  agrees(gaussian_blur{.sigma = {.6, 1.7, 2.2}, .truncate = 3}, "filters3d", "gauss_aniso", 2e-6);
}

TEST(OracleFilter, BlursAsMonaiDoes) {
  SUTURE_NEEDS_ORACLES("intensity");
  agrees(suture::gaussian_blur{.sigma = 1.5, .kernel = suture::blur_kernel::monai}, "intensity", "monai_gauss_smooth",
         2e-6);
}

TEST(OracleFilter, TakesTheMedianOfScipy) {
  SUTURE_NEEDS_ORACLES("filters3d");
  agrees(suture::median_filter{}, "filters3d", "median_3", 0);
}

TEST(OracleFilter, SharpensAsMonaiDoes) {
  SUTURE_NEEDS_ORACLES("intensity");
  using suture::blur_kernel;
  agrees(suture::gaussian_blur{.sigma = 3, .kernel = blur_kernel::monai} |
             suture::sharpen{.sigma = 1, .amount = 8, .kernel = blur_kernel::monai},
         "intensity", "monai_gauss_sharpen", 1e-5);
}

TEST(OracleFilter, ChangesContrastAsBatchgeneratorsDoes) {
  SUTURE_NEEDS_ORACLES("intensity");
  for (const bool preserve : {false, true})
    agrees(suture::random_patch_contrast{.range = 1.35f, .preserve_range = preserve}, "intensity",
           preserve ? "bg_contrast_p1" : "bg_contrast_p0", 1e-6);
}

TEST(OracleFilter, NormalisesNonzeroVoxelsAsMonaiDoes) {
  SUTURE_NEEDS_ORACLES("intensity");
  agrees(suture::exclude{0} | suture::patch_z_score{.nan = 0}, "intensity", "monai_normalize_nonzero", 1e-6);
}

TEST(OracleFilter, BendsAsBatchgeneratorsDoes) {
  SUTURE_NEEDS_ORACLES("intensity");
  using suture::random_patch_gamma;
  // Given .72, augment_gamma draws an exponent from [.72, 1): those it drew, by a fit to its results.
  agrees(random_patch_gamma{.range = .7596158f, .retain_statistics = false}, "intensity", "bg_gamma_inv0_ret0", 2e-5);
  agrees(random_patch_gamma{.range = .8939380f, .invert = true, .retain_statistics = false}, "intensity",
         "bg_gamma_inv1_ret0", 2e-5);
  agrees(random_patch_gamma{.range = .7478149f}, "intensity", "bg_gamma_inv0_ret1", 2e-5);
}

}  // namespace
