// SPDX-License-Identifier: Apache-2.0
// One stage after the fused part, for one sample and channel: which of its operations are active, their parameters, and
// the finished value of one voxel. The executors are loops over it.
#pragma once

#include "../math/fourier.hpp"
#include "../stats/statistics.hpp"
#include "sample_parameters.hpp"

SUTURE_REFUSE_HOST_CALLS
namespace suture {

template <class T>
struct cast;

// Sums from which the moments of a channel are computed; they start at zero.
struct patch_sums {
  exact_sums sums;
  std::uint64_t count, excluded;
  std::uint32_t least_complement, greatest;  // keys (counted<float>) of the extremes, that of the least inverted
  std::uint32_t parts, unused;               // parts: how many have been added
};

// Per-channel sums of the spectrum that scale a spike; all zero at the start.
struct spectral_sums {
  std::int64_t logarithms;    // of the magnitudes, in units of 2^-24
  math::complex at_location;  // the transform there
};

namespace detail {

// ln(|X| + 1e-10) in units of 2^-24; 0 where X is not finite.
SUTURE_FN std::int32_t log_magnitude(const math::complex& x) {
  const double a = static_cast<double>(x.real), b = static_cast<double>(x.imaginary);
  const auto magnitude = static_cast<float>(math::sqrt(fma(a, a, fma(b, b, 0.0))));
  const float logarithm = math::log(magnitude + 1e-10f);
  const float units = logarithm < 1e3f ? fma(logarithm, 0x1p24f, 0.0f) : 0.0f;
  return static_cast<std::int32_t>(units);  // of finite numbers: below 89 * 2^24
}

// Returns what a spike adds at frequency `spike.at`, divided by the number of voxels: the difference to the present
// magnitude, in the present phase. An absent frequency has phase 0; log-magnitudes above 80 count as 80.
SUTURE_FN math::complex spike_of(const spike_of_channel& spike, const spectral_sums& sums, double voxels) {
  const math::complex& x = sums.at_location;
  const double a = static_cast<double>(x.real), b = static_cast<double>(x.imaginary);
  const double magnitude = math::sqrt(fma(a, a, fma(b, b, 0.0)));
  double target = static_cast<double>(spike.log_magnitude);
  if (spike.relative)
    target = fma(target, math::detail::divide(static_cast<double>(sums.logarithms), voxels * 0x1p24), 0.0);
  target = math::exp(target < 80 ? target : 80.0);
  const double share = math::detail::divide(target - magnitude, voxels);
  if (magnitude == 0) return {static_cast<float>(share), 0.0f};
  const double by_magnitude = math::detail::divide(share, magnitude);
  return {static_cast<float>(fma(by_magnitude, a, 0.0)), static_cast<float>(fma(by_magnitude, b, 0.0))};
}

// Converts array index i of a transform from the order with the zero frequency first to the centered order, and back.
SUTURE_FN std::int32_t centered(std::int32_t i, std::int32_t n) { return i < n - n / 2 ? i + n / 2 : i - (n - n / 2); }
SUTURE_FN std::int32_t uncentered(std::int32_t i, std::int32_t n) { return i < n / 2 ? i + (n - n / 2) : i - n / 2; }

// The transform of a patch holds the conjugate of frequency k at -k, so the first x_frequencies of each line along x
// suffice. Under one weight, the waves of both sum to a real one.
SUTURE_FN std::int32_t x_frequencies(std::int32_t n) { return n / 2 + 1; }
SUTURE_FN std::int32_t opposite(std::int32_t i, std::int32_t n) { return i == 0 ? 0 : n - i; }

// Returns the sum of the weights of a frequency and its opposite, which is twice the weight of the real part.
template <class Filter>
SUTURE_FN float weight_of_both(const Filter& filter, const std::int32_t (&n)[3], std::int32_t z, std::int32_t y,
                               std::int32_t x, std::int32_t channel) {
  return filter.weight(n, centered(z, n[0]), centered(y, n[1]), centered(x, n[2]), channel) +
         filter.weight(n, centered(opposite(z, n[0]), n[0]), centered(opposite(y, n[1]), n[1]),
                       centered(opposite(x, n[2]), n[2]), channel);
}

// The log-magnitudes of frequency x and, unless it is its own opposite along x, of its opposite.
SUTURE_FN std::int64_t log_magnitudes(const math::complex& v, std::int32_t x, std::int32_t n) {
  const std::int64_t own = log_magnitude(v);
  return x == opposite(x, n) ? own : 2 * own;
}

// Position of a spike's frequency, or of its opposite, in the stored half of the spectrum.
struct stored_frequency {
  std::int32_t at[3];
  bool is_opposite;

