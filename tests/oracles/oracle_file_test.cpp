// SPDX-License-Identifier: Apache-2.0
// Whole files: headers, statistics and resampling of volumes, stains of pictures and regions of slides against nibabel,
// NumPy, ITK, torchstain and OpenSlide.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <suture/suture.hpp>
#include <variant>

#include "common/nifti.hpp"
#include "common/rgb_image.hpp"
#include "common/slide.hpp"
#include "support/geometry.hpp"
#include "support/library.hpp"
#include "support/oracle.hpp"

namespace {

using namespace suture;
using namespace suture::examples;
using support::oracle_case;
namespace fs = std::filesystem;

// The image that an argument of a case names; absent, it fails the test for the repository's own set.
fs::path named_file(const oracle_case& c, const char* argument) {
  const fs::path path = support::data_folder() / c.params.at(argument).get<std::string>();
  if (fs::exists(path)) return path;
  if (support::own_oracles())
    ADD_FAILURE() << path << " is absent";
  else
    support::leave_out(c, path.string() + " is absent, set SUTURE_DATA_DIR");
  return {};
}

SUTURE_ORACLE_TEST(OracleFile, HeadersAreReadAsNibabelReadsThem, support::calls("nibabel + numpy + skimage")) {
  const fs::path path = named_file(c, "file");
  if (path.empty()) return;
  const image_volume image = read_image(path);
  const grid& g = grid_of(image);
  const affine_map map = g.index_to_physical();
  for (std::size_t k = 0; k < 3; ++k) {
    const int axis = 2 - static_cast<int>(k);  // x, y, z
    EXPECT_EQ(g.extents[axis], c.expected.at("shape")[k].get<std::int64_t>());
    EXPECT_NEAR(g.spacing[axis], c.expected.at("zooms")[k].get<double>(), 1e-5);
    const auto& row = c.expected.at("affine")[k];
    const double sign = k < 2 ? -1 : 1;  // RAS against LPS
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(sign * map.linear[axis][2 - static_cast<int>(j)], row[j].get<double>(), 1e-5);
    EXPECT_NEAR(sign * map.offset[axis], row[3].get<double>(), 1e-4);
  }
  double low = 1e300, high = -1e300, sum = 0;
  std::visit(
      [&](const auto& v) {
        for (const auto x : v.voxels) {
          low = std::fmin(low, static_cast<double>(x));
          high = std::fmax(high, static_cast<double>(x));
          sum += static_cast<double>(x);
        }
      },
      image);
  const double range = high - low;
  EXPECT_NEAR(low, c.expected.at("min").get<double>(), 1e-6 * range);
  EXPECT_NEAR(high, c.expected.at("max").get<double>(), 1e-6 * range);
  EXPECT_NEAR(sum / static_cast<double>(g.voxels()), c.expected.at("mean").get<double>(), 1e-6 * range);
  if (c.expected.contains("label_counts")) {
    std::map<std::string, std::size_t> counts;
    for (const std::uint8_t label : read_labels(path).voxels) ++counts[std::to_string(label)];
    EXPECT_EQ(counts, (c.expected.at("label_counts").get<std::map<std::string, std::size_t>>()));
  }
}

// Percentiles and moments of volumes of integers that are stored without a scale.
SUTURE_ORACLE_TEST(OracleFile, CountsGiveTheStatisticsOfNumpy,
                   support::calls("nibabel + numpy + skimage", [](const oracle_case& c) {
                     return c.expected.contains("positive") && c.expected.at("dtype") == "int16" &&
                            c.expected.at("scl_slope") == 1;
                   })) {
  const fs::path path = named_file(c, "file");
  if (path.empty()) return;
  const image_volume image = read_image(path);
  const auto& volume = std::get<suture::examples::volume<std::int16_t>>(image);
  const view<const std::int16_t> seen = contiguous(volume.voxels.data(), volume.grid);
  const value_counts all = value_counts::of(cpu{}, seen, everything{});
  for (const auto& [q, value] : c.expected.at("percentiles").items())
    EXPECT_EQ(all.percentiles({std::stod(q)}).value[0], value.get<double>()) << q;
  const moments m = all.moments();
  EXPECT_NEAR(m.mean, c.expected.at("mean").get<double>(), 1e-12 * std::abs(m.mean));
  EXPECT_NEAR(m.standard_deviation, c.expected.at("std").get<double>(), 1e-12 * m.standard_deviation);
  const moments positive = value_counts::of(cpu{}, seen, above{0}).moments();
  EXPECT_EQ(positive.tally.count, c.expected.at("positive").at("count").get<std::uint64_t>());
  EXPECT_NEAR(positive.mean, c.expected.at("positive").at("mean").get<double>(), 1e-12 * positive.mean);
  EXPECT_NEAR(positive.standard_deviation, c.expected.at("positive").at("std").get<double>(),
              1e-12 * positive.standard_deviation);
}

// Whole volumes to voxels of another size; ITK's results are rounded to integers.
SUTURE_ORACLE_TEST(OracleFile, ResamplesWholeVolumesAsItk,
                   support::calls("itk.ResampleImageFilter, identity transform, rounded to nearest",
                                  [](const oracle_case& c) {
                                    return c.has("interpolator", "nn") || c.has("interpolator", "linear") ||
                                           c.has("interpolator", "bspline");
                                  })) {
  const fs::path path = named_file(c, "file");
  if (path.empty()) return;
  const grid in = support::grid_from_json(c.params, ""), target = support::grid_from_json(c.params, "out_");
  const auto expected = c.output<float>("y").values;
  const auto to = resample{.spacing_mm = target.spacing, .map = coordinate_map::physical};
  const std::vector<grid> batch{in};
  support::expect_same_grid(plan(to, batch).output_grid(0), target, 1e-4, "output");
  if (c.params.at("interpolator") == "nn") {
    const label_volume labels = read_labels(path);
    support::expect_same_grid(labels.grid, in, 1e-4, "input");
    const auto y = support::label_result(resample_to{target} | sampling<linear, edge>{}, labels.voxels, in);
    EXPECT_EQ(std::vector<float>(y.begin(), y.end()), expected);
    return;
  }
  const bool is_linear = c.has("interpolator", "linear");
  std::visit(
      [&](const auto& volume) {
        support::expect_same_grid(volume.grid, in, 1e-4, "input");
        const auto y =
            is_linear ? support::image_result<float>(resample_to{target} | sampling<linear, edge>{}, volume.voxels, in)
                      : support::image_result<float>(resample_to{target} | sampling<cubic_bspline, mirror>{},
                                                     volume.voxels, in);
        ASSERT_EQ(y.size(), expected.size());
        double worst = 0;
        for (std::size_t i = 0; i < y.size(); ++i)
          worst = std::max(worst, std::abs(static_cast<double>(y[i]) - static_cast<double>(expected[i])));
        const auto [low, high] = std::minmax_element(volume.voxels.begin(), volume.voxels.end());
        const double range = static_cast<double>(*high) - static_cast<double>(*low);
        EXPECT_LE(worst, .5 + (is_linear ? 1e-5 : 3e-5) * range);
      },
      read_image(path));
}

// A header with these quaternions is the affine that nibabel makes of them.
SUTURE_ORACLE_TEST(OracleFile, QuaternionsAreReadAsNibabelReadsThem, support::calls("nibabel Nifti1Header.set_qform")) {
  std::vector<char> bytes(352, 0);
  const auto put = [&]<class T>(std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  };
  put(0, std::int32_t{348});
  const std::int16_t dimensions[8] = {3, 3, 2, 2, 1, 1, 1, 1};
  for (std::size_t i = 0; i < 8; ++i) put(40 + 2 * i, dimensions[i]);
  put(70, std::int16_t{4});   // int16
  put(72, std::int16_t{16});  // bits
  for (std::size_t i = 0; i < 4; ++i) put(76 + 4 * i, c.expected.at("pixdim").at(i).get<float>());
  put(108, 352.0f);           // where the voxels begin
  bytes[123] = 2;             // millimeters
  put(252, std::int16_t{1});  // qform, and no sform
  for (std::size_t i = 0; i < 3; ++i) {
    put(256 + 4 * i, c.expected.at("quatern").at(i).get<float>());
    put(268 + 4 * i, c.expected.at("qoffset").at(i).get<float>());
  }
  std::memcpy(bytes.data() + 344, "n+1", 4);
  bytes.resize(bytes.size() + 2 * 3 * 2 * 2, 0);
  const fs::path path = fs::temp_directory_path() / ("quaternions-" + std::to_string(getpid()) + ".nii");
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  support::expect_same_grid(grid_of(read_image(path)), support::grid_from_nifti(c.expected.at("qform"), {3, 2, 2}),
                            1e-4, "grid");
  fs::remove(path);
}

void expect_stains(const stain_basis& b, const nlohmann::json& vectors, const nlohmann::json& most) {
  for (std::size_t k = 0; k < 2; ++k) {
    for (std::size_t channel = 0; channel < 3; ++channel)
      EXPECT_NEAR(b.stains.m[channel][k], vectors.at(channel).at(k).get<double>(), 5e-6);
    EXPECT_NEAR(b.max_concentration[k], most.at(k).get<double>(), 2e-5 * most.at(k).get<double>());
  }
}

SUTURE_ORACLE_TEST(OracleFile, NormalisesWholePicturesAsTorchstain,
                   support::calls("torchstain.numpy Macenko, whole images")) {
  const fs::path from_file = named_file(c, "source"), to_file = named_file(c, "target");
  if (from_file.empty() || to_file.empty()) return;
  const rgb_image source = read_image_file(from_file).image, target = read_image_file(to_file).image;
  macenko_mode mode = macenko::torchstain;
  mode.fit.density.white = c.params.at("Io");
  mode.fit.alpha = c.params.at("alpha");
  mode.fit.least_density = c.params.at("beta");
  stain_basis from, to;
  fit(cpu{}, mode.fit, source.view_of(), everything{}, std::span(&from, 1));
  fit(cpu{}, mode.fit, target.view_of(), everything{}, std::span(&to, 1));
  expect_stains(from, c.expected.at("HE_source"), c.expected.at("maxC_source"));
  expect_stains(to, c.expected.at("HE_target"), c.expected.at("maxC_target"));

  rgb_image result{source.height, source.width, std::vector<std::uint8_t>(source.pixels.size())};
  const std::vector in{source.view_of()};
  const std::vector out{channels_last(result.pixels.data(), in[0].grid, 3)};
  run(cpu{}, plan(mode.normalize({&from, 1}, reference_of(to)) | cast<std::uint8_t>{}, in), image(in, out));
  std::size_t differ = 0, compared = 0;
  for (const auto& p : c.expected.at("pixels"))
    for (std::size_t k = 0; k < 3; ++k) {
      const std::int64_t y = p.at("y"), x = p.at("x");
      ASSERT_EQ(source.at(y, x)[k], p.at("source").at(k).get<int>());
      const int difference = std::abs(result.at(y, x)[k] - p.at("normalized").at(k).get<int>());
      EXPECT_LE(difference, 1);
      differ += difference != 0 ? 1 : 0;
      ++compared;
    }
  EXPECT_LE(differ, 1 + compared / 1000);  // one of a list of few, one of a thousand of a long one
  for (std::size_t k = 0; k < 3; ++k) {
    double sum = 0, squares = 0;
    for (std::size_t i = k; i < result.pixels.size(); i += 3) sum += result.pixels[i];
    const auto n = static_cast<double>(result.pixels.size() / 3), mean = sum / n;
    for (std::size_t i = k; i < result.pixels.size(); i += 3) squares += std::pow(result.pixels[i] - mean, 2);
    EXPECT_NEAR(mean, c.expected.at("normalized_mean").at(k).get<double>(), .01);
    EXPECT_NEAR(std::sqrt(squares / n), c.expected.at("normalized_std").at(k).get<double>(), .01);
  }
}

#if defined(SUTURE_EXAMPLE_OPENSLIDE)

SUTURE_ORACLE_TEST(OracleFile, SlidesAreDescribedAsOpenslideDescribesThem, support::calls("openslide")) {
  const fs::path path = named_file(c, "slide");
  if (path.empty()) return;
  const auto s = open_slide(path);
  ASSERT_EQ(s->layout().levels.size(), c.expected.at("level_count").get<std::size_t>());
  for (std::size_t i = 0; i < s->layout().levels.size(); ++i) {
    EXPECT_EQ(s->layout().levels[i].width, c.expected.at("level_dimensions")[i][0].get<std::int64_t>());
    EXPECT_EQ(s->layout().levels[i].height, c.expected.at("level_dimensions")[i][1].get<std::int64_t>());
    EXPECT_EQ(s->layout().levels[i].downsample, c.expected.at("level_downsamples")[i].get<double>());
  }
  if (c.expected.at("mpp")[0].is_string()) {
    EXPECT_EQ(s->layout().mpp, std::stod(c.expected.at("mpp")[0].get<std::string>()));
    EXPECT_EQ(s->mpp_source(), "openslide.mpp-x");
  }
}

// Decoders of JPEG may differ by two levels.
SUTURE_ORACLE_TEST(OracleFile, RegionsOfSlidesAreReadAsOpenslideReadsThem, support::calls("openslide.read_region")) {
  const fs::path path = named_file(c, "slide");
  if (path.empty()) return;
  const auto s = open_slide(path);
  const auto rgb = c.output<std::uint8_t>("rgb");
  const auto at = [&](const char* key) { return c.params.at(key).get<std::int64_t>(); };
  const rgb_image read = s->read(at("y"), at("x"), c.params.at("level").get<std::int32_t>(), at("h"), at("w"));
  ASSERT_EQ(read.pixels.size(), rgb.values.size());
  for (std::size_t i = 0; i < rgb.values.size(); ++i) ASSERT_NEAR(read.pixels[i], rgb.values[i], 2);
}

#endif

}  // namespace
