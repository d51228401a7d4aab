// SPDX-License-Identifier: Apache-2.0
// Exact sums that the blocks of a device add to. They are integers, so the order of adding does not change a bit.
#pragma once

#include "../../stats/exact_sums.hpp"

namespace suture::detail {

// Adds the sums of a block to the total by its first threads. Sums are split, so that no number of blocks overflows a
// limb.
__device__ __forceinline__ void give_limb(std::int64_t* limbs, int count, int k, std::int64_t amount) {
  if (k + 1 == count) {
    count_up(limbs + k, amount);
  } else {
    count_up(limbs + k, amount & 0xffffffff);
    count_up(limbs + k + 1, amount >> 32);
  }
}
__device__ __forceinline__ void give_sums(exact_sums& to, const exact_sums& from) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i < exact_sums::sum_limbs) give_limb(to.sum, exact_sums::sum_limbs, i, from.sum[i]);
  if (i < exact_sums::square_limbs) give_limb(to.square, exact_sums::square_limbs, i, from.square[i]);
}

template <int N>
__device__ __forceinline__ void give_sums(exact_sums (&to)[N], const exact_sums (&from)[N]) {
  SUTURE_UNROLL
  for (int k = 0; k < N; ++k) give_sums(to[k], from[k]);
}

}  // namespace suture::detail
