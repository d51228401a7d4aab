// SPDX-License-Identifier: Apache-2.0
// A path of the fused kernel for samples whose output planes lie in planes of the source. A thread walks its column
// once for each channel; voxels between the same two source planes share what is interpolated in these.
#pragma once

#include "../../evaluate/plane_column.hpp"
#include "path.cuh"

namespace suture::detail {

// Calls use(z, c) for each voxel of a column with its source position c, of which only c[0] changes along the column.
template <class Pipeline, class Use>
__device__ __forceinline__ void along_planes(const sample_parameters<Pipeline>& sample, std::int32_t z0,
                                             std::int32_t z1, coordinate (&c)[3], const Use& use) {
  const std::uint64_t step = sample.map.linear[0][0];
  std::uint64_t position = sample.map.offset[0] + scaled(step, z0);
  SUTURE_NO_UNROLL
  for (std::int32_t z = z0; z < z1; ++z, position += step) {
    c[0] = split(position);
    use(z, c);
  }
}

// Computes a column of bound pair B, channel after channel.
template <std::size_t B, bool OneChannel, bool AlongY, class Evaluator>
__device__ __forceinline__ void walk_pair(const Evaluator& evaluate, const typename Evaluator::record_type& r,
                                          std::int32_t sample_index, std::int32_t z0, std::int32_t z1, std::int32_t y,
                                          std::int32_t x, coordinate (&c)[3], const shared_normals* ahead) {
  using P = typename Evaluator::pipeline_type;
  using binding_type = typename Evaluator::template binding_type<B>;
  using pair = typename Evaluator::template pair<B>;
  using In = typename binding_type::input;
  const source_tensor& s = r.in[B];
  const target_tensor& out = r.out[B];
  const typename Evaluator::column_addresses at(r, z0, y, x, ahead);
  auto* p = at.template to<B>();
  const std::int32_t first = Evaluator::template first_channel<B>(ahead);
  const std::int32_t end = first + Evaluator::template channel_count<B>(r, ahead);
  const auto each_channel = [&](auto& source, const auto& use) {
    SUTURE_NO_UNROLL
    for (std::int32_t channel = first; OneChannel || channel < end; ++channel) {
      along_planes(r.sample, z0, z1, c, [&](std::int32_t z, const coordinate(&place)[3]) {
        use(source.at(place), channel, z);
        p += out.stride[0];
      });
      if constexpr (OneChannel) return;
      source.to_next_channel(s.channel_stride);
      p += out.channel_stride - (z1 - z0) * out.stride[0];
    }
  };
  if constexpr (binding_type::is_label) {
    plane_labels<typename P::label_type, typename P::border_type, In> labels(
        s, at.template from<B>(), c, static_cast<In>(evaluate.rule.label_outside));
    each_channel(labels, [&](In label, std::int32_t channel, std::int32_t) {
      if constexpr (binding_type::converts)
        evaluate.template store_label<B>(r, p, std::int32_t{label}, channel);
      else
        *p = label;
    });
  } else {
    plane_values<P, In, AlongY> values(r.sample, s, at.template from<B>(), c, evaluate.rule.border);
    each_channel(values, [&](float value, std::int32_t channel, std::int32_t z) {
      Evaluator::template store<B>(r, p, pair::finished(r.sample, value, {sample_index, channel, z, y, x}, ahead));
    });
  }
}

// Tests whether columns may run along y of the source (map_kind::along_y). Only kernels for one channel do so, and only
// if a label is picked from one voxel, which does not depend on an order of axes. Kernels with deformations have no
// registers for it.
template <class Evaluator>
inline constexpr bool walks_along_y = [] {
  using P = typename Evaluator::pipeline_type;
  if constexpr (P::has_geometry && !P::has_deformation && !P::is_staged && !Evaluator::has_levels)
    return plane_values<P, float>::possible && requires { requires P::label_type::taps == 1; };
  else
    return false;
}();

struct plane_walk {
  static constexpr std::string_view name = "plane_walk";

  template <class Evaluator>
  static constexpr bool possible = [] {
    using P = typename Evaluator::pipeline_type;
    if constexpr (P::has_geometry)
      return plane_values<P, float>::possible;
    else
      return false;
  }();
  template <class Evaluator>
  using shape = tile_shape<Evaluator>;

  template <class Record>
  __device__ __forceinline__ static bool serves(const Record& r) {
    return r.sample.kind >= map_kind::along_y;
  }

  template <bool WithLabels, bool OneChannel, class Evaluator>
  __device__ __forceinline__ static bool make(const block_work<Evaluator>& work) {
    const column_of_thread& at = work.at;
    if (!at.inside) return true;
    coordinate c[3];
    c[1] = split(along(work.r.sample.map, 1, 0, at.y, at.x));
    c[2] = split(along(work.r.sample.map, 2, 0, at.y, at.x));
    if constexpr (OneChannel && walks_along_y<Evaluator>)
      if (work.r.sample.kind == map_kind::along_y) {
        walk_pairs<WithLabels, OneChannel, true>(work, c);
        return true;
      }
    walk_pairs<WithLabels, OneChannel, false>(work, c);
    return true;
  }

private:
  // Walks the column of every bound pair, the last pair first.
  template <bool WithLabels, bool OneChannel, bool AlongY, class Evaluator>
  __device__ __forceinline__ static void walk_pairs(const block_work<Evaluator>& work, coordinate (&c)[3]) {
    const column_of_thread& at = work.at;
    const auto one = [&]<std::size_t B>() {
      if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label)
        walk_pair<B, OneChannel, AlongY>(work.evaluate, work.r, work.sample_index, at.z0, at.z1, at.y, at.x, c,
                                         work.ahead);
    };
    [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<sizeof...(B) - 1 - B>(), ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
  }
};

}  // namespace suture::detail
