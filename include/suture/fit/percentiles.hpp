// SPDX-License-Identifier: Apache-2.0
// Exact percentiles: from the histogram of 8- and 16-bit images, by radix selection on order-preserving keys otherwise.
#pragma once

#include "moments.hpp"

namespace suture {

namespace detail {

template <int N>
struct positions {
  static constexpr int size = N;
  double q[N];
};
template <int N>
SUTURE_HD positions<N> positions_of(const double (&q)[N]) {
  positions<N> p;
  for (int k = 0; k < N; ++k) p.q[k] = q[k];
  return p;
}

// State of a search for the keys at the ranks of N percentiles. After rounds 0, 1 and 2 their first 11, 22 and 32 bits
// are known. The next round counts the values that share this prefix with one of them, in a slot for each prefix.
template <int N>
struct search {
  static_assert(N >= 1 && N <= 32, "suture: at most 32 percentiles in one fit");
  static constexpr int ranks = 2 * N + 2;  // two for each percentile, and the first and last of all
  static constexpr int rounds = 3;
  std::uint64_t rank[ranks];    // among the values that share the prefix
  std::uint32_t prefix[ranks];  // the key after the last round
  std::int32_t slot[ranks];
  std::int32_t slots;
  double fraction[N];
  fit_tally tally;
  std::uint8_t first_slot[2048];          // of the first 11 bits; 255: none
  std::uint8_t second_slot[ranks][2048];  // of the next 11, by first slot

  // Sets the state before the first round: thread `first` of `step` threads.
  SUTURE_FN void start(int first, int step) {
    for (int k = first; k < 2048; k += step) {
      first_slot[k] = 255;
      for (int r = 0; r < ranks; ++r) second_slot[r][k] = 255;
    }
    for (int k = first; k < ranks; k += step) {
      rank[k] = 0;
      prefix[k] = 0;
      slot[k] = 0;
    }
    for (int k = first; k < N; k += step) fraction[k] = 0;
    if (first == 0) {
      slots = 1;
      tally = {};
    }
  }

  SUTURE_FN static int digit_bits(int round) { return round < 2 ? 11 : 10; }

  // The counter of a key in this round, or -1.
  SUTURE_FN std::int32_t counter(std::uint32_t key, int round) const {
    if (round == 0) return static_cast<std::int32_t>(key >> 21);
    const std::int32_t s = first_slot[key >> 21];
    if (s == 255) return -1;
    const auto middle = static_cast<std::int32_t>(key >> 10 & 2047u);
    if (round == 1) return s * 2048 + middle;
    const std::int32_t t = second_slot[s][middle];
    return t == 255 ? -1 : t * 2048 + static_cast<std::int32_t>(key & 1023u);
  }

  // Sets the ranks, once the number of values is known.
  SUTURE_HD void set_ranks(const double* q, std::uint64_t count) {
    for (int k = 0; k < N; ++k) {
      const percentile_place place = locate_percentile(q[k], count);
      rank[2 * k] = place.lower;
      rank[2 * k + 1] = place.lower + 1 < count ? place.lower + 1 : count - 1;
      fraction[k] = place.fraction;
    }
    rank[2 * N + 1] = count - 1;
  }
  // Assigns slots to the prefixes found in `round`, for the round after.
  SUTURE_HD void assign_slots(int round) {
    if (round + 1 == rounds) return;
    std::int32_t next[ranks];
    slots = 0;
    for (int r = 0; r < ranks; ++r) {
      int same = 0;
      while (same < r && prefix[same] != prefix[r]) ++same;
      next[r] = same < r ? next[same] : slots++;
      if (round == 0)
        first_slot[prefix[r]] = static_cast<std::uint8_t>(next[r]);
      else
        second_slot[slot[r]][prefix[r] & 2047u] = static_cast<std::uint8_t>(next[r]);
    }
    for (int r = 0; r < ranks; ++r) slot[r] = next[r];
  }
  template <class T>
  SUTURE_HD percentiles<N> finish() const {
    percentiles<N> p;
    p.tally = tally;
    if (tally.count == 0) return p;
    p.status = prefix[2 * N] < prefix[2 * N + 1] ? fit_status::ok : fit_status::constant;
    for (int k = 0; k < N; ++k)
      p.value[k] = interpolate_percentile(counted<T>::value_of(prefix[2 * k]), counted<T>::value_of(prefix[2 * k + 1]),
                                          fraction[k]);
    return p;
  }
};

}  // namespace detail

// A search for N percentiles in three passes over the voxels. In each pass add every part of the voxels, merge searches
// that counted other parts, then advance. Merged parts give the bits of one pass.
template <class T, int N>
class percentile_search {
public:
  explicit percentile_search(const double (&q)[N]) : counts_(2048) {
    for (int k = 0; k < N; ++k) {
      detail::check_percentile(q[k], {"percentiles"});
      q_.q[k] = q[k];
    }
    state_.start(0, 1);
  }

