// SPDX-License-Identifier: Apache-2.0
// Plans on the CPU: loops over the evaluator.
#pragma once

#include <memory>

#include "../common/prepare.hpp"
#include "../../sample/prefilter.hpp"
#include "integer_shift_copy.hpp"
#include "deep_supervision.hpp"
#include "stages.hpp"

namespace suture {

namespace detail {

// Fills the coefficient volume of one image: value operations, border padding, then the recursive filter by axis.
template <class Pipeline, class Binding>
void prefilter(const cpu& exec, const record_coefficients& c, const item<Pipeline>& sample, std::int32_t number,
               const source_tensor& raw, const typename Pipeline::border_type& border) {
  using B = typename Pipeline::border_type;
  constexpr std::int32_t pad = Pipeline::padding;
  const auto& n = c.extents;
  const std::int64_t plane = static_cast<std::int64_t>(n[1]) * n[2];
  parallel_for(exec.threads, n[0], [&](std::int64_t z) {
    for (std::int32_t y = 0; y < n[1]; ++y)
      for (std::int32_t x = 0; x < n[2]; ++x) {
        float* const at = c.data + z * plane + static_cast<std::int64_t>(y) * n[2] + x;
        each_padded_tap<Pipeline, Binding>(sample, raw, border, number, static_cast<std::int32_t>(z) - pad, y - pad,
                                           x - pad,
                                           [&](std::int32_t channel, float v) { at[channel * plane * n[0]] = v; });
      }
  });
  for (std::int32_t channel = 0; channel < raw.channels; ++channel) {
    float* volume = c.data + channel * plane * n[0];
    parallel_for(exec.threads, n[1], [&](std::int64_t y) { prefilter_lines<B>(volume + y * n[2], plane, n[0], n[2]); });
    parallel_for(exec.threads, n[0], [&](std::int64_t z) {
      prefilter_lines<B>(volume + z * plane, n[2], n[1], n[2]);
      for (std::int32_t y = 0; y < n[1]; ++y)
        prefilter_line<B>(volume + z * plane + static_cast<std::int64_t>(y) * n[2], 1, n[2]);
    });
  }
}

// Fills the workspace as far as B-spline coefficients.
template <class Plan, class... Bindings>
auto fill_workspace(const cpu& exec, bool to_output, const Plan& plan, const Bindings&... bindings) {
  using P = typename Plan::pipeline_type;
  using E = evaluator<P, Bindings...>;
  check_bindings(plan, bindings...);
  const workspace_layout l = layout(plan, bindings...);
  check_workspace(exec.workspace.data(), exec.workspace.size(), l);
  auto* records = reinterpret_cast<typename E::record_type*>(exec.workspace.data());
  workspace_cursor used;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    auto& r = *new (records + i)
                  typename E::record_type(make_record(plan, i, to_output, l, exec.workspace.data(), used, bindings...));
    if constexpr (P::has_deformation) {
      const control_grid& g = r.sample.controls;
      if (!g.on) continue;
      const auto& n = g.drawn.control_points;
      parallel_for(exec.threads, n[0], [&](std::int64_t z) {
        control_vector* v = g.vectors + z * n[1] * n[2];
        for (std::int32_t y = 0; y < n[1]; ++y)
          for (std::int32_t x = 0; x < n[2]; ++x) *v++ = expanded(g, static_cast<std::int32_t>(z), y, x);
      });
    }
  }
  if constexpr (P::prefiltered) {
    std::size_t b = 0;
    const auto one = [&]<class B>(const B& bound) {
      if constexpr (!B::is_label)
        for (std::size_t i = 0; i < plan.size(); ++i)
          prefilter<P, B>(exec, coefficients_of(records[i].in[b]), records[i].sample, static_cast<std::int32_t>(i),
                          raw_source(bound, i), plan.rule().border);
      ++b;
    };
    (one(bindings), ...);
  }
  return detail::make_evaluator(records, plan, bindings...);
}

// The direction in which a sample is read row by row, as memory lies, where it stands on voxels that interpolation
// copies; else 0. One of more taps than two sums all of them even there, and rows share what axes that are kept allow.
template <class P>
int direction_as_memory_lies(const item<P>& sample) {
  if constexpr (P::interpolation_type::taps > 2)
    if (keeps_axes(sample)) return 0;
  return strip<P>::direction_along_row(sample);
}

// The parts that a sample is cut into: as many voxels as stay in the second cache.
struct brick_shape {
  std::int32_t planes, rows;
};
template <class P>
brick_shape brick_shape_of(const item<P>& sample, std::int32_t depth) {
  if constexpr (P::has_geometry) {
    if (direction_as_memory_lies(sample) == 0) return {depth, brick_rows};
    // As memory lies: whole planes, or as many rows of one.
    const std::int32_t voxels = depth * brick_rows * typical_row, width = sample.extents[2];
    const std::int32_t rows = std::clamp(voxels / width, 1, sample.extents[1]);
    return {std::max(voxels / (rows * width), 1), rows};
  } else {
    return {1, 64};
  }
}

// The fused part of every sample, with its label maps or without; `stages` take what is not finished with it.
template <bool WithLabels, class Evaluator, class Stages>
void run_fused(const cpu& exec, const Evaluator& evaluate, std::size_t samples, Stages& stages) {
  using P = typename Evaluator::pipeline_type;
  std::int32_t depth = brick_depth;
  std::vector<std::int64_t> first(samples + 1, 0);
  const auto cut = [&] {
    for (std::size_t i = 0; i < samples; ++i) {
      const auto& n = evaluate.records[i].sample.extents;
      const brick_shape shape = brick_shape_of(evaluate.records[i].sample, depth);
      first[i + 1] = first[i] + static_cast<std::int64_t>((n[0] + shape.planes - 1) / shape.planes) *
                                    ((n[1] + shape.rows - 1) / shape.rows);
    }
  };
  cut();
  const int threads = thread_count(exec.threads);
  for (; threads > 1 && depth > least_brick_depth && first.back() < 8 * threads; cut()) depth /= 2;
  parallel_for(exec.threads, first.back(), [&](std::int64_t brick) {
    const auto i = static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), brick) - first.begin() - 1);
    const auto& r = evaluate.records[i];
    const auto& n = r.sample.extents;
    const brick_shape shape = brick_shape_of(r.sample, depth);
    const std::int64_t row_bricks = (n[1] + shape.rows - 1) / shape.rows;
    const auto local = brick - first[i];
    const auto z0 = static_cast<std::int32_t>(local / row_bricks) * shape.planes;
    const auto y0 = static_cast<std::int32_t>(local % row_bricks) * shape.rows;
    const std::int32_t z1 = std::min(z0 + shape.planes, n[0]), y1 = std::min(y0 + shape.rows, n[1]);
    typename Stages::part taker(stages, i);
    const auto write = [&](auto& walk, std::int32_t z, std::int32_t y, std::int32_t x0) {
      write_strips<WithLabels>(evaluate, r, static_cast<std::int32_t>(i), walk, taker, z, y, x0);
    };
    if constexpr (P::has_geometry) {
      const auto visit = [&](strip<P>& walk, std::int32_t z, std::int32_t y, std::int32_t x0) {
        walk.locate(z, y);
        write(walk, z, y, x0);
      };
      const int along_row = direction_as_memory_lies(r.sample);
      if constexpr (copied_brick<Evaluator>::possible)
        if (along_row != 0) {
          const copied_brick<Evaluator> copied(evaluate, r, along_row, z0, z1, y0, y1);
          if (copied.can_be_copied()) {
            copied.template write<WithLabels>(static_cast<std::int32_t>(i), taker);
            taker.finish();
            return;
          }
        }
      if (along_row != 0) {  // as memory lies
        for (std::int32_t z = z0; z < z1; ++z)
          for (std::int32_t y = y0; y < y1; ++y)
            for (std::int32_t x0 = 0; x0 < n[2]; x0 += strip_width) {
              strip<P> walk(r.sample, x0, along_row);
              walk.expect(1, 0, 0);
              visit(walk, z, y, x0);
            }
      } else if (keeps_axes(r.sample)) {
        for (std::int32_t x0 = 0; x0 < n[2]; x0 += strip_width) {
          strip<P> walk(r.sample, x0, along_row);
          walk.expect(2, 0, 0);
          write_aligned_column<brick_rows, WithLabels>(evaluate, r, static_cast<std::int32_t>(i), walk, taker, {z0, z1},
                                                       {y0, y1}, x0);
        }
      } else {  // rows side by side before strips end to end: neighbouring rows read the same source lines
        for (std::int32_t x0 = 0; x0 < n[2]; x0 += strip_width) {
          strip<P> walk(r.sample, x0, along_row);
          // What is read two planes or rows later: in this column of strips, or in the one behind it.
          const bool has_next = x0 + strip_width < n[2];
          const std::int32_t next_y = has_next ? 0 : brick_rows, next_x = has_next ? strip_width : -x0;
          if (strip<P>::deformed(r.sample)) {
            for (std::int32_t y = y0; y < y1; ++y) {
              y + 2 < y1 ? walk.expect(0, 2, 0) : walk.expect(0, 2 - brick_rows + next_y, next_x);
              for (std::int32_t z = z0; z < z1; ++z) visit(walk, z, y, x0);
            }
          } else {
            for (std::int32_t z = z0; z < z1; ++z) {
              z + 2 < z1 ? walk.expect(2, 0, 0) : walk.expect(2 - depth, next_y, next_x);
              for (std::int32_t y = y0; y < y1; ++y) {
                walk.expect_output(y, {y0, y1});
                visit(walk, z, y, x0);
              }
            }
          }
        }
      }
    } else {
      write_plane<WithLabels>(evaluate, r, static_cast<std::int32_t>(i), taker, z0, y0, y1);
    }
    taker.finish();
  });
}

