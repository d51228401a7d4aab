// SPDX-License-Identifier: Apache-2.0
// What the tissue of the synthetic slide is drawn from: streams of chance, smooth noise, and the fields that say what
// grows where. Lengths are micrometers, positions (y, x) from the corner of the slide.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "suture/rng/draw.hpp"

namespace suture::examples::histology {

struct point {
  float y, x;
  friend point operator+(point a, point b) { return {a.y + b.y, a.x + b.x}; }
  friend point operator-(point a, point b) { return {a.y - b.y, a.x - b.x}; }
  friend point operator*(point a, float s) { return {a.y * s, a.x * s}; }
};
inline float length(point a) { return std::sqrt(a.y * a.y + a.x * a.x); }
// From 0 at `a` to 1 at `b`, smooth.
inline float step(float a, float b, float v) {
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
  fiber_noise,
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

inline draws cell_draws(std::uint64_t seed, layer kind, std::int64_t cy, std::int64_t cx) {
  const std::uint64_t cell = static_cast<std::uint64_t>(static_cast<std::uint32_t>(cy)) << 32 |
                             static_cast<std::uint64_t>(static_cast<std::uint32_t>(cx));
  return {seed, 0, cell, kind};
}

// A rectangle of the slide in micrometers.
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

  // Micrometers inside the tissue, negative on glass.
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
  // Two sets of fibers follow the level lines of these, and how much the second set prevails, 0..1.
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

}  // namespace suture::examples::histology
