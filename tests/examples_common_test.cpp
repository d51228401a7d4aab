// SPDX-License-Identifier: Apache-2.0
// What the examples share: NIfTI files in and out (header facts of real files from nibabel, hand-made headers from the
// NIfTI-1 standard), the phantom, the sample reader, and what is seen where on a contact sheet.
#include <cairo.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "common/contact_sheet.hpp"
#include "common/nifti.hpp"
#include "common/phantom.hpp"
#include "common/report.hpp"
#include "common/sample_data.hpp"
#include "support/oracle.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;

class scratch : public testing::Test {
protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder = fs::temp_directory_path() / ("suture-" + std::string(test->name()) + "-" + std::to_string(getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  fs::path write(const std::string& name, const std::vector<unsigned char>& bytes) const {
    const fs::path path = folder / name;
    if (path.extension() == ".gz") {
      gzFile_s* file = gzopen(path.c_str(), "wb");
      gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
      gzclose(file);
    } else {
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    return path;
  }

  fs::path folder;
};

using nifti_read = scratch;
using nifti_write = scratch;
using sample_reader = scratch;
using contact_sheets = scratch;
using reports = scratch;

// A NIfTI-1 file by the byte offsets of the standard: 3 x 2 x 2 voxels of int16, sform with spacing 1, 2, 3.
struct raw_nifti {
  std::vector<unsigned char> bytes = std::vector<unsigned char>(352, 0);

  template <class T>
  void put(std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof value);
  }
  template <class T>
  void append(std::initializer_list<T> values) {
    for (const T v : values) {
      bytes.resize(bytes.size() + sizeof v);
      std::memcpy(bytes.data() + bytes.size() - sizeof v, &v, sizeof v);
    }
  }

  raw_nifti() {
    put<std::int32_t>(0, 348);
    const std::int16_t dim[8] = {3, 3, 2, 2, 1, 1, 1, 1};
    for (std::size_t i = 0; i < 8; ++i) put(40 + 2 * i, dim[i]);
    put<std::int16_t>(70, 4);   // datatype int16
    put<std::int16_t>(72, 16);  // bits
    const float pixdim[4] = {1, 1, 2, 3};
    for (std::size_t i = 0; i < 4; ++i) put(76 + 4 * i, pixdim[i]);
    put<float>(108, 352);  // vox_offset
    bytes[123] = 2;        // millimetres
    put<std::int16_t>(254, 1);
    const float sform[12] = {1, 0, 0, -10, 0, 2, 0, 20, 0, 0, 3, 30};
    for (std::size_t i = 0; i < 12; ++i) put(280 + 4 * i, sform[i]);
    std::memcpy(bytes.data() + 344, "n+1", 4);
  }
  raw_nifti& with_voxels() {
    append<std::int16_t>({-1024, -1, 0, 1, 2, 3, 4, 5, 6, 7, 300, 3071});
    return *this;
  }
};

// The header's multi-byte fields: offset, width, count.
constexpr std::size_t header_fields[][3] = {{0, 4, 1},   {32, 4, 1},  {36, 2, 1},  {40, 2, 8},  {56, 4, 3},
                                            {68, 2, 4},  {76, 4, 8},  {108, 4, 3}, {120, 2, 1}, {124, 4, 4},
                                            {140, 4, 2}, {252, 2, 2}, {256, 4, 6}, {280, 4, 12}};

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

grid oblique_grid() {
  grid g;
  g.extents = {4, 5, 6};
  g.spacing = {2.5, 0.8, 0.75};
  g.origin = {-103.5, 21.25, 77};
  const double c = 0.8, s = 0.6;  // exact cosine and sine
  g.direction = {{{1, 0, 0}, {0, c, -s}, {0, s, c}}};
  return g;
}

TEST_F(nifti_read, real_files_have_the_header_facts_nibabel_reports) {
  SUTURE_NEEDS_ORACLES("full");
  int checked = 0;
  for (const support::oracle_case& c : support::oracle_cases("full")) {
    if (!c.name.starts_with("file_")) continue;
    const fs::path path = support::data_folder() / c.params.at("file").get<std::string>();
    if (path.extension() != ".gz" || !fs::exists(path)) continue;
    SCOPED_TRACE(c.name);
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
    ++checked;
  }
  if (checked == 0) GTEST_SKIP() << "no sample images in " << support::data_folder().string();
  EXPECT_GE(checked, 8);
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
  raw_nifti swapped = raw_nifti().with_voxels();
  for (const auto& [offset, width, count] : header_fields)
    for (std::size_t i = 0; i < count; ++i) {
      auto* first = swapped.bytes.data() + offset + i * width;
      std::reverse(first, first + width);
    }
  for (std::size_t i = 352; i < swapped.bytes.size(); i += 2) std::swap(swapped.bytes[i], swapped.bytes[i + 1]);
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

TEST_F(nifti_read, bad_files_are_refused_by_name_and_reason) {
  struct bad {
    const char* reason;
    std::function<void(raw_nifti&)> spoil;
  };
  const std::vector<bad> table{
      {"shorter than a NIfTI header", [](raw_nifti& f) { f.bytes.resize(100); }},
      {"shorter than a NIfTI header", [](raw_nifti& f) { f.bytes.clear(); }},
      {"truncated", [](raw_nifti& f) { f.bytes.pop_back(); }},
      {"truncated", [](raw_nifti& f) { f.bytes.resize(350); }},
      {"wrong magic", [](raw_nifti& f) { f.bytes[344] = 'x'; }},
      {"two files", [](raw_nifti& f) { f.bytes[345] = 'i', f.bytes[344] = 'n'; }},
      {"header size is not 348", [](raw_nifti& f) { f.put<std::int32_t>(0, 77); }},
      {"NIfTI-2", [](raw_nifti& f) { f.put<std::int32_t>(0, 540); }},
      {"number of dimensions 0", [](raw_nifti& f) { f.put<std::int16_t>(40, 0); }},
      {"number of dimensions 9", [](raw_nifti& f) { f.put<std::int16_t>(40, 9); }},
      {"number of dimensions -3", [](raw_nifti& f) { f.put<std::int16_t>(40, -3); }},
      {"extent 0 of axis 2", [](raw_nifti& f) { f.put<std::int16_t>(44, 0); }},
      {"extent -2 of axis 3", [](raw_nifti& f) { f.put<std::int16_t>(46, -2); }},
      {"truncated",
       [](raw_nifti& f) {
         for (std::size_t k = 42; k < 48; k += 2) f.put<std::int16_t>(k, 32767);
       }},
      {"holds 2 volumes", [](raw_nifti& f) { f.put<std::int16_t>(40, 4), f.put<std::int16_t>(48, 2); }},
      {"voxel type", [](raw_nifti& f) { f.put<std::int16_t>(70, 32); }},
      {"voxel type", [](raw_nifti& f) { f.put<std::int16_t>(70, 12345); }},
      {"bits per voxel", [](raw_nifti& f) { f.put<std::int16_t>(72, 8); }},
      {"voxels begin at byte", [](raw_nifti& f) { f.put<float>(108, 12); }},
      {"voxels begin at byte", [](raw_nifti& f) { f.put<float>(108, std::numeric_limits<float>::quiet_NaN()); }},
      {"truncated", [](raw_nifti& f) { f.put<float>(108, 1e8f); }},
      {"not orthonormal", [](raw_nifti& f) { f.put<float>(284, 0.5f); }},
      {"spacing of axis 2 is 0", [](raw_nifti& f) { f.put<float>(300, 0); }},
      {"spacing of axis 2", [](raw_nifti& f) { f.put<float>(300, std::numeric_limits<float>::quiet_NaN()); }},
      {"origin", [](raw_nifti& f) { f.put<float>(292, std::numeric_limits<float>::infinity()); }},
  };
  for (const bad& b : table)
    for (const char* name : {"bad.nii", "bad.nii.gz"}) {
      raw_nifti file = raw_nifti().with_voxels();
      b.spoil(file);
      const fs::path path = write(name, file.bytes);
      try {
        read_image(path);
        ADD_FAILURE() << name << " was read; expected: " << b.reason;
      } catch (const error& e) {
        const std::string what = e.what();
        EXPECT_NE(what.find(path.string()), what.npos) << what;
        EXPECT_NE(what.find(b.reason), what.npos) << what << "\nexpected: " << b.reason;
        EXPECT_EQ(what.find('\n'), what.npos) << what;
      }
    }
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST_F(nifti_read, missing_files_folders_and_damaged_compression) {
  EXPECT_NE(refusal([&] { read_image(folder / "none.nii.gz"); }).find("no such file"), std::string::npos);
  EXPECT_NE(refusal([&] { read_image(folder); }).find("is a folder"), std::string::npos);

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
    EXPECT_NE(refusal([&] { read_image(path); }).find("truncated"), std::string::npos);
  }
  std::vector<char> damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x10);
  rewrite(damaged);
  EXPECT_NE(refusal([&] { read_image(path); }).find(path.string()), std::string::npos);
  rewrite(whole);
  EXPECT_EQ(as<std::int16_t>(read_image(path)).voxels, noise.voxels);
}

TEST_F(nifti_read, values_that_are_no_image_or_no_label) {
  raw_nifti file;
  file.put<std::int16_t>(70, 16);
  file.put<std::int16_t>(72, 32);
  file.append<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, std::numeric_limits<float>::quiet_NaN(), 11});
  EXPECT_NE(refusal([&] { read_image(write("nan.nii", file.bytes)); }).find("(1, 1, 1) is not finite"),
            std::string::npos);
  file.put<float>(352 + 40, 0.5f);
  EXPECT_NE(refusal([&] { read_labels(write("half.nii", file.bytes)); }).find("label 0.5"), std::string::npos);
  file.put<float>(352 + 40, 256);
  EXPECT_NE(refusal([&] { read_labels(write("many.nii", file.bytes)); }).find("label 256"), std::string::npos);
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
  const std::string text = refusal([&] { write_nifti(folder / "file" / "a.nii.gz", labels); });
  EXPECT_NE(text.find("cannot be written"), std::string::npos) << text;
  fs::create_directories(folder / "taken.nii.gz" / "inside");
  EXPECT_NE(refusal([&] { write_nifti(folder / "taken.nii.gz", labels); }).find("cannot be written"),
            std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2);
}

