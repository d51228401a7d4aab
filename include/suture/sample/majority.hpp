// SPDX-License-Identifier: Apache-2.0
// Label maps resampled as nnU-Net does: one-hot, linear, and every label written where it has at least a half.
#pragma once

#include "../exec/cpu.hpp"

namespace suture {

// Label interpolation of `sampling`: of the labels whose linear corner weights sum to at least 1/2 the highest, and 0
// where there is none, as where three labels meet. Weights are taken to 2^-20 and summed as integers, so that exactly
// half is half. `vote` differs in two ways: it always has a winner, and of two that are equal it takes the lowest.
// Source: nnU-Net resize_segmentation with order 1.
struct majority {};

// The label by `majority` among eight corners.
template <class T>
SUTURE_FN T majority_label(const T (&labels)[8], const float (&t)[3]) {
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

// What samplers call for a label map whose interpolation is `majority`.
template <class Labels, class Border, class T>
requires(std::is_same_v<Labels, majority>) SUTURE_FN T
    sample_label(const coordinate (&c)[3], const T* data, const std::int64_t (&stride)[3], const std::int32_t (&n)[3],
                 const std::int32_t (&pairs)[3], T outside) {
  T labels[8];
  corner_labels<Border>(c, data, stride, n, pairs, outside, labels);
  return majority_label(labels, {c[0].fraction, c[1].fraction, c[2].fraction});
}

namespace detail {

// The same for the strips of the CPU executor.
template <class Pipeline, class T, class Offset>
requires(std::is_same_v<typename Pipeline::label_type, majority>) void pick_labels(const strip<Pipeline>& s,
                                                                                   const T* data,
                                                                                   const std::int64_t (&stride)[3],
                                                                                   const std::int32_t (&n)[3],
                                                                                   T outside, T (&out)[strip_width]) {
  std::int32_t pairs[3];
  count_pairs(stride, n, pairs);
  for (int l = 0; l < strip_width; ++l) {
    coordinate c[3];
    s.lane(l, c);
    out[l] = sample_label<majority, typename Pipeline::border_type>(c, data, stride, n, pairs, outside);
  }
}

}  // namespace detail
}  // namespace suture
