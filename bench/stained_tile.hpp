// SPDX-License-Identifier: Apache-2.0
// Tiles of a section stained with hematoxylin and eosin, made by the law of Beer and Lambert: nuclei on stroma, some
// glass, a little noise.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "suture/image/digest.hpp"
#include "suture/image/grid.hpp"

namespace bench {

inline std::vector<std::uint8_t> stained_tile(const suture::grid& g, std::uint64_t seed) {
  std::vector<std::uint8_t> rgb;
  rgb.reserve(static_cast<std::size_t>(3 * g.voxels()));
  const auto unit = [&](std::uint64_t at) {
    return static_cast<double>(suture::mix64(at * 1000003 + seed) >> 11) * 0x1p-53;
  };
  for (std::int64_t y = 0; y < g.extents[1]; ++y)
    for (std::int64_t x = 0; x < g.extents[2]; ++x) {
      const auto v = static_cast<std::uint64_t>(y * g.extents[2] + x);
      const auto cell = static_cast<std::uint64_t>(y / 24 * 4096 + x / 24);
      const double dy = static_cast<double>(y % 24) - 12, dx = static_cast<double>(x % 24) - 12;
      const bool glass = (y + x / 2) % 700 < 90, nucleus = dy * dy + dx * dx < 30 + 60 * unit(cell + 77);
      const double h = glass ? 0 : (nucleus ? .9 + .7 * unit(cell) : .1) * (.8 + .4 * unit(3 * v));
      const double e = glass ? 0 : (nucleus ? .2 : .5 + .4 * unit(cell + 5)) * (.8 + .4 * unit(3 * v + 1));
      const double stains[3][2] = {{.65, .2159}, {.70, .8012}, {.29, .5581}};
      for (const auto& s : stains)
        rgb.push_back(static_cast<std::uint8_t>(240 * std::exp(-s[0] * h - s[1] * e) + 4 * unit(3 * v + 2)));
    }
  return rgb;
}

}  // namespace bench