  SUTURE_FN static stored_frequency of(const std::int32_t (&location)[3], const std::int32_t (&n)[3]) {
    stored_frequency result = {{location[0], location[1], location[2]}, location[2] >= x_frequencies(n[2])};
    for (int k = 0; k < 3 && result.is_opposite; ++k) result.at[k] = opposite(location[k], n[k]);
    return result;
  }
  SUTURE_FN bool is(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return z == at[0] && y == at[1] && x == at[2];
  }
  SUTURE_FN math::complex value(const math::complex& v) const {
    return {v.real, is_opposite ? -v.imaginary : v.imaginary};
  }
};

// Adds the wave of a spike to a voxel. root_x is exp(-2 pi i k x / n) for frequency k along x, and root_zy is the
// product of those along z and y.
SUTURE_FN float with_spike(float voxel, const math::complex& spike, const math::complex& root_zy,
                           const math::complex& root_x) {
  const math::complex wave = math::times(root_zy, root_x);  // its conjugate carries the spike
  return fma(spike.real, wave.real, fma(spike.imaginary, wave.imaginary, voxel));
}

SUTURE_HD inline moments moments_of(patch_sums& s) {
  s.sums.propagate_carries();
  return make_moments(s.sums, {s.count, s.excluded, 0}, counted<float>::value_of(~s.least_complement),
                      counted<float>::value_of(s.greatest), false, 0);
}

// A value functor that consists of one for each channel, channel[c], which may be off.
template <class F>
concept functor_by_channel = requires(const F& f) {
  f.channel[0].on;
};

// A pointer to a functor that is too large to be copied.
template <class F>
struct distant {
  const F* functor;
  SUTURE_FN auto operator()(float x, const voxel& at) const requires applies_with_voxel<F, float> {
    return (*functor)(x, at);
  }
  SUTURE_FN auto operator()(float x) const requires(!applies_with_voxel<F, float>) { return (*functor)(x); }
  template <int Count>
  SUTURE_INLINE void apply_row(float (&values)[Count], const voxel& first) const requires requires {
    functor->apply_row(values, first);
  }
  { functor->apply_row(values, first); }
};
inline constexpr std::size_t most_carried = 48;  // bytes

template <class F>
inline constexpr bool is_cast = false;
template <class T>
inline constexpr bool is_cast<cast<T>> = true;

template <class Pipeline>
struct staging {
  static constexpr int count = Pipeline::schedule.stage_count;
  static constexpr const stage_steps& stage_at(int k) { return Pipeline::schedule.stages[static_cast<std::size_t>(k)]; }
  static constexpr const step& step_at(int s) { return Pipeline::schedule.steps[static_cast<std::size_t>(s)]; }
  static constexpr int find_stage(int s) {
    int k = 0;
    while (s >= stage_at(k).end) ++k;
    return k;
  }
  static constexpr int find_follower(int s) {
    if (s + 2 >= Pipeline::schedule.step_count || step_at(s + 1).kind != step_kind::restore) return -1;
    return step_at(s + 2).kind == step_kind::statistic ? s + 2 : -1;
  }

