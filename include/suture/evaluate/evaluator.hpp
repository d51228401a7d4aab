// SPDX-License-Identifier: Apache-2.0
// The finished value of one output voxel, callable from any kernel or host code. The executors are loops over it.
//
//   auto evaluate = suture::prepare(executor, plan, suture::image(in, out), suture::labels(seg, seg_out));
//   half v = evaluate(sample, z, y, x);                 // first bound pair, channel 0
//   std::uint8_t l = evaluate.template get<1>(sample, z, y, x);
#pragma once

#include "../sample/sampler.hpp"
#include "binding.hpp"
#include "column.hpp"
#include "stage.hpp"

SUTURE_REFUSE_HOST_CALLS
namespace suture {

namespace detail {

template <class T>
SUTURE_FN T read(const source_tensor& s, std::int32_t channel, std::int32_t z, std::int32_t y, std::int32_t x) {
  const T* p = in_global_memory(static_cast<const T*>(s.data)) + channel * s.channel_stride + z * s.stride[0];
  p += y * s.stride[1];
  return p[x * s.stride[2]];
}

// Evaluates the fused part at one voxel of a bound pair: the result is an element of one channel, or the pixel of a
// color pipeline.
template <class Pipeline, class Binding>
struct pair_evaluator {
  using In = typename Binding::input;
  using Out = std::conditional_t<Pipeline::is_staged && !Binding::is_label, float, typename Binding::output>;
  using value = typename Pipeline::value_type;
  static constexpr bool is_color = Pipeline::is_color && !Binding::is_label;
  using result = std::conditional_t<is_color, pixel<Out>, Out>;
  // The fused part of a staged image stores floats between stages or, where no stage acts, the elements of the output.
  // Positions in either are counted in this unit.
  static constexpr bool may_finish = Pipeline::is_staged && !Binding::is_label && !Pipeline::is_color;
  using unit = std::conditional_t<may_finish, typename Binding::output, Out>;

  SUTURE_FN static value load(const source_tensor& s, const voxel_index& i) {
    if constexpr (is_color)
      return {{storage<In>::load(read<In>(s, 0, i.z, i.y, i.x)), storage<In>::load(read<In>(s, 1, i.z, i.y, i.x)),
               storage<In>::load(read<In>(s, 2, i.z, i.y, i.x))}};
    else
      return storage<In>::load(read<In>(s, i.channel, i.z, i.y, i.x));
  }

  // A source voxel as interpolation reads it: converted to float, then passed through the value operations before the
  // geometry.
  SUTURE_FN static value source_value(const sample_parameters<Pipeline>& sample, const source_tensor& s,
                                      const voxel_index& i) {
    return source_value(sample, s, load(s, i), i);
  }
  SUTURE_FN static value source_value(const sample_parameters<Pipeline>& sample, const source_tensor& s, value v,
                                      const voxel_index& i) {
    return apply(sample.source_functors, v, voxel_at(s.extents, i));
  }

  // The first voxel of a channel.
  SUTURE_FN static const In* start(const source_tensor& s, std::int32_t channel) {
    return in_global_memory(static_cast<const In*>(s.data)) + channel * s.channel_stride;
  }

  // Interpolated value at c, before the value operations after the geometry; the channel starts at `data`.
  SUTURE_FN static value sampled(const sample_parameters<Pipeline>& sample, const source_tensor& s, const In* data,
                                 const coordinate (&c)[3], std::int32_t sample_index, std::int32_t channel,
                                 const typename Pipeline::border_type& border) {
    if constexpr (ends_at_rim<typename Pipeline::border_type>) {
      if (border.is_beyond(c, s.extents)) return uniform<value>(border.value);
      coordinate clamped[3];
      clamp_inside<typename Pipeline::interpolation_type>(c, s.extents, clamped);
      return interpolated(sample, s, data, clamped, sample_index, channel, border);
    } else {
      return interpolated(sample, s, data, c, sample_index, channel, border);
    }
  }

  // The interpolated value at c; voxels outside the source follow the border rule.
  SUTURE_FN static value interpolated(const sample_parameters<Pipeline>& sample, const source_tensor& s, const In* data,
                                      const coordinate (&c)[3], std::int32_t sample_index, std::int32_t channel,
                                      const typename Pipeline::border_type& border) {
    using I = typename Pipeline::interpolation_type;
    if constexpr (Pipeline::prefiltered) {
      if constexpr (is_color)
        return {{coefficients(s, c, 0, border), coefficients(s, c, 1, border), coefficients(s, c, 2, border)}};
      else
        return coefficients(s, c, channel, border);
    } else if constexpr (is_color || any_needs_voxel<typename Pipeline::source_functors>) {
      if (is_color && sample.planar)
        return interpolate_plane<value, I>(c, s.extents, border, [&](std::int32_t y, std::int32_t x) {
          return source_value(sample, s, {sample_index, channel, 0, y, x});
        });
      return interpolate<value, I>(c, s.extents, border, [&](std::int32_t z, std::int32_t y, std::int32_t x) {
        return source_value(sample, s, {sample_index, channel, z, y, x});
      });
    } else {
      return interpolate<I>(c, data, s.stride, s.extents, s.pairs, border, stored_to_value(sample));
    }
  }

