// SPDX-License-Identifier: Apache-2.0
// The CPU's walking form of the evaluator: writes the finished values of a strip.
#pragma once

#include "../common/uint8_lookup.hpp"
#include "cpu.hpp"
#include "strip_color.hpp"

namespace suture::detail {

template <class T>
SUTURE_INLINE void write_row(T* to, std::int64_t stride, const T (&v)[strip_width], int count, bool streams = false) {
  if (stride == 1 && count == strip_width)
    streams ? simd::stream<sizeof v>(to, v) : copy_strip(to, v);
  else
    for (int l = 0; l < count; ++l) to[l * stride] = v[l];
}

template <class Out, class R>
SUTURE_INLINE void write_stored(Out* to, std::int64_t stride, const R (&finished)[strip_width], int count,
                                bool streams = false) {
  if constexpr (std::is_same_v<Out, R> && !std::is_same_v<R, float>) {
    write_row(to, stride, finished, count, streams);
  } else {
    Out row[strip_width];
    for (int l = 0; l < strip_width; ++l) row[l] = stored<Out>(finished[l]);
    write_row(to, stride, row, count, streams);
  }
}

// Stores the three channels of pixels.
template <class Out, class R>
SUTURE_INLINE void write_stored_pixels(Out* to, std::int64_t channel_stride, std::int64_t stride,
                                       const R (&finished)[3][strip_width], int count) {
  if (stride == 3 && channel_stride == 1 && count == strip_width) {  // a loop of its own, which compilers vectorize
    Out row[3][strip_width];
    for (int channel = 0; channel < 3; ++channel)
      for (int l = 0; l < strip_width; ++l) row[channel][l] = stored<Out>(finished[channel][l]);
    for (int l = 0; l < strip_width; ++l) {
      to[3 * l] = row[0][l];
      to[3 * l + 1] = row[1][l];
      to[3 * l + 2] = row[2][l];
    }
  } else {
    for (int channel = 0; channel < 3; ++channel)
      write_stored(to + channel * channel_stride, stride, finished[channel], count);
  }
}

// Tests whether a strip must be computed lane by lane: the border depends on the position of a sample, and taps may lie
// outside.
template <int Taps, class Pipeline>
SUTURE_INLINE bool asks_each_lane(strip<Pipeline>& s, const source_tensor& in) {
  if constexpr (ends_at_rim<typename Pipeline::border_type>) {
    constexpr std::int32_t before = Taps > 2 ? -1 : 0, after = Taps > 2 ? 2 : 1;
    return !s.within(in.extents, before, after) && !(Taps <= 2 && s.within_plane(in.extents));
  } else {
    return false;
  }
}
// Calls use(lane, coordinate) for each lane.
template <class Pipeline, class Use>
SUTURE_INLINE void each_lane(const strip<Pipeline>& s, const Use& use) {
  for (int l = 0; l < strip_width; ++l) {
    coordinate c[3];
    s.lane(l, c);
    use(l, c);
  }
}

// The sampled labels of a strip, before their conversion; those behind the end of the row are not set.
template <std::size_t B, class Evaluator, class Strip, class In>
SUTURE_INLINE void labels_of_strip(const Evaluator& e, const typename Evaluator::record_type& r, Strip& s,
                                   std::int32_t channel, std::int32_t z, std::int32_t y, std::int32_t x0,
                                   In (&v)[strip_width]) {
  using P = typename Evaluator::pipeline_type;
  const source_tensor& in = r.in[B];
  const int count = std::min(strip_width, r.sample.extents[2] - x0);
  if constexpr (!P::has_geometry) {
    for (int l = 0; l < count; ++l) v[l] = read<In>(in, channel, z, y, x0 + l);
  } else {
    const In* data = static_cast<const In*>(in.data) + channel * in.channel_stride;
    if (asks_each_lane<2>(s, in)) {
      each_lane(s, [&](int l, const coordinate(&c)[3]) {
        v[l] = Evaluator::template pair<B>::label(in, data, c, channel, z, y, x0 + l, e.rule);
      });
      return;
    }
    const In outside = static_cast<In>(e.rule.label_outside);
    if (is_compact(in))
      pick_labels<P, In, std::int32_t>(s, data, in.stride, in.extents, outside, v);
    else
      pick_labels<P, In, std::int64_t>(s, data, in.stride, in.extents, outside, v);
  }
}

// Writes one channel of a strip of converted labels.
template <std::size_t B, class Evaluator, class Out>
SUTURE_INLINE void write_converted(const typename Evaluator::record_type& r, const Out (&row)[strip_width],
                                   std::int32_t channel, std::int32_t z, std::int32_t y, std::int32_t x0) {
  const target_tensor& out = r.out[B];
  write_row(static_cast<Out*>(out.data) + channel * out.channel_stride + z * out.stride[0] + y * out.stride[1] +
                x0 * out.stride[2],
            out.stride[2], row, std::min(strip_width, r.sample.extents[2] - x0));
}

// Conversions that write one channel of a row of labels, 0 or 1, in their type.
template <class C, class In>
concept converts_by_channel = requires(const C& convert, const In (&labels)[strip_width], In (&held)[strip_width]) {
  convert.convert_channel(labels, 0, held);
};

// Writes a strip of sampled labels with a conversion.
template <std::size_t B, class Evaluator, class In>
void write_labels(const Evaluator& e, const typename Evaluator::record_type& r, const In (&v)[strip_width],
                  std::int32_t channel, std::int32_t z, std::int32_t y, std::int32_t x0) {
  using Binding = typename Evaluator::template binding_type<B>;
  using Out = typename Binding::output;
  const auto& convert = get<B>(e.conversions);
  Out row[strip_width];
  if constexpr (requires { convert.convert_row(v, row); }) {  // in their own types, of which a register holds most
    convert.convert_row(v, row);
    write_converted<B, Evaluator>(r, row, channel, z, y, x0);
  } else if constexpr (converts_by_channel<std::remove_cvref_t<decltype(convert)>, In>) {
    In held[strip_width];
    for (std::int32_t k = 0; k < convert.channels(); ++k) {
      convert.convert_channel(v, k, held);
      if constexpr (std::is_integral_v<Out>) {
        for (int l = 0; l < strip_width; ++l) row[l] = static_cast<Out>(held[l]);
      } else {
        float values[strip_width];
        for (int l = 0; l < strip_width; ++l) values[l] = static_cast<float>(held[l]);
        store_row(values, row, strip_width);
      }
      write_converted<B, Evaluator>(r, row, k, z, y, x0);
    }
  } else {
    std::int32_t sampled[strip_width];
    for (int l = 0; l < strip_width; ++l) sampled[l] = v[l];
    std::remove_cvref_t<decltype(convert(std::int32_t{}))> converted[strip_width];
    if constexpr (requires { convert.convert_row(sampled, converted); })
      convert.convert_row(sampled, converted);
    else
      for (int l = 0; l < strip_width; ++l) converted[l] = convert(sampled[l]);

    std::int32_t first = channel, last = channel + 1;
    if constexpr (Binding::to_channels) first = 0, last = convert.channels();
    for (std::int32_t k = first; k < last; ++k) {
      if constexpr (std::is_integral_v<Out>) {
        for (int l = 0; l < strip_width; ++l) row[l] = stored_channel<Out>(converted[l], k);
      } else {
        float values[strip_width];
        for (int l = 0; l < strip_width; ++l) values[l] = stored_channel<float>(converted[l], k);
        store_row(values, row, strip_width);
      }
      write_converted<B, Evaluator>(r, row, k, z, y, x0);
    }
  }
}

// Writes the finished pixels of the strip at (z, y, x0), or passes them to later stages.
template <std::size_t B, class Evaluator, class Stages, class R>
SUTURE_INLINE void write_pixels(const typename Evaluator::record_type& r, Stages& stages, R (&finished)[3][strip_width],
                                std::int32_t z, std::int32_t y, std::int32_t x0) {
  if constexpr (Evaluator::pipeline_type::is_staged) {
    for (int channel = 0; channel < 3; ++channel) stages.template take<B>(finished[channel], channel, z, y, x0);
  } else {
    using Out = typename Evaluator::template pair<B>::Out;
    const target_tensor& out = r.out[B];
    write_stored_pixels(static_cast<Out*>(out.data) + z * out.stride[0] + y * out.stride[1] + x0 * out.stride[2],
                        out.channel_stride, out.stride[2], finished, std::min(strip_width, r.sample.extents[2] - x0));
  }
}

// Writes the pixels of the strip at (z, y, x0) after operations First.. of those right of the geometry.
template <std::size_t B, class Evaluator, std::size_t First = 0, class Stages>
SUTURE_INLINE void finish_pixels(const typename Evaluator::record_type& r, std::int32_t sample_index, Stages& stages,
                                 float (&v)[3][strip_width], std::int32_t z, std::int32_t y, std::int32_t x0) {
  with_place<typename Evaluator::pipeline_type::outputs>(r.sample, {sample_index, 0, z, y, x0}, [&](const auto& place) {
    apply_pixel_lanes<First>(r.sample.outputs, v, place, [&]<class R>(R(&finished)[3][strip_width]) {
      write_pixels<B, Evaluator>(r, stages, finished, z, y, x0);
    });
  });
}

// Writes a strip of interpolated values, or passes it to later stages.
template <std::size_t B, class Evaluator, class Stages>
SUTURE_INLINE void finish_values(const Evaluator&, const typename Evaluator::record_type& r, std::int32_t sample_index,
                                 Stages& stages, float (&v)[strip_width], std::int32_t channel, std::int32_t z,
                                 std::int32_t y, std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  using Out = typename Evaluator::template pair<B>::Out;
  if constexpr (can_turn_over<P>)
    if (stages.turns) return stages.template put<B>(v, channel, z, y, x0);
  with_place<typename P::outputs>(r.sample, {sample_index, channel, z, y, x0}, [&](const auto& place) {
    apply_lanes(r.sample.outputs, v, place, [&]<class R>(R(&finished)[strip_width]) {
      if constexpr (P::is_staged) {
        stages.template take<B>(finished, channel, z, y, x0);
      } else {
        const target_tensor& out = r.out[B];
        write_stored(static_cast<Out*>(out.data) + channel * out.channel_stride + z * out.stride[0] +
                         y * out.stride[1] + x0 * out.stride[2],
                     out.stride[2], finished, std::min(strip_width, r.sample.extents[2] - x0));
      }
    });
  });
}

// Writes a strip of sampled labels.
template <std::size_t B, class Evaluator, class In>
SUTURE_INLINE void finish_labels(const Evaluator& e, const typename Evaluator::record_type& r,
                                 const In (&v)[strip_width], std::int32_t channel, std::int32_t z, std::int32_t y,
                                 std::int32_t x0) {
  using Binding = typename Evaluator::template binding_type<B>;
  if constexpr (Binding::converts) {
    write_labels<B>(e, r, v, channel, z, y, x0);
  } else {
    const target_tensor& out = r.out[B];
    write_row(static_cast<In*>(out.data) + channel * out.channel_stride + z * out.stride[0] + y * out.stride[1] +
                  x0 * out.stride[2],
              out.stride[2], v, std::min(strip_width, r.sample.extents[2] - x0));
  }
}

// Rows between one that is written and the one that is asked for then.
inline constexpr std::int32_t rows_ahead = 2;
// Prefetches a strip that is written soon; it need not begin with a cache line.
template <class Out>
SUTURE_INLINE void prefetch_strip(const Out* to, std::int64_t stride) {
  __builtin_prefetch(to, 1);
  __builtin_prefetch(to + (strip_width - 1) * stride, 1);
}

// Writes every channel of one bound pair for the strip at (z, y, x0), or passes it to later stages.
template <std::size_t B, class Evaluator, class Strip, class Stages>
void write_strip(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t sample_index, Strip& s,
                 Stages& stages, std::int32_t z, std::int32_t y, std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  using Binding = typename Evaluator::template binding_type<B>;
  using pair = typename Evaluator::template pair<B>;
  using In = typename Binding::input;
  using Out = typename pair::unit;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  const int count = std::min(strip_width, r.sample.extents[2] - x0);
  Out* to = static_cast<Out*>(out.data) + z * out.stride[0] + y * out.stride[1] + x0 * out.stride[2];
  if constexpr (P::has_geometry) prefetch_strip(to + rows_ahead * out.stride[1], out.stride[2]);
  if constexpr (pair::is_color) {
    float v[3][strip_width];
    bool by_lanes = false;
    if constexpr (P::has_geometry) {
      by_lanes = asks_each_lane<P::interpolation_type::taps>(s, in);
      if (by_lanes)
        each_lane(s, [&](int l, const coordinate(&c)[3]) {
          const rgb pixel = pair::sampled(r.sample, in, nullptr, c, sample_index, 0, e.rule.border);
          for (int channel = 0; channel < 3; ++channel) v[channel][l] = pixel.c[channel];
        });
    }
    if (!by_lanes) pixels_of_strip<P, In>(s, r.sample, in, sample_index, e.rule.border, z, y, x0, v);
    finish_pixels<B, Evaluator>(r, sample_index, stages, v, z, y, x0);
  } else {
    for (std::int32_t channel = 0; channel < in.channels; ++channel, to += out.channel_stride) {
      if constexpr (Binding::is_label) {
        In v[strip_width];
        if constexpr (Binding::converts)
          for (In& label : v) label = 0;  // lanes behind the end of the row are converted as well
        labels_of_strip<B>(e, r, s, channel, z, y, x0, v);
        finish_labels<B>(e, r, v, channel, z, y, x0);
      } else {
        alignas(lane_alignment) float v[strip_width];
        if constexpr (!P::has_geometry) {
          static_assert(P::taps::size == 0);
          load_strip(static_cast<const In*>(in.data) + channel * in.channel_stride + z * in.stride[0] +
                         y * in.stride[1] + x0 * in.stride[2],
                     in.stride[2], count, v);
        } else {
          const auto lane_by_lane = [&] {
            each_lane(s, [&](int l, const coordinate(&c)[3]) {
              v[l] = pair::sampled(r.sample, in, pair::start(in, channel), c, sample_index, channel, e.rule.border);
            });
          };
          const auto sampled = [&]<class T>(std::type_identity<T>, const source_tensor& from, const auto& taps) {
            if (is_compact(from))
              sample_strip<P, T, std::int32_t>(s, from, channel, taps, e.rule.border, v);
            else
              sample_strip<P, T, std::int64_t>(s, from, channel, taps, e.rule.border, v);
          };
          if (asks_each_lane<P::interpolation_type::taps>(s, in)) {
            lane_by_lane();
          } else if constexpr (taps_ask_where<P>) {
            if (r.tapped[B].data != nullptr)
              sampled(std::type_identity<float>{}, r.tapped[B], pack<>{});
            else
              sampled(std::type_identity<In>{}, in, r.sample.taps);
          } else {
            sampled(std::type_identity<In>{}, in, r.sample.taps);
          }
        }
        finish_values<B>(e, r, sample_index, stages, v, channel, z, y, x0);
      }
    }
  }
}

template <bool WithLabels, class Evaluator, class Strip, class Stages>
void write_strips(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t sample_index, Strip& s,
                  Stages& stages, std::int32_t z, std::int32_t y, std::int32_t x0) {
  each_pair<Evaluator, WithLabels>([&]<std::size_t B>() { write_strip<B>(e, r, sample_index, s, stages, z, y, x0); });
}

}  // namespace suture::detail
