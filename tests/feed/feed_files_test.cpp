// SPDX-License-Identifier: Apache-2.0
// Boxes of raw and of NIfTI files, and files that cannot be read in boxes, each refused in one sentence.
#include <gtest/gtest.h>

#include "support/expect_says.hpp"
#include "support/files.hpp"
#include "support/raw_nifti.hpp"
#include "suture/feed/nifti.hpp"

namespace {

using namespace suture;
using support::raw_nifti;

class feed_files : public support::files {
protected:
  // Elements 0, 1, 2, ... from a byte on.
  template <class T>
  std::filesystem::path counted(const std::string& name, std::size_t elements, std::size_t offset = 0) const {
    std::vector<unsigned char> bytes(offset + elements * sizeof(T), 0xee);
    for (std::size_t i = 0; i < elements; ++i) {
      const T value = static_cast<T>(i);
      std::memcpy(bytes.data() + offset + i * sizeof(T), &value, sizeof value);
    }
    return write(name, bytes);
  }
};

template <class R>
auto read(const R& reader, const voxel_box& box) {
  std::vector<typename R::element> v(static_cast<std::size_t>(reader.channels(0) * box.voxels()));
  reader.read(0, box, v.data());
  return v;
}

const grid g{.extents = {4, 5, 6}};

TEST_F(feed_files, raw_files_are_read_in_boxes) {
  const raw_file whole{"one", counted<std::int16_t>("one.raw", 240, 16), g, 2, 16};
  const raw_file_reader<std::int16_t> reader({whole});
  for (const voxel_box box :
       {voxel_box{{0, 0, 0}, {4, 5, 6}}, voxel_box{{1, 0, 0}, {2, 5, 6}}, voxel_box{{1, 2, 0}, {2, 2, 6}},
        voxel_box{{3, 4, 5}, {1, 1, 1}}, voxel_box{{0, 1, 2}, {4, 3, 3}}, voxel_box{{2, 0, 3}, {1, 5, 1}}}) {
    const auto got = read(reader, box);
    std::size_t at = 0;
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t z = box.first[0]; z < box.first[0] + box.size[0]; ++z)
        for (std::int64_t y = box.first[1]; y < box.first[1] + box.size[1]; ++y)
          for (std::int64_t x = box.first[2]; x < box.first[2] + box.size[2]; ++x)
            ASSERT_EQ(got[at++], ((c * 4 + z) * 5 + y) * 6 + x);
  }
  EXPECT_SAYS(read(reader, {{0, 0, 0}, {5, 1, 1}}), "raw_file_reader: one: box: expected voxels within");
}

TEST_F(feed_files, raw_files_of_another_size_are_refused) {
  const auto path = counted<std::uint8_t>("short.raw", 119);
  EXPECT_SAYS(raw_file_reader<std::uint8_t>({{"a", path, g}}), "short.raw: size: expected 0 + 120 bytes");
  EXPECT_SAYS(raw_file_reader<std::uint8_t>({{"a", folder / "none", g}}), "none: cannot be opened: No such file");
  EXPECT_SAYS(raw_file_reader<std::uint8_t>({{"a", folder, g}}), "expected a file, got a folder");
  const raw_file_reader<std::uint8_t> reader({{"a", counted<std::uint8_t>("cut.raw", 120), g}});
  std::filesystem::resize_file(folder / "cut.raw", 60);
  EXPECT_SAYS(read(reader, {{0, 0, 0}, {4, 5, 6}}),
              "cut.raw: truncated: expected 120 bytes from byte 0, the file has 60");
  EXPECT_EQ(read(reader, {{0, 0, 0}, {1, 1, 2}}), (std::vector<std::uint8_t>{0, 1}));
}

