// SPDX-License-Identifier: Apache-2.0
// The fingerprint of a cohort: intensities of the foreground, spacings and shapes of all cases, which nnU-Net's
// planning uses.
#pragma once

#include <string>

#include "../ops/value/ct_normalize.hpp"
#include "percentiles.hpp"

namespace suture {

// Counts of each value, sorted by value: the mergeable state of statistics over many volumes, small for stored
// integers. Values are finite floats, -0 counts as 0.
class value_counts {
public:
  struct entry {
    float value;
    std::uint64_t count;
    bool operator==(const entry&) const = default;
  };

  value_counts() = default;
  // Errors: values that are not finite or do not increase, a count of 0, more than 2^40 voxels.
  explicit value_counts(std::vector<entry> entries) : entries_(std::move(entries)) {
    const site where{"value_counts"};
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const entry& e = entries_[i];
      require(std::isfinite(e.value), where, "value ", e.value, " must be finite");
      require(i == 0 || entries_[i - 1].value < e.value, where, "value ", e.value, " does not increase");
      require(e.count > 0 && e.count <= most && total <= most - e.count, where, "count ", e.count, " of value ",
              e.value, " must be positive, and all counts at most 2^40");
      total += e.count;
    }
  }
  template <class T>
  explicit value_counts(const histogram<T>& h) {
    for (std::int64_t i = 0; i < histogram<T>::bins; ++i)
      if (const std::uint64_t n = h.counts()[static_cast<std::size_t>(i)]; n != 0)
        entries_.push_back({static_cast<float>(i + histogram<T>::least), n});
  }
  // Counts the selected finite voxels of one channel. int32 is refused: float does not hold all its values.
  template <class T, class Selection>
  static value_counts of(const cpu& exec, const view<const T>& image, const Selection& selection,
                         std::int64_t channel = 0, std::size_t sample = 0) {
    static_assert(!std::is_same_v<T, std::int32_t>, "suture: value_counts takes no int32; float does not hold it");
    if constexpr (counted<T>::by_histogram) {
      histogram<T> h;
      h.add(exec, image, selection, channel, sample);
      return value_counts(h);
    } else {
      require(channel >= 0, {"value_counts"}, "channel ", channel, " of ", image.channels);
      collector<T> all;
      detail::reduce_rows(exec, "value_counts", image, selection, sample, channel, collector<T>{}, all);
      std::sort(all.values.begin(), all.values.end());
      value_counts c;
      for (const float v : all.values) {
        if (c.entries_.empty() || c.entries_.back().value < v) c.entries_.push_back({v, 0});
        ++c.entries_.back().count;
      }
      return c;
    }
  }

  std::span<const entry> entries() const { return entries_; }
  std::uint64_t total() const {
    std::uint64_t n = 0;
    for (const entry& e : entries_) n += e.count;
    return n;
  }

  void merge(const value_counts& other) {
    require(total() <= most - other.total(), {"value_counts"}, "more than 2^40 voxels");
    std::vector<entry> both;
    both.reserve(entries_.size() + other.entries_.size());
    auto a = entries_.begin();
    auto b = other.entries_.begin();
    while (a != entries_.end() || b != other.entries_.end()) {
      if (b == other.entries_.end() || (a != entries_.end() && a->value < b->value))
        both.push_back(*a++);
      else if (a == entries_.end() || b->value < a->value)
        both.push_back(*b++);
      else
        both.push_back({a->value, a++->count + b++->count});
    }
    entries_ = std::move(both);
  }