phantom_options small_phantom(std::uint64_t seed) {
  return {.seed = seed, .extents = {30, 110, 110}, .spacing = {10, 3.2, 3.2}, .noise = 12};
}

TEST(phantom, the_seed_decides_and_nothing_else) {
  const phantom a = make_phantom(small_phantom(3)), again = make_phantom(small_phantom(3));
  EXPECT_EQ(a.image.voxels, again.image.voxels);
  EXPECT_EQ(a.labels.voxels, again.labels.voxels);
  const phantom other = make_phantom(small_phantom(4));
  EXPECT_NE(a.image.voxels, other.image.voxels);
  EXPECT_NE(a.labels.voxels, other.labels.voxels);
}

TEST(phantom, looks_like_an_abdomen_to_a_histogram) {
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{7}}) {
    const phantom p = make_phantom({.seed = seed, .extents = {75, 220, 220}, .spacing = {4, 1.6, 1.6}});
    std::size_t air = 0, fat = 0, soft = 0, bone = 0, colon = 0;
    std::vector<int> lesion_hu;
    for (std::size_t i = 0; i < p.image.voxels.size(); ++i) {
      const int hu = p.image.voxels[i];
      ASSERT_TRUE(hu >= -1024 && hu <= 3071);
      ASSERT_LE(p.labels.voxels[i], 2);
      air += hu < -900;
      fat += hu > -140 && hu < -60;
      soft += hu > 0 && hu < 200;
      bone += hu > 400;
      colon += p.labels.voxels[i] == label_colon;
      if (p.labels.voxels[i] == label_lesion) lesion_hu.push_back(hu);
    }
    const auto share = [&](std::size_t n) {
      return static_cast<double>(n) / static_cast<double>(p.image.voxels.size());
    };
    EXPECT_GT(share(air), 0.25);
    EXPECT_GT(share(fat), 0.1);
    EXPECT_GT(share(soft), 0.1);
    EXPECT_GT(share(bone), 0.005);
    EXPECT_GT(share(colon), 0.005);
    // Lesions are soft tissue; their rim shares voxels with gas and contrast, their median does not.
    ASSERT_GT(lesion_hu.size(), 500U);
    std::nth_element(lesion_hu.begin(), lesion_hu.begin() + static_cast<std::ptrdiff_t>(lesion_hu.size() / 2),
                     lesion_hu.end());
    EXPECT_NEAR(lesion_hu[lesion_hu.size() / 2], 74, 12);
    for (const std::size_t corner : {std::size_t{0}, std::size_t{219}}) EXPECT_LT(p.image.voxels[corner], -950);
  }
}