  bool done() const { return round_ == detail::search<N>::rounds; }

  template <class Selection = everything>
  void add(const cpu& exec, const view<const T>& image, const Selection& selection = {}, std::int64_t channel = -1,
           std::size_t sample = 0) {
    require(!done(), {"percentiles"}, "the search is over");
    percentile_search zero = *this;
    std::fill(zero.counts_.begin(), zero.counts_.end(), 0);
    zero.passed_ = {};
    detail::reduce_rows(exec, "percentiles", image, selection, sample, channel, zero, *this);
  }

  template <class Map, class Selector>
  void row(const detail::voxel_row<T, Map>& r, const Selector& select) {
    r.visit_values(select, passed_, [&](T value) {
      const std::int32_t c = state_.counter(counted<T>::key(value), round_);
      if (c >= 0) ++counts_[static_cast<std::size_t>(c)];
    });
  }

  void merge(const percentile_search& other) {
    require(other.round_ == round_ && std::equal(std::begin(q_.q), std::end(q_.q), std::begin(other.q_.q)) &&
                std::equal(std::begin(state_.prefix), std::end(state_.prefix), std::begin(other.state_.prefix)),
            {"percentiles"}, "searches that stand at different places do not merge");
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    passed_.merge(other.passed_);
  }

  void advance() {
    if (round_ == 0) {
      state_.tally = passed_;
      if (passed_.count != 0) state_.set_ranks(q_.q, passed_.count);
    } else {
      require(passed_.count == state_.tally.count, {"percentiles"}, "this round saw ", passed_.count,
              " values, the first ", state_.tally.count);
    }
    if (passed_.count == 0) {
      round_ = detail::search<N>::rounds;
      return;
    }
    constexpr int ranks = detail::search<N>::ranks;
    std::uint64_t rest[ranks];
    std::uint32_t digit[ranks];
    for (int r = 0; r < ranks; ++r) {
      const std::uint64_t* counts = counts_.data() + state_.slot[r] * 2048;
      rest[r] = state_.rank[r];
      digit[r] = 0;
      while (digit[r] < 2048 && rest[r] >= counts[digit[r]]) rest[r] -= counts[digit[r]++];
      require(digit[r] < 2048, {"percentiles"}, "this round saw other values than the first");
    }
    for (int r = 0; r < ranks; ++r) {  // after all checks: a round that is refused changes nothing
      state_.rank[r] = rest[r];
      state_.prefix[r] = state_.prefix[r] << detail::search<N>::digit_bits(round_) | digit[r];
    }
    state_.assign_slots(round_);
    ++round_;
    passed_ = {};
    counts_.assign(static_cast<std::size_t>(state_.slots) * 2048, 0);
  }

  suture::percentiles<N> percentiles() const {
    require(done(), {"percentiles"}, "the search needs another round");
    return state_.template finish<T>();
  }

private:
  detail::positions<N> q_{};
  detail::search<N> state_;
  std::vector<std::uint64_t> counts_;
  fit_tally passed_{};
  int round_ = 0;
};

// The percentiles `q`, each in [0, 100], of the selected voxels: numpy.percentile with method "linear", in double, in
// the units of the image. Exact order statistics. Per sample and channel, or per sample where `pooled`; N at most 32.
// Errors: a percentile outside [0, 100]; those of the views. Source: numpy.percentile.
template <int N>
struct fit_percentiles {
  double q[N];
  bool pooled = false;

