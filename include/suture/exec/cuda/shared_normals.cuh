// SPDX-License-Identifier: Apache-2.0
// Normals made ahead of a walk, by the lanes of a warp for each other: four neighbors of a row share the Philox block
// of their four normals, so each of these lanes makes all four for another turn of the walk. The bits are those of
// random_field::normal.
#pragma once

#include "../../pipeline/pipeline.hpp"

namespace suture::detail {

template <int Fields>
struct room_for_normals {
  static constexpr int threads = threads_ahead;
  static constexpr int turns = turns_ahead<Fields>;

  // The normal of each thread for a turn. Lanes that write those of their neighbors, one turn each, meet in no bank of
  // the memory because of the one element more.
  float normal[Fields][turns][threads + 1];

  shared_normals::range channels;

  __device__ __forceinline__ shared_normals ahead() const { return {&normal[0][0][0], &channels, turns, threads + 1}; }

  // All threads of a block call this before anything else.
  __device__ __forceinline__ void set(const shared_normals::range& of) {
    if (threadIdx.x == 0) channels = of;
    __syncthreads();
  }

  // All lanes of a warp call this; for each active functor it makes the normals of some channels of voxel (z, y, x) and
  // of the voxels that follow along z. Lanes beyond the grid help with the normals of their neighbors.
  template <class... Fs>
  __device__ __forceinline__ void make(const pack<Fs...>& functors, const std::int32_t (&extents)[3], std::int32_t z,
                                       std::int32_t y, std::int32_t x) {
    make_from<0, 0>(functors, extents, z, y, x);
    __syncwarp();
  }

private:
  template <std::size_t I, int First, class... Fs>
  __device__ __forceinline__ void make_from(const pack<Fs...>& functors, const std::int32_t (&extents)[3],
                                            std::int32_t z, std::int32_t y, std::int32_t x) {
    if constexpr (I < sizeof...(Fs)) {
      using F = element_t<I, pack<Fs...>>;
      constexpr int count = normals_of<typename unswitched<F>::type>;
      if constexpr (count > 0) {
        const auto& f = get<I>(functors);
        if (is_on(f))
          for (int i = 0; i < count; ++i) make_field(bare(f).normal_field(i), normal[First + i], extents, z, y, x);
      }
      make_from<I + 1, First + count>(functors, extents, z, y, x);
    }
  }

  __device__ SUTURE_DEVICE_NOINLINE void make_field(const random_field& field, float (&to)[turns][threads + 1],
                                                    const std::int32_t (&extents)[3], std::int32_t z, std::int32_t y,
                                                    std::int32_t x) {
    const int thread = static_cast<int>(threadIdx.x);
    const bool shared = extents[2] % 4 == 0;  // blocks begin and end with four lanes
    const int mine = thread % 4;
    SUTURE_NO_UNROLL
    for (int turn = shared ? mine : 0; turn < turns; turn += shared ? 4 : 1) {
      const voxel at = voxel_at(
          extents, {0, channels.first + (turn & ((1 << channels.shift) - 1)), z + (turn >> channels.shift), y, x});
      if (shared) {
        float normals[4];
        field.normal4(at.element / 4, normals);
        for (int i = 0; i < 4; ++i) to[turn][thread - mine + i] = normals[i];
      } else {
        to[turn][thread] = field.normal(at.element);
      }
    }
  }
};

}  // namespace suture::detail
