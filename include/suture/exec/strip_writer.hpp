// SPDX-License-Identifier: Apache-2.0
// The CPU's walking form of the evaluator: writes the finished values of a strip.
#pragma once

#include "strip_colour.hpp"

namespace suture::detail {

template <class T>
SUTURE_INLINE void write_row(T* to, std::int64_t stride, const T (&v)[strip_width], int count) {
  if (stride == 1 && count == strip_width)
    std::memcpy(to, v, sizeof(v));
  else
    for (int l = 0; l < count; ++l) to[l * stride] = v[l];
}

template <class Out, class R>
SUTURE_INLINE void write_stored(Out* to, std::int64_t stride, const R (&finished)[strip_width], int count) {
  Out row[strip_width];
  for (int l = 0; l < strip_width; ++l) row[l] = stored<Out>(finished[l]);
  write_row(to, stride, row, count);
}

// Writes every channel of one bound pair for the strip at (z, y, x0).
template <std::size_t B, class Evaluator, class Strip>
void write_strip(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t number, const Strip& s,
                 std::int32_t z, std::int32_t y, std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  using Binding = typename Evaluator::template binding_type<B>;
  using pair = typename Evaluator::template pair<B>;
  using In = typename Binding::input;
  using Out = typename pair::Out;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  const int count = std::min(strip_width, r.sample.extents[2] - x0);
  Out* to = static_cast<Out*>(out.data) + z * out.stride[0] + y * out.stride[1] + x0 * out.stride[2];
  if constexpr (pair::is_colour) {
    float v[3][strip_width];
    pixels_of_strip<P, In>(s, r.sample, in, number, e.rule.border, z, y, x0, v);
    const along_x place{voxel_at(r.sample.extents, number, 0, z, y, x0)};
    apply_pixel_lanes(r.sample.outputs, v, place, [&]<class R>(const R(&finished)[3][strip_width]) {
      for (int channel = 0; channel < 3; ++channel)
        write_stored(to + channel * out.channel_stride, out.stride[2], finished[channel], count);
    });
  } else {
    for (std::int32_t channel = 0; channel < in.channels; ++channel, to += out.channel_stride) {
      if constexpr (Binding::is_label) {
        In v[strip_width];
        if constexpr (!P::has_geometry) {
          for (int l = 0; l < count; ++l) v[l] = read<In>(in, channel, z, y, x0 + l);
        } else if constexpr (!std::is_same_v<typename P::label_type, vote>) {
          const In* data = static_cast<const In*>(in.data) + channel * in.channel_stride;
          const In outside = static_cast<In>(e.rule.label_outside);
          if (is_compact(in))
            pick_labels<P, In, std::int32_t>(s, data, in.stride, in.extents, outside, v);
          else
            pick_labels<P, In, std::int64_t>(s, data, in.stride, in.extents, outside, v);
        } else {
          for (int l = 0; l < count; ++l) {
            coordinate c[3];
            s.lane(l, c);
            v[l] = pair::at(r.sample, in, c, number, channel, z, y, x0 + l, e.rule);
          }
        }
        write_row(to, out.stride[2], v, count);
      } else {
        float v[strip_width];
        if constexpr (!P::has_geometry) {
          static_assert(P::taps::size == 0);
          if (in.stride[2] == 1 && count == strip_width) {
            const In* p = static_cast<const In*>(in.data) + channel * in.channel_stride + z * in.stride[0] +
                          y * in.stride[1] + x0;
            for (int l = 0; l < strip_width; ++l) v[l] = storage<In>::load(p[l]);
          } else {
            for (int l = 0; l < strip_width; ++l)
              v[l] = storage<In>::load(read<In>(in, channel, z, y, x0 + std::min(l, count - 1)));
          }
        } else {
          if constexpr (!P::prefiltered && any_needs_voxel<typename P::taps>) {
            for (int l = 0; l < strip_width; ++l) {
              coordinate c[3];
              s.lane(l, c);
              v[l] = pair::sampled(r.sample, in, c, number, channel, e.rule.border);
            }
          } else if (is_compact(in)) {
            sample_strip<P, In, std::int32_t>(s, in, channel, r.sample.taps, e.rule.border, v);
          } else {
            sample_strip<P, In, std::int64_t>(s, in, channel, r.sample.taps, e.rule.border, v);
          }
        }
        const along_x place{voxel_at(r.sample.extents, number, channel, z, y, x0)};
        apply_lanes(r.sample.outputs, v, place, [&]<class R>(const R(&finished)[strip_width]) {
          write_stored(to, out.stride[2], finished, count);
        });
      }
    }
  }
}

template <bool WithLabels, class Evaluator, class Strip>
void write_strips(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t number, const Strip& s,
                  std::int32_t z, std::int32_t y, std::int32_t x0) {
  const auto one = [&]<std::size_t B>() {
    if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label)
      write_strip<B>(e, r, number, s, z, y, x0);
  };
  [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
  (std::make_index_sequence<Evaluator::pairs>{});
}

}  // namespace suture::detail
