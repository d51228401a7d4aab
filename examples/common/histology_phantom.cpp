// SPDX-License-Identifier: Apache-2.0
// Tissue is painted object by object as concentrations of haematoxylin and eosin, then turned into light. Objects lie
// on jittered lattices: what a lattice cell holds is drawn from a stream of its own, so a region needs to look at its
// own cells and their neighbours alone. The library's own elementary functions, and no contraction of products and sums
// (see examples/CMakeLists.txt), make it the same slide everywhere.
// Lengths are micrometres, positions (y, x) from the corner of the slide.
#include "histology_phantom.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "suture/rng/draw.hpp"

namespace suture::examples {
namespace {

constexpr site here{"histology phantom"};

struct point {
  float y, x;
  friend point operator+(point a, point b) { return {a.y + b.y, a.x + b.x}; }
  friend point operator-(point a, point b) { return {a.y - b.y, a.x - b.x}; }
  friend point operator*(point a, float s) { return {a.y * s, a.x * s}; }
};
float length(point a) { return std::sqrt(a.y * a.y + a.x * a.x); }
// From 0 at `a` to 1 at `b`, smooth.
float step(float a, float b, float v) {
  const float t = std::clamp((v - a) / (b - a), 0.0f, 1.0f);
  return t * t * (3 - 2 * t);
}

// What is drawn from which stream.
enum layer : std::uint16_t {
  outline_noise = 1,
  outline_detail,
  gland_domain,
  fat_domain,
  warp_noise,
  curl_noise,
  fibre_noise,
  crossing_noise,
  strand_noise,
  lumen_noise,
  crossing_domain,
  cell_density,
  grain_noise,
  chromatin_noise,
  fold_noise,
  stain_noise,
  gland_shape,
  glands = 64,
  lymphocytes,
  fibroblasts,
  vessels,
  blood,
  fat,
  follicles,
  places,
  sensor
};

draws cell_draws(std::uint64_t seed, layer kind, std::int64_t cy, std::int64_t cx) {
  const std::uint64_t cell = static_cast<std::uint64_t>(static_cast<std::uint32_t>(cy)) << 32 |
                             static_cast<std::uint64_t>(static_cast<std::uint32_t>(cx));
  return {seed, 0, cell, kind};
}

// A rectangle of the slide in micrometres.
struct area {
  float top, left, bottom, right;
  area grown(float by) const { return {top - by, left - by, bottom + by, right + by}; }
  bool meets(point p, float radius) const {
    return p.y + radius > top && p.y - radius < bottom && p.x + radius > left && p.x - radius < right;
  }
};

// Smooth noise in about -1..1: values at the nodes of a lattice, drawn where the area needs them.
class noise {
public:
  noise(std::uint64_t seed, layer kind, const area& where, float wavelength_y, float wavelength_x)
      : per_y_(1 / wavelength_y), per_x_(1 / wavelength_x) {
    first_y_ = static_cast<std::int64_t>(std::floor(where.top * per_y_));
    first_x_ = static_cast<std::int64_t>(std::floor(where.left * per_x_));
    rows_ = static_cast<std::int64_t>(std::floor(where.bottom * per_y_)) - first_y_ + 2;
    columns_ = static_cast<std::int64_t>(std::floor(where.right * per_x_)) - first_x_ + 2;
    values_.resize(static_cast<std::size_t>(rows_ * columns_));
    for (std::int64_t y = 0; y < rows_; ++y) {
      const stream row({seed, 0, static_cast<std::uint64_t>(first_y_ + y), kind, 1});
      philox_block words{};
      std::uint64_t block = ~std::uint64_t{0};
      for (std::int64_t x = 0; x < columns_; ++x) {
        const auto i = static_cast<std::uint64_t>(first_x_ + x + (std::int64_t{1} << 40));
        if (i / 4 != block) words = row.block(block = i / 4);
        values_[static_cast<std::size_t>(y * columns_ + x)] =
            2 * unit_half_open(words[static_cast<std::uint32_t>(i & 3)]) - 1;
      }
    }
  }
  noise(std::uint64_t seed, layer kind, const area& where, float wavelength)
      : noise(seed, kind, where, wavelength, wavelength) {}

  float operator()(point p) const {
    const float y = p.y * per_y_, x = p.x * per_x_;
    const float fy = std::floor(y), fx = std::floor(x);
    const std::int64_t j = std::clamp<std::int64_t>(static_cast<std::int64_t>(fy) - first_y_, 0, rows_ - 2);
    const std::int64_t i = std::clamp<std::int64_t>(static_cast<std::int64_t>(fx) - first_x_, 0, columns_ - 2);
    const float v = step(0, 1, y - fy), u = step(0, 1, x - fx);
    const float* at = values_.data() + j * columns_ + i;
    const float above = at[0] + (at[1] - at[0]) * u;
    const float below = at[columns_] + (at[columns_ + 1] - at[columns_]) * u;
    return 1.4f * (above + (below - above) * v);
  }

private:
  float per_y_, per_x_;
  std::int64_t first_y_ = 0, first_x_ = 0, rows_ = 0, columns_ = 0;
  std::vector<float> values_;
};

// The smooth fields that say what grows where.
struct fields {
  float height, width;
  noise outline, detail, gland, fat, warp, curl, density, crossing;

