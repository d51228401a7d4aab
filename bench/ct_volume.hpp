// SPDX-License-Identifier: Apache-2.0
// A volume with the statistics of an abdominal CT and labels in it, made in a fraction of a second: air around an
// elliptic body, fat, soft tissue and bone in smooth shapes of a few centimeters, noise of a few HU.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "suture/image/digest.hpp"

namespace bench {

struct ct_volume {
  suture::grid grid{};
  std::vector<std::int16_t> image;  // Hounsfield units
  std::vector<std::uint8_t> labels;
};

inline constexpr std::uint8_t label_count = 3;  // background and two

inline ct_volume make_ct_volume(const suture::grid& grid) {
  ct_volume v{grid, {}, {}};
  const auto voxels = static_cast<std::size_t>(grid.voxels());
  v.image.reserve(voxels);
  v.labels.reserve(voxels);
  const suture::extent3& n = grid.extents;
  constexpr int waves = 3;
  constexpr double wavelength_mm[waves] = {95, 52, 31};
  std::vector<float> wave[3][waves];
  std::vector<float> squared[3];
  for (int k = 0; k < 3; ++k)
    for (std::int64_t i = 0; i < n[k]; ++i) {
      const double at = (static_cast<double>(i) - grid.center()[k]) * grid.spacing[k];
      for (int w = 0; w < waves; ++w)
        wave[k][w].push_back(static_cast<float>(std::sin(6.2831853 * at / wavelength_mm[w] + 1.7 * w + k)));
      const double share = at / (k == 1 ? 115.0 : 170.0);  // half the depth and half the width of a body
      squared[k].push_back(static_cast<float>(share * share));
    }
  std::uint64_t index = 0;
  for (std::size_t z = 0; z < static_cast<std::size_t>(n[0]); ++z)
    for (std::size_t y = 0; y < static_cast<std::size_t>(n[1]); ++y)
      for (std::size_t x = 0; x < static_cast<std::size_t>(n[2]); ++x) {
        float shape = 0;
        for (int w = 0; w < waves; ++w) shape += wave[0][w][z] * wave[1][w][y] * wave[2][w][x];
        float hounsfield = -1000;
        if (squared[1][y] + squared[2][x] < 1)
          hounsfield = shape < -0.5f ? -95.0f : shape < 0.9f ? 45 + 40 * shape : 380.0f;
        const std::uint64_t random = suture::mix64(++index);
        float noise = -510;  // the sum of four bytes, standard deviation 148
        for (int b = 0; b < 4; ++b) noise += static_cast<float>(random >> (8 * b) & 0xff);
        v.image.push_back(static_cast<std::int16_t>(std::lrint(hounsfield + noise * (12.0f / 148))));
        v.labels.push_back(shape > 0.7f ? 2 : shape > 0.4f ? 1 : 0);
      }
  return v;
}

}  // namespace bench