// 3 x 2 x 2 voxels: -1024 -1 0 1 2 3 | 4 5 6 7 300 3071.
TEST_F(feed_files, nifti_files_are_read_in_boxes) {
  const voxel_box whole{{0, 0, 0}, {2, 2, 3}}, column{{0, 1, 1}, {2, 1, 1}}, rows{{1, 0, 0}, {1, 2, 3}};
  const std::vector<std::int16_t> all{-1024, -1, 0, 1, 2, 3, 4, 5, 6, 7, 300, 3071};
  const auto plain = write("plain.nii", raw_nifti().with_voxels().bytes);
  const auto swapped = write("swapped.nii", raw_nifti().with_voxels().swapped().bytes);
  const auto compressed = write("compressed.nii.gz", raw_nifti().with_voxels().bytes);
  const auto both = write("both.nii.gz", raw_nifti().with_voxels().swapped().bytes);
  for (const auto& path : {plain, swapped, compressed, both}) {
    const nifti_reader<std::int16_t> reader({{"case", path}}, 24);
    EXPECT_EQ(reader.grid_of(0).extents, (extent3{2, 2, 3}));
    EXPECT_EQ(reader.grid_of(0).spacing, (point3{3, 2, 1}));
    EXPECT_EQ(read(reader, whole), all) << path;
    EXPECT_EQ(read(reader, column), (std::vector<std::int16_t>{2, 300})) << path;
    EXPECT_EQ(read(reader, rows), (std::vector<std::int16_t>{4, 5, 6, 7, 300, 3071})) << path;
    EXPECT_EQ(read(nifti_reader<float>({{"case", path}}, 24), column), (std::vector<float>{2, 300})) << path;
  }
  raw_nifti scaled = raw_nifti().with_voxels();
  scaled.put<float>(112, 2).put<float>(116, -1000);  // scl_slope, scl_inter
  const auto path = write("scaled.nii", scaled.bytes);
  EXPECT_EQ(read(nifti_reader<std::int16_t>({{"case", path}}), column), (std::vector<std::int16_t>{-996, -400}));
  EXPECT_EQ(read(nifti_reader<half>({{"case", path}}), {{1, 1, 2}, {1, 1, 1}})[0], storage<half>::store(5142));
}

TEST_F(feed_files, nifti_files_that_do_not_fit_are_refused) {
  const auto compressed = write("compressed.nii.gz", raw_nifti().with_voxels().bytes);
  expect_parts(message([&] {
                 nifti_reader<std::int16_t>({{"case", compressed}});
               }),
               {"nifti: ", "compressed.nii.gz: is compressed", "at most 0 bytes", "got 24", "build a store"});
  EXPECT_SAYS(nifti_reader<std::int16_t>({{"a", compressed}, {"b", compressed}}, 47),
              "at most 47 bytes of inflated files, got 48");
  const nifti_reader<std::uint8_t> bytes({{"case", write("plain.nii", raw_nifti().with_voxels().bytes)}});
  EXPECT_EQ(read(bytes, {{0, 1, 0}, {1, 1, 3}}), (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_SAYS(read(bytes, {{0, 0, 0}, {1, 1, 3}}),
              "plain.nii: voxels: expected numbers that uint8 holds, got -1024. Read it as float");
  raw_nifti fraction = raw_nifti().with_voxels();
  fraction.put<float>(112, .5f);
  EXPECT_SAYS(read(nifti_reader<std::int16_t>({{"case", write("half.nii", fraction.bytes)}}), {{0, 0, 1}, {1, 1, 1}}),
              "expected numbers that int16 holds, got -0.5");
  raw_nifti large = raw_nifti().with_voxels();
  large.put<float>(112, 1000);
  EXPECT_SAYS(read(nifti_reader<half>({{"case", write("large.nii", large.bytes)}}), {{1, 1, 1}, {1, 1, 1}}),
              "expected numbers that float16 holds, got 300000");
  EXPECT_SAYS(nifti_reader<float>({{"case", write("text.nii", std::vector<unsigned char>(400, 'a'))}}),
              "not a NIfTI-1 file");
  std::filesystem::resize_file(folder / "plain.nii", 360);
  EXPECT_SAYS(read(bytes, {{1, 0, 0}, {1, 1, 3}}),
              "plain.nii: truncated: expected 6 bytes from byte 364, the file has 360");
}

}  // namespace
