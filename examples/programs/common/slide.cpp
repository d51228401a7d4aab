// SPDX-License-Identifier: Apache-2.0
#include "slide.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#if defined(SUTURE_EXAMPLE_OPENSLIDE)
#include <openslide.h>

#include "tiff_check.hpp"
#include "whole_file.hpp"
#endif

namespace suture::examples {
namespace {

constexpr site here{"slide"};

class picture_slide final : public slide {
public:
  picture_slide(const std::filesystem::path& path, double assumed_mpp) {
    image_file file = read_image_file(path);
    image_ = std::move(file.image);
    name_ = path.filename().string();
    layout_.levels = {{image_.height, image_.width, 1}};
    layout_.mpp = file.mpp > 0 ? file.mpp : assumed_mpp;
    mpp_source_ = file.mpp > 0 ? "TIFF resolution" : "assumed";
    require(layout_.mpp > 0, here, path.string(), ": states no resolution; give its micrometers per pixel");
  }

private:
  void read_inside(std::int64_t y, std::int64_t x, std::int32_t, rgb_image& into) const override {
    const std::int64_t width = std::min(into.width, image_.width - x);
    if (width <= 0) return;
    for (std::int64_t row = 0; row < std::min(into.height, image_.height - y); ++row)
      std::memcpy(into.at(row, 0), image_.at(y + row, x), static_cast<std::size_t>(width * 3));
  }

  rgb_image image_;
};

#if defined(SUTURE_EXAMPLE_OPENSLIDE)

class openslide_slide final : public slide {
public:
  openslide_slide(const std::filesystem::path& path, double assumed_mpp) : path_(path.string()) {
    name_ = path.filename().string();
    require_file_to_open(here, path);
    check_tiff(path);
    file_.reset(openslide_open(path_.c_str()));
    require(file_ != nullptr, here, path_, ": not a slide that OpenSlide reads");
    check_file();
    const std::int32_t levels = openslide_get_level_count(file_.get());
    for (std::int32_t i = 0; i < levels; ++i) {
      std::int64_t width = 0, height = 0;
      openslide_get_level_dimensions(file_.get(), i, &width, &height);
      layout_.levels.push_back({height, width, openslide_get_level_downsample(file_.get(), i)});
    }
    check_file();
    find_resolution(assumed_mpp);
    check_levels();
    if (const char* color = property(OPENSLIDE_PROPERTY_NAME_BACKGROUND_COLOR); color != nullptr) {
      const auto value = static_cast<std::uint32_t>(std::strtoul(color, nullptr, 16));
      for (std::size_t c = 0; c < 3; ++c) background_[c] = static_cast<std::uint8_t>(value >> (16 - 8 * c));
    }
  }

private:
  struct close {
    void operator()(openslide_t* file) const { openslide_close(file); }
  };

  // After its first error OpenSlide refuses everything, so that a slide is whole or left alone.
  void check_file() const {
    const char* problem = openslide_get_error(file_.get());
    require(problem == nullptr, here, path_, ": damaged: ", problem != nullptr ? problem : "");
  }
  const char* property(const char* name) const { return openslide_get_property_value(file_.get(), name); }
  double number(const char* name) const {
    const char* text = property(name);
    const double value = text != nullptr ? std::strtod(text, nullptr) : 0;
    return std::isfinite(value) && value > 0 ? value : 0;
  }

