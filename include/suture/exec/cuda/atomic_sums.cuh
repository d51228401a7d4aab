// SPDX-License-Identifier: Apache-2.0
// Exact sums in device memory, to which the blocks of a kernel add atomically. They are integers, so the result does
// not depend on the order of additions.
#pragma once

#include "../../stats/exact_sums.hpp"

namespace suture::detail {

// Adds an amount to limb k of `count`. All but its low 32 bits go to the next limb, so that no number of blocks
// overflows one; the last limb takes the whole amount.
__device__ __forceinline__ void add_limb(std::int64_t* limbs, int count, int k, std::int64_t amount) {
  if (k + 1 == count) {
    count_up(limbs + k, amount);
  } else {
    count_up(limbs + k, amount & 0xffffffff);
    count_up(limbs + k + 1, amount >> 32);
  }
}

// Adds the sums of a block to the total. All threads of the block's first warp call this; each adds one limb.
__device__ __forceinline__ void add_sums(exact_sums& to, const exact_sums& from) {
  const auto i = static_cast<int>(threadIdx.x);
  if (i < exact_sums::sum_limbs) add_limb(to.sum, exact_sums::sum_limbs, i, from.sum[i]);
  if (i < exact_sums::square_limbs) add_limb(to.square, exact_sums::square_limbs, i, from.square[i]);
}

template <int N>
__device__ __forceinline__ void add_sums(exact_sums (&to)[N], const exact_sums (&from)[N]) {
  SUTURE_UNROLL
  for (int k = 0; k < N; ++k) add_sums(to[k], from[k]);
}

}  // namespace suture::detail
