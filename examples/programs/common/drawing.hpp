// SPDX-License-Identifier: Apache-2.0
// What pictures are drawn with: surfaces, text and the colors of labels.
#pragma once

#include <cairo.h>

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rgb_image.hpp"

namespace suture::examples {

struct color {
  double r, g, b;
};

struct destroy_drawing {
  void operator()(cairo_surface_t* s) const { cairo_surface_destroy(s); }
  void operator()(cairo_t* c) const { cairo_destroy(c); }
};
using surface = std::unique_ptr<cairo_surface_t, destroy_drawing>;
using context = std::unique_ptr<cairo_t, destroy_drawing>;

// An empty page of one color and what draws on it. Throws suture::error where it is too large or memory is short.
struct page {
  page(double width, double height, const color& ground);
  surface pixels;
  context drawing;
};

// The pixels of a picture. Throws suture::error where memory is short.
surface surface_of(const rgb_image& image);

// Writes the file whole or not at all. Throws suture::error if it cannot be written.
void write_png(const std::filesystem::path& path, cairo_surface_t* pixels);

void set_color(cairo_t* c, const color& k, double alpha = 1);
void set_font(cairo_t* c, double size, bool bold = false);
void text(cairo_t* c, double x, double y, double size, const std::string& words, const color& k, bool bold = false);
// In the font that was set last.
double width_of(cairo_t* c, const std::string& words);

// The path is drawn in `k` with a dark rim, so that it is legible on bright tissue and on air.
void stroke_rimmed(cairo_t* c, const color& k, double width);
void text_on_picture(cairo_t* c, double x, double y, double size, const std::string& words, const color& k);
// A bar of a length, with its words above it; the left end is at (x, y).
void scale_bar(cairo_t* c, double x, double y, double length, const std::string& words);

// How a label is outlined. The seven colors are those of Okabe and Ito that show on black as on white, which the color
// blind can tell apart; further labels have them again with other dashes.
struct outline_style {
  color ink;
  std::vector<double> dashes;  // lengths of lines and gaps, in pixels; none: a solid line
};
inline constexpr int distinct_styles = 28;
outline_style label_style(int number);  // 0, 1, ...

struct legend_entry {
  std::string name;
  outline_style style;
};
inline constexpr double legend_line = 18;  // pixels from one line to the next
// Draws the entries side by side, in as many lines as they need in this width, the first at height y. Returns the
// number of lines; `only_count` draws nothing.
int draw_legend(cairo_t* c, double x, double y, double width, std::span<const legend_entry> entries, const color& words,
                bool only_count = false);

}  // namespace suture::examples
