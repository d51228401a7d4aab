// SPDX-License-Identifier: Apache-2.0
// Points and boxes of a planned batch on a device, with the bits of points.hpp. Calls allocate no device memory, copy
// nothing back and do not wait for the device.
#pragma once

#include "../exec/cuda/run.cuh"
#include "points.hpp"

namespace suture {
namespace detail {

inline constexpr int point_threads = 128, point_warps = point_threads / 32;

// Computes the displacement u(y) by all lanes of a warp, which pass the same y. A control cell has 48 rows of four
// control values, component after component. Lane l keeps row l, and row l + 32 if there is one. Sums have the order of
// spline_displacement, so the bits are the same.
struct warp_displacement {
  const deformation& drawn;
  std::int32_t lane;
  std::int64_t last = -1;
  float own[2][4] = {};

  __device__ __forceinline__ static double from(double v, std::int32_t lane) {
    return __shfl_sync(0xffffffffu, v, lane);
  }

  __device__ __forceinline__ point3 operator()(const point3& y) {
    const point3 q = drawn.to_control(y);
    std::int32_t cell[3];
    double w[3][4];
    for (int k = 0; k < 3; ++k) {
      const spline_cell c = spline_cell_of(q[k], drawn.control_points[k]);
      cell[k] = c.index;
      spline_weights(c.t, w[k]);
    }
    fetch(cell);
    double volume[2];
    SUTURE_UNROLL
    for (int i = 0; i < 2; ++i) {
      double row = 0, plane = 0;
      SUTURE_UNROLL
      for (int c = 0; c < 4; ++c) row = fma(w[2][c], static_cast<double>(own[i][c]), row);
      SUTURE_UNROLL
      for (int b = 0; b < 4; ++b) plane = fma(w[1][b], from(row, (lane & ~3) + b), plane);
      volume[i] = 0;
      SUTURE_UNROLL
      for (int a = 0; a < 4; ++a) volume[i] = fma(w[0][a], from(plane, (lane & 16) + 4 * a), volume[i]);
    }
    return {from(volume[0], 0), from(volume[0], 16), from(volume[1], 0)};
  }

private:
  __device__ __forceinline__ void fetch(const std::int32_t (&cell)[3]) {
    const vec3<std::int32_t>& n = drawn.control_points;
    const std::int64_t cell_index = (std::int64_t{cell[0]} * n[1] + cell[1]) * n[2] + cell[2];
    if (cell_index == last) return;
    last = cell_index;
    SUTURE_NO_UNROLL
    for (std::int32_t i = 0; i < 8; ++i) {
      const std::int32_t row = (i < 4 ? 0 : 32) + lane, c = i & 3;
      if (row >= 48) break;
      const float v = control_value(drawn, row >> 4, cell[0] + ((row >> 2) & 3), cell[1] + (row & 3), cell[2] + c);
      SUTURE_UNROLL
      for (std::int32_t j = 0; j < 8; ++j)  // constant indices keep the values in registers
        if (j == i) own[j / 4][j % 4] = v;
    }
  }
};

// The arguments of a kernel: maps, lists and results in device memory.
template <class T, class Result>
struct device_lists {
  using result_type = Result;
  const point_map* maps;
  std::int64_t samples, count;
  const T* values;
  const std::int64_t* offsets;
  Result* results;

  // Returns the map of value i, or null if the value cannot be moved or no map is loaded.
  __device__ __forceinline__ const point_map* map_of(std::int64_t i) const {
    const std::int64_t sample = list_of(offsets, samples, i);
    return sample >= 0 && can_move(values[i]) && maps[sample].mark == point_map_mark ? maps + sample : nullptr;
  }
};

// Moves points to the source or to the output, one warp per point. Six blocks must fit the registers of a
// multiprocessor.
template <class Lists>
__global__ void __launch_bounds__(point_threads, 6) move_points_kernel(const __grid_constant__ Lists lists) {
  require_ieee_arithmetic();
  const auto lane = static_cast<std::int32_t>(threadIdx.x) & 31;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * point_warps + (threadIdx.x >> 5);
  if (i >= lists.count) return;
  const point_map* map = lists.map_of(i);
  using result_type = typename Lists::result_type;
  result_type result = not_moved<result_type>();
  if (map != nullptr) result = map->template moved<result_type>(lists.values[i], warp_displacement{map->drawn, lane});
  if (lane == 0) lists.results[i] = result;
}

// Moves boxes to the source or to the output, one block per box, whose warps divide the points of its surface.
template <class Lists>
__global__ void __launch_bounds__(point_threads) move_boxes_kernel(const __grid_constant__ Lists lists) {
  require_ieee_arithmetic();
  using result_type = typename Lists::result_type;
  __shared__ result_type parts[point_warps];
  const auto lane = static_cast<std::int32_t>(threadIdx.x) & 31, warp = static_cast<std::int32_t>(threadIdx.x) >> 5;
  const std::int64_t i = blockIdx.x;
  const point_map* map = lists.map_of(i);
  if (map == nullptr) {
    if (threadIdx.x == 0) lists.results[i] = not_moved<result_type>();
    return;
  }
  const box given = lists.values[i];
  const lattice_surface surface = map->template surface_of<result_type>(given);
  result_type own = point_map::nothing_yet<result_type>();
  warp_displacement u{map->drawn, lane};
  SUTURE_NO_UNROLL
  for (std::int32_t point = warp; point < surface.points(); point += point_warps)
    map->add_surface_point(own, given, surface, point, u);
  if (lane == 0) parts[warp] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int other = 1; other < point_warps; ++other) point_map::join(own, parts[other]);
  map->finish(own);
  lists.results[i] = own;
}

// Queues the upload of the maps of a batch to the workspace: for both directions, or only for to_source, which needs no
// invertible maps.
template <class Chain>
void upload_maps(const cuda& exec, const planned<Chain>& plan, bool both_ways, std::string_view name) {
  check_device_workspace(exec, plan.size() * sizeof(point_map), {name}, "workspace: ");
  std::vector<point_map> maps;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const site where{name, static_cast<std::int64_t>(i)};
    maps.push_back(forward_map(plan.geometry(i), where));
    check_memory(exec, plan.geometry(i).drawn.given, where, "control_values of elastic: ");
    if (both_ways) invert(maps.back(), where);
  }
  upload_list(exec, name, maps, reinterpret_cast<point_map*>(exec.workspace.data()));
}

