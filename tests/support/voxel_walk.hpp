// SPDX-License-Identifier: Apache-2.0
// The path that every path of the CPU executor is held against: each voxel by itself, asked of the evaluator.
#pragma once

#include "suture/suture.hpp"

namespace support {

struct voxel_walk {
  template <class Evaluator>
  static constexpr bool possible = true;
  static constexpr bool serves_all = true;

  template <class Parameters>
  static suture::detail::brick_shape shape(const Parameters&, std::int32_t depth) {
    return {depth, 5};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static void make(const suture::detail::brick_work<Evaluator>& work, Stages& stages) {
    const auto one = [&]<std::size_t B>() {
      if constexpr (WithLabels || !Evaluator::template binding_type<B>::is_label)
        for (std::int32_t z = work.z0; z < work.z1; ++z)
          for (std::int32_t y = work.y0; y < work.y1; ++y) make_row<B>(work, stages, z, y);
    };
    [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
  }

private:
  template <std::size_t B, class Evaluator, class Stages>
  static void make_row(const suture::detail::brick_work<Evaluator>& work, Stages& stages, std::int32_t z,
                       std::int32_t y) {
    using Binding = typename Evaluator::template binding_type<B>;
    using P = typename Evaluator::pipeline_type;
    constexpr int width = suture::detail::strip_width;
    const suture::target_tensor& out = work.r.out[B];
    const std::int32_t n = work.r.sample.extents[2], channels = work.r.in[B].channels;
    const auto value = [&](std::int32_t x, std::int32_t channel) {
      return work.evaluate.template fused<B>(work.r, {work.sample_index, channel, z, y, std::min(x, n - 1)});
    };
    if constexpr (P::is_staged && !Binding::is_label) {
      for (std::int32_t channel = 0; channel < channels; ++channel)
        for (std::int32_t x0 = 0; x0 < n; x0 += width) {
          float strip[width];
          for (int l = 0; l < width; ++l)
            if constexpr (P::is_color)
              strip[l] = value(x0 + l, 0).c[channel];
            else
              strip[l] = value(x0 + l, channel);
          stages.template receive<B>(strip, {work.sample_index, channel, z, y, x0});
        }
    } else {
      using Out = typename Binding::output;
      for (std::int32_t channel = 0; channel < channels; ++channel)
        for (std::int32_t x = 0; x < n; ++x) {
          Out* const to = static_cast<Out*>(out.data) + channel * out.channel_stride + z * out.stride[0] +
                          y * out.stride[1] + x * out.stride[2];
          if constexpr (P::is_color && !Binding::is_label)
            *to = value(x, 0).c[channel];
          else
            *to = value(x, channel);
        }
    }
  }
};

}  // namespace support
