// SPDX-License-Identifier: Apache-2.0
// The general path of the fused kernel, which serves every sample. A thread visits the voxels of a column along z and
// computes all channels of all bound pairs at each of them.
#pragma once

#include "../../evaluate/column.hpp"
#include "path.cuh"
#include "shared_columns.cuh"

namespace suture::detail {

// Tests whether batches whose inputs all have one channel, the usual case, get kernels of their own: these need no
// registers for channel counts and strides.
template <class Evaluator>
inline constexpr bool has_one_channel_kernel =
    Evaluator::pipeline_type::has_geometry && !Evaluator::pipeline_type::is_color;

struct column_walk {
  static constexpr std::string_view name = "column_walk";

  template <class Evaluator>
  static constexpr bool possible = true;
  // A block computes several tiles of a plane where colors need no work at the source voxels: it then has little else
  // to do, and shares its setup. Operations at the source voxels would need the registers.
  template <class Evaluator>
  using shape =
      tile_shape<Evaluator, 1, warp_x,
                 Evaluator::pipeline_type::is_color &&
                     (!Evaluator::pipeline_type::has_geometry || Evaluator::pipeline_type::source_functors::size == 0)>;

  template <bool WithLabels, bool OneChannel, class Evaluator>
  __device__ __forceinline__ static void make(const block_work<Evaluator>& work) {
    if constexpr (shape<Evaluator>::stacks) {
      column_of_thread at = work.at;
      SUTURE_NO_UNROLL
      for (std::int32_t row = 0; row < work.tiles.rows; ++row, at.y += tile_y)
        if (at.x < work.r.sample.extents[2] && at.y < work.r.sample.extents[1])
          make_column<WithLabels, OneChannel>(work, at, no_columns{});
    } else if constexpr (makes_columns<Evaluator>) {
      __shared__ room_for_columns room;
      const column_of_thread& at = work.at;
      const auto& sample = work.r.sample;
      if (at.tile_x0 >= sample.extents[2] || at.tile_y0 >= sample.extents[1]) return;
      room.make(sample.controls, sample.loops, sample.extents, at);
      if (at.inside) make_column<WithLabels, OneChannel>(work, at, room);
    } else if (work.at.inside) {
      make_column<WithLabels, OneChannel>(work, work.at, no_columns{});
    }
  }

private:
  template <bool WithLabels, bool OneChannel, class Evaluator, class Columns>
  __device__ __forceinline__ static void make_column(const block_work<Evaluator>& work, const column_of_thread& at,
                                                     const Columns& columns) {
    using P = typename Evaluator::pipeline_type;
    // Whether the steps from voxel to voxel may stay in registers; otherwise they are read for each voxel. A loop over
    // channels makes registers scarce, unless a deformation is there, which waits for other memory anyway.
    constexpr bool keeps_steps =
        OneChannel || !has_one_channel_kernel<Evaluator> || P::has_deformation || P::inverts_deformation;
    const auto& r = work.r;
    typename Evaluator::column_addresses to(r, at.z0, at.y, at.x, work.ahead);
    if constexpr (P::has_geometry) {
      column<P> walk(r.sample, at.z0, at.y, at.x);
      SUTURE_NO_UNROLL
      for (std::int32_t z = at.z0; z < at.z1;
           ++z, walk.template step<keeps_steps>(), to.template step<keeps_steps>(r)) {
        coordinate c[3];
        walk.locate(c, columns);
        work.evaluate.template write<WithLabels, OneChannel>(r, work.sample_index, c, to, z, at.y, at.x, work.ahead);
      }
    } else {
      SUTURE_NO_UNROLL
      for (std::int32_t z = at.z0; z < at.z1; ++z, to.template step<keeps_steps>(r))
        work.evaluate.template write<WithLabels, OneChannel>(r, work.sample_index, {}, to, z, at.y, at.x, work.ahead);
    }
  }
};

}  // namespace suture::detail
