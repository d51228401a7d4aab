// SPDX-License-Identifier: Apache-2.0
// Headers of NIfTI files that say something impossible, each made of a good one by changing a field or two, in both
// byte orders and compressed or not; and unusual ones that are good, with what nibabel 5.4 reads of them.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <string>

#include "common/nifti.hpp"
#include "support/expect_says.hpp"
#include "support/files.hpp"
#include "support/raw_nifti.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture;
using namespace suture::examples;
using support::raw_nifti;
using nifti_headers = support::files;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

// By the byte offsets of the standard.
constexpr std::size_t sizeof_hdr = 0, intent_code = 68, datatype = 70, bitpix = 72, vox_offset = 108, scl_slope = 112,
                      scl_inter = 116, xyzt_units = 123, qform_code = 252, sform_code = 254, quatern_b = 256,
                      qoffset_x = 268, srow_x = 280, srow_y = 296, srow_z = 312, magic = 344;
constexpr std::size_t dim(std::size_t k) { return 40 + 2 * k; }
constexpr std::size_t pixdim(std::size_t k) { return 76 + 4 * k; }

void put(raw_nifti& f, std::size_t field, float value) { f.put(field, value); }
void put_short(raw_nifti& f, std::size_t field, int value) { f.put(field, static_cast<std::int16_t>(value)); }

// The three ways in which a header places its voxels.
raw_nifti placed_by_sform() { return raw_nifti().with_voxels(); }
raw_nifti placed_by_spacing() { return raw_nifti().with_voxels().put<std::int16_t>(sform_code, 0); }
raw_nifti placed_by_qform() { return placed_by_spacing().put<std::int16_t>(qform_code, 1); }

struct bad_header {
  const char* reason;
  std::function<void(raw_nifti&)> spoil;
};

void expect_refused(const fs::path& path, const std::string& reason) {
  const std::string what = message([&] { read_image(path); });
  EXPECT_NE(what.find(path.string()), what.npos) << path.filename() << ": " << what;
  EXPECT_NE(what.find(reason), what.npos) << what << "\nexpected: " << reason;
  EXPECT_EQ(what.find('\n'), what.npos) << what;
}

class bad_headers : public support::files {
protected:
  void expect_all_refused(const raw_nifti& good, const std::vector<bad_header>& table) const {
    ASSERT_NO_THROW(read_image(write("good.nii", good.bytes)));
    for (const bad_header& b : table) {
      raw_nifti file = good;
      b.spoil(file);
      for (const char* name : {"bad.nii", "bad.nii.gz"}) {
        expect_refused(write(name, file.bytes), b.reason);
        expect_refused(write(name, file.swapped().bytes), b.reason);
      }
    }
  }
};

TEST_F(bad_headers, of_other_formats_and_of_files_cut_short) {
  expect_all_refused(placed_by_sform(),
                     {{"shorter than a NIfTI header", [](raw_nifti& f) { f.bytes.resize(100); }},
                      {"shorter than a NIfTI header", [](raw_nifti& f) { f.bytes.clear(); }},
                      {"truncated", [](raw_nifti& f) { f.bytes.pop_back(); }},
                      {"truncated", [](raw_nifti& f) { f.bytes.resize(350); }},
                      {"magic is \"x+1?\"", [](raw_nifti& f) { f.bytes[magic] = 'x'; }},
                      {"magic is ni1: header and voxels in two files", [](raw_nifti& f) { f.bytes[magic + 1] = 'i'; }},
                      {"not 348: not a NIfTI-1 file", [](raw_nifti& f) { f.put<std::int32_t>(sizeof_hdr, 77); }},
                      {"sizeof_hdr is 540: NIfTI-2", [](raw_nifti& f) { f.put<std::int32_t>(sizeof_hdr, 540); }}});
}

TEST_F(bad_headers, of_extents) {
  expect_all_refused(
      placed_by_sform(),
      {
          {"dim[0], the number of dimensions, is 0,", [](raw_nifti& f) { put_short(f, dim(0), 0); }},
          {"dim[0], the number of dimensions, is 9,", [](raw_nifti& f) { put_short(f, dim(0), 9); }},
          {"dim[0], the number of dimensions, is -3,", [](raw_nifti& f) { put_short(f, dim(0), -3); }},
          {"dim[2] is 0, must be positive", [](raw_nifti& f) { put_short(f, dim(2), 0); }},
          {"dim[3] is 0, must be positive", [](raw_nifti& f) { put_short(f, dim(3), 0); }},
          {"dim[3] is -2, must be positive", [](raw_nifti& f) { put_short(f, dim(3), -2); }},
          {"dim[4] is 0, must be positive", [](raw_nifti& f) { put_short(f, dim(0), 4), put_short(f, dim(4), 0); }},
          {"dim[4] is 2: several volumes along axis 4",
           [](raw_nifti& f) { put_short(f, dim(0), 4), put_short(f, dim(4), 2); }},
          {"dim[7] is 3: several volumes along axis 7",
           [](raw_nifti& f) { put_short(f, dim(0), 7), put_short(f, dim(7), 3); }},
          {"truncated: the header announces 70362301923326 bytes",  // 2 * 32767^3
           [](raw_nifti& f) { put_short(f, dim(1), 32767), put_short(f, dim(2), 32767), put_short(f, dim(3), 32767); }},
      });
}

