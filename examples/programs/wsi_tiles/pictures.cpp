// SPDX-License-Identifier: Apache-2.0
#include "pictures.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "common/drawing.hpp"

namespace suture::examples {
namespace {

constexpr site here{"picture"};
constexpr color ground{0.97, 0.97, 0.96}, dark{0.12, 0.12, 0.14}, dim{0.40, 0.41, 0.44};
constexpr color of_tissue{0.05, 0.45, 0.95}, of_used{0.00, 0.62, 0.45}, of_left_out{0.84, 0.37, 0.00};
const std::vector<double> left_out_dashes{5, 3};

// The longest of 1, 2 and 5 times a power of ten that is no longer than a quarter of this width, in micrometers.
double bar_length(double width) {
  const double ten = std::pow(10.0, std::floor(std::log10(width / 4)));
  for (const double times : {5.0, 2.0})
    if (times * ten <= width / 4) return times * ten;
  return ten;
}

std::string micrometers(double length) {
  std::ostringstream words;
  if (length >= 1000)
    words << length / 1000 << " mm";
  else
    words << length << " um";
  return words.str();
}

void paint(cairo_t* c, const rgb_image& image, double x, double y, double side) {
  const surface pixels = surface_of(image);
  cairo_save(c);
  cairo_translate(c, x, y);
  cairo_scale(c, side / static_cast<double>(image.width), side / static_cast<double>(image.height));
  cairo_set_source_surface(c, pixels.get(), 0, 0);
  cairo_pattern_set_filter(cairo_get_source(c), CAIRO_FILTER_GOOD);
  cairo_rectangle(c, 0, 0, static_cast<double>(image.width), static_cast<double>(image.height));
  cairo_fill(c);
  cairo_restore(c);
}

// Labels as a veil of their colors, edges stronger.
rgb_image with_labels(const rgb_image& image, const std::vector<std::uint8_t>& labels) {
  rgb_image result = image;
  const std::int64_t n = image.width;
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < n; ++x) {
      const auto at = [&](std::int64_t j, std::int64_t i) { return labels[static_cast<std::size_t>(j * n + i)]; };
      const std::uint8_t label = at(y, x);
      if (label == 0) continue;
      const bool edge = (x > 0 && at(y, x - 1) != label) || (x + 1 < n && at(y, x + 1) != label) ||
                        (y > 0 && at(y - 1, x) != label) || (y + 1 < image.height && at(y + 1, x) != label);
      const color k = label_style(label - 1).ink;
      const double part = edge ? 0.9 : 0.2, of[3] = {k.r, k.g, k.b};
      for (int c = 0; c < 3; ++c) {
        std::uint8_t& v = result.at(y, x)[c];
        v = static_cast<std::uint8_t>(v * (1 - part) + 255 * part * of[c] + 0.5);
      }
    }
  return result;
}

}  // namespace

void write_overview(const std::filesystem::path& path, const listed_slide& shown) {
  const rgb_image& picture = shown.thumbnail;
  constexpr double header = 72;
  const auto height = static_cast<double>(picture.height);
  const page paper(static_cast<double>(std::max<std::int64_t>(picture.width, 560)), height + header, ground);
  cairo_t* const c = paper.drawing.get();
  text(c, 10, 22, 14, shown.image->name(), dark, true);
  const legend_entry legend[] = {
      {"tissue", {of_tissue, {}}},
      {std::to_string(shown.good.size()) + " tiles used", {of_used, {}}},
      {std::to_string(shown.blurred.size()) + " blurred, " + std::to_string(shown.blank.size()) + " blank",
       {of_left_out, left_out_dashes}},
      {"not asked for", {dim, {}}}};
  text(c, 10, 42, 12, std::to_string(shown.tiles.size()) + " tiles lie on tissue", dim);
  draw_legend(c, 10, 58, 540, legend, dark);
  cairo_translate(c, 0, header);
  const surface pixels = surface_of(picture);
  cairo_set_source_surface(c, pixels.get(), 0, 0);
  cairo_paint(c);

  // The outline of the tissue, along the edges of pixels.
  const auto tissue = [&](std::int64_t y, std::int64_t x) {
    return y >= 0 && x >= 0 && y < picture.height && x < picture.width &&
           shown.mask[static_cast<std::size_t>(y * picture.width + x)] != 0;
  };
  for (std::int64_t y = 0; y <= picture.height; ++y)
    for (std::int64_t x = 0; x <= picture.width; ++x) {
      const auto px = static_cast<double>(x), py = static_cast<double>(y);
      if (tissue(y, x) != tissue(y, x - 1)) {
        cairo_move_to(c, px, py);
        cairo_line_to(c, px, py + 1);
      }
      if (tissue(y, x) != tissue(y - 1, x)) {
        cairo_move_to(c, px, py);
        cairo_line_to(c, px + 1, py);
      }
    }
  set_color(c, of_tissue);
  cairo_set_line_width(c, 1);
  cairo_stroke(c);

  const slide_layout& layout = shown.image->layout();
  const double scale = static_cast<double>(picture.width) / static_cast<double>(layout.levels[0].width);
  const auto box = [&](std::size_t i) {
    const tile_region& r = shown.tiles[i].region;
    const double side =
        static_cast<double>(r.size) * layout.levels[static_cast<std::size_t>(r.level)].downsample * scale;
    cairo_rectangle(c, static_cast<double>(r.x) * scale + 0.5, static_cast<double>(r.y) * scale + 0.5, side - 1,
                    side - 1);
  };
  for (std::size_t i = 0; i < shown.tiles.size(); ++i) box(i);
  set_color(c, dark, 0.45);
  cairo_set_line_width(c, 0.8);
  cairo_stroke(c);
  cairo_set_line_width(c, 2);
  const auto boxes = [&](const std::vector<std::size_t>& tiles, const color& k) {
    for (const std::size_t i : tiles) box(i);
    set_color(c, k);
    cairo_stroke(c);
  };
  boxes(shown.good, of_used);
  cairo_set_dash(c, left_out_dashes.data(), static_cast<int>(left_out_dashes.size()), 0);
  boxes(shown.blank, of_left_out);
  boxes(shown.blurred, of_left_out);
  cairo_set_dash(c, nullptr, 0, 0);
  const double um = layout.mpp / scale;  // of a pixel of the picture
  const double length = bar_length(um * static_cast<double>(picture.width));
  scale_bar(c, 10, height - 10, length / um, micrometers(length));
  write_png(path, paper.pixels.get());
}

