// SPDX-License-Identifier: Apache-2.0
// Otsu's threshold.
#pragma once

#include "moments.hpp"

namespace suture {

namespace detail {

// 256 bins of equal width between two values, edges in double; the last bin holds its upper edge, as numpy.histogram.
struct equal_bins {
  static constexpr int count = 256;
  double low, high, step, per_step;

  SUTURE_HD static equal_bins between(double low, double high) {
    const double step = (high - low) * (1.0 / count);
    return {low, high, step, math::detail::divide(1.0, step)};
  }
  SUTURE_FN double edge(int i) const { return i == count ? high : fma(static_cast<double>(i), step, low); }
  SUTURE_FN int bin(double x) const {
    const double place = (x - low) * per_step;
    int i = place < count ? static_cast<int>(place) : count - 1;
    if (i > 0 && x < edge(i))
      --i;
    else if (i + 1 < count && x >= edge(i + 1))
      ++i;
    return i;
  }
  SUTURE_FN double center(int i) const { return 0.5 * (edge(i) + edge(i + 1)); }
};

// Counts of the values in 256 bins of equal width.
template <class T>
struct bin_counts {
  equal_bins bins{};
  std::uint64_t counts[equal_bins::count] = {};

  // The loop is a function of its own: inlined into the loop over rows it is a fifth slower.
  template <class Map, class Selector>
  SUTURE_NOINLINE void row(const voxel_row<T, Map>& r, const Selector& select) {
    const auto [values, stride, map, map_stride, count] = r;
    for (std::int64_t x = 0; x < count; ++x) {
      const T value = values[x * stride];
      if (select(value, map[x * map_stride]) != verdict::selected || !counted<T>::finite(value)) continue;
      ++counts[bins.bin(counted<T>::value_of(counted<T>::key(value)))];
    }
  }
  void merge(const bin_counts& other) {
    for (int i = 0; i < equal_bins::count; ++i) counts[i] += other.counts[i];
  }
};

// Tests whether the bins between the extremes have a width.
template <class T>
SUTURE_FN bool has_range(const moment_sums<T>& extremes) {
  return extremes.tally.count != 0 && ~extremes.least_complement != extremes.greatest;
}
template <class T>
SUTURE_FN equal_bins bins_between(const moment_sums<T>& extremes) {
  return equal_bins::between(extremes.minimum(), extremes.maximum());
}

// The threshold at a bin between the extremes, or the value itself if there is only one.
template <class T>
SUTURE_HD threshold threshold_of_bin(const moment_sums<T>& extremes, std::int32_t bin) {
  threshold t;
  t.tally = extremes.tally;
  if (t.tally.count == 0) return t;
  t.status = has_range(extremes) ? fit_status::ok : fit_status::constant;
  t.value = has_range(extremes) ? bins_between(extremes).center(bin) : extremes.minimum();
  return t;
}

// State for values without a histogram: the threshold comes from bins between their extremes.
template <class T>
class binned_otsu {
public:
  template <class Selection>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection, std::int64_t channel,
           std::size_t sample) {
    moment_sums<T> extremes;
    extremes.add(exec, image, selection, channel, sample);
    std::int32_t bin = 0;
    if (has_range(extremes)) {
      const bin_counts<T> zero{bins_between(extremes)};
      bin_counts<T> all = zero;
      reduce_rows(exec, "otsu", image, selection, sample, channel, zero, all);
      bin = otsu_bin(all.counts, extremes.tally.count, otsu_rule::scikit_image);
    }
    found_ = threshold_of_bin(extremes, bin);
  }
  threshold otsu(otsu_rule) const { return found_; }

private:
  threshold found_;
};

}  // namespace detail

// The threshold t that parts the selected voxels into {<= t} and {> t} with the largest variance between the classes,
// n1 n2 (m1 - m2)^2, the first of equals. By one bin per value for 8- and 16-bit integers; otherwise by 256 bins
// between minimum and maximum, t being the center of a bin. Per sample and channel, or per sample where `pooled`. In
// the units of the image. Errors: rule opencv for an image that is neither uint8 nor uint16; those of the views.
// Source: Otsu 1979, skimage.filters.threshold_otsu, cv::threshold.
struct fit_otsu {
  otsu_rule rule = otsu_rule::scikit_image;
  bool pooled = false;

  static constexpr std::string_view name = "fit_otsu";
  static constexpr auto parameters = named("rule", &fit_otsu::rule, "pooled", &fit_otsu::pooled);
  using result = threshold;

  void check() const {}
  template <class T>
  void check_type() const {
    require((counted<T>::by_histogram && std::is_unsigned_v<T>) || rule == otsu_rule::scikit_image, {name},
            "rule opencv is not defined for ", storage_name<T>());
  }
  template <class T>
  using state = std::conditional_t<counted<T>::by_histogram, histogram<T>, detail::binned_otsu<T>>;
  template <class State>
  threshold finish(const State& counted) const {
    return counted.otsu(rule);
  }
};

}  // namespace suture
