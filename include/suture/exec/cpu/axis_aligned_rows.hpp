// SPDX-License-Identifier: Apache-2.0
// Samples that keep the axes of their source, as resampling does. Neighboring rows of the output read the same rows of
// the source, so interpolation along x, and then along y, is computed once for all rows that need it. Every value still
// comes from exactly the arithmetic of a lone voxel.
#pragma once

#include "aligned_labels.hpp"
#include "aligned_runs.hpp"
#include "aligned_values.hpp"

namespace suture::detail {

// The values of a column of strips that runs along z or y, x by x: rows y[0] .. y[1] - 1 of planes z[0] .. z[1] - 1.
template <std::size_t B, class T, class Evaluator, class Stages>
void write_aligned_runs(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t sample_index,
                        Stages& stages, const std::int32_t (&z)[2], const std::int32_t (&y)[2], std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  using Out = typename Evaluator::template pair<B>::unit;
  const target_tensor& out = r.out[B];
  const bool planes_along_x = loop_axes[r.sample.loops][0] == 2;
  const std::int32_t(&of_x)[2] = planes_along_x ? z : y;
  const std::int32_t(&of_other)[2] = planes_along_x ? y : z;
  for (std::int32_t channel = 0; channel < r.in[B].channels; ++channel) {
    const Out* const to = static_cast<const Out*>(out.data) + channel * out.channel_stride + x0 * out.stride[2];
    aligned_runs<P, T> runs(r.sample, r.in[B], channel, e.rule.border, of_x, x0);
    for (std::int32_t x = of_x[0]; x < of_x[1]; ++x)
      for (std::int32_t other = of_other[0]; other < of_other[1]; ++other) {
        const std::int32_t iz = planes_along_x ? x : other, iy = planes_along_x ? other : x;
        prefetch_strip(to + (planes_along_x ? iz : iz + rows_ahead) * out.stride[0] +
                           (planes_along_x ? iy + rows_ahead : iy) * out.stride[1],
                       out.stride[2]);
        alignas(lane_alignment) float v[strip_width];
        runs.row(x, other, v);
        finish_values<B>(e, r, sample_index, stages, v, channel, iz, iy, x0);
      }
  }
}

// A column of strips of a sample that keeps its axes: rows y0 .. y1 - 1 of planes z0 .. z1 - 1.
template <int Rows, bool WithLabels, class Evaluator, class Strip, class Stages>
void write_aligned_column(const Evaluator& e, const typename Evaluator::record_type& r, std::int32_t sample_index,
                          Strip& s, Stages& stages, const std::int32_t (&z)[2], const std::int32_t (&y)[2],
                          std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  const auto each = [&](const auto& write) {
    for (std::int32_t iz = z[0]; iz < z[1]; ++iz)
      for (std::int32_t iy = y[0]; iy < y[1]; ++iy) write(iz, iy);
  };
  each_pair<Evaluator, WithLabels>([&]<std::size_t B>() {
    using Binding = typename Evaluator::template binding_type<B>;
    using In = typename Binding::input;
    const source_tensor& in = r.in[B];
    [[maybe_unused]] const auto strip_by_strip = [&] {
      each([&](std::int32_t iz, std::int32_t iy) {
        s.locate(iz, iy);
        write_strip<B>(e, r, sample_index, s, stages, iz, iy, x0);
      });
    };
    if constexpr (ends_at_rim<typename P::border_type>) {
      strip_by_strip();
    } else if constexpr (Binding::is_label && picks_a_voxel<typename P::label_type>) {
      for (std::int32_t channel = 0; channel < in.channels; ++channel) {
        const aligned_labels<typename P::label_type, P, In> labels(r.sample, in, channel,
                                                                   static_cast<In>(e.rule.label_outside), x0);
        each([&](std::int32_t iz, std::int32_t iy) {
          In v[1][strip_width];
          labels.row(iz, iy, v);
          finish_labels<B>(e, r, v[0], channel, iz, iy, x0);
        });
      }
    } else if constexpr (Binding::is_label && std::is_same_v<typename P::label_type, vote>) {
      for (std::int32_t channel = 0; channel < in.channels; ++channel) {
        for (std::int32_t y0 = y[0]; y0 < y[1]; y0 += Rows) {
          const std::int32_t y1 = std::min(y0 + Rows, y[1]);
          aligned_votes<P, In, Rows> votes(r.sample, in, channel, static_cast<In>(e.rule.label_outside), y0, y1, x0);
          for (std::int32_t iz = z[0]; iz < z[1]; ++iz)
            for (std::int32_t iy = y0; iy < y1; ++iy) {
              In v[strip_width];
              votes.row(iz, iy, v);
              finish_labels<B>(e, r, v, channel, iz, iy, x0);
            }
        }
      }
    } else if constexpr (!Binding::is_label && !P::is_color && P::interpolation_type::taps > 1 &&
                         (P::prefiltered || !any_needs_voxel<typename P::taps>)) {
      using T = std::conditional_t<P::prefiltered, float, In>;
      using Out = typename Evaluator::template pair<B>::unit;
      const target_tensor& out = r.out[B];
      if (r.sample.loops != 0) {
        if (!aligned_runs<P, T>::fits(r.sample, x0)) return strip_by_strip();
        return write_aligned_runs<B, T>(e, r, sample_index, stages, z, y, x0);
      }
      for (std::int32_t channel = 0; channel < in.channels; ++channel) {
        const Out* const to = static_cast<const Out*>(out.data) + channel * out.channel_stride + x0 * out.stride[2];
        aligned_values<P, T, Rows> values(r.sample, in, channel, e.rule.border, y[0], y[1], x0);
        each([&](std::int32_t iz, std::int32_t iy) {
          alignas(lane_alignment) float v[strip_width];
          prefetch_strip(to + iz * out.stride[0] + (iy + rows_ahead) * out.stride[1], out.stride[2]);
          values.row(iz, iy, v);
          finish_values<B>(e, r, sample_index, stages, v, channel, iz, iy, x0);
        });
      }
    } else {
      strip_by_strip();
    }
  });
}

struct axis_aligned_rows {
  static constexpr std::string_view name = "axis_aligned_rows";

  template <class Evaluator>
  static constexpr bool possible = Evaluator::pipeline_type::has_geometry;
  static constexpr bool serves_all = false;

  template <class Parameters>
  static bool serves(const Parameters& sample) {
    // Lanes along x share sums only with rows along y.
    return keeps_axes(sample) && (sample.loops == 0 || loop_axes[sample.loops][2] != 2);
  }
  template <class Parameters>
  static brick_shape shape(const Parameters& sample, std::int32_t depth) {
    return turns_over(sample) ? brick_shape{brick_rows, strip_width} : brick_shape{depth, brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static bool make(const brick_work<Evaluator>& work, Stages& stages) {
    for (std::int32_t x0 = 0; x0 < work.r.sample.extents[2]; x0 += strip_width) {
      strip<typename Evaluator::pipeline_type> walk(work.r.sample, x0);
      walk.expect(2, 0, 0);
      write_aligned_column<brick_rows, WithLabels>(work.evaluate, work.r, work.sample_index, walk, stages,
                                                   {work.z0, work.z1}, {work.y0, work.y1}, x0);
    }
    return true;
  }
};

}  // namespace suture::detail
