// SPDX-License-Identifier: Apache-2.0
#include "contact_sheet.hpp"

#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "whole_file.hpp"

namespace suture::examples {
namespace {

constexpr site here{"contact sheet"};
constexpr double gap = 6, group_gap = 26, margin = 20, caption_height = 22, header_height = 74;

struct color {
  double r, g, b;
};

constexpr color bright{0.93, 0.94, 0.96}, dim{0.62, 0.65, 0.70}, body_color{0.62, 0.56, 1.00};

color label_color(int label) {
  constexpr std::array<color, 6> first{{{0.16, 0.80, 0.95},
                                        {1.00, 0.33, 0.28},
                                        {0.98, 0.83, 0.20},
                                        {0.45, 0.90, 0.40},
                                        {0.93, 0.50, 0.95},
                                        {1.00, 0.62, 0.25}}};
  if (label <= static_cast<int>(first.size())) return first[static_cast<std::size_t>(label - 1)];
  // Further labels: hues a golden angle apart.
  const double hue = std::fmod(label * 0.618033988749895, 1.0) * 6;
  const auto ramp = [&](double shift) {
    return 0.35 + 0.6 * std::clamp(std::abs(std::fmod(hue + shift, 6.0) - 3) - 1, 0.0, 1.0);
  };
  return {ramp(0), ramp(4), ramp(2)};
}

// The array axis that runs along a patient axis (0: to the head, 1: to the back, 2: to the left), and its sense.
struct oriented_axis {
  int axis;
  bool forward;
};

std::array<oriented_axis, 3> patient_axes(const grid& g) {
  std::array<oriented_axis, 3> result{};
  bool row_used[3] = {}, column_used[3] = {};
  for (int pass = 0; pass < 3; ++pass) {
    int row = -1, column = -1;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        if (!row_used[i] && !column_used[j] &&
            (row < 0 || std::abs(g.direction[i][j]) > std::abs(g.direction[row][column]))) {
          row = i;
          column = j;
        }
    row_used[row] = column_used[column] = true;
    result[static_cast<std::size_t>(row)] = {column, g.direction[row][column] > 0};
  }
  return result;
}

// A plane as it is looked at: rows downwards, columns to the right, on the voxels of the volume.
struct plane {
  oriented_axis down, right;
  int across;
  std::int64_t index;  // along `across`
  const char *left_mark, *top_mark;
};

std::array<plane, 3> standard_planes(const grid& g) {
  const auto axes = patient_axes(g);
  const oriented_axis head = axes[0], back = axes[1], left = axes[2];
  const oriented_axis feet{head.axis, !head.forward};
  return {{{back, left, head.axis, 0, "R", "A"},
           {feet, left, back.axis, 0, "R", "H"},
           {feet, back, left.axis, 0, "A", "H"}}};
}

std::size_t voxel_of(const grid& g, const plane& p, std::int64_t row, std::int64_t column) {
  extent3 at{};
  at[p.across] = p.index;
  at[p.down.axis] = p.down.forward ? row : g.extents[p.down.axis] - 1 - row;
  at[p.right.axis] = p.right.forward ? column : g.extents[p.right.axis] - 1 - column;
  return linear_index(g.extents, at[0], at[1], at[2]);
}

// The slice in the middle of the rarest label worth showing, else of the volume.
std::int64_t best_slice(const label_volume& labels, int across) {
  const extent3& n = labels.grid.extents;
  std::array<std::size_t, 256> count{};
  for (const std::uint8_t label : labels.voxels) ++count[label];
  int chosen = 0;
  for (int label = 1; label < 256; ++label) {
    const std::size_t c = count[static_cast<std::size_t>(label)];
    if (c >= 30 && (chosen == 0 || c < count[static_cast<std::size_t>(chosen)])) chosen = label;
  }
  if (chosen == 0) return n[across] / 2;
  std::vector<std::size_t> area(static_cast<std::size_t>(n[across]), 0);
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x)
        if (labels.voxels[linear_index(n, z, y, x)] == chosen)
          ++area[static_cast<std::size_t>(across == 0 ? z : across == 1 ? y : x)];
  const std::size_t half = count[static_cast<std::size_t>(chosen)] / 2;
  std::size_t slice = 0;
  for (std::size_t sum = area[0]; sum <= half; sum += area[slice]) ++slice;
  return static_cast<std::int64_t>(slice);
}

struct destroy_surface {
  void operator()(cairo_surface_t* s) const { cairo_surface_destroy(s); }
};
struct destroy_context {
  void operator()(cairo_t* c) const { cairo_destroy(c); }
};
using surface = std::unique_ptr<cairo_surface_t, destroy_surface>;
using context = std::unique_ptr<cairo_t, destroy_context>;

void set_color(cairo_t* c, color k) { cairo_set_source_rgb(c, k.r, k.g, k.b); }

void text(cairo_t* c, double x, double y, double size, const std::string& words, color k, bool bold = false) {
  cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(c, size);
  set_color(c, k);
  cairo_move_to(c, x, y);
  cairo_show_text(c, words.c_str());
}

// The path in `k` with a dark rim, legible on bright tissue and on air.
void stroke_rimmed(cairo_t* c, color k, double width) {
  set_color(c, {0.05, 0.05, 0.05});
  cairo_set_line_width(c, width + 2);
  cairo_stroke_preserve(c);
  set_color(c, k);
  cairo_set_line_width(c, width);
}
void text_on_picture(cairo_t* c, double x, double y, double size, const std::string& words, color k) {
  cairo_set_font_size(c, size);
  cairo_move_to(c, x, y);
  cairo_text_path(c, words.c_str());
  stroke_rimmed(c, k, 0);
  cairo_fill(c);
}

// The outline half-way between voxel centers inside and outside a label (marching squares); beyond the patch nothing is
// known, so the outline is not closed there.
void outline(cairo_t* c, const label_volume& labels, const plane& p, std::int64_t rows, std::int64_t columns,
             double row_step, double column_step, const color* one_color = nullptr) {
  std::array<bool, 256> present{};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) present[labels.voxels[voxel_of(labels.grid, p, i, j)]] = true;
  cairo_set_line_width(c, 1.15);
  cairo_set_line_cap(c, CAIRO_LINE_CAP_ROUND);
  for (int label = 1; label < 256; ++label) {
    if (!present[static_cast<std::size_t>(label)]) continue;
    const auto inside = [&](std::int64_t i, std::int64_t j) {
      return labels.voxels[voxel_of(labels.grid, p, i, j)] == label;
    };
    set_color(c, one_color ? *one_color : label_color(label));
    for (std::int64_t i = 0; i + 1 < rows; ++i)
      for (std::int64_t j = 0; j + 1 < columns; ++j) {
        const bool a = inside(i, j), b = inside(i, j + 1), d = inside(i + 1, j), e = inside(i + 1, j + 1);
        const int corners = (a ? 1 : 0) | (b ? 2 : 0) | (d ? 4 : 0) | (e ? 8 : 0);
        if (corners == 0 || corners == 15) continue;
        const double x = static_cast<double>(j) + 0.5, y = static_cast<double>(i) + 0.5;  // center of the first voxel
        const double top[2] = {x + 0.5, y}, bottom[2] = {x + 0.5, y + 1}, left[2] = {x, y + 0.5},
                     right[2] = {x + 1, y + 0.5};
        const auto line = [&](const double* from, const double* to) {
          cairo_move_to(c, from[0] * column_step, from[1] * row_step);
          cairo_line_to(c, to[0] * column_step, to[1] * row_step);
        };
        if (corners == 6 || corners == 9) {  // two corners across: keep them apart
          line(corners == 9 ? left : right, top);
          line(corners == 9 ? right : left, bottom);
        } else if (a == b) {
          if (d == e)
            line(left, right);
          else
            line(bottom, d == a ? right : left);
        } else if (d == e) {
          line(top, a == d ? right : left);
        } else {
          line(top, bottom);
        }
      }
    cairo_stroke(c);
  }
}