  // Properties of stage K: its steps, its filter (`end` if there is none), and whether moments of its result may be
  // needed.
  template <int K>
  static constexpr int begin = stage_at(K).begin;
  template <int K>
  static constexpr int filter = stage_at(K).filter;
  template <int K>
  static constexpr int end = stage_at(K).end;
  template <int K>
  static constexpr bool emits_sums = stage_at(K).emits;
  template <int K>
  static constexpr bool filters = filter<K> < end<K>;
  // Properties of step S: its operation, its kind, its stage, and its follower. That is the statistic directly after
  // the restore of S, whose moments are computed from those of S; -1 if there is none.
  template <int S>
  static constexpr std::size_t slot_of = static_cast<std::size_t>(step_at(S).slot);
  template <int S>
  static constexpr step_kind kind = step_at(S).kind;
  template <int S>
  static constexpr int stage_of = find_stage(S);
  template <int S>
  static constexpr int follower = find_follower(S);

  using parameters_type = sample_parameters<Pipeline>;
  template <int S>
  using functor_t = typename unswitched<element_t<slot_of<S>, typename Pipeline::stage_functors>>::type;
  // The type of the filter of stage K, or void.
  template <int K>
  static constexpr auto find_filter() {
    if constexpr (filters<K>)
      return std::type_identity<functor_t<filter<K>>>{};
    else
      return std::type_identity<void>{};
  }
  template <int K>
  using filter_t = typename decltype(find_filter<K>())::type;

  template <int S>
  SUTURE_FN static const auto& slot(const parameters_type& sample) {
    return get<slot_of<S>>(sample.stage_functors);
  }
  template <int S>
  SUTURE_FN static const auto& functor(const parameters_type& sample) {
    return bare(slot<S>(sample));
  }

  // The cast that ends the chain, or the end of the steps.
  static constexpr int find_conversion() {
    constexpr int steps = Pipeline::schedule.step_count;
    if constexpr (steps > 0)
      if constexpr (is_cast<functor_t<steps - 1>>) return steps - 1;
    return steps;
  }
  static constexpr int conversion = find_conversion();

  // Tests whether step S is active in this channel.
  template <int S>
  SUTURE_FN static bool on(const parameters_type& sample, std::int32_t channel) {
    if constexpr (kind<S> == step_kind::restore)
      return on<S - 1>(sample, channel) && functor<S>(sample).restores(channel);
    else if constexpr (kind<S> != step_kind::value)
      return is_on(slot<S>(sample)) && functor<S>(sample).active(channel);
    else if constexpr (functor_by_channel<functor_t<S>>)
      return is_on(slot<S>(sample)) && is_on(functor<S>(sample).channel[channel]);
    else
      return is_on(slot<S>(sample));
  }

  // Returns which of the two buffers holds the channel before stage K.
  template <int K>
  SUTURE_FN static int side(const parameters_type& sample, std::int32_t channel) {
    if constexpr (K == 0) {
      return 0;
    } else {
      const int before = side<K - 1>(sample, channel);
      if constexpr (filters<K - 1>)
        return on<filter<K - 1>>(sample, channel) ? 1 - before : before;
      else
        return before;
    }
  }

  template <int S, int End>
  SUTURE_FN static bool any_on(const parameters_type& sample, std::int32_t channel) {
    if constexpr (S == End)
      return false;
    else
      return on<S>(sample, channel) || any_on<S + 1, End>(sample, channel);
  }

