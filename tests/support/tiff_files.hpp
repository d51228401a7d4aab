// SPDX-License-Identifier: Apache-2.0
// TIFFs for tests: pyramids as libtiff writes them, and files made field by field, right or wrong.
#pragma once

#include <gtest/gtest.h>
#include <tiffio.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/rgb_image.hpp"

namespace support {

inline suture::examples::rgb_image noise_image(std::int64_t height, std::int64_t width, unsigned seed) {
  std::mt19937 engine(seed);
  suture::examples::rgb_image image{height, width,
                                    std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
  for (auto& v : image.pixels) v = static_cast<std::uint8_t>(engine() % 256);
  return image;
}

// A TIFF of uncompressed tiles of 64 x 64, a page for every level.
inline void write_tiled(const std::filesystem::path& path, const std::vector<suture::examples::rgb_image>& levels,
                        float per_cm = 0) {
  TIFF* file = TIFFOpen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const suture::examples::rgb_image& level = levels[i];
    TIFFSetField(file, TIFFTAG_SUBFILETYPE, i == 0 ? 0u : unsigned{FILETYPE_REDUCEDIMAGE});
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(level.width));
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(level.height));
    TIFFSetField(file, TIFFTAG_TILEWIDTH, 64u);
    TIFFSetField(file, TIFFTAG_TILELENGTH, 64u);
    TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    if (per_cm > 0) {
      TIFFSetField(file, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
      TIFFSetField(file, TIFFTAG_XRESOLUTION, static_cast<double>(per_cm));
      TIFFSetField(file, TIFFTAG_YRESOLUTION, static_cast<double>(per_cm));
    }
    for (std::int64_t y = 0; y < level.height; y += 64)
      for (std::int64_t x = 0; x < level.width; x += 64) {
        std::vector<std::uint8_t> tile(64 * 64 * 3, 0);
        for (std::int64_t j = y; j < std::min(level.height, y + 64); ++j)
          for (std::int64_t k = 0; k < 3 * (std::min(level.width, x + 64) - x); ++k)
            tile[static_cast<std::size_t>((j - y) * 192 + k)] = level.at(j, x)[k];
        TIFFWriteTile(file, tile.data(), static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), 0, 0);
      }
    TIFFWriteDirectory(file);
  }
  TIFFClose(file);
}

// A page of a TIFF made by hand. Types: 1 of one byte, 3 of two, 4 of four, 16 of eight.
struct tiff_field {
  std::uint16_t type;
  std::vector<std::uint64_t> values;
  std::uint64_t count = 0;  // what it announces; 0: as many as there are
};
using tiff_page = std::map<std::uint16_t, tiff_field>;

// Gray pixels, one tile of 16 by 16, at the first byte after the header of a 32-bit TIFF.
inline tiff_page gray_page() {
  return {{256, {4, {16}}}, {257, {4, {16}}}, {258, {3, {8}}},  {259, {3, {1}}}, {262, {3, {1}}},  {277, {3, {1}}},
          {284, {3, {1}}},  {322, {4, {16}}}, {323, {4, {16}}}, {324, {4, {8}}}, {325, {4, {256}}}};
}

// Header, data, pages one after the other, each followed by the values that do not fit into its fields.
struct made_tiff {
  std::vector<tiff_page> pages{gray_page()};
  std::vector<unsigned char> data = std::vector<unsigned char>(256, 127);
  bool big_endian = false;
  bool big = false;              // BigTIFF
  std::uint64_t after_last = 0;  // where the page after the last is said to be

  std::vector<unsigned char> bytes() const {
    std::vector<unsigned char> out;
    const auto put = [&](std::uint64_t value, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i)
        out.push_back(static_cast<unsigned char>(value >> (8 * (big_endian ? size - 1 - i : i))));
    };
    const std::size_t wide = big ? 8 : 4;
    const auto size_of = [](std::uint16_t type) -> std::size_t {
      return type == 3 ? 2 : type == 4 ? 4 : type == 5 || type == 16 || type == 17 ? 8 : 1;
    };
    out.insert(out.end(), 2, static_cast<unsigned char>(big_endian ? 'M' : 'I'));
    put(big ? 43 : 42, 2);
    if (big) put(8, 2), put(0, 2);
    put(out.size() + wide + data.size(), wide);
    out.insert(out.end(), data.begin(), data.end());
    for (std::size_t n = 0; n < pages.size(); ++n) {
      put(pages[n].size(), big ? 8 : 2);
      std::uint64_t beyond = out.size() + pages[n].size() * (4 + 2 * wide) + wide;
      std::vector<const tiff_field*> apart;
      for (const auto& [tag, field] : pages[n]) {
        const std::size_t each = size_of(field.type);
        put(tag, 2);
        put(field.type, 2);
        put(field.count != 0 ? field.count : field.values.size(), wide);
        if (each * field.values.size() > wide) {
          put(beyond, wide);
          beyond += each * field.values.size();
          apart.push_back(&field);
          continue;
        }
        for (const std::uint64_t v : field.values) put(v, each);
        put(0, wide - each * field.values.size());
      }
      put(n + 1 < pages.size() ? beyond : after_last, wide);
      for (const tiff_field* field : apart)
        for (const std::uint64_t v : field->values) put(v, size_of(field->type));
    }
    return out;
  }
};

inline void write_bytes(const std::filesystem::path& path, const std::vector<unsigned char>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Tiles that take 33 GB in memory; a tile whose size in bytes overflows an int.
inline made_tiff wide_tile() {
  made_tiff file;
  file.pages[0][322].values = {0x1f000010};
  return file;
}
inline made_tiff long_tile() {
  made_tiff file;
  file.pages[0][323].values = {0x07000010};
  return file;
}

}  // namespace support
