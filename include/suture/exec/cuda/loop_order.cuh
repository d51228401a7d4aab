// SPDX-License-Identifier: Apache-2.0
// The order in which the fused kernel visits the axes: the lanes of a warp run along the axis of the output with the
// smallest stride, except where loops_of_sample chooses another.
#pragma once

#include "../common/loop_order.hpp"
#include "../common/records.hpp"
#include "plane_walk.cuh"
#include "shared_columns.cuh"

namespace suture::detail {

template <int K, class Pipeline>
inline constexpr bool separable_stage = separable_filter<typename staging<Pipeline>::template filter_t<K>>;
template <int K, class Pipeline>
inline constexpr bool spectral_stage = spectral_filter<typename staging<Pipeline>::template filter_t<K>>;
template <class Pipeline>
using every_stage = std::make_integer_sequence<int, Pipeline::schedule.stage_count>;
template <class Pipeline, int... K>
constexpr bool has_spectral_stage(std::integer_sequence<int, K...>) {
  return (spectral_stage<K, Pipeline> || ...);
}

// Tests whether kernels may visit the axes in an order other than z, y, x. Operations before the geometry may use voxel
// positions. Without a geometry these follow the loops, so the order must be z, y, x. If stages or levels follow,
// colors, such operations and filters in k-space keep it too.
template <class Evaluator>
inline constexpr bool orders_loops = [] {
  using P = typename Evaluator::pipeline_type;
  constexpr bool uses_positions = any_needs_voxel<typename P::source_functors>;
  if (P::is_staged || Evaluator::has_levels)
    return !P::is_color && !uses_positions && !has_spectral_stage<P>(every_stage<P>{});
  return P::has_geometry || !uses_positions;
}();

// The largest radius along y of separable filters whose lanes run along z. Planes then run along y, and a thread keeps
// the sums across planes of two columns instead of one: their shared memory has room for these up to this radius.
inline constexpr std::int32_t largest_radius_of_lanes_z = 7;
template <int K, class Pipeline>
bool serves_lanes_along_z(const sample_parameters<Pipeline>& sample, std::int64_t channels) {
  using S = staging<Pipeline>;
  if constexpr (separable_stage<K, Pipeline>)
    for (std::int32_t channel = 0; channel < channels; ++channel)
      if (S::template on<S::template filter<K>>(sample, channel) &&
          S::template functor<S::template filter<K>>(sample).radius(1, channel) > largest_radius_of_lanes_z)
        return false;
  return true;
}
template <class Pipeline, int... K>
bool serves_lanes_along_z(const sample_parameters<Pipeline>& sample, std::int64_t channels,
                          std::integer_sequence<int, K...>) {
  return (serves_lanes_along_z<K>(sample, channels) && ...);
}

// Tests whether every input of a batch has one channel.
template <class Plan, class... Bindings>
bool one_channel(const Plan& plan, const Bindings&... bindings) {
  bool one = true;
  for (std::size_t i = 0; i < plan.size(); ++i) one = one && ((bindings.source(i).channels == 1) && ...);
  return one;
}

// Returns the index in loop_axes for sample i. Where voxels are moved or their positions are used, it is one of the
// three orders that voxel_of_walk serves. Columns then run along z, the direction in which displacements are summed,
// unless lanes do. Lanes run along z only if shared_columns.cuh has room for the deformation's columns, and separable
// filters have a radius along y for which there is shared memory.
template <class Evaluator, class Plan, class... Bindings>
std::uint8_t loops_of_sample(const Plan& plan, std::size_t i, const Bindings&... bindings) {
  using P = typename Evaluator::pipeline_type;
  if constexpr (orders_loops<Evaluator>) {
    const std::uint8_t loops = loops_of_output(plan, i, bindings...);
    if constexpr (!P::is_staged && !P::has_geometry && !any_needs_voxel<typename P::output_functors>) return loops;
    const int lanes = loop_axes[loops][2];
    if constexpr (P::separable_deformation) {
      const control_grid& g = plan.sample(i).controls;
      if (lanes == 0 && g.on && !(makes_columns<Evaluator> && fit_in_room(g))) return lanes_along_x;
    }
    if constexpr (P::is_staged)
      if (lanes == 0 && !(serves_lanes_along_z(plan.sample(i), bindings.source(i).channels, every_stage<P>{}) && ...))
        return lanes_along_x;
    return lanes == 2 ? lanes_along_x : lanes == 1 ? lanes_along_y : lanes_along_z;
  } else {
    return 0;
  }
}

// Tests whether the blocks of some sample compute columns of displacements (shared_columns.cuh).
template <class Evaluator, class Plan, class... Bindings>
bool has_columns(const Plan& plan, const Bindings&... bindings) {
  if constexpr (makes_columns<Evaluator>)
    for (std::size_t i = 0; i < plan.size(); ++i)
      if (plan.sample(i).controls.on && loops_of_sample<Evaluator>(plan, i, bindings...) == lanes_along_z) return true;
  return false;
}

// Reorders the axes of map and source like those of the output, for a sample that is copied. A copy sums nothing, so
// its bits do not depend on the order.
template <class Record>
void set_loops_of_source(Record& r, std::uint8_t loops) {
  fixed_map& map = r.sample.map;
  const fixed_map old = map;
  for (int k = 0; k < 3; ++k) {
    const int axis = loop_axes[loops][k];
    map.offset[k] = old.offset[axis];
    for (int j = 0; j < 3; ++j) map.linear[k][j] = old.linear[axis][j];
  }
  for (source_tensor& in : r.in) {
    reorder(in.stride, loops);
    reorder(in.extents, loops);
    count_pairs(in.stride, in.extents, in.pairs);
  }
}

// Swaps axes z and y of the source if columns of the output then run along source columns in y, as when lanes of a
// resampling run along z. Voxels of a column then share interpolated planes of y, as they share planes of z otherwise.
template <class Record>
void set_columns_along_y(Record& r) {
  fixed_map map = r.sample.map;
  std::swap(map.offset[0], map.offset[1]);
  std::swap(map.linear[0], map.linear[1]);
  if (kind_of(map, false) < map_kind::keeps_planes) return;
  r.sample.map = map;
  r.sample.kind = map_kind::along_y;
  for (source_tensor& in : r.in) {
    std::swap(in.stride[0], in.stride[1]);
    std::swap(in.extents[0], in.extents[1]);
    count_pairs(in.stride, in.extents, in.pairs);
  }
}

// Returns the record of sample i for the fused kernel, with its axes in the order of the loops.
template <class Evaluator, class Plan, class... Bindings>
auto make_fused_record(const Plan& plan, std::size_t i, bool to_output, const workspace_layout& l, std::byte* workspace,
                       workspace_cursor& used, const Bindings&... bindings) {
  auto r = make_record(plan, i, to_output, l, workspace, used, bindings...);
  if constexpr (orders_loops<Evaluator>) {
    using P = typename Evaluator::pipeline_type;
    const std::uint8_t loops = to_output ? loops_of_sample<Evaluator>(plan, i, bindings...) : std::uint8_t{0};
    if (loops == 0) return r;
    set_loops(r, loops);
    if constexpr (P::has_geometry) {
      if constexpr (P::interpolation_type::taps <= 2 && !ends_at_rim<typename P::border_type> &&
                    !any_needs_voxel<typename P::source_functors>)
        if (r.sample.kind == map_kind::shifted && r.sample.planar == 0) set_loops_of_source(r, loops);
      r.sample.kind = kind_of(r.sample.map, r.sample.kind == map_kind::displaced);
      if constexpr (walks_along_y<Evaluator>)
        if (r.sample.kind == map_kind::affine && one_channel(plan, bindings...)) set_columns_along_y(r);
    }
  }
  return r;
}

}  // namespace suture::detail
