// SPDX-License-Identifier: Apache-2.0
// The order in which an executor visits the axes of an output. Lanes run along the axis that lies densest in memory,
// whichever that is. Coordinates of the source keep their axes, so that every voxel keeps its arithmetic and its bits.
#pragma once

#include <utility>

#include "../../evaluate/sample_parameters.hpp"
#include "lanes.hpp"

namespace suture::detail {

// The axes (0 is z, 1 is y, 2 is x) that planes, rows and lanes run along, by sample_parameters::loops.
inline constexpr std::uint8_t loop_axes[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};

// The index in loop_axes that visits an output of these strides as it lies in memory. Axes of one voxel count as the
// outermost. Equal strides keep the order z, y, x.
inline std::uint8_t loops_in_memory(const std::int64_t (&stride)[3], const std::int32_t (&n)[3]) {
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

// Turns a record whose loops are z, y, x into one that an executor visits in another order.
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

// The voxel of the output at (plane, row, lane) of the loops.
template <class Pipeline>
voxel voxel_of_loops(const sample_parameters<Pipeline>& sample, const voxel_index& i) {
  const std::uint8_t(&axes)[3] = loop_axes[sample.loops];
  std::int32_t at[3], n[3];
  for (int j = 0; j < 3; ++j) n[axes[j]] = sample.extents[j];
  at[axes[0]] = i.z;
  at[axes[1]] = i.y;
  at[axes[2]] = i.x;
  return voxel_at(n, {i.sample, i.channel, at[0], at[1], at[2]});
}

// Where lanes stand that run along any axis.
struct along_loops {
  voxel first;
  std::int32_t step[3];
  std::uint64_t element_step;

  template <class Pipeline>
  along_loops(const sample_parameters<Pipeline>& sample, const voxel_index& i) : first(voxel_of_loops(sample, i)) {
    const voxel next = voxel_of_loops(sample, {i.sample, i.channel, i.z, i.y, i.x + 1});
    step[0] = next.z - first.z;
    step[1] = next.y - first.y;
    step[2] = next.x - first.x;
    element_step = next.element - first.element;
  }

  SUTURE_INLINE voxel operator()(int l) const {
    voxel at = first;
    at.z += l * step[0];
    at.y += l * step[1];
    at.x += l * step[2];
    at.element += static_cast<std::uint64_t>(l) * element_step;
    return at;
  }
  SUTURE_INLINE along_loops in_channel(std::int32_t channel) const {
    along_loops other = *this;
    other.first = suture::in_channel(first, channel);
    return other;
  }
};

// Calls use(place) with where the lanes at (plane, row, first lane) of the loops stand.
template <class Pipeline, class Use>
SUTURE_INLINE void with_place(const sample_parameters<Pipeline>& sample, const voxel_index& i, const Use& use) {
  if constexpr (any_needs_voxel<typename Pipeline::outputs>)
    if (sample.loops != 0) {
      use(along_loops(sample, i));
      return;
    }
  use(along_x{voxel_at(sample.extents, i)});
}

}  // namespace suture::detail
