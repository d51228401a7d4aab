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
