// SPDX-License-Identifier: Apache-2.0
#include "rgb_image.hpp"

#include <cairo.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>

#include "drawing.hpp"
#include "whole_file.hpp"

#if defined(SUTURE_EXAMPLE_TIFF)
#include <tiffio.h>

#include "tiff_check.hpp"
#endif

namespace suture::examples {
namespace {

constexpr site here{"image"};
constexpr std::int64_t most_pixels = std::int64_t{1} << 28;

void check_size(const std::string& name, std::int64_t height, std::int64_t width) {
  require(height > 0 && width > 0 && height <= most_pixels / width, here, name, ": ", height, " by ", width,
          " pixels; at most 2^28 can be read at once");
}

image_file read_png(const std::string& name) {
  // Cairo makes room for what the header announces: signature, length and name of the first chunk, width, height.
  std::array<unsigned char, 24> start{};
  std::ifstream(name, std::ios::binary).read(reinterpret_cast<char*>(start.data()), start.size());
  const auto number = [&](std::size_t at) {
    return std::int64_t{start[at]} << 24 | start[at + 1] << 16 | start[at + 2] << 8 | start[at + 3];
  };
  require(std::memcmp(start.data() + 12, "IHDR", 4) == 0, here, name, ": damaged or truncated PNG");
  check_size(name, number(20), number(16));
  const surface from(cairo_image_surface_create_from_png(name.c_str()));
  const cairo_status_t status = cairo_surface_status(from.get());
  require(status == CAIRO_STATUS_SUCCESS, here, name, ": ",
          status == CAIRO_STATUS_READ_ERROR ? "damaged or truncated PNG" : cairo_status_to_string(status));
  const cairo_format_t format = cairo_image_surface_get_format(from.get());
  require(format == CAIRO_FORMAT_RGB24 || format == CAIRO_FORMAT_ARGB32, here, name,
          ": only PNG files of 8 bits a channel can be read");
  const std::int64_t height = cairo_image_surface_get_height(from.get());
  const std::int64_t width = cairo_image_surface_get_width(from.get());
  check_size(name, height, width);
  image_file file{{height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))}, 0};
  cairo_surface_flush(from.get());
  const unsigned char* data = cairo_image_surface_get_data(from.get());
  const int stride = cairo_image_surface_get_stride(from.get());
  for (std::int64_t y = 0; y < height; ++y) {
    const auto* row = reinterpret_cast<const std::uint32_t*>(data + y * stride);
    for (std::int64_t x = 0; x < width; ++x) {
      // Colors come multiplied by their opacity.
      const std::uint32_t white = format == CAIRO_FORMAT_ARGB32 ? 255 - (row[x] >> 24) : 0;
      for (int c = 0; c < 3; ++c)
        file.image.at(y, x)[c] = static_cast<std::uint8_t>((row[x] >> (16 - 8 * c) & 255) + white);
    }
  }
  return file;
}

#if defined(SUTURE_EXAMPLE_TIFF)
std::string last_problem;

void keep_problem(const char*, const char* format, va_list arguments) {
  char text[256];
  std::vsnprintf(text, sizeof text, format, arguments);
  last_problem = text;
}

struct close_tiff {
  void operator()(TIFF* t) const { TIFFClose(t); }
};

image_file read_tiff(const std::string& name) {
  check_tiff(name, 1);
  last_problem.clear();
  TIFFSetErrorHandler(keep_problem);
  TIFFSetWarningHandler(nullptr);
  const std::unique_ptr<TIFF, close_tiff> from(TIFFOpen(name.c_str(), "r"));
  require(from != nullptr, here, name, ": not a TIFF that can be read: ", last_problem);
  std::uint32_t height = 0, width = 0;
  TIFFGetField(from.get(), TIFFTAG_IMAGELENGTH, &height);
  TIFFGetField(from.get(), TIFFTAG_IMAGEWIDTH, &width);
  check_size(name, height, width);
  std::vector<std::uint32_t> raster(static_cast<std::size_t>(height) * width);
  require(TIFFReadRGBAImageOriented(from.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1) == 1, here, name,
          ": damaged or truncated TIFF: ", last_problem);
  image_file file{{height, width, std::vector<std::uint8_t>(raster.size() * 3)}, 0};
  for (std::size_t i = 0; i < raster.size(); ++i) {
    const std::uint32_t white = 255 - TIFFGetA(raster[i]);  // colors come multiplied by their opacity
    file.image.pixels[3 * i] = static_cast<std::uint8_t>(TIFFGetR(raster[i]) + white);
    file.image.pixels[3 * i + 1] = static_cast<std::uint8_t>(TIFFGetG(raster[i]) + white);
    file.image.pixels[3 * i + 2] = static_cast<std::uint8_t>(TIFFGetB(raster[i]) + white);
  }
  float resolution = 0;
  std::uint16_t unit = RESUNIT_NONE;
  TIFFGetField(from.get(), TIFFTAG_XRESOLUTION, &resolution);
  TIFFGetFieldDefaulted(from.get(), TIFFTAG_RESOLUTIONUNIT, &unit);
  const double length = unit == RESUNIT_CENTIMETER ? 1e4 : unit == RESUNIT_INCH ? 25400 : 0;
  // Files often carry the resolution of a printer; a microscope's is finer than 20 micrometers.
  if (resolution > 0 && length / static_cast<double>(resolution) <= 20)
    file.mpp = length / static_cast<double>(resolution);
  return file;
}
#else
image_file read_tiff(const std::string& name) { fail(here, name, ": this program was built without libtiff"); }
#endif

}  // namespace

image_file read_image_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  char magic[4] = {};
  require_file_to_open(here, path);  // a pipe would never open
  std::ifstream file(path, std::ios::binary);
  require(file.good(), here, name, ": cannot be opened");
  file.read(magic, 4);
  require(file.gcount() == 4, here, name, ": too short to be an image");
  if (std::memcmp(magic, "\x89PNG", 4) == 0) return read_png(name);
  if (std::memcmp(magic, "II*\0", 4) == 0 || std::memcmp(magic, "MM\0*", 4) == 0 ||
      std::memcmp(magic, "II+\0", 4) == 0 || std::memcmp(magic, "MM\0+", 4) == 0)
    return read_tiff(name);
  fail(here, name, ": neither PNG nor TIFF");
}

void write_png(const std::filesystem::path& path, const rgb_image& image) {
  require(image.height > 0 && image.width > 0 && image.height <= 32767 && image.width <= 32767, here, path.string(),
          ": a picture of ", image.height, " by ", image.width, " pixels cannot be written");
  write_png(path, surface_of(image).get());
}

}  // namespace suture::examples