template <class T>
inline constexpr std::size_t values_of_a_block = std::is_same_v<T, box> ? 1 : point_warps;

// Checks lists and workspace before anything is queued.
template <class Chain, class T, class Result>
void check_device_lists(const cuda& exec, const planned<Chain>& plan, const ragged<T>& lists,
                        std::span<Result> results) {
  check_lists(plan.size(), lists, results);
  const site where{mover<Result>};
  check_device_workspace(exec, plan.size() * sizeof(point_map), where, "workspace: ");
  if (!results.empty()) each_list_pointer(memory_check(exec), lists, results);
  require(results.size() / values_of_a_block<T> < 2147483647, where, results.size(),
          " values exceed the grid of a kernel");
}

// Queues the kernel for lists that were checked.
template <class Chain, class T, class Result>
void move_on_device(const cuda& exec, const planned<Chain>& plan, const ragged<T>& lists, std::span<Result> results) {
  if (results.empty()) return;
  const std::size_t blocks = (results.size() + values_of_a_block<T> - 1) / values_of_a_block<T>;
  const device_lists<T, Result> on_device{reinterpret_cast<const point_map*>(exec.workspace.data()),
                                          static_cast<std::int64_t>(plan.size()),
                                          static_cast<std::int64_t>(results.size()),
                                          lists.values.data(),
                                          lists.offsets.data(),
                                          results.data()};
  if constexpr (std::is_same_v<T, box>)
    move_boxes_kernel<<<static_cast<unsigned>(blocks), point_threads, 0, exec.stream>>>(on_device);
  else
    move_points_kernel<<<static_cast<unsigned>(blocks), point_threads, 0, exec.stream>>>(on_device);
  check_cuda(cudaGetLastError(), mover<Result>, exec.at);
}

template <class Chain, class T, class Result>
void move_loaded(const cuda& exec, const planned<Chain>& plan, const ragged<T>& lists, std::span<Result> results) {
  check_device_lists(exec, plan, lists, results);
  move_on_device(exec, plan, lists, results);
}

template <class Chain, class T, class Result>
void load_and_move(const cuda& exec, const planned<Chain>& plan, const ragged<T>& lists, std::span<Result> results) {
  check_device_lists(exec, plan, lists, results);
  upload_maps(exec, plan, !goes_to_source<Result>, mover<Result>);
  move_on_device(exec, plan, lists, results);
}

}  // namespace detail

// Returns the bytes of workspace for the maps of a batch.
template <class Chain>
std::size_t workspace_bytes(const planned<Chain>& plan) {
  return plan.size() * sizeof(detail::point_map);
}

// Queues the upload of the maps of a batch to the workspace, for both directions.
// Errors: a workspace that is too small or not aligned to 256 bytes, a plan that undoes a deformation, a map that cannot
//   be inverted.
template <class Chain>
void load_maps(const cuda& exec, const planned<Chain>& plan) {
  detail::upload_maps(exec, plan, true, "load_maps");
}

// These queue to_source or to_output for lists in device memory, including offsets, by the maps that load_maps has put
//   in the workspace. They queue one kernel for the batch, whose arguments do not depend on draws. A graph that
//   captured it serves every batch with the same number of samples and the same number of values. If a batch has fewer
//   values, those beyond the last list are ignored; their results are not `valid`, nor are any before maps are loaded.
// Errors: a workspace that load_maps refuses, a number of offsets other than samples + 1, a number of results other than
//   that of the values. Offsets are in device memory and not checked; the result of a value that is in no list by them
//   is not `valid`.
template <class Chain, class T>
void to_source_loaded(const cuda& exec, const planned<Chain>& plan, const ragged<T>& lists,
                      std::span<detail::in_source<T>> results) {
  detail::move_loaded(exec, plan, lists, results);
}
template <class Chain, class T>
void to_output_loaded(const cuda& exec, const planned<Chain>& plan, const ragged<T>& lists,
                      std::span<detail::in_output<T>> results) {
  detail::move_loaded(exec, plan, lists, results);
}

// These queue the upload of the maps and then the kernel. Here to_source also takes maps that cannot be inverted.
template <class Chain, class T>
void to_source(const cuda& exec, const planned<Chain>& plan, const ragged<T>& lists,
               std::span<detail::in_source<T>> results) {
  detail::load_and_move(exec, plan, lists, results);
}
template <class Chain, class T>
void to_output(const cuda& exec, const planned<Chain>& plan, const ragged<T>& lists,
               std::span<detail::in_output<T>> results) {
  detail::load_and_move(exec, plan, lists, results);
}

}  // namespace suture
