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

template <class T>
struct bin_counts {
  equal_bins bins;
  std::uint64_t counts[equal_bins::count] = {};

  template <class Map, class Selector>
  void row(const T* values, std::int64_t stride, const Map* map, std::int64_t map_stride, std::int64_t count,
           const Selector& select) {
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

}  // namespace detail

// The threshold t that parts the selected voxels into {<= t} and {> t} with the largest variance between the classes,
// n1 n2 (m1 - m2)^2, the first of equals. By one bin per value for 8- and 16-bit integers; otherwise by 256 bins
// between minimum and maximum, t being the center of a bin. Per sample and channel, or per sample where `pooled`. In
// the units of the image. Errors: rule opencv for an image that is not of 8- or 16-bit integers; those of the views.
// Source: Otsu 1979, skimage.filters.threshold_otsu, cv::threshold.
struct fit_otsu {
  otsu_rule rule = otsu_rule::scikit_image;
  bool pooled = false;

  static constexpr std::string_view name = "fit_otsu";
  using result = threshold;

  void check() const {}
  template <class T>
  void check_type() const {
    require((counted<T>::by_histogram && std::is_unsigned_v<T>) || rule == otsu_rule::scikit_image, {name},
            "rule opencv is not defined for ", storage_name<T>());
  }
  template <class T>
  using state = histogram<T>;
};

// Runs the fit on the CPU; `fit` finds this overload by the type of the fit.
template <class T, class Selection>
void fit_on_cpu(const cpu& exec, const fit_otsu& how, std::span<const view<const T>> images, const Selection& selection,
                std::span<threshold> results) {
  how.check_type<T>();
  if constexpr (counted<T>::by_histogram) {
    detail::fit_in_one_pass(exec, how, images, selection, results,
                            [&](const auto& state) { return state.otsu(how.rule); });
  } else {
    detail::check_fit(fit_otsu::name, images, selection, how.pooled, results.size());
    detail::for_each_group(
        images, how.pooled, [&](std::size_t i, std::int64_t first, std::int64_t end, std::size_t group) {
          moment_sums<T> extremes;
          extremes.add(exec, images[i], selection, how.pooled ? -1 : first, i);
          threshold t;
          t.tally = extremes.tally;
          if (t.tally.count != 0) {
            const double low = counted<T>::value_of(extremes.least), high = counted<T>::value_of(extremes.greatest);
            t.status = low < high ? fit_status::ok : fit_status::constant;
            t.value = low;
            if (low < high) {
              detail::bin_counts<T> total{detail::equal_bins::between(low, high)};
              detail::gather(exec, images[i], selection, i, first, end, detail::bin_counts<T>{total.bins}, total);
              std::int64_t sum = 0;
              for (int b = 0; b < detail::equal_bins::count; ++b) sum += b * static_cast<std::int64_t>(total.counts[b]);
              const auto bin = detail::otsu_bin([&](std::int64_t b) { return total.counts[b]; }, 0,
                                                detail::equal_bins::count - 1, t.tally.count, sum, how.rule);
              t.value = total.bins.center(static_cast<int>(bin));
            }
          }
          results[group] = t;
        });
  }
}

}  // namespace suture