  // Tests whether every channel reads the same voxels of the source and converts them in the same way.
  static constexpr bool channels_share_voxels =
      Pipeline::has_geometry && !Binding::is_label && !is_color && !Pipeline::prefiltered &&
      !any_needs_voxel<typename Pipeline::source_functors> && !ends_at_rim<typename Pipeline::border_type>;

  SUTURE_FN static auto stored_to_value(const sample_parameters<Pipeline>& sample) {
    return [&sample](In v) { return apply(sample.source_functors, storage<In>::load(v), voxel{}); };
  }

  // Interpolates B-spline coefficients, which were computed after the value operations before the geometry.
  SUTURE_FN static float coefficients(const source_tensor& s, const coordinate (&c)[3], std::int32_t channel,
                                      const typename Pipeline::border_type& border) {
    constexpr std::int32_t pad = Pipeline::padding;
    const coordinate shifted[3] = {
        {c[0].base + pad, c[0].fraction}, {c[1].base + pad, c[1].fraction}, {c[2].base + pad, c[2].fraction}};
    const float* data = in_global_memory(static_cast<const float*>(s.data)) + channel * s.channel_stride;
    return interpolate<typename Pipeline::interpolation_type>(shifted, data, s.stride, s.extents, s.pairs, border,
                                                              [](float v) { return v; });
  }

  // The result of the fused part, given the value before the operations after the geometry.
  SUTURE_FN static result finished(const sample_parameters<Pipeline>& sample, value v, const voxel_index& i,
                                   const shared_normals* normals = nullptr) {
    voxel at = voxel_of_walk(sample.extents, sample.loops, i);
    at.normals = normals;
    at.walk_index = i.z;
    return stored<Out>(apply(sample.output_functors, v, at));
  }

  // The sampled label, before its conversion.
  SUTURE_FN static In label(const source_tensor& s, const In* data, const coordinate (&c)[3], std::int32_t channel,
                            std::int32_t z, std::int32_t y, std::int32_t x,
                            const typename Pipeline::sampling_type& rule) {
    using labels = typename Pipeline::label_type;
    using border = typename Pipeline::border_type;
    const In outside = static_cast<In>(rule.label_outside);
    if constexpr (!Pipeline::has_geometry) {
      return read<In>(s, channel, z, y, x);
    } else if constexpr (ends_at_rim<border>) {
      if (rule.border.is_beyond(c, s.extents)) return outside;
      coordinate clamped[3];
      clamp_inside<linear>(c, s.extents, clamped);  // labels read at most two voxels along an axis
      return sample_label<labels, border>(clamped, data, s.stride, s.extents, s.pairs, outside);
    } else {
      return sample_label<labels, border>(c, data, s.stride, s.extents, s.pairs, outside);
    }
  }

  // The finished value of an element of the source, for pipelines without geometry.
  SUTURE_FN static result of_element(const sample_parameters<Pipeline>& sample, const source_tensor& s, In element,
                                     const voxel_index& i) {
    if constexpr (Binding::is_label)
      return element;
    else
      return finished(sample, source_value(sample, s, storage<In>::load(element), i), i);
  }

