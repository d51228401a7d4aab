// SPDX-License-Identifier: Apache-2.0
// Normally distributed numbers that the threads of a block compute for each other before they walk along their columns.
// The normals of four neighbors along x come from one Philox block. Each of the four threads therefore computes all
// four normals for a quarter of the slots. A slot holds one channel of one voxel in a walk. The bits are those of
// random_field::normal.
#pragma once

#include "../../evaluate/sample_parameters.hpp"
#include "tile.cuh"

namespace suture::detail {

// The normals of a block in shared memory, for `Fields` random fields.
template <int Fields>
struct room_for_normals {
  static constexpr int threads = threads_ahead;
  static constexpr int slots = slots_ahead<Fields>;

  // The normals by field, slot and thread. One more element per row avoids bank conflicts: lanes that write for their
  // neighbors write to a row of another slot each.
  float normal[Fields][slots][threads + 1];

  shared_normals::range channels;

  __device__ __forceinline__ shared_normals ahead() const { return {&normal[0][0][0], &channels, slots, threads + 1}; }

  // Sets the channels that the normals are for. All threads of a block call this first.
  __device__ __forceinline__ void set(const shared_normals::range& of) {
    if (threadIdx.x == 0) channels = of;
    __syncthreads();
  }

  // Computes the normals of every active functor for the columns of a tile and the channels that were set. All threads
  // of a block call this; those outside the grid compute normals for their neighbors.
  template <class Pipeline>
  __device__ __forceinline__ void make(const sample_parameters<Pipeline>& sample, const column_of_thread& at) {
    if (__any_sync(0xffffffff, at.inside)) make_from<0, 0>(sample.output_functors, sample, at);
    // Neighbors along x are lanes of one warp, or rows of the block in several warps.
    if (sample.loops == lanes_along_x)
      __syncwarp();
    else
      __syncthreads();
  }

private:
  template <std::size_t I, int First, class Pipeline, class... Fs>
  __device__ __forceinline__ void make_from(const pack<Fs...>& functors, const sample_parameters<Pipeline>& sample,
                                            const column_of_thread& at) {
    if constexpr (I < sizeof...(Fs)) {
      using F = element_t<I, pack<Fs...>>;
      constexpr int count = normals_of<typename unswitched<F>::type>;
      if constexpr (count > 0) {
        const auto& f = get<I>(functors);
        if (is_on(f))
          for (int i = 0; i < count; ++i)
            make_field(bare(f).normal_field(i), normal[First + i], sample.extents, sample.loops, at.z0, at.y, at.x);
      }
      make_from<I + 1, First + count>(functors, sample, at);
    }
  }

  // Computes the normals of one random field.
  __device__ SUTURE_DEVICE_NOINLINE void make_field(const random_field& field, float (&to)[slots][threads + 1],
                                                    const std::int32_t (&extents)[3], std::uint8_t loops,
                                                    std::int32_t plane, std::int32_t row, std::int32_t lane) {
    const int thread = static_cast<int>(threadIdx.x);
    const bool in_lanes = loops == lanes_along_x;
    // Distances between threads of adjacent voxels along x, and of voxels two apart.
    static_assert(warp_x == 16, "a warp has two rows");
    const int next = in_lanes ? 1 : warp_x, second_next = in_lanes ? 2 : 2 * tile_x;
    const bool shared = extents[in_lanes ? 2 : 1] % 4 == 0;  // no Philox block spans two rows along x
    const int mine = (in_lanes ? lane : row) % 4;
    const int first = thread - (mine % 2 * next + mine / 2 * second_next);
    SUTURE_NO_UNROLL
    for (int slot = shared ? mine : 0; slot < slots; slot += shared ? 4 : 1) {
      const voxel at = voxel_of_walk(
          extents, loops,
          {0, channels.first + (slot & ((1 << channels.shift) - 1)), plane + (slot >> channels.shift), row, lane});
      if (shared) {
        float normals[4];
        field.normal4(at.element / 4, normals);
        for (int i = 0; i < 4; ++i) to[slot][first + i % 2 * next + i / 2 * second_next] = normals[i];
      } else {
        to[slot][thread] = field.normal(at.element);
      }
    }
  }
};

}  // namespace suture::detail