  suture::moments moments(std::int32_t ddof = 0) const {
    exact_sums sums;
    for (const entry& e : entries_) {
      const std::uint32_t magnitude = float_bits(e.value) & 0x7fffffffu, exponent = magnitude >> 23;
      const std::uint64_t mantissa = (magnitude & 0x7fffffu) | (exponent != 0 ? 0x800000u : 0u);
      const auto place = static_cast<std::int32_t>(exponent != 0 ? exponent - 1 : 0u);
      const int128 amount = static_cast<int128>(mantissa) * static_cast<int128>(e.count) << (place & 31);
      const uint128 squares = static_cast<uint128>(mantissa * mantissa) * e.count << (2 * place & 31);
      sums.add(e.value < 0 ? -amount : amount, place >> 5, squares, 2 * place >> 5);
      sums.propagate_carries();
    }
    const double least = entries_.empty() ? 0 : static_cast<double>(entries_.front().value);
    const double greatest = entries_.empty() ? 0 : static_cast<double>(entries_.back().value);
    return detail::make_moments(sums, {total(), 0, 0}, least, greatest, false, ddof);
  }

  template <int N>
  suture::percentiles<N> percentiles(const double (&q)[N]) const {
    return detail::percentiles_of_ranked(q, {total(), 0, 0}, [&](std::uint64_t rank) { return ranked(rank); });
  }

  bool operator==(const value_counts&) const = default;

private:
  static constexpr std::uint64_t most = std::uint64_t{1} << 40;

  template <class T>
  struct collector {
    std::vector<float> values;

    template <class Map, class Selector>
    void row(const detail::voxel_row<T, Map>& r, const Selector& select) {
      fit_tally unused;
      r.visit_values(select, unused, [&](T value) { values.push_back(storage<T>::load(value) + 0.0f); });
    }
    void merge(const collector& other) { values.insert(values.end(), other.values.begin(), other.values.end()); }
  };

  double ranked(std::uint64_t rank) const {
    std::size_t i = 0;
    while (rank >= entries_[i].count) rank -= entries_[i++].count;
    return static_cast<double>(entries_[i].value);
  }

  std::vector<entry> entries_;
};

// nnU-Net's statistics of the foreground of one channel over a cohort, in the units of the images: mean, standard
// deviation (ddof 0), median, minimum, maximum, percentiles 0.5 and 99.5 (linear). Without foreground: 0, deviation 1,
// status empty.
struct intensity_properties {
  double mean = 0, standard_deviation = 1, median = 0, minimum = 0, maximum = 0;
  double percentile_00_5 = 0, percentile_99_5 = 0;
  std::uint64_t count = 0;
  fit_status status = fit_status::empty;
  bool operator==(const intensity_properties&) const = default;
};

// One case, after cropping: extents in voxels, spacing in millimeters, both (z, y, x).
struct case_geometry {
  std::string name;
  extent3 shape;
  point3 spacing;
  bool operator==(const case_geometry&) const = default;
};

// The fingerprint as a value: cases are added one at a time and partial cohorts merge; the result does not depend on
// how or in which order the cases were divided. nnU-Net draws 10^7 / cases voxels of each case with replacement; here
// every foreground voxel of every case counts, so there is no seed. Source: nnU-Net DatasetFingerprintExtractor.
class cohort_fingerprint {
public:
  cohort_fingerprint() = default;

  // Adds a case by its cropped image and label map. `foreground` holds the labels whose voxels count. Errors: those of
  // the views, a name that is already there, another number of channels than the cohort's.
  template <class T, class Label>
  void add(const cpu& exec, std::string case_name, const view<T>& image, const view<Label>& label_map,
           const label_set& foreground = label_set::foreground()) {
    const view<const std::remove_const_t<T>> seen = image;
    const auto selection = labeled(label_map, foreground);
    std::vector<value_counts> counts;
    for (std::int64_t c = 0; c < seen.channels; ++c) counts.push_back(value_counts::of(exec, seen, selection, c));
    add({std::move(case_name), seen.grid.extents, seen.grid.spacing}, std::move(counts));
  }
  // Adds a case by the counts of its foreground, one for each channel.
  void add(case_geometry geometry, std::vector<value_counts> counts) {
    const site where{"cohort_fingerprint"};
    require(!counts.empty(), where, "case ", geometry.name, " has no channels");
    for (int k = 0; k < 3; ++k) {
      require(geometry.shape[k] > 0, where, "case ", geometry.name, " has shape ", geometry.shape);
      require(std::isfinite(geometry.spacing[k]) && geometry.spacing[k] > 0, where, "case ", geometry.name,
              " has spacing ", geometry.spacing);
    }
    cohort_fingerprint one;
    one.cases_.push_back(std::move(geometry));
    one.counts_ = std::move(counts);
    merge(one);
  }
  // Rebuilds a fingerprint from the results of cases() and counts(), for example after reading a file.
  static cohort_fingerprint from(std::vector<case_geometry> cases, std::vector<value_counts> counts) {
    const std::vector<value_counts> none(counts.size());
    cohort_fingerprint f;
    require(!cases.empty() || counts.empty(), {"cohort_fingerprint"}, "counts without cases");
    for (case_geometry& c : cases) f.add(std::move(c), none);
    f.counts_ = std::move(counts);
    return f;
  }

