// SPDX-License-Identifier: Apache-2.0
// The evaluator's computation for a strip at a time, and the writing of its results.
#pragma once

#include "../common/uint8_lookup.hpp"
#include "cpu.hpp"
#include "strip_color.hpp"

namespace suture::detail {

// A brick that a path computes: rows y0 to y1 - 1 of planes z0 to z1 - 1 of one sample. `depth` is the argument of
// shape() of the path; the last brick of a sample may be smaller than that shape.
template <class Evaluator>
struct brick_work {
  const Evaluator& evaluate;
  const typename Evaluator::record_type& r;
  std::int32_t sample_index;
  std::int32_t depth;
  std::int32_t z0, z1, y0, y1;

  // The lanes of a strip from x0 on that are in the row.
  int lanes_from(std::int32_t x0) const { return std::min(strip_width, r.sample.extents[2] - x0); }
};

// Writes the first `count` lanes, `stride` elements apart. With `streams`, whole strips of stride 1 go past the caches.
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

// Tests whether a strip must be computed lane by lane: the border rule depends on the coordinate itself (ends_at_rim),
// and a voxel to be read may lie outside the source.
template <int Taps, class Pipeline>
SUTURE_INLINE bool asks_each_lane(strip<Pipeline>& s, const source_tensor& in) {
  if constexpr (ends_at_rim<typename Pipeline::border_type>) {
    constexpr std::int32_t before = Taps > 2 ? -1 : 0, after = Taps > 2 ? 2 : 1;
    return !s.within(in.extents, before, after) && !(Taps <= 2 && s.within_plane(in.extents));
  } else {
    return false;
  }
}
// Samples the labels of a strip, before their conversion. Without geometry, lanes past the end of the row are not set.
template <std::size_t B, class Evaluator, class Strip, class In>
SUTURE_INLINE void labels_of_strip(const brick_work<Evaluator>& work, Strip& s, const voxel_index& at,
                                   In (&v)[strip_width]) {
  using P = typename Evaluator::pipeline_type;
  const source_tensor& in = work.r.in[B];
  if constexpr (!P::has_geometry) {
    for (int l = 0; l < work.lanes_from(at.x); ++l) v[l] = read<In>(in, at.channel, at.z, at.y, at.x + l);
  } else {
    const auto& rule = work.evaluate.rule;
    const In* data = static_cast<const In*>(in.data) + at.channel * in.channel_stride;
    if (asks_each_lane<2>(s, in)) {
      each_lane(s, [&](int l, const coordinate(&c)[3]) {
        v[l] = Evaluator::template pair<B>::label(in, data, c, at.channel, at.z, at.y, at.x + l, rule);
      });
      return;
    }
    const In outside = static_cast<In>(rule.label_outside);
    if (is_compact(in))
      pick_labels<P, In, std::int32_t>(s, data, in.stride, in.extents, outside, v);
    else
      pick_labels<P, In, std::int64_t>(s, data, in.stride, in.extents, outside, v);
  }
}

// Writes a strip of elements to one channel of the output.
template <std::size_t B, class Evaluator, class T>
SUTURE_INLINE void write_elements(const brick_work<Evaluator>& work, const T (&row)[strip_width],
                                  const voxel_index& at) {
  const target_tensor& out = work.r.out[B];
  write_row(element_at<T>(out, at), out.stride[2], row, work.lanes_from(at.x));
}

// Conversions that compute one channel of a strip, of values 0 and 1, in the type of the labels.
template <class C, class In>
concept converts_by_channel = requires(const C& convert, const In (&labels)[strip_width],
                                       In (&converted)[strip_width]) {
  convert.convert_channel(labels, 0, converted);
};

// Converts a strip of sampled labels and writes it.
template <std::size_t B, class Evaluator, class In>
void write_labels(const brick_work<Evaluator>& work, const In (&v)[strip_width], voxel_index at) {
  using Binding = typename Evaluator::template binding_type<B>;
  using Out = typename Binding::output;
  const auto& convert = get<B>(work.evaluate.conversions);
  Out row[strip_width];
  // Writes one channel; as(lane, T{}) is its value as a T.
  const auto write = [&](std::int32_t channel, const auto& as) {
    if constexpr (std::is_integral_v<Out>) {
      for (int l = 0; l < strip_width; ++l) row[l] = as(l, Out{});
    } else {
      float values[strip_width];
      for (int l = 0; l < strip_width; ++l) values[l] = as(l, 0.0f);
      store_row(values, row, strip_width);
    }
    at.channel = channel;
    write_elements<B>(work, row, at);
  };
  if constexpr (requires { convert.convert_row(v, row); }) {  // in their own types, of which a register holds most
    convert.convert_row(v, row);
    write_elements<B>(work, row, at);
  } else if constexpr (converts_by_channel<std::remove_cvref_t<decltype(convert)>, In>) {
    In converted[strip_width];
    for (std::int32_t k = 0; k < convert.channels(); ++k) {
      convert.convert_channel(v, k, converted);
      write(k, [&]<class T>(int l, T) { return static_cast<T>(converted[l]); });
    }
  } else {
    std::int32_t sampled[strip_width];
    for (int l = 0; l < strip_width; ++l) sampled[l] = v[l];
    std::remove_cvref_t<decltype(convert(std::int32_t{}))> converted[strip_width];
    if constexpr (requires { convert.convert_row(sampled, converted); })
      convert.convert_row(sampled, converted);
    else
      for (int l = 0; l < strip_width; ++l) converted[l] = convert(sampled[l]);

    std::int32_t first = at.channel, last = at.channel + 1;
    if constexpr (Binding::to_channels) first = 0, last = convert.channels();
    for (std::int32_t k = first; k < last; ++k)
      write(k, [&]<class T>(int l, T) { return stored_channel<T>(converted[l], k); });
  }
}

// Writes the finished pixels of a strip, or passes them to later stages.
template <std::size_t B, class Evaluator, class Stages, class R>
SUTURE_INLINE void write_pixels(const brick_work<Evaluator>& work, Stages& stages, R (&finished)[3][strip_width],
                                const voxel_index& at) {
  if constexpr (Evaluator::pipeline_type::is_staged) {
    for (int channel = 0; channel < 3; ++channel)
      stages.template receive<B>(finished[channel], {at.sample, channel, at.z, at.y, at.x});
  } else {
    using Out = typename Evaluator::template pair<B>::Out;
    const target_tensor& out = work.r.out[B];
    const int count = work.lanes_from(at.x);
    Out* const to = element_at<Out>(out, at);
    if (out.stride[2] == 3 && out.channel_stride == 1 && count == strip_width) {  // a loop that compilers vectorize
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
        write_stored(to + channel * out.channel_stride, out.stride[2], finished[channel], count);
    }
  }
}

// Applies the operations after the geometry, from number First on, to the pixels of a strip. Writes the result, or
// passes it to later stages.
template <std::size_t B, std::size_t First = 0, class Evaluator, class Stages>
SUTURE_INLINE void finish_pixels(const brick_work<Evaluator>& work, Stages& stages, float (&v)[3][strip_width],
                                 const voxel_index& at) {
  const auto& sample = work.r.sample;
  with_place<typename Evaluator::pipeline_type::output_functors>(sample, at, [&](const auto& place) {
    apply_pixel_lanes<First>(sample.output_functors, v, place, [&]<class R>(R(&finished)[3][strip_width]) {
      write_pixels<B>(work, stages, finished, at);
    });
  });
}

// Applies the operations after the geometry to a strip. Writes the result, or passes it to later stages.
template <std::size_t B, class Evaluator, class Stages>
SUTURE_INLINE void finish_values(const brick_work<Evaluator>& work, Stages& stages, float (&v)[strip_width],
                                 const voxel_index& at) {
  using P = typename Evaluator::pipeline_type;
  if constexpr (can_transpose_strips<P>)
    if (stages.transposes) return stages.template receive_unfinished<B>(v, at);
  const auto& sample = work.r.sample;
  with_place<typename P::output_functors>(sample, at, [&](const auto& place) {
    apply_lanes(sample.output_functors, v, place, [&]<class R>(R(&finished)[strip_width]) {
      if constexpr (P::is_staged) {
        stages.template receive<B>(finished, at);
      } else {
        const target_tensor& out = work.r.out[B];
        write_stored(element_at<typename Evaluator::template pair<B>::Out>(out, at), out.stride[2], finished,
                     work.lanes_from(at.x));
      }
    });
  });
}

// Writes a strip of sampled labels, converted if the binding has a conversion.
template <std::size_t B, class Evaluator, class In>
SUTURE_INLINE void finish_labels(const brick_work<Evaluator>& work, const In (&v)[strip_width], const voxel_index& at) {
  if constexpr (Evaluator::template binding_type<B>::converts)
    write_labels<B>(work, v, at);
  else
    write_elements<B>(work, v, at);
}

// Distance in rows from the row of a source that is copied to the one that is prefetched.
inline constexpr std::int64_t source_rows_ahead = 4;
// Distance in rows from the strip that is written to the one that is prefetched for writing.
inline constexpr std::int32_t rows_ahead = 2;
// Prefetches the first and the last element of a strip that is written soon; they may lie in two cache lines.
template <class Out>
SUTURE_INLINE void prefetch_strip(const Out* to, std::int64_t stride) {
  __builtin_prefetch(to, 1);
  __builtin_prefetch(to + (strip_width - 1) * stride, 1);
}

// Writes every channel of one bound pair for the strip at (z, y, x0), or passes it to later stages.
template <std::size_t B, class Evaluator, class Strip, class Stages>
void write_strip(const brick_work<Evaluator>& work, Strip& s, Stages& stages, std::int32_t z, std::int32_t y,
                 std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  using Binding = typename Evaluator::template binding_type<B>;
  using pair = typename Evaluator::template pair<B>;
  using In = typename Binding::input;
  const auto& r = work.r;
  const source_tensor& in = r.in[B];
  const target_tensor& out = r.out[B];
  const auto& border = work.evaluate.rule.border;
  voxel_index at{work.sample_index, 0, z, y, x0};
  const auto* to = element_at<typename pair::unit>(out, at) + rows_ahead * out.stride[1];
  if constexpr (P::has_geometry) prefetch_strip(to, out.stride[2]);
  if constexpr (pair::is_color) {
    float v[3][strip_width];
    bool by_lanes = false;
    if constexpr (P::has_geometry) {
      by_lanes = asks_each_lane<P::interpolation_type::taps>(s, in);
      if (by_lanes)
        each_lane(s, [&](int l, const coordinate(&c)[3]) {
          const rgb pixel = pair::sampled(r.sample, in, nullptr, c, at.sample, 0, border);
          for (int channel = 0; channel < 3; ++channel) v[channel][l] = pixel.c[channel];
        });
    }
    if (!by_lanes) pixels_of_strip<P, In>(s, r.sample, in, border, at, v);
    finish_pixels<B>(work, stages, v, at);
  } else {
    for (; at.channel < in.channels; ++at.channel) {
      if constexpr (Binding::is_label) {
        In v[strip_width];
        if constexpr (Binding::converts)
          for (In& label : v) label = 0;  // lanes past the end of the row are converted too
        labels_of_strip<B>(work, s, at, v);
        finish_labels<B>(work, v, at);
      } else {
        alignas(lane_alignment) float v[strip_width];
        if constexpr (!P::has_geometry) {
          static_assert(P::source_functors::size == 0);
          load_strip(element_at<const In>(in, at), in.stride[2], work.lanes_from(x0), v);
        } else {
          const auto sampled = [&]<class T>(std::type_identity<T>, const source_tensor& from, const auto& functors) {
            if (is_compact(from))
              sample_strip<P, T, std::int32_t>(s, from, at.channel, functors, border, v);
            else
              sample_strip<P, T, std::int64_t>(s, from, at.channel, functors, border, v);
          };
          bool is_processed = false;
          if constexpr (source_functors_need_voxel<P>) is_processed = r.processed[B].data != nullptr;
          if (asks_each_lane<P::interpolation_type::taps>(s, in)) {
            each_lane(s, [&](int l, const coordinate(&c)[3]) {
              v[l] = pair::sampled(r.sample, in, pair::start(in, at.channel), c, at.sample, at.channel, border);
            });
          } else if (is_processed) {
            if constexpr (source_functors_need_voxel<P>) sampled(std::type_identity<float>{}, r.processed[B], pack<>{});
          } else {
            sampled(std::type_identity<In>{}, in, source_functors_of(r.sample));
          }
        }
        finish_values<B>(work, stages, v, at);
      }
    }
  }
}

}  // namespace suture::detail
