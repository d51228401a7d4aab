// SPDX-License-Identifier: Apache-2.0
// The stages after the fused part, on CUDA: one kernel each, whatever the batch. Blocks of samples and channels that a
// stage leaves alone return at once.
#pragma once

#include "../core/numeric_cuda.cuh"
#include "../core/prepare.hpp"
#include "atomic_sums.cuh"
#include "check_cuda.cuh"
#include "fourier.cuh"
#include "ieee.cuh"

namespace suture::detail {

// A block makes a tile of 32 x 8 x `depth` voxels, each thread a column along z. Separable filters read planes beyond
// both ends, so their tiles are deeper.
inline constexpr std::int32_t stage_width = 32, stage_height = 8, stage_threads = stage_width * stage_height;
template <int K, class Pipeline, bool Filters = staging<Pipeline>::template filters<K>>
inline constexpr bool separable_stage = false;
template <int K, class Pipeline>
inline constexpr bool separable_stage<K, Pipeline, true> =
    separable_filter<typename staging<Pipeline>::template functor_t<staging<Pipeline>::template filter<K>>>;
template <int K, class Pipeline, bool Filters = staging<Pipeline>::template filters<K>>
inline constexpr bool pair_stage = false;
template <int K, class Pipeline>
inline constexpr bool pair_stage<K, Pipeline, true> =
    pair_filter<typename staging<Pipeline>::template functor_t<staging<Pipeline>::template filter<K>>>;
template <int K, class Pipeline, bool Filters = staging<Pipeline>::template filters<K>>
inline constexpr bool spectral_stage = false;
template <int K, class Pipeline>
inline constexpr bool spectral_stage<K, Pipeline, true> =
    spectral_filter<typename staging<Pipeline>::template functor_t<staging<Pipeline>::template filter<K>>>;
// Blocks on a multiprocessor that the registers are to last for: filters need more of them.
template <int K, class Pipeline>
inline constexpr int stage_blocks = staging<Pipeline>::template filters<K> ? 3 : 4;
template <int K, class Pipeline>
inline constexpr std::int32_t stage_depth = separable_stage<K, Pipeline> ? 32 : 16;

template <int K, class Pipeline>
SUTURE_HD std::int64_t stage_tiles(const std::int32_t (&n)[3]) {
  constexpr std::int32_t depth = stage_depth<K, Pipeline>;
  return static_cast<std::int64_t>((n[2] + stage_width - 1) / stage_width) *
         ((n[1] + stage_height - 1) / stage_height) * ((n[0] + depth - 1) / depth);
}

// What a thread has seen of the values it left.
struct seen_values {
  partial_sums sums;
  std::uint64_t count = 0, excluded = 0;
  std::uint32_t least_complement = 0, greatest = 0;