  fields(std::uint64_t seed, const area& where, float slide_height, float slide_width)
      : height(slide_height),
        width(slide_width),
        outline(seed, outline_noise, where, 520),
        detail(seed, outline_detail, where, 60),
        gland(seed, gland_domain, where, 620),
        fat(seed, fat_domain, where, 560),
        warp(seed, warp_noise, where, 230),
        curl(seed, curl_noise, where, 46),
        density(seed, cell_density, where, 110),
        crossing(seed, crossing_domain, where, 300) {}

  // Micrometres inside the tissue, negative on glass.
  float depth(point p) const {
    const auto lobe = [&](float y, float x, float ry, float rx) {
      const float v = (p.y - y * height) / (ry * height), u = (p.x - x * width) / (rx * width);
      return (1 - std::sqrt(u * u + v * v)) * ry * height;
    };
    const float both = std::max(lobe(0.47f, 0.36f, 0.38f, 0.27f), lobe(0.52f, 0.68f, 0.36f, 0.27f));
    return both + 170 * outline(p) + 14 * detail(p) + 5 * curl(p);
  }
  // Above 0 glands grow, above 0 fat does; not both.
  float glandular(point p) const { return gland(p) + 0.42f - 0.6f * step(0.15f, 0.45f, fat(p)); }
  float fatty(point p) const { return std::min(fat(p) - 0.40f, -gland(p) + 0.15f); }
  // Two sets of fibres follow the level lines of these, and how much the second set prevails, 0..1.
  float across(point p) const { return p.y + 0.35f * p.x + 95 * warp(p) + 9 * curl(p); }
  float across_second(point p) const { return p.x - 0.45f * p.y + 80 * warp({p.y + 120, p.x}) + 8 * curl(p); }
  float second(point p) const { return step(-0.05f, 0.35f, crossing(p)); }
  point along(point p) const {
    constexpr float h = 4;
    const bool first = second(p) < 0.5f;
    const auto value = [&](point q) { return first ? across(q) : across_second(q); };
    const float dy = value({p.y + h, p.x}) - value({p.y - h, p.x});
    const float dx = value({p.y, p.x + h}) - value({p.y, p.x - h});
    const float norm = std::sqrt(dy * dy + dx * dx) + 1e-3f;
    return {-dx / norm, dy / norm};
  }
};

// Concentrations and labels of a region while it is painted.
class canvas {
public:
  canvas(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, float pixel)
      : pixel_(pixel), top_(top), left_(left), height_(height), width_(width) {
    const auto count = static_cast<std::size_t>(height * width);
    h.assign(count, 0);
    e.assign(count, 0);
    label.assign(count, 0);
    // A 20x objective resolves about 0.7 micrometres.
    soft_ = 1 / std::max(pixel, 0.7f);
  }

  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  float pixel() const { return pixel_; }
  point at(std::int64_t y, std::int64_t x) const {
    return {(static_cast<float>(top_ + y) + 0.5f) * pixel_, (static_cast<float>(left_ + x) + 0.5f) * pixel_};
  }
  area covered() const {
    return {static_cast<float>(top_) * pixel_, static_cast<float>(left_) * pixel_,
            static_cast<float>(top_ + height_) * pixel_, static_cast<float>(left_ + width_) * pixel_};
  }
  float coverage(float distance) const { return std::clamp(0.5f - distance * soft_, 0.0f, 1.0f); }
  void mix(std::size_t i, float part, float to_h, float to_e) {
    h[i] += part * (to_h - h[i]);
    e[i] += part * (to_e - e[i]);
  }

  template <class F>
  void each(F f) {
    for (std::int64_t y = 0; y < height_; ++y)
      for (std::int64_t x = 0; x < width_; ++x) f(at(y, x), static_cast<std::size_t>(y * width_ + x));
  }
  // f(point, index) near a place.
  template <class F>
  void around(point p, float radius, F f) {
    const float reach = radius + 2 / soft_;
    const auto range = [&](float center, std::int64_t first, std::int64_t count) {
      const auto low = static_cast<std::int64_t>(std::floor((center - reach) / pixel_)) - first;
      const auto high = static_cast<std::int64_t>(std::ceil((center + reach) / pixel_)) - first;
      return std::pair{std::max<std::int64_t>(0, low), std::min(count, high)};
    };
    const auto [y0, y1] = range(p.y, top_, height_);
    const auto [x0, x1] = range(p.x, left_, width_);
    for (std::int64_t y = y0; y < y1; ++y)
      for (std::int64_t x = x0; x < x1; ++x) f(at(y, x), static_cast<std::size_t>(y * width_ + x));
  }

