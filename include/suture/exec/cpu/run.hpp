// SPDX-License-Identifier: Apache-2.0
// run() and prepare() on the CPU.
#pragma once

#include <memory>

#include "../../sample/prefilter.hpp"
#include "../common/checks.hpp"
#include "../common/coefficients.hpp"
#include "../common/records.hpp"
#include "axis_aligned_rows.hpp"
#include "deep_supervision.hpp"
#include "integer_shift_copy_rows.hpp"
#include "moved_strips.hpp"
#include "pointwise_rows.hpp"
#include "processed_sources.hpp"
#include "readable.hpp"
#include "rows_along_x.hpp"
#include "sample_map.hpp"
#include "stages.hpp"

namespace suture {

namespace detail {

// Fills the coefficient volume of one image: value operations, border padding, then the recursive filter by axis.
template <class Pipeline, class Binding>
void prefilter(const cpu& exec, const record_coefficients& c, const sample_parameters<Pipeline>& sample,
               std::int32_t sample_index, const source_tensor& raw, const typename Pipeline::border_type& border) {
  using B = typename Pipeline::border_type;
  constexpr std::int32_t pad = Pipeline::padding;
  const auto& n = c.extents;
  const std::int64_t plane = static_cast<std::int64_t>(n[1]) * n[2];
  parallel_for(exec.threads, n[0], [&](std::int64_t z) {
    for (std::int32_t y = 0; y < n[1]; ++y)
      for (std::int32_t x = 0; x < n[2]; ++x) {
        float* const at = c.data + z * plane + static_cast<std::int64_t>(y) * n[2] + x;
        each_padded_source_value<Pipeline, Binding>(
            sample, raw, border, sample_index, static_cast<std::int32_t>(z) - pad, y - pad, x - pad,
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

// Checks plan and bindings, fills the workspace up to the B-spline coefficients, and returns the evaluator. Unless it
// is null, `processed` then holds the sources to which the operations before the geometry were applied.
template <class Plan, class... Bindings>
auto fill_workspace(const cpu& exec, bool to_output, processed_sources* processed, const Plan& plan,
                    const Bindings&... bindings) {
  using P = typename Plan::pipeline_type;
  using E = evaluator<P, Bindings...>;
  check_bindings(plan, bindings...);
  each_bound_pointer(memory_check(exec), bindings...);
  each_control_values(plan, memory_check(exec));
  const workspace_layout l = layout(plan, bindings...);
  check_workspace(exec.workspace.data(), exec.workspace.size(), l.bytes);
  if (l.bytes > 0) check_memory(exec, exec.workspace.data(), {"workspace"});
  auto* records = reinterpret_cast<typename E::record_type*>(exec.workspace.data());
  workspace_cursor used;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    auto& r = *new (records + i)
                  typename E::record_type(make_record(plan, i, to_output, l, exec.workspace.data(), used, bindings...));
    if (to_output) set_loops(r, loops_of_strips(r.sample, memory_order_of_output(plan, i, bindings...)));
    if constexpr (P::has_deformation) {
      const control_grid& g = r.sample.controls;
      if (!g.on) continue;
      const auto& n = g.drawn.control_points;
      const bool few = std::int64_t{n[0]} * n[1] * n[2] < control_vectors_for_threads;
      parallel_for(few ? 1 : exec.threads, n[0], [&](std::int64_t z) {
        control_vector* v = g.vectors + z * n[1] * n[2];
        for (std::int32_t y = 0; y < n[1]; ++y)
          for (std::int32_t x = 0; x < n[2]; ++x) *v++ = expanded(g, static_cast<std::int32_t>(z), y, x);
      });
    }
  }
  if constexpr (source_functors_need_voxel<P>) {
    if (processed != nullptr) processed->fill<E>(exec, records, plan);
  }
  if constexpr (P::prefiltered) {
    each_pair<E, false>([&]<std::size_t B>() {
      for (std::size_t i = 0; i < plan.size(); ++i)
        prefilter<P, typename E::template binding_type<B>>(exec, coefficients_of(records[i].in[B]), records[i].sample,
                                                           static_cast<std::int32_t>(i), records[i].raw[B],
                                                           plan.rule().border);
    });
  }
  return detail::make_evaluator(records, plan, bindings...);
}

// The paths in order of preference. pointwise_rows serves every sample without geometry, moved_strips every other.
using cpu_paths = path_list<pointwise_rows, integer_shift_copy_rows, axis_aligned_rows, moved_strips>;

// Runs the fused part of every sample, with its label maps or without. `stages` receives what later stages change.
template <bool WithLabels, class Paths, class Evaluator, class Stages>
void run_fused(const cpu& exec, const Evaluator& evaluate, std::size_t samples, Stages& stages) {
  std::int32_t depth = brick_depth;
  std::vector<brick_shape> shapes(samples);
  std::vector<std::int64_t> first_brick(samples + 1, 0);
  const auto cut = [&] {
    for (std::size_t i = 0; i < samples; ++i) {
      const auto& sample = evaluate.records[i].sample;
      brick_shape& shape = shapes[i];
      by_first<Evaluator>(Paths{}, sample, [&]<class Path>() { return shape = Path::shape(sample, depth), true; });
      first_brick[i + 1] =
          first_brick[i] + static_cast<std::int64_t>((sample.extents[0] + shape.planes - 1) / shape.planes) *
                               ((sample.extents[1] + shape.rows - 1) / shape.rows);
    }
  };
  cut();
  const int threads = thread_count(exec.threads);
  for (; threads > 1 && depth > least_brick_depth && first_brick.back() < bricks_for_thread * threads; cut())
    depth /= 2;
  parallel_for(exec.threads, first_brick.back(), [&](std::int64_t brick) {
    const auto i = static_cast<std::size_t>(std::upper_bound(first_brick.begin(), first_brick.end(), brick) -
                                            first_brick.begin() - 1);
    const auto& r = evaluate.records[i];
    const auto& n = r.sample.extents;
    const auto [planes, rows] = shapes[i];
    const std::int64_t row_bricks = (n[1] + rows - 1) / rows, local = brick - first_brick[i];
    const auto z0 = static_cast<std::int32_t>(local / row_bricks) * planes;
    const auto y0 = static_cast<std::int32_t>(local % row_bricks) * rows;
    typename Stages::part part(stages, i);
    const brick_work<Evaluator> work{evaluate,
                                     r,
                                     static_cast<std::int32_t>(i),
                                     depth,
                                     z0,
                                     std::min(z0 + planes, n[0]),
                                     y0,
                                     std::min(y0 + rows, n[1])};
    const auto make = [&](auto& receiver) {
      by_first<Evaluator>(Paths{}, r.sample,
                          [&]<class Path>() { return Path::template make<WithLabels>(work, receiver); });
    };
    if constexpr (can_transpose_strips<typename Evaluator::pipeline_type>) {
      rows_along_x<Evaluator, typename Stages::part> transposed(work, part);
      make(transposed);
    } else {
      make(part);
    }
    part.finish();
  });
}

// Runs the fused part and the stages after it.
template <bool WithLabels, class Paths, class Evaluator>
void run_all(const cpu& exec, const Evaluator& evaluate, std::size_t samples, bool with_last) {
  if constexpr (Evaluator::pipeline_type::is_staged) {
    batch_stages<Evaluator> stages(evaluate, samples, with_last);
    run_fused<WithLabels, Paths>(exec, evaluate, samples, stages);
    stages.run(exec);
  } else {
    no_batch_stages none;
    run_fused<WithLabels, Paths>(exec, evaluate, samples, none);
  }
  if constexpr (WithLabels) write_levels(exec, evaluate, samples);
}

}  // namespace detail

// Fills the caller's workspace and returns an evaluator. The workspace and the sources must outlive the evaluator.
template <class Plan, class... Bindings>
auto prepare(const cpu& exec, const Plan& plan, const Bindings&... bindings) {
  static_cast<void>(detail::all_bound<Plan, Bindings...>());
  plan.each_fitted(detail::memory_check(exec));
  plan.check_fitted();
  using P = typename Plan::pipeline_type;
  detail::processed_sources processed;
  const auto evaluate = detail::fill_workspace(exec, false, P::is_staged ? &processed : nullptr, plan, bindings...);
  if constexpr (P::is_staged) detail::run_all<false, detail::cpu_paths>(exec, evaluate, plan.size(), false);
  return evaluate;
}

namespace detail {

// Runs a plan by the paths of a list.
template <class Paths, class Plan, class... Bindings>
void run_by(const cpu& exec, const Plan& plan, const Bindings&... bindings) {
  if (exec.workspace.data() == nullptr && exec.workspace.empty()) {
    const std::size_t bytes = workspace_bytes(plan, bindings...) + workspace_alignment;
    const std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);
    void* start = memory.get();
    std::size_t space = bytes;
    std::align(workspace_alignment, bytes - workspace_alignment, start, space);
    run_by<Paths>(cpu{exec.threads, {static_cast<std::byte*>(start), space}, exec.check_memory}, plan, bindings...);
    return;
  }
  (require_output(bindings), ...);
  plan.each_fitted(memory_check(exec));
  plan.check_fitted();
  processed_sources processed;
  const auto evaluate = fill_workspace(exec, true, &processed, plan, bindings...);
  run_all<true, Paths>(exec, evaluate, plan.size(), true);
}

}  // namespace detail

// Runs a plan. Everything is checked first; when a check throws, nothing has been written to the outputs.
template <class Plan, class... Bindings>
void run(const cpu& exec, const Plan& plan, const Bindings&... bindings) {
  if constexpr (detail::all_bound<Plan, Bindings...>()) detail::run_by<detail::cpu_paths>(exec, plan, bindings...);
}

}  // namespace suture
