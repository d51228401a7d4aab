// SPDX-License-Identifier: Apache-2.0
// NIfTI files in and out: header facts of real files from nibabel, hand-made headers from the NIfTI-1 standard.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

#include "common/nifti.hpp"
#include "support/expect_says.hpp"
#include "support/files.hpp"
#include "support/oracle.hpp"
#include "support/raw_nifti.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;
using support::oblique_grid;
using support::raw_nifti;
using nifti_read = support::files;
using nifti_write = support::files;

template <class T>
const volume<T>& as(const image_volume& v) {
  return std::get<volume<T>>(v);
}

void expect_same_grid(const grid& a, const grid& b, double tolerance) {
  EXPECT_EQ(a.extents, b.extents);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(a.spacing[i], b.spacing[i], tolerance);
    EXPECT_NEAR(a.origin[i], b.origin[i], 100 * tolerance);
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(a.direction[i][j], b.direction[i][j], tolerance);
  }
}

TEST_F(nifti_read, places_voxels_by_the_sform_and_turns_ras_into_lps) {
  const image_volume image = read_image(write("a.nii", raw_nifti().with_voxels().bytes));
  const auto& v = as<std::int16_t>(image);
  EXPECT_EQ(v.grid.extents, (extent3{2, 2, 3}));
  EXPECT_EQ(v.grid.spacing, (point3{3, 2, 1}));
  EXPECT_EQ(v.grid.origin, (point3{30, -20, 10}));
  const point3 last = v.grid.index_to_physical()({1, 1, 2});
  EXPECT_EQ(last, (point3{33, -22, 8}));
  EXPECT_EQ(v.voxels, (std::vector<std::int16_t>{-1024, -1, 0, 1, 2, 3, 4, 5, 6, 7, 300, 3071}));
}

TEST_F(nifti_read, byte_swapped_file_reads_the_same) {
  const raw_nifti swapped = raw_nifti().with_voxels().swapped();
  const image_volume a = read_image(write("a.nii", raw_nifti().with_voxels().bytes));
  const image_volume b = read_image(write("b.nii.gz", swapped.bytes));
  EXPECT_EQ(as<std::int16_t>(a).voxels, as<std::int16_t>(b).voxels);
  expect_same_grid(grid_of(a), grid_of(b), 0);
}

TEST_F(nifti_read, qform_rotates_by_its_quaternion) {
  // A quarter turn about z: the first axis runs along +y, the second along -x (RAS).
  raw_nifti file = raw_nifti().with_voxels();
  file.put<std::int16_t>(254, 0);
  file.put<std::int16_t>(252, 1);
  file.put<float>(264, std::sqrt(0.5f));
  file.put<float>(268, 5);
  file.put<float>(272, 6);
  file.put<float>(276, 7);
  const grid g = grid_of(read_image(write("a.nii", file.bytes)));
  const affine_map map = g.index_to_physical();
  const point3 along_i = map({0, 0, 1}), along_j = map({0, 1, 0});
  for (const auto& [got, expected] : {std::pair{g.origin, point3{7, -6, -5}}, std::pair{along_i, point3{7, -7, -5}},
                                      std::pair{along_j, point3{7, -6, -3}}})
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(got[k], expected[k], 1e-6);
}

TEST_F(nifti_read, without_sform_and_qform_the_spacing_alone_places_voxels) {
  raw_nifti file = raw_nifti().with_voxels();
  file.put<std::int16_t>(254, 0);
  const grid g = grid_of(read_image(write("a.nii", file.bytes)));
  EXPECT_EQ(g.index_to_physical()({1, 1, 2}), (point3{3, -2, -2}));
}

TEST_F(nifti_read, scale_and_offset_are_applied) {
  raw_nifti file = raw_nifti().with_voxels();
  file.put<float>(112, 2);
  file.put<float>(116, -1000);
  EXPECT_EQ(as<std::int16_t>(read_image(write("a.nii", file.bytes))).voxels[11], 2 * 3071 - 1000);
  file.put<float>(112, 0.5f);
  file.put<float>(116, 0);
  EXPECT_EQ(as<float>(read_image(write("b.nii", file.bytes))).voxels[11], 1535.5f);
}

template <class T>
void expect_type_reads(const fs::path& folder, std::int16_t datatype,
                       const std::function<fs::path(raw_nifti&)>& store) {
  raw_nifti file;
  file.put<std::int16_t>(70, datatype);
  file.put<std::int16_t>(72, static_cast<std::int16_t>(8 * sizeof(T)));
  file.append<T>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 127});
  SCOPED_TRACE(datatype);
  const fs::path path = store(file);
  EXPECT_EQ(as<std::int16_t>(read_image(path)).voxels,
            (std::vector<std::int16_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 127}))
      << folder;
  EXPECT_EQ(read_labels(path).voxels, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 127}));
}

TEST_F(nifti_read, every_numeric_voxel_type) {
  const auto store = [&](raw_nifti& file) { return write("a.nii", file.bytes); };
  expect_type_reads<std::uint8_t>(folder, 2, store);
  expect_type_reads<std::int16_t>(folder, 4, store);
  expect_type_reads<std::int32_t>(folder, 8, store);
  expect_type_reads<float>(folder, 16, store);
  expect_type_reads<double>(folder, 64, store);
  expect_type_reads<std::int8_t>(folder, 256, store);
  expect_type_reads<std::uint16_t>(folder, 512, store);
  expect_type_reads<std::uint32_t>(folder, 768, store);
  expect_type_reads<std::int64_t>(folder, 1024, store);
  expect_type_reads<std::uint64_t>(folder, 1280, store);
}