TEST_F(bad_headers, of_voxels_that_are_no_number) {
  expect_all_refused(
      placed_by_sform(),
      {
          {"datatype is 0 (UNKNOWN)", [](raw_nifti& f) { put_short(f, datatype, 0); }},
          {"datatype is 1 (BINARY)", [](raw_nifti& f) { put_short(f, datatype, 1); }},
          {"datatype is 32 (COMPLEX64)", [](raw_nifti& f) { put_short(f, datatype, 32); }},
          {"datatype is 1792 (COMPLEX128)", [](raw_nifti& f) { put_short(f, datatype, 1792); }},
          {"datatype is 128 (RGB24)", [](raw_nifti& f) { put_short(f, datatype, 128); }},
          {"datatype is 2304 (RGBA32)", [](raw_nifti& f) { put_short(f, datatype, 2304); }},
          {"datatype is 1536 (FLOAT128)", [](raw_nifti& f) { put_short(f, datatype, 1536); }},
          {"datatype is 12345 ", [](raw_nifti& f) { put_short(f, datatype, 12345); }},
          {"datatype is -4 ", [](raw_nifti& f) { put_short(f, datatype, -4); }},
          {"bitpix is 8, but voxels of datatype 4 (INT16) have 16 bits", [](raw_nifti& f) { put_short(f, bitpix, 8); }},
          {"bitpix is 16, but voxels of datatype 2 (UINT8) have 8 bits",
           [](raw_nifti& f) { put_short(f, datatype, 2); }},
      });
  std::vector<bad_header> intents;
  const std::vector<std::pair<int, const char*>> meant{{1004, "intent_code is 1004: its values are matrices"},
                                                       {1005, "intent_code is 1005: its values are matrices"},
                                                       {1006, "intent_code is 1006: its values are vectors"},
                                                       {1007, "intent_code is 1007: its values are vectors"},
                                                       {1008, "intent_code is 1008: its values are parts of a mesh"},
                                                       {1009, "intent_code is 1009: its values are parts of a mesh"},
                                                       {1010, "intent_code is 1010: its values are quaternions"},
                                                       {2002, "intent_code is 2002: its values are parts of a mesh"},
                                                       {2003, "intent_code is 2003: its values are colors"},
                                                       {2004, "intent_code is 2004: its values are colors"},
                                                       {2005, "intent_code is 2005: its values are parts of a mesh"},
                                                       {2006, "intent_code is 2006: its values are vectors"},
                                                       {2007, "intent_code is 2007: its values are coefficients"},
                                                       {2008, "intent_code is 2008: its values are coefficients"},
                                                       {2009, "intent_code is 2009: its values are coefficients"},
                                                       {2016, "intent_code is 2016: its values are coefficients"},
                                                       {2017, "intent_code is 2017: its values are coefficients"}};
  for (const auto& [code, reason] : meant)
    intents.push_back({reason, [code = code](raw_nifti& f) { put_short(f, intent_code, code); }});
  expect_all_refused(placed_by_sform(), intents);
}

