// SPDX-License-Identifier: Apache-2.0
// fit_moments on a CUDA device.
#pragma once

#include "histogram.cuh"
#include "moments.hpp"

namespace suture::detail {

struct device_moments {
  exact_sums sums;
  fit_tally tally;
  std::uint32_t least_complement, greatest;  // all zero to begin with
};

template <class T, class Map, class Selector>
__global__ void __launch_bounds__(fit_threads) moment_kernel(fit_shape shape, Selector select, device_moments* states) {
  __shared__ shared_room<device_moments> room;
  device_moments& block = room.get();
  static_assert(sizeof(device_moments) % 8 == 0);
  for (unsigned i = threadIdx.x; i < sizeof(device_moments) / 8; i += fit_threads)
    reinterpret_cast<std::uint64_t*>(&block)[i] = 0;
  __syncthreads();
  partial_sums p;
  fit_tally tally;
  std::uint32_t least_complement = 0, greatest = 0;
  visit_voxels<T, Map>(shape, select, [&](T value, verdict v) {
    if (!takes(tally, v, value)) return;
    const std::uint32_t key = counted<T>::key(value);
    least_complement = max(least_complement, ~key);
    greatest = max(greatest, key);
    add_value(p, value, block.sums);
  });
  block.sums.take(p);
  add_tally(block.tally, tally);
  if (tally.count != 0) {
    atomicMax(&block.least_complement, least_complement);
    atomicMax(&block.greatest, greatest);
  }
  __syncthreads();
  device_moments& state = states[shape.group()];
  give_sums(state.sums, block.sums);
  if (threadIdx.x == 0 && (block.tally.count | block.tally.excluded | block.tally.undeclared) != 0) {
    add_tally(state.tally, block.tally);
    atomicMax(&state.least_complement, block.least_complement);
    atomicMax(&state.greatest, block.greatest);
  }
}

template <class T>
__global__ void __launch_bounds__(32)
    moment_finish_kernel(device_moments* states, std::int32_t ddof, moments* results, std::int64_t groups) {
  require_ieee_arithmetic();
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (group >= groups) return;
  device_moments& state = states[group];
  state.sums.settle();
  results[group] = make_moments(state.sums, state.tally, counted<T>::value_of(~state.least_complement),
                                counted<T>::value_of(state.greatest), counted<T>::is_integer, ddof);
}

// Sums into `states`, one per group.
template <class T, class Map, class Selector>
void queue_moments(const fit_launcher& fit, const Selector& select, device_moments* states) {
  fit.clear(states, fit.groups * sizeof(device_moments));
  fit.over_groups([&](dim3 grid, const fit_shape& shape) {
    moment_kernel<T, Map, Selector><<<grid, fit_threads, 0, fit.exec.stream>>>(shape, select, states);
  });
}

template <class T>
__device__ __forceinline__ void finish_histogram(const histogram_counts<T>& state, const segments& s,
                                                 const fit_tally& tally, const fit_moments& how, moments* result) {
  constexpr int per_thread = histogram_counts<T>::bins / fit_threads;
  constexpr auto least = counted<T>::least;
  const auto t = static_cast<int>(threadIdx.x);
  __shared__ shared_room<exact_sums> room;
  exact_sums& total = room.get();
  if (t == 0) total = exact_sums{};
  __syncthreads();
  partial_sums p;
  for (int i = t * per_thread; i < (t + 1) * per_thread; ++i) {
    const std::int64_t value = i + least;
    p.sum += static_cast<int128>(value) * static_cast<int128>(state.counts[i]);
    p.square += static_cast<uint128>(value * value) * state.counts[i];
  }
  total.take(p);
  __syncthreads();
  if (t == 0) {
    total.settle();
    *result = make_moments(total, tally, static_cast<double>(s.first[0] + least),
                           static_cast<double>(s.last[0] + least), true, how.ddof);
  }
}

inline std::size_t fit_state_bytes(const fit_moments&, std::size_t groups) {
  return aligned(groups * sizeof(device_moments));
}

template <class T, class Map, class Selector>
void queue_fit(const fit_launcher& fit, const fit_moments& how, const Selector& select, std::byte* states,
               moments* results) {
  auto* const sums = reinterpret_cast<device_moments*>(states);
  queue_moments<T, Map>(fit, select, sums);
  moment_finish_kernel<T><<<(fit.group_count() + 31) / 32, 32, 0, fit.exec.stream>>>(
      sums, how.ddof, results, static_cast<std::int64_t>(fit.groups));
  fit.launched();
}

}  // namespace suture::detail