  // Tests whether anything uses the moments before statistic S.
  template <int S>
  SUTURE_FN static bool uses_moments(const parameters_type& sample, std::int32_t channel) {
    return on<S>(sample, channel) || follower_uses_moments<S>(sample, channel);
  }
  template <int S>
  SUTURE_FN static bool follower_uses_moments(const parameters_type& sample, std::int32_t channel) {
    if constexpr (follower<S> < 0)
      return false;
    else
      return uses_moments<follower<S>>(sample, channel);
  }
  // Tests whether stage K must compute the moments of its result.
  template <int K>
  SUTURE_FN static bool emits(const parameters_type& sample, std::int32_t channel) {
    if constexpr (!emits_sums<K>) {
      return false;
    } else {
      constexpr int next = begin<K + 1>;
      if constexpr (kind<next> == step_kind::restore)
        return on<next>(sample, channel) ||
               (on<next - 1>(sample, channel) && follower_uses_moments<next - 1>(sample, channel));
      else
        return uses_moments<next>(sample, channel);
    }
  }
  // Tests whether stage K has active operations before its filter.
  template <int K>
  SUTURE_FN static bool changes_before_filter(const parameters_type& sample, std::int32_t channel) {
    return any_on<begin<K>, filter<K>>(sample, channel);
  }
  // Tests whether stage K, or any stage, changes this channel.
  template <int K>
  SUTURE_FN static bool changes_at(const parameters_type& sample, std::int32_t channel) {
    return any_on<begin<K>, end<K>>(sample, channel);
  }
  SUTURE_FN static bool changes(const parameters_type& sample, std::int32_t channel) {
    return any_on<0, conversion>(sample, channel);
  }
  // Tests whether stage K, which is active, finishes this channel: it then stores elements, as no later stage changes
  // them. After a filter of k-space the last stage does so.
  template <int K>
  SUTURE_FN static bool finishes(const parameters_type& sample, std::int32_t channel) {
    if constexpr (K + 1 == count) {
      return true;
    } else {
      if constexpr (spectral_filter<filter_t<K>>)
        if (on<filter<K>>(sample, channel)) return false;
      return !any_on<end<K>, conversion>(sample, channel);
    }
  }
  // Tests whether this channel is finished before stage K, which changes nothing.
  template <int K>
  SUTURE_FN static bool finished_before(const parameters_type& sample, const staged_tensor& t, std::int32_t channel) {
    if constexpr (K == 0) {
      return t.finished != 0;
    } else {
      if (changes_at<K - 1>(sample, channel)) return finishes<K - 1>(sample, channel);
      return finished_before<K - 1>(sample, t, channel);
    }
  }
  // Tests whether stage K leaves this channel unchanged in its buffer.
  template <int K>
  SUTURE_FN static bool idle(const parameters_type& sample, const staged_tensor& t, std::int32_t channel) {
    if constexpr (K + 1 == count)
      return !any_on<begin<K>, conversion>(sample, channel) && finished_before<K>(sample, t, channel);
    else
      return !emits<K>(sample, channel) && !changes_at<K>(sample, channel);
  }

  // Converts a finished value to an element of the output.
  template <class Out>
  SUTURE_FN static Out element(const parameters_type& sample, float v) {
    if constexpr (conversion < Pipeline::schedule.step_count)
      return stored<Out>(functor<conversion>(sample)(v));
    else
      return stored<Out>(v);
  }

  // The moments before statistic S.
  template <int S>
  SUTURE_FN static moments moments_before(const parameters_type& sample, const staged_tensor& t, std::int32_t channel) {
    constexpr int k = stage_of<S>;
    if constexpr (begin<k> == S) {
      return t.statistics[(k - 1) * t.channels + channel];
    } else {
      static_assert(kind<S - 1> == step_kind::restore);
      const moments before = moments_before<S - 2>(sample, t, channel);
      if (!on<S - 2>(sample, channel)) return before;
      return functor<S - 2>(sample).restored(before, t.statistics[(k - 1) * t.channels + channel], channel);
    }
  }

  // Returns a copy of a value functor, or of that of its channel; for a large one, a pointer to it.
  template <class F, class Slot>
  SUTURE_FN static auto carried(const F& f, const Slot& slot, bool active, std::int32_t channel) {
    if constexpr (functor_by_channel<F>) {
      const auto& own = f.channel[channel].functor;
      return carried(own, switched<std::remove_cvref_t<decltype(own)>>{own, active ? 1u : 0u}, active, channel);
    } else if constexpr (sizeof(F) > most_carried) {
      return switched<distant<F>>{{&f}, active ? 1u : 0u};
    } else {
      return slot;
    }
  }