TEST_F(bad_headers, of_places_in_the_file_and_of_scales) {
  expect_all_refused(
      placed_by_sform(),
      {
          {"vox_offset is 0, must be at least 352", [](raw_nifti& f) { put(f, vox_offset, 0); }},
          {"vox_offset is 12, must be at least 352", [](raw_nifti& f) { put(f, vox_offset, 12); }},
          {"vox_offset is 348, must be at least 352", [](raw_nifti& f) { put(f, vox_offset, 348); }},
          {"vox_offset is 351, must be at least 352", [](raw_nifti& f) { put(f, vox_offset, 351); }},
          {"vox_offset is -352, must be at least 352", [](raw_nifti& f) { put(f, vox_offset, -352); }},
          {"vox_offset is nan, must be at least 352", [](raw_nifti& f) { put(f, vox_offset, not_a_number); }},
          {"vox_offset is 352.5, must be a whole number", [](raw_nifti& f) { put(f, vox_offset, 352.5f); }},
          {"vox_offset is inf, must be a whole number", [](raw_nifti& f) { put(f, vox_offset, infinite); }},
          {"truncated: vox_offset is 100000000", [](raw_nifti& f) { put(f, vox_offset, 1e8f); }},
          {"truncated: vox_offset is 1e+30", [](raw_nifti& f) { put(f, vox_offset, 1e30f); }},
          {"truncated: ", [](raw_nifti& f) { put(f, vox_offset, 353); }},
          {"scl_inter is inf beside scl_slope 2",
           [](raw_nifti& f) { put(f, scl_slope, 2), put(f, scl_inter, infinite); }},
          {"scl_inter is -inf beside scl_slope 1",
           [](raw_nifti& f) { put(f, scl_slope, 1), put(f, scl_inter, -infinite); }},
          {"scl_inter is nan beside scl_slope -1",
           [](raw_nifti& f) { put(f, scl_slope, -1), put(f, scl_inter, not_a_number); }},
      });
}

TEST_F(bad_headers, of_spacing) {
  std::vector<bad_header> table;
  std::vector<std::string> reasons;
  reasons.reserve(100);
  for (std::size_t k = 1; k <= 3; ++k)
    for (const auto& [value, text] : {std::pair{0.0f, "0"},
                                      {-0.0f, "-0"},
                                      {-1.0f, "-1"},
                                      {1e-42f, "1.00053e-42"},
                                      {not_a_number, "nan"},
                                      {infinite, "inf"},
                                      {-infinite, "-inf"}}) {
      const std::string axis = std::to_string(k);
      reasons.push_back("pixdim[" + axis + "], the spacing of axis " + axis + ", is " + text + ", must be positive");
      table.push_back({reasons.back().c_str(), [k, value = value](raw_nifti& f) { put(f, pixdim(k), value); }});
    }
  expect_all_refused(placed_by_spacing(), table);
  expect_all_refused(placed_by_qform(), table);
}

TEST_F(bad_headers, of_qforms) {
  std::vector<bad_header> table{
      {"quatern_b, quatern_c and quatern_d are 2, 0 and 0: the sum of their squares is 4",
       [](raw_nifti& f) { put(f, quatern_b, 2); }},
      {"are 0.8, 0 and -0.7: the sum of their squares is 1.13",
       [](raw_nifti& f) { put(f, quatern_b, 0.8f), put(f, quatern_b + 8, -0.7f); }},
      {"are 0, 1.0001 and 0: the sum of their squares is 1.0002", [](raw_nifti& f) { put(f, quatern_b + 4, 1.0001f); }},
      {"pixdim[0], the handedness, is nan", [](raw_nifti& f) { put(f, pixdim(0), not_a_number); }},
      {"pixdim[0], the handedness, is -0.5", [](raw_nifti& f) { put(f, pixdim(0), -0.5f); }},
      {"pixdim[0], the handedness, is inf", [](raw_nifti& f) { put(f, pixdim(0), infinite); }},
      {"qform_code is 77, must be 0 to 5", [](raw_nifti& f) { put_short(f, qform_code, 77); }},
      {"qform_code is -1, must be 0 to 5", [](raw_nifti& f) { put_short(f, qform_code, -1); }},
      {"xyzt_units is 5: 5 is no unit of length", [](raw_nifti& f) { f.bytes[xyzt_units] = 5; }},
      {"xyzt_units is 12: 4 is no unit of length", [](raw_nifti& f) { f.bytes[xyzt_units] = 12; }}};
  const char* const fields[6] = {"quatern_b", "quatern_c", "quatern_d", "qoffset_x", "qoffset_y", "qoffset_z"};
  std::vector<std::string> reasons;
  reasons.reserve(100);
  for (std::size_t i = 0; i < 6; ++i)
    for (const auto& [value, text] : {std::pair{not_a_number, "nan"}, {infinite, "inf"}, {-infinite, "-inf"}}) {
      reasons.push_back(std::string(fields[i]) + " is " + text + ", must be finite");
      table.push_back({reasons.back().c_str(), [i, value = value](raw_nifti& f) { put(f, quatern_b + 4 * i, value); }});
    }
  expect_all_refused(placed_by_qform(), table);
}

