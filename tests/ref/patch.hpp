// SPDX-License-Identifier: Apache-2.0
// Patch sampling with plain lists of indices: what RandCropByPosNegLabel and nnU-Net's loader do, given the random
// words of a patch.
#pragma once

#include <algorithm>

#include "random.hpp"
#include "volume.hpp"

namespace reference {

struct patch {
  size3 start{};
  integer voxel = -1;
  integer of_class = -1;
  bool absent = false;  // a class that might have been drawn has no voxel
  bool operator==(const patch&) const = default;
};

// lists[c]: the linear indices of the voxels of class c, ascending; an index may stand there many times (a weight).
using index_lists = std::vector<std::vector<integer>>;

struct patch_words {
  words4 a, b;
};
inline patch_words words_of_patch(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, int ordinal,
                                  std::uint64_t p) {
  const words4 s = stream(seed, epoch, sample, static_cast<std::uint16_t>(6 * 16 + ordinal), 0);
  return {block(s, 2 * p), block(s, 2 * p + 1)};
}

// The class and the voxel; -1 where no class with a ratio is there.
inline patch draw_voxel(const index_lists& lists, const std::vector<double>& ratios, const patch_words& w) {
  patch r;
  long double sum = 0;
  for (std::size_t c = 0; c < lists.size(); ++c) {
    if (ratios[c] > 0 && lists[c].empty()) r.absent = true;
    if (!lists[c].empty()) sum += ratios[c];
  }
  if (sum == 0) return r;
  long double left = sum * (static_cast<long double>(w.a[1]) / 4294967296.0L);
  for (std::size_t c = 0; c < lists.size() && r.of_class < 0; ++c) {
    if (lists[c].empty() || ratios[c] == 0) continue;
    if (left < ratios[c]) r.of_class = static_cast<integer>(c);
    left -= ratios[c];
  }
  const auto& list = lists[static_cast<std::size_t>(r.of_class)];
  const long double u = (static_cast<long double>(w.a[2]) * 4294967296.0L + w.a[3]) / 18446744073709551616.0L;
  r.voxel = list[static_cast<std::size_t>(u * static_cast<long double>(list.size()))];
  return r;
}

inline size3 place(integer voxel, const size3& n) { return {voxel / (n[1] * n[2]), voxel / n[2] % n[1], voxel % n[2]}; }

// MONAI correct_crop_centers: center in [floor(P / 2), floor(N + 1 - P / 2) - 1], start = center - floor(P / 2).
inline size3 start_clamped(integer voxel, const size3& n, const size3& size) {
  size3 at = place(voxel, n);
  for (std::size_t k = 0; k < 3; ++k) {
    const integer low = size[k] / 2;
    const auto high =
        static_cast<integer>(std::floor(static_cast<double>(n[k] + 1) - static_cast<double>(size[k]) / 2)) - 1;
    at[k] = std::min(std::max(at[k], low), high) - size[k] / 2;
  }
  return at;
}

// nnU-Net get_bbox: lowest and highest start along an axis.
inline std::array<integer, 2> bounds(integer n, integer size, integer margin) {
  const integer pad = std::max(margin, size - n);
  return {static_cast<integer>(std::floor(-static_cast<double>(pad) / 2)), n + pad / 2 + pad % 2 - size};
}

inline size3 start_anywhere(const patch_words& w, const size3& n, const size3& size, const size3& margin) {
  size3 start{};
  for (std::size_t k = 0; k < 3; ++k) {
    const auto b = bounds(n[k], size[k], margin[k]);
    start[k] = b[0] + static_cast<integer>(integer_below(w.b[k], static_cast<std::uint64_t>(b[1] - b[0] + 1)));
  }
  return start;
}

}  // namespace reference
