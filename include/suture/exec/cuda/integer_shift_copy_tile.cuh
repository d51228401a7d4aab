// SPDX-License-Identifier: Apache-2.0
// A path of the fused kernel for tiles whose voxels coincide with voxels of the source and lie inside it, as after
// crops and flips. Voxels are copied, which is the result of linear interpolation there. Its counterpart on the CPU,
// exec/cpu/integer_shift_copy_rows.hpp, also takes quarter turns, permutations of axes and rows that leave the source.
#pragma once

#include <string_view>

#include "plane_walk.cuh"

namespace suture::detail {

// Source positions of a sample whose map shifts by whole voxels, along each axis or against it.
struct integer_shift {
  // Tests whether the source positions of a whole tile lie inside the source.
  template <class Pipeline>
  __device__ __forceinline__ static bool stays_inside(const sample_parameters<Pipeline>& sample,
                                                      const source_tensor& source, const column_of_thread& column) {
    const std::int32_t(&n)[3] = sample.extents;
    const std::int32_t first[] = {column.z0, column.tile_y0, column.tile_x0};
    const std::int32_t last[] = {column.z1 - 1, min(column.tile_y0 + tile_y, n[1]) - 1,
                                 min(column.tile_x0 + tile_x, n[2]) - 1};
    bool inside = first[1] < n[1] && first[2] < n[2];
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) {
      const std::int32_t a = place(sample, k, first[k]), b = place(sample, k, last[k]);
      inside &= min(a, b) >= 0 && max(a, b) < source.extents[k];
    }
    return inside;
  }
  template <class Pipeline>
  __device__ __forceinline__ static std::int32_t place(const sample_parameters<Pipeline>& sample, int axis,
                                                       std::int32_t i) {
    return whole(sample.map.offset[axis] + scaled(sample.map.linear[axis][axis], i));
  }
};

// Calls use(value, z) for the voxels z0 .. z1 - 1 of a column, which begins at `p` and whose voxels are `step` elements
// apart. Several are read before the first is used, so that loads overlap.
template <class T, class Use>
__device__ __forceinline__ void each_in_column(const T* p, std::int64_t step, std::int32_t z0, std::int32_t z1,
                                               const Use& use) {
  constexpr int ahead = 4;
  std::int32_t z = z0;
  SUTURE_NO_UNROLL
  for (; z + ahead <= z1; z += ahead) {
    T read[ahead];
    SUTURE_UNROLL
    for (int i = 0; i < ahead; ++i, p += step) read[i] = *p;
    SUTURE_UNROLL
    for (int i = 0; i < ahead; ++i) use(read[i], z + i);
  }
  SUTURE_NO_UNROLL
  for (; z < z1; ++z, p += step) use(*p, z);
}

struct integer_shift_copy_tile {
  static constexpr std::string_view name = "integer_shift_copy_tile";

  // This path is not compiled into kernels with deformations, which need all registers themselves.
  template <class Evaluator>
  static constexpr bool possible = plane_walk::possible<Evaluator> && !Evaluator::pipeline_type::has_deformation;
  template <class Evaluator>
  using shape = tile_shape<Evaluator>;

  template <class Record>
  __device__ __forceinline__ static bool serves(const Record& r) {
    return r.sample.kind == map_kind::shifted;
  }

  // Returns false, so that the next path computes the tile, if the tile leaves the source or has one plane. Loads of
  // several planes overlap here; with one plane there is nothing to gain.
  template <bool WithLabels, bool OneChannel, class Evaluator>
  __device__ __forceinline__ static bool make(const block_work<Evaluator>& work) {
    const auto& evaluate = work.evaluate;
    const auto& r = work.r;
    const std::int32_t sample_index = work.sample_index;
    const column_of_thread& column = work.at;
    const shared_normals* const ahead = work.ahead;
    using P = typename Evaluator::pipeline_type;
    const std::int32_t z0 = column.z0, z1 = column.z1, y = column.y, x = column.x;
    if (z1 - z0 < 2 || !integer_shift::stays_inside(r.sample, r.in[0], column)) return false;
    if (!column.inside) return true;
    each_pair_on_device<Evaluator, WithLabels>([&]<std::size_t B>() {
      using binding_type = typename Evaluator::template binding_type<B>;
      using pair = typename Evaluator::template pair<B>;
      using In = typename binding_type::input;
      const source_tensor& s = r.in[B];
      const target_tensor& out = r.out[B];
      const auto place = [&](std::int32_t vz, std::int32_t vy, std::int32_t vx) {
        const auto along = [&](int axis, std::int32_t i) {
          return product(i, static_cast<tap_offset<typename P::border_type>>(s.stride[axis]));
        };
        return along(0, vz) + along(1, vy) + along(2, vx);
      };
      const std::int64_t at = place(integer_shift::place(r.sample, 0, z0), integer_shift::place(r.sample, 1, y),
                                    integer_shift::place(r.sample, 2, x));
      const std::int32_t first = Evaluator::template first_channel<B>(ahead);
      const std::int32_t end = first + Evaluator::template channel_count<B>(r, ahead);
      const std::int64_t step = r.sample.map.linear[0][0] >> 63 == 0 ? s.stride[0] : -s.stride[0];
      const std::int64_t to_step = out.stride[0];
      const In* from = pair::start(s, first) + at;
      auto* to = in_global_memory(static_cast<typename pair::unit*>(out.data)) + z0 * out.stride[0] +
                 y * out.stride[1] + x * out.stride[2] + first * out.channel_stride;
      for (std::int32_t channel = first; channel < end; ++channel, from += s.channel_stride, to += out.channel_stride) {
        auto* q = to;
        each_in_column(from, step, z0, z1, [&](In raw, std::int32_t z) {
          if constexpr (!binding_type::is_label) {
            const float v = apply(r.sample.source_functors, storage<In>::load(raw), voxel{});
            Evaluator::template store<B>(r, q, pair::finished(r.sample, v, {sample_index, channel, z, y, x}, ahead));
          } else if constexpr (binding_type::converts) {
            evaluate.template store_label<B>(r, q, std::int32_t{raw}, channel);
          } else {
            *q = raw;
          }
          q += to_step;
        });
      }
    });
    return true;
  }
};

}  // namespace suture::detail