void draw_plane(cairo_t* c, double x, double y, const panel& what, const plane& p, double scale, bool with_bar) {
  const grid& g = what.image.grid;
  const std::int64_t rows = g.extents[p.down.axis], columns = g.extents[p.right.axis];
  const double row_step = g.spacing[p.down.axis] * scale, column_step = g.spacing[p.right.axis] * scale;
  const double width = static_cast<double>(columns) * column_step, height = static_cast<double>(rows) * row_step;

  const surface pixels(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(columns), static_cast<int>(rows)));
  require(cairo_surface_status(pixels.get()) == CAIRO_STATUS_SUCCESS, here, "out of memory");
  cairo_surface_flush(pixels.get());
  unsigned char* data = cairo_image_surface_get_data(pixels.get());
  const int stride = cairo_image_surface_get_stride(pixels.get());
  for (std::int64_t i = 0; i < rows; ++i) {
    auto* line = reinterpret_cast<std::uint32_t*>(data + i * stride);
    for (std::int64_t j = 0; j < columns; ++j) {
      const float value = what.image.voxels[voxel_of(g, p, i, j)];
      const auto gray = static_cast<std::uint32_t>(std::clamp(value, 0.0f, 1.0f) * 255 + 0.5f);
      line[j] = gray << 16 | gray << 8 | gray;
    }
  }
  cairo_surface_mark_dirty(pixels.get());

  cairo_save(c);
  cairo_translate(c, x, y);
  cairo_rectangle(c, 0, 0, width, height);
  cairo_clip(c);
  cairo_save(c);
  cairo_scale(c, column_step, row_step);
  cairo_set_source_surface(c, pixels.get(), 0, 0);
  cairo_pattern_set_filter(cairo_get_source(c), CAIRO_FILTER_BILINEAR);
  cairo_pattern_set_extend(cairo_get_source(c), CAIRO_EXTEND_PAD);
  cairo_paint(c);
  cairo_restore(c);
  if (!what.body.voxels.empty()) outline(c, what.body, p, rows, columns, row_step, column_step, &body_color);
  outline(c, what.labels, p, rows, columns, row_step, column_step);

  const color mark{0.85, 0.85, 0.55};
  text_on_picture(c, 4, height / 2 + 4, 11, p.left_mark, mark);
  text_on_picture(c, width / 2 - 4, 13, 11, p.top_mark, mark);
  if (with_bar) {
    const double length = g.spacing[p.right.axis] * static_cast<double>(columns) < 60 ? 10 : 20;
    cairo_set_line_cap(c, CAIRO_LINE_CAP_BUTT);
    cairo_move_to(c, 8, height - 9);
    cairo_line_to(c, 8 + length * scale, height - 9);
    stroke_rimmed(c, mark, 2);
    cairo_stroke(c);
    text_on_picture(c, 8, height - 14, 10, std::to_string(static_cast<int>(length)) + " mm", mark);
  }
  cairo_restore(c);
}

