// SPDX-License-Identifier: Apache-2.0
// Sums over the lanes of a warp, and the search for the counter that contains a rank. All lanes of a warp call these.
#pragma once

#include <cstdint>

namespace suture::detail {

// Returns the sum over all lanes to every lane.
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// Returns to each lane the sum over the lanes up to and including it.
template <class T>
__device__ __forceinline__ T warp_inclusive_sum(T value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int step = 1; step < 32; step *= 2) {
    const T other = __shfl_up_sync(0xffffffffu, value, static_cast<unsigned>(step));
    if (lane >= step) value += other;
  }
  return value;
}

// Returns the index of the counter that contains a rank, where n counters (a power of two) count values in ascending
// order. `rank` becomes the rank among the values of that counter.
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