TEST_F(bad_headers, of_sforms) {
  std::vector<bad_header> table{
      {"srow_x[1], srow_y[1] and srow_z[1] are 0: the sform is singular", [](raw_nifti& f) { put(f, srow_y + 4, 0); }},
      // The third axis along the first.
      {"srow_x, srow_y and srow_z: direction is not orthonormal",
       [](raw_nifti& f) { put(f, srow_x + 8, 3), put(f, srow_z + 8, 0); }},
      {"srow_x, srow_y and srow_z: direction is not orthonormal", [](raw_nifti& f) { put(f, srow_x + 4, 0.5f); }},
      {"sform_code is 6, must be 0 to 5", [](raw_nifti& f) { put_short(f, sform_code, 6); }},
      {"sform_code is -1, must be 0 to 5", [](raw_nifti& f) { put_short(f, sform_code, -1); }},
      {"xyzt_units is 7: 7 is no unit of length", [](raw_nifti& f) { f.bytes[xyzt_units] = 7; }}};
  const char* const rows[3] = {"srow_x[", "srow_y[", "srow_z["};
  std::vector<std::string> reasons;
  reasons.reserve(100);
  for (std::size_t i = 0; i < 12; ++i)
    for (const auto& [value, text] : {std::pair{not_a_number, "nan"}, {infinite, "inf"}}) {
      reasons.push_back(rows[i / 4] + std::to_string(i % 4) + "] is " + text + ", must be finite");
      table.push_back({reasons.back().c_str(), [i, value = value](raw_nifti& f) { put(f, srow_x + 4 * i, value); }});
    }
  expect_all_refused(placed_by_sform(), table);
}

TEST_F(nifti_headers, fields_that_place_nothing_may_say_anything) {
  // The sform decides: neither spacing nor qform are looked at.
  raw_nifti file = placed_by_sform();
  put_short(file, qform_code, 77);
  for (std::size_t k = 0; k <= 3; ++k) put(file, pixdim(k), not_a_number);
  for (std::size_t i = 0; i < 6; ++i) put(file, quatern_b + 4 * i, not_a_number);
  EXPECT_EQ(grid_of(read_image(write("sform.nii", file.bytes))).spacing, (point3{3, 2, 1}));
  // The qform decides: the sform is not looked at. Nor is either where the spacing does.
  file = placed_by_qform();
  for (std::size_t i = 0; i < 12; ++i) put(file, srow_x + 4 * i, not_a_number);
  EXPECT_EQ(grid_of(read_image(write("qform.nii", file.bytes))).spacing, (point3{3, 2, 1}));
  file = placed_by_spacing();
  for (std::size_t i = 0; i < 12; ++i) put(file, srow_x + 4 * i, not_a_number);
  for (std::size_t i = 0; i < 6; ++i) put(file, quatern_b + 4 * i, not_a_number);
  put(file, pixdim(0), not_a_number);
  EXPECT_EQ(grid_of(read_image(write("spacing.nii", file.bytes))).spacing, (point3{3, 2, 1}));
}

TEST_F(nifti_headers, slopes_that_are_no_number_scale_nothing) {
  // As in nibabel: whatever the intercept.
  for (const float slope : {0.0f, not_a_number, infinite, -infinite})
    for (const float intercept : {0.0f, 5.0f, not_a_number, infinite}) {
      raw_nifti file = placed_by_sform();
      put(file, scl_slope, slope);
      put(file, scl_inter, intercept);
      EXPECT_EQ(std::get<volume<std::int16_t>>(read_image(write("a.nii", file.bytes))).voxels,
                (std::vector<std::int16_t>{-1024, -1, 0, 1, 2, 3, 4, 5, 6, 7, 300, 3071}))
          << slope << ' ' << intercept;
    }
}

TEST_F(nifti_headers, two_dimensions_are_one_slice) {
  for (const int beyond : {0, 1, 7}) {
    raw_nifti file = placed_by_spacing();
    put_short(file, dim(0), 2);
    for (std::size_t k = 3; k <= 7; ++k) put_short(file, dim(k), beyond);
    image_volume image = read_image(write("a.nii", file.bytes));
    EXPECT_EQ(grid_of(image).extents, (extent3{1, 2, 3}));
    EXPECT_EQ(grid_of(image).spacing, (point3{3, 2, 1}));
    EXPECT_EQ(std::get<volume<std::int16_t>>(image).voxels, (std::vector<std::int16_t>{-1024, -1, 0, 1, 2, 3}));
    // A thickness that is left open is 1; one that is nonsense is nonsense.
    put(file, pixdim(3), 0);
    EXPECT_EQ(grid_of(read_image(write("a.nii", file.bytes))).spacing, (point3{1, 2, 1}));
    put(file, pixdim(3), -3);
    expect_refused(write("a.nii", file.bytes), "pixdim[3], the spacing of axis 3, is -3");
  }
  raw_nifti file = placed_by_sform();
  put_short(file, dim(0), 1);
  put_short(file, dim(2), 0);
  EXPECT_EQ(grid_of(read_image(write("row.nii", file.bytes))).extents, (extent3{1, 1, 3}));
}