void check_panel(const panel& p) {
  const grid& g = p.image.grid;
  check(g, here);
  const auto voxels = static_cast<std::size_t>(g.voxels());
  require(p.image.voxels.size() == voxels && p.labels.voxels.size() == voxels && p.labels.grid.extents == g.extents &&
              (p.body.voxels.empty() || (p.body.voxels.size() == voxels && p.body.grid.extents == g.extents)),
          here, "image and labels of a row have different extents");
}

double shown_size(const grid& g, int axis) { return g.spacing[axis] * static_cast<double>(g.extents[axis]); }

// The planes of `before` nearest to planes of `after`.
std::array<plane, 3> planes_alike(const grid& before, const grid& after, const std::array<plane, 3>& shown) {
  std::array<plane, 3> planes = standard_planes(before);
  const affine_map to_before = before.physical_to_index() * after.index_to_physical();
  for (std::size_t k = 0; k < 3; ++k) {
    point3 at = after.center();
    at[shown[k].across] = static_cast<double>(shown[k].index);
    const int across = planes[k].across;
    planes[k].index = std::clamp<std::int64_t>(std::llround(to_before(at)[across]), 0, before.extents[across] - 1);
  }
  return planes;
}

// Index of a target voxel in the source, continuous.
template <class F>
void each_source_point(const grid& source, const grid& target, F f) {
  const affine_map map = source.physical_to_index() * target.index_to_physical();
  const extent3& n = target.extents;
#pragma omp parallel for
  for (std::int64_t z = 0; z < n[0]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[2]; ++x)
        f(linear_index(n, z, y, x), map({static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)}));
}

}  // namespace

