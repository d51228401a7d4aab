// SPDX-License-Identifier: Apache-2.0
// Histograms of 8- and 16-bit images on a CUDA device, and the results of fits from them.
#pragma once

#include "histogram.hpp"
#include "launch.cuh"

namespace suture::detail {

// Values where most voxels of medical images lie are counted in shared memory, all others directly in global memory.
template <class T, class Map, class Selector>
__global__ void __launch_bounds__(fit_threads)
    histogram_kernel(fit_grouping grouping, Selector select, histogram_counts<T>* states) {
  constexpr bool narrow = counted<T>::bits == 8;
  constexpr int copies = narrow ? fit_threads / 32 : 1;
  constexpr std::int32_t window = narrow ? 256 : 8192;
  constexpr std::int32_t start = narrow || counted<T>::least == 0 ? 0 : 32768 - 2048;
  __shared__ std::uint32_t shared_counts[copies * window];
  for (int i = static_cast<int>(threadIdx.x); i < copies * window; i += fit_threads) shared_counts[i] = 0;
  __syncthreads();
  histogram_counts<T>& state = states[grouping.group()];
  std::uint32_t* mine = shared_counts + (copies > 1 ? static_cast<int>(threadIdx.x) / 32 * window : 0);
  const auto add = [&](std::int32_t key, std::uint32_t amount) {
    const auto offset = static_cast<std::uint32_t>(key - start);
    if (offset < static_cast<std::uint32_t>(window))
      atomicAdd(mine + offset, amount);
    else
      count_up(state.counts + key, amount);
  };
  run_of_equals run;
  std::uint64_t undeclared = 0;
  visit_voxels<T, Map>(grouping, select, [&](T value, verdict v) {
    if (v == verdict::selected)
      run.add(static_cast<std::int32_t>(counted<T>::key(value)), add);
    else if (v == verdict::undeclared)
      ++undeclared;
  });
  run.end(add);
  count_up(&state.undeclared, undeclared);
  __syncthreads();
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < window; i += fit_threads) {
    std::uint32_t sum = 0;
    for (int c = 0; c < copies; ++c) sum += shared_counts[c * window + i];
    count_up(state.counts + start + i, sum);
  }
}

// Totals of a histogram, and for each of its 256 segments the totals of everything before it.
struct segments {
  std::uint64_t before[fit_threads];       // number of values
  std::int64_t index_before[fit_threads];  // sum of bin times count
  std::uint64_t count;
  std::int64_t index_sum;
  std::int32_t first[fit_threads], last[fit_threads];  // [0]: first and last nonempty bin, -1 if there is none
};

__device__ __forceinline__ void sum_segments(const std::uint64_t* counts, int per_thread, segments& s) {
  const auto t = static_cast<int>(threadIdx.x);
  std::uint64_t count = 0;
  std::int64_t sum = 0;
  std::int32_t first = 0, last = -1;
  for (int i = t * per_thread; i < (t + 1) * per_thread; ++i) {
    const std::uint64_t c = counts[i];
    if (c == 0) continue;
    if (last < 0) first = i;
    last = i;
    count += c;
    sum += i * static_cast<std::int64_t>(c);
  }
  s.before[t] = count;
  s.index_before[t] = sum;
  s.first[t] = first;
  s.last[t] = last;
  __syncthreads();
  if (t == 0) {
    std::uint64_t all = 0;
    std::int64_t weighted = 0;
    std::int32_t lowest = -1, highest = -1;
    for (int k = 0; k < fit_threads; ++k) {
      const std::uint64_t c = s.before[k];
      const std::int64_t w = s.index_before[k];
      s.before[k] = all;
      s.index_before[k] = weighted;
      all += c;
      weighted += w;
      if (c != 0 && lowest < 0) lowest = s.first[k];
      if (c != 0) highest = s.last[k];
    }
    s.count = all;
    s.index_sum = weighted;
    s.first[0] = lowest;
    s.last[0] = highest;
  }
  __syncthreads();
}

template <class T, class Fit>
__global__ void __launch_bounds__(fit_threads)
    histogram_finish_kernel(const histogram_counts<T>* states, Fit settings, typename Fit::result* results) {
  require_ieee_arithmetic();
  __shared__ segments s;
  const histogram_counts<T>& state = states[blockIdx.x];
  sum_segments(state.counts, histogram_counts<T>::bins / fit_threads, s);
  finish_histogram(state, s, fit_tally{s.count, 0, state.undeclared}, settings, results + blockIdx.x);
}

// Counts into `states`, one per group.
template <class T, class Map, class Selector>
void queue_histogram(const fit_launcher& fit, const Selector& select, histogram_counts<T>* states) {
  fit.clear(states, fit.groups * sizeof(histogram_counts<T>));
  fit.over_groups([&](dim3 grid, const fit_grouping& grouping) {
    histogram_kernel<T, Map, Selector><<<grid, fit_threads, 0, fit.exec.stream>>>(grouping, select, states);
  });
}

}  // namespace suture::detail
