// SPDX-License-Identifier: Apache-2.0
// fit_percentiles, fit_range and fit_landmarks on a CUDA device.
#pragma once

#include "../exec/cuda/warp_sums.cuh"
#include "histogram.cuh"
#include "percentiles.hpp"

namespace suture::detail {

// Counters of one round of a search, by slot.
template <int N>
struct device_search {
  search<N> state;
  std::uint64_t counts[search<N>::ranks * 2048];
};

template <int N>
__global__ void __launch_bounds__(fit_threads) search_start_kernel(device_search<N>* states) {
  device_search<N>& s = states[blockIdx.x];
  const auto i = static_cast<int>(threadIdx.x);
  for (int k = i; k < search<N>::ranks * 2048; k += fit_threads) s.counts[k] = 0;
  s.state.start(i, fit_threads);
}

template <class T, class Map, int N, class Selector>
__global__ void __launch_bounds__(fit_threads)
    search_kernel(fit_grouping grouping, Selector select, device_search<N>* states, int round) {
  constexpr std::int32_t room = 8192;
  __shared__ std::uint32_t shared_counts[room];
  device_search<N>& s = states[grouping.group()];
  if (round > 0 && s.state.tally.count == 0) return;
  const std::int32_t used = s.state.slots * 2048;
  const bool local = used <= room;
  if (local) {
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < used; i += fit_threads) shared_counts[i] = 0;
    __syncthreads();
  }
  const auto add = [&](std::int32_t index, std::uint32_t amount) {
    if (local)
      atomicAdd(shared_counts + index, amount);
    else
      count_up(s.counts + index, amount);
  };
  run_of_equals run;
  fit_tally tally;
  visit_voxels<T, Map>(grouping, select, [&](T value, verdict v) {
    if (!tally_value(tally, v, value)) return;
    const std::int32_t index = s.state.counter(counted<T>::key(value), round);
    if (index >= 0) run.add(index, add);
  });
  run.end(add);
  if (round == 0) add_tally(s.state.tally, tally);
  if (local) {
    __syncthreads();
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < used; i += fit_threads)
      count_up(s.counts + i, shared_counts[i]);
  }
}

template <class T, class Fit, int N>
__global__ void __launch_bounds__(fit_threads)
    search_advance_kernel(device_search<N>* states, Fit settings, int round, typename Fit::result* results) {
  require_ieee_arithmetic();
  device_search<N>& s = states[blockIdx.x];
  const bool last = round + 1 == search<N>::rounds;
  if (s.state.tally.count != 0) {
    if (round == 0) {
      const auto where = settings.positions();
      if (threadIdx.x == 0) s.state.set_ranks(where.q, s.state.tally.count);
      __syncthreads();
    }
    for (int r = static_cast<int>(threadIdx.x) / 32; r < search<N>::ranks; r += fit_threads / 32) {
      std::uint64_t rank = s.state.rank[r];
      const std::uint32_t digit = locate_rank(s.counts + s.state.slot[r] * 2048, 2048, rank);
      if (threadIdx.x % 32 == 0) {
        s.state.rank[r] = rank;
        s.state.prefix[r] = s.state.prefix[r] << search<N>::digit_bits(round) | digit;
      }
    }
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < search<N>::ranks * 2048; k += fit_threads) s.counts[k] = 0;
    if (threadIdx.x == 0) s.state.assign_slots(round);
  }
  if (last && threadIdx.x == 0) results[blockIdx.x] = settings.finish(s.state.template finish<T>());
}

template <class T, percentile_fit Fit>
__device__ __forceinline__ void finish_histogram(const histogram_counts<T>& state, const segments& s,
                                                 const fit_tally& tally, const Fit& settings,
                                                 typename Fit::result* result) {
  constexpr int per_thread = histogram_counts<T>::bins / fit_threads;
  constexpr auto least = counted<T>::least;
  const auto t = static_cast<int>(threadIdx.x);
  const auto where = settings.positions();
  constexpr int N = decltype(where)::size;
  __shared__ shared_room<percentiles<N>> room;
  percentiles<N>& found = room.get();
  const auto ranked = [&](std::uint64_t rank) {
    int segment = fit_threads - 1;
    while (s.before[segment] > rank) --segment;
    rank -= s.before[segment];
    int bin = segment * per_thread;
    while (rank >= state.counts[bin]) rank -= state.counts[bin++];
    return static_cast<double>(bin + least);
  };
  if (t < N) {
    found.value[t] = 0;
    if (s.count != 0) found.value[t] = percentile_of_ranked(where.q[t], s.count, ranked);
  }
  if (t == 0) {
    found.tally = tally;
    found.status = s.count == 0 ? fit_status::empty : s.first[0] < s.last[0] ? fit_status::ok : fit_status::constant;
  }
  __syncthreads();
  if (t == 0) *result = settings.finish(found);
}

template <percentile_fit Fit>
using search_of = device_search<decltype(std::declval<const Fit&>().positions())::size>;

template <class T, percentile_fit Fit>
std::size_t fit_state_bytes(const Fit&, std::size_t groups) {
  return aligned(groups * sizeof(search_of<Fit>));
}

template <class T, class Map, percentile_fit Fit, class Selector>
void queue_fit(const fit_launcher& fit, const Fit& settings, const Selector& select, typename Fit::result* results) {
  constexpr int N = decltype(settings.positions())::size;
  auto* const searches = reinterpret_cast<device_search<N>*>(fit.states);
  search_start_kernel<N><<<fit.group_count(), fit_threads, 0, fit.exec.stream>>>(searches);
  fit.launched();
  for (int round = 0; round < search<N>::rounds; ++round) {
    fit.over_groups([&](dim3 grid, const fit_grouping& grouping) {
      search_kernel<T, Map, N, Selector><<<grid, fit_threads, 0, fit.exec.stream>>>(grouping, select, searches, round);
    });
    search_advance_kernel<T, Fit, N>
        <<<fit.group_count(), fit_threads, 0, fit.exec.stream>>>(searches, settings, round, results);
    fit.launched();
  }
}

}  // namespace suture::detail