  void find_resolution(double assumed_mpp) {
    double along_x = number(OPENSLIDE_PROPERTY_NAME_MPP_X), along_y = number(OPENSLIDE_PROPERTY_NAME_MPP_Y);
    mpp_source_ = OPENSLIDE_PROPERTY_NAME_MPP_X;
    const char* unit = property("tiff.ResolutionUnit");
    if ((along_x == 0 || along_y == 0) && unit != nullptr) {
      const double length = std::strcmp(unit, "centimeter") == 0 ? 1e4 : std::strcmp(unit, "inch") == 0 ? 25400 : 0;
      const double x = number("tiff.XResolution"), y = number("tiff.YResolution");
      // Files often carry the resolution of a printer; a microscope's is finer than 20 micrometers.
      if (x > 0 && y > 0 && length / x <= 20 && length / y <= 20) {
        along_x = length / x;
        along_y = length / y;
        mpp_source_ = "TIFF resolution";
      }
    }
    if (along_x == 0 || along_y == 0) {
      require(assumed_mpp > 0, here, path_, ": states no resolution; give its micrometers per pixel");
      layout_.mpp = assumed_mpp;
      mpp_source_ = "assumed";
      return;
    }
    require(std::abs(along_x - along_y) <= 0.05 * along_x, here, path_, ": pixels of ", along_x, " by ", along_y,
            " micrometers are not square");
    layout_.mpp = 0.5 * (along_x + along_y);
  }

  void read_inside(std::int64_t y, std::int64_t x, std::int32_t level, rgb_image& into) const override {
    std::vector<std::uint32_t> pixels(static_cast<std::size_t>(into.height * into.width));
    openslide_read_region(file_.get(), pixels.data(), x, y, level, into.width, into.height);
    check_file();
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::uint32_t clear = 255 - (pixels[i] >> 24);  // colors come multiplied by their opacity
      for (std::size_t c = 0; c < 3; ++c)
        into.pixels[3 * i + c] =
            static_cast<std::uint8_t>((pixels[i] >> (16 - 8 * c) & 255) + (clear * background_[c] + 127) / 255);
    }
  }

  std::string path_;
  std::unique_ptr<openslide_t, close> file_;
};

#endif

}  // namespace

rgb_image slide::read(std::int64_t y, std::int64_t x, std::int32_t level, std::int64_t height,
                      std::int64_t width) const {
  require(level >= 0 && static_cast<std::size_t>(level) < layout_.levels.size(), here, name_, ": no level ", level);
  require(height > 0 && width > 0 && height <= (std::int64_t{1} << 28) / width, here, name_, ": a region of ", height,
          " by ", width, " pixels cannot be read at once");
  rgb_image result = rgb_image::filled(height, width, {background_[0], background_[1], background_[2]});
  // Rows and columns before the slide are left as they are.
  const slide_level& from = layout_.levels[static_cast<std::size_t>(level)];
  const auto skipped = [&](std::int64_t start) {
    return start < 0 ? static_cast<std::int64_t>(std::ceil(static_cast<double>(-start) / from.downsample)) : 0;
  };
  const std::int64_t top = skipped(y), left = skipped(x);
  const auto moved = [&](std::int64_t start, std::int64_t skip) {
    return start + static_cast<std::int64_t>(std::floor(static_cast<double>(skip) * from.downsample + 0.5));
  };
  const std::int64_t y0 = moved(y, top), x0 = moved(x, left);
  if (top >= height || left >= width || y0 >= layout_.levels[0].height || x0 >= layout_.levels[0].width) return result;
  if (top == 0 && left == 0) {
    read_inside(y0, x0, level, result);
    return result;
  }
  rgb_image part = rgb_image::filled(height - top, width - left, {background_[0], background_[1], background_[2]});
  read_inside(y0, x0, level, part);
  for (std::int64_t row = 0; row < part.height; ++row)
    std::memcpy(result.at(top + row, left), part.at(row, 0), static_cast<std::size_t>(part.width * 3));
  return result;
}

std::vector<std::uint8_t> slide::labels(std::int64_t, std::int64_t, std::int32_t, std::int64_t, std::int64_t) const {
  return {};
}

