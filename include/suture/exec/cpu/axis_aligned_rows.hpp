// SPDX-License-Identifier: Apache-2.0
// A path of the CPU executor for samples that keep the axes of their source, as resampling does. Neighboring rows of
// the output read the same rows of the source, so interpolation along x, and then along y, is computed once for all
// rows that need it. Every value still comes from exactly the arithmetic of a single voxel.
#pragma once

#include "aligned_labels.hpp"
#include "aligned_runs.hpp"
#include "aligned_values.hpp"

namespace suture::detail {

// Writes the values of a column of strips whose lanes run along z or y. Here z, y and x0 count planes, rows and lanes
// of the loops; `x` is an index along x of the image.
template <std::size_t B, class T, class Evaluator, class Stages>
void write_aligned_runs(const brick_work<Evaluator>& work, Stages& stages, std::int32_t x0) {
  using Out = typename Evaluator::template pair<B>::unit;
  const auto& r = work.r;
  const target_tensor& out = r.out[B];
  const std::int32_t z[2] = {work.z0, work.z1}, y[2] = {work.y0, work.y1};
  const bool planes_along_x = loop_axes[r.sample.loops][0] == 2;
  const std::int32_t(&of_x)[2] = planes_along_x ? z : y;
  const std::int32_t(&of_other)[2] = planes_along_x ? y : z;
  const std::int64_t ahead = rows_ahead * out.stride[planes_along_x ? 1 : 0];
  for (std::int32_t channel = 0; channel < r.in[B].channels; ++channel) {
    aligned_runs<typename Evaluator::pipeline_type, T> runs(r.sample, r.in[B], channel, work.evaluate.rule.border, of_x,
                                                            x0);
    for (std::int32_t x = of_x[0]; x < of_x[1]; ++x)
      for (std::int32_t other = of_other[0]; other < of_other[1]; ++other) {
        const voxel_index at{work.sample_index, channel, planes_along_x ? x : other, planes_along_x ? other : x, x0};
        prefetch_strip(element_at<const Out>(out, at) + ahead, out.stride[2]);
        alignas(lane_alignment) float v[strip_width];
        runs.row(x, other, v);
        finish_values<B>(work, stages, v, at);
      }
  }
}

// Writes a column of strips of a sample that keeps its axes.
template <int Rows, bool WithLabels, class Evaluator, class Strip, class Stages>
void write_aligned_column(const brick_work<Evaluator>& work, Strip& s, Stages& stages, std::int32_t x0) {
  using P = typename Evaluator::pipeline_type;
  const auto& r = work.r;
  const auto& rule = work.evaluate.rule;
  // Calls write(place) for the strips of a channel in rows y0 .. y1 - 1.
  const auto each = [&](std::int32_t channel, std::int32_t y0, std::int32_t y1, const auto& write) {
    for (std::int32_t z = work.z0; z < work.z1; ++z)
      for (std::int32_t y = y0; y < y1; ++y) write(voxel_index{work.sample_index, channel, z, y, x0});
  };
  each_pair<Evaluator, WithLabels>([&]<std::size_t B>() {
    using Binding = typename Evaluator::template binding_type<B>;
    using In = typename Binding::input;
    const source_tensor& in = r.in[B];
    [[maybe_unused]] const auto strip_by_strip = [&] {
      each(0, work.y0, work.y1, [&](const voxel_index& at) {
        s.locate(at.z, at.y);
        write_strip<B>(work, s, stages, at.z, at.y, x0);
      });
    };
    if constexpr (ends_at_rim<typename P::border_type>) {
      strip_by_strip();
    } else if constexpr (Binding::is_label && picks_a_voxel<typename P::label_type>) {
      for (std::int32_t channel = 0; channel < in.channels; ++channel) {
        const aligned_labels<typename P::label_type, P, In> labels(r.sample, in, channel,
                                                                   static_cast<In>(rule.label_outside), x0);
        each(channel, work.y0, work.y1, [&](const voxel_index& at) {
          In v[1][strip_width];
          labels.row(at.z, at.y, v);
          finish_labels<B>(work, v[0], at);
        });
      }
    } else if constexpr (Binding::is_label && std::is_same_v<typename P::label_type, vote>) {
      for (std::int32_t channel = 0; channel < in.channels; ++channel)
        for (std::int32_t y0 = work.y0; y0 < work.y1; y0 += Rows) {
          const std::int32_t y1 = std::min(y0 + Rows, work.y1);
          aligned_votes<P, In, Rows> votes(r.sample, in, channel, static_cast<In>(rule.label_outside), y0, y1, x0);
          each(channel, y0, y1, [&](const voxel_index& at) {
            In v[strip_width];
            votes.row(at.z, at.y, v);
            finish_labels<B>(work, v, at);
          });
        }
    } else if constexpr (!Binding::is_label && !P::is_color && P::interpolation_type::taps > 1 &&
                         (P::prefiltered || !any_needs_voxel<typename P::source_functors>)) {
      using T = std::conditional_t<P::prefiltered, float, In>;
      using Out = typename Evaluator::template pair<B>::unit;
      const target_tensor& out = r.out[B];
      if (r.sample.loops != 0) {
        if (!aligned_runs<P, T>::fits(r.sample, x0)) return strip_by_strip();
        return write_aligned_runs<B, T>(work, stages, x0);
      }
      for (std::int32_t channel = 0; channel < in.channels; ++channel) {
        const Out* const to = element_at<const Out>(out, {0, channel, 0, 0, x0});
        aligned_values<P, T, Rows> values(r.sample, in, channel, rule.border, work.y0, work.y1, x0);
        each(channel, work.y0, work.y1, [&](const voxel_index& at) {
          alignas(lane_alignment) float v[strip_width];
          prefetch_strip(to + at.z * out.stride[0] + (at.y + rows_ahead) * out.stride[1], out.stride[2]);
          values.row(at.z, at.y, v);
          finish_values<B>(work, stages, v, at);
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

  template <class Parameters>
  static bool serves(const Parameters& sample) {
    // With lanes along x, sums are shared only if rows run along y.
    return keeps_axes(sample) && (sample.loops == 0 || loop_axes[sample.loops][2] != 2);
  }
  template <class Parameters>
  static brick_shape shape(const Parameters& sample, std::int32_t depth) {
    return transposes_strips(sample) ? brick_shape{brick_rows, strip_width} : brick_shape{depth, brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static bool make(const brick_work<Evaluator>& work, Stages& stages) {
    for (std::int32_t x0 = 0; x0 < work.r.sample.extents[2]; x0 += strip_width) {
      strip<typename Evaluator::pipeline_type> walk(work.r.sample, x0);
      walk.expect(2, 0, 0);
      write_aligned_column<brick_rows, WithLabels>(work, walk, stages, x0);
    }
    return true;
  }
};

}  // namespace suture::detail
