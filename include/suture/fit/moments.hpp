// SPDX-License-Identifier: Apache-2.0
// Mean, standard deviation, minimum and maximum.
#pragma once

#include "../base/fields.hpp"
#include "histogram.hpp"

namespace suture {

// The mergeable state for types without a histogram: int32, float, half, bfloat16. Sums are exact, so that any division
// of the voxels gives the same bits. It starts at zero.
template <class T>
class moment_sums {
public:
  exact_sums sums{};
  fit_tally tally{};
  std::uint32_t least_complement = 0, greatest = 0;  // keys

  SUTURE_HD double minimum() const { return counted<T>::value_of(~least_complement); }
  SUTURE_HD double maximum() const { return counted<T>::value_of(greatest); }

  template <class Selection = everything>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection = {}, std::int64_t channel = -1,
           std::size_t sample = 0) {
    detail::reduce_rows(exec, "moments", image, selection, sample, channel, moment_sums{}, *this);
  }

  // The sums of a row, or of a thread of a device, before they are added to shared ones.
  class part {
  public:
    using sums_type = moment_sums;

    SUTURE_FN void add(moment_sums& to, const T* place, std::int64_t, detail::verdict v) {
      const T value = *place;
      if (!detail::tally_value(tally_, v, value)) return;
      const std::uint32_t key = counted<T>::key(value);
      least_complement_ = ~key > least_complement_ ? ~key : least_complement_;
      greatest_ = key > greatest_ ? key : greatest_;
      detail::add_value(sums_, value, to.sums);
    }
    SUTURE_FN void end(moment_sums& to) const {
      to.sums.add(sums_);
      detail::add_tally(to.tally, tally_);
      detail::raise(&to.least_complement, least_complement_);
      detail::raise(&to.greatest, greatest_);
    }

  private:
    partial_sums sums_;
    fit_tally tally_;
    std::uint32_t least_complement_ = 0, greatest_ = 0;
  };

  template <class Map, class Selector>
  void row(const detail::voxel_row<T, Map>& r, const Selector& select) {
    part p;
    r.visit_addresses(select, [&](const T* place, detail::verdict v) { p.add(*this, place, 0, v); });
    p.end(*this);
    propagate_carries();
  }

  SUTURE_HD void propagate_carries() { sums.propagate_carries(); }
  void merge(const moment_sums& other) {
    sums.merge(other.sums);
    tally.merge(other.tally);
    detail::raise(&least_complement, other.least_complement);
    detail::raise(&greatest, other.greatest);
  }

  SUTURE_HD suture::moments moments(std::int32_t ddof = 0) const {
    return detail::make_moments(sums, tally, minimum(), maximum(), counted<T>::is_integer, ddof);
  }
};

// mean = sum(x) / n, standard_deviation = sqrt(sum((x - mean)^2) / (n - ddof)), minimum and maximum of the selected
// voxels, per sample and channel, or per sample over all channels where `pooled`. In the units of the image.
// Errors: ddof not 0 or 1; those of the views. Source: numpy.mean and numpy.std; ddof 1 is torch.std.
struct fit_moments {
  std::int32_t ddof = 0;
  bool pooled = false;

  static constexpr std::string_view name = "fit_moments";
  static constexpr auto parameters = named("ddof", &fit_moments::ddof, "pooled", &fit_moments::pooled);
  using result = moments;

  void check() const { require(ddof == 0 || ddof == 1, {name}, "ddof ", ddof, " must be 0 or 1"); }

  template <class T>
  using state = std::conditional_t<counted<T>::by_histogram, histogram<T>, moment_sums<T>>;
  template <class T>
  result finish(const histogram<T>& counted) const {
    return counted.moments(ddof);
  }
  template <class T>
  SUTURE_HD result finish(const moment_sums<T>& sums) const {
    return sums.moments(ddof);
  }
};

// Counts every value. The result makes a histogram<T>, which makes the value_counts that cohort_fingerprint takes: so
// statistics over many volumes come from a device. For int8, uint8, int16 and uint16. Errors: those of the views.
template <class T>
struct fit_histogram {
  bool pooled = false;

  static constexpr std::string_view name = "fit_histogram";
  static constexpr auto parameters = named("pooled", &fit_histogram::pooled);
  using result = histogram_counts<T>;

  void check() const {}

  template <class Stored>
  using state = histogram<Stored>;
  result finish(const histogram<T>& counted) const {
    result r{};
    std::copy(counted.counts().begin(), counted.counts().end(), r.counts);
    r.undeclared = counted.undeclared();
    return r;
  }
};

// Runs the fit on the CPU; `fit` finds this overload by the type of the fit, which has a state.
template <class T, class Fit, class Selection, class State = typename Fit::template state<T>>
void fit_on_cpu(const cpu& exec, const Fit& settings, std::span<const view<const T>> images, const Selection& selection,
                std::span<typename Fit::result> results) {
  detail::fit_each_group(
      exec, settings, images, selection, results, [] { return State(); },
      [&](const State& counted) { return settings.finish(counted); });
}

// Fits on the CPU: `images` is a view or a range of views, one per sample; the results, one per sample and channel
// (channel fastest) or one per sample where pooled, are written to the caller's memory. The bits do not depend on the
// number of threads or on how the voxels are divided.
template <class Fit, class Images, class Selection>
void fit(const cpu& exec, const Fit& settings, const Images& images, const Selection& selection,
         std::span<typename Fit::result> results) {
  if constexpr (detail::require_selection<Selection>()) {
    const auto views = detail::constant_views(images);
    detail::each_fit_pointer(detail::memory_check(exec), Fit::name, std::span(views), selection, results);
    fit_on_cpu(exec, settings, std::span(views), selection, results);
  }
}

}  // namespace suture
