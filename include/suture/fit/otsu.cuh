// SPDX-License-Identifier: Apache-2.0
// fit_otsu on a CUDA device.
#pragma once

#include "moments.cuh"
#include "otsu.hpp"

namespace suture::detail {

// otsu_bin by 256 threads, a segment of bins each.
__device__ __forceinline__ std::int64_t block_otsu_bin(const std::uint64_t* counts, int per_thread, const segments& s,
                                                       otsu_rule rule) {
  __shared__ double scores[fit_threads];
  __shared__ std::int32_t bins[fit_threads];
  const auto t = static_cast<int>(threadIdx.x);
  std::uint64_t below = s.before[t];
  std::int64_t sum_below = s.index_before[t];
  double best_score = -1;
  std::int32_t best = -1;
  for (std::int32_t bin = t * per_thread; bin < (t + 1) * per_thread; ++bin) {
    const std::uint64_t here = counts[bin];
    below += here;
    sum_below += bin * static_cast<std::int64_t>(here);
    const std::uint64_t fewer = below < s.count - below ? below : s.count - below;
    if (fewer == 0 || (rule == otsu_rule::opencv && fewer << 23 < s.count)) continue;
    const double score = otsu_score(below, sum_below, s.count, s.index_sum);
    if (score > best_score) {
      best_score = score;
      best = bin;
    }
  }
  scores[t] = best_score;
  bins[t] = best;
  __syncthreads();
  best_score = rule == otsu_rule::opencv ? 0 : -1;
  best = rule == otsu_rule::opencv ? 0 : s.first[0];
  for (int k = 0; k < fit_threads; ++k)
    if (scores[k] > best_score) {
      best_score = scores[k];
      best = bins[k];
    }
  return best;
}

template <class T>
__device__ __forceinline__ void finish_histogram(const histogram_counts<T>& state, const segments& s,
                                                 const fit_tally& tally, const fit_otsu& how, threshold* result) {
  constexpr int per_thread = histogram_counts<T>::bins / fit_threads;
  constexpr auto least = counted<T>::least;
  const std::int64_t bin = block_otsu_bin(state.counts, per_thread, s, how.rule);
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

// Floats into 256 bins between the extremes that moment_kernel found.
template <class T, class Map, class Selector>
__global__ void __launch_bounds__(fit_threads)
    bin_kernel(fit_shape shape, Selector select, const device_moments* extremes, device_bins* states) {
  constexpr int copies = fit_threads / 32;
  __shared__ std::uint32_t near[copies * equal_bins::count];
  for (int i = static_cast<int>(threadIdx.x); i < copies * equal_bins::count; i += fit_threads) near[i] = 0;
  __syncthreads();
  const device_moments& e = extremes[shape.group()];
  if (e.tally.count == 0 || ~e.least_complement == e.greatest) return;
  const equal_bins bins =
      equal_bins::between(counted<T>::value_of(~e.least_complement), counted<T>::value_of(e.greatest));
  std::uint32_t* mine = near + static_cast<int>(threadIdx.x) / 32 * equal_bins::count;
  const auto add = [&](std::int32_t bin, std::uint32_t amount) { atomicAdd(mine + bin, amount); };
  run_of_equals run;
  visit_voxels<T, Map>(shape, select, [&](T value, verdict v) {
    if (v == verdict::selected && counted<T>::finite(value))
      run.add(bins.bin(counted<T>::value_of(counted<T>::key(value))), add);
  });
  run.end(add);
  __syncthreads();
  std::uint32_t sum = 0;
  for (int c = 0; c < copies; ++c) sum += near[c * equal_bins::count + static_cast<int>(threadIdx.x)];
  count_up(states[shape.group()].counts + threadIdx.x, sum);
}

template <class T>
__global__ void __launch_bounds__(fit_threads)
    bin_finish_kernel(const device_moments* extremes, const device_bins* states, threshold* results) {
  require_ieee_arithmetic();
  static_assert(equal_bins::count == fit_threads);
  __shared__ segments s;
  const device_moments& e = extremes[blockIdx.x];
  const std::uint64_t* counts = states[blockIdx.x].counts;
  sum_segments(counts, 1, s);
  const std::int64_t bin = block_otsu_bin(counts, 1, s, otsu_rule::scikit_image);
  if (threadIdx.x != 0) return;
  threshold t;
  t.tally = e.tally;
  if (e.tally.count != 0) {
    const double low = counted<T>::value_of(~e.least_complement), high = counted<T>::value_of(e.greatest);
    t.status = low < high ? fit_status::ok : fit_status::constant;
    t.value = low < high ? equal_bins::between(low, high).center(static_cast<int>(bin)) : low;
  }
  results[blockIdx.x] = t;
}

// The extremes of all groups, behind them their bins.
inline std::size_t fit_state_bytes(const fit_otsu&, std::size_t groups) {
  return aligned(groups * sizeof(device_moments)) + aligned(groups * sizeof(device_bins));
}

template <class T, class Map, class Selector>
void queue_fit(const fit_launcher& fit, const fit_otsu&, const Selector& select, std::byte* states,
               threshold* results) {
  auto* const extremes = reinterpret_cast<device_moments*>(states);
  auto* const bins = reinterpret_cast<device_bins*>(states + aligned(fit.groups * sizeof(device_moments)));
  queue_moments<T, Map>(fit, select, extremes);
  fit.clear(bins, fit.groups * sizeof(device_bins));
  fit.over_groups([&](dim3 grid, const fit_shape& shape) {
    bin_kernel<T, Map, Selector><<<grid, fit_threads, 0, fit.exec.stream>>>(shape, select, extremes, bins);
  });
  bin_finish_kernel<T><<<fit.group_count(), fit_threads, 0, fit.exec.stream>>>(extremes, bins, results);
  fit.launched();
}

}  // namespace suture::detail
