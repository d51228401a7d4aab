// SPDX-License-Identifier: Apache-2.0
// Custom fits on a CUDA device (fit/one_pass.hpp). Blocks are reduced by CUB.
#pragma once

#include <cub/block/block_reduce.cuh>

#include "fit.cuh"
#include "one_pass.hpp"

namespace suture {

namespace detail {

template <class State>
struct merge_states {
  __device__ __forceinline__ State operator()(State a, const State& b) const {
    a.merge(b);
    return a;
  }
};

// Writes the counts of block b over its rows of group g.
template <class T, class Map, class Selector, class Fit>
__global__ void __launch_bounds__(fit_threads)
    one_pass_kernel(fit_grouping grouping, Selector select, const __grid_constant__ Fit settings,
                    one_pass_state<Fit>* states) {
  using state = one_pass_state<Fit>;
  using reduce = cub::BlockReduce<state, fit_threads>;
  __shared__ typename reduce::TempStorage room;
  state mine{};
  visit_voxels<T, Map>(grouping, select, [&](T value, verdict v) {
    if (tally_value(mine.tally, v, value)) mine.partial.add(settings, value);
  });
  const state all = reduce(room).Reduce(mine, merge_states<state>{});
  if (threadIdx.x == 0) states[grouping.group() * gridDim.x + blockIdx.x] = all;
}

// Block g computes the result of group g from the counts of `blocks` blocks.
template <class Fit>
__global__ void __launch_bounds__(fit_threads)
    one_pass_finish_kernel(const one_pass_state<Fit>* states, std::int64_t blocks, const __grid_constant__ Fit settings,
                           typename Fit::result* results) {
  using state = one_pass_state<Fit>;
  using reduce = cub::BlockReduce<state, fit_threads>;
  require_ieee_arithmetic();
  __shared__ typename reduce::TempStorage room;
  state mine{};
  for (std::int64_t b = threadIdx.x; b < blocks; b += fit_threads) mine.merge(states[blockIdx.x * blocks + b]);
  const state all = reduce(room).Reduce(mine, merge_states<state>{});
  if (threadIdx.x == 0) results[blockIdx.x] = settings.finish(all.partial, all.tally);
}

// Bytes of the states: one for each block of each group.
template <class Fit, class T>
std::size_t one_pass_bytes(const Fit& settings, std::span<const view<const T>> images) {
  const std::size_t groups = count_groups(images, settings.pooled);
  if (groups == 0) return 0;
  const auto [list, blocks] =
      fit_records(images, everything{}, settings.pooled ? images[0].channels : 1, rows_per_block);
  return aligned(groups * static_cast<std::size_t>(blocks) * sizeof(one_pass_state<Fit>));
}

}  // namespace detail

template <class Fit, class T>
requires(detail::has_partial<Fit>) std::size_t
    fit_workspace_bytes(const Fit& settings, std::span<const view<const T>> images) {
  return detail::record_bytes(images.size()) + detail::one_pass_bytes(settings, images);
}

template <class T, class Fit, class Selection>
requires(detail::has_partial<Fit>) void fit_on_device(const cuda& exec, const Fit& settings,
                                                      std::span<const view<const T>> images, const Selection& selection,
                                                      std::span<typename Fit::result> results) {
  using namespace detail;
  using Map = typename Selection::map_type;
  check_one_pass<Fit, T>();
  settings.check();
  const std::size_t groups = check_fit(Fit::name, images, selection, settings.pooled, results.size());
  if (groups == 0) return;
  const fit_launcher launcher = start_fit(exec, Fit::name, images, selection, results, images[0].channels,
                                          settings.pooled, one_pass_bytes(settings, images), rows_per_block);
  auto* const states = reinterpret_cast<one_pass_state<Fit>*>(launcher.states);
  const auto select = selection.select();
  launcher.over_groups([&](dim3 grid, const fit_grouping& grouping) {
    one_pass_kernel<T, Map><<<grid, fit_threads, 0, exec.stream>>>(grouping, select, settings, states);
  });
  one_pass_finish_kernel<<<launcher.group_count(), fit_threads, 0, exec.stream>>>(states, launcher.blocks, settings,
                                                                                  results.data());
  launcher.launched();
}

}  // namespace suture