  static constexpr std::string_view name = "fit_percentiles";
  static constexpr auto parameters = named("q", &fit_percentiles::q, "pooled", &fit_percentiles::pooled);
  using result = percentiles<N>;

  void check() const {
    for (const double p : q) detail::check_percentile(p, {name});
  }
  SUTURE_HD detail::positions<N> positions() const { return detail::positions_of(q); }
  SUTURE_HD result finish(const percentiles<N>& p) const { return p; }
};

// The interval between two percentiles; 0 and 100 are minimum and maximum.
// Errors: a percentile outside [0, 100], lower not below upper; those of the views.
// Source: MONAI ScaleIntensityRangePercentiles.
struct fit_range {
  double lower = 0, upper = 100;
  bool pooled = false;

  static constexpr std::string_view name = "fit_range";
  static constexpr auto parameters =
      named("lower", &fit_range::lower, "upper", &fit_range::upper, "pooled", &fit_range::pooled);
  using result = intensity_range;

  void check() const {
    detail::check_percentile(lower, {name});
    detail::check_percentile(upper, {name});
    require(lower < upper, {name}, "lower percentile ", lower, " must be below the upper, ", upper);
  }
  SUTURE_HD detail::positions<2> positions() const { return {{lower, upper}}; }
  SUTURE_HD result finish(const percentiles<2>& p) const { return detail::make_range(p); }
};

// The piecewise linear map that takes the percentiles `q` of the selected voxels to the values `target`: a standard
// scale (Nyul and Udupa 1999), or the same percentiles of a reference image. Two percentiles of one value make a
// step.
// Errors: a percentile outside [0, 100], percentiles or targets that do not increase, a target that is not finite;
// those of the views. Source: TorchIO HistogramStandardization.
template <int N>
struct fit_landmarks {
  double q[N];
  double target[N];
  bool pooled = false;

  static constexpr std::string_view name = "fit_landmarks";
  static constexpr auto parameters =
      named("q", &fit_landmarks::q, "target", &fit_landmarks::target, "pooled", &fit_landmarks::pooled);
  using result = landmark_map<N>;

  void check() const {
    for (int k = 0; k < N; ++k) {
      detail::check_percentile(q[k], {name});
      require(std::isfinite(target[k]), {name}, "target ", target[k], " must be finite");
      if (k == 0) continue;
      require(q[k - 1] < q[k], {name}, "percentiles ", q[k - 1], " and ", q[k], " must increase");
      require(target[k - 1] < target[k], {name}, "targets ", target[k - 1], " and ", target[k], " must increase");
    }
  }
  SUTURE_HD detail::positions<N> positions() const { return detail::positions_of(q); }
  SUTURE_HD result finish(const percentiles<N>& p) const { return detail::make_landmark_map(p, target); }
};

namespace detail {

template <class Fit>
concept percentile_fit = requires(const Fit& f) {
  f.positions().q;
};

}  // namespace detail

// Runs the fit on the CPU; `fit` finds this overload by the type of the fit.
template <class T, detail::percentile_fit Fit, class Selection>
void fit_on_cpu(const cpu& exec, const Fit& settings, std::span<const view<const T>> images, const Selection& selection,
                std::span<typename Fit::result> results) {
  const auto where = settings.positions();
  if constexpr (counted<T>::by_histogram)
    detail::fit_each_group(
        exec, settings, images, selection, results, [] { return histogram<T>(); },
        [&](const auto& counted) { return settings.finish(counted.percentiles(where.q)); });
  else
    detail::fit_each_group(
        exec, settings, images, selection, results,
        [&] { return percentile_search<T, decltype(where)::size>(where.q); },
        [&](const auto& found) { return settings.finish(found.percentiles()); });
}

}  // namespace suture
