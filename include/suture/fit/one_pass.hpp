// SPDX-License-Identifier: Apache-2.0
// Custom fits that read every selected voxel once.
#pragma once

#include <concepts>
#include <string_view>

#include "moments.hpp"

namespace suture {

namespace detail {
template <class Fit>
concept has_partial = requires {
  typename Fit::partial;
};
}  // namespace detail

// A fit is a plain aggregate with
//   name      what error messages call it
//   pooled    false: one result per sample and channel; true: one per sample
//   check()   const, throws for a wrong parameter
//   partial   a trivially copyable type that holds counts; value-initialized it has counted nothing
//     add(settings, value)  counts one voxel; value is of the element type T of the images, `settings` the fit
//     merge(other)      adds the counts of another partial
//   result    the type of the result of one group
//   finish(partial, tally)   const, returns the result; the tally holds how many voxels were counted, and how many were
//             left out because they are NaN or infinite
// add, merge and finish are marked SUTURE_FN. Voxels come in any order, divided in any way. So that the bits depend on
// neither, keep integers, or the least and greatest of something, never sums of floats. fit(executor, settings, images,
// selection, results) runs it, on a device with fit/one_pass.cuh.
template <class Fit, class T>
concept one_pass_fit = detail::has_partial<Fit> && std::is_trivially_copyable_v<typename Fit::partial> &&
    requires(const Fit& settings, typename Fit::partial& p, const typename Fit::partial& other, T value,
             fit_tally tally) {
  { Fit::name } -> std::convertible_to<std::string_view>;
  { settings.pooled } -> std::convertible_to<bool>;
  settings.check();
  p.add(settings, value);
  p.merge(other);
  { settings.finish(other, tally) } -> std::same_as<typename Fit::result>;
};

namespace detail {

// Counts of one thread.
template <class Fit>
struct one_pass_state {
  typename Fit::partial partial{};
  fit_tally tally{};

  SUTURE_FN void merge(const one_pass_state& other) {
    partial.merge(other.partial);
    tally.merge(other.tally);
  }
};

template <class Fit, class T>
struct one_pass_rows {
  const Fit* settings;
  one_pass_state<Fit> state{};

  template <class Selection>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection, std::int64_t channel,
           std::size_t sample) {
    reduce_rows(exec, Fit::name, image, selection, sample, channel, one_pass_rows{settings}, *this);
  }
  template <class Map, class Selector>
  void row(const voxel_row<T, Map>& r, const Selector& select) {
    r.visit_values(select, state.tally, [&](T value) { state.partial.add(*settings, value); });
  }
  void merge(const one_pass_rows& other) { state.merge(other.state); }
};

template <class Fit, class T>
constexpr void check_one_pass() {
  static_assert(
      one_pass_fit<Fit, T>,
      "suture: a fit with a `partial` has name, pooled, check(), partial::add(settings, value), partial::merge(other) "
      "and finish(partial, tally); see suture/fit/one_pass.hpp");
}

}  // namespace detail

// Runs the fit on the CPU; `fit` finds this overload by the type of the fit.
template <class T, class Fit, class Selection>
requires(detail::has_partial<Fit>) void fit_on_cpu(const cpu& exec, const Fit& settings,
                                                   std::span<const view<const T>> images, const Selection& selection,
                                                   std::span<typename Fit::result> results) {
  detail::check_one_pass<Fit, T>();
  using rows = detail::one_pass_rows<Fit, T>;
  detail::fit_each_group(
      exec, settings, images, selection, results, [&] { return rows{&settings}; },
      [&](const rows& all) { return settings.finish(all.state.partial, all.state.tally); });
}

}  // namespace suture
