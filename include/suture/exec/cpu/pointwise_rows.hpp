// SPDX-License-Identifier: Apache-2.0
// The path of the CPU executor for samples without geometry: rows pass through the value operations.
#pragma once

#include "path.hpp"

namespace suture::detail {

// Tests whether the voxels of a row, and the rows of a plane, are adjacent in source and target alike.
inline bool is_dense(const std::int32_t (&n)[3], const std::int64_t (&in)[3], const std::int64_t (&out)[3]) {
  return in[2] == 1 && out[2] == 1 && in[1] == n[2] && out[1] == n[2];
}

// Writes the rows of a brick, which lies in one plane, of an image that only passes through value operations.
template <std::size_t B, class Evaluator, class Stages>
void write_values(const brick_work<Evaluator>& work, [[maybe_unused]] Stages& stages) {
  using P = typename Evaluator::pipeline_type;
  using In = typename Evaluator::template binding_type<B>::input;
  using Out = typename Evaluator::template pair<B>::Out;
  const auto& r = work.r;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  const std::int32_t(&n)[3] = r.sample.extents;
  const std::int32_t y0 = work.y0, y1 = work.y1;
  if constexpr (can_transpose_strips<P>)
    if (stages.transposes) {
      for (std::int32_t channel = 0; channel < in.channels; ++channel)
        for (std::int32_t x0 = 0; x0 < n[2]; x0 += strip_width)
          for (std::int32_t y = y0; y < y1; ++y) {
            const voxel_index at{work.sample_index, channel, work.z0, y, x0};
            alignas(lane_alignment) float v[strip_width];
            const In* const from = element_at<const In>(in, at);
            load_strip(from, in.stride[2], work.lanes_from(x0), v);
            prefetch_strip(from + strip_width * in.stride[2], in.stride[2]);  // the next column
            stages.template receive_unfinished<B>(v, at);
          }
      return;
    }
  const std::int64_t bytes = static_cast<std::int64_t>(sizeof(Out)) * n[0] * n[1] * n[2];
  const bool streams = out.stride[2] == 1 && bytes > stays_in_cache;
  const bool as_one = !any_needs_voxel<typename P::output_functors> && is_dense(n, in.stride, out.stride);
  const std::int32_t rows = as_one ? 1 : y1 - y0, length = as_one ? (y1 - y0) * n[2] : n[2];
  const typename P::output_functors outputs = r.sample.output_functors;  // a copy, which no store can change
  for (std::int32_t channel = 0; channel < in.channels; ++channel)
    for (std::int32_t y = y0; y < y0 + rows; ++y) {
      const voxel_index row{work.sample_index, channel, work.z0, y, 0};
      const In* const from = element_at<const In>(in, row);
      Out* const to = element_at<Out>(out, row);
      const auto write = [&](std::int32_t x0, std::int64_t step_in, std::int64_t step_out, int count,
                             bool past_caches) {
        float v[strip_width];
        load_strip(from + x0 * step_in, step_in, count, v);
        with_place<typename P::output_functors>(r.sample, {row.sample, channel, row.z, y, x0}, [&](const auto& place) {
          apply_lanes(outputs, v, place, [&]<class R>(const R(&finished)[strip_width]) {
            write_stored(to + x0 * step_out, step_out, finished, count, past_caches);
          });
        });
      };
      std::int32_t x0 = 0;
      if (in.stride[2] == 1 && out.stride[2] == 1) {  // whole strips, whose layout the compiler knows
        if (streams) {
          const auto into_line =
              static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(to) % simd::stream_alignment);
          const std::int32_t lead =
              into_line == 0 ? 0 : (simd::stream_alignment - into_line) / std::int32_t{sizeof(Out)};
          if (lead <= length) {
            if (lead > 0) write(0, 1, 1, lead, false);
            x0 = lead;
          }
          for (; x0 + strip_width <= length; x0 += strip_width) write(x0, 1, 1, strip_width, true);
        } else {
          for (; x0 + strip_width <= length; x0 += strip_width) write(x0, 1, 1, strip_width, false);
        }
      }
      for (; x0 < length; x0 += strip_width)
        write(x0, in.stride[2], out.stride[2], std::min(strip_width, length - x0), false);
    }
  if (streams) simd::finish_streams();
}

// Writes the rows of a brick of 8-bit pixels whose first operation begins with a function of the level of each channel,
// which is looked up in a table. Returns false, with nothing written, if that operation is off.
template <std::size_t B, class Evaluator, class Stages>
bool write_looked_up(const brick_work<Evaluator>& work, Stages& stages) {
  const auto& r = work.r;
  const auto& first = bare(get<0>(r.sample.output_functors));
  float table[256];
  if (!is_on(get<0>(r.sample.output_functors))) return false;
  const auto constants = first.constants_of(work.sample_index);
  for (int i = 0; i < 256; ++i) table[i] = constants.level(static_cast<float>(i));
  const source_tensor& in = r.in[B];
  const std::int32_t(&n)[3] = r.sample.extents;
  constexpr int ahead = strips_looked_up;
  float pixels[ahead][3][strip_width];
  for (std::int32_t y = work.y0; y < work.y1; ++y)
    for (std::int32_t first_x = 0; first_x < n[2]; first_x += ahead * strip_width) {
      const auto strip_at = [&](int s) {
        return voxel_index{work.sample_index, 0, work.z0, y, first_x + s * strip_width};
      };
      const int strips = std::min(ahead, (n[2] - first_x + strip_width - 1) / strip_width);
      for (int s = 0; s < strips; ++s) {
        const voxel_index at = strip_at(s);
        const int count = work.lanes_from(at.x);
        look_up(table, pixels[s], element_at<const std::uint8_t>(in, at), in.channel_stride, in.stride[2], count);
        if (count < strip_width)
          for (auto& channel : pixels[s]) std::fill(channel + count, channel + strip_width, channel[count - 1]);
      }
      for (int s = 0; s < strips; ++s) constants.finish(pixels[s]);
      for (int s = 0; s < strips; ++s) finish_pixels<B, 1>(work, stages, pixels[s], strip_at(s));
    }
  return true;
}

struct pointwise_rows {
  static constexpr std::string_view name = "pointwise_rows";

  template <class Evaluator>
  static constexpr bool possible = !Evaluator::pipeline_type::has_geometry;

  template <class Parameters>
  static brick_shape shape(const Parameters&, std::int32_t) {
    return {1, pointwise_brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static void make(const brick_work<Evaluator>& work, Stages& stages) {
    using P = typename Evaluator::pipeline_type;
    each_pair<Evaluator, WithLabels>([&]<std::size_t B>() {
      constexpr bool is_label = Evaluator::template binding_type<B>::is_label;
      if constexpr (!is_label && !P::is_color && !P::is_staged) {
        write_values<B>(work, stages);
      } else {
        if constexpr (!is_label &&
                      first_begins_with_uint8_lookup<P, typename Evaluator::template binding_type<B>::input>())
          if (write_looked_up<B>(work, stages)) return;
        no_controls no_strip;  // without geometry no position is asked for
        // Row by row, or column by column where strips are transposed.
        const std::int32_t width = work.r.sample.extents[2];
        const std::int32_t columns = transposes_strips(work.r.sample) ? strip_width : width;
        for (std::int32_t first = 0; first < width; first += columns)
          for (std::int32_t y = work.y0; y < work.y1; ++y)
            for (std::int32_t x0 = first; x0 < std::min(first + columns, width); x0 += strip_width)
              write_strip<B>(work, no_strip, stages, work.z0, y, x0);
      }
    });
  }
};

}  // namespace suture::detail