// The fused part and what comes behind it.
template <bool WithLabels, class Evaluator>
void run_all(const cpu& exec, const Evaluator& evaluate, std::size_t samples, bool with_last) {
  if constexpr (Evaluator::pipeline_type::is_staged) {
    batch_stages<Evaluator> stages(evaluate, samples, with_last);
    run_fused<WithLabels>(exec, evaluate, samples, stages);
    stages.run(exec);
  } else {
    no_batch_stages none;
    run_fused<WithLabels>(exec, evaluate, samples, none);
  }
  if constexpr (WithLabels) write_levels(exec, evaluate, samples);
}

}  // namespace detail

// Fills the caller's workspace and hands out the evaluator that reads it; the workspace must outlive the evaluator.
template <class Plan, class... Bindings>
auto prepare(const cpu& exec, const Plan& plan, const Bindings&... bindings) {
  static_assert(detail::all_bound<Bindings...>());
  const auto evaluate = detail::fill_workspace(exec, false, plan, bindings...);
  using P = typename Plan::pipeline_type;
  if constexpr (P::is_staged) detail::run_all<false>(exec, evaluate, plan.size(), false);
  return evaluate;
}

// Runs a plan. Everything is checked first; when it throws, nothing has been written.
template <class Plan, class... Bindings>
void run(const cpu& exec, const Plan& plan, const Bindings&... bindings) {
  static_assert(detail::all_bound<Bindings...>());
  if (exec.workspace.data() == nullptr && exec.workspace.empty()) {
    const std::size_t bytes = workspace_bytes(plan, bindings...) + detail::workspace_alignment;
    const std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);
    void* start = memory.get();
    std::size_t space = bytes;
    std::align(detail::workspace_alignment, bytes - detail::workspace_alignment, start, space);
    run(cpu{exec.threads, {static_cast<std::byte*>(start), space}}, plan, bindings...);
    return;
  }
  (detail::require_output(bindings), ...);
  plan.check_fitted();
  const auto evaluate = detail::fill_workspace(exec, true, plan, bindings...);
  detail::run_all<true>(exec, evaluate, plan.size(), true);
}

}  // namespace suture