template <class T>
volume<float> shown_on(const volume<T>& source, const grid& target, float outside) {
  volume<float> result{target, std::vector<float>(static_cast<std::size_t>(target.voxels()))};
  const extent3& n = source.grid.extents;
  each_source_point(source.grid, target, [&](std::size_t i, const point3& p) {
    std::int64_t low[3], high[3];
    double part[3];
    for (int k = 0; k < 3; ++k) {
      if (p[k] < -0.5 || p[k] > static_cast<double>(n[k]) - 0.5) {
        result.voxels[i] = outside;
        return;
      }
      const double inside = std::clamp(p[k], 0.0, static_cast<double>(n[k] - 1));
      low[k] = static_cast<std::int64_t>(inside);
      high[k] = std::min(low[k] + 1, n[k] - 1);
      part[k] = inside - static_cast<double>(low[k]);
    }
    double sum = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const bool u = corner & 4, v = corner & 2, w = corner & 1;
      sum += (u ? part[0] : 1 - part[0]) * (v ? part[1] : 1 - part[1]) * (w ? part[2] : 1 - part[2]) *
             static_cast<double>(
                 source.voxels[linear_index(n, u ? high[0] : low[0], v ? high[1] : low[1], w ? high[2] : low[2])]);
    }
    result.voxels[i] = static_cast<float>(sum);
  });
  return result;
}

template volume<float> shown_on(const volume<std::int16_t>&, const grid&, float);
template volume<float> shown_on(const volume<float>&, const grid&, float);

label_volume labels_on(const label_volume& source, const grid& target) {
  label_volume result{target, std::vector<std::uint8_t>(static_cast<std::size_t>(target.voxels()))};
  const extent3& n = source.grid.extents;
  each_source_point(source.grid, target, [&](std::size_t i, const point3& p) {
    std::int64_t low[3];
    double part[3];
    for (int k = 0; k < 3; ++k) {
      if (p[k] < -1 || p[k] > static_cast<double>(n[k])) return;
      low[k] = static_cast<std::int64_t>(std::floor(p[k]));
      part[k] = p[k] - static_cast<double>(low[k]);
    }
    std::uint8_t label[8];
    double weight[8], best = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const std::int64_t at[3] = {low[0] + (corner >> 2), low[1] + (corner >> 1 & 1), low[2] + (corner & 1)};
      weight[corner] = 1;
      bool inside = true;
      for (int k = 0; k < 3; ++k) {
        weight[corner] *= at[k] == low[k] ? 1 - part[k] : part[k];
        inside = inside && at[k] >= 0 && at[k] < n[k];
      }
      label[corner] = inside ? source.voxels[linear_index(n, at[0], at[1], at[2])] : std::uint8_t{0};
    }
    for (int corner = 0; corner < 8; ++corner) {
      double sum = 0;
      for (int other = 0; other < 8; ++other) sum += label[other] == label[corner] ? weight[other] : 0;
      if (sum > best || (sum == best && label[corner] < result.voxels[i])) {
        best = sum;
        result.voxels[i] = label[corner];
      }
    }
  });
  return result;
}

namespace {

// What the colors of outlines mean. Labels without names go by their numbers.
std::vector<std::pair<std::string, color>> legend_of(const contact_sheet& sheet) {
  constexpr std::size_t most_numbers = 8;
  std::vector<std::pair<std::string, color>> entries;
  std::array<bool, 256> seen{};
  bool body = false;
  for (const sheet_row& row : sheet.rows)
    for (const panel* p : {&row.before, &row.after}) {
      for (const std::uint8_t label : p->labels.voxels) seen[label] = true;
      body = body || !p->body.voxels.empty();
    }
  for (std::size_t i = 0; i < sheet.label_names.size(); ++i)
    entries.emplace_back(sheet.label_names[i], label_color(static_cast<int>(i) + 1));
  for (int label = 1; label < 256 && sheet.label_names.empty() && entries.size() < most_numbers; ++label)
    if (seen[static_cast<std::size_t>(label)])
      entries.emplace_back("label " + std::to_string(label), label_color(label));
  if (body) entries.emplace_back("body mask", body_color);
  return entries;
}

void draw_legend(cairo_t* c, const contact_sheet& sheet) {
  double x = margin;
  for (const auto& [name, of_outline] : legend_of(sheet)) {
    set_color(c, of_outline);
    cairo_set_line_width(c, 2);
    cairo_move_to(c, x, 44);
    cairo_line_to(c, x + 18, 44);
    cairo_stroke(c);
    text(c, x + 24, 48, 12, name, bright);
    cairo_text_extents_t extents;
    cairo_text_extents(c, name.c_str(), &extents);
    x += 24 + extents.x_advance + 22;
  }
}

}  // namespace