  // Adds the cases of another fingerprint. Errors: a case in both, different numbers of channels.
  void merge(const cohort_fingerprint& other) {
    const site where{"cohort_fingerprint"};
    if (other.cases_.empty()) return;
    if (cases_.empty()) counts_.resize(other.counts_.size());
    require(other.counts_.size() == counts_.size(), where, "case ", other.cases_.front().name, " has ",
            other.counts_.size(), " channels, the cohort ", counts_.size());
    const auto by_name = [](const case_geometry& a, const case_geometry& b) { return a.name < b.name; };
    std::vector<case_geometry> all;
    std::merge(cases_.begin(), cases_.end(), other.cases_.begin(), other.cases_.end(), std::back_inserter(all),
               by_name);
    for (std::size_t i = 1; i < all.size(); ++i)
      require(all[i - 1].name != all[i].name, where, "case ", all[i].name, " is there already");
    std::vector<value_counts> merged = counts_;
    for (std::size_t c = 0; c < merged.size(); ++c) merged[c].merge(other.counts_[c]);
    cases_ = std::move(all);
    counts_ = std::move(merged);
  }

  std::span<const case_geometry> cases() const { return cases_; }   // sorted by name
  std::span<const value_counts> counts() const { return counts_; }  // by channel
  std::size_t channels() const { return counts_.size(); }

  intensity_properties intensities(std::size_t channel) const {
    require(channel < channels(), {"cohort_fingerprint"}, "channel ", channel, " of ", channels());
    const moments m = counts_[channel].moments();
    const auto p = counts_[channel].percentiles({.5, 50, 99.5});
    return {m.mean,     m.standard_deviation, p.value[1],    m.minimum, m.maximum,
            p.value[0], p.value[2],           m.tally.count, m.status};
  }
  // Returns nnU-Net's normalization of CT by this cohort. Errors: a channel without foreground.
  ct_normalize normalization(std::size_t channel) const {
    const intensity_properties p = intensities(channel);
    require(p.status != fit_status::empty, {"cohort_fingerprint"}, "channel ", channel, " has no foreground");
    return {.lower = static_cast<float>(p.percentile_00_5),
            .upper = static_cast<float>(p.percentile_99_5),
            .mean = static_cast<float>(p.mean),
            .standard_deviation = static_cast<float>(p.standard_deviation)};
  }
  // Medians over the cases, axis by axis; {0, 0, 0} without cases.
  point3 median_spacing() const {
    return median([](const case_geometry& c) { return c.spacing; });
  }
  point3 median_shape() const {
    return median([](const case_geometry& c) { return vec_cast<double>(c.shape); });
  }

  bool operator==(const cohort_fingerprint&) const = default;

private:
  template <class Property>
  point3 median(const Property& of) const {
    point3 result{0, 0, 0};
    if (cases_.empty()) return result;
    for (int k = 0; k < 3; ++k) {
      std::vector<double> values;
      for (const case_geometry& c : cases_) values.push_back(of(c)[k]);
      std::sort(values.begin(), values.end());
      result[k] = 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
    }
    return result;
  }

  std::vector<case_geometry> cases_;
  std::vector<value_counts> counts_;
};

}  // namespace suture
