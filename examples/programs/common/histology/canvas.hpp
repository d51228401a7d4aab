// SPDX-License-Identifier: Apache-2.0
// A region of the slide while it is painted.
#pragma once

#include <utility>

#include "fields.hpp"

namespace suture::examples::histology {

// Concentrations and labels of a region while it is painted.
class canvas {
public:
  canvas(std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width, float pixel)
      : pixel_(pixel), top_(top), left_(left), height_(height), width_(width) {
    const auto count = static_cast<std::size_t>(height * width);
    h.assign(count, 0);
    e.assign(count, 0);
    label.assign(count, 0);
    // A 20x objective resolves about 0.7 micrometers.
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
inline point in_cell(std::int64_t cy, std::int64_t cx, float spacing, float jitter, draws& random) {
  const float y = random.uniform(-jitter, jitter), x = random.uniform(-jitter, jitter);
  return {(static_cast<float>(cy) + 0.5f + y) * spacing, (static_cast<float>(cx) + 0.5f + x) * spacing};
}

}  // namespace suture::examples::histology
