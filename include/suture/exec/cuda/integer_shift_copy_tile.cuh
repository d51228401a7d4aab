// SPDX-License-Identifier: Apache-2.0
// A path of the fused kernel: tiles that stand on voxels of the source, as after crops and flips, and so are copied:
// what linear interpolation would make of them. Whether it would is looked at while they are copied; where it would
// not, the tile is made again. exec/cpu/integer_shift_copy_rows.hpp is the same on the CPU.
#pragma once

#include <string_view>

#include "plane_walk.cuh"

namespace suture::detail {

// The voxels of the source that a tile reads or mixes with others, both ends included.
struct integer_shift_box {
  std::int32_t low[3], high[3];

  // Of the tile of a column; false where it leaves the source, or is mixed with voxels from elsewhere.
  template <class Pipeline>
  __device__ __forceinline__ bool set(const sample_parameters<Pipeline>& sample, const source_tensor& source,
                                      const column_of_thread& column) {
    const std::int32_t(&n)[3] = sample.extents;
    const std::int32_t first[] = {column.z0, column.tile_y0, column.tile_x0};
    const std::int32_t last[] = {column.z1 - 1, min(column.tile_y0 + tile_y, n[1]) - 1,
                                 min(column.tile_x0 + tile_x, n[2]) - 1};
    bool inside = first[1] < n[1] && first[2] < n[2];
    SUTURE_UNROLL
    for (int k = 0; k < 3; ++k) {
      const std::int32_t a = place(sample, k, first[k]), b = place(sample, k, last[k]);
      low[k] = min(a, b);
      high[k] = max(a, b);
      inside &= low[k] >= 0 && high[k] < source.extents[k];
      const std::int32_t next = Pipeline::border_type::index(high[k] + 1, source.extents[k]);
      if (next > high[k])
        ++high[k];
      else
        inside &= next < 0 || next >= low[k];
    }
    return inside;
  }
  template <class Pipeline>
  __device__ __forceinline__ static std::int32_t place(const sample_parameters<Pipeline>& sample, int axis,
                                                       std::int32_t i) {
    return whole(sample.map.offset[axis] + scaled(sample.map.linear[axis][axis], i));
  }
};

// What has been seen of the values that would be mixed.
struct seen_of_mixture {
  std::uint32_t largest = 0;
  std::int32_t least = 0;

  __device__ __forceinline__ void look(float v) {
    const std::uint32_t bits = float_bits(v);
    largest = max(largest, bits & 0x7fffffffu);
    least = min(least, static_cast<std::int32_t>(bits));  // -0 is the least of all
  }
  __device__ __forceinline__ bool is_copied() const {
    return largest < least_magnitude_mixed && least != static_cast<std::int32_t>(0x80000000u);
  }
};

// use(voxel, z) for those of a column, which lie `step` apart from `p` on; several are read before the first is used.
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

  // Not in kernels of deformations, which need all registers for those.
  template <class Evaluator>
  static constexpr bool possible = plane_walk::possible<Evaluator> && !Evaluator::pipeline_type::has_deformation;
  template <class Evaluator>
  using shape = tile_shape<Evaluator>;
  static constexpr bool serves_all = false;

  template <class Record>
  __device__ __forceinline__ static bool serves(const Record& r) {
    return r.sample.stands_on_voxels != 0;
  }

  // True if the whole tile was copied.
  template <bool WithLabels, bool OneChannel, class Evaluator>
  __device__ __forceinline__ static bool make(const block_work<Evaluator>& work) {
    const auto& evaluate = work.evaluate;
    const auto& r = work.r;
    const std::int32_t sample_index = work.sample_index;
    const column_of_thread& column = work.at;
    const shared_normals* const ahead = work.ahead;
    using P = typename Evaluator::pipeline_type;
    const std::int32_t z0 = column.z0, z1 = column.z1, y = column.y, x = column.x;
    integer_shift_box box;
    if (z1 - z0 < 2 || !box.set(r.sample, r.in[0], column)) return false;  // a plane is sooner made one by one
    seen_of_mixture seen;
    const auto one = [&]<std::size_t B>() {
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
      const std::int32_t at_z = integer_shift_box::place(r.sample, 0, z0);
      const std::int64_t at =
          place(at_z, integer_shift_box::place(r.sample, 1, y), integer_shift_box::place(r.sample, 2, x));
      const std::int32_t first = Evaluator::template first_channel<B>(ahead);
      const std::int32_t end = first + Evaluator::template channel_count<B>(r, ahead);
      if constexpr (!binding_type::is_label && (!std::is_integral_v<In> || P::taps::size != 0)) {
        // Neighbors of those at the rim.
        const auto thread = static_cast<std::int32_t>(threadIdx.x);
        for (std::int32_t channel = first; channel < end; ++channel) {
          const In* const from = pair::start(s, channel);
          const auto look = [&](const In* voxel) {
            seen.look(apply(r.sample.taps, storage<In>::load(*voxel), suture::voxel{}));
          };
          // From plane vz on, every so many planes.
          const auto look_along_z = [&](std::int32_t vz, std::int32_t vy, std::int32_t vx, std::int32_t planes) {
            const In* p = from + place(vz, vy, vx);
            SUTURE_NO_UNROLL
            for (const std::int64_t step = planes * s.stride[0]; vz <= box.high[0]; vz += planes, p += step) look(p);
          };
          if (column.inside) look(from + at + (box.high[0] - at_z) * s.stride[0]);
          if (const std::int32_t vx = box.low[2] + (thread & 31); vx < box.high[2])
            look_along_z(box.low[0] + (thread >> 5), box.high[1], vx, 8);
          if (const std::int32_t vy = box.low[1] + (thread & 15); vy <= box.high[1])
            look_along_z(box.low[0] + (thread >> 4), vy, box.high[2], 16);
        }
      }
      if (!column.inside) return;
      const std::int64_t step = r.sample.map.linear[0][0] >> 63 == 0 ? s.stride[0] : -s.stride[0];
      const std::int64_t to_step = out.stride[0];
      const In* from = pair::start(s, first) + at;
      auto* to = in_global_memory(static_cast<typename pair::unit*>(out.data)) + z0 * out.stride[0] +
                 y * out.stride[1] + x * out.stride[2] + first * out.channel_stride;
      for (std::int32_t channel = first; channel < end; ++channel, from += s.channel_stride, to += out.channel_stride) {
        auto* q = to;
        each_in_column(from, step, z0, z1, [&](In raw, std::int32_t z) {
          if constexpr (!binding_type::is_label) {
            const float v = apply(r.sample.taps, storage<In>::load(raw), voxel{});
            if constexpr (!std::is_integral_v<In> || P::taps::size != 0) seen.look(v);
            Evaluator::template store<B>(r, q, pair::finished(r.sample, v, sample_index, channel, z, y, x, ahead));
          } else if constexpr (binding_type::converts) {
            evaluate.template store_label<B>(r, q, std::int32_t{raw}, channel);
          } else {
            *q = raw;
          }
          q += to_step;
        });
      }
    };
    const auto in_order = [&]<std::size_t B>() {
      if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label) one.template operator()<B>();
    };
    [&]<std::size_t... B>(std::index_sequence<B...>) { (in_order.template operator()<B>(), ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
    return !__syncthreads_or(seen.is_copied() ? 0 : 1);
  }
};

}  // namespace suture::detail
