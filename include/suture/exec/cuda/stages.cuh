// SPDX-License-Identifier: Apache-2.0
// The stages after the fused part, on CUDA. A stage is one kernel per pair; filters need a second one if samples of the
// batch differ in whether lanes run along x. Blocks of samples and channels that a kernel does not change return at
// once. Variables z, y and x number the planes, rows and lanes of a sample's loops (loop_order.cuh), along whichever
// axes these run. Filters act along the axes x, then y, then z in every order of loops, so the bits do not depend on
// it.
#pragma once

#include "../../base/numeric_cuda.cuh"
#include "../../evaluate/evaluator.hpp"
#include "../common/largest_extents.hpp"
#include "check_cuda.cuh"
#include "fourier.cuh"
#include "ieee.cuh"
#include "loop_order.cuh"
#include "thread_moments.cuh"

namespace suture::detail {

// A block computes a tile of 32 x 8 x `depth` voxels, each thread a column along z. Separable filters read planes
// beyond both ends, so their tiles are deeper.
inline constexpr std::int32_t stage_width = 32, stage_height = 8, stage_threads = stage_width * stage_height;
template <int K, class Pipeline>
inline constexpr bool pair_stage = pair_filter<typename staging<Pipeline>::template filter_t<K>>;
// Tests whether a stage has one kernel for samples whose lanes run along x and another for the rest (RowsAlongX). Other
// stages have one kernel for both.
template <int K, class Pipeline>
inline constexpr bool has_two_kernels = staging<Pipeline>::template filters<K> && !spectral_stage<K, Pipeline>;
// The number of blocks that a multiprocessor must be able to hold. Filters need more registers, so fewer blocks.
template <int K, class Pipeline>
inline constexpr int stage_blocks = staging<Pipeline>::template filters<K> ? 3 : 4;
template <int K, class Pipeline>
inline constexpr std::int32_t stage_depth = separable_stage<K, Pipeline> ? 32 : 16;

// Returns the number of tiles, which is that of blocks, of one channel of extents n.
template <int K, class Pipeline>
SUTURE_HD std::int64_t stage_tiles(const std::int32_t (&n)[3]) {
  constexpr std::int32_t depth = stage_depth<K, Pipeline>;
  return static_cast<std::int64_t>((n[2] + stage_width - 1) / stage_width) *
         ((n[1] + stage_height - 1) / stage_height) * ((n[0] + depth - 1) / depth);
}

// Returns the address of plane z of a channel. The asm makes the compiler compute it once; without it, the address of
// each voxel is computed from all of its terms.
__device__ __forceinline__ const float* plane_at(const float* channel, std::int32_t z, std::int64_t voxels) {
  const float* plane = channel + z * voxels;
  asm("" : "+l"(plane));
  return plane;
}

// The axes (0 is z, 1 is y, 2 is x) along which planes, rows and lanes run. In a kernel with RowsAlongX rows run along
// x, in the other lanes do.
template <bool RowsAlongX>
struct axes_of_loops {
  bool lanes_z;