TEST(phantom, noise_has_the_deviation_asked_for) {
  phantom_options quiet = small_phantom(2);
  quiet.noise = 0;
  const phantom a = make_phantom(small_phantom(2)), b = make_phantom(quiet);
  double sum = 0, squares = 0, count = 0;
  for (std::size_t i = 0; i < a.image.voxels.size(); ++i) {
    if (b.image.voxels[i] < -400) continue;
    const double d = a.image.voxels[i] - b.image.voxels[i];
    sum += d, squares += d * d, count += 1;
  }
  EXPECT_NEAR(sum / count, 0, 0.5);
  EXPECT_NEAR(std::sqrt(squares / count), 12, 0.6);
}

TEST(phantom, bad_options_are_refused) {
  EXPECT_THROW(make_phantom({.extents = {0, 10, 10}}), error);
  EXPECT_THROW(make_phantom({.spacing = {1, -1, 1}}), error);
  EXPECT_THROW(make_phantom({.noise = -1}), error);
}

// A project as InVesalius writes it: members of a compressed tar in a folder of its own.
std::vector<unsigned char> tar_member(const std::string& name, const std::vector<unsigned char>& content) {
  std::vector<unsigned char> block(512, 0);
  std::memcpy(block.data(), name.data(), name.size());
  std::snprintf(reinterpret_cast<char*>(block.data()) + 124, 12, "%011zo", content.size());
  block.insert(block.end(), content.begin(), content.end());
  block.resize((block.size() + 511) / 512 * 512);
  return block;
}

