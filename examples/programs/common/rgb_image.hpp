// SPDX-License-Identifier: Apache-2.0
// A color picture in memory, and as a PNG or TIFF file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "suture/image/view.hpp"

namespace suture::examples {

// Rows from the top, red, green and blue side by side.
struct rgb_image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;

  static rgb_image filled(std::int64_t height, std::int64_t width, const std::uint8_t (&color)[3]) {
    rgb_image image{height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
    for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = color[i % 3];
    return image;
  }
  std::uint8_t* at(std::int64_t y, std::int64_t x) { return pixels.data() + (y * width + x) * 3; }
  const std::uint8_t* at(std::int64_t y, std::int64_t x) const { return pixels.data() + (y * width + x) * 3; }
  // Of one slice, with the pixel spacing along y and x in millimeters.
  view<const std::uint8_t> view_of(double spacing_mm = 1) const {
    return channels_last<const std::uint8_t>(
        pixels.data(), {.extents = {1, height, width}, .spacing = {1, spacing_mm, spacing_mm}}, 3);
  }
};

struct image_file {
  rgb_image image;
  double mpp = 0;  // micrometers per pixel as the file states it; 0 if it does not
};

// By the first bytes of the file. Transparent pixels are shown on white; of a TIFF the first page is read, of any
// layout and color space libtiff knows. Throws suture::error naming the file and the reason: missing, of another
// format, damaged, truncated, more than 2^28 pixels.
image_file read_image_file(const std::filesystem::path& path);

// Writes the file whole or not at all. Throws suture::error if it cannot be written.
void write_png(const std::filesystem::path& path, const rgb_image& image);

}  // namespace suture::examples
