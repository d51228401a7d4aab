// SPDX-License-Identifier: Apache-2.0
// Counters and exact sums that the threads of a device add to. All integer, so that their order shows in no bit.
#pragma once

#include "../../stats/exact_sums.hpp"

namespace suture::detail {

using counter = unsigned long long;

__device__ __forceinline__ void count_up(std::uint64_t* where, std::uint64_t amount) {
  if (amount != 0) atomicAdd(reinterpret_cast<counter*>(where), static_cast<counter>(amount));
}
__device__ __forceinline__ void count_up(std::int64_t* where, std::int64_t amount) {
  if (amount != 0) atomicAdd(reinterpret_cast<counter*>(where), static_cast<counter>(amount));
}

// The sums of a block, added by its first threads to those of all; split, so that no number of blocks overflows a limb.
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

}  // namespace suture::detail
