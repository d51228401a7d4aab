// SPDX-License-Identifier: Apache-2.0
// fit_otsu on a CUDA device.
#pragma once

#include "moments.cuh"
#include "otsu.hpp"

namespace suture::detail {

// Computes otsu_bin by 256 threads, each with a segment of the bins.
__device__ __forceinline__ std::int32_t block_otsu_bin(const std::uint64_t* counts, int per_thread, const segments& s,
                                                       otsu_rule rule) {
  __shared__ otsu_split splits[fit_threads];
  const auto t = static_cast<int>(threadIdx.x);
  otsu_scan scan{rule, s.count, s.index_sum, s.before[t], s.index_before[t]};
  otsu_split best{-1, -1};
  for (std::int32_t bin = t * per_thread; bin < (t + 1) * per_thread; ++bin) scan.pass(bin, counts[bin], best);
  splits[t] = best;
  __syncthreads();
  best = otsu_split::none(rule, s.first[0]);
  for (const otsu_split& split : splits) best.keep_better(split);
  return best.bin;
}

template <class T>
__device__ __forceinline__ void finish_histogram(const histogram_counts<T>& state, const segments& s,
                                                 const fit_tally& tally, const fit_otsu& settings, threshold* result) {
  constexpr int per_thread = histogram_counts<T>::bins / fit_threads;
  constexpr auto least = counted<T>::least;
  const std::int32_t bin = block_otsu_bin(state.counts, per_thread, s, settings.rule);
  if (threadIdx.x == 0) {
    threshold found;
    found.tally = tally;
    if (s.count != 0) {
      found.status = s.first[0] < s.last[0] ? fit_status::ok : fit_status::constant;
      found.value = static_cast<double>(bin + least);
    }
    *result = found;
  }
}

struct device_bins {
  std::uint64_t counts[equal_bins::count];
};

// Counts floats in 256 bins between the extremes.
template <class T, class Map, class Selector>
__global__ void __launch_bounds__(fit_threads)
    bin_kernel(fit_grouping grouping, Selector select, const moment_sums<T>* extremes, device_bins* states) {
  constexpr int copies = fit_threads / 32;
  __shared__ std::uint32_t shared_counts[copies * equal_bins::count];
  for (int i = static_cast<int>(threadIdx.x); i < copies * equal_bins::count; i += fit_threads) shared_counts[i] = 0;
  __syncthreads();
  const moment_sums<T>& e = extremes[grouping.group()];
  if (!has_range(e)) return;
  const equal_bins bins = bins_between(e);
  std::uint32_t* mine = shared_counts + static_cast<int>(threadIdx.x) / 32 * equal_bins::count;
  const auto add = [&](std::int32_t bin, std::uint32_t amount) { atomicAdd(mine + bin, amount); };
  run_of_equals run;
  visit_voxels<T, Map>(grouping, select, [&](T value, verdict v) {
    if (v == verdict::selected && counted<T>::finite(value))
      run.add(bins.bin(counted<T>::value_of(counted<T>::key(value))), add);
  });
  run.end(add);
  __syncthreads();
  std::uint32_t sum = 0;
  for (int c = 0; c < copies; ++c) sum += shared_counts[c * equal_bins::count + static_cast<int>(threadIdx.x)];
  count_up(states[grouping.group()].counts + threadIdx.x, sum);
}

template <class T>
__global__ void __launch_bounds__(fit_threads)
    bin_finish_kernel(const moment_sums<T>* extremes, const device_bins* states, threshold* results) {
  require_ieee_arithmetic();
  static_assert(equal_bins::count == fit_threads);
  __shared__ segments s;
  const std::uint64_t* counts = states[blockIdx.x].counts;
  sum_segments(counts, 1, s);
  const std::int32_t bin = block_otsu_bin(counts, 1, s, otsu_rule::scikit_image);
  if (threadIdx.x == 0) results[blockIdx.x] = threshold_of_bin(extremes[blockIdx.x], bin);
}

// The extremes of all groups, followed by their bins.
template <class T>
std::size_t fit_state_bytes(const fit_otsu&, std::size_t groups) {
  return aligned(groups * sizeof(moment_sums<T>)) + aligned(groups * sizeof(device_bins));
}

template <class T, class Map, class Selector>
void queue_fit(const fit_launcher& fit, const fit_otsu&, const Selector& select, threshold* results) {
  auto* const bins = reinterpret_cast<device_bins*>(fit.states + aligned(fit.groups * sizeof(moment_sums<T>)));
  const moment_sums<T>* const extremes = fit.sum<T, Map, typename moment_sums<T>::part>(select);
  fit.clear(bins, fit.groups * sizeof(device_bins));
  fit.over_groups([&](dim3 grid, const fit_grouping& grouping) {
    bin_kernel<T, Map, Selector><<<grid, fit_threads, 0, fit.exec.stream>>>(grouping, select, extremes, bins);
  });
  bin_finish_kernel<T><<<fit.group_count(), fit_threads, 0, fit.exec.stream>>>(extremes, bins, results);
  fit.launched();
}

}  // namespace suture::detail
