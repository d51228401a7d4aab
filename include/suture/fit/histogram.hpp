// SPDX-License-Identifier: Apache-2.0
// The histogram of an 8- or 16-bit image, with one bin per value: its statistics follow exactly.
#pragma once

#include <vector>

#include "../stats/statistics.hpp"
#include "value_counter.hpp"

namespace suture {

// Rule that chooses the threshold of Otsu (1979); both take the first of equal maxima.
//   scikit_image  skimage.filters.threshold_otsu: integers by one bin per value; floats by 256 bins between minimum and
//                 maximum, the threshold being the center of a bin
//   opencv        cv::threshold with THRESH_OTSU, uint8 and uint16 alone: splits that leave a class less than
//                 FLT_EPSILON of the voxels are not looked at, and 0 is the answer where none is left
enum class otsu_rule { scikit_image, opencv };

namespace detail {

// A split after a bin, and its score.
struct otsu_split {
  double score;
  std::int32_t bin;

  // The result if no split is better.
  SUTURE_FN static otsu_split none(otsu_rule rule, std::int32_t first) {
    return rule == otsu_rule::opencv ? otsu_split{0, 0} : otsu_split{-1, first};
  }
  SUTURE_FN void keep_better(const otsu_split& other) {
    if (other.score > score) *this = other;
  }
};

// Scans the splits of `count` values that sum to `sum`, in bins, in ascending order.
struct otsu_scan {
  otsu_rule rule;
  std::uint64_t count;
  std::int64_t sum;
  std::uint64_t below = 0;
  std::int64_t sum_below = 0;

  SUTURE_FN void pass(std::int32_t bin, std::uint64_t here, otsu_split& best) {
    below += here;
    sum_below += bin * static_cast<std::int64_t>(here);
    const std::uint64_t fewer = below < count - below ? below : count - below;
    if (fewer == 0 || (rule == otsu_rule::opencv && fewer << 23 < count)) return;
    best.keep_better({otsu_score(below, sum_below, count, sum), bin});
  }
};

// The bin whose upper edge separates the classes best, of bins that hold `count` values, at least one; ties to the
// first.
inline std::int32_t otsu_bin(const std::uint64_t* counts, std::uint64_t count, otsu_rule rule) {
  std::int32_t first = 0;
  while (counts[first] == 0) ++first;
  otsu_scan scan{rule, count, 0};
  std::uint64_t seen = 0;
  for (std::int32_t i = first; seen < count; seen += counts[i++]) scan.sum += i * static_cast<std::int64_t>(counts[i]);
  otsu_split best = otsu_split::none(rule, first);
  for (std::int32_t i = first; scan.below < count; ++i) scan.pass(i, counts[i], best);
  return best.bin;
}

}  // namespace detail

// Result of fit_histogram on either executor: bin i counts the value i + histogram<T>::least.
template <class T>
struct histogram_counts {
  static_assert(counted<T>::by_histogram, "suture: histograms count 8- and 16-bit integers");
  static constexpr int bins = 1 << counted<T>::bits;
  std::uint64_t counts[bins];
  std::uint64_t undeclared;  // voxels under labels outside the declared classes
  std::uint64_t unused[31];  // results of a batch lie 256 bytes apart
};

// Counts of the values of T, one of int8, uint8, int16, uint16. Partial histograms of slabs, devices or ranks merge to
// the bits of one pass; counters are 64-bit.
template <class T>
class histogram {
  static_assert(counted<T>::by_histogram, "suture: histogram counts 8- and 16-bit integers");

public:
  static constexpr std::int64_t bins = std::int64_t{1} << counted<T>::bits;
  static constexpr std::int64_t least = counted<T>::least;  // the value of bin 0

