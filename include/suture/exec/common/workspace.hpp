// SPDX-License-Identifier: Apache-2.0
// Layout of the workspace of a run: its parts, their offsets, and the bytes of all of them.
#pragma once

#include <cstddef>

#include "../../evaluate/evaluator.hpp"
#include "../../plan/plan.hpp"

namespace suture {

// Byte offsets of the parts of the workspace. Records come first, then the parts whose sizes depend only on the numbers
// of samples and channels: a captured graph relies on their offsets, whatever the extents of the volumes.
struct workspace_layout {
  std::size_t sums = 0;          // from which the moments after each stage are computed
  std::size_t statistics = 0;    // these moments
  std::size_t spectra = 0;       // sums over k-space
  std::size_t vectors = 0;       // control vectors
  std::size_t coefficients = 0;  // B-spline coefficients, float
  std::size_t images = 0;        // images between stages, float
  std::size_t bytes = 0;
};

// Elements of each part that samples have been assigned so far.
struct workspace_cursor {
  std::size_t coefficients = 0, statistics = 0, spectra = 0, images = 0;
};

namespace detail {

inline constexpr std::size_t workspace_alignment = 256;
constexpr std::size_t aligned(std::size_t n) {
  return (n + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

// Returns the number of B-spline coefficients of one channel. Offsets of taps within a plane have 32 bits, except with
// the border `wrap`.
template <class Pipeline>
std::size_t coefficient_voxels(const grid& g, const site& where) {
  std::size_t n[3];
  for (int k = 0; k < 3; ++k) n[k] = static_cast<std::size_t>(g.extents[k] + 2 * Pipeline::padding);
  if constexpr (!std::is_same_v<typename Pipeline::border_type, wrap>)
    require(n[1] * n[2] < std::size_t{1} << 28, where, "a plane of ", g.extents[1], " x ", g.extents[2],
            " voxels has more than 2^28 B-spline coefficients. Crop it first, or use another interpolation");
  return n[0] * n[1] * n[2];
}

// Moments and sums over k-space of one channel between stages: one for each stage, if any are used.
template <class Pipeline>
inline constexpr std::int32_t moments_per_channel =
    Pipeline::schedule.uses_moments ? Pipeline::schedule.stage_count : 0;
template <class Pipeline>
inline constexpr std::int32_t spectra_per_channel = Pipeline::schedule.has_spike ? Pipeline::schedule.stage_count : 0;
// Floats of all buffers of one image between stages; each buffer begins at a multiple of workspace_alignment.
template <class Pipeline>
std::size_t floats_between_stages(const grid& g, std::int64_t channels) {
  const auto n = static_cast<std::size_t>(channels * g.voxels());
  return aligned(n * sizeof(float)) / sizeof(float) * static_cast<std::size_t>(Pipeline::schedule.buffers);
}

template <class Binding>
std::int64_t channels_of(const Binding& b, std::size_t i) {
  const std::int64_t channels = b.source(i).channels;
  suture::check_channels(channels, {Binding::name, static_cast<std::int64_t>(i)}, "input: ");
  return channels;
}

template <class Plan, class... Bindings>
workspace_layout layout(const Plan& plan, const Bindings&... bindings) {
  using P = typename Plan::pipeline_type;
  workspace_layout l;
  l.sums = aligned(plan.size() * sizeof(typename evaluator<P, Bindings...>::record_type));
  std::size_t coefficients = 0, statistics = 0, spectra = 0, images = 0;
  [[maybe_unused]] const auto add = [&]<class B>(const B& b) {
    require(b.samples() == plan.size(), {B::name}, b.samples(), " input views for ", plan.size(), " planned samples");
    if constexpr (!B::is_label) {
      for (std::size_t i = 0; i < plan.size(); ++i) {
        const std::int64_t channels = channels_of(b, i);
        [[maybe_unused]] const auto count = static_cast<std::size_t>(channels);
        if constexpr (P::prefiltered)
          coefficients += count * coefficient_voxels<P>(plan.source_grid(i), {B::name, static_cast<std::int64_t>(i)});
        if constexpr (P::is_staged) {
          statistics += count * moments_per_channel<P>;
          spectra += count * spectra_per_channel<P>;
          images += floats_between_stages<P>(plan.output_grid(i), channels);
        }
      }
    }
  };
  if constexpr (P::prefiltered || P::is_staged) (add(bindings), ...);
  l.statistics = l.sums + aligned(statistics * sizeof(patch_sums));
  l.spectra = l.statistics + aligned(statistics * sizeof(moments));
  l.vectors = l.spectra + aligned(spectra * sizeof(spectral_sums));
  l.coefficients = l.vectors + aligned(static_cast<std::size_t>(plan.control_vectors()) * sizeof(control_vector));
  l.images = l.coefficients + aligned(coefficients * sizeof(float));
  l.bytes = l.images + aligned(images * sizeof(float));
  return l;
}

// Refuses a workspace that is missing, shorter than `needed` bytes or not aligned; `role` begins the message.
inline void check_workspace(const void* data, std::size_t size, std::size_t needed, const site& where = {"workspace"},
                            std::string_view role = "") {
  require(needed == 0 || (size > 0 && data != nullptr), where, role, "none was given, ", needed,
          " bytes are needed, as workspace_bytes() says");
  require(size >= needed, where, role, size, " bytes given, ", needed, " needed, as workspace_bytes() says");
  require(reinterpret_cast<std::uintptr_t>(data) % workspace_alignment == 0, where, role, "pointer ", data,
          " is not aligned to ", workspace_alignment, " bytes");
}

}  // namespace detail

// Bytes of workspace that a run of this plan with these views needs, on either executor.
template <class Plan, class... Bindings>
requires(sizeof...(Bindings) > 0 && (is_binding_v<Bindings> && ...)) std::size_t
    workspace_bytes(const Plan& plan, const Bindings&... bindings) {
  return detail::layout(plan, bindings...).bytes;
}

}  // namespace suture