  // The finished value or, of a label map, the label before its conversion. Pipelines without geometry ignore c, those
  // of color the channel.
  SUTURE_FN static auto at(const sample_parameters<Pipeline>& sample, const source_tensor& s, const In* data,
                           const coordinate (&c)[3], const voxel_index& i, const typename Pipeline::sampling_type& rule,
                           const shared_normals* normals = nullptr) {
    if constexpr (Binding::is_label)
      return label(s, data, c, i.channel, i.z, i.y, i.x, rule);
    else if constexpr (!Pipeline::has_geometry)
      return finished(sample, source_value(sample, s, i), i, normals);
    else
      return finished(sample, sampled(sample, s, data, c, i.sample, i.channel, rule.border), i, normals);
  }
};

// Stores a converted label: a number at `to`, or all its channels, the first at `to`.
template <class Out, class R>
SUTURE_FN void store_label(Out* to, const R& converted, std::int32_t channel, std::int32_t channels,
                           std::int64_t channel_stride) {
  if constexpr (stored_number<R>)
    *to = stored_channel<Out>(converted, channel);
  else
    for (std::int32_t k = 0; k < channels; ++k, to += channel_stride) *to = stored_channel<Out>(converted, k);
}

}  // namespace detail

template <class Pipeline, class... Bindings>
struct evaluator {
  static_assert(sizeof...(Bindings) > 0);
  static constexpr std::size_t pairs = sizeof...(Bindings);
  static constexpr bool converts = (Bindings::converts || ...);
  static constexpr bool has_levels = (Bindings::has_levels || ...);
  using pipeline_type = Pipeline;
  using record_type = record<Pipeline, pairs, (std::size_t{Bindings::has_levels} + ...)>;
  template <std::size_t B>
  using binding_type = element_t<B, pack<Bindings...>>;
  template <class Binding>
  using pair_of = detail::pair_evaluator<Pipeline, Binding>;
  template <std::size_t B>
  using pair = pair_of<binding_type<B>>;

  const record_type* records;
  typename Pipeline::sampling_type rule;
  pack<conversion_functor_t<typename Bindings::conversion_type>...> conversions;
  std::uint32_t mark;  // of the records that it can read

  // One output voxel of bound pair B, as a run stores it in `channel` of the output. If the pipeline works on color and
  // has no later stage, an image returns pixel<T>, all channels.
  template <std::size_t B>
  SUTURE_FN auto get(std::int32_t sample_index, std::int32_t z, std::int32_t y, std::int32_t x,
                     std::int32_t channel = 0) const {
    const record_type& r = records[sample_index];
    if constexpr (Pipeline::is_staged && !binding_type<B>::is_label)
      return detail::stored<typename binding_type<B>::output>(detail::stage_value<Pipeline::schedule.stage_count - 1>(
          r.sample, r.staged[B], {sample_index, channel, z, y, x}));
    else
      return fused<B>(r, {sample_index, channel, z, y, x});
  }

  SUTURE_FN auto operator()(std::int32_t sample_index, std::int32_t z, std::int32_t y, std::int32_t x,
                            std::int32_t channel = 0) const {
    return get<0>(sample_index, z, y, x, channel);
  }

  // Result of the fused part at one voxel.
  template <std::size_t B>
  SUTURE_FN auto fused(const record_type& r, const voxel_index& i) const {
    coordinate c[3] = {};
    if constexpr (Pipeline::has_geometry) column<Pipeline>(r.sample, i.z, i.y, i.x).locate(c);
    if constexpr (binding_type<B>::converts) {
      const std::int32_t from = binding_type<B>::to_channels ? 0 : i.channel;
      const auto converted = suture::get<B>(conversions)(
          std::int32_t{pair<B>::label(r.in[B], pair<B>::start(r.in[B], from), c, from, i.z, i.y, i.x, rule)});
      return detail::stored_channel<typename binding_type<B>::output>(converted, i.channel);
    } else {
      return pair<B>::at(r.sample, r.in[B], pair<B>::start(r.in[B], i.channel), c, i, rule);
    }
  }

  // Number of normally distributed values of a voxel that CUDA can compute ahead: those of the only image, if it has no
  // color and the shared memory of a block has room for them beside the record.
  static constexpr int image_normals = Pipeline::is_color || (int{!Bindings::is_label} + ...) != 1
                                           ? 0
                                           : detail::all_normals<typename Pipeline::output_functors>;
  static constexpr int normals =
      detail::bytes_ahead<image_normals> + sizeof(record_type) <= 48 * 1024 ? image_normals : 0;
  SUTURE_FN static std::int32_t image_channels(const record_type& r) {
    constexpr bool is_label[] = {Bindings::is_label...};
    std::size_t image = 0;
    while (image + 1 < pairs && is_label[image]) ++image;
    return r.in[image].channels;
  }

  // Addresses that the fused part uses for the voxels of one column: for each pair, the start of the first channel in
  // the source, and the position of the result.
  class column_addresses {
  public:
    SUTURE_FN column_addresses(const record_type& r, std::int32_t z, std::int32_t y, std::int32_t x,
                               const detail::shared_normals* ahead)
        : column_addresses(r, z, y, x, ahead, std::make_index_sequence<pairs>{}) {}
    // Moves to the next voxel along z.
    template <bool Keep>
    SUTURE_FN void step(const record_type& r) {
      [&]<std::size_t... B>(std::index_sequence<B...>) {
        ((suture::get<B>(to_) += detail::value_of<Keep>(r.out[B].stride[0])), ...);
      }
      (std::make_index_sequence<pairs>{});
    }
    template <std::size_t B>
    SUTURE_FN auto* from() const {
      return suture::get<B>(from_);
    }
    template <std::size_t B>
    SUTURE_FN auto* to() const {
      return suture::get<B>(to_);
    }