  std::vector<float> h, e;
  std::vector<std::uint8_t> label;

private:
  float pixel_, soft_;
  std::int64_t top_, left_, height_, width_;
};

// f(cy, cx) for the cells of a lattice whose objects, at most `reach` from their cell, may touch the area.
template <class F>
void each_cell(const area& where, float spacing, float reach, F f) {
  const area near = where.grown(reach);
  const auto cell = [&](float v) { return static_cast<std::int64_t>(std::floor(v / spacing)); };
  for (std::int64_t cy = cell(near.top); cy <= cell(near.bottom); ++cy)
    for (std::int64_t cx = cell(near.left); cx <= cell(near.right); ++cx) f(cy, cx);
}
point in_cell(std::int64_t cy, std::int64_t cx, float spacing, float jitter, draws& random) {
  const float y = random.uniform(-jitter, jitter), x = random.uniform(-jitter, jitter);
  return {(static_cast<float>(cy) + 0.5f + y) * spacing, (static_cast<float>(cx) + 0.5f + x) * spacing};
}

struct nucleus {
  point center, axis;  // the unit vector of its long axis
  float half_length, half_width;
  float h, e;       // concentrations
  float vesicular;  // how much paler the middle is than the rim, 0..1
};

void paint_nucleus(canvas& c, const nucleus& n, const noise& chromatin, float texture) {
  c.around(n.center, n.half_length, [&](point p, std::size_t i) {
    const point d = p - n.center;
    const float l = (d.y * n.axis.y + d.x * n.axis.x) / n.half_length;
    const float w = (d.y * n.axis.x - d.x * n.axis.y) / n.half_width;
    const float r = std::sqrt(l * l + w * w);
    const float cover = c.coverage((r - 1) * n.half_width);
    if (cover <= 0) return;
    const float rim = step(0.45f, 0.95f, r);
    const float clumps = texture * chromatin(p);
    const float h = n.h * (1 - n.vesicular * 0.45f * (1 - rim) + 0.18f * rim * n.vesicular + 0.32f * clumps);
    c.mix(i, cover, h, n.e);
    if (cover >= 0.5f) c.label[i] = label_nucleus;
  });
}

class histology_phantom final : public slide {
public:
  explicit histology_phantom(const histology_options& o) : options_(o) {
    require(
        o.height >= 16 && o.width >= 16 && o.height <= (std::int64_t{1} << 20) && o.width <= (std::int64_t{1} << 20),
        here, "extents ", o.height, " by ", o.width, " must be in 16..2^20");
    require(std::isfinite(o.mpp) && o.mpp > 0.05 && o.mpp < 20, here, "mpp ", o.mpp, " must be in 0.05..20");
    require(o.haematoxylin_strength >= 0 && o.eosin_strength >= 0 && o.noise >= 0, here,
            "strengths and noise must not be negative");
    require(o.jpeg_quality >= 0 && o.jpeg_quality <= 100, here, "quality ", o.jpeg_quality, " must be in 0..100");
    name_ = "synthetic H&E slide, seed " + std::to_string(o.seed);
    for (const std::int64_t d : {1, 4, 16})
      layout_.levels.push_back({(o.height + d - 1) / d, (o.width + d - 1) / d, static_cast<double>(d)});
    layout_.mpp = o.mpp;
    mpp_source_ = "phantom";
    for (std::size_t k = 0; k < 3; ++k) background_[k] = static_cast<std::uint8_t>(o.light[k]);
    height_um_ = static_cast<float>(static_cast<double>(o.height) * o.mpp);
    width_um_ = static_cast<float>(static_cast<double>(o.width) * o.mpp);
    place_artefacts();
  }

  std::vector<std::uint8_t> labels(std::int64_t y, std::int64_t x, std::int32_t level, std::int64_t height,
                                   std::int64_t width) const override {
    const std::int64_t d = downsample(level);
    std::vector<std::uint8_t> result(static_cast<std::size_t>(height * width));
    const auto copy_from = [&](const painted& from) {
      const std::int64_t top = floor_div(y, d) - from.top, left = floor_div(x, d) - from.left;
      if (from.level != level || top < 0 || left < 0 || top + height > from.height || left + width > from.width)
        return false;
      for (std::int64_t j = 0; j < height; ++j)
        std::copy_n(from.labels.begin() + (top + j) * from.width + left, width, result.begin() + j * width);
      return true;
    };
    bool found = false;
    {
      const std::lock_guard lock(last_mutex_);
      found = copy_from(last_);
    }
    if (!found) {
      canvas c(floor_div(y, d), floor_div(x, d), height, width, pixel(level));
      paint(c);
      result = std::move(c.label);
    }
    const slide_level& l = layout_.levels[static_cast<std::size_t>(level)];
    for (std::int64_t j = 0; j < height; ++j)
      for (std::int64_t i = 0; i < width; ++i) {
        const std::int64_t row = floor_div(y, d) + j, column = floor_div(x, d) + i;
        if (row < 0 || column < 0 || row >= l.height || column >= l.width)
          result[static_cast<std::size_t>(j * width + i)] = 0;
      }
    return result;
  }

private:
  static std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
  std::int64_t downsample(std::int32_t level) const {
    return static_cast<std::int64_t>(layout_.levels[static_cast<std::size_t>(level)].downsample);
  }
  float pixel(std::int32_t level) const {
    return static_cast<float>(layout_.mpp * layout_.levels[static_cast<std::size_t>(level)].downsample);
  }

  void place_artefacts() {
    draws random = cell_draws(options_.seed, places, 0, 0);
    const float h = height_um_, w = width_um_;
    blur_center_ = {random.uniform(0.62f, 0.72f) * h, random.uniform(0.60f, 0.72f) * w};
    blur_radius_ = 0.13f * h;
    fold_center_ = {random.uniform(0.35f, 0.45f) * h, random.uniform(0.30f, 0.40f) * w};
    const float turn = random.uniform(0.15f, 0.85f);
    fold_across_ = {math::cos(3.14159265f * turn), math::sin(3.14159265f * turn)};
    fold_half_length_ = 0.17f * h;
    const float from = random.uniform(0.06f, 0.12f) * w;
    for (std::size_t k = 0; k < pen_.size(); ++k) {
      const float t = static_cast<float>(k) / static_cast<float>(pen_.size() - 1);
      pen_[k] = {(0.78f + 0.14f * t + 0.06f * math::sin(6 * t)) * h, from + (0.02f + 0.22f * t * t) * w};
    }
  }

