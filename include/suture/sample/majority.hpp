// SPDX-License-Identifier: Apache-2.0
// Label maps resampled as nnU-Net does: one-hot, linear, and each label kept where its weight is at least one half.
#pragma once

#include "../base/vec.hpp"

namespace suture {

// A label interpolation of `sampling`. It returns the highest label whose linear corner weights sum to at least 1/2, or
// 0 if there is none, as where three labels meet. Weights are rounded to 2^-20 and summed as integers, so that exactly
// half is half. `vote` differs in two ways: it always returns one of the labels, and the lowest of two that are equal.
// Source: nnU-Net resize_segmentation with order 1.
struct majority {
  static constexpr bool serves_labels = true;

  // The label chosen from eight corners, (z, y, x) with x fastest; t is the position between them along each axis.
  template <class T>
  SUTURE_FN static T label_among(const T (&labels)[8], const float (&t)[3]) {
    bool same = true;
    SUTURE_UNROLL
    for (int i = 1; i < 8; ++i) same = same && labels[i] == labels[0];
    if (same) return labels[0];
    constexpr std::uint32_t one = 1u << 20;
    std::uint64_t w[3][2];
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) {
      const auto part = static_cast<std::uint32_t>(fma(t[k], static_cast<float>(one), 0.5f));
      w[k][0] = one - part;
      w[k][1] = part;
    }
    T best{};
    bool found = false;
    for (int i = 0; i < 8; ++i) {
      std::uint64_t sum = 0;
      for (int j = 0; j < 8; ++j)
        if (labels[j] == labels[i]) sum += w[0][j >> 2] * w[1][(j >> 1) & 1] * w[2][j & 1];
      if (sum < std::uint64_t{1} << 59 || (found && labels[i] < best)) continue;
      best = labels[i];
      found = true;
    }
    return best;
  }
};

}  // namespace suture