void write_contact_sheet(const std::filesystem::path& path, const contact_sheet& sheet) {
  require(!sheet.rows.empty(), here, "there is no sample to show");
  double longest = 0;
  for (const sheet_row& row : sheet.rows)
    for (const panel* p : {&row.before, &row.after}) {
      check_panel(*p);
      for (int k = 0; k < 3; ++k) longest = std::max(longest, shown_size(p->image.grid, k));
    }
  const double scale = sheet.tile / longest;  // one scale for the whole sheet

  // Columns are as wide, rows as high, as their largest picture.
  std::array<std::array<double, 3>, 2> column_width{};
  std::vector<double> row_height;
  double height = header_height + margin;
  for (const sheet_row& row : sheet.rows) {
    double tallest = 0;
    for (std::size_t side = 0; side < 2; ++side) {
      const grid& g = (side == 0 ? row.before : row.after).image.grid;
      const auto planes = standard_planes(g);
      for (std::size_t k = 0; k < 3; ++k) {
        double& widest = column_width[side][k];
        widest = std::max({widest, shown_size(g, planes[k].right.axis) * scale, 60.0});
        tallest = std::max(tallest, shown_size(g, planes[k].down.axis) * scale);
      }
    }
    row_height.push_back(tallest);
    height += caption_height + tallest + gap;
  }
  double group[2];
  for (std::size_t side = 0; side < 2; ++side)
    group[side] = column_width[side][0] + column_width[side][1] + column_width[side][2] + 2 * gap;
  const double width = 2 * margin + group[0] + group[1] + group_gap;

  const surface page(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(std::ceil(width)),
                                                static_cast<int>(std::ceil(height))));
  const context c(cairo_create(page.get()));
  require(cairo_status(c.get()) == CAIRO_STATUS_SUCCESS, here, "a picture of ", width, " by ", height,
          " pixels is too large");
  set_color(c.get(), {0.07, 0.08, 0.10});
  cairo_paint(c.get());
  text(c.get(), margin, 30, 17, sheet.title, bright, true);
  draw_legend(c.get(), sheet);
  const char* const plane_names[] = {"axial", "coronal", "sagittal"};
  for (std::size_t side = 0; side < 2; ++side) {
    double x = margin + (side == 0 ? 0 : group[0] + group_gap);
    for (std::size_t k = 0; k < 3; ++k) {
      text(c.get(), x, header_height - 4, 12,
           std::string(k == 0 ? (side == 0 ? "before: " : "after: ") : "") + plane_names[k], dim);
      x += column_width[side][k] + gap;
    }
  }

  double y = header_height;
  for (std::size_t r = 0; r < sheet.rows.size(); ++r) {
    const sheet_row& row = sheet.rows[r];
    text(c.get(), margin, y + 15, 12, row.caption, bright);
    y += caption_height;
    auto planes = standard_planes(row.after.image.grid);
    for (plane& p : planes) p.index = best_slice(row.after.labels, p.across);
    const auto before = planes_alike(row.before.image.grid, row.after.image.grid, planes);
    for (std::size_t side = 0; side < 2; ++side) {
      double x = margin + (side == 0 ? 0 : group[0] + group_gap);
      for (std::size_t k = 0; k < 3; ++k) {
        draw_plane(c.get(), x, y, side == 0 ? row.before : row.after, (side == 0 ? before : planes)[k], scale, k == 0);
        x += column_width[side][k] + gap;
      }
    }
    y += row_height[r] + gap;
  }
  cairo_surface_flush(page.get());

  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  write_whole(here, path, [&](const std::filesystem::path& temporary) -> std::string {
    const cairo_status_t wrote = cairo_surface_write_to_png(page.get(), temporary.c_str());
    return wrote == CAIRO_STATUS_SUCCESS ? "" : cairo_status_to_string(wrote);
  });
}

}  // namespace suture::examples