  private:
    template <std::size_t... B>
    SUTURE_FN column_addresses(const record_type& r, std::int32_t z, std::int32_t y, std::int32_t x,
                               const detail::shared_normals* ahead, std::index_sequence<B...>)
        : from_{{{pair<B>::start(r.in[B], first_channel<B>(ahead))}...}},
          to_{{{detail::in_global_memory(static_cast<typename pair<B>::unit*>(r.out[B].data)) +
                (y * r.out[B].stride[1] + x * r.out[B].stride[2]) + z * r.out[B].stride[0] +
                first_channel<B>(ahead) * r.out[B].channel_stride}...}} {}

    pack<const typename Bindings::input*...> from_;
    pack<typename pair_of<Bindings>::unit*...> to_;
  };

  // Writes the results of the fused part in every channel of every pair at one voxel, with the label maps or without.
  // If normals were made ahead, images are written only in the channels that these are for. OneChannel states that no
  // pair has several channels.
  template <bool WithLabels, bool OneChannel = false>
  SUTURE_FN void write(const record_type& r, std::int32_t sample_index, const coordinate (&c)[3],
                       const column_addresses& at, std::int32_t z, std::int32_t y, std::int32_t x,
                       const detail::shared_normals* ahead = nullptr) const {
    // Labels come first: an image then uses the coordinate last, which saves registers.
    if constexpr (WithLabels)
      write_pairs<true, OneChannel>(r, sample_index, c, at, z, y, x, ahead, std::make_index_sequence<pairs>{});
    write_pairs<false, OneChannel>(r, sample_index, c, at, z, y, x, ahead, std::make_index_sequence<pairs>{});
  }

  // `finishes` tests whether the fused part stores elements of the output of pair B. `element` converts a result of the
  // fused part to such an element.
  template <std::size_t B>
  SUTURE_FN static bool finishes(const record_type& r) {
    if constexpr (pair<B>::may_finish)
      return r.staged[B].finished != 0;
    else
      return true;
  }
  template <std::size_t B>
  SUTURE_FN static typename pair<B>::unit element(const record_type& r, typename pair<B>::Out v) {
    if constexpr (pair<B>::may_finish)
      return detail::staging<Pipeline>::template element<typename pair<B>::unit>(r.sample, v);
    else
      return v;
  }
  // Stores the result of the fused part in one channel of pair B.
  template <std::size_t B>
  SUTURE_FN static void store(const record_type& r, typename pair<B>::unit* to, typename pair<B>::Out v) {
    if (finishes<B>(r))
      *to = element<B>(r, v);
    else
      *reinterpret_cast<typename pair<B>::Out*>(to) = v;
  }

  // The channels of pair B to be computed: all, or those that normals were made ahead for.
  template <std::size_t B>
  SUTURE_FN static std::int32_t first_channel(const detail::shared_normals* ahead) {
    return binding_type<B>::is_label || ahead == nullptr ? 0 : ahead->channels->first;
  }
  template <std::size_t B>
  SUTURE_FN static std::int32_t channel_count(const record_type& r, const detail::shared_normals* ahead) {
    return binding_type<B>::is_label || ahead == nullptr ? r.in[B].channels : ahead->channels->count;
  }

  // Converts a label that was sampled in a channel of pair B, and stores it at `to`.
  template <std::size_t B>
  SUTURE_FN void store_label(const record_type& r, typename binding_type<B>::output* to, std::int32_t label,
                             std::int32_t channel) const {
    const auto& convert = suture::get<B>(conversions);
    std::int32_t channels = 0;
    if constexpr (binding_type<B>::to_channels) channels = convert.channels();
    detail::store_label(to, convert(label), channel, channels, r.out[B].channel_stride);
  }

  // The channels of the output of label map B.
  template <std::size_t B>
  SUTURE_FN std::int32_t label_channels(const record_type& r) const {
    if constexpr (binding_type<B>::to_channels)
      return suture::get<B>(conversions).channels();
    else
      return r.in[B].channels;
  }