  __device__ __forceinline__ explicit axes_of_loops(std::uint8_t loops)
      : lanes_z(RowsAlongX && loops == lanes_along_z) {}
  __device__ __forceinline__ int operator[](int loop) const {
    if (!RowsAlongX) return loop;
    return loop == 1 ? 2 : (loop == 0) == lanes_z ? 1 : 0;
  }
  // Rearranges three values by loop to three by axis.
  template <class T>
  __device__ __forceinline__ void by_axis(const T (&of_loop)[3], T (&of_axis)[3]) const {
    of_axis[0] = of_loop[lanes_z ? 2 : 0];
    of_axis[1] = of_loop[!RowsAlongX ? 1 : lanes_z ? 0 : 2];
    of_axis[2] = of_loop[RowsAlongX ? 1 : 2];
  }
};

// The shared memory of a block that applies a separable filter to its tile, plane by plane.
struct separable_room {
  static constexpr int diameter = 2 * largest_radius + 1;
  static constexpr int span = stage_width + 2 * largest_radius;  // of the longest side of a tile
  alignas(16) float weights[3][diameter + 1];                    // of each axis
  std::int32_t indices[3][span];  // what planes, rows and lanes read, from a radius before the tile on; -1: zeros
  float plane[(stage_height + 2 * largest_radius) * span];  // the plane with its margins; rows without gaps
  float rows[stage_height + 2 * largest_radius][stage_width];
  float ring[diameter * stage_threads];
};
static_assert(stage_height * separable_room::span <= 2 * stage_threads);
static_assert(stage_height * separable_room::span * sizeof(float) <= sizeof(separable_room::rows));
static_assert((2 * largest_radius_of_lanes_z + 1) * 2 <= separable_room::diameter);

// Filters of at most this radius are short: their sums are unrolled.
inline constexpr int short_radius = 3;

// Returns sums(R), where R is the radius as a constant, or 0 if it is not short.
template <class Sums>
__device__ __forceinline__ auto by_radius(std::int32_t radius, const Sums& sums) {
  return radius == 1   ? sums(std::integral_constant<int, 1>{})
         : radius == 2 ? sums(std::integral_constant<int, 2>{})
         : radius == 3 ? sums(std::integral_constant<int, 3>{})
                       : sums(std::integral_constant<int, 0>{});
}

// The weights of a filter: in registers, loaded by fours, for a short radius; in shared memory for Radius 0.
template <int Radius>
struct weights_at_hand {
  float4 fours[(2 * Radius + 4) / 4];

  __device__ __forceinline__ explicit weights_at_hand(const float* weights) {
    SUTURE_UNROLL
    for (int i = 0; i < (2 * Radius + 4) / 4; ++i) fours[i] = reinterpret_cast<const float4*>(weights)[i];
  }
  __device__ __forceinline__ float operator[](int k) const {
    const float4& four = fours[k / 4];
    return k % 4 == 0 ? four.x : k % 4 == 1 ? four.y : k % 4 == 2 ? four.z : four.w;
  }
};
template <>
struct weights_at_hand<0> {
  const float* weights;

