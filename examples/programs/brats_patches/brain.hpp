// SPDX-License-Identifier: Apache-2.0
// A synthetic brain with a tumor in four MRI channels, so that the example can be tried without patient data.
#pragma once

#include "common/volume.hpp"
#include "suture/base/numeric.hpp"
#include "suture/image/digest.hpp"

namespace suture::examples {

struct brain {
  volume<float> images;  // T1, T1C, T2, FLAIR, one after the other; 0 outside the brain
  label_volume labels;   // 1 necrotic core, 2 edema, 3 enhancing rim
};

// Skull-stripped, 1.2 mm. The same seed gives the same voxels.
inline brain make_brain(std::uint64_t seed) {
  grid g{.extents = {120, 150, 120}, .spacing = {1.2, 1.2, 1.2}};
  for (int k = 0; k < 3; ++k) g.origin[k] = -0.6 * static_cast<double>(g.extents[k] - 1);
  brain b{{g, {}}, {g, {}}};
  const auto n = static_cast<std::size_t>(g.voxels());
  b.images.voxels.assign(4 * n, 0.0f);
  b.labels.voxels.assign(n, 0);
  const auto jitter = [&](std::uint64_t k) { return static_cast<double>(mix64(seed * 16 + k) >> 44) * 0x1p-20 - .5; };
  const double tumor[3] = {18 + 16 * jitter(1), -12 + 40 * jitter(2), 26 + 12 * jitter(3)};  // mm
  // Mean of a tissue by channel: cortex, white matter, ventricles, edema, rim, core.
  constexpr float mean[6][4] = {{420, 430, 520, 560}, {640, 650, 360, 430},  {150, 150, 900, 90},
                                {430, 440, 700, 900}, {480, 1050, 560, 720}, {240, 250, 780, 330}};
  for (std::int64_t z = 0; z < g.extents[0]; ++z)
    for (std::int64_t y = 0; y < g.extents[1]; ++y)
      for (std::int64_t x = 0; x < g.extents[2]; ++x) {
        const double p[3] = {g.origin[0] + 1.2 * static_cast<double>(z), g.origin[1] + 1.2 * static_cast<double>(y),
                             g.origin[2] + 1.2 * static_cast<double>(x)};
        // Squared distances in units of ellipsoids.
        const auto within = [&](double cz, double cy, double cx, double rz, double ry, double rx) {
          const double a = (p[0] - cz) / rz, c = (p[1] - cy) / ry, d = (p[2] - cx) / rx;
          return a * a + c * c + d * d;
        };
        const double folds = p[2] * p[2] < 4 ? .35 : 0;  // between the hemispheres
        const double head = within(0, 0, 0, 62, 80, 63) + folds;
        if (head > 1) continue;
        const std::size_t i = linear_index(g.extents, z, y, x);
        const double side = p[2] < 0 ? -1 : 1;
        int tissue = head > .72 ? 0 : 1;
        if (within(2, 6, side * 9, 8, 26, 6) < 1) tissue = 2;
        const double wave = .25 * static_cast<double>(mix64(i / 4096 + seed) >> 44) * 0x1p-20;
        if (within(tumor[0], tumor[1], tumor[2], 26, 30, 22) < .85 + wave) tissue = 3, b.labels.voxels[i] = 2;
        if (within(tumor[0], tumor[1], tumor[2], 14, 16, 13) < 1) tissue = 4, b.labels.voxels[i] = 3;
        if (within(tumor[0], tumor[1], tumor[2], 9, 11, 8) < 1) tissue = 5, b.labels.voxels[i] = 1;
        for (std::size_t c = 0; c < 4; ++c) {
          const std::uint64_t h = mix64(seed + 4 * i + c);
          // Four uniform numbers make a bell of deviation 20.
          const double bell =
              static_cast<double>((h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48)) * 0x1p-16 - 2;
          b.images.voxels[c * n + i] = static_cast<float>(static_cast<double>(mean[tissue][c]) + 34.6 * bell);
        }
      }
  return b;
}

}  // namespace suture::examples