TEST_F(sample_reader, reads_volume_mask_and_place) {
  const std::string plist =
      "<dict><key>matrix</key><dict><key>shape</key><array><integer>2</integer><integer>3</integer>"
      "<integer>4</integer></array></dict><key>spacing</key><array><real>0.5</real><real>0.75</real><real>1.5</real>"
      "</array></dict>";
  std::vector<unsigned char> matrix, mask;
  for (int i = 0; i < 24; ++i) {
    const int hu = 100 * i - 1024;
    matrix.push_back(static_cast<unsigned char>(hu & 0xff));
    matrix.push_back(static_cast<unsigned char>((hu >> 8) & 0xff));
  }
  for (int z = 0; z < 3; ++z)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 5; ++x) mask.push_back(z == 0 || y == 0 || x == 0 ? 255 : (z + y + x) % 2 ? 255 : 0);
  std::vector<unsigned char> tar;
  for (const auto& [name, content] :
       {std::pair{"tmp1/other.vtp", std::vector<unsigned char>(700, 9)}, std::pair{"tmp1/mask_0.dat", mask},
        std::pair{"tmp1/main.plist", std::vector<unsigned char>(plist.begin(), plist.end())},
        std::pair{"tmp1/matrix.dat", matrix}}) {
    const auto member = tar_member(name, content);
    tar.insert(tar.end(), member.begin(), member.end());
  }
  tar.resize(tar.size() + 1024, 0);
  const sample_volume s = read_invesalius(write("a.gz", tar));
  EXPECT_EQ(s.image.grid.extents, (extent3{2, 3, 4}));
  EXPECT_EQ(s.image.grid.spacing, (point3{1.5, 0.75, 0.5}));
  EXPECT_EQ(s.image.grid.index_to_physical()({0.5, 1, 1.5}), (point3{0, 0, 0}));
  EXPECT_LT(s.image.grid.direction[1][1], 0);  // rows run to the front
  for (int i = 0; i < 24; ++i) EXPECT_EQ(s.image.voxels[static_cast<std::size_t>(i)], 100 * i - 1024);
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 4; ++x)
        EXPECT_EQ(s.labels.voxels[linear_index(s.labels.grid.extents, z, y, x)], (z + y + x + 3) % 2);

  tar.resize(tar.size() - 1024 - 512);
  EXPECT_NE(refusal([&] { read_invesalius(write("b.gz", tar)); }).find("matrix.dat is missing"), std::string::npos);
  EXPECT_NE(refusal([&] { read_invesalius(folder / "none"); }).find("cannot be opened"), std::string::npos);
}

