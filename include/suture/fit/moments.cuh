// SPDX-License-Identifier: Apache-2.0
// fit_moments on a CUDA device.
#pragma once

#include "histogram.cuh"
#include "moments.hpp"

namespace suture::detail {

template <class T>
__device__ __forceinline__ void finish_histogram(const histogram_counts<T>& state, const segments& s,
                                                 const fit_tally& tally, const fit_moments& settings, moments* result) {
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
  total.add(p);
  __syncthreads();
  if (t == 0) {
    total.propagate_carries();
    *result = make_moments(total, tally, static_cast<double>(s.first[0] + least),
                           static_cast<double>(s.last[0] + least), true, settings.ddof);
  }
}

template <class T>
std::size_t fit_state_bytes(const fit_moments&, std::size_t groups) {
  return aligned(groups * sizeof(moment_sums<T>));
}

template <class T, class Map, class Selector>
void queue_fit(const fit_launcher& fit, const fit_moments& settings, const Selector& select, moments* results) {
  fit.finish(fit.sum<T, Map, typename moment_sums<T>::part>(select), settings, results);
}

}  // namespace suture::detail