void slide::check_levels() const {
  try {
    detail::check_slide(layout_, here);
  } catch (const error& problem) {
    fail(here, name_, ": the levels are no pyramid: ", problem.what());
  }
  const slide_level& base = layout_.levels[0];
  for (std::size_t i = 1; i < layout_.levels.size(); ++i) {
    const slide_level& l = layout_.levels[i];
    const auto fits = [&](std::int64_t pixels, std::int64_t whole) {
      const double difference = std::abs(static_cast<double>(pixels) * l.downsample - static_cast<double>(whole));
      return difference <= 2 * l.downsample + 0.02 * static_cast<double>(whole);
    };
    require(fits(l.height, base.height) && fits(l.width, base.width), here, name_,
            ": the levels are no pyramid: level ", i, " of ", l.height, " by ", l.width, " pixels does not cover ",
            base.height, " by ", base.width);
  }
}

std::unique_ptr<slide> open_slide(const std::filesystem::path& path, double assumed_mpp) {
#if defined(SUTURE_EXAMPLE_OPENSLIDE)
  return std::make_unique<openslide_slide>(path, assumed_mpp);
#else
  (void)assumed_mpp;
  fail(here, path.string(), ": this program was built without OpenSlide");
#endif
}

std::unique_ptr<slide> open_picture(const std::filesystem::path& path, double assumed_mpp) {
  return std::make_unique<picture_slide>(path, assumed_mpp);
}

rgb_image thumbnail_of(const slide& from, std::int64_t longest) {
  require(longest > 0 && longest <= 16384, here, "thumbnail of ", longest, " pixels; 1..16384 expected");
  const std::vector<slide_level>& levels = from.layout().levels;
  std::size_t level = 0;
  for (std::size_t i = 1; i < levels.size(); ++i)
    if (std::max(levels[i].height, levels[i].width) >= longest) level = i;
  const std::int64_t rows = levels[level].height, columns = levels[level].width, most = std::max(rows, columns);
  const std::int64_t side = std::min(longest, most);
  const auto scaled = [&](std::int64_t n) { return std::max<std::int64_t>(1, (2 * n * side + most) / (2 * most)); };
  const std::int64_t height = scaled(rows), width = scaled(columns);

  // A row of the level has `height` parts, a row of the thumbnail `rows` of them; so along x.
  rgb_image result{height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(width * 3)), line(sums.size());
  std::int64_t row = 0;  // of the thumbnail
  const auto whole = static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(columns);
  constexpr std::int64_t strip = 256;
  for (std::int64_t first = 0; first < rows; first += strip) {
    const std::int64_t count = std::min(strip, rows - first);
    const auto y = static_cast<std::int64_t>(std::floor(static_cast<double>(first) * levels[level].downsample + 0.5));
    const rgb_image part = from.read(y, 0, static_cast<std::int32_t>(level), count, columns);
    for (std::int64_t r = 0; r < count; ++r) {
      std::fill(line.begin(), line.end(), std::uint64_t{0});
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t left = c * width / columns;
        const std::int64_t inside = std::min(width, (left + 1) * columns - c * width);  // parts left of the border
        const std::uint8_t* p = part.at(r, c);
        for (std::int64_t k = 0; k < 3; ++k) {
          line[static_cast<std::size_t>(3 * left + k)] += static_cast<std::uint64_t>(inside * p[k]);
          if (inside < width)
            line[static_cast<std::size_t>(3 * left + 3 + k)] += static_cast<std::uint64_t>((width - inside) * p[k]);
        }
      }
      for (std::int64_t parts = height; parts > 0;) {
        const std::int64_t inside = std::min(parts, (row + 1) * rows - ((first + r) * height + height - parts));
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<std::uint64_t>(inside) * line[i];
        parts -= inside;
        if ((first + r) * height + height - parts < (row + 1) * rows) continue;
        for (std::size_t i = 0; i < sums.size(); ++i)
          result.pixels[static_cast<std::size_t>(row * width * 3) + i] =
              static_cast<std::uint8_t>((sums[i] + whole / 2) / whole);
        std::fill(sums.begin(), sums.end(), std::uint64_t{0});
        ++row;
      }
    }
  }
  return result;
}

}  // namespace suture::examples