void write_sheet(const std::filesystem::path& path, const std::string& title,
                 const std::vector<std::string>& label_names, const std::vector<sheet_entry>& entries,
                 double tile_width) {
  require(!entries.empty(), here, "there is no tile to show");
  constexpr double side = 208, gap = 6, margin = 20, group_gap = 28, caption = 22, header = 76;
  constexpr double group = 4 * side + 3 * gap;
  const std::size_t columns = entries.size() > 1 ? 2 : 1, rows = (entries.size() + columns - 1) / columns;
  const double width = 2 * margin + static_cast<double>(columns) * group + (columns > 1 ? group_gap : 0);
  const double height = header + static_cast<double>(rows) * (caption + side + gap) + margin;
  const page paper(width, height, ground);
  cairo_t* const c = paper.drawing.get();
  text(c, margin, 30, 17, title, dark, true);
  std::vector<legend_entry> legend;
  for (std::size_t i = 0; i < label_names.size(); ++i)
    legend.push_back({label_names[i], {label_style(static_cast<int>(i)).ink, {}}});
  draw_legend(c, margin, 46, width - 2 * margin, legend, dark);
  const double bar = bar_length(tile_width);
  const char* const names[4] = {"as scanned", "stains normalized", "augmented", "with its labels"};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const sheet_entry& e = entries[i];
    const double x = margin + static_cast<double>(i % columns) * (group + group_gap);
    const double y = header + static_cast<double>(i / columns) * (caption + side + gap);
    if (i < columns)
      for (int k = 0; k < 4; ++k) text(c, x + k * (side + gap), header - 4, 12, names[k], dim);
    text(c, x, y + 15, 12, e.caption, dark);
    const rgb_image* const shown[3] = {&e.original, &e.normalized, &e.augmented};
    for (int k = 0; k < 3; ++k) paint(c, *shown[k], x + k * (side + gap), y + caption, side);
    paint(c, with_labels(e.augmented, e.labels), x + 3 * (side + gap), y + caption, side);
    scale_bar(c, x + 6, y + caption + side - 8, bar / tile_width * side, micrometers(bar));
  }
  write_png(path, paper.pixels.get());
}

rgb_image plain(const read_tile& t, const recipe& r) {
  const rgb_image& from = t.pixels;
  rgb_image result{r.size, r.size, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * r.size * r.size))};
  const double step = r.mpp / 1000 / t.spacing_mm;
  for (std::int64_t y = 0; y < r.size; ++y)
    for (std::int64_t x = 0; x < r.size; ++x) {
      const auto place = [&](std::int64_t i, std::int64_t n) {
        const double middle = static_cast<double>(n - 1) / 2;
        return std::clamp(middle + (static_cast<double>(i) - static_cast<double>(r.size - 1) / 2) * step, 0.0,
                          static_cast<double>(n - 1));
      };
      const double v = place(y, from.height), u = place(x, from.width);
      const auto j = std::min(static_cast<std::int64_t>(v), from.height - 2),
                 i = std::min(static_cast<std::int64_t>(u), from.width - 2);
      const double b = v - static_cast<double>(j), a = u - static_cast<double>(i);
      for (int c = 0; c < 3; ++c)
        result.at(y, x)[c] =
            static_cast<std::uint8_t>((1 - b) * ((1 - a) * from.at(j, i)[c] + a * from.at(j, i + 1)[c]) +
                                      b * ((1 - a) * from.at(j + 1, i)[c] + a * from.at(j + 1, i + 1)[c]) + 0.5);
    }
  return result;
}

rgb_image picture_of(const batch& from, std::size_t i, std::int64_t size) {
  rgb_image result{size, size, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * size * size))};
  const auto plane = static_cast<std::size_t>(size * size);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t p = 0; p < plane; ++p) {
      const float v = storage<half>::load(from.images[(3 * i + c) * plane + p]);
      result.pixels[3 * p + c] = static_cast<std::uint8_t>(std::clamp(v, 0.0f, 1.0f) * 255 + 0.5f);
    }
  return result;
}

}  // namespace suture::examples
