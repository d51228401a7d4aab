// SPDX-License-Identifier: Apache-2.0
// Sums of integers that the lanes of a warp hold, and the counter that holds a rank. By whole warps.
#pragma once

#include <cstdint>

namespace suture::detail {

// Warp sum, returned to every lane.
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// Inclusive prefix sum over the lanes of a warp.
template <class T>
__device__ __forceinline__ T warp_inclusive_sum(T value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int step = 1; step < 32; step *= 2) {
    const T other = __shfl_up_sync(0xffffffffu, value, static_cast<unsigned>(step));
    if (lane >= step) value += other;
  }
  return value;
}

// The counter of n, a power of two, that holds a rank; the rank becomes that within the counter.
template <class Count>
__device__ __forceinline__ std::uint32_t locate_rank(const Count* counts, int n, std::uint64_t& rank) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t first = 0;
  while (n > 1) {
    const int each = n > 32 ? n / 32 : 1;
    std::uint64_t sum = 0;
    if (lane * each < n)
      for (int i = 0; i < each; ++i)
        sum += counts[first + static_cast<std::uint32_t>(lane * each + ((i + lane) & (each - 1)))];
    const std::uint64_t before = warp_inclusive_sum(sum) - sum;
    const bool here = rank >= before && rank < before + sum;
    const int owner = max(__ffs(static_cast<int>(__ballot_sync(0xffffffffu, here))) - 1, 0);
    rank -= __shfl_sync(0xffffffffu, before, owner);
    first += static_cast<std::uint32_t>(owner * each);
    n = each;
  }
  return first;
}

}  // namespace suture::detail
