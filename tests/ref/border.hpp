// SPDX-License-Identifier: Apache-2.0
// Index maps outside the image, and the coordinate reflections of torch.
#pragma once

#include <algorithm>
#include <cmath>

#include "volume.hpp"

namespace reference {

enum class border {
  edge,     // a a a | a b c d | d d d       border, nearest, replicate
  reflect,  // c b a | a b c d | d c b       symmetric (NumPy)
  mirror,   // d c b | a b c d | c b a       reflect (NumPy, torch)
  wrap,     // b c d | a b c d | a b c       grid-wrap (SciPy)
};

inline integer modulo(integer i, integer period) { return (i % period + period) % period; }

inline integer border_index(border rule, integer i, integer n) {
  if (rule == border::edge) return std::clamp<integer>(i, 0, n - 1);
  if (rule == border::wrap) return modulo(i, n);
  if (rule == border::reflect) {
    const integer m = modulo(i, 2 * n);
    return m < n ? m : 2 * n - 1 - m;
  }
  if (n == 1) return 0;
  const integer m = modulo(i, 2 * n - 2);
  return m < n ? m : 2 * n - 2 - m;
}

// torch grid_sample, padding_mode = reflection: about the voxel centers of the ends (align_corners) or about their
// outer faces, then clamped to the valid centers.
inline double torch_reflection(double x, integer n, bool align_corners) {
  const double low = align_corners ? 0.0 : -0.5;
  const double span = align_corners ? static_cast<double>(n - 1) : static_cast<double>(n);
  if (span <= 0) return 0;
  const double distance = std::abs(x - low);
  const double rest = std::fmod(distance, span);
  const bool odd = std::fmod(std::floor(distance / span), 2.0) == 1.0;
  return std::clamp((odd ? span - rest : rest) + low, 0.0, static_cast<double>(n - 1));
}

}  // namespace reference
