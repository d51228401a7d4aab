// SPDX-License-Identifier: Apache-2.0
#include "jpeg_loss.hpp"

#include <algorithm>
#include <cmath>

#include "suture/math/elementary.hpp"

namespace suture::examples::histology {

// The luminance table of the standard (Annex K) for all three components.
void lose_as_jpeg(std::vector<float>& rgb, std::int64_t rows, std::int64_t columns, int quality) {
  static constexpr int table[64] = {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
                                    14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
                                    18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
                                    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};
  const int scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
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

}  // namespace suture::examples::histology