TEST_F(nifti_read, one_time_point_is_a_volume) {
  raw_nifti file = raw_nifti().with_voxels();
  file.put<std::int16_t>(40, 4);
  EXPECT_EQ(grid_of(read_image(write("a.nii", file.bytes))).extents, (extent3{2, 2, 3}));
}

TEST_F(nifti_read, missing_files_folders_and_damaged_compression) {
  EXPECT_SAYS(read_image(folder / "none.nii.gz"), "no such file");
  EXPECT_SAYS(read_image(folder), "is a folder");

  // Incompressible voxels, so that any damaged byte is a wrong voxel unless it is noticed.
  volume<std::int16_t> noise{oblique_grid(), {}};
  noise.grid.extents = {20, 30, 40};
  std::mt19937 random(5);
  for (std::int64_t i = 0; i < noise.grid.voxels(); ++i)
    noise.voxels.push_back(static_cast<std::int16_t>(static_cast<std::uint16_t>(random())));
  const fs::path path = folder / "noise.nii.gz";
  write_nifti(path, noise);
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> whole((std::istreambuf_iterator<char>(stream)), {});
  const auto rewrite = [&](const std::vector<char>& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  for (const std::size_t keep : {whole.size() / 2, whole.size() - 1000}) {
    rewrite({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(keep)});
    EXPECT_SAYS(read_image(path), "truncated");
  }
  std::vector<char> damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x10);
  rewrite(damaged);
  EXPECT_SAYS(read_image(path), path.string());
  rewrite(whole);
  EXPECT_EQ(as<std::int16_t>(read_image(path)).voxels, noise.voxels);
}

TEST_F(nifti_read, values_that_are_no_image_or_no_label) {
  raw_nifti file;
  file.put<std::int16_t>(70, 16);
  file.put<std::int16_t>(72, 32);
  file.append<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, std::numeric_limits<float>::quiet_NaN(), 11});
  EXPECT_SAYS(read_image(write("nan.nii", file.bytes)), "(1, 1, 1) is not finite: nan");
  raw_nifti large = file;
  large.put<float>(352 + 40, 3e38f);
  EXPECT_EQ(as<float>(read_image(write("large.nii", large.bytes))).voxels[10], 3e38f);
  large.put<float>(112, 2);  // scl_slope
  EXPECT_SAYS(read_image(write("large.nii", large.bytes)), "(1, 1, 1) is beyond the range of a float: 6e+38");
  file.put<float>(352 + 40, 0.5f);
  EXPECT_SAYS(read_labels(write("half.nii", file.bytes)), "label 0.5");
  file.put<float>(352 + 40, 256);
  EXPECT_SAYS(read_labels(write("many.nii", file.bytes)), "label 256");
  file.put<float>(352 + 40, 255);
  EXPECT_EQ(read_labels(write("good.nii", file.bytes)).voxels[10], 255);
}

TEST_F(nifti_write, oblique_volumes_come_back_as_they_were) {
  const grid g = oblique_grid();
  volume<std::int16_t> whole{g, {}};
  volume<float> real{g, {}};
  label_volume labels{g, {}};
  for (std::int64_t i = 0; i < g.voxels(); ++i) {
    whole.voxels.push_back(static_cast<std::int16_t>(37 * i - 1024));
    real.voxels.push_back(static_cast<float>(i) * 0.37f - 5.5f);
    labels.voxels.push_back(static_cast<std::uint8_t>(2 * i));
  }
  for (const char* name : {"deep/a.nii", "deep/a.nii.gz"}) {
    const fs::path path = folder / name;
    write_nifti(path, whole);
    image_volume back = read_image(path);
    EXPECT_EQ(as<std::int16_t>(back).voxels, whole.voxels);
    expect_same_grid(grid_of(back), g, 1e-6);
    write_nifti(path, real);
    back = read_image(path);
    EXPECT_EQ(as<float>(back).voxels, real.voxels);
    write_nifti(path, labels);
    EXPECT_EQ(read_labels(path).voxels, labels.voxels);
    expect_same_grid(read_labels(path).grid, g, 1e-6);
  }
  // Nothing is left of the temporary files.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "deep"), {}), 2);
}

TEST_F(nifti_write, qform_agrees_with_sform) {
  // A mirrored grid too: its handedness is the sign qfac.
  for (const double mirror : {1.0, -1.0}) {
    grid g = oblique_grid();
    for (int i = 0; i < 3; ++i) g.direction[i][0] *= mirror;
    const fs::path path = folder / "a.nii";
    write_nifti(path, label_volume{g, std::vector<std::uint8_t>(static_cast<std::size_t>(g.voxels()), 3)});
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const std::int16_t none = 0;
    file.seekp(254);
    file.write(reinterpret_cast<const char*>(&none), sizeof none);  // without its sform
    file.close();
    expect_same_grid(read_labels(path).grid, g, 1e-5);
  }
}

TEST_F(nifti_write, unwritable_path_is_an_error_and_leaves_nothing) {
  std::ofstream(folder / "file") << "x";
  const label_volume labels{oblique_grid(), std::vector<std::uint8_t>(120, 1)};
  EXPECT_SAYS(write_nifti(folder / "file" / "a.nii.gz", labels), "cannot be written");
  fs::create_directories(folder / "taken.nii.gz" / "inside");
  EXPECT_SAYS(write_nifti(folder / "taken.nii.gz", labels), "cannot be written");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2);
}

}  // namespace
