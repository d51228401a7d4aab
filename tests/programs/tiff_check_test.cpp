// SPDX-License-Identifier: Apache-2.0
// What TIFFs announce against what they hold: files made field by field, each wrong in one place, of both byte orders
// and both widths of offsets.
#include <gtest/gtest.h>

#include <functional>

#include "common/slide.hpp"
#include "common/tiff_check.hpp"
#include "support/expect_says.hpp"
#include "support/oracle.hpp"
#include "support/scratch_folder.hpp"
#include "support/tiff_files.hpp"

namespace {

namespace fs = std::filesystem;
using namespace suture::examples;
using support::made_tiff;
using support::write_bytes;

void without_tiles(support::tiff_page& page) {
  std::erase_if(page, [](const auto& field) { return field.first >= 322 && field.first <= 325; });
}

class tiff_files : public support::scratch_folder {
protected:
  // In every byte order and width; where the first tile lies depends on the width alone.
  void for_each_kind(const std::function<void(made_tiff&)>& change, const std::function<void(const fs::path&)>& f) {
    for (const bool big_endian : {false, true})
      for (const bool big : {false, true}) {
        SCOPED_TRACE(std::string(big_endian ? "MM" : "II") + (big ? " BigTIFF" : ""));
        made_tiff file;
        file.big_endian = big_endian;
        file.big = big;
        file.pages[0][324].values = {big ? 16u : 8u};
        change(file);
        write_bytes(folder / "made.tif", file.bytes());
        f(folder / "made.tif");
      }
  }
};

TEST_F(tiff_files, that_hold_what_they_announce_pass) {
  const auto passes = [](const fs::path& path) { EXPECT_NO_THROW(check_tiff(path)); };
  for_each_kind([](made_tiff&) {}, passes);
  // Two pages, the second in strips; missing tiles, of no bytes, wherever they are said to be.
  for_each_kind(
      [](made_tiff& file) {
        file.pages.push_back(file.pages[0]);
        without_tiles(file.pages[1]);
        file.pages[1][273] = {4, {8, 16}};
        file.pages[1][278] = {4, {8}};
        file.pages[1][279] = {4, {128, 128}};
        file.pages[0][256].values = {40};
        file.pages[0][324].values.insert(file.pages[0][324].values.end(), {0, 4000000000});
        file.pages[0][325].values = {256, 0, 0};
      },
      passes);
  // Samples apart, each in tiles of its own.
  for_each_kind(
      [](made_tiff& file) {
        file.pages[0][277].values = {3};
        file.pages[0][258].values = {8, 8, 8};
        file.pages[0][284].values = {2};
        file.pages[0][324].values.assign(3, file.pages[0][324].values[0]);
        file.pages[0][325].values = {256, 256, 256};
      },
      passes);
  write_bytes(folder / "text", {'I', 'I', ' ', 'a', 'm', ' ', 'n', 'o', ' ', 'T', 'I', 'F', 'F'});
  EXPECT_NO_THROW(check_tiff(folder / "text"));
  EXPECT_NO_THROW(check_tiff(folder / "absent"));
  const fs::path real = support::data_folder() / "histology/CMU-1-Small-Region.svs";
  if (fs::exists(real)) {
    EXPECT_NO_THROW(check_tiff(real));
  }
}

// Hamamatsu's 64-bit offsets in a 32-bit TIFF cannot be followed as those of a TIFF.
TEST_F(tiff_files, of_hamamatsu_are_left_to_their_reader) {
  made_tiff file;
  file.pages[0][65420] = {4, {1}};
  file.data.assign(256, 0);  // the upper half of the first offset
  file.pages[0][322].values = {0x1f000010};
  write_bytes(folder / "a.ndpi", file.bytes());
  EXPECT_NO_THROW(check_tiff(folder / "a.ndpi"));
}

TEST_F(tiff_files, that_announce_more_than_they_hold_are_refused) {
  struct bad {
    const char* reason;
    std::function<void(made_tiff&)> spoil;
  };
  const auto set = [](std::uint16_t tag, std::vector<std::uint64_t> values) {
    return [tag, values](made_tiff& file) { file.pages[0][tag].values = values; };
  };
  const std::vector<bad> table{
      {"page 1: tiles of 16 by 520093712 pixels; at most 32767", set(322, {0x1f000010})},
      {"page 1: tiles of 117440528 by 16 pixels; at most 32767", set(323, {0x07000010})},
      {"page 1: tiles of 16384 by 16384 pixels; at most 32767 along a side and 2^26",
       [](made_tiff& file) { file.pages[0][322].values = file.pages[0][323].values = {16384}; }},
      {"page 1: tiles of 8192 by 8192 pixels with 1000 samples of 8 bits",
       [](made_tiff& file) {
         file.pages[0][322].values = file.pages[0][323].values = {8192};
         file.pages[0][277].values = {1000};
       }},
      {"page 1: TileWidth is 0", set(322, {0})},
      {"page 1: TileLength is 0", set(323, {0})},
      {"page 1: ImageWidth is 0", set(256, {0})},
      {"page 1: ImageLength is 4294967295", set(257, {0xffffffff})},
      {"page 1: SamplesPerPixel is 0", set(277, {0})},
      {"page 1: BitsPerSample is 0", set(258, {0})},
      {"page 1: 1 samples of 65535 bits", set(258, {65535})},
      {"page 1: TileOffsets has 1 values for 2 tiles", set(256, {17})},
      {"page 1: TileOffsets has 1 values for 18014398509481984 tiles",
       [](made_tiff& file) { file.pages[0][256].values = file.pages[0][257].values = {0x7fffffff}; }},
      {"page 1: TileOffsets has 1 values for 1 tiles of each sample",
       [](made_tiff& file) { file.pages[0][277].values = {3}, file.pages[0][284].values = {2}; }},
      {"page 1: TileByteCounts has 1 values for 2 tiles",
       [](made_tiff& file) {
         file.pages[0][256].values = {32}, file.pages[0][324].values = {8, 8};
       }},
      {"page 1: tile 0 has 4000000000 bytes at byte ", set(325, {4000000000})},
      {"page 1: tile 0 has 256 bytes at byte 4294967295", set(324, {0xffffffff})},
      {"page 1: TileOffsets has 1000000 values, which no file of ",
       [](made_tiff& file) { file.pages[0][324].count = 1000000; }},
      {"page 1: TileByteCounts has 90 values at byte ", [](made_tiff& file) { file.pages[0][325].count = 90; }},
      {"page 1: ImageWidth has type 5, not one of whole numbers", [](made_tiff& file) { file.pages[0][256].type = 5; }},
      {"page 1: ImageWidth has type 17, not one of whole numbers",
       [](made_tiff& file) { file.pages[0][256].type = 17; }},
      {"page 1: ImageWidth has type 99, not one of whole numbers",
       [](made_tiff& file) { file.pages[0][256].type = 99; }},
      // Tags that no size depends on. A count of 2^32 - 16 for XResolution keeps libtiff busy for seconds.
      {"page 1: tag 282 has 4294967280 values, which no file of ",
       [](made_tiff& file) {
         file.pages[0][282] = {5, {1}, 0xfffffff0};
       }},
      {"page 1: tag 282 has 50 values at byte ",
       [](made_tiff& file) {
         file.pages[0][282] = {5, {1000000}, 50};
       }},
      {"page 1: tag 270 has 100000 values, which no file of ",
       [](made_tiff& file) {
         file.pages[0][270] = {2, {1}, 100000};
       }},
      {"page 1: tag 65000 has 90 values",
       [](made_tiff& file) {
         file.pages[0][65000] = {12, {1}, 90};
       }},
      {"page 2: is said to be at byte 1000000, the file has ", [](made_tiff& file) { file.after_last = 1000000; }},
      {"page 2: the page at byte ",
       [](made_tiff& file) { file.after_last = (file.big ? 16u : 8u) + file.data.size(); }},
      {"page 2: TileWidth is 0",
       [](made_tiff& file) { file.pages.push_back(file.pages[0]), file.pages[1][322].values = {0}; }},
      {"page 1: strips of 1048576 by 1048576 pixels",
       [](made_tiff& file) {
         without_tiles(file.pages[0]);
         file.pages[0][256].values = file.pages[0][257].values = {1 << 20};
         file.pages[0][273] = {4, {8}};
       }},
  };
  for (const bad& b : table)
    for_each_kind(b.spoil, [&](const fs::path& path) {
      EXPECT_SAYS(check_tiff(path), "TIFF: " + path.string() + ": ");
      EXPECT_SAYS(check_tiff(path), b.reason);
    });
}

TEST_F(tiff_files, that_say_a_thing_twice_are_refused) {
  // Libraries differ in which of the two they believe.
  std::vector<unsigned char> bytes = made_tiff().bytes();
  const std::size_t first = 8 + 256 + 2, width = first + 12 * 7;
  ASSERT_EQ(bytes[width] | bytes[width + 1] << 8, 322);
  bytes[width + 12] = 322 & 255;  // in place of TileLength
  write_bytes(folder / "twice.tif", bytes);
  EXPECT_SAYS(check_tiff(folder / "twice.tif"), "page 1: TileWidth is given twice");
}

TEST_F(tiff_files, cut_anywhere_are_refused) {
  for (const bool big : {false, true}) {
    made_tiff file;
    file.big = big;
    file.pages[0][324].values = {big ? 16u : 8u};
    const std::vector<unsigned char> whole = file.bytes();
    for (std::size_t length = 8; length < whole.size(); ++length) {
      write_bytes(folder / "cut.tif", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
      EXPECT_SAYS(check_tiff(folder / "cut.tif"), "TIFF: ");
    }
  }
}

// The libraries never see them: one of these two ends a process inside OpenSlide by its size, the other by a negative
// length.
TEST_F(tiff_files, of_monstrous_tiles_are_refused_by_every_reader) {
  for (const auto& [name, file] : {std::pair{"wide.svs", support::wide_tile()}, {"long.svs", support::long_tile()}}) {
    const fs::path path = folder / name;
    write_bytes(path, file.bytes());
    EXPECT_LT(fs::file_size(path), 500u);
    EXPECT_SAYS(read_image_file(path), "page 1: tiles of ");
#if defined(SUTURE_EXAMPLE_OPENSLIDE)
    EXPECT_SAYS(open_slide(path, 0.5), "page 1: tiles of ");
#endif
  }
}

}  // namespace
