// SPDX-License-Identifier: Apache-2.0
// Stages that follow the fused part of a pipeline: operations that need more than one voxel of the patch (filters) or
// numbers about the whole of it (operations on patch statistics), and the value operations among and after them. They
// are cut, at compile time, into the fewest stages; between two stages the patch lies in the workspace, as float.
//
//   value      any value operation on one channel
//   filter     reads a neighborhood, or works in k-space: see point_filter, pair_filter, separable_filter and
//              spectral_filter
//   statistic  returns a functor of one value that uses the moments of the patch:
//                auto with(const moments& patch, int channel) const
//   restore    the second half of a statistic, applied to the result of the first half, whose moments are known then.
//              It also returns the moments of its own result, and whether it does anything:
//                auto restoring(const moments& before, const moments& after, int channel) const
//                moments restored(const moments& before, const moments& after, int channel) const
//                bool restores(int channel) const
//
// Filters and statistics have bool active(int channel) const, which tells whether they change a channel.
//
// A stage begins with a restore, with a statistic whose moments are not known yet, or with a filter if the stage
// already has one. Operations before the filter of a stage act on the voxels that it reads. A filter of k-space ends
// its stage.
#pragma once

#include <array>
#include <cstddef>

#include "concepts.hpp"

namespace suture {

struct moments;

// The number of channels for which an operation can have parameters of their own.
inline constexpr int most_channels = 8;

// Returns the channel whose parameters a channel uses: channels beyond the last parameter use the last one.
SUTURE_FN std::int32_t parameter_channel(std::int32_t channel) {
  return channel < most_channels ? channel : most_channels - 1;
}

// A functor with parameters that Operation drew for each of most_channels channels; images with more are refused.
template <class Operation, class Functor>
struct drawn_for_channels : Functor {
  static constexpr int max_channels = most_channels;
  static constexpr std::string_view name = Operation::name;
};

namespace detail {
struct any_reader {
  SUTURE_FN float operator()(std::int32_t, std::int32_t, std::int32_t) const { return 0; }
};
}  // namespace detail

// Two voxels along an axis, and the position between them as a fraction from the first to the second.
struct voxel_pair {
  std::int32_t first, second;
  float t;
};

// A filter that reads single voxels of a patch of these `extents` through read(z, y, x).
template <class F>
concept point_filter = requires(const F& f, const detail::any_reader& read, const std::int32_t (&extents)[3]) {
  { f(read, extents, 0, 0, 0, 0) } -> std::same_as<float>;  // z, y, x, channel
  { f.active(0) } -> std::same_as<bool>;
};
// Point filter that reads at most the 27 voxels around one. index(i, n) returns the voxel that replaces one outside.
// filter_run computes 32 neighboring voxels along any axis. For dz, dy and dx of -1, 0 and 1 it reads the neighbor of
// voxel l at rows[3 (dz + 1) + dy + 1] + along_x[dx + 1] + l.
template <class F>
concept filters_runs = point_filter<F> &&
    requires(const F& f, const float* const (&rows)[9], const std::ptrdiff_t (&along_x)[3], float (&run)[32]) {
  { f.index(0, 1) } -> std::same_as<std::int32_t>;
  f.filter_run(rows, along_x, run);
};
// A filter that interpolates between two voxels along x, then y, then z; pair_at(axis, i, n, channel) returns them. The
// pair of i + 1 is that of i, or begins with the second voxel of it. The last pair may be one voxel twice.
template <class F>
concept pair_filter = requires(const F& f) {
  { f.pair_at(0, 0, 1, 0) } -> std::same_as<voxel_pair>;
  { f.active(0) } -> std::same_as<bool>;
};
// A filter of three weighted sums, along x, then y, then z. weights_along writes 2 radius + 1 weights for an axis and
// channel. index(i, n) returns the voxel that replaces one outside, or -1 for the value 0.
template <class F>
concept separable_filter = requires(const F& f, float* weights) {
  { f.radius(0, 0) } -> std::same_as<std::int32_t>;  // axis, channel
  f.weights_along(0, 0, weights);
  { f.index(0, 1) } -> std::same_as<std::int32_t>;
  { f.active(0) } -> std::same_as<bool>;
};
// Filter whose result depends on the voxel itself and on the sums.
template <class F>
concept blending_filter = separable_filter<F> && requires(const F& f) {
  { f.blend(0.0f, 0.0f, 0) } -> std::same_as<float>;  // voxel, sums, channel
};
// A filter of k-space, the Fourier transform of the patch. The result is the real part of the inverse transform after
// each frequency was multiplied by weight(extents, z, y, x, channel); (z, y, x) is its index in the centered transform.
template <class F>
concept spectral_mask = requires(const F& f, const std::int32_t (&extents)[3]) {
  { f.weight(extents, 0, 0, 0, 0) } -> std::same_as<float>;
  { f.active(0) } -> std::same_as<bool>;
};
// One frequency whose magnitude becomes exp(log_magnitude), or, where `relative`, exp(log_magnitude m), m the mean of
// log(magnitude + 1e-10) over all frequencies; its phase stays.
struct spike_of_channel {
  std::int32_t at[3];  // (z, y, x) in the centered transform
  float log_magnitude;
  bool relative;
};
template <class F>
concept spectral_spike = requires(const F& f) {
  { f.spike(0) } -> std::same_as<spike_of_channel>;
  { f.active(0) } -> std::same_as<bool>;
};
// The longest line of a patch that can be transformed: two copies of it and its roots fit the memory of a block.
inline constexpr std::int32_t longest_line = 2048;

template <class F>
concept spectral_filter = spectral_mask<F> || spectral_spike<F>;
template <class F>
concept filter_functor = point_filter<F> || pair_filter<F> || separable_filter<F> || spectral_filter<F>;

template <class F>
concept statistic_functor = requires(const F& f, const moments& m) {
  { f.with(m, 0)(0.0f) } -> std::same_as<float>;
  { f.active(0) } -> std::same_as<bool>;
};
template <class F>
concept restoring_functor = statistic_functor<F> && requires(const F& f, const moments& m) {
  { f.restoring(m, m, 0)(0.0f) } -> std::same_as<float>;
  { f.restored(m, m, 0) } -> std::same_as<moments>;
  { f.restores(0) } -> std::same_as<bool>;
};

inline constexpr int largest_radius = 15;

namespace detail {

enum class step_kind { value, filter, statistic, restore };

struct step {
  int slot = 0;  // of the operation among those after the fused part
  step_kind kind = step_kind::value;
};

// Steps [begin, end) of which `filter` is the filter, or end if there is none. With `emits`, the next stage may need
// the moments of the result.
struct stage_steps {
  int begin = 0, filter = 0, end = 0;
  bool emits = false;
};

// `Fs` are the functors of the operations after the fused part, in order.
template <class... Fs>
struct stage_schedule {
  static constexpr int operations = static_cast<int>(sizeof...(Fs));
  static constexpr int capacity = 2 * operations + 1;
  static constexpr bool uses_moments = (statistic_functor<Fs> || ...), has_spike = (spectral_spike<Fs> || ...);
  // Executors keep the voxels of a filter that blends until its sums are complete; a transform has two parts.
  static constexpr int buffers = ((blending_filter<Fs> || spectral_filter<Fs>) || ...) ? 3
                                 : (filter_functor<Fs> || ...)                         ? 2
                                                                                       : 1;