  __device__ __forceinline__ void add(float value, patch_sums& block) {
    if (!counted<float>::finite(value)) {
      ++excluded;
      return;
    }
    ++count;
    const std::uint32_t key = counted<float>::key(value);
    least_complement = max(least_complement, ~key);
    greatest = max(greatest, key);
    add_value(sums, value, block.sums);
  }
};

// Apart, so that the registers of one thread at the very end are not those of every thread all along.
__device__ SUTURE_DEVICE_APART void finish_moments(patch_sums* total, moments* result) { *result = moments_of(*total); }

// The values of a block added to those of the channel; the last of `parts` blocks leaves the moments.
__device__ inline void leave_moments(const seen_values& mine, patch_sums& block, patch_sums& total, std::uint32_t parts,
                                     moments& result) {
  block.sums.take(mine.sums);
  count_up(&block.count, mine.count);
  count_up(&block.excluded, mine.excluded);
  if (mine.count != 0) {
    atomicMax(&block.least_complement, mine.least_complement);
    atomicMax(&block.greatest, mine.greatest);
  }
  __syncthreads();
  const auto i = static_cast<int>(threadIdx.x);
  give_sums(total.sums, block.sums);
  if (i == 0) {
    count_up(&total.count, block.count);
    count_up(&total.excluded, block.excluded);
    atomicMax(&total.least_complement, block.least_complement);
    atomicMax(&total.greatest, block.greatest);
  }
  __threadfence();
  __syncthreads();
  if (i != 0 || atomicAdd(&total.parts, 1u) + 1 != parts) return;
  __threadfence();
  finish_moments(&total, &result);
}

// A separable filter over a tile, plane by plane along z.
struct separable_room {
  static constexpr int diameter = 2 * largest_radius + 1;
  float weights[3][diameter];
  float plane[stage_height + 2 * largest_radius][stage_width + 2 * largest_radius];
  float rows[stage_height + 2 * largest_radius][stage_width];
  float ring[diameter][stage_threads];
};

template <class Filter, class Read, class Leave>
__device__ __forceinline__ void march(separable_room& room, const Filter& filter, std::int32_t channel,
                                      const std::int32_t (&n)[3], std::int32_t x0, std::int32_t y0, std::int32_t z0,
                                      std::int32_t z1, const Read& read, const Leave& leave) {
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t lane = thread % stage_width, line = thread / stage_width;
  if (thread < 3) filter.weights_along(thread, channel, room.weights[thread]);
  const std::int32_t rz = filter.radius(0, channel), ry = filter.radius(1, channel), rx = filter.radius(2, channel);
  const std::int32_t width = stage_width + 2 * rx, height = stage_height + 2 * ry, diameter = 2 * rz + 1;
  std::int32_t slot = 0;
  for (std::int32_t z = z0 - rz; z < z1 + rz; ++z) {
    const std::int32_t iz = filter.index(z, n[0]);
    __syncthreads();
    for (std::int32_t i = thread; i < width * height; i += stage_threads) {
      const std::int32_t iy = filter.index(y0 - ry + i / width, n[1]), ix = filter.index(x0 - rx + i % width, n[2]);
      room.plane[i / width][i % width] = (iz | iy | ix) < 0 ? 0.0f : read(iz, iy, ix);
    }
    __syncthreads();
    for (std::int32_t row = line; row < height; row += stage_height) {
      float sum = 0;
      for (std::int32_t c = 0; c <= 2 * rx; ++c) sum = fma(room.weights[2][c], room.plane[row][lane + c], sum);
      room.rows[row][lane] = sum;
    }
    __syncthreads();
    float sum = 0;
    for (std::int32_t b = 0; b <= 2 * ry; ++b) sum = fma(room.weights[1][b], room.rows[line + b][lane], sum);
    room.ring[slot][thread] = sum;  // read by this thread alone
    slot = slot + 1 == diameter ? 0 : slot + 1;
    if (z < z0 + rz) continue;
    float volume = 0;
    std::int32_t from = slot;  // the oldest plane
    for (std::int32_t a = 0; a < diameter; ++a) {
      volume = fma(room.weights[0][a], room.ring[from][thread], volume);
      from = from + 1 == diameter ? 0 : from + 1;
    }
    leave(z - rz, volume);
  }
}

template <int K, std::size_t B, class Evaluator>
__global__ void __launch_bounds__(stage_threads, stage_blocks<K, typename Evaluator::pipeline_type>)
    later_stage_kernel(const __grid_constant__ Evaluator evaluate, bool to_output) {
  using P = typename Evaluator::pipeline_type;
  using S = staging<P>;
  using Out = typename Evaluator::template binding_type<B>::output;
  constexpr std::int32_t depth = stage_depth<K, P>;
  require_ieee_arithmetic();
  const auto number = static_cast<std::int32_t>(blockIdx.y);
  const auto channel = static_cast<std::int32_t>(blockIdx.z);
  const auto& r = evaluate.records[number];
  const item<P>& sample = r.sample;
  const staged_tensor& t = r.staged[B];
  const auto& n = sample.extents;
  const std::int64_t tiles = stage_tiles<K, P>(n);
  if (channel >= t.channels || blockIdx.x >= tiles || S::template idle<K>(sample, t, channel)) return;
  if constexpr (spectral_stage<K, P>)  // has kernels of its own
    if (S::template on<S::template filter<K>>(sample, channel)) return;

  __shared__ alignas(16) unsigned char room_for_sums[S::template leaves_moments<K> ? sizeof(patch_sums) : 1];
  patch_sums& block = reinterpret_cast<patch_sums&>(room_for_sums);
  const bool emits = S::template emits<K>(sample, channel);
  const bool finishes = K + 1 == S::count || (to_output && S::template finishes<K>(sample, channel));
  seen_values mine;
  if (emits) {
    static_assert(sizeof(patch_sums) % 4 == 0);
    for (unsigned i = threadIdx.x; i < sizeof(patch_sums) / 4; i += stage_threads)
      reinterpret_cast<std::uint32_t*>(&block)[i] = 0;
    __syncthreads();
  }

  const std::int32_t across = (n[2] + stage_width - 1) / stage_width, down = (n[1] + stage_height - 1) / stage_height;
  const auto tile = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t x0 = tile % across * stage_width, y0 = tile / across % down * stage_height;
  const std::int32_t z0 = tile / (across * down) * depth, z1 = min(z0 + depth, n[0]);
  const std::int32_t x = x0 + static_cast<std::int32_t>(threadIdx.x) % stage_width;
  const std::int32_t y = y0 + static_cast<std::int32_t>(threadIdx.x) / stage_width;
  const bool mine_to_make = x < n[2] && y < n[1];

  const int side = S::template side<K>(sample, channel);
  const float* const from = t.data[side] + dense_offset(n, channel, 0, 0, 0);
  const auto taps = S::template taps<K>(sample, t, channel);
  const auto results = S::template results<K>(sample, t, channel);
  const tap_reader<std::remove_const_t<decltype(taps)>> read{taps, from, n, number, channel};
  bool filters = false;
  if constexpr (S::template filters<K> && !spectral_stage<K, P>)
    filters = S::template on<S::template filter<K>>(sample, channel);
  // Where the results go, counted in elements of the output, between stages as well.
  constexpr std::int64_t units = sizeof(float) / sizeof(Out);
  const std::int64_t plane = static_cast<std::int64_t>(n[1]) * n[2];
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
  // Called for each voxel of the column, one after the other.
  const auto leave = [&](std::int32_t z, float value) {
    const auto finished = apply(results, value, voxel_at(n, number, channel, z, y, x));
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
      march(room, filter, channel, n, x0, y0, z0, z1, read, [&](std::int32_t z, float sums) {
        if (mine_to_make)
          leave(z, blended(
                       filter, [&] { return read(z, y, x); }, sums, channel));
      });
    }
  } else if constexpr (pair_stage<K, P>) {
    if (filters && mine_to_make) {
      const auto& filter = S::template functor<S::template filter<K>>(sample);
      const voxel_pair along_y = filter.pair_at(1, y, n[1], channel), along_x = filter.pair_at(2, x, n[2], channel);
      for (std::int32_t z = z0; z < z1; ++z)
        leave(z, interpolated(read, filter.pair_at(0, z, n[0], channel), along_y, along_x));
    }
  } else if constexpr (S::template filters<K> && !spectral_stage<K, P>) {
    if (filters && mine_to_make) {
      const auto& filter = S::template functor<S::template filter<K>>(sample);
      for (std::int32_t z = z0; z < z1; ++z) leave(z, filter(read, n, z, y, x, channel));
    }
  }
  if (!filters && mine_to_make) {
    const float* voxel = from + dense_offset(n, 0, z0, y, x);
    for (std::int32_t z = z0; z < z1; ++z, voxel += plane)
      leave(z, apply(taps, *voxel, voxel_at(n, number, channel, z, y, x)));
  }

