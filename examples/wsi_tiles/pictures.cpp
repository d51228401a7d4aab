// SPDX-License-Identifier: Apache-2.0
#include "pictures.hpp"

#include <cairo.h>

#include <algorithm>
#include <array>

#include "common/whole_file.hpp"

namespace suture::examples {
namespace {

constexpr site here{"picture"};

struct color {
  double r, g, b;
};
constexpr color ground{0.97, 0.97, 0.96}, dark{0.12, 0.12, 0.14}, dim{0.40, 0.41, 0.44};
constexpr std::array<color, 5> label_colors{
    {{0.10, 0.65, 0.75}, {0.98, 0.75, 0.10}, {0.10, 0.75, 0.25}, {0.95, 0.35, 0.15}, {0.25, 0.35, 0.95}}};

struct destroy {
  void operator()(cairo_surface_t* s) const { cairo_surface_destroy(s); }
  void operator()(cairo_t* c) const { cairo_destroy(c); }
};
using surface = std::unique_ptr<cairo_surface_t, destroy>;
using context = std::unique_ptr<cairo_t, destroy>;

surface surface_of(const rgb_image& image) {
  surface result(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(image.width), static_cast<int>(image.height)));
  require(cairo_surface_status(result.get()) == CAIRO_STATUS_SUCCESS, here, "out of memory");
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

void set_color(cairo_t* c, const color& k, double alpha = 1) { cairo_set_source_rgba(c, k.r, k.g, k.b, alpha); }

void text(cairo_t* c, double x, double y, double size, const std::string& words, const color& k, bool bold = false) {
  cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(c, size);
  set_color(c, k);
  cairo_move_to(c, x, y);
  cairo_show_text(c, words.c_str());
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

void write(const std::filesystem::path& path, cairo_surface_t* page) {
  cairo_surface_flush(page);
  write_whole(here, path, [&](const std::filesystem::path& temporary) -> std::string {
    const cairo_status_t status = cairo_surface_write_to_png(page, temporary.c_str());
    return status == CAIRO_STATUS_SUCCESS ? "" : cairo_status_to_string(status);
  });
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
      const color& k = label_colors[(label - 1u) % label_colors.size()];
      const double part = edge ? 0.85 : 0.30, of[3] = {k.r, k.g, k.b};
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
  constexpr double header = 54;
  const surface page(cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                                static_cast<int>(std::max<std::int64_t>(picture.width, 480)),
                                                static_cast<int>(picture.height) + static_cast<int>(header)));
  const context holder(cairo_create(page.get()));
  cairo_t* c = holder.get();
  require(cairo_status(c) == CAIRO_STATUS_SUCCESS, here, "out of memory");
  set_color(c, ground);
  cairo_paint(c);
  text(c, 10, 22, 14, shown.image->name(), dark, true);
  text(c, 10, 42, 12,
       std::to_string(shown.tiles.size()) + " tiles of tissue; " + std::to_string(shown.good.size()) + " used, " +
           std::to_string(shown.blurred.size()) + " blurred, " + std::to_string(shown.blank.size()) + " blank",
       dim);
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
  set_color(c, {0.05, 0.45, 0.95});
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
  boxes(shown.good, {0.05, 0.60, 0.20});
  boxes(shown.blank, {0.90, 0.10, 0.10});
  boxes(shown.blurred, {0.90, 0.10, 0.10});
  write(path, page.get());
}

void write_sheet(const std::filesystem::path& path, const std::string& title,
                 const std::vector<std::string>& label_names, const std::vector<sheet_entry>& entries) {
  require(!entries.empty(), here, "there is no tile to show");
  constexpr double side = 208, gap = 6, margin = 20, group_gap = 28, caption = 22, header = 76;
  constexpr double group = 4 * side + 3 * gap;
  const std::size_t columns = entries.size() > 1 ? 2 : 1, rows = (entries.size() + columns - 1) / columns;
  const double width = 2 * margin + static_cast<double>(columns) * group + (columns > 1 ? group_gap : 0);
  const double height = header + static_cast<double>(rows) * (caption + side + gap) + margin;
  const surface page(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width), static_cast<int>(height)));
  const context holder(cairo_create(page.get()));
  cairo_t* c = holder.get();
  require(cairo_status(c) == CAIRO_STATUS_SUCCESS, here, "out of memory");
  set_color(c, ground);
  cairo_paint(c);
  text(c, margin, 30, 17, title, dark, true);
  double legend = margin;
  for (std::size_t i = 0; i < label_names.size(); ++i) {
    set_color(c, label_colors[i % label_colors.size()]);
    cairo_rectangle(c, legend, 40, 12, 12);
    cairo_fill(c);
    text(c, legend + 18, 50, 12, label_names[i], dark);
    cairo_text_extents_t extents;
    cairo_text_extents(c, label_names[i].c_str(), &extents);
    legend += 18 + extents.x_advance + 20;
  }
  const char* const names[4] = {"original", "normalized", "augmented", "with its mask"};
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
  }
  write(path, page.get());
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
