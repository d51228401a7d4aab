// SPDX-License-Identifier: Apache-2.0
// The fused part on CUDA: one kernel for the batch. Most samples are made tile by tile; where nothing is moved, in
// runs.
#pragma once

#include "../common/prepare.hpp"
#include "rgb_vectors.cuh"
#include "integer_shift_copy.cuh"
#include "ieee.cuh"
#include "shared_normals.cuh"
#include "plane_walk.cuh"
#include "records.cuh"
#include "tile.cuh"

namespace suture::detail {

// Where nothing is moved and there is little to do for a voxel, a thread makes 8 neighbours of a row instead, read and
// written in one piece where they lie so.
inline constexpr std::int32_t runs_in_block = 512;
template <class Evaluator>
inline constexpr bool in_runs =
    !Evaluator::pipeline_type::has_geometry && !Evaluator::pipeline_type::is_colour &&
    !Evaluator::converts_or_has_levels && !any_needs_voxel<typename Evaluator::pipeline_type::taps> &&
    !any_needs_voxel<typename Evaluator::pipeline_type::outputs>;

// Colour is mostly that of planes, in which a lane has no z to walk along. A block then makes several tiles, one below
// the other, so that what it does once is not done for every voxel. Where colours are worked on at each tap that is
// little, and takes registers.
inline constexpr std::int32_t rows_in_plane = 4;
template <class Evaluator>
inline constexpr bool makes_rows = Evaluator::pipeline_type::is_colour && (!Evaluator::pipeline_type::has_geometry ||
                                                                           Evaluator::pipeline_type::taps::size == 0);

// Lanes of a warp along x, the others along y. Where runs are turned, more of the warps whose square is closer to one
// stay inside the source.
template <class Evaluator>
inline constexpr int warp_x = in_colour_runs<Evaluator>&& Evaluator::pipeline_type::has_geometry ? 8 : 16;

// Whether there are kernels of their own for samples of one channel. It is the rule, and by itself it needs neither
// counts nor steps, nor registers for them.
template <class Evaluator>
inline constexpr bool has_one_channel_kernel =
    Evaluator::pipeline_type::has_geometry && !Evaluator::pipeline_type::is_colour;

// The voxels of a thread.
template <bool WithLabels, bool OneChannel, class Evaluator>
__device__ __forceinline__ void make_column(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                            std::int32_t number, std::int32_t z0, std::int32_t z1, std::int32_t y,
                                            std::int32_t x, const normals_ahead* ahead) {
  using P = typename Evaluator::pipeline_type;
  if constexpr (walks_planes<Evaluator>) {
    if (r.sample.keeps_planes) {
      make_plane_column<WithLabels, OneChannel>(evaluate, r, number, z0, z1, y, x, ahead);
      return;
    }
  }
  // Where there is a loop over channels registers are scarce; with a deformation other things wait in memory.
  constexpr bool keeps_steps =
      OneChannel || !has_one_channel_kernel<Evaluator> || P::has_deformation || P::inverts_deformation;
  typename Evaluator::places at(r, z0, y, x, ahead);
  if constexpr (P::has_geometry) {
    column<P> walk(r.sample, z0, y, x);
    SUTURE_ROLLED
    for (std::int32_t z = z0; z < z1; ++z, walk.template step<keeps_steps>(), at.template step<keeps_steps>(r)) {
      coordinate c[3];
      walk.locate(c);
      evaluate.template write<WithLabels, OneChannel>(r, number, c, at, z, y, x, ahead);
    }
  } else {
    SUTURE_ROLLED
    for (std::int32_t z = z0; z < z1; ++z, at.template step<keeps_steps>(r))
      evaluate.template write<WithLabels, OneChannel>(r, number, {}, at, z, y, x, ahead);
  }
}

// By all threads of a block: true if the tile has been made as a copy.
template <bool WithLabels, class Evaluator>
__device__ __forceinline__ bool made_as_copy(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                             std::int32_t number, const column_of_thread& at,
                                             const normals_ahead* ahead) {
  if constexpr (copies_tiles<Evaluator>)
    return r.sample.stands_on_voxels && copy_tile<WithLabels>(evaluate, r, number, at, ahead);
  else
    return false;
}

template <bool WithLabels, bool OneChannel, class Evaluator>
__device__ __forceinline__ void make_tile(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                          std::int32_t number, const tile_counts& tiles) {
  auto at = column_of_thread::in_tile<colour_run<Evaluator>, warp_x<Evaluator>>(tiles, r.sample.extents);
  if constexpr (Evaluator::normals > 0) {
    __shared__ room_for_normals<Evaluator::normals> room;
    static_assert(sizeof(room) <= bytes_ahead<Evaluator::normals>);
    const std::int32_t first = static_cast<std::int32_t>(blockIdx.z) << tiles.channel_shift;
    const std::int32_t channels = min(Evaluator::image_channels(r) - first, 1 << tiles.channel_shift);
    if (channels <= 0 || at.z0 >= at.z1) return;
    room.set({first, channels, tiles.channel_shift, 1 << tiles.channel_shift});
    if (__any_sync(0xffffffff, at.inside)) room.make(r.sample.outputs, r.sample.extents, at.z0, at.y, at.x);
    const normals_ahead ahead = room.ahead();
    if (made_as_copy<WithLabels>(evaluate, r, number, at, &ahead) || !at.inside) return;
    make_column<WithLabels, OneChannel>(evaluate, r, number, at.z0, at.z1, at.y, at.x, &ahead);
  } else if constexpr (in_colour_runs<Evaluator>) {
    make_colour_rows<WithLabels>(evaluate, r, number, tiles.rows, tile_y, at.z0, at.z1, at.y, at.x);
  } else if constexpr (makes_rows<Evaluator>) {
    SUTURE_ROLLED
    for (std::int32_t row = 0; row < tiles.rows; ++row, at.y += tile_y)
      if (at.x < r.sample.extents[2] && at.y < r.sample.extents[1])
        make_column<WithLabels, OneChannel>(evaluate, r, number, at.z0, at.z1, at.y, at.x, nullptr);
  } else {
    if (made_as_copy<WithLabels>(evaluate, r, number, at, nullptr) || !at.inside) return;
    make_column<WithLabels, OneChannel>(evaluate, r, number, at.z0, at.z1, at.y, at.x, nullptr);
  }
}

// 8 elements in as few pieces as there are 16 bytes in them.
template <class T>
__device__ __forceinline__ void copy_run(const T* from, T* to) {
  using piece = std::conditional_t<sizeof(T) == 1, uint2, uint4>;
  constexpr int pieces = static_cast<int>(8 * sizeof(T) / sizeof(piece));
  SUTURE_UNROLL
  for (int i = 0; i < pieces; ++i) reinterpret_cast<piece*>(to)[i] = reinterpret_cast<const piece*>(from)[i];
}
template <class T>
__device__ __forceinline__ bool in_one_piece(const T* p, std::int64_t stride) {
  return stride == 1 && reinterpret_cast<std::uintptr_t>(p) % (sizeof(T) == 1 ? 8 : 16) == 0;
}

// The first `count` of 8 neighbours of a row, or all of them.
template <class T>
__device__ __forceinline__ void store_run(const T (&made)[8], T* to, std::int64_t stride, std::int32_t count) {
  if (count >= 8 && in_one_piece(to, stride)) {
    copy_run(made, to);
  } else {
    SUTURE_UNROLL
    for (int i = 0; i < 8; ++i)
      if (i < count) to[i * stride] = made[i];
  }
}

// 8 neighbours of a row, or as many as there are.
template <std::size_t B, class Evaluator>
__device__ __forceinline__ void make_run(const typename Evaluator::record_type& r, std::int32_t number, std::int32_t z,
                                         std::int32_t y, std::int32_t x0) {
  using pair = typename Evaluator::template pair<B>;
  using In = typename Evaluator::template binding_type<B>::input;
  using Out = typename pair::Out;
  using unit = typename pair::unit;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  const std::int32_t count = r.sample.extents[2] - x0;
  const In* from =
      in_global_memory(static_cast<const In*>(in.data)) + z * in.stride[0] + y * in.stride[1] + x0 * in.stride[2];
  unit* to =
      in_global_memory(static_cast<unit*>(out.data)) + z * out.stride[0] + y * out.stride[1] + x0 * out.stride[2];
  for (std::int32_t channel = 0; channel < in.channels;
       ++channel, from += in.channel_stride, to += out.channel_stride) {
    alignas(16) In read[8] = {};
    alignas(16) Out made[8];
    if (count >= 8 && in_one_piece(from, in.stride[2])) {
      copy_run(from, read);
    } else {
      SUTURE_UNROLL
      for (int i = 0; i < 8; ++i)
        if (i < count) read[i] = from[i * in.stride[2]];
    }
    SUTURE_UNROLL
    for (int i = 0; i < 8; ++i) made[i] = pair::of_element(r.sample, in, read[i], number, channel, z, y, x0 + i);
    if (Evaluator::template finishes<B>(r)) {
      alignas(16) unit finished[8];
      SUTURE_UNROLL
      for (int i = 0; i < 8; ++i) finished[i] = Evaluator::template element<B>(r, made[i]);
      store_run(finished, to, out.stride[2], count);
    } else {
      store_run(made, reinterpret_cast<Out*>(to), 1, count);  // between stages
    }
  }
}

template <bool WithLabels, class Evaluator>
__device__ __forceinline__ void make_runs(const typename Evaluator::record_type& r, std::int32_t number) {
  const auto& n = r.sample.extents;
  const auto in_row = static_cast<std::uint32_t>((n[2] + 7) / 8), rows = static_cast<std::uint32_t>(n[1]);
  const std::uint32_t runs = in_row * rows * static_cast<std::uint32_t>(n[0]);
  SUTURE_ROLLED
  for (std::uint32_t k = threadIdx.x; k < runs_in_block; k += blockDim.x) {
    const std::uint32_t i = blockIdx.x * runs_in_block + k, row = i / in_row;
    if (i >= runs) return;
    const auto x = static_cast<std::int32_t>(i - row * in_row) * 8;
    const auto z = static_cast<std::int32_t>(row / rows);
    const auto y = static_cast<std::int32_t>(row - static_cast<std::uint32_t>(z) * rows);
    const auto one = [&]<std::size_t B>() {
      if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label)
        make_run<B, Evaluator>(r, number, z, y, x);
    };
    [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
  }
}

template <bool WithLabels, bool OneChannel, class Evaluator>
__device__ __forceinline__ void make_part(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                          std::int32_t number, const tile_counts& tiles) {
  if constexpr (in_runs<Evaluator>)
    make_runs<WithLabels, Evaluator>(r, number);
  else
    make_tile<WithLabels, OneChannel>(evaluate, r, number, tiles);
}

// Blocks on a multiprocessor that the registers are to last for: a sample with many parameters needs more of them, and
// so do four pixels at once that come from a turned source.
template <class Evaluator>
inline constexpr int fused_blocks = sizeof(typename Evaluator::record_type) > 1050 ||
                                            (in_colour_runs<Evaluator> && Evaluator::pipeline_type::has_geometry)
                                        ? 3
                                        : 4;

// The records of a small batch are carried in the arguments of the kernel, which leaves them for the stages that
// follow.
template <bool WithLabels, class Evaluator, bool OneChannel = has_one_channel_kernel<Evaluator>>
__global__ void __launch_bounds__(256, fused_blocks<Evaluator>) fused_kernel(
    const __grid_constant__ Evaluator evaluate,
    const __grid_constant__ carried_records<typename Evaluator::pipeline_type, typename Evaluator::record_type> carried,
    tile_counts tiles) {
  require_ieee_arithmetic();
  __shared__ record_at_hand<typename Evaluator::record_type> at_hand;
  const auto number = static_cast<std::int32_t>(blockIdx.y);
  const auto* record = evaluate.records + number;
  if constexpr (carried.possible) {
    if (carried.to != nullptr) {
      record = carried.records + number;
      if constexpr (Evaluator::pipeline_type::is_staged)
        if (blockIdx.x == 0) put_record(*record, carried.to + number);
    }
  }
  make_part<WithLabels, OneChannel>(evaluate, at_hand.take(*record), number, tiles);
}

template <class In, class Out, bool IsLabel, class... Rest>
std::int32_t image_channels(const binding<In, Out, IsLabel, Rest...>& bound, std::size_t sample) {
  return IsLabel ? 0 : static_cast<std::int32_t>(bound.source(sample).channels);
}

template <class Evaluator, class Plan, class... Bindings>
tile_counts count_tiles(const Plan& plan, const Bindings&... bindings) {
  tile_counts tiles;
  if constexpr (makes_rows<Evaluator>) {
    bool planes = true;
    for (std::size_t i = 0; i < plan.size(); ++i) planes = planes && plan.output_grid(i).extents[0] == 1;
    if (planes) tiles.rows = rows_in_plane;
  }
  if constexpr (Evaluator::normals > 0) {
    constexpr std::int32_t turns = room_for_normals<Evaluator::normals>::turns;
    std::int32_t channels = 1;
    for (std::size_t i = 0; i < plan.size(); ++i) channels = std::max({channels, image_channels(bindings, i)...});
    while (1 << tiles.channel_shift < std::min(channels, turns)) ++tiles.channel_shift;
    tiles.depth = turns >> tiles.channel_shift;
    tiles.parts = ((channels - 1) >> tiles.channel_shift) + 1;
  }
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const extent3& n = plan.output_grid(i).extents;
    if constexpr (in_runs<Evaluator>) {
      const std::int64_t runs = (n[2] + 7) / 8 * n[1] * n[0];
      require(runs < 4294967295 - runs_in_block, {"run", static_cast<std::int64_t>(i)}, "extents ", n,
              " are more than a kernel counts");
      tiles.x = std::max(tiles.x, static_cast<std::int32_t>((runs + runs_in_block - 1) / runs_in_block));
    } else {
      constexpr std::int32_t wide = tile_x * colour_run<Evaluator>;
      tiles.x = std::max(tiles.x, static_cast<std::int32_t>((n[2] + wide - 1) / wide));
      tiles.y = std::max(tiles.y, static_cast<std::int32_t>((n[1] + tiles.rows * tile_y - 1) / (tiles.rows * tile_y)));
      tiles.z = std::max(tiles.z, static_cast<std::int32_t>((n[0] + tiles.depth - 1) / tiles.depth));
    }
  }
  if constexpr (Evaluator::normals == 0 && !in_runs<Evaluator>)
    while (tiles.depth < deepest_tile && tiles.all() * static_cast<std::int64_t>(plan.size()) >= 2 * many_tiles) {
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
