// SPDX-License-Identifier: Apache-2.0
// A slice while it is painted. Organs lie one over the other, each with a signed distance (negative inside) turned into
// a coverage, so that every boundary shows partial volume.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "patient.hpp"
#include "suture/image/grid.hpp"
#include "suture/math/elementary.hpp"

namespace suture::examples::abdomen {

// One thin slice being painted.
class canvas {
public:
  canvas(const grid& g, float z, const patient& who) : z_(z) {
    nx_ = static_cast<int>(g.extents[2]);
    ny_ = static_cast<int>(g.extents[1]);
    dx_ = static_cast<float>(g.spacing[2]);
    dy_ = static_cast<float>(g.spacing[1]);
    x0_ = static_cast<float>(g.origin[2]);
    y0_ = static_cast<float>(g.origin[1]);
    softness_ = 1 / (1.1f * std::max(dx_, dy_));
    const auto count = static_cast<std::size_t>(nx_ * ny_);
    hu.assign(count, -1000);
    bent_.resize(count);
    // The bending of straight anatomy is smooth: evaluated on every eighth voxel, linear between.
    constexpr int cell = 8;
    const int cx = nx_ / cell + 2, cy = ny_ / cell + 2;
    std::vector<std::array<float, 2>> coarse(static_cast<std::size_t>(cx * cy));
    for (int j = 0; j < cy; ++j)
      for (int i = 0; i < cx; ++i) {
        const point p{x0_ + dx_ * static_cast<float>(i * cell), y0_ + dy_ * static_cast<float>(j * cell), z};
        coarse[static_cast<std::size_t>(j * cx + i)] = {4.5f * who.bend_x(p), 3.5f * who.bend_y(p)};
      }
    for (int y = 0; y < ny_; ++y)
      for (int x = 0; x < nx_; ++x) {
        const int i = x / cell, j = y / cell;
        const float fx = static_cast<float>(x % cell) / cell, fy = static_cast<float>(y % cell) / cell;
        const auto* row = &coarse[static_cast<std::size_t>(j * cx + i)];
        const auto* next = row + cx;
        std::array<float, 2> d;
        for (std::size_t k = 0; k < 2; ++k)
          d[k] = (row[0][k] * (1 - fx) + row[1][k] * fx) * (1 - fy) + (next[0][k] * (1 - fx) + next[1][k] * fx) * fy;
        // Lordosis: the lumbar spine and what lies before it arch forwards.
        const point p = at(x, y);
        const float arch = 9 * math::exp(-(z + 10) * (z + 10) / 4500) * std::clamp((p.y + 50) / 90, 0.0f, 1.0f);
        bent_[static_cast<std::size_t>(y * nx_ + x)] = {p.x + d[0], p.y + d[1] + arch, z_};
      }
  }

  float z() const { return z_; }
  // Fluid levels do not bend with the anatomy.
  float height(std::size_t i) const { return y0_ + dy_ * static_cast<float>(static_cast<int>(i) / nx_); }
  point at(int x, int y) const { return {x0_ + dx_ * static_cast<float>(x), y0_ + dy_ * static_cast<float>(y), z_}; }
  std::size_t index(int x, int y) const { return static_cast<std::size_t>(y * nx_ + x); }
  float coverage(float distance) const { return std::clamp(0.5f - distance * softness_, 0.0f, 1.0f); }

  // f(point, index) for the voxels of a rectangle.
  template <class F>
  void each(float x_low, float x_high, float y_low, float y_high, F f) const {
    const int left = std::max(0, static_cast<int>(std::floor((x_low - x0_) / dx_)));
    const int right = std::min(nx_ - 1, static_cast<int>(std::ceil((x_high - x0_) / dx_)));
    const int top = std::max(0, static_cast<int>(std::floor((y_low - y0_) / dy_)));
    const int bottom = std::min(ny_ - 1, static_cast<int>(std::ceil((y_high - y0_) / dy_)));
    for (int y = top; y <= bottom; ++y)
      for (int x = left; x <= right; ++x) f(bent_[index(x, y)], index(x, y));
  }
  template <class F>
  void each(F f) const {
    for (std::size_t i = 0; i < bent_.size(); ++i) f(bent_[i], i);
  }
  template <class F>
  void each_straight(F f) const {
    for (int y = 0; y < ny_; ++y)
      for (int x = 0; x < nx_; ++x) f(at(x, y), index(x, y));
  }
  void mix(std::size_t i, float alpha, float value) { hu[i] += alpha * (value - hu[i]); }
  void paint(std::size_t i, float distance, float value) { mix(i, coverage(distance), value); }

  std::vector<float> hu;

private:
  float z_, x0_, y0_, dx_, dy_, softness_;
  int nx_, ny_;
  std::vector<point> bent_;
};

}  // namespace suture::examples::abdomen