  // Index of pair B among those with levels.
  template <std::size_t B>
  static constexpr std::size_t levels_of = [] {
    constexpr bool has[] = {Bindings::has_levels...};
    std::size_t before = 0;
    for (std::size_t b = 0; b != B; ++b) before += has[b];
    return before;
  }();

private:
  template <bool Labels, bool OneChannel, std::size_t... B>
  SUTURE_FN void write_pairs(const record_type& r, std::int32_t sample_index, const coordinate (&c)[3],
                             const column_addresses& at, std::int32_t z, std::int32_t y, std::int32_t x,
                             const detail::shared_normals* ahead, std::index_sequence<B...>) const {
    const auto one = [&]<std::size_t Pair>() {
      if constexpr (binding_type<Pair>::is_label != Labels)
        return;
      else if constexpr (binding_type<Pair>::converts)
        write_label<Pair, OneChannel>(r, c, at, z, y, x);
      else
        write_finished<Pair, OneChannel>(r, sample_index, c, at, z, y, x, ahead);
    };
    (one.template operator()<B>(), ...);
  }
  template <std::size_t B, bool OneChannel>
  SUTURE_FN void write_finished(const record_type& r, std::int32_t sample_index, const coordinate (&c)[3],
                                const column_addresses& at, std::int32_t z, std::int32_t y, std::int32_t x,
                                const detail::shared_normals* ahead) const {
    const std::int64_t step = r.out[B].channel_stride;
    auto* to = at.template to<B>();
    if constexpr (pair<B>::is_color) {
      const auto v = pair<B>::at(r.sample, r.in[B], at.template from<B>(), c, {sample_index, 0, z, y, x}, rule);
      SUTURE_UNROLL
      for (int channel = 0; channel < 3; ++channel, to += step) *to = v.c[channel];
    } else {
      const auto* from = at.template from<B>();
      const auto one = [&](std::int32_t channel) {
        store<B>(r, to, pair<B>::at(r.sample, r.in[B], from, c, {sample_index, channel, z, y, x}, rule, ahead));
      };
      const std::int32_t first = first_channel<B>(ahead), end = first + channel_count<B>(r, ahead);
      if constexpr (OneChannel) {
        one(first);
      } else if constexpr (pair<B>::channels_share_voxels) {
        const source_tensor& s = r.in[B];
        const auto to_value = pair<B>::stored_to_value(r.sample);
        const interpolation_taps<typename Pipeline::interpolation_type, typename Pipeline::border_type> taps(
            c, s.stride, s.extents, s.pairs, rule.border);
        const auto use = [&](float value, std::int32_t channel) {
          store<B>(r, to, pair<B>::finished(r.sample, value, {sample_index, first + channel, z, y, x}, ahead));
          to += step;
        };
        // Kernels with deformations omit this, because they need all registers.
        if constexpr (taps.template takes_four<typename binding_type<B>::input> && !Pipeline::has_deformation) {
          if (s.side_by_side != 0 && (ahead == nullptr || end - first == 4)) {
            taps.four_channels(from, to_value, use);
            return;
          }
        }
        taps.each_channel(from, s.channel_stride, end - first, to_value, use);
      } else {
        SUTURE_NO_UNROLL
        for (std::int32_t channel = first; channel < end; ++channel, to += step, from += r.in[B].channel_stride)
          one(channel);
      }
    }
  }
  // Samples the labels of pair B at one voxel, converts them and stores them.
  template <std::size_t B, bool OneChannel>
  SUTURE_FN void write_label(const record_type& r, const coordinate (&c)[3], const column_addresses& at, std::int32_t z,
                             std::int32_t y, std::int32_t x) const {
    const auto* from = at.template from<B>();
    auto* to = at.template to<B>();
    const std::int32_t channels = OneChannel || binding_type<B>::to_channels ? 1 : r.in[B].channels;
    for (std::int32_t channel = 0; channel < channels;
         ++channel, from += r.in[B].channel_stride, to += r.out[B].channel_stride)
      store_label<B>(r, to, pair<B>::label(r.in[B], from, c, channel, z, y, x, rule), channel);
  }
};

namespace detail {

// Calls use.operator()<B>() for every bound pair B of an evaluator, or for its images alone.
template <class Evaluator, bool WithLabels = true, class Use>
constexpr void each_pair(const Use& use) {
  const auto one = [&]<std::size_t B>() {
    if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label) use.template operator()<B>();
  };
  [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
  (std::make_index_sequence<Evaluator::pairs>{});
}

// Calls use.operator()<B>(binding B) for every binding.
template <class Use, class... Bindings>
void each_binding(const Use& use, const Bindings&... bindings) {
  [&]<std::size_t... B>(std::index_sequence<B...>) { (use.template operator()<B>(bindings), ...); }
  (std::index_sequence_for<Bindings...>{});
}

}  // namespace detail

}  // namespace suture
SUTURE_ALLOW_HOST_CALLS