TEST(shown_on, is_exact_on_a_ramp_and_outside_beyond) {
  volume<float> ramp{oblique_grid(), {}};
  for (std::int64_t z = 0; z < 4; ++z)
    for (std::int64_t y = 0; y < 5; ++y)
      for (std::int64_t x = 0; x < 6; ++x) ramp.voxels.push_back(static_cast<float>(100 * z + 10 * y + x));
  grid target = ramp.grid;
  target.extents = {2, 3, 20};
  target.spacing[2] = 0.5 * ramp.grid.spacing[2];
  target.origin = ramp.grid.index_to_physical()({0.5, 1.25, 2});
  const volume<float> shown = shown_on(ramp, target, -7.0f);
  for (std::int64_t z = 0; z < 2; ++z)
    for (std::int64_t y = 0; y < 3; ++y)
      for (std::int64_t x = 0; x < 20; ++x) {
        const double source_x = 2 + 0.5 * static_cast<double>(x);
        const double expected = source_x > 5.5 ? -7.0
                                               : 100 * (static_cast<double>(z) + 0.5) +
                                                     10 * (static_cast<double>(y) + 1.25) + std::min(source_x, 5.0);
        if (std::abs(source_x - 5.5) < 1e-6) continue;  // on the rim either is right
        EXPECT_NEAR(shown.voxels[linear_index(target.extents, z, y, x)], expected, 1e-3) << z << ' ' << y << ' ' << x;
      }
}

TEST(labels_on, keeps_labels_on_their_own_grid_and_votes_between) {
  label_volume labels{oblique_grid(), {}};
  std::mt19937 random(1);
  for (int i = 0; i < 120; ++i) labels.voxels.push_back(static_cast<std::uint8_t>(random() % 5));
  EXPECT_EQ(labels_on(labels, labels.grid).voxels, labels.voxels);

  // Between 4 and 9 along one axis: the nearer one wins.
  grid line;
  line.extents = {1, 1, 2};
  grid at = line;
  at.extents = {1, 1, 1};
  at.origin = {0, 0, 0.4};
  EXPECT_EQ(labels_on({line, {9, 4}}, at).voxels[0], 9);
  at.origin = {0, 0, 0.6};
  EXPECT_EQ(labels_on({line, {9, 4}}, at).voxels[0], 4);
  at.origin = {0, 0, 0.5};
  EXPECT_EQ(labels_on({line, {9, 4}}, at).voxels[0], 4);  // a tie goes to the lowest
}

class picture {
public:
  explicit picture(const fs::path& path) : surface_(cairo_image_surface_create_from_png(path.c_str())) {}
  ~picture() { cairo_surface_destroy(surface_); }
  picture(const picture&) = delete;
  picture& operator=(const picture&) = delete;
  int width() const { return cairo_image_surface_get_width(surface_); }
  int height() const { return cairo_image_surface_get_height(surface_); }
  // Red, green, blue.
  std::array<int, 3> at(int x, int y) const {
    std::uint32_t pixel = 0;
    std::memcpy(&pixel, cairo_image_surface_get_data(surface_) + y * cairo_image_surface_get_stride(surface_) + 4 * x,
                4);
    return {static_cast<int>(pixel >> 16 & 255), static_cast<int>(pixel >> 8 & 255), static_cast<int>(pixel & 255)};
  }

private:
  cairo_surface_t* surface_;
};

