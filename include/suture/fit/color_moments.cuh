// SPDX-License-Identifier: Apache-2.0
// fit_color_moments on a CUDA device: the results stay there; nothing is allocated, synchronized or copied back.
#pragma once

#include "color_moments.hpp"
#include "gather.cuh"

namespace suture {

namespace detail {

struct device_color_sums {
  exact_sums sums[3];
  fit_tally tally;
};

template <class Space, class T, class Map, class Selector>
__global__ void __launch_bounds__(fit_threads)
    color_moment_kernel(fit_shape shape, Selector select, color_range range, device_color_sums* states) {
  __shared__ shared_room<device_color_sums> room;
  device_color_sums& block = room.get();
  static_assert(sizeof(device_color_sums) % 8 == 0);
  for (unsigned i = threadIdx.x; i < sizeof(device_color_sums) / 8; i += fit_threads)
    reinterpret_cast<std::uint64_t*>(&block)[i] = 0;
  __syncthreads();
  const std::int64_t channel_stride = shape.records[shape.group()].channel_stride;
  partial_sums p[3];
  fit_tally tally;
  visit_places<T, Map>(shape, select, [&](const T* place, verdict v) {
    if (v == verdict::rejected) return;
    const rgb pixel{{storage<T>::load(place[0]), storage<T>::load(place[channel_stride]),
                     storage<T>::load(place[2 * channel_stride])}};
    if (v == verdict::undeclared) {
      ++tally.undeclared;
    } else if (!all_finite(pixel)) {
      ++tally.excluded;
    } else {
      ++tally.count;
      std::int32_t color[3];
      to_fixed_color<Space>(range, pixel, color);
      SUTURE_UNROLL
      for (int k = 0; k < 3; ++k) add_value<std::int32_t>(p[k], color[k], block.sums[k]);
    }
  });
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) block.sums[k].take(p[k]);
  add_tally(block.tally, tally);
  __syncthreads();
  device_color_sums& state = states[shape.group()];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) give_sums(state.sums[k], block.sums[k]);
  if (threadIdx.x == 0) add_tally(state.tally, block.tally);
}

template <class Space>
__global__ void __launch_bounds__(32) color_moment_finish_kernel(device_color_sums* states, std::int32_t ddof,
                                                                 color_moments<Space>* results, std::int64_t count) {
  require_ieee_arithmetic();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  if (i >= count) return;
  device_color_sums& state = states[i];
  for (exact_sums& s : state.sums) s.settle();
  results[i] = make_color_moments<Space>(state.sums, state.tally, ddof);
}

struct color_fit_layout {
  std::size_t states, bytes;
  explicit color_fit_layout(std::size_t samples)
      : states(aligned(samples * sizeof(fit_record))), bytes(states + aligned(samples * sizeof(device_color_sums))) {}
};

}  // namespace detail

// Device memory that fit_color_moments of these images needs.
template <class Space, class Images>
std::size_t workspace_bytes(const fit_color_moments<Space>&, const Images& images) {
  return detail::color_fit_layout(detail::as_views(images).size()).bytes;
}

// Queues the fit on a stream; images, maps and results, one per sample, lie in device memory.
template <class Space, class Images, class Selection>
void fit(const cuda& exec, const fit_color_moments<Space>& how, const Images& images, const Selection& selection,
         std::span<color_moments<Space>> results) {
  using namespace detail;
  const auto views = constant_views(images);
  using T = std::remove_const_t<view_element_t<Images>>;
  const std::span<const view<const T>> all(views);
  how.check();
  check_color_fit(how.name, all, selection, results.size());
  if (all.empty()) return;
  require(results.data() != nullptr, {how.name}, "null pointer for the results");
  const color_fit_layout l(all.size());
  check_device_workspace(exec, l.bytes, {how.name}, "workspace: ");
  each_fit_pointer(memory_check(exec), how.name, all, selection, results);

  std::int64_t blocks = 1;
  std::vector<fit_record> list;
  for (std::size_t i = 0; i < all.size(); ++i) {
    fit_record r = record_of(all[i]);
    if constexpr (Selection::has_map) {
      const auto map = selection.map(i);
      r.map = map.data;
      for (int k = 0; k < 3; ++k) r.map_stride[k] = map.stride[k];
    }
    constexpr std::int32_t pixels_per_block = 8192;  // the sums of a tile are few, its conversions are not
    r.rows_per_block = std::max<std::int32_t>(1, pixels_per_block / r.extents[2]);
    const std::int64_t rows = all[i].grid.extents[0] * all[i].grid.extents[1];
    blocks = std::max(blocks, (rows + r.rows_per_block - 1) / r.rows_per_block);
    list.push_back(r);
  }
  require(blocks <= 2147483647, {how.name}, blocks, " blocks exceed the grid of a kernel");
  auto* const records = reinterpret_cast<fit_record*>(exec.workspace.data());
  auto* const states = reinterpret_cast<device_color_sums*>(exec.workspace.data() + l.states);
  upload_list(exec, how.name, list, records);
  const fit_launcher launcher{exec, how.name, {records, 1, true, 0}, blocks, all.size()};
  launcher.clear(states, all.size() * sizeof(device_color_sums));
  const auto select = selection.select();
  using Selector = std::remove_const_t<decltype(select)>;
  const color_range range = make_color_range(how.white, {how.name});
  launcher.over_groups([&](dim3 grid, const fit_shape& shape) {
    color_moment_kernel<Space, T, typename Selection::map_type, Selector>
        <<<grid, fit_threads, 0, exec.stream>>>(shape, select, range, states);
  });
  color_moment_finish_kernel<Space><<<(launcher.group_count() + 31) / 32, 32, 0, exec.stream>>>(
      states, how.ddof, results.data(), static_cast<std::int64_t>(all.size()));
  launcher.launched();
}

}  // namespace suture
