// SPDX-License-Identifier: Apache-2.0
// Every case of the set of oracle vectors is either served by a test of this program or has its reason here.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "support/oracle.hpp"

namespace {

using support::calls;
using support::calls_one_of;
using support::oracle_case;

struct exception {
  support::oracle_filter cases;
  std::string reason;
};

bool is_spline_of_order_0_1_3(const oracle_case& c) {
  const int order = c.params.value("order", 1);
  return order == 0 || order == 1 || order == 3;
}

const std::vector<exception>& exceptions() {
  static const std::vector<exception> list {
    {calls_one_of({"scipy.ndimage.affine_transform", "scipy.ndimage.map_coordinates", "scipy.ndimage.zoom",
                   "skimage.transform.resize"},
                  [](const oracle_case& c) { return !is_spline_of_order_0_1_3(c); }),
     "splines of orders 2, 4 and 5 are not among the interpolations"},
        {calls_one_of({"scipy.ndimage.map_coordinates", "scipy.ndimage.affine_transform", "scipy.ndimage.zoom"},
                      [](const oracle_case& c) { return is_spline_of_order_0_1_3(c) && c.has("mode", "wrap"); }),
         "SciPy's wrap has a period of n - 1, kept for old code; grid-wrap is served"},
        {calls("scipy.ndimage.spline_filter"),
         "coefficients stay inside; what is sampled with them is compared, and the reference's are with these"},
        {calls("scipy.ndimage.map_coordinates", [](const oracle_case& c) { return c.inputs.contains("disp"); }),
         "a displacement for every voxel is never stored: fields are splines of few control points (ITK cases)"},
        {calls("batchgenerators.interpolate_img"), "coordinates for every voxel are never stored"},
        {calls_one_of({"batchgenerators: rotate_coords_3d, scale_coords", "batchgenerators.rotate_coords_2d"}),
         "coordinates for every voxel are never stored; the matrices are compared with the reference"},
        {calls("scipy.ndimage.gaussian_filter", [](const oracle_case& c) { return c.inputs.contains("noise"); }),
         "displacement fields are splines, not smoothed noise"},
        {calls("scipy.ndimage.gaussian_filter",
               [](const oracle_case& c) {
                 return c.inputs.contains("x") &&
                        (c.params.contains("order") || !(c.has("mode", "reflect") || c.has("mode", "mirror")));
               }),
         "no derivatives of Gaussians; blurs reflect or mirror at the border, as the recipes' libraries do"},
        {calls_one_of({"scipy.ndimage.gaussian_gradient_magnitude", "scipy.ndimage.gaussian_laplace",
                       "scipy.ndimage.sobel", "scipy.ndimage.correlate", "scipy.ndimage.uniform_filter"}),
         "no such filter"},
        {calls("scipy.ndimage.median_filter", [](const oracle_case& c) { return !c.has("size", 3); }),
         "the median is over 3 x 3 x 3 voxels"},
        {calls("scipy.ndimage.distance_transform_edt"), "no distance transform"},
        {calls("skimage.transform.resize", [](const oracle_case& c) { return c.has("anti_aliasing", true); }),
         "smoothing before a reduction is a filter of its own, of the user's choice"},
        {calls("torch.nn.functional.interpolate",
               [](const oracle_case& c) { return c.has("mode", "area") || c.has("mode", "nearest"); }),
         "no averages over areas; torch's nearest forgets half a voxel, nearest-exact is served"},
        {calls("torch.nn.functional.affine_grid"), "grids are never stored; grid_sample through them is served"},
        {calls("cv2.resize (float32 input)",
               [](const oracle_case& c) {
                 return c.has("interpolation", "AREA") || c.has("interpolation", "LANCZOS4") ||
                        c.has("interpolation", "NEAREST");
               }),
         "no averages over areas, no Lanczos; OpenCV's nearest forgets half a pixel"},
        {calls("itk.ResampleImageFilter", [](const oracle_case& c) { return c.has("interpolator", "hammingsinc4"); }),
         "windowed sincs are not among the interpolations"},
        {calls("itk.ResampleImageFilter, identity transform, rounded to nearest",
               [](const oracle_case& c) {
                 return !c.has("interpolator", "nn") && !c.has("interpolator", "linear") &&
                        !c.has("interpolator", "bspline");
               }),
         "windowed sincs are not among the interpolations"},
        {calls_one_of({"scipy.ndimage.binary_erosion", "scipy.ndimage.binary_dilation", "scipy.ndimage.binary_opening",
                       "scipy.ndimage.binary_closing"},
                      [](const oracle_case& c) { return !support::is_plain_morphology(c); }),
         "one iteration with zeros outside, by faces, boxes or balls"},
        {calls_one_of({"skimage.color.rgb2xyz", "skimage.color.rgb2ycbcr"}), "no such color space"},
        {calls_one_of(
             {"torchvision.transforms.functional.adjust_gamma", "torchvision.transforms.functional.adjust_sharpness"}),
         "gamma is compared with scikit-image and MONAI; no sharpening of tiles as torchvision's"},
        {calls("numpy.histogram"), "histograms count every value; bins of other widths are not offered"},
        {calls_one_of({"skimage.exposure.adjust_log", "skimage.exposure.equalize_hist",
                       "skimage.exposure.equalize_adapthist", "skimage.exposure.match_histograms",
                       "monai.transforms.HistogramNormalize"}),
         "no logarithm of intensities, equalization or matching of whole histograms"},
        {calls_one_of({"torchio.Ghosting.add_artifact", "torchio.Spike.add_artifact"}),
         "no ghosting; spikes follow MONAI's definition"},
        {calls("batchgenerators.augment_linear_downsampling_scipy"),
         "low resolution follows batchgeneratorsv2 and MONAI, back up linearly; this is version 1, back up by cubic "
         "splines"},
        {calls("nibabel.spaces.vox2out_vox"), "output grids are given, not derived from a bounding box"},
        {calls("numpy.random.Philox (4x64-10)"), "the generator is Philox 4x32"},
#if defined(SUTURE_ORACLES_WITHOUT_FILES)
        {calls_one_of({"nibabel + numpy + skimage", "itk.ResampleImageFilter, identity transform, rounded to nearest",
                       "nibabel Nifti1Header.set_qform", "torchstain.numpy Macenko, whole images"}),
         "built without what reads files"},
#endif
#if defined(SUTURE_ORACLES_WITHOUT_FILES) || !defined(SUTURE_EXAMPLE_OPENSLIDE)
        {calls_one_of({"openslide", "openslide.read_region"}), "built without OpenSlide"},
#endif
  };
  return list;
}

// Tells whether a case of whole images names one that is not there.
bool names_absent_data(const oracle_case& c) {
  const bool of_pictures = c.op == "torchstain.numpy Macenko, whole images";
  for (const char* argument : {"file", "slide", of_pictures ? "source" : "file", of_pictures ? "target" : "file"})
    if (c.params.contains(argument) && c.params.at(argument).is_string() &&
        !std::filesystem::exists(support::data_folder() / c.params.at(argument).get<std::string>()))
      return true;
  return false;
}

TEST(OracleCoverage, EveryCaseIsComparedOrHasAReason) {
  std::size_t compared = 0, absent = 0, excepted = 0;
  for (const oracle_case& c : support::all_oracles()) {
    std::string test, reason;
    for (const support::oracle_test& t : support::oracle_tests())
      if (t.serves(c)) test = t.name;
    for (const exception& e : exceptions())
      if (e.cases(c)) reason = e.reason;
    EXPECT_TRUE(test.empty() || reason.empty())
        << c.title() << " is compared by " << test << ", and yet there is a reason why not: " << reason;
    EXPECT_FALSE(test.empty() && reason.empty())
        << c.title() << " (" << c.op << ") is neither compared nor is there a reason why not";
    if (!test.empty() && names_absent_data(c))
      ++absent;
    else
      ++(test.empty() ? excepted : compared);
  }
  if (support::own_oracles()) {
    EXPECT_EQ(absent, 0u);
  }
  std::cout << support::oracle_folder().string() << ": " << compared << " cases compared, " << absent
            << " not compared because the images they name are absent, " << excepted << " left out with a reason\n";
  RecordProperty("compared", static_cast<int>(compared));
  RecordProperty("absent", static_cast<int>(absent));
  RecordProperty("left_out", static_cast<int>(excepted));
}

}  // namespace
