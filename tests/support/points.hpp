// SPDX-License-Identifier: Apache-2.0
// What the tests of points and boxes share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "suture/suture.hpp"

namespace support {

class generator {
public:
  explicit generator(std::uint64_t seed) : state_(seed * 2862933555777941757ULL + 3037000493ULL) {}
  double uniform(double low, double high) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return low + (high - low) * static_cast<double>(state_ >> 32U) * 0x1p-32;
  }
  // Anywhere within the cells of a grid's voxels, or up to `margin` voxels outside.
  suture::point3 within(const suture::extent3& n, double margin = 0) {
    suture::point3 p{};
    for (int k = 0; k < 3; ++k) p[k] = uniform(-0.5 - margin, static_cast<double>(n[k]) - 0.5 + margin);
    return p;
  }

private:
  std::uint64_t state_;
};

template <class Operations>
auto plan_of(const Operations& operations, const suture::grid& g, const suture::settings& s = {}) {
  const std::vector<suture::grid> batch{g};
  return suture::plan(operations, batch, s);
}

inline void expect_near(const suture::point3& actual, const suture::point3& expected, double tolerance,
                        const std::string& what = "") {
  for (int k = 0; k < 3; ++k)
    EXPECT_NEAR(actual[k], expected[k], tolerance) << what << " axis " << k << ": " << actual << " for " << expected;
}

// to_source of a box against points on its surface, at most half a voxel apart: all lie within the envelope, and one
// at every side of it, up to `tolerance`. Along an axis of a single voxel in the source the middle plane stands for
// all.
template <class Plan>
void expect_envelope(const Plan& plan, std::size_t sample, const suture::box& b, double tolerance) {
  suture::vec3<bool> flat{};
  suture::vec3<int> steps{};
  for (int k = 0; k < 3; ++k) {
    flat[k] = plan.source_grid(sample).extents[k] == 1;
    steps[k] = static_cast<int>(std::ceil(2 * (b.high[k] - b.low[k])));
  }
  std::vector<suture::point3> surface;
  for (int z = 0; z <= steps[0]; ++z)
    for (int y = 0; y <= steps[1]; ++y)
      for (int x = 0; x <= steps[2]; ++x) {
        const suture::vec3<int> at{z, y, x};
        bool outer = false;
        suture::point3 p{};
        for (int k = 0; k < 3; ++k) {
          outer = outer || at[k] == 0 || at[k] == steps[k];
          p[k] = b.low[k] + (b.high[k] - b.low[k]) * (flat[k] ? 0.5 : static_cast<double>(at[k]) / steps[k]) - 0.5;
        }
        if (outer) surface.push_back(p);
      }
  std::vector<suture::point3> moved(surface.size());
  suture::to_source(plan, sample, surface, moved);
  suture::point3 low{1e9, 1e9, 1e9};
  suture::point3 high{-1e9, -1e9, -1e9};
  for (const suture::point3& p : moved)
    for (int k = 0; k < 3; ++k) {
      low[k] = std::fmin(low[k], p[k] + 0.5);
      high[k] = std::fmax(high[k], p[k] + 0.5);
    }
  const suture::box there = suture::to_source(plan, sample, b);
  for (int k = 0; k < 3; ++k) {
    if (flat[k]) continue;
    EXPECT_NEAR(there.low[k], low[k], tolerance) << "axis " << k;
    EXPECT_NEAR(there.high[k], high[k], tolerance) << "axis " << k;
  }
}

// A box taken to the output and back, or to the source and back, holds what it was, up to `tolerance`.
template <class Plan>
void expect_returned(const Plan& plan, std::size_t sample, const suture::box& b, double tolerance) {
  const suture::box back = suture::to_source(plan, sample, suture::to_output(plan, sample, b).unclipped);
  const suture::box forth = suture::to_output(plan, sample, suture::to_source(plan, sample, b)).unclipped;
  for (const suture::box& found : {back, forth})
    for (int k = 0; k < 3; ++k) {
      EXPECT_LE(found.low[k], b.low[k] + tolerance) << "axis " << k;
      EXPECT_GE(found.high[k], b.high[k] - tolerance) << "axis " << k;
    }
}

inline double distance(const suture::point3& a, const suture::point3& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

inline constexpr double printed = 1e-9;  // published numbers have ten decimals

// Volumes of different size, spacing and orientation.
struct ragged_batch {
  std::vector<suture::grid> grids;
  std::vector<std::uint64_t> ids{11, 5000000000ULL, 7, 123};

  ragged_batch() {
    const suture::extent3 sizes[]{{30, 41, 57}, {64, 50, 45}, {17, 96, 80}, {90, 33, 34}};
    const suture::point3 spacings[]{{2, 1, 0.8}, {1, 1.2, 1.5}, {4, 0.7, 0.9}, {0.6, 1.5, 1.5}};
    for (std::size_t i = 0; i < std::size(sizes); ++i)
      grids.push_back({.extents = sizes[i], .spacing = spacings[i], .origin = {1, 2, 3}});
    grids[1].direction = {{{0, 1, 0}, {0.6, 0, -0.8}, {0.8, 0, 0.6}}};
  }
};

}  // namespace support
