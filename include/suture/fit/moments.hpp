// SPDX-License-Identifier: Apache-2.0
// Mean, standard deviation, minimum and maximum.
#pragma once

#include "histogram.hpp"

namespace suture {

// The mergeable state for types that are not counted value by value: int32, float, half, bfloat16. Exact sums, so that
// any division of the voxels gives the same bits.
template <class T>
class moment_sums {
public:
  exact_sums sums{};
  fit_tally tally{};
  std::uint32_t least = 0xffffffffu, greatest = 0;  // keys

  template <class Selection = everything>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection = {}, std::int64_t channel = -1,
           std::size_t sample = 0) {
    detail::check_sample("moments", image, selection, sample);
    require(channel >= -1 && channel < image.channels, {"moments"}, "channel ", channel, " of ", image.channels);
    detail::gather(exec, image, selection, sample, channel < 0 ? 0 : channel,
                   channel < 0 ? image.channels : channel + 1, moment_sums{}, *this);
  }

  template <class Map, class Selector>
  void row(const T* values, std::int64_t stride, const Map* map, std::int64_t map_stride, std::int64_t count,
           const Selector& select) {
    partial_sums p;
    for (std::int64_t x = 0; x < count; ++x) {
      const T value = values[x * stride];
      if (!detail::takes(tally, select(value, map[x * map_stride]), value)) continue;
      const std::uint32_t key = counted<T>::key(value);
      least = std::min(least, key);
      greatest = std::max(greatest, key);
      detail::add_value(p, value, sums);
    }
    sums.take(p);
    sums.settle();
  }

  void merge(const moment_sums& other) {
    sums.merge(other.sums);
    tally.count += other.tally.count;
    tally.excluded += other.tally.excluded;
    tally.undeclared += other.tally.undeclared;
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
  }

  suture::moments moments(std::int32_t ddof = 0) const {
    return detail::make_moments(sums, tally, counted<T>::value_of(least), counted<T>::value_of(greatest),
                                counted<T>::is_integer, ddof);
  }
};

// mean = sum(x) / n, standard_deviation = sqrt(sum((x - mean)^2) / (n - ddof)), minimum and maximum of the selected
// voxels, per sample and channel, or per sample over all channels where `pooled`. In the units of the image.
// Errors: ddof not 0 or 1; those of the views. Source: numpy.mean and numpy.std; ddof 1 is torch.std.
struct fit_moments {
  std::int32_t ddof = 0;
  bool pooled = false;

  static constexpr std::string_view name = "fit_moments";
  using result = moments;

  void check() const { require(ddof == 0 || ddof == 1, {name}, "ddof ", ddof, " must be 0 or 1"); }

  template <class T>
  using state = std::conditional_t<counted<T>::by_histogram, histogram<T>, moment_sums<T>>;
};

// Every value counted: the state that histogram<T>, value_counts and cohort_fingerprint take up, and so the way from a
// device to statistics over many volumes. For int8, uint8, int16 and uint16. Errors: those of the views.
template <class T>
struct fit_histogram {
  bool pooled = false;

  static constexpr std::string_view name = "fit_histogram";
  using result = histogram_counts<T>;

  void check() const {}

  template <class Stored>
  using state = histogram<Stored>;
};

namespace detail {

// A fit whose state needs one pass over the voxels.
template <class T, class Fit, class Selection, class Finish>
void fit_in_one_pass(const cpu& exec, const Fit& how, std::span<const view<const T>> images, const Selection& selection,
                     std::span<typename Fit::result> results, const Finish& finish) {
  how.check();
  check_fit(Fit::name, images, selection, how.pooled, results.size());
  for_each_group(images, how.pooled, [&](std::size_t i, std::int64_t channel, std::int64_t, std::size_t group) {
    typename Fit::template state<T> state;
    state.add(exec, images[i], selection, how.pooled ? -1 : channel, i);
    results[group] = finish(state);
  });
}

}  // namespace detail

// Runs the fit on the CPU; `fit` finds this overload by the type of the fit.
template <class T, class Selection>
void fit_on_cpu(const cpu& exec, const fit_moments& how, std::span<const view<const T>> images,
                const Selection& selection, std::span<moments> results) {
  detail::fit_in_one_pass(exec, how, images, selection, results,
                          [&](const auto& state) { return state.moments(how.ddof); });
}

template <class T, class Selection>
void fit_on_cpu(const cpu& exec, const fit_histogram<T>& how, std::span<const view<const T>> images,
                const Selection& selection, std::span<histogram_counts<T>> results) {
  detail::fit_in_one_pass(exec, how, images, selection, results, [](const histogram<T>& state) {
    histogram_counts<T> result{};
    std::copy(state.counts().begin(), state.counts().end(), result.counts);
    result.undeclared = state.undeclared();
    return result;
  });
}

// Fits on the CPU: `images` is a view or a range of views, one per sample; the results, one per sample and channel
// (channel fastest) or one per sample where pooled, are written to the caller's memory. The bits do not depend on the
// number of threads or on how the voxels are divided.
template <class Fit, class Images, class Selection>
void fit(const cpu& exec, const Fit& how, const Images& images, const Selection& selection,
         std::span<typename Fit::result> results) {
  if constexpr (detail::require_selection<Selection>()) {
    const auto views = detail::constant_views(images);
    detail::each_fit_pointer(detail::memory_check(exec), Fit::name, std::span(views), selection, results);
    fit_on_cpu(exec, how, std::span(views), selection, results);
  }
}

}  // namespace suture
