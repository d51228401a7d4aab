// SPDX-License-Identifier: Apache-2.0
#include "contact_sheet.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>

#include "drawing.hpp"

namespace suture::examples {
namespace {

constexpr site here{"contact sheet"};
constexpr double gap = 6, group_gap = 26, margin = 20, caption_height = 22, position_height = 14;
constexpr double header_height = 100;  // with one line of legend

constexpr color ground{0.07, 0.08, 0.10}, bright{0.93, 0.94, 0.96}, dim{0.62, 0.65, 0.70}, mark{0.85, 0.85, 0.55};
const outline_style body_style{{0.92, 0.92, 0.95}, {3, 3}}, other_style{{0.55, 0.57, 0.60}, {}};

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
  int across, patient_axis;  // array axis, and the axis of the patient it is nearest to
  std::int64_t index;        // along `across`
  const char *left_mark, *right_mark, *top_mark, *bottom_mark;
};

std::array<plane, 3> standard_planes(const grid& g) {
  const auto axes = patient_axes(g);
  const oriented_axis head = axes[0], back = axes[1], left = axes[2];
  const oriented_axis feet{head.axis, !head.forward};
  return {{{back, left, head.axis, 0, 0, "R", "L", "A", "P"},
           {feet, left, back.axis, 1, 0, "R", "L", "H", "F"},
           {feet, back, left.axis, 2, 0, "A", "P", "H", "F"}}};
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

// Where a plane lies: in millimeters of the patient, and which slice of the scan it is nearest to.
std::string position_of(const grid& g, const plane& p, const grid& scan, bool in_patient) {
  point3 at = g.center();
  at[p.across] = static_cast<double>(p.index);
  const point3 patient = g.index_to_physical()(at);
  const oriented_axis slices = patient_axes(scan)[static_cast<std::size_t>(p.patient_axis)];
  const std::int64_t slice = std::llround(scan.physical_to_index()(patient)[slices.axis]);
  const char axis = "zyx"[slices.axis];
  std::string words;
  if (in_patient) {
    constexpr const char* toward[3][2] = {{"H", "F"}, {"P", "A"}, {"L", "R"}};
    const double mm = patient[p.patient_axis];
    char text[32];
    std::snprintf(text, sizeof text, "%s %.1f mm, ", toward[p.patient_axis][mm < 0 ? 1 : 0], std::abs(mm));
    words = text;
  }
  if (slice < 0 || slice >= scan.extents[slices.axis]) return words + "beyond the scan";
  return words + axis + " " + std::to_string(slice) + " of " + std::to_string(scan.extents[slices.axis]);
}

// The borders of what is inside, as lines that are not broken (marching squares). They lie half-way between the centers
// of voxels, moved inwards by `inset` pixels, so that the lines of two labels that touch lie side by side. Beyond the
// picture nothing is known, so lines end there.
struct picture_point {
  double x, y;
};
std::vector<std::vector<picture_point>> borders(const std::function<bool(std::int64_t, std::int64_t)>& inside,
                                                std::int64_t rows, std::int64_t columns, double row_step,
                                                double column_step, double inset) {
  // A line crosses from voxel (i, j) to its right neighbor (edge 2 n) or to the one below (edge 2 n + 1).
  const auto edge = [&](std::int64_t i, std::int64_t j, bool below) { return 2 * (i * columns + j) + (below ? 1 : 0); };
  std::vector<std::array<std::int64_t, 2>> next(static_cast<std::size_t>(2 * rows * columns), {-1, -1});
  const auto of = [&](std::int64_t e) -> std::array<std::int64_t, 2>& { return next[static_cast<std::size_t>(e)]; };
  const auto link = [&](std::int64_t a, std::int64_t b) {
    of(a)[of(a)[0] < 0 ? 0 : 1] = b;
    of(b)[of(b)[0] < 0 ? 0 : 1] = a;
  };
  for (std::int64_t i = 0; i + 1 < rows; ++i)
    for (std::int64_t j = 0; j + 1 < columns; ++j) {
      const bool a = inside(i, j), b = inside(i, j + 1), d = inside(i + 1, j), e = inside(i + 1, j + 1);
      const std::int64_t top = edge(i, j, false), bottom = edge(i + 1, j, false), left = edge(i, j, true),
                         right = edge(i, j + 1, true);
      if (a == e && b == d && a != b) {  // two corners across: keep them apart
        link(a ? left : right, top);
        link(a ? right : left, bottom);
        continue;
      }
      std::array<std::int64_t, 2> crossed{};
      int count = 0;
      if (a != b) crossed[static_cast<std::size_t>(count++)] = top;
      if (d != e) crossed[static_cast<std::size_t>(count++)] = bottom;
      if (a != d) crossed[static_cast<std::size_t>(count++)] = left;
      if (b != e) crossed[static_cast<std::size_t>(count++)] = right;
      if (count == 2) link(crossed[0], crossed[1]);
    }
  const auto point_of = [&](std::int64_t e) -> picture_point {
    const std::int64_t i = e / 2 / columns, j = e / 2 % columns;
    const bool below = e % 2 != 0;
    const double step = below ? row_step : column_step, inwards = std::min(inset, 0.4 * step);
    const double along = 0.5 * step + (inside(i, j) ? -inwards : inwards);
    const double x = (static_cast<double>(j) + 0.5) * column_step, y = (static_cast<double>(i) + 0.5) * row_step;
    return below ? picture_point{x, y + along} : picture_point{x + along, y};
  };
  std::vector<std::vector<picture_point>> lines;
  const auto follow = [&](std::int64_t e) {
    std::vector<picture_point> line;
    const std::int64_t first = e;
    while (e >= 0) {
      line.push_back(point_of(e));
      const auto ends = of(e);
      of(e) = {-1, -1};
      std::int64_t then = -1;
      for (const std::int64_t n : ends)
        if (n >= 0 && of(n)[0] >= 0) then = n;
      if (then < 0 && line.size() > 2 && (ends[0] == first || ends[1] == first)) line.push_back(line.front());
      e = then;
    }
    lines.push_back(std::move(line));
  };
  for (const bool open : {true, false})
    for (std::int64_t e = 0; e < 2 * rows * columns; ++e)
      if (of(e)[0] >= 0 && (of(e)[1] < 0) == open) follow(e);
  return lines;
}

// How the labels of a sheet are drawn.
struct label_styles {
  std::array<outline_style, 256> of;
  bool nested = false;
  int highest = 0;
};

void outline(cairo_t* c, const label_volume& labels, const plane& p, std::int64_t rows, std::int64_t columns,
             double row_step, double column_step, const label_styles& styles) {
  std::array<bool, 256> present{};
  std::vector<std::uint8_t> slice(static_cast<std::size_t>(rows * columns));
  int most = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::uint8_t label = labels.voxels[voxel_of(labels.grid, p, i, j)];
      slice[static_cast<std::size_t>(i * columns + j)] = label;
      present[label] = true;
      most = std::max<int>(most, label);
    }
  cairo_set_line_cap(c, CAIRO_LINE_CAP_BUTT);
  cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
  for (int label = 1; label <= most; ++label) {
    if (!styles.nested && !present[static_cast<std::size_t>(label)]) continue;
    const auto inside = [&](std::int64_t i, std::int64_t j) {
      const int there = slice[static_cast<std::size_t>(i * columns + j)];
      return styles.nested ? there >= label : there == label;
    };
    const outline_style& style = styles.of[static_cast<std::size_t>(label)];
    set_color(c, style.ink);
    cairo_set_dash(c, style.dashes.data(), static_cast<int>(style.dashes.size()), 0);
    // A label in another has the thinner line: where both end together the wider one shows on both sides, by a whole
    // pixel wherever the line falls between pixels.
    cairo_set_line_width(c, styles.nested ? 1.4 + 2.2 * (styles.highest - label) : 1.2);
    for (const auto& line : borders(inside, rows, columns, row_step, column_step, styles.nested ? 0 : 0.6)) {
      cairo_move_to(c, line[0].x, line[0].y);
      for (const picture_point& at : line) cairo_line_to(c, at.x, at.y);
      cairo_stroke(c);
    }
  }
  cairo_set_dash(c, nullptr, 0, 0);
}

void draw_plane(cairo_t* c, double x, double y, const panel& what, const plane& p, double scale, bool with_bar,
                const label_styles& styles) {
  const grid& g = what.image.grid;
  const std::int64_t rows = g.extents[p.down.axis], columns = g.extents[p.right.axis];
  const double row_step = g.spacing[p.down.axis] * scale, column_step = g.spacing[p.right.axis] * scale;
  const double width = static_cast<double>(columns) * column_step, height = static_cast<double>(rows) * row_step;

  rgb_image shades{rows, columns, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * rows * columns))};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const float value = what.image.voxels[voxel_of(g, p, i, j)];
      std::fill_n(shades.at(i, j), 3, static_cast<std::uint8_t>(std::clamp(value, 0.0f, 1.0f) * 255 + 0.5f));
    }
  const surface pixels = surface_of(shades);

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
  if (!what.body.voxels.empty()) {
    label_styles of_body;
    of_body.of.fill(body_style);
    outline(c, what.body, p, rows, columns, row_step, column_step, of_body);
  }
  outline(c, what.labels, p, rows, columns, row_step, column_step, styles);

  text_on_picture(c, 4, height / 2 + 4, 11, p.left_mark, mark);
  text_on_picture(c, width - 12, height / 2 + 4, 11, p.right_mark, mark);
  text_on_picture(c, width / 2 - 4, 13, 11, p.top_mark, mark);
  text_on_picture(c, width / 2 - 4, height - 5, 11, p.bottom_mark, mark);
  if (with_bar) {
    const double length = g.spacing[p.right.axis] * static_cast<double>(columns) < 60 ? 10 : 20;
    scale_bar(c, 8, height - 9, length * scale, std::to_string(static_cast<int>(length)) + " mm");
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

// The slice of a patch nearest to this one whose middle lies in the scan.
std::int64_t nearest_in(const grid& scan, const grid& patch, const plane& p) {
  const affine_map to_scan = scan.physical_to_index() * patch.index_to_physical();
  const auto inside = [&](std::int64_t index) {
    point3 at = patch.center();
    at[p.across] = static_cast<double>(index);
    const int axis = patient_axes(scan)[static_cast<std::size_t>(p.patient_axis)].axis;
    const double slice = to_scan(at)[axis];
    return slice > -0.5 && slice < static_cast<double>(scan.extents[axis]) - 0.5;
  };
  for (std::int64_t step = 0; step < patch.extents[p.across]; ++step)
    for (const std::int64_t index : {p.index - step, p.index + step})
      if (index >= 0 && index < patch.extents[p.across] && inside(index)) return index;
  return p.index;
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

std::string words_of(const gray_window& shown, const std::string& unit) {
  std::ostringstream words;
  words.precision(3);
  words << "window " << shown.black << " .. " << shown.white << " " << unit;
  return words.str();
}

gray_window percentiles_of(std::vector<float> values, double black, double white) {
  require(!values.empty(), here, "there is no voxel to show");
  const auto at = [&](double share) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), place, values.end());
    return static_cast<double>(*place);
  };
  const double low = at(black), high = at(white);
  return {low, high > low ? high : low + 1};
}

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

