// SPDX-License-Identifier: Apache-2.0
// Tiles made by the law of Beer and Lambert from two known stains, interleaved red, green, blue.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "suture/image/grid.hpp"

namespace support {

using stain_vector = std::array<double, 3>;

inline constexpr stain_vector hematoxylin{0.6500, 0.7044, 0.2860}, eosin{0.2159, 0.8012, 0.5581};

inline stain_vector unit(stain_vector v) {
  const double length = std::hypot(v[0], v[1], v[2]);
  for (double& x : v) x /= length;
  return v;
}

struct tile_recipe {
  stain_vector first = unit(hematoxylin), second = unit(eosin);
  double tissue = 1;     // share of pixels that are stained
  double deviation = 0;  // of the noise added to intensities
  double white = 240;
  bool pure_ends = true;  // some pixels show one stain alone
};

// Intensities before rounding.
inline std::vector<double> stained_intensities(std::int64_t pixels, std::uint64_t seed, const tile_recipe& r) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> noise(0, 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < pixels; ++i) {
    double h = 0, e = 0;
    if (uniform(random) < r.tissue) {
      const double total = .45 + 1.2 * uniform(random);
      double share = uniform(random);
      if (r.pure_ends) share = share < .1 ? 0 : share > .9 ? 1 : share;
      h = total * share;
      e = total * (1 - share);
    }
    for (std::size_t c = 0; c < 3; ++c)
      values.push_back(r.white * std::exp(-(r.first[c] * h + r.second[c] * e)) + r.deviation * noise(random));
  }
  return values;
}

inline std::vector<std::uint8_t> to_bytes(const std::vector<double>& values) {
  std::vector<std::uint8_t> bytes;
  for (const double v : values)
    bytes.push_back(static_cast<std::uint8_t>(std::lround(std::fmin(std::fmax(v, 0), 255))));
  return bytes;
}

inline std::vector<std::uint8_t> stained_tile(const suture::grid& g, std::uint64_t seed, double tissue = 1,
                                              double deviation = 1) {
  return to_bytes(stained_intensities(g.voxels(), seed, {.tissue = tissue, .deviation = deviation}));
}

inline std::vector<std::uint8_t> gray_tile(const suture::grid& g) {
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < g.voxels(); ++i)
    for (int c = 0; c < 3; ++c) bytes.push_back(static_cast<std::uint8_t>(20 + i % 150));
  return bytes;
}

}  // namespace support