  if constexpr (S::template leaves_moments<K>) {
    const std::int64_t index = static_cast<std::int64_t>(K) * t.channels + channel;
    if (emits) leave_moments(mine, block, t.sums[index], static_cast<std::uint32_t>(tiles), t.statistics[index]);
  }
}

// Stage K of one pair of every sample; label maps are done with the fused part.
template <int K, std::size_t B, class Exec, class Evaluator, class Plan, class In, class Out, class... Rest>
void run_stage(const Exec& exec, const Evaluator& e, bool to_output, const Plan& plan,
               const binding<In, Out, false, Rest...>& bound) {
  using P = typename Evaluator::pipeline_type;
  std::int64_t tiles = 1, channels = 1;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    tiles = std::max(tiles, stage_tiles<K, P>(plan.sample(i).extents));
    channels = std::max(channels, bound.source(i).channels);
  }
  require(tiles <= 2147483647, {"run"}, tiles, " tiles exceed the grid of a kernel");
  const dim3 blocks(static_cast<unsigned>(tiles), static_cast<unsigned>(plan.size()), static_cast<unsigned>(channels));
  // Beside a filter of k-space only value operations left of it are to be done, for those that did not draw it.
  if constexpr (spectral_stage<K, P>) run_fourier<K, B>(exec, e, plan, channels);
  if constexpr (!spectral_stage<K, P> || staging<P>::template begin<K> < staging<P>::template filter<K>) {
    later_stage_kernel<K, B, Evaluator><<<blocks, stage_threads, 0, exec.stream>>>(e, to_output);
    check_cuda(cudaGetLastError(), "run", exec.at);
  }
}
template <int K, std::size_t B, class Exec, class Evaluator, class Plan, class In, class Out, class... Rest>
void run_stage(const Exec&, const Evaluator&, bool, const Plan&, const binding<In, Out, true, Rest...>&) {}

// Stages K .. Last - 1 of every image of the batch, for a run that stores to the output or for what comes before its
// last stage.
template <int K, int Last, class Exec, class Evaluator, class Plan, class... Bindings>
void run_stages(const Exec& exec, const Evaluator& e, bool to_output, const Plan& plan, const Bindings&... bindings) {
  if constexpr (K < Last) {
    [&]<std::size_t... B>(std::index_sequence<B...>) { (run_stage<K, B>(exec, e, to_output, plan, bindings), ...); }
    (std::index_sequence_for<Bindings...>{});
    run_stages<K + 1, Last>(exec, e, to_output, plan, bindings...);
  }
}

}  // namespace suture::detail