TEST_F(contact_sheets, right_of_the_patient_is_left_and_front_and_head_are_up) {
  // The same object stored along different axes: bright where the patient is right, front and head.
  const matrix3 orders[] = {matrix3{}, {{{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}}, {{{0, 0, -1}, {0, 1, 0}, {1, 0, 0}}}};
  for (const matrix3& direction : orders) {
    grid g;
    g.extents = {40, 40, 40};
    g.direction = direction;
    const point3 middle = g.index_to_physical()(g.center());
    panel p{{g, {}}, {g, std::vector<std::uint8_t>(64000, 0)}};
    for (double z = 0; z < 40; ++z)
      for (double y = 0; y < 40; ++y)
        for (double x = 0; x < 40; ++x) {
          const point3 q = g.index_to_physical()({z, y, x});
          p.image.voxels.push_back(q[0] > middle[0] - 3 && q[1] < middle[1] + 3 && q[2] < middle[2] + 3 ? 1.0f : 0.0f);
        }
    write_contact_sheet(folder / "a.png", {"test", {}, {{"row", p, p}}});
    const picture sheet(folder / "a.png");
    ASSERT_GT(sheet.width(), 1300);
    // Six pictures of 224 pixels, 6 apart in a group, 26 between the groups; the first at (20, 96).
    for (const int left : {20, 250, 480, 730, 960, 1190}) {
      EXPECT_EQ(sheet.at(left + 50, 96 + 50)[0], 255) << left;
      EXPECT_EQ(sheet.at(left + 190, 96 + 50)[0], 0) << left;
      EXPECT_EQ(sheet.at(left + 50, 96 + 170)[0], 0) << left;
      EXPECT_EQ(sheet.at(left + 190, 96 + 190)[0], 0) << left;
    }
  }
}

TEST_F(contact_sheets, outlines_lie_on_the_edge_of_a_label_and_voxels_keep_their_proportions) {
  grid g;
  g.extents = {16, 32, 32};
  g.spacing = {4, 2, 2};  // a cube of 64 mm
  panel p{{g, std::vector<float>(16384, 0.5f)}, {g, std::vector<std::uint8_t>(16384, 0)}};
  for (std::int64_t z = 4; z < 12; ++z)
    for (std::int64_t y = 8; y < 24; ++y)
      for (std::int64_t x = 8; x < 24; ++x) p.labels.voxels[linear_index(g.extents, z, y, x)] = 2;
  write_contact_sheet(folder / "a.png", {"test", {"one", "two"}, {{"row", p, p}}});
  const picture sheet(folder / "a.png");
  // The label fills the middle half of every picture: its edges are at a quarter and three quarters of 224 pixels.
  for (const int left : {20, 250, 480})
    for (const int edge : {56, 168}) {
      int across = 0, along = 0, inside = 0;
      for (int i = -2; i <= 2; ++i) {
        const auto a = sheet.at(left + edge + i, 96 + 112), b = sheet.at(left + 100, 96 + edge + i);
        across = std::max(across, a[0] - a[2]);
        along = std::max(along, b[0] - b[2]);
      }
      for (int i = 4; i < 20; ++i)
        inside =
            std::max(inside, std::abs(sheet.at(left + 60 + i, 96 + 140)[0] - sheet.at(left + 60 + i, 96 + 140)[2]));
      EXPECT_GT(across, 60) << left << ' ' << edge;  // label 2 is drawn in red
      EXPECT_GT(along, 60) << left << ' ' << edge;
      EXPECT_EQ(inside, 0);
    }
}

TEST_F(contact_sheets, errors) {
  EXPECT_THROW(write_contact_sheet(folder / "a.png", {"empty", {}, {}}), error);
  grid g;
  g.extents = {2, 2, 2};
  const panel good{{g, std::vector<float>(8)}, {g, std::vector<std::uint8_t>(8)}};
  panel bad = good;
  bad.labels.voxels.pop_back();
  EXPECT_THROW(write_contact_sheet(folder / "a.png", {"bad", {}, {{"row", good, bad}}}), error);
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(write_contact_sheet(folder / "file" / "a.png", {"bad", {}, {{"row", good, good}}}), error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST_F(reports, digests_are_sixteen_digits_and_a_report_is_one_line_and_a_file) {
  EXPECT_EQ(hexadecimal(0), "0000000000000000");
  EXPECT_EQ(hexadecimal(0xfedcba9876543210u), "fedcba9876543210");
  testing::internal::CaptureStdout();
  write_report(folder / "report.json", {{"b", 1}, {"a", "two"}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"b\":1,\"a\":\"two\"}\n");
  std::ifstream file(folder / "report.json");
  EXPECT_EQ(report::parse(file).at("a"), "two");
}

TEST_F(reports, unwritable_folder_is_named) {
  std::ofstream(folder / "file") << "x";
  require_writable_folder(folder / "new" / "deep");
  EXPECT_TRUE(fs::is_empty(folder / "new" / "deep"));
  for (const fs::path& bad : {folder / "file", folder / "file" / "below"})
    EXPECT_NE(refusal([&] { require_writable_folder(bad); }).find(bad.string()), std::string::npos);
}

}  // namespace