TEST_F(nifti_headers, quaternions_of_half_turns_may_be_rounded) {
  // Half a turn about the first axis: the others are reversed. Its scalar part is 0, and the square of quatern_b as
  // large as rounding makes it.
  for (const float b : {1.0f, 0.999999f, 1.000002f}) {
    raw_nifti file = placed_by_qform();
    put(file, quatern_b, b);
    const grid g = grid_of(read_image(write("a.nii", file.bytes)));
    const double expected[3] = {-1, -1, 1};  // z, y, x of RAS
    for (int axis = 0; axis < 3; ++axis) {
      const double sign = axis == 0 ? 1 : -1;  // LPS
      EXPECT_NEAR(sign * g.direction[axis][axis], expected[axis], 1e-5) << b;
    }
  }
}

TEST_F(nifti_headers, units_of_length_are_converted) {
  constexpr double origin[3] = {30, -20, 10};
  for (const auto& [unit, millimeters] : {std::pair{0, 1.0}, {1, 1000.0}, {2, 1.0}, {3, 0.001}, {2 + 8, 1.0}}) {
    raw_nifti file = placed_by_sform();
    file.bytes[xyzt_units] = static_cast<unsigned char>(unit);
    const grid g = grid_of(read_image(write("a.nii", file.bytes)));
    for (int k = 0; k < 3; ++k) {
      EXPECT_DOUBLE_EQ(g.spacing[k], (3 - k) * millimeters) << unit;
      EXPECT_DOUBLE_EQ(g.origin[k], origin[k] * millimeters);
    }
  }
}

TEST_F(nifti_headers, scalar_intents_and_longer_offsets_are_read) {
  for (const int code : {0, 5, 1001, 1002, 1003, 1011, 2001, 2018}) {
    raw_nifti file = placed_by_sform();
    put_short(file, intent_code, code);
    EXPECT_NO_THROW(read_image(write("a.nii", file.bytes))) << code;
  }
  raw_nifti file;  // an extension of 16 bytes between header and voxels
  file.bytes[348] = 1;
  file.append<std::int32_t>({16, 6, 0, 0});
  put(file, vox_offset, 368);
  file.with_voxels();
  EXPECT_EQ(std::get<volume<std::int16_t>>(read_image(write("a.nii", file.bytes))).voxels[0], -1024);
}

TEST_F(nifti_headers, compressed_files_end_with_the_checksum_of_what_they_hold) {
  const fs::path path = write("a.nii.gz", placed_by_sform().bytes);
  std::ifstream stream(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  const auto rewrite = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  for (std::size_t missing = 1; missing <= 8; ++missing) {
    rewrite(whole.substr(0, whole.size() - missing));
    expect_refused(path, "truncated: the compressed stream ends before its checksum");
  }
  for (std::size_t place = 1; place <= 8; ++place) {
    std::string damaged = whole;
    damaged[whole.size() - place] = static_cast<char>(damaged[whole.size() - place] ^ 1);
    rewrite(damaged);
    expect_refused(path, "damaged compression");
  }
  rewrite(whole);
  EXPECT_NO_THROW(read_image(path));
  // What follows the voxels is no reason to skip the checksum behind it.
  raw_nifti longer = placed_by_sform();
  longer.bytes.resize(longer.bytes.size() + 100000);
  const std::uintmax_t size = fs::file_size(write("a.nii.gz", longer.bytes));
  EXPECT_NO_THROW(read_image(path));
  fs::resize_file(path, size - 4);
  expect_refused(path, "truncated: the compressed stream ends before its checksum");
}

TEST_F(nifti_headers, what_a_float_cannot_hold_is_not_written) {
  const auto with = [](const std::function<void(grid&)>& change) {
    label_volume labels{{.extents = {1, 2, 2}}, {1, 2, 3, 4}};
    change(labels.grid);
    return labels;
  };
  const fs::path path = folder / "a.nii";
  EXPECT_SAYS(write_nifti(path, with([](grid& g) { g.spacing = {1, 1e-60, 1}; })), "srow_");
  EXPECT_SAYS(write_nifti(path, with([](grid& g) { g.spacing = {1e60, 1, 1}; })), "srow_");
  EXPECT_SAYS(write_nifti(path, with([](grid& g) { g.origin = {0, 0, 1e60}; })), "srow_");
  EXPECT_FALSE(fs::exists(path));
  EXPECT_NO_THROW(write_nifti(path, with([](grid&) {})));
}

}  // namespace