  __device__ __forceinline__ explicit weights_at_hand(const float* w) : weights(w) {}
  __device__ __forceinline__ float operator[](int k) const { return weights[k]; }
};

// Returns the weighted sum of 2 * radius + 1 values that are `step` elements apart.
template <int Radius>
__device__ __forceinline__ float weighted_sum(const weights_at_hand<Radius>& weights, std::int32_t radius,
                                              const float* values, std::int32_t step) {
  float sum = 0;
  if constexpr (Radius > 0) {
    SUTURE_UNROLL
    for (int k = 0; k <= 2 * Radius; ++k) sum = fma(weights[k], values[k * step], sum);
  } else {
    SUTURE_NO_UNROLL
    for (std::int32_t k = 0; k <= 2 * radius; ++k) sum = fma(weights[k], values[k * step], sum);
  }
  return sum;
}

// Filters one column across planes: adds `sum`, its value in the next plane, and returns the weighted sum that this
// plane completes, which is meaningful only if `ends`. For a short radius `begun` holds the incomplete sums, the next
// to be completed first. For a longer one `ring` holds the values of the last 2 * radius + 1 planes, Step elements
// apart; this one goes to index `slot`, which advances.
template <int Radius, int Step>
__device__ __forceinline__ float sum_across(const weights_at_hand<Radius>& weights, std::int32_t radius, float sum,
                                            float (&begun)[2 * short_radius], float* ring, std::int32_t& slot,
                                            bool ends) {
  float ended = 0;
  if constexpr (Radius > 0) {
    constexpr int last = 2 * Radius;
    ended = fma(weights[last], sum, begun[0]);
    SUTURE_UNROLL
    for (int k = 1; k < last; ++k) begun[k - 1] = fma(weights[last - k], sum, begun[k]);
    begun[last - 1] = fma(weights[0], sum, 0.0f);
  } else {
    const std::int32_t diameter = 2 * radius + 1;
    ring[slot * Step] = sum;  // read by this thread alone
    slot = slot + 1 == diameter ? 0 : slot + 1;
    std::int32_t from = slot;  // the oldest plane
    SUTURE_NO_UNROLL
    for (std::int32_t a = 0; ends && a < diameter; ++a) {
      ended = fma(weights[a], ring[from * Step], ended);
      from = from + 1 == diameter ? 0 : from + 1;
    }
  }
  return ended;
}

// Applies a separable filter to a tile that begins at (z0, y0, x0) and calls finish(z, value) for the planes z0 .. z1 -
// 1 of a thread's column. Each plane is read with its margins to shared memory while the one before is summed.
template <bool RowsAlongX, class Filter, class Read, class Finish>
__device__ __forceinline__ void march(separable_room& room, const Filter& filter, std::int32_t channel,
                                      const axes_of_loops<RowsAlongX>& axes, const std::int32_t (&n)[3],
                                      std::int32_t x0, std::int32_t y0, std::int32_t z0, std::int32_t z1,
                                      const Read& read, const Finish& finish) {
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t lane = thread % stage_width, line = thread / stage_width;
  if (thread < 3) {
    for (int k = 0; k < 2 * short_radius + 2; ++k) room.weights[thread][k] = 0;  // loads by fours read beyond the last
    filter.weights_along(thread, channel, room.weights[thread]);
  }
  const std::int32_t rz = filter.radius(axes[0], channel), ry = filter.radius(axes[1], channel),
                     rx = filter.radius(axes[2], channel);
  const std::int32_t width = stage_width + 2 * rx, height = stage_height + 2 * ry, area = width * height;
  const std::int32_t planes = z1 - z0 + 2 * rz;
  static_assert(3 * separable_room::span <= stage_threads);
  if (const std::int32_t loop = thread / separable_room::span, k = thread % separable_room::span; loop < 3) {
    const std::int32_t span = loop == 0 ? planes : loop == 1 ? height : width;
    const std::int32_t first = loop == 0 ? z0 - rz : loop == 1 ? y0 - ry : x0 - rx;
    if (k < span) room.indices[loop][k] = filter.index(first + k, n[loop]);
  }
  __syncthreads();
  // The first voxels of each plane that a thread reads: their row, index in the row and index in the plane; -1 for a
  // voxel that counts as zero. They are read a plane ahead.
  constexpr int kept = 3;
  std::int32_t ys[kept], xs[kept], within[kept];
  float next[kept] = {};
  SUTURE_UNROLL
  for (int k = 0; k < kept; ++k) {
    const std::int32_t i = thread + k * stage_threads, row = i / width;
    ys[k] = i < area ? room.indices[1][row] : -1;
    xs[k] = i < area ? room.indices[2][i - row * width] : -1;
    within[k] = (ys[k] | xs[k]) < 0 ? -1 : ys[k] * n[2] + xs[k];
  }
  const std::int64_t per_plane = static_cast<std::int64_t>(n[1]) * n[2];
  const auto fetch = [&](std::int32_t p) {
    const std::int32_t iz = room.indices[0][p];
    const float* const plane = read.from + iz * per_plane;
    SUTURE_UNROLL
    for (int k = 0; k < kept; ++k) {
      if (iz < 0) next[k] = 0;
      if (iz >= 0 && within[k] >= 0) next[k] = read.applied(plane[within[k]], iz, ys[k], xs[k]);
    }
  };

  const float* const first_row = room.plane + line * width + lane;
  float* const first_sum = room.rows[0] + thread;
  const float* const sums_end = room.rows[height];
  float begun[RowsAlongX ? 2 : 1][2 * short_radius] = {};  // of the columns of a thread
  std::int32_t slot = 0;
  fetch(0);
  for (std::int32_t p = 0; p < planes; ++p) {
    SUTURE_UNROLL
    for (int k = 0; k < kept; ++k) {
      const std::int32_t i = thread + k * stage_threads;
      if (i < area) room.plane[i] = next[k];
    }
    SUTURE_NO_UNROLL
    for (std::int32_t i = thread + kept * stage_threads; i < area; i += stage_threads) {
      const std::int32_t row = i / width;
      const std::int32_t iz = room.indices[0][p], iy = room.indices[1][row], ix = room.indices[2][i - row * width];
      room.plane[i] = (iz | iy | ix) < 0 ? 0.0f : read(iz, iy, ix);
    }
    __syncthreads();
    if (p + 1 < planes) fetch(p + 1);
    const bool ends = p >= 2 * rz;
    float volume;
    if constexpr (!RowsAlongX) {
      by_radius(rx, [&]<int Radius>(std::integral_constant<int, Radius>) {
        const weights_at_hand<Radius> weights(room.weights[2]);
        const float* from = first_row;
        SUTURE_NO_UNROLL
        for (float* to = first_sum; to < sums_end; to += stage_threads, from += stage_height * width)
          *to = weighted_sum(weights, rx, from, 1);
      });
      __syncthreads();
      const float sum = by_radius(ry, [&]<int Radius>(std::integral_constant<int, Radius>) {
        return weighted_sum(weights_at_hand<Radius>(room.weights[1]), ry, first_sum, stage_width);
      });
      volume = by_radius(rz, [&]<int Radius>(std::integral_constant<int, Radius>) {
        return sum_across<Radius, stage_threads>(weights_at_hand<Radius>(room.weights[0]), rz, sum, begun[0],
                                                 room.ring + thread, slot, ends);
      });
    } else {
      // Sums along x, the rows here, for the lanes of the tile and its margins, up to two per thread. Sums along y come
      // next: across planes if lanes run along z, along lanes otherwise.
      const auto across = [&](float sum, int k, std::int32_t& place) {
        return by_radius(rz, [&]<int Radius>(std::integral_constant<int, Radius>) {
          const weights_at_hand<Radius> weights(room.weights[axes[0]]);
          return axes.lanes_z
                     ? sum_across<Radius, 2 * stage_threads>(weights, rz, sum, begun[k],
                                                             room.ring + thread + k * stage_threads, place, ends)
                     : sum_across<Radius, stage_threads>(weights, rz, sum, begun[k], room.ring + thread, place, ends);
        });
      };
      std::int32_t next_slot = slot;
      SUTURE_UNROLL
      for (int k = 0; k < 2; ++k) {
        const std::int32_t i = thread + k * stage_threads;
        if (i >= stage_height * width) continue;
        float sum = by_radius(ry, [&]<int Radius>(std::integral_constant<int, Radius>) {
          return weighted_sum(weights_at_hand<Radius>(room.weights[2]), ry, room.plane + i, width);
        });
        if (axes.lanes_z) {
          next_slot = slot;
          sum = across(sum, k, next_slot);
        }
        room.rows[0][i] = sum;
      }
      __syncthreads();
      volume = by_radius(rx, [&]<int Radius>(std::integral_constant<int, Radius>) {
        return weighted_sum(weights_at_hand<Radius>(room.weights[axes[2]]), rx, room.rows[0] + line * width + lane, 1);
      });
      if (!axes.lanes_z) volume = across(volume, 0, next_slot);
      slot = next_slot;
    }
    if (ends) finish(z0 + p - 2 * rz, volume);
  }
}

// Stage K of the images of pair B. The grid is (tiles, samples, channels).
template <int K, std::size_t B, bool RowsAlongX, class Evaluator>
__global__ void __launch_bounds__(stage_threads, stage_blocks<K, typename Evaluator::pipeline_type>)
    later_stage_kernel(const __grid_constant__ Evaluator evaluate, bool to_output) {
  using P = typename Evaluator::pipeline_type;
  using S = staging<P>;
  using Out = typename Evaluator::template binding_type<B>::output;
  constexpr std::int32_t depth = stage_depth<K, P>;
  require_ieee_arithmetic();
  const auto sample_index = static_cast<std::int32_t>(blockIdx.y);
  const auto channel = static_cast<std::int32_t>(blockIdx.z);
  const auto& r = evaluate.records[sample_index];
  if (r.mark != evaluate.mark) return;
  const sample_parameters<P>& sample = r.sample;
  if (has_two_kernels<K, P> && RowsAlongX != (sample.loops != lanes_along_x)) return;
  const std::uint8_t loops = has_two_kernels<K, P> && !RowsAlongX ? lanes_along_x : sample.loops;
  [[maybe_unused]] const axes_of_loops<RowsAlongX> axes(loops);
  const staged_tensor& t = r.staged[B];
  const auto& n = sample.extents;
  const std::int64_t tiles = stage_tiles<K, P>(n);
  if (channel >= t.channels || blockIdx.x >= tiles || S::template idle<K>(sample, t, channel)) return;
  if constexpr (spectral_stage<K, P>)  // fourier_kernel applies the filter
    if (S::template on<S::template filter<K>>(sample, channel)) return;

  __shared__ alignas(16) unsigned char room_for_sums[S::template emits_sums<K> ? sizeof(patch_sums) : 1];
  patch_sums& block = reinterpret_cast<patch_sums&>(room_for_sums);
  const bool emits = S::template emits<K>(sample, channel);
  const bool finishes = K + 1 == S::count || (to_output && S::template finishes<K>(sample, channel));
  thread_moments mine;
  if (emits) {
    static_assert(sizeof(patch_sums) % 4 == 0);
    for (unsigned i = threadIdx.x; i < sizeof(patch_sums) / 4; i += stage_threads)
      reinterpret_cast<std::uint32_t*>(&block)[i] = 0;
    __syncthreads();
  }

  const std::uint32_t across = (static_cast<std::uint32_t>(n[2]) + stage_width - 1) / stage_width;
  const std::uint32_t down = (static_cast<std::uint32_t>(n[1]) + stage_height - 1) / stage_height;
  const std::uint32_t row = blockIdx.x / across, layer = row / down;
  const auto x0 = static_cast<std::int32_t>((blockIdx.x - row * across) * stage_width);
  const auto y0 = static_cast<std::int32_t>((row - layer * down) * stage_height);
  const std::int32_t z0 = static_cast<std::int32_t>(layer) * depth, z1 = min(z0 + depth, n[0]);
  const std::int32_t x = x0 + static_cast<std::int32_t>(threadIdx.x % stage_width);
  const std::int32_t y = y0 + static_cast<std::int32_t>(threadIdx.x / stage_width);
  const bool is_inside = x < n[2] && y < n[1];
  const std::int64_t plane = static_cast<std::int64_t>(n[1]) * n[2];
  const int side = S::template side<K>(sample, channel);
  const float* const from = t.data[side] + dense_offset(n, channel, 0, 0, 0);

  bool changes = true;
  if constexpr (S::template emits_sums<K>) {
    static_assert(depth <= thread_moments::most);
    changes = !emits || S::template changes_at<K>(sample, channel);
    if (!changes && is_inside) mine.add_column(from + dense_offset(n, 0, z0, y, x), plane, z1 - z0, block);
  }
  if (changes) {
    const auto before_filter = S::template before_filter<K>(sample, t, channel);
    const auto after_filter = S::template after_filter<K>(sample, t, channel);
    const filter_input<std::remove_const_t<decltype(before_filter)>> read{before_filter, from,    n,
                                                                          sample_index,  channel, loops};
    bool filters = false;
    if constexpr (S::template filters<K> && !spectral_stage<K, P>)
      filters = S::template on<S::template filter<K>>(sample, channel);
    // One pointer type serves both targets: a buffer between stages is addressed in units of output elements too.
    constexpr std::int64_t units = sizeof(float) / sizeof(Out);
    const target_tensor& out = t.out;
    Out* to = finishes ? static_cast<Out*>(out.data) + channel * out.channel_stride + z0 * out.stride[0] +
                             y * out.stride[1] + x * out.stride[2]
                       : reinterpret_cast<Out*>(t.data[filters ? 1 - side : side] + dense_offset(n, channel, z0, y, x));
    const std::int64_t step = finishes ? out.stride[0] : plane * units;
    const auto element = [&]<class R>(R finished) {
      if constexpr (K + 1 == S::count)
        return stored<Out>(finished);
      else
        return S::template element<Out>(sample, finished);
    };
    // Applies the operations after the filter and stores the value. Called for each voxel of the column in order.
    const auto finish = [&](std::int32_t z, float value) {
      const auto finished = apply(after_filter, value, voxel_of_walk(n, loops, {sample_index, channel, z, y, x}));
      if (finishes) {
        *to = element(finished);
      } else if constexpr (K + 1 < S::count) {
        *reinterpret_cast<float*>(to) = finished;
        if (emits) mine.add(finished, block);
      }
      to += step;
    };

    if constexpr (separable_stage<K, P>) {
      if (filters) {
        __shared__ separable_room room;
        const auto& filter = S::template functor<S::template filter<K>>(sample);
        march(room, filter, channel, axes, n, x0, y0, z0, z1, read, [&](std::int32_t z, float sums) {
          if (is_inside)
            finish(z, blended(
                          filter, [&] { return read(z, y, x); }, sums, channel));
        });
      }
    } else if constexpr (pair_stage<K, P>) {
      if (filters) {
        __shared__ voxel_pair pairs_of_planes[depth];
        const auto& filter = S::template functor<S::template filter<K>>(sample);
        if (const auto i = static_cast<std::int32_t>(threadIdx.x); i < z1 - z0)
          pairs_of_planes[i] = filter.pair_at(axes[0], z0 + i, n[0], channel);
        __syncthreads();
        if (is_inside) {
          const voxel_pair along_y = filter.pair_at(axes[1], y, n[1], channel),
                           along_x = filter.pair_at(axes[2], x, n[2], channel);
          const std::int32_t ys[2] = {along_y.first, along_y.second}, xs[2] = {along_x.first, along_x.second};
          const std::int32_t within[2][2] = {{ys[0] * n[2] + xs[0], ys[0] * n[2] + xs[1]},
                                             {ys[1] * n[2] + xs[0], ys[1] * n[2] + xs[1]}};
          const bool changes_before_filter = S::template changes_before_filter<K>(sample, channel);
          for (std::int32_t z = z0; z < z1; ++z) {
            const voxel_pair along_z = pairs_of_planes[z - z0];
            const std::int32_t zs[2] = {along_z.first, along_z.second};
            const float* const planes[2] = {plane_at(from, zs[0], plane), plane_at(from, zs[1], plane)};
            const auto voxel = [&](int a, int b, int c) { return planes[a][within[b][c]]; };
            const auto tap = [&](int a, int b, int c) { return read.applied(voxel(a, b, c), zs[a], ys[b], xs[c]); };
            const float fractions[3] = {along_z.t, along_y.t, along_x.t};
            const auto along_axes = [&](const auto& at) {
              if constexpr (RowsAlongX) {
                float t_of[3];
                axes.by_axis(fractions, t_of);
                return interpolated([&](int a, int b, int c) { return axes.lanes_z ? at(b, c, a) : at(a, c, b); },
                                    t_of[0], t_of[1], t_of[2]);
              } else {
                return interpolated(at, fractions[0], fractions[1], fractions[2]);
              }
            };
            finish(z, changes_before_filter ? along_axes(tap) : along_axes(voxel));
          }
        }
      }
    } else if constexpr (S::template filters<K> && !spectral_stage<K, P>) {
      if (filters && is_inside) {
        const auto& filter = S::template functor<S::template filter<K>>(sample);
        std::int32_t extents[3];
        axes.by_axis(n, extents);
        const auto read_at = [&](std::int32_t vz, std::int32_t vy, std::int32_t vx) {
          if constexpr (RowsAlongX)
            return axes.lanes_z ? read(vy, vx, vz) : read(vz, vx, vy);
          else
            return read(vz, vy, vx);
        };
        for (std::int32_t z = z0; z < z1; ++z) {
          const std::int32_t of_loop[3] = {z, y, x};
          std::int32_t at[3];
          axes.by_axis(of_loop, at);
          finish(z, filter(read_at, extents, at[0], at[1], at[2], channel));
        }
      }
    }
    if (!filters && is_inside) {
      const float* voxel = from + dense_offset(n, 0, z0, y, x);
      for (std::int32_t z = z0; z < z1; ++z, voxel += plane)
        finish(z, apply(before_filter, *voxel, voxel_of_walk(n, loops, {sample_index, channel, z, y, x})));
    }
  }

  if constexpr (S::template emits_sums<K>) {
    const std::int64_t index = static_cast<std::int64_t>(K) * t.channels + channel;
    const std::int32_t voxels = min(stage_width, n[2] - x0) * min(stage_height, n[1] - y0) * (z1 - z0);
    if (emits)
      merge_moments(mine, voxels, block, t.sums[index], static_cast<std::uint32_t>(tiles), t.statistics[index]);
  }
}

// Refuses extents with a plane, in any order of axes, whose voxels a stage cannot number in 32 bits.
inline void check_planes_of_stages(const extent3& n, const site& where) {
  for (int k = 0; k < 3; ++k) {
    const std::int64_t rows = n[k == 0 ? 1 : 0], columns = n[k == 2 ? 1 : 2];
    require(rows * columns <= 2147483647, where, "a plane of ", rows, " x ", columns,
            " voxels is too large for filters and statistics of a patch. Crop smaller patches");
  }
}

// Queues stage K of one pair of images of every sample. `loops` are the orders of loops of the samples; any_batch means
// what it means in count_tiles.
template <int K, std::size_t B, class Exec, class Evaluator, class Plan, class Binding>
void run_stage(const Exec& exec, const Evaluator& e, bool to_output, bool any_batch,
               const std::vector<std::uint8_t>& loops, const Plan& plan, const Binding& bound) {
  using P = typename Evaluator::pipeline_type;
  std::int64_t tiles = 1, channels = 1;
  bool along_x = any_batch, not_along_x = any_batch;  // whether lanes of some sample do or do not run along x
  const auto count = [&](const auto& extents, std::uint8_t order) {
    std::int32_t n[3];
    for (int j = 0; j < 3; ++j) n[j] = static_cast<std::int32_t>(extents[loop_axes[order][j]]);
    tiles = std::max(tiles, stage_tiles<K, P>(n));
  };
  if (any_batch) {
    const extent3 most = largest_extents(plan);
    for (const std::uint8_t order : {lanes_along_x, lanes_along_y, lanes_along_z})
      if (order == lanes_along_x || orders_loops<Evaluator>) count(most, order);
  }
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (!any_batch) count(plan.sample(i).extents, loops[i]);
    (loops[i] == lanes_along_x ? along_x : not_along_x) = true;
    channels = std::max(channels, bound.source(i).channels);
  }
  require(tiles <= 2147483647, {"run"}, tiles, " tiles exceed the grid of a kernel");
  const dim3 blocks(static_cast<unsigned>(tiles), static_cast<unsigned>(plan.size()), static_cast<unsigned>(channels));
  // In a stage with a k-space filter, later_stage_kernel is for channels in which the filter is off. They need it only
  // if value operations precede the filter in the stage.
  if constexpr (spectral_stage<K, P>) run_fourier<K, B>(exec, e, any_batch, plan, channels);
  if constexpr (!spectral_stage<K, P> || staging<P>::template begin<K> < staging<P>::template filter<K>) {
    constexpr bool own_kernel = has_two_kernels<K, P> && orders_loops<Evaluator>;
    if (along_x || !own_kernel) {
      later_stage_kernel<K, B, false, Evaluator><<<blocks, stage_threads, 0, exec.stream>>>(e, to_output);
      check_cuda(cudaGetLastError(), "run", exec.at);
    }
    if constexpr (own_kernel)
      if (not_along_x) {
        later_stage_kernel<K, B, true, Evaluator><<<blocks, stage_threads, 0, exec.stream>>>(e, to_output);
        check_cuda(cudaGetLastError(), "run", exec.at);
      }
  }
}

// Queues stages 0 .. Last - 1 of every image of the batch. With to_output the last one stores to the output; otherwise
// the result stays in the buffer that an evaluator reads (prepare). Label maps have no stages.
template <int Last, class Exec, class Evaluator, class Plan, class... Bindings>
void run_stages(const Exec& exec, const Evaluator& e, bool to_output, bool any_batch, const Plan& plan,
                const Bindings&... bindings) {
  std::vector<std::uint8_t> loops;
  for (std::size_t i = 0; i < plan.size(); ++i)
    loops.push_back(to_output ? loops_of_sample<Evaluator>(plan, i, bindings...) : lanes_along_x);
  const auto stage = [&]<int K>() {
    const auto one = [&]<std::size_t B, class Binding>(const Binding& bound) {
      if constexpr (!Binding::is_label) run_stage<K, B>(exec, e, to_output, any_batch, loops, plan, bound);
    };
    each_binding(one, bindings...);
  };
  [&]<int... K>(std::integer_sequence<int, K...>) { (stage.template operator()<K>(), ...); }
  (std::make_integer_sequence<int, Last>{});
}

}  // namespace suture::detail
