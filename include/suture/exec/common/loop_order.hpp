// SPDX-License-Identifier: Apache-2.0
// The order in which an executor visits the axes of an output. Lanes, the innermost loop, run along the axis with the
// smallest stride, except where loops_of_strips (CPU) or loops_of_sample (CUDA) chooses another. Coordinates of the
// source keep their axes, so that every voxel keeps its arithmetic and its bits.
#pragma once

#include <iterator>
#include <utility>

#include "../../evaluate/sample_parameters.hpp"

namespace suture::detail {

// The axes (0 is z, 1 is y, 2 is x) that planes, rows and lanes run along, by sample_parameters::loops.
inline constexpr std::uint8_t loop_axes[6][3] = {{0, 1, 2}, {0, 2, 1}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}, {1, 0, 2}};

// Returns the index in loop_axes that orders the axes by decreasing stride. Axes of one voxel count as the outermost.
// Equal strides keep the order z, y, x.
inline std::uint8_t loops_in_memory(const std::int64_t (&stride)[3], const std::int64_t (&n)[3]) {
  const auto apart = [&](int k) {
    const std::uint64_t s = static_cast<std::uint64_t>(stride[k]);
    return n[k] == 1 ? ~std::uint64_t{0} : stride[k] < 0 ? 0 - s : s;
  };
  int axes[3] = {0, 1, 2};
  for (const auto& [i, j] : {std::pair{0, 1}, std::pair{1, 2}, std::pair{0, 1}})
    if (apart(axes[i]) < apart(axes[j])) std::swap(axes[i], axes[j]);
  std::uint8_t order = 0;
  while (loop_axes[order][0] != axes[0] || loop_axes[order][1] != axes[1]) ++order;
  return order;
}

template <class T>
void reorder(T (&by_axis)[3], std::uint8_t loops) {
  const T old[3] = {by_axis[0], by_axis[1], by_axis[2]};
  for (int j = 0; j < 3; ++j) by_axis[j] = old[loop_axes[loops][j]];
}

// Returns the index in loop_axes that orders the axes of the first output of sample i by decreasing stride.
template <class Plan, class Binding, class... Others>
std::uint8_t memory_order_of_output(const Plan& plan, std::size_t i, const Binding& first, const Others&...) {
  const extent3& n = plan.output_grid(i).extents;
  const extent3& stride = first.out[i].stride;
  return loops_in_memory({stride[0], stride[1], stride[2]}, {n[0], n[1], n[2]});
}

// Returns the memory order of the first output of sample i, from which CUDA's loops_of_sample chooses; the CPU uses
// loops_of_strips. With geometry and lanes along x it is z, y, x, as sums that neighboring planes of z share are kept.
template <class Plan, class... Bindings>
std::uint8_t loops_of_output(const Plan& plan, std::size_t i, const Bindings&... bindings) {
  const std::uint8_t loops = memory_order_of_output(plan, i, bindings...);
  return Plan::pipeline_type::has_geometry && loop_axes[loops][2] == 2 ? std::uint8_t{0} : loops;
}

// Returns the index in loop_axes whose lanes run along x, and whose rows run along z or y, whichever has the smaller
// stride in a memory order.
inline std::uint8_t with_lanes_along_x(std::uint8_t memory_order) {
  const std::uint8_t(&axes)[3] = loop_axes[memory_order];
  const int denser = axes[2] != 2 ? axes[2] : axes[1];
  return denser == 0 ? std::uint8_t{5} : std::uint8_t{0};
}

// Returns the index in loop_axes whose rows run along x, and whose lanes run along the axis with the smallest stride in
// a memory order, which must be z or y.
inline std::uint8_t with_rows_along_x(std::uint8_t memory_order) {
  return loop_axes[memory_order][2] == 0 ? std::uint8_t{3} : std::uint8_t{1};
}

// Returns the loop (0 planes, 1 rows, 2 lanes) that runs along an axis.
inline int loop_along(std::uint8_t loops, int axis) {
  constexpr std::uint8_t loop_of_axis[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {1, 0, 2}};
  return loop_of_axis[loops][axis];
}

// Reorders the extents, maps and strides of a record whose loops are z, y, x for another order of loops. Sources are
// reordered only without geometry.
template <class Record>
void set_loops(Record& r, std::uint8_t loops) {
  if (loops == 0) return;
  auto& sample = r.sample;
  using P = typename std::remove_cvref_t<decltype(sample)>::pipeline_type;
  sample.loops = loops;
  reorder(sample.extents, loops);
  for (auto& row : sample.map.linear) reorder(row, loops);
  if constexpr (P::has_deformation)
    for (auto& row : sample.controls.to_control.linear) reorder(row, loops);
  for (target_tensor& out : r.out) reorder(out.stride, loops);
  if constexpr (P::is_staged)
    for (std::size_t b = 0; b < std::size(r.staged); ++b) {
      reorder(r.staged[b].out.stride, loops);
      if (r.staged[b].channels > 0 && r.staged[b].finished == 0) {  // buffers between stages are dense in loop order
        const std::int64_t unit = r.out[b].stride[loop_along(loops, 2)];
        const std::int64_t row = unit * sample.extents[2];
        r.out[b].stride[2] = unit;
        r.out[b].stride[1] = row;
        r.out[b].stride[0] = row * sample.extents[1];
      }
    }
  if constexpr (!P::has_geometry)
    for (source_tensor& in : r.in) {
      reorder(in.stride, loops);
      reorder(in.extents, loops);
    }
  if constexpr (requires { r.levels; })
    for (level_list& list : r.levels)
      for (std::int32_t l = 0; l < list.count; ++l) {
        reorder(list.levels[l].to.stride, loops);
        reorder(list.levels[l].extents, loops);
      }
}

}  // namespace suture::detail