struct shown_row {
  std::array<std::array<plane, 3>, 2> planes;  // before, after
};

// What the outlines mean. Labels without names go by their numbers; where there are more of them than there are styles,
// those that cover most of the pictures get one.
std::vector<legend_entry> choose_styles(const contact_sheet& sheet, const std::vector<shown_row>& shown,
                                        label_styles& styles) {
  std::array<std::size_t, 256> pixels{};
  bool body = false;
  for (std::size_t r = 0; r < shown.size(); ++r)
    for (std::size_t side = 0; side < 2; ++side) {
      const panel& what = side == 0 ? sheet.rows[r].before : sheet.rows[r].after;
      body = body || !what.body.voxels.empty();
      const grid& g = what.labels.grid;
      for (const plane& p : shown[r].planes[side])
        for (std::int64_t i = 0; i < g.extents[p.down.axis]; ++i)
          for (std::int64_t j = 0; j < g.extents[p.right.axis]; ++j) ++pixels[what.labels.voxels[voxel_of(g, p, i, j)]];
    }
  styles.of.fill(other_style);
  styles.nested = sheet.nested;
  std::vector<legend_entry> entries;
  std::vector<int> labels;  // without a name
  for (int label = 1; label < 256; ++label) {
    const auto l = static_cast<std::size_t>(label);
    if (l <= sheet.label_names.size() && label <= distinct_styles) {
      styles.of[l] = label_style(label - 1);
      entries.push_back({sheet.label_names[l - 1], styles.of[l]});
    } else if (pixels[l] > 0) {
      labels.push_back(label);
    }
    if (pixels[l] > 0) styles.highest = label;
  }
  if (sheet.nested) styles.highest = std::max(styles.highest, static_cast<int>(sheet.label_names.size()));
  const std::size_t room = static_cast<std::size_t>(distinct_styles) - entries.size();
  std::stable_sort(labels.begin(), labels.end(), [&](int a, int b) {
    return pixels[static_cast<std::size_t>(a)] > pixels[static_cast<std::size_t>(b)];
  });
  const std::size_t others = labels.size() - std::min(labels.size(), room);
  labels.resize(labels.size() - others);
  std::sort(labels.begin(), labels.end());
  for (const int label : labels) {
    const outline_style style = label_style(static_cast<int>(entries.size()));
    styles.of[static_cast<std::size_t>(label)] = style;
    entries.push_back({"label " + std::to_string(label), style});
  }
  if (others > 0) entries.push_back({std::to_string(others) + " smaller labels", other_style});
  if (body) entries.push_back({"body mask", body_style});
  return entries;
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

  std::vector<shown_row> shown;
  for (const sheet_row& row : sheet.rows) {
    const grid& g = row.after.image.grid;
    auto planes = standard_planes(g);
    for (plane& p : planes) {
      p.index = best_slice(row.after.labels, p.across);
      if (row.scan) p.index = nearest_in(*row.scan, g, p);
    }
    shown.push_back({{planes_alike(row.before.image.grid, g, planes), planes}});
  }
  label_styles styles;
  const std::vector<legend_entry> legend = choose_styles(sheet, shown, styles);

  // Columns are as wide, rows as high, as their largest picture.
  constexpr double narrowest = 128;  // the words above a picture
  std::array<std::array<double, 3>, 2> column_width{};
  std::vector<double> row_height;
  double pictures_height = 0;
  for (std::size_t r = 0; r < shown.size(); ++r) {
    double tallest = 0;
    for (std::size_t side = 0; side < 2; ++side) {
      const grid& g = (side == 0 ? sheet.rows[r].before : sheet.rows[r].after).image.grid;
      for (std::size_t k = 0; k < 3; ++k) {
        const plane& p = shown[r].planes[side][k];
        double& widest = column_width[side][k];
        widest = std::max({widest, shown_size(g, p.right.axis) * scale, narrowest});
        tallest = std::max(tallest, shown_size(g, p.down.axis) * scale);
      }
    }
    row_height.push_back(tallest);
    pictures_height += caption_height + position_height + tallest + gap;
  }
  double group[2];
  for (std::size_t side = 0; side < 2; ++side)
    group[side] = column_width[side][0] + column_width[side][1] + column_width[side][2] + 2 * gap;
  const double inner_width = group[0] + group[1] + group_gap;

  int legend_lines = 0;
  {
    const page trial(1, 1, ground);
    legend_lines = draw_legend(trial.drawing.get(), margin, 46, inner_width, legend, bright, true);
  }
  const double header = header_height + (legend_lines - 1) * legend_line;
  const page paper(2 * margin + inner_width, header + pictures_height + margin, ground);
  cairo_t* const c = paper.drawing.get();
  text(c, margin, 30, 17, sheet.title, bright, true);
  draw_legend(c, margin, 46, inner_width, legend, bright);
  const char* const plane_names[] = {"axial", "coronal", "sagittal"};
  for (std::size_t side = 0; side < 2; ++side) {
    double x = margin + (side == 0 ? 0 : group[0] + group_gap);
    text(c, x, header - 22, 12, side == 0 ? "before: " + sheet.before : "after: " + sheet.after, bright);
    for (std::size_t k = 0; k < 3; ++k) {
      text(c, x, header - 4, 12, plane_names[k], dim);
      x += column_width[side][k] + gap;
    }
  }

  double y = header;
  for (std::size_t r = 0; r < shown.size(); ++r) {
    const sheet_row& row = sheet.rows[r];
    text(c, margin, y + 15, 12, row.caption, bright);
    y += caption_height;
    for (std::size_t side = 0; side < 2; ++side) {
      const panel& what = side == 0 ? row.before : row.after;
      const grid& g = what.image.grid;
      double x = margin + (side == 0 ? 0 : group[0] + group_gap);
      for (std::size_t k = 0; k < 3; ++k) {
        const plane& p = shown[r].planes[side][k];
        const bool of_scan = side == 0 && row.scan;
        text(c, x, y + 9, 10, position_of(g, p, of_scan ? *row.scan : g, side == 0 || !row.scan), dim);
        draw_plane(c, x, y + position_height, what, p, scale, k == 0, styles);
        x += column_width[side][k] + gap;
      }
    }
    y += position_height + row_height[r] + gap;
  }

  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  write_png(path, paper.pixels.get());
}

}  // namespace suture::examples