  // Everything but folds, focus and light.
  void paint(canvas& c) const {
    const std::uint64_t seed = options_.seed;
    const area where = c.covered();
    const area wide = where.grown(260);
    const fields f(seed, wide, height_um_, width_um_);
    const float px = c.pixel();
    // In the coordinates of the fibres: across, and along x or y.
    const area fibres{wide.top + 0.35f * wide.left - 180, wide.left, wide.bottom + 0.35f * wide.right + 180,
                      wide.right};
    const area others{wide.left - 0.45f * wide.bottom - 180, wide.top, wide.right - 0.45f * wide.top + 180,
                      wide.bottom};
    const noise fibre(seed, fibre_noise, fibres, std::max(5.2f, px), 60);
    const noise crossing(seed, crossing_noise, others, std::max(5.2f, px), 52);
    const noise strand(seed, strand_noise, fibres, std::max(1.9f, px), 26);
    const noise lumen(seed, lumen_noise, where.grown(8), std::max(9.0f, px));
    const noise grain(seed, grain_noise, where.grown(8), std::max(1.6f, px));
    const noise chromatin(seed, chromatin_noise, where.grown(8), std::max(1.25f, px));
    const float texture = px < 1.2f ? 1.0f : 0.0f;

    std::vector<float> cover(c.label.size());
    c.each([&](point p, std::size_t i) {
      const float depth = f.depth(p);
      cover[i] = c.coverage(-depth * 0.5f);
      if (cover[i] <= 0) return;
      // Bundles of collagen, parted by clefts; a second set crosses them here and there.
      const float mix = f.second(p);
      float bundle = 0, fine = 0;
      if (mix < 1) {
        const float v = f.across(p);
        bundle = fibre({v, p.x});
        fine = strand({v, p.x});
      }
      if (mix > 0) {
        const float other = crossing({f.across_second(p), p.y});
        bundle += mix * (other - bundle);
        fine *= 1 - mix;
      }
      const float dense = 0.5f + 0.5f * f.density(p);
      const float loose = step(-0.1f, 0.25f, f.glandular(p));  // the connective tissue between glands
      float e = 0.43f - 0.10f * loose + 0.13f * bundle + 0.06f * fine + 0.07f * dense + 0.05f * grain(p);
      const float cleft =
          step(-0.48f, -1.0f, bundle + 0.25f * fine - 0.30f * dense + 0.20f * f.curl(p)) * (0.9f - 0.25f * loose);
      e *= 1 - 0.9f * cleft;
      c.h[i] = (0.05f + 0.03f * dense + 0.03f * loose) * (1 - cleft);
      c.e[i] = std::max(0.03f, e);
      c.label[i] = cover[i] >= 0.5f ? label_stroma : std::uint8_t{0};
    });
    paint_fat(c, f);
    paint_stromal_cells(c, f, chromatin, texture);
    paint_vessels(c, f, chromatin, texture);
    paint_glands(c, f, grain, lumen, chromatin, texture);
    for (std::size_t i = 0; i < cover.size(); ++i) {
      c.h[i] *= cover[i];
      c.e[i] *= cover[i];
      if (cover[i] < 0.5f) c.label[i] = 0;
    }
    paint_fold(c);
  }

  // Fat cells: a jittered honeycomb of empty rooms with thin walls.
  void paint_fat(canvas& c, const fields& f) const {
    constexpr float spacing = 58;
    const area where = c.covered().grown(2 * spacing);
    const auto cell = [&](float v) { return static_cast<std::int64_t>(std::floor(v / spacing)); };
    const std::int64_t y0 = cell(where.top) - 1, x0 = cell(where.left) - 1;
    const std::int64_t rows = cell(where.bottom) - y0 + 2, columns = cell(where.right) - x0 + 2;
    std::vector<point> centers;
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        draws random = cell_draws(options_.seed, fat, y0 + y, x0 + x);
        centers.push_back(in_cell(y0 + y, x0 + x, spacing, 0.36f, random));
      }
    c.each([&](point p, std::size_t i) {
      if (c.label[i] == 0) return;
      const float fatty = step(0, 0.10f, f.fatty(p) + 0.08f * f.detail(p));
      if (fatty <= 0) return;
      float first = 1e9f, second = 1e9f;
      const std::int64_t cy = cell(p.y) - y0, cx = cell(p.x) - x0;
      for (std::int64_t y = cy - 1; y <= cy + 1; ++y)
        for (std::int64_t x = cx - 1; x <= cx + 1; ++x) {
          const float d = length(p - centers[static_cast<std::size_t>(y * columns + x)]);
          second = std::min(second, std::max(first, d));
          first = std::min(first, d);
        }
      const float room = 1 - c.coverage(1.1f - 0.5f * (second - first));
      c.mix(i, fatty * (1 - room), 0.012f, 0.015f);
      if (room > 0) c.mix(i, fatty * room, 0.07f, 0.30f);
    });
  }

  void paint_stromal_cells(canvas& c, const fields& f, const noise& chromatin, float texture) const {
    // Lymphoid follicles: crowds of lymphocytes.
    constexpr float follicle_spacing = 900;
    struct follicle {
      point center;
      float radius;
    };
    std::vector<follicle> crowds;
    each_cell(c.covered(), follicle_spacing, 300, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(options_.seed, follicles, cy, cx);
      const bool there = random.bernoulli(0.55f);
      const point p = in_cell(cy, cx, follicle_spacing, 0.35f, random);
      const float radius = random.uniform(70, 130);
      if (there && f.depth(p) > 60 && f.fatty(p) < 0) crowds.push_back({p, radius});
    });

