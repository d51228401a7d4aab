// SPDX-License-Identifier: Apache-2.0
// One pass of a fit over the samples of a batch on a CUDA device. All counters are integers, so the bits depend on no
// launch shape and are those of the CPU.
#pragma once

#include "../exec/cuda/atomic_sums.cuh"
#include "../exec/cuda/run.cuh"
#include "../stats/statistics.hpp"
#include "reduction.hpp"

namespace suture::detail {

// One sample in the form that kernels read.
struct fit_record {
  const void* data;
  const void* map;
  std::int64_t stride[3], map_stride[3];
  std::int64_t channel_stride;
  std::int32_t extents[3];
  std::int32_t rows_per_block;

  SUTURE_FN std::int64_t rows() const { return static_cast<std::int64_t>(extents[0]) * extents[1]; }
};

inline constexpr int fit_threads = 256;

// The division of the voxels of a batch into groups, each with one result: group = sample * channels + channel, or if
// pooled one group per sample with all channels.
struct fit_grouping {
  const fit_record* records;
  std::int32_t channels;
  bool pooled;
  std::int64_t first_group;

  __device__ std::int64_t group() const { return first_group + blockIdx.y; }
  __device__ const fit_record& record() const { return records[pooled ? group() : group() / channels]; }
};

// Calls visit(pointer to the value, verdict) for every voxel of this block's rows. A warp processes a row; rows of 1024
// voxels or more are processed by the whole block.
template <class T, class Map, class Selector, class Visit>
__device__ __forceinline__ void visit_addresses(const fit_grouping& grouping, const Selector& select,
                                                const Visit& visit) {
  const std::int64_t group = grouping.group();
  const fit_record& r = grouping.record();
  const std::int64_t ny = r.extents[1], nz = r.extents[0];
  const std::int64_t rows = ny * nz * (grouping.pooled ? grouping.channels : 1);
  const std::int64_t first_channel = grouping.pooled ? 0 : group % grouping.channels;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * r.rows_per_block;
  const std::int64_t end = min(begin + r.rows_per_block, rows);
  const int width = r.extents[2] >= 1024 ? fit_threads : 32;
  const int lane = static_cast<int>(threadIdx.x) % width, line = static_cast<int>(threadIdx.x) / width;
  for (std::int64_t row = begin + line; row < end; row += fit_threads / width) {
    const std::int64_t y = row % ny, z = row / ny % nz, channel = first_channel + row / ny / nz;
    const T* values = static_cast<const T*>(r.data) + channel * r.channel_stride + z * r.stride[0] + y * r.stride[1];
    const Map* map = static_cast<const Map*>(r.map) + z * r.map_stride[0] + y * r.map_stride[1];
    for (std::int32_t x = lane; x < r.extents[2]; x += width) {
      const T* const place = values + x * r.stride[2];
      Map label = 0;
      if (r.map != nullptr) label = map[x * r.map_stride[2]];
      visit(place, select(*place, label));
    }
  }
}

// Calls visit(value, verdict) for the same voxels.
template <class T, class Map, class Selector, class Visit>
__device__ __forceinline__ void visit_voxels(const fit_grouping& grouping, const Selector& select, const Visit& visit) {
  visit_addresses<T, Map>(grouping, select, [&](const T* place, verdict v) { visit(*place, v); });
}

// Shared memory for a type whose members have initial values.
template <class T>
struct shared_room {
  alignas(T) unsigned char bytes[sizeof(T)];
  __device__ __forceinline__ T& get() { return *reinterpret_cast<T*>(bytes); }
};

// A series of equal indices, which is added as one number at its end. A block of air thus costs one atomic operation
// and not one per voxel.
struct run_of_equals {
  std::int32_t index = -1;
  std::uint32_t length = 0;

  template <class Add>
  __device__ __forceinline__ void add(std::int32_t next, const Add& add) {
    if (next == index) {
      ++length;
      return;
    }
    end(add);
    index = next;
    length = 1;
  }
  template <class Add>
  __device__ __forceinline__ void end(const Add& add) {
    if (length != 0) add(index, length);
  }
};

// Adds the sums of a block to those of its group.
template <class Sums>
__device__ __forceinline__ void add_block(Sums& to, const Sums& block) {
  add_sums(to.sums, block.sums);
  if (threadIdx.x != 0) return;
  add_tally(to.tally, block.tally);
  if constexpr (requires { to.greatest; }) {
    raise(&to.least_complement, block.least_complement);
    raise(&to.greatest, block.greatest);
  }
}

// Adds up the voxels of every group. A thread has a `Part`: add(sums, place, channel_stride, verdict) adds a voxel,
// end(sums) adds the part to the sums of the block.
template <class T, class Map, class Part, class Selector, class... Rules>
__global__ void __launch_bounds__(fit_threads)
    sum_kernel(fit_grouping grouping, Selector select, typename Part::sums_type* states, Rules... rules) {
  using Sums = typename Part::sums_type;
  __shared__ shared_room<Sums> room;
  Sums& block = room.get();
  static_assert(sizeof(Sums) % 8 == 0);
  for (unsigned i = threadIdx.x; i < sizeof(Sums) / 8; i += fit_threads)
    reinterpret_cast<std::uint64_t*>(&block)[i] = 0;
  __syncthreads();
  const std::int64_t channel_stride = grouping.record().channel_stride;
  Part part(rules...);
  visit_addresses<T, Map>(grouping, select,
                          [&](const T* place, verdict v) { part.add(block, place, channel_stride, v); });
  part.end(block);
  __syncthreads();
  add_block(states[grouping.group()], block);
}

// Computes the result of each group from its sums, one thread per group.
template <class Sums, class Fit>
__global__ void __launch_bounds__(32)
    finish_kernel(Sums* states, Fit settings, typename Fit::result* results, std::int64_t groups) {
  require_ieee_arithmetic();
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  if (group >= groups) return;
  states[group].propagate_carries();
  results[group] = settings.finish(states[group]);
}

}  // namespace suture::detail
