// SPDX-License-Identifier: Apache-2.0
// Functions that fill the records which executors read, from a plan and its bound views.
#pragma once

#include "workspace.hpp"

namespace suture::detail {

// Returns the input view of sample i as a tensor. With B-splines the coefficients are computed from it.
template <class Binding>
source_tensor raw_source(const Binding& b, std::size_t i) {
  const auto in = b.source(i);
  source_tensor s{};
  s.data = in.data;
  for (int k = 0; k < 3; ++k) {
    s.extents[k] = static_cast<std::int32_t>(in.grid.extents[k]);
    // Offsets of taps are computed in 32 bits. An axis of one voxel may have any stride, which no voxel is read by.
    const bool any_stride = in.grid.extents[k] == 1 && std::abs(in.stride[k]) >= std::int64_t{1} << 28;
    s.stride[k] = any_stride ? 0 : in.stride[k];
  }
  count_pairs(s.stride, s.extents, s.pairs);
  s.channel_stride = in.channel_stride;
  s.channels = static_cast<std::int32_t>(in.channels);
  const bool interleaved =
      in.stride[0] % 4 == 0 && in.stride[1] % 4 == 0 && in.stride[2] == 4 && in.channel_stride == 1;
  s.side_by_side = interleaved && in.channels == 4 &&
                           reinterpret_cast<std::uintptr_t>(in.data) % (4 * sizeof(typename Binding::input)) == 0
                       ? 1
                       : 0;
  return s;
}

// Assigns an image its parts of the workspace between stages: buffers, moments and sums. Advances `used` past them.
template <class Pipeline>
void place_buffers(staged_tensor& t, const grid& g, std::int64_t channels, const target_tensor& out,
                   const workspace_layout& l, std::byte* workspace, workspace_cursor& used) {
  auto* const floats = reinterpret_cast<float*>(workspace + l.images) + used.images;
  const std::size_t count = floats_between_stages<Pipeline>(g, channels);
  constexpr std::size_t buffers = Pipeline::schedule.buffers;
  for (std::size_t k = 0; k < 3; ++k) t.data[k] = floats + (k < buffers ? k : 0) * (count / buffers);
  t.out = out;
  t.statistics = reinterpret_cast<moments*>(workspace + l.statistics) + used.statistics;
  t.sums = reinterpret_cast<patch_sums*>(workspace + l.sums) + used.statistics;
  t.spectra = reinterpret_cast<spectral_sums*>(workspace + l.spectra) + used.spectra;
  t.channels = static_cast<std::int32_t>(channels);
  t.spectra_per_channel = spectra_per_channel<Pipeline>;
  t.moments_per_channel = moments_per_channel<Pipeline>;
  used.images += count;
  used.statistics += static_cast<std::size_t>(t.moments_per_channel * t.channels);
  used.spectra += static_cast<std::size_t>(t.spectra_per_channel * t.channels);
}

// Returns where the fused part writes a staged image: to the buffer between stages or, if a run stores to the output
// and no stage changes any channel, to the output.
template <class Pair, class Pipeline>
target_tensor fused_target(staged_tensor& t, const sample_parameters<Pipeline>& sample, const grid& g, bool to_output) {
  if constexpr (Pair::may_finish) {
    t.finished = to_output ? 1 : 0;
    for (std::int32_t channel = 0; channel < t.channels; ++channel)
      if (staging<Pipeline>::changes(sample, channel)) t.finished = 0;
    if (t.finished != 0) return t.out;
  }
  constexpr std::int64_t units = sizeof(float) / sizeof(typename Pair::unit);
  const extent3& n = g.extents;
  return {t.data[0], {n[1] * n[2] * units, n[2] * units, units}, g.voxels() * units};
}

template <class Out>
target_tensor target_of(const view<Out>& out) {
  return {out.data, {out.stride[0], out.stride[1], out.stride[2]}, out.channel_stride};
}

template <std::size_t L, class Binding>
void put_levels(level_lists<L>& lists, std::size_t place, const Binding& b, std::size_t i) {
  level_list& list = lists.levels[place];
  list.count = static_cast<std::int32_t>(b.levels.count);
  for (std::size_t l = 0; l < b.levels.count; ++l) {
    const auto& level = b.levels.views[l][i];
    list.levels[l].to = target_of(level);
    for (int k = 0; k < 3; ++k) list.levels[l].extents[k] = static_cast<std::int32_t>(level.grid.extents[k]);
  }
}

// Returns a number that identifies a type of record: a hash of the name of the type.
template <class Record>
std::uint32_t mark_of() {
  static const std::uint32_t mark = [](std::string_view name) {
    std::uint32_t hash = 2166136261u;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash | 1;  // not 0, which memory is cleared to
  }(__PRETTY_FUNCTION__);
  return mark;
}

// Returns the record of sample i and advances `used`. With `to_output` a run stores to the output; otherwise, as in
// prepare(), the last stage is left to the evaluator.
template <class Plan, class... Bindings>
auto make_record(const Plan& plan, std::size_t i, bool to_output, const workspace_layout& l, std::byte* workspace,
                 workspace_cursor& used, const Bindings&... bindings) {
  using P = typename Plan::pipeline_type;
  using record_type = typename evaluator<P, Bindings...>::record_type;
  record_type r{};
  r.mark = mark_of<record_type>();
  r.sample = plan.sample(i);
  if constexpr (P::has_deformation)
    r.sample.controls.vectors = reinterpret_cast<control_vector*>(workspace + l.vectors) + r.sample.controls.first;
  [[maybe_unused]] std::size_t with_levels = 0;
  const auto add = [&]<std::size_t b, class B>(const B& bound) {
    const auto in = bound.source(i);
    source_tensor& s = r.in[b];
    s.channels = static_cast<std::int32_t>(in.channels);
    if constexpr (P::prefiltered && !B::is_label) {
      for (int k = 0; k < 3; ++k) s.extents[k] = static_cast<std::int32_t>(in.grid.extents[k]) + 2 * P::padding;
      s.stride[2] = 1;
      s.stride[1] = s.extents[2];
      s.stride[0] = s.stride[1] * s.extents[1];
      s.channel_stride = s.stride[0] * s.extents[0];
      s.data = reinterpret_cast<float*>(workspace + l.coefficients) + used.coefficients;
      r.raw[b] = raw_source(bound, i);
      used.coefficients += static_cast<std::size_t>(s.channel_stride * in.channels);
    } else {
      s = raw_source(bound, i);
    }
    if (!bound.out.empty()) {
      const auto& out = bound.out[i];
      r.out[b] = target_of(out);
      if constexpr (B::has_levels) put_levels(r, with_levels++, bound, i);
    }
    if constexpr (P::is_staged && !B::is_label) {
      place_buffers<P>(r.staged[b], plan.output_grid(i), in.channels, r.out[b], l, workspace, used);
      r.out[b] = fused_target<pair_evaluator<P, B>>(r.staged[b], r.sample, plan.output_grid(i), to_output);
    }
  };
  each_binding(add, bindings...);
  return r;
}

// Returns an evaluator that reads filled records, which must outlive it.
template <class Plan, class... Bindings>
auto make_evaluator(const typename evaluator<typename Plan::pipeline_type, Bindings...>::record_type* records,
                    const Plan& plan, const Bindings&... bindings) {
  using evaluator_type = evaluator<typename Plan::pipeline_type, Bindings...>;
  return evaluator_type{
      records, plan.rule(), {{{prepared_conversion_of(bindings)}...}}, mark_of<typename evaluator_type::record_type>()};
}

// Returns one control vector of a deformation in source voxels, or of an inverted one in control cells.
SUTURE_FN control_vector expanded(const control_grid& g, std::int32_t z, std::int32_t y, std::int32_t x) {
  float u[3];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k) u[k] = control_value(g.drawn, k, z, y, x);
  float v[3];
  SUTURE_UNROLL
  for (int k = 0; k < 3; ++k)
    v[k] = fma(g.to_source[k][0], u[0], fma(g.to_source[k][1], u[1], g.to_source[k][2] * u[2]));
  return {v[0], v[1], v[2], 0.0f};
}

}  // namespace suture::detail