  histogram() : counts_(static_cast<std::size_t>(bins)) {}
  // Makes a histogram from `bins` counters made elsewhere, such as those copied from a device.
  histogram(std::span<const std::uint64_t> counts, std::uint64_t undeclared)
      : counts_(counts.begin(), counts.end()), undeclared_(undeclared) {
    require(counts.size() == static_cast<std::size_t>(bins), {"histogram"}, counts.size(), " counters given, ", bins,
            " needed");
  }

  explicit histogram(const histogram_counts<T>& from) : histogram(from.counts, from.undeclared) {}

  std::span<const std::uint64_t> counts() const { return counts_; }
  std::uint64_t count(T value) const { return counts_[counted<T>::key(value)]; }
  std::uint64_t undeclared() const { return undeclared_; }
  std::uint64_t total() const {
    std::uint64_t n = 0;
    for (const std::uint64_t c : counts_) n += c;
    return n;
  }

  // Counts channel `channel` of an image, or with -1 all of them. `sample` chooses the map of the selection.
  template <class Selection = everything>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection = {}, std::int64_t channel = -1,
           std::size_t sample = 0) {
    const detail::value_counter<T> zero;
    detail::value_counter<T> found;
    if constexpr (Selection::has_map)
      detail::reduce_rows(exec, "histogram", image, selection, sample, channel, zero, found);
    else  // all values; the selection decides which of them count
      detail::reduce_rows(exec, "histogram", image, everything{}, sample, channel, zero, found);
    const auto select = selection.select();
    found.each([&](std::int64_t bin, std::uint64_t n) {
      if constexpr (!Selection::has_map)
        if (select(static_cast<T>(bin + least), detail::no_map{}) != detail::verdict::selected) return;
      counts_[static_cast<std::size_t>(bin)] += n;
    });
    undeclared_ += found.undeclared;
  }

  void merge(const histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    undeclared_ += other.undeclared_;
  }

  suture::moments moments(std::int32_t ddof = 0) const {
    partial_sums p;
    std::int64_t first = bins, last = -1;
    fit_tally tally{0, 0, undeclared_};
    for (std::int64_t i = 0; i < bins; ++i) {
      const std::uint64_t c = counts_[static_cast<std::size_t>(i)];
      if (c == 0) continue;
      const std::int64_t value = i + least;
      tally.count += c;
      p.sum += static_cast<int128>(value) * static_cast<int128>(c);
      p.square += static_cast<uint128>(value * value) * c;
      first = std::min(first, i);
      last = i;
    }
    exact_sums sums;
    sums.add(p);
    sums.propagate_carries();
    return detail::make_moments(sums, tally, static_cast<double>(first + least), static_cast<double>(last + least),
                                true, ddof);
  }

  template <int N>
  suture::percentiles<N> percentiles(const double (&q)[N]) const {
    return detail::percentiles_of_ranked(q, {total(), 0, undeclared_},
                                         [&](std::uint64_t rank) { return ranked(rank); });
  }

  threshold otsu(otsu_rule rule = otsu_rule::scikit_image) const {
    require(std::is_unsigned_v<T> || rule == otsu_rule::scikit_image, {"histogram"}, "rule opencv is not defined for ",
            storage_name<T>());
    threshold t;
    t.tally = {total(), 0, undeclared_};
    if (t.tally.count == 0) return t;
    t.status = ranked(0) < ranked(t.tally.count - 1) ? fit_status::ok : fit_status::constant;
    t.value = static_cast<double>(least + detail::otsu_bin(counts_.data(), t.tally.count, rule));
    return t;
  }

  bool operator==(const histogram&) const = default;

private:
  std::uint64_t at(std::int64_t bin) const { return counts_[static_cast<std::size_t>(bin)]; }
  double ranked(std::uint64_t rank) const {
    std::int64_t bin = 0;
    while (rank >= at(bin)) rank -= at(bin++);
    return static_cast<double>(bin + least);
  }

  std::vector<std::uint64_t> counts_;
  std::uint64_t undeclared_ = 0;
};

}  // namespace suture
