// SPDX-License-Identifier: Apache-2.0
#include "drawing.hpp"

#include <cmath>

#include "report.hpp"
#include "whole_file.hpp"

namespace suture::examples {
namespace {

constexpr site here{"picture"};
constexpr color mark{0.85, 0.85, 0.55};

surface new_surface(double width, double height) {
  surface made(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(std::ceil(width)),
                                          static_cast<int>(std::ceil(height))));
  require(cairo_surface_status(made.get()) == CAIRO_STATUS_SUCCESS, here, "a picture of ", width, " by ", height,
          " pixels is too large");
  return made;
}

}  // namespace

page::page(double width, double height, const color& ground)
    : pixels(new_surface(width, height)), drawing(cairo_create(pixels.get())) {
  require(cairo_status(drawing.get()) == CAIRO_STATUS_SUCCESS, here, "out of memory");
  set_color(drawing.get(), ground);
  cairo_paint(drawing.get());
}

surface surface_of(const rgb_image& image) {
  surface result = new_surface(static_cast<double>(image.width), static_cast<double>(image.height));
  unsigned char* data = cairo_image_surface_get_data(result.get());
  const int stride = cairo_image_surface_get_stride(result.get());
  for (std::int64_t y = 0; y < image.height; ++y) {
    auto* row = reinterpret_cast<std::uint32_t*>(data + y * stride);
    for (std::int64_t x = 0; x < image.width; ++x) {
      const std::uint8_t* p = image.at(y, x);
      row[x] = std::uint32_t{p[0]} << 16 | std::uint32_t{p[1]} << 8 | p[2];
    }
  }
  cairo_surface_mark_dirty(result.get());
  return result;
}

void write_png(const std::filesystem::path& path, cairo_surface_t* pixels) {
  cairo_surface_flush(pixels);
  write_whole(here, path, [&](const std::filesystem::path& temporary) -> std::string {
    const cairo_status_t status = cairo_surface_write_to_png(pixels, temporary.c_str());
    return status == CAIRO_STATUS_SUCCESS ? "" : cairo_status_to_string(status);
  });
}

void set_color(cairo_t* c, const color& k, double alpha) { cairo_set_source_rgba(c, k.r, k.g, k.b, alpha); }

void set_font(cairo_t* c, double size, bool bold) {
  cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(c, size);
}

void text(cairo_t* c, double x, double y, double size, const std::string& words, const color& k, bool bold) {
  set_font(c, size, bold);
  set_color(c, k);
  cairo_move_to(c, x, y);
  cairo_show_text(c, as_utf8(words).c_str());
}

double width_of(cairo_t* c, const std::string& words) {
  cairo_text_extents_t extents;
  cairo_text_extents(c, as_utf8(words).c_str(), &extents);
  return extents.x_advance;
}

void stroke_rimmed(cairo_t* c, const color& k, double width) {
  set_color(c, {0.05, 0.05, 0.05});
  cairo_set_line_width(c, width + 2);
  cairo_stroke_preserve(c);
  set_color(c, k);
  cairo_set_line_width(c, width);
}

void text_on_picture(cairo_t* c, double x, double y, double size, const std::string& words, const color& k) {
  set_font(c, size);
  cairo_move_to(c, x, y);
  cairo_text_path(c, as_utf8(words).c_str());
  stroke_rimmed(c, k, 0);
  cairo_fill(c);
}

void scale_bar(cairo_t* c, double x, double y, double length, const std::string& words) {
  cairo_set_line_cap(c, CAIRO_LINE_CAP_BUTT);
  cairo_move_to(c, x, y);
  cairo_line_to(c, x + length, y);
  stroke_rimmed(c, mark, 2);
  cairo_stroke(c);
  text_on_picture(c, x, y - 5, 10, words, mark);
}

outline_style label_style(int number) {
  constexpr std::array<color, 7> colors{{{0.34, 0.71, 0.91},    // sky blue
                                         {0.90, 0.62, 0.00},    // orange
                                         {0.00, 0.72, 0.52},    // bluish green
                                         {0.94, 0.89, 0.26},    // yellow
                                         {0.88, 0.38, 0.05},    // vermilion
                                         {0.85, 0.52, 0.70},    // reddish purple
                                         {0.20, 0.45, 0.95}}};  // blue
  static const std::array<std::vector<double>, 4> dashes{{{}, {5, 3}, {1.5, 2.5}, {7, 2.5, 1.5, 2.5}}};
  const auto n = static_cast<std::size_t>(number);
  return {colors[n % colors.size()], dashes[n / colors.size() % dashes.size()]};
}

int draw_legend(cairo_t* c, double x, double y, double width, std::span<const legend_entry> entries, const color& words,
                bool only_count) {
  set_font(c, 12);
  int lines = 1;
  double at = x;
  for (const legend_entry& entry : entries) {
    const double wide = 24 + width_of(c, entry.name) + 22;
    if (at > x && at + wide > x + width) {
      ++lines;
      at = x;
    }
    if (!only_count) {
      const double middle = y + (lines - 1) * legend_line;
      set_color(c, entry.style.ink);
      cairo_set_line_cap(c, CAIRO_LINE_CAP_BUTT);
      cairo_set_dash(c, entry.style.dashes.data(), static_cast<int>(entry.style.dashes.size()), 0);
      cairo_set_line_width(c, 2.5);
      cairo_move_to(c, at, middle);
      cairo_line_to(c, at + 18, middle);
      cairo_stroke(c);
      cairo_set_dash(c, nullptr, 0, 0);
      text(c, at + 24, middle + 4, 12, entry.name, words);
    }
    at += wide;
  }
  return lines;
}

}  // namespace suture::examples
