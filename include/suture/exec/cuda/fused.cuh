// SPDX-License-Identifier: Apache-2.0
// The fused part on CUDA: one kernel for the batch. Each of its blocks computes voxels of one sample, by one of several
// paths.
#pragma once

#include "../common/largest_extents.hpp"
#include "column_walk.cuh"
#include "ieee.cuh"
#include "integer_shift_copy_tile.cuh"
#include "loop_order.cuh"
#include "plane_walk.cuh"
#include "records.cuh"
#include "rgb_vectors.cuh"
#include "shared_normals.cuh"
#include "vector_runs.cuh"

namespace suture::detail {

// The paths in order of preference; the last one serves every sample.
using cuda_paths = path_list<vector_runs, rgb_vectors, integer_shift_copy_tile, plane_walk, column_walk>;

// Computes the voxels of a block, after the normals that its threads share, if the operations draw any.
template <bool WithLabels, bool OneChannel, class Paths, class Evaluator>
__device__ __forceinline__ void make_block(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                           std::int32_t sample_index, const tile_counts& tiles) {
  using shape = shape_of<Evaluator, Paths>;
  const auto at = column_of_thread::in_tile<shape::run, shape::wide>(tiles, r.sample.extents);
  if constexpr (Evaluator::normals > 0) {
    __shared__ room_for_normals<Evaluator::normals> room;
    static_assert(sizeof(room) <= bytes_ahead<Evaluator::normals>);
    const std::int32_t first = static_cast<std::int32_t>(blockIdx.z) << tiles.channel_shift;
    const std::int32_t channels = min(Evaluator::image_channels(r) - first, 1 << tiles.channel_shift);
    if (channels <= 0 || at.z0 >= at.z1) return;
    room.set({first, channels, tiles.channel_shift, 1 << tiles.channel_shift});
    room.make(r.sample, at);
    const shared_normals ahead = room.ahead();
    make_by_first<WithLabels, OneChannel, shape>(Paths{},
                                                 block_work<Evaluator>{evaluate, r, sample_index, tiles, at, &ahead});
  } else {
    make_by_first<WithLabels, OneChannel, shape>(Paths{},
                                                 block_work<Evaluator>{evaluate, r, sample_index, tiles, at, nullptr});
  }
}

// The kernel of the fused part. Its grid is (tiles, samples, groups of channels). The records of a small batch travel
// in its arguments (carried); it stores them in the workspace for the stages and levels that follow.
template <bool WithLabels, class Evaluator, bool OneChannel = has_one_channel_kernel<Evaluator>,
          class Paths = cuda_paths>
__global__ void __launch_bounds__(fused_threads, shape_of<Evaluator, Paths>::blocks) fused_kernel(
    const __grid_constant__ Evaluator evaluate,
    const __grid_constant__ carried_records<typename Evaluator::pipeline_type, typename Evaluator::record_type> carried,
    tile_counts tiles) {
  require_ieee_arithmetic();
  __shared__ record_at_hand<typename Evaluator::record_type> at_hand;
  const auto sample_index = static_cast<std::int32_t>(blockIdx.y);
  const auto* record = evaluate.records + sample_index;
  if constexpr (carried.possible) {
    if (carried.to != nullptr) {
      record = carried.records + sample_index;
      if constexpr (Evaluator::pipeline_type::is_staged || Evaluator::has_levels)
        if (blockIdx.x == 0) put_record(*record, carried.to + sample_index);
    }
  }
  const auto& r = at_hand.copy(*record);
  if (r.mark != evaluate.mark) return;
  make_block<WithLabels, OneChannel, Paths>(evaluate, r, sample_index, tiles);
}

template <class In, class Out, bool IsLabel, class... Rest>
std::int32_t image_channels(const binding<In, Out, IsLabel, Rest...>& bound, std::size_t sample) {
  return IsLabel ? 0 : static_cast<std::int32_t>(bound.source(sample).channels);
}

// Counts the tiles of a batch: enough for its largest sample. any_batch states that the launch is captured in a graph,
// which later gets other batches: outputs up to the largest extents along each axis, in any order of axes in memory.
template <class Evaluator, class Paths, bool ToOutput, class Plan, class... Bindings>
tile_counts count_tiles(bool any_batch, const Plan& plan, const Bindings&... bindings) {
  using shape = shape_of<Evaluator, Paths>;
  tile_counts tiles;
  if constexpr (shape::stacks) {
    bool planes = true;
    for (std::size_t i = 0; i < plan.size(); ++i) planes = planes && plan.output_grid(i).extents[0] == 1;
    if (planes) tiles.rows = rows_in_plane;
  }
  if constexpr (Evaluator::normals > 0) {
    constexpr std::int32_t slots = room_for_normals<Evaluator::normals>::slots;
    std::int32_t channels = 1;
    for (std::size_t i = 0; i < plan.size(); ++i) channels = std::max({channels, image_channels(bindings, i)...});
    while (1 << tiles.channel_shift < std::min(channels, slots)) ++tiles.channel_shift;
    tiles.depth = slots >> tiles.channel_shift;
    tiles.parts = ((channels - 1) >> tiles.channel_shift) + 1;
  }
  const bool shallow = ToOutput && has_columns<Evaluator>(plan, bindings...);
  if (shallow) tiles.depth = room_planes;
  const auto count = [&](std::size_t i, const extent3& n, std::uint8_t loops) {
    const auto& axes = loop_axes[loops];
    shape::count(tiles, {n[axes[0]], n[axes[1]], n[axes[2]]}, i);
  };
  if (any_batch) {
    const extent3 most = largest_extents(plan);
    for (std::uint8_t loops = 0; loops < (ToOutput && orders_loops<Evaluator> ? 6 : 1); ++loops) count(0, most, loops);
  } else {
    for (std::size_t i = 0; i < plan.size(); ++i)
      count(i, plan.output_grid(i).extents,
            ToOutput ? loops_of_sample<Evaluator>(plan, i, bindings...) : std::uint8_t{0});
  }
  if constexpr (shape::deepens)
    while (!shallow && tiles.depth < deepest_tile &&
           tiles.all() * static_cast<std::int64_t>(plan.size()) >= 2 * many_tiles) {
      tiles.depth *= 2;
      tiles.z = (tiles.z + 1) / 2;
    }
  require(tiles.all() <= 2147483647, {"run"}, tiles.all(), " tiles exceed the grid of a kernel");
  tiles.by_x = divisor::of(static_cast<std::uint32_t>(tiles.x));
  tiles.by_y = divisor::of(static_cast<std::uint32_t>(tiles.y));
  return tiles;
}
template <class Plan>
dim3 tile_blocks(const tile_counts& tiles, const Plan& plan) {
  return dim3(static_cast<unsigned>(tiles.x * tiles.y * tiles.z), static_cast<unsigned>(plan.size()),
              static_cast<unsigned>(tiles.parts));
}

}  // namespace suture::detail