    constexpr float fibroblast_spacing = 17;
    each_cell(c.covered(), fibroblast_spacing, 24, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(options_.seed, fibroblasts, cy, cx);
      const point p = in_cell(cy, cx, fibroblast_spacing, 0.48f, random);
      const float chance = random.uniform(0, 1), long_half = random.uniform(4.5f, 9),
                  wide_half = random.uniform(1.1f, 1.9f);
      const float h = random.uniform(0.9f, 1.45f), tilt = random.uniform(-0.35f, 0.35f);
      if (!c.covered().meets(p, 12) || f.depth(p) < 3) return;
      if (chance > 0.46f - 0.40f * step(-0.05f, 0.1f, f.fatty(p))) return;
      const point d = f.along(p);
      const point axis{d.y + tilt * d.x, d.x - tilt * d.y};
      const float norm = length(axis);
      paint_nucleus(c, {p, axis * (1 / norm), long_half, wide_half, h, 0.22f, 0.2f}, chromatin, texture);
    });

    constexpr float spacing = 6.7f;
    each_cell(c.covered(), spacing, 12, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(options_.seed, lymphocytes, cy, cx);
      const point p = in_cell(cy, cx, spacing, 0.42f, random);
      const float chance = random.uniform(0, 1), radius = random.uniform(2.5f, 3.4f), h = random.uniform(1.3f, 1.8f);
      const float squeeze = random.uniform(0.82f, 1), turn = random.uniform(0, 6.2831853f);
      const bool plasma = random.bernoulli(0.25f);
      if (!c.covered().meets(p, 9) || f.depth(p) < 3) return;
      float crowd = 0;
      for (const follicle& k : crowds)
        crowd = std::max(crowd, step(k.radius * 1.15f, k.radius * 0.8f, length(p - k.center) + 14 * f.detail(p)));
      const float sparse =
          0.025f + 0.20f * step(0.15f, 0.9f, f.density(p)) + 0.10f * step(-0.05f, 0.2f, f.glandular(p));
      if (chance > std::max(0.92f * crowd, sparse * (1 - step(-0.05f, 0.05f, f.fatty(p))))) return;
      const point axis{math::cos(turn), math::sin(turn)};
      if (plasma && crowd < 0.5f) {
        // A plasma cell: its nucleus off centre in purple cytoplasm.
        const point body = p + axis * 2.4f;
        c.around(body, 5.2f,
                 [&](point q, std::size_t i) { c.mix(i, 0.8f * c.coverage(length(q - body) - 5.0f), 0.30f, 0.42f); });
      }
      paint_nucleus(c, {p, axis, radius, radius * squeeze, h, 0.30f, 0.25f}, chromatin, 0.7f * texture);
    });
  }

  // Small vessels: a wall, flat nuclei along it, red cells inside.
  void paint_vessels(canvas& c, const fields& f, const noise& chromatin, float texture) const {
    constexpr float spacing = 330;
    each_cell(c.covered(), spacing, 170, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(options_.seed, vessels, cy, cx);
      const bool there = random.bernoulli(0.6f);
      const point center = in_cell(cy, cx, spacing, 0.4f, random);
      const float radius = random.uniform(9, 26), longer = random.uniform(1, 1.9f),
                  turn = random.uniform(0, 3.14159265f);
      const float fill = random.uniform(0.2f, 0.95f), phase = random.uniform(0, 1);
      const float reach = radius * longer + 12;
      if (!there || !c.covered().meets(center, reach) || f.depth(center) < reach || f.glandular(center) > 0.25f) return;
      const point axis{math::cos(turn), math::sin(turn)};
      const float wall = 2.5f + 0.12f * radius;
      // 1 at the inner border, by the angle-dependent radius.
      const auto inside = [&](point p) {
        const point d = p - center;
        const float l = (d.y * axis.y + d.x * axis.x) / longer, w = d.y * axis.x - d.x * axis.y;
        return std::sqrt(l * l + w * w) - radius * (1 + 0.10f * f.detail(p));
      };
      c.around(center, reach, [&](point p, std::size_t i) {
        const float d = inside(p);
        c.mix(i, c.coverage(d - wall), 0.10f, 0.62f);
        c.mix(i, c.coverage(d), 0.012f, 0.04f);
      });
      constexpr float red = 5.6f;
      each_cell({center.y - reach, center.x - reach, center.y + reach, center.x + reach}, red, 0,
                [&](std::int64_t ry, std::int64_t rx) {
                  draws cell = cell_draws(options_.seed, blood, ry, rx);
                  const point p = in_cell(ry, rx, red, 0.3f, cell);
                  const float size = cell.uniform(2.4f, 3.1f), e = cell.uniform(0.75f, 1.05f);
                  if (!cell.bernoulli(fill) || inside(p) > -size) return;
                  c.around(p, size, [&](point q, std::size_t i) {
                    const float r = length(q - p);
                    c.mix(i, 0.92f * c.coverage(r - size), 0.02f, e * (0.82f + 0.18f * step(0, size, r)));
                  });
                });
      const int count = std::max(4, static_cast<int>(radius * longer * 0.32f));
      for (int k = 0; k < count; ++k) {
        const float a =
            6.2831853f * (static_cast<float>(k) + phase + random.uniform(-0.3f, 0.3f)) / static_cast<float>(count);
        const float cosine = math::cos(a), sine = math::sin(a);
        const float l = longer * (radius + 0.5f * wall) * cosine, w = (radius + 0.5f * wall) * sine;
        const point p{center.y + l * axis.y + w * axis.x, center.x + l * axis.x - w * axis.y};
        const point t{-longer * sine * axis.y + cosine * axis.x, -longer * sine * axis.x - cosine * axis.y};
        paint_nucleus(c, {p, t * (1 / length(t)), random.uniform(4, 6.5f), 1.3f, 1.05f, 0.25f, 0.1f}, chromatin,
                      texture);
      }
    });
  }

  // Glands cut across: columnar epithelium around a lumen, nuclei at the base, some goblet cells.
  void paint_glands(canvas& c, const fields& f, const noise& grain, const noise& ragged, const noise& chromatin,
                    float texture) const {
    constexpr float spacing = 92;
    struct gland {
      point center;
      float radius, longer, priority;
    };
    const auto gland_of = [&](draws& random, std::int64_t cy, std::int64_t cx) {
      const point center = in_cell(cy, cx, spacing, 0.46f, random);
      const float radius = random.uniform(32, 52), longer = random.uniform(1, 1.35f);
      return gland{center, radius, longer, random.uniform(0, 1)};
    };
    each_cell(c.covered(), spacing, 110, [&](std::int64_t cy, std::int64_t cx) {
      draws random = cell_draws(options_.seed, glands, cy, cx);
      const gland drawn = gland_of(random, cy, cx);
      const point center = drawn.center;
      const float radius = drawn.radius, longer = drawn.longer;
      const float turn = random.uniform(0, 3.14159265f);
      const float goblets = random.uniform(0, 0.75f), tint = random.uniform(0.92f, 1.12f);
      const float crowding = random.uniform(0.15f, 0.6f);
      const float tall = random.uniform(20, 28), content = random.uniform(0, 1), shift = random.uniform(0, 50);
      const float reach = radius * longer * 1.25f + 6;
      if (!c.covered().meets(center, reach) || f.depth(center) < 0.8f * reach || f.glandular(center) < 0) return;
      // Of glands that would overlap the one drawn first in rank stays.
      for (std::int64_t y = cy - 2; y <= cy + 2; ++y)
        for (std::int64_t x = cx - 2; x <= cx + 2; ++x) {
          if (y == cy && x == cx) continue;
          draws other_random = cell_draws(options_.seed, glands, y, x);
          const gland other = gland_of(other_random, y, x);
          const float apart = radius * std::sqrt(longer) + other.radius * std::sqrt(other.longer);
          if (other.priority < drawn.priority && length(other.center - center) < apart) return;
        }
      const point axis{math::cos(turn), math::sin(turn)};
      const noise shape(options_.seed, gland_shape, {shift - 2, shift - 2, shift + 2, shift + 2}, 0.8f);
      const auto local = [&](point p) {
        const point d = p - center;
        return point{d.y * axis.x - d.x * axis.y, (d.y * axis.y + d.x * axis.x) / longer};
      };
      const auto border = [&](point direction) {
        return radius * (1 + 0.13f * shape({shift + direction.y, shift + direction.x}));
      };
      const float height = std::min(tall, 0.72f * radius);
      c.around(center, reach, [&](point p, std::size_t i) {
        const point q = local(p);
        const float r = length(q);
        const point direction = q * (1 / std::max(r, 1e-3f));
        const float outer = r - border(direction);
        const float membrane = c.coverage(outer - 1.6f);
        if (membrane <= 0) return;
        c.mix(i, 0.75f * membrane, 0.07f, 0.55f);
        const float cell = c.coverage(outer);
        const float depth = std::clamp(-outer / height, 0.0f, 1.3f);
        const float apical = step(0.45f, 0.95f, depth);
        c.mix(i, cell, (0.26f - 0.13f * apical) * tint + 0.035f * grain(p),
              (0.44f - 0.06f * apical) * tint + 0.05f * grain(p));
        // A brush border, then the lumen with a little mucus.
        const float wavy = 1.6f * ragged(p);
        const float lumen = c.coverage(outer + height + wavy);
        const float brush = c.coverage(outer + height + wavy - 1.3f);
        c.mix(i, 0.6f * brush, 0.12f, 0.62f);
        const float mucus = content > 0.6f ? step(-0.9f, 1.5f, ragged(p) + 0.8f * f.detail(p)) : 0.0f;
        c.mix(i, lumen, 0.010f + 0.09f * mucus, 0.012f + 0.13f * mucus);
        if (cell >= 0.5f) c.label[i] = label_gland;
      });
      const int count = static_cast<int>(6.2831853f * radius * 0.5f * (1 + longer) / 6.6f);
      // Cells in turn: mucin or cytoplasm first, nuclei on top.
      struct place {
        point at, axis;
      };
      const auto placed = [&](float a, float depth) {
        const point direction{math::sin(a), math::cos(a)};
        const float r = border(direction) - depth;
        const point q = direction * r;
        const float l = q.x * longer;
        const point at{center.y + q.y * axis.x + l * axis.y, center.x - q.y * axis.y + l * axis.x};
        const point out{direction.y * axis.x + direction.x * axis.y * longer,
                        direction.x * axis.x * longer - direction.y * axis.y};
        return place{at, out * (1 / length(out))};
      };
      for (int k = 0; k < count; ++k) {
        const float a =
            6.2831853f * (static_cast<float>(k) + random.uniform(-0.25f, 0.25f)) / static_cast<float>(count);
        const float size = random.uniform(3.6f, 4.9f), depth = random.uniform(0.56f, 0.70f);
        if (!random.bernoulli(goblets * 0.55f)) continue;
        const place goblet = placed(a, height * depth);
        c.around(goblet.at, size * 1.6f, [&](point p, std::size_t i) {
          const point d = p - goblet.at;
          const float l = (d.y * goblet.axis.y + d.x * goblet.axis.x) / 1.55f;
          const float w = d.y * goblet.axis.x - d.x * goblet.axis.y;
          const float outside = std::sqrt(l * l + w * w) - size;
          c.mix(i, c.coverage(outside), 0.13f + 0.05f * grain(p), 0.06f);
        });
      }
      for (int k = 0; k < count; ++k) {
        const float a = 6.2831853f * (static_cast<float>(k) + random.uniform(-0.3f, 0.3f)) / static_cast<float>(count);
        const bool second_row = random.bernoulli(crowding);
        const float depth = random.uniform(6.2f, 8.8f) + (second_row ? random.uniform(3, 7) : 0);
        const float half = random.uniform(4.3f, 6.3f), wide = random.uniform(2.2f, 3.0f),
                    h = random.uniform(0.85f, 1.45f);
        const float lean = random.uniform(-0.18f, 0.18f), vesicular = random.uniform(0.3f, 0.9f);
        const place n = placed(a, depth);
        const point tilted{n.axis.y + lean * n.axis.x, n.axis.x - lean * n.axis.y};
        paint_nucleus(c, {n.at, tilted * (1 / length(tilted)), half, wide, h * tint, 0.30f, vesicular}, chromatin,
                      texture);
      }
    });
  }

  // A fold: tissue lying double along a crooked band.
  void paint_fold(canvas& c) const {
    if (!c.covered().meets(fold_center_, fold_half_length_ + 60)) return;
    const noise crooked(options_.seed, fold_noise, c.covered().grown(4), 80);
    c.around(fold_center_, fold_half_length_ + 50, [&](point p, std::size_t i) {
      const point d = p - fold_center_;
      const float across = d.y * fold_across_.y + d.x * fold_across_.x + 16 * crooked(p);
      const float along = d.y * fold_across_.x - d.x * fold_across_.y;
      const float taper = 1 - along * along / (fold_half_length_ * fold_half_length_);
      if (taper <= 0) return;
      const float width = 17 * std::sqrt(taper);
      const float inside = step(width, width - 5, std::abs(across));
      const float edge = step(5, 0, std::abs(std::abs(across) - width + 2)) * 0.5f;
      const float more = 1 + inside * (0.85f + edge);
      c.h[i] *= more;
      c.e[i] *= more;
    });
  }

  // Where the objective was not in focus, 0..1.
  float defocus(point p) const { return step(blur_radius_, 0.75f * blur_radius_, length(p - blur_center_)); }

  void defocus(canvas& c, std::int64_t margin) const {
    if (!c.covered().meets(blur_center_, blur_radius_)) return;
    const auto radius = static_cast<std::int64_t>(2.6f / c.pixel() + 0.5f);
    if (radius < 1 || 2 * radius > margin) return;
    for (std::vector<float>* values : {&c.h, &c.e}) {
      // Two passes of a moving mean, along x and along y; summed anew for every pixel, so that regions agree.
      std::vector<float> blurred = *values, other(values->size());
      const float share = 1 / static_cast<float>(2 * radius + 1);
      for (int pass = 0; pass < 4; ++pass) {
        const std::int64_t dy = pass % 2, dx = 1 - dy;
        for (std::int64_t y = dy * radius; y < c.height() - dy * radius; ++y)
          for (std::int64_t x = dx * radius; x < c.width() - dx * radius; ++x) {
            float sum = 0;
            for (std::int64_t k = -radius; k <= radius; ++k)
              sum += blurred[static_cast<std::size_t>((y + k * dy) * c.width() + x + k * dx)];
            other[static_cast<std::size_t>(y * c.width() + x)] = sum * share;
          }
        std::swap(blurred, other);
      }
      c.each([&](point p, std::size_t i) { (*values)[i] += defocus(p) * (blurred[i] - (*values)[i]); });
    }
  }

  // A marker's stroke, as how much ink lies on a place.
  float ink(point p) const {
    float nearest = 1e9f;
    for (std::size_t k = 0; k + 1 < pen_.size(); ++k) {
      const point a = pen_[k], ab = pen_[k + 1] - a, ap = p - a;
      const float t = std::clamp((ap.y * ab.y + ap.x * ab.x) / (ab.y * ab.y + ab.x * ab.x), 0.0f, 1.0f);
      nearest = std::min(nearest, length(ap - ab * t));
    }
    return step(34, 24, nearest) * (0.8f + 0.2f * step(14, 30, nearest));
  }

  void read_inside(std::int64_t y, std::int64_t x, std::int32_t level, rgb_image& into) const override {
    const slide_level& l = layout_.levels[static_cast<std::size_t>(level)];
    const std::int64_t top = y / downsample(level), left = x / downsample(level);
    const std::int64_t bottom = std::min(top + into.height, l.height), right = std::min(left + into.width, l.width);
    if (bottom <= top || right <= left) return;
    // Whole blocks of 8 x 8, as they are compressed, and a margin for what is out of focus.
    constexpr std::int64_t block = 8;
    const std::int64_t y0 = top / block * block, x0 = left / block * block;
    const std::int64_t rows = (bottom - y0 + block - 1) / block * block,
                       columns = (right - x0 + block - 1) / block * block;
    const std::int64_t margin = 2 * block;
    canvas c(y0 - margin, x0 - margin, rows + 2 * margin, columns + 2 * margin, pixel(level));
    paint(c);
    defocus(c, margin);
    {
      const std::lock_guard lock(last_mutex_);
      last_ = {level, y0 - margin, x0 - margin, c.height(), c.width(), std::move(c.label)};
    }

    std::vector<float> light(static_cast<std::size_t>(rows * columns * 3));
    constexpr std::array<float, 3> ink_od{1.75f, 0.42f, 0.95f};
    for (std::int64_t j = 0; j < rows; ++j) {
      const stream row(
          {options_.seed, 0, static_cast<std::uint64_t>(y0 + j), sensor, static_cast<std::uint16_t>(level)});
      for (std::int64_t i = 0; i < columns; ++i) {
        const auto from = static_cast<std::size_t>((j + margin) * c.width() + i + margin);
        const float h = c.h[from] * options_.haematoxylin_strength, e = c.e[from] * options_.eosin_strength;
        const float pen = ink(c.at(j + margin, i + margin));
        const philox_block words = row.block(static_cast<std::uint64_t>(x0 + i));
        for (std::size_t k = 0; k < 3; ++k) {
          const float od = h * options_.haematoxylin[k] + e * options_.eosin[k] + pen * ink_od[k];
          // The sum of four bytes is normal enough.
          const std::uint32_t w = words.word[k];
          const auto sum = static_cast<float>((w & 255) + (w >> 8 & 255) + (w >> 16 & 255) + (w >> 24));
          light[static_cast<std::size_t>((j * columns + i) * 3) + k] =
              options_.light[k] * math::exp(-od) + options_.noise * (sum - 510) * (1 / 147.8f);
        }
      }
    }
    if (options_.jpeg_quality > 0) compress(light, rows, columns);
    for (std::int64_t j = top; j < bottom; ++j)
      for (std::int64_t i = left; i < right; ++i)
        for (std::int64_t k = 0; k < 3; ++k)
          into.at(j - top, i - left)[k] = static_cast<std::uint8_t>(
              std::clamp(light[static_cast<std::size_t>(((j - y0) * columns + i - x0) * 3 + k)] + 0.5f, 0.0f, 255.0f));
  }

  // What baseline JPEG loses, with the luminance table of its standard (Annex K) for all three components.
  void compress(std::vector<float>& rgb, std::int64_t rows, std::int64_t columns) const {
    static constexpr int table[64] = {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
                                      14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
                                      18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
                                      49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};
    const int q = options_.jpeg_quality, scale = q < 50 ? 5000 / q : 200 - 2 * q;
    float quantum[64], basis[8][8];
    for (int i = 0; i < 64; ++i) quantum[i] = static_cast<float>(std::clamp((table[i] * scale + 50) / 100, 1, 255));
    for (int u = 0; u < 8; ++u)
      for (int n = 0; n < 8; ++n)
        basis[u][n] = (u == 0 ? 0.35355339f : 0.5f) * math::cos(0.19634954f * static_cast<float>((2 * n + 1) * u));
    for (std::int64_t by = 0; by < rows; by += 8)
      for (std::int64_t bx = 0; bx < columns; bx += 8) {
        float part[3][64], other[64];
        const auto pixel_at = [&](int n) { return rgb.data() + ((by + n / 8) * columns + bx + n % 8) * 3; };
        for (int n = 0; n < 64; ++n) {
          const float r = pixel_at(n)[0], g = pixel_at(n)[1], b = pixel_at(n)[2];
          part[0][n] = 0.299f * r + 0.587f * g + 0.114f * b - 128;
          part[1][n] = -0.168736f * r - 0.331264f * g + 0.5f * b;
          part[2][n] = 0.5f * r - 0.418688f * g - 0.081312f * b;
        }
        for (auto& values : part) {
          const auto transform = [&](bool forward) {
            for (int pass = 0; pass < 2; ++pass) {  // along x, transposed; twice makes both
              for (int j = 0; j < 8; ++j)
                for (int u = 0; u < 8; ++u) {
                  float sum = 0;
                  for (int n = 0; n < 8; ++n) sum += values[8 * j + n] * (forward ? basis[u][n] : basis[n][u]);
                  other[8 * u + j] = sum;
                }
              std::copy_n(other, 64, values);
            }
          };
          transform(true);
          for (int n = 0; n < 64; ++n) values[n] = std::floor(values[n] / quantum[n] + 0.5f) * quantum[n];
          transform(false);
        }
        for (int n = 0; n < 64; ++n) {
          const float y = part[0][n] + 128, u = part[1][n], v = part[2][n];
          pixel_at(n)[0] = y + 1.402f * v;
          pixel_at(n)[1] = y - 0.344136f * u - 0.714136f * v;
          pixel_at(n)[2] = y + 1.772f * u;
        }
      }
  }

  histology_options options_;
  float height_um_ = 0, width_um_ = 0;
  point blur_center_{}, fold_center_{}, fold_across_{};
  float blur_radius_ = 0, fold_half_length_ = 0;
  std::array<point, 16> pen_{};

  // Who reads a region often asks for its labels next.
  struct painted {
    std::int32_t level = -1;
    std::int64_t top = 0, left = 0, height = 0, width = 0;
    std::vector<std::uint8_t> labels;
  };
  mutable std::mutex last_mutex_;
  mutable painted last_;
};

}  // namespace

std::unique_ptr<slide> make_histology_phantom(const histology_options& options) {
  return std::make_unique<histology_phantom>(options);
}

}  // namespace suture::examples