  std::array<step, capacity> steps{};
  std::array<stage_steps, capacity> stages{};
  int step_count = 0, stage_count = 0;

  constexpr stage_schedule() {
    constexpr std::array<step_kind, operations> kinds{(filter_functor<Fs>      ? step_kind::filter
                                                       : statistic_functor<Fs> ? step_kind::statistic
                                                                               : step_kind::value)...};
    constexpr std::array<bool, operations> restores{restoring_functor<Fs>...};
    constexpr std::array<bool, operations> spectral{spectral_filter<Fs>...};
    bool has_filter = true;  // the fused part samples, so nothing joins it
    for (int slot = 0; slot < operations; ++slot) {
      const auto i = static_cast<std::size_t>(slot);
      const bool known = step_count > 0 && last().kind == step_kind::restore;
      if (kinds[i] == step_kind::statistic && !known) begin_stage(true, has_filter);
      if (kinds[i] == step_kind::filter) {
        if (has_filter) begin_stage(false, has_filter);
        has_filter = true;
        stages[static_cast<std::size_t>(stage_count - 1)].filter = step_count;
      }
      add({slot, kinds[i]});
      if (spectral[i]) begin_stage(false, has_filter);
      if (restores[i]) {
        begin_stage(true, has_filter);
        add({slot, step_kind::restore});
      }
    }
  }

private:
  constexpr const step& last() const { return steps[static_cast<std::size_t>(step_count - 1)]; }
  constexpr void add(step s) {
    steps[static_cast<std::size_t>(step_count++)] = s;
    stage_steps& stage = stages[static_cast<std::size_t>(stage_count - 1)];
    if (stage.filter == stage.end && s.kind != step_kind::filter) ++stage.filter;
    stage.end = step_count;
  }
  // Moments of the result of the fused part need a stage that only reads.
  constexpr void begin_stage(bool needs_moments, bool& has_filter) {
    if (needs_moments && stage_count == 0) stages[static_cast<std::size_t>(stage_count++)] = {0, 0, 0, true};
    if (stage_count > 0) stages[static_cast<std::size_t>(stage_count - 1)].emits = needs_moments;
    stages[static_cast<std::size_t>(stage_count++)] = {step_count, step_count, step_count, false};
    has_filter = false;
  }
};

}  // namespace detail

}  // namespace suture