  // Step S as a functor of one value.
  template <int S>
  SUTURE_FN static auto bound(const parameters_type& sample, const staged_tensor& t, std::int32_t channel) {
    constexpr step_kind what = kind<S>;
    if constexpr (what == step_kind::value) {
      return carried(functor<S>(sample), slot<S>(sample), on<S>(sample, channel), channel);
    } else if constexpr (what == step_kind::statistic) {
      using with_moments = decltype(functor<S>(sample).with(moments{}, 0));
      if (!on<S>(sample, channel)) return switched<with_moments>{};
      return switched<with_moments>{functor<S>(sample).with(moments_before<S>(sample, t, channel), channel), 1u};
    } else {
      using restoring = decltype(functor<S>(sample).restoring(moments{}, moments{}, 0));
      if (!on<S>(sample, channel)) return switched<restoring>{};
      const moments& after = t.statistics[(stage_of<S> - 1) * t.channels + channel];
      return switched<restoring>{
          functor<S>(sample).restoring(moments_before<S - 1>(sample, t, channel), after, channel), 1u};
    }
  }
  template <int Begin, std::size_t... I>
  SUTURE_FN static auto bound_steps(const parameters_type& sample, const staged_tensor& t, std::int32_t channel,
                                    std::index_sequence<I...>) {
    using bound_pack = pack<decltype(bound<Begin + static_cast<int>(I)>(sample, t, channel))...>;
    return bound_pack{{{bound<Begin + static_cast<int>(I)>(sample, t, channel)}...}};
  }
  // Returns the value operations that stage K applies to the voxels it reads, and those it applies to the result of its
  // filter.
  template <int K>
  SUTURE_FN static auto before_filter(const parameters_type& sample, const staged_tensor& t, std::int32_t channel) {
    constexpr int last = filters<K> ? filter<K> : begin<K>;
    return bound_steps<begin<K>>(sample, t, channel,
                                 std::make_index_sequence<static_cast<std::size_t>(last - begin<K>)>{});
  }
  template <int K>
  SUTURE_FN static auto after_filter(const parameters_type& sample, const staged_tensor& t, std::int32_t channel) {
    constexpr int first = filters<K> ? filter<K> + 1 : begin<K>;
    return bound_steps<first>(sample, t, channel, std::make_index_sequence<static_cast<std::size_t>(end<K> - first)>{});
  }
};

SUTURE_FN std::int64_t dense_offset(const std::int32_t (&n)[3], std::int32_t channel, std::int32_t z, std::int32_t y,
                                    std::int32_t x) {
  return ((static_cast<std::int64_t>(channel) * n[0] + z) * n[1] + y) * n[2] + x;
}

// Reads the voxels of a channel for the filter of a stage, and applies the operations of the stage before the filter.
template <class Functors>
struct filter_input {
  Functors functors;
  const float* from;  // voxel (0, 0, 0) of the channel
  const std::int32_t (&extents)[3];
  std::int32_t sample_index, channel;
  std::uint8_t loops = lanes_along_x;  // an order of voxel_of_walk, that of z, y, x and the extents

  SUTURE_FN float operator()(std::int32_t z, std::int32_t y, std::int32_t x) const {
    return applied(from[dense_offset(extents, 0, z, y, x)], z, y, x);
  }
  // Applies these operations to a value that has been read.
  SUTURE_FN float applied(float value, std::int32_t z, std::int32_t y, std::int32_t x) const {
    return apply(functors, value, voxel_of_walk(extents, loops, {sample_index, channel, z, y, x}));
  }
};

// A separable filter at one voxel. The executors share these sums between voxels.
template <class F, class Read>
SUTURE_FN float filtered(const F& filter, const Read& read, const std::int32_t (&n)[3], std::int32_t z, std::int32_t y,
                         std::int32_t x, std::int32_t channel) {
  float w[3][2 * largest_radius + 1];
  std::int32_t r[3];
  for (int k = 0; k < 3; ++k) {
    r[k] = filter.radius(k, channel);
    filter.weights_along(k, channel, w[k]);
  }
  float volume = 0;
  for (std::int32_t a = -r[0]; a <= r[0]; ++a) {
    const std::int32_t iz = filter.index(z + a, n[0]);
    float plane = 0;
    for (std::int32_t b = -r[1]; iz >= 0 && b <= r[1]; ++b) {
      const std::int32_t iy = filter.index(y + b, n[1]);
      float row = 0;
      for (std::int32_t c = -r[2]; iy >= 0 && c <= r[2]; ++c) {
        const std::int32_t ix = filter.index(x + c, n[2]);
        if (ix >= 0) row = fma(w[2][c + r[2]], read(iz, iy, ix), row);
      }
      if (iy >= 0) plane = fma(w[1][b + r[1]], row, plane);
    }
    if (iz >= 0) volume = fma(w[0][a + r[0]], plane, volume);
  }
  return volume;
}

// Blends the sums around a voxel with the voxel itself, center().
template <class F, class Center>
SUTURE_FN float blended(const F& filter, const Center& center, float sums, std::int32_t channel) {
  if constexpr (blending_filter<F>)
    return filter.blend(center(), sums, channel);
  else
    return sums;
}

// A pair filter at one voxel: tap(a, b, c) is the first voxel of the pair along z, or for a = 1 the second, and
// likewise along y and x.
template <class Tap>
SUTURE_FN float interpolated(const Tap& tap, float z, float y, float x) {
  float planes[2];
  SUTURE_UNROLL
  for (int a = 0; a < 2; ++a) {
    const float first = detail::lerp(tap(a, 0, 0), tap(a, 0, 1), x);
    const float second = detail::lerp(tap(a, 1, 0), tap(a, 1, 1), x);
    planes[a] = detail::lerp(first, second, y);
  }
  return detail::lerp(planes[0], planes[1], z);
}
template <class Read>
SUTURE_FN float interpolated(const Read& read, const voxel_pair& z, const voxel_pair& y, const voxel_pair& x) {
  const auto tap = [&](int a, int b, int c) {
    return read(a == 0 ? z.first : z.second, b == 0 ? y.first : y.second, c == 0 ? x.first : x.second);
  };
  return interpolated(tap, z.t, y.t, x.t);
}

// The value of stage K at one voxel. Only the last stage is evaluated here, and it never has a filter of k-space.
template <int K, class Pipeline>
SUTURE_FN auto stage_value(const sample_parameters<Pipeline>& sample, const staged_tensor& t, const voxel_index& at) {
  const std::int32_t channel = at.channel, z = at.z, y = at.y, x = at.x;
  using S = staging<Pipeline>;
  const auto functors = S::template before_filter<K>(sample, t, channel);
  const filter_input<std::remove_const_t<decltype(functors)>> read{
      functors, t.data[S::template side<K>(sample, channel)] + dense_offset(sample.extents, channel, 0, 0, 0),
      sample.extents, at.sample, channel};
  float v;
  if constexpr (S::template filters<K>) {
    constexpr int f = S::template filter<K>;
    const auto& filter = S::template functor<f>(sample);
    if (!S::template on<f>(sample, channel))
      v = read(z, y, x);
    else if constexpr (separable_filter<typename S::template filter_t<K>>)
      v = blended(
          filter, [&] { return read(z, y, x); }, filtered(filter, read, sample.extents, z, y, x, channel), channel);
    else if constexpr (spectral_filter<typename S::template filter_t<K>>)
      v = read(z, y, x);
    else if constexpr (pair_filter<typename S::template filter_t<K>>)
      v = interpolated(read, filter.pair_at(0, z, sample.extents[0], channel),
                       filter.pair_at(1, y, sample.extents[1], channel),
                       filter.pair_at(2, x, sample.extents[2], channel));
    else
      v = filter(read, sample.extents, z, y, x, channel);
  } else {
    v = read(z, y, x);
  }
  return apply(S::template after_filter<K>(sample, t, channel), v, voxel_at(sample.extents, at));
}

}  // namespace detail
}  // namespace suture
SUTURE_ALLOW_HOST_CALLS
