// SPDX-License-Identifier: Apache-2.0
// The results of fits: a small trivially copyable struct for each sample and channel, or for each sample. Operations
// read them, on the host or on a device.
#pragma once

#include <cfloat>
#include <cmath>
#include <string_view>

#include "../base/error.hpp"
#include "exact_sums.hpp"

namespace suture {

// The origin of a statistic.
//   ok         a fit to values that differ
//   constant   a fit to values that are all the same: the deviation or range is 0
//   empty      a fit that selected no finite value: the statistic is the fallback that its struct documents
//   stated     numbers that the user wrote down, without a fit
//   not_fitted neither a fit nor the user; a pipeline on the CPU refuses it
enum class fit_status : std::uint32_t { ok, constant, empty, stated, not_fitted };

constexpr std::string_view status_name(fit_status s) {
  return s == fit_status::ok         ? "ok"
         : s == fit_status::constant ? "constant"
         : s == fit_status::empty    ? "empty"
         : s == fit_status::stated   ? "stated"
                                     : "not_fitted";
}

// Numbers of voxels that a fit has read.
//   count       selected and finite: the voxels of the statistic
//   excluded    selected, but NaN or infinite
//   undeclared  not selected, since their label is none of the declared classes
struct fit_tally {
  std::uint64_t count = 0, excluded = 0, undeclared = 0;

  SUTURE_FN void merge(const fit_tally& other) {
    count += other.count;
    excluded += other.excluded;
    undeclared += other.undeclared;
  }
  bool operator==(const fit_tally&) const = default;
};

namespace detail {

// Adds to a tally. On a device this is atomic.
SUTURE_FN void add_tally(fit_tally& to, const fit_tally& t) {
  count_up(&to.count, t.count);
  count_up(&to.excluded, t.excluded);
  count_up(&to.undeclared, t.undeclared);
}

inline constexpr double smallest_deviation = 1e-8, largest_float = 3.402823466e38;

// These compute the constants that operations read, in the same way for stated and for fitted statistics.
SUTURE_HD inline float reciprocal_of_deviation(double deviation) {
  const double divisor = deviation > smallest_deviation ? deviation : smallest_deviation;
  return static_cast<float>(math::detail::divide(1.0, divisor));
}
SUTURE_HD inline float reciprocal_of_range(double low, double high) {
  const float inverse = low < high ? static_cast<float>(math::detail::divide(1.0, high - low)) : 0.0f;
  return inverse <= static_cast<float>(largest_float) ? inverse : static_cast<float>(largest_float);
}
SUTURE_HD inline float slope_of_line(double rise, double run) {
  const float slope = run > 0 ? static_cast<float>(math::detail::divide(rise, run)) : 0.0f;
  return slope <= static_cast<float>(largest_float) ? slope : static_cast<float>(largest_float);
}

// Returns the status of a statistic that no fit computed. One that has only defaults was not stated.
SUTURE_HD constexpr fit_status stated_unless(bool is_default) {
  return is_default ? fit_status::not_fitted : fit_status::stated;
}

// Slopes of the lines between N landmarks.
template <int N>
struct slopes {
  float of[N - 1];
  SUTURE_HD constexpr float& operator[](int line) { return of[line]; }
  SUTURE_HD constexpr const float& operator[](int line) const { return of[line]; }
  bool operator==(const slopes&) const = default;
};
template <int N>
SUTURE_HD constexpr bool all_zero(const float (&values)[N]) {
  bool zero = true;
  for (int i = 0; i < N; ++i) zero = zero && values[i] == 0;
  return zero;
}
template <int N>
SUTURE_HD slopes<N> slopes_between(const float (&source)[N], const float (&target)[N]) {
  slopes<N> s{};
  for (int i = 0; i + 1 < N; ++i)
    s[i] = slope_of_line(static_cast<double>(target[i + 1]) - static_cast<double>(target[i]),
                         static_cast<double>(source[i + 1]) - static_cast<double>(source[i]));
  return s;
}

}  // namespace detail

// Mean, standard deviation sqrt(sum((x - mean)^2) / (count - ddof)), minimum and maximum. Mean and deviation come from
// exact sums and are within 2 units in the last place. With count <= ddof the deviation is 0 and the status `constant`.
// If empty, the mean is 0, the deviation 1, minimum and maximum 0, so that a z-score does not change values. Users
// state them as moments{.mean = 40, .standard_deviation = 12}; mean 0 and deviation 1 need .status =
// fit_status::stated.
struct moments {
  double mean = 0, standard_deviation = 1, minimum = 0, maximum = 0;
  fit_tally tally{};
  fit_status status = detail::stated_unless(mean == 0 && standard_deviation == 1 && minimum == 0 && maximum == 0);
  std::int32_t ddof = 0;
  // Constants of z_score: the mean, and 1 / max(standard_deviation, 1e-8).
  float center = static_cast<float>(mean);
  float reciprocal = standard_deviation == 1 ? 1 : detail::reciprocal_of_deviation(standard_deviation);
  bool operator==(const moments&) const = default;
};

// N percentiles as of numpy.percentile with method "linear", in double. If empty, all are 0.
template <int N>
struct percentiles {
  double value[N] = {};
  fit_tally tally{};
  fit_status status = fit_status::empty;
  bool operator==(const percentiles&) const = default;
};

namespace detail {
// These check a statistic that an operation is about to read, in host memory. They refuse one whose mean or deviation
// was assigned after construction, since the derived constants then do not match, and numbers that no fit returns.
inline void check_fitted(fit_status status, const site& where, std::string_view fit, std::string_view stated) {
  require(status != fit_status::not_fitted, where,
          "fitted: expected the results of a fit, got the status not_fitted. Run ", fit,
          " before, or state them: ", stated, " (the defaults with .status = fit_status::stated)");
}
inline bool is_finite_float(double x) { return std::abs(x) <= static_cast<double>(FLT_MAX); }
inline void check_mean(double mean, const site& where) {
  require(is_finite_float(mean), where, "mean: expected a finite float, got ", mean);
}
inline void check_deviation(double deviation, const site& where) {
  require(std::isfinite(deviation) && deviation >= 0, where,
          "standard_deviation: expected a finite number of 0 or above, got ", deviation);
}
inline void check_fitted(const moments& m, const site& where) {
  check_fitted(m.status, where, "fit_moments", "moments{.mean = 40, .standard_deviation = 12}");
  check_mean(m.mean, where);
  check_deviation(m.standard_deviation, where);
  require(m.center == static_cast<float>(m.mean) && m.reciprocal == reciprocal_of_deviation(m.standard_deviation),
          where, "the moments were changed after they were made; state them whole: moments{.mean = ", m.mean,
          ", .standard_deviation = ", m.standard_deviation, "}");
}
}  // namespace detail

// An interval between two percentiles; 0 and 100 are minimum and maximum. If empty, it is [0, 1], which scales nothing.
// Users state it as intensity_range{.low = -160, .high = 240}; 0 and 1 need .status = fit_status::stated.
struct intensity_range {
  double low = 0, high = 1;
  fit_tally tally{};
  fit_status status = detail::stated_unless(low == 0 && high == 1);
  // Constants of percentile_scale: low, and 1 / (high - low), 0 if they are the same.
  float origin = static_cast<float>(low);
  float reciprocal = high - low == 1 ? 1 : detail::reciprocal_of_range(low, high);
  bool operator==(const intensity_range&) const = default;
};

namespace detail {
inline void check_fitted(const intensity_range& r, const site& where) {
  check_fitted(r.status, where, "fit_range", "intensity_range{.low = -160, .high = 240}");
  require(is_finite_float(r.low) && is_finite_float(r.high) && r.low <= r.high, where,
          "low and high: expected finite floats, low first, got ", r.low, " and ", r.high);
  require(r.origin == static_cast<float>(r.low) && r.reciprocal == reciprocal_of_range(r.low, r.high), where,
          "the range was changed after it was made; state it whole: intensity_range{.low = ", r.low,
          ", .high = ", r.high, "}");
}
}  // namespace detail

// A threshold between two classes, {<= value} and {> value}. If all values are the same it is that value, or 0 by
// otsu_rule::opencv; if empty, 0.
struct threshold {
  double value = 0;
  fit_tally tally{};
  fit_status status = fit_status::empty;
  bool operator==(const threshold&) const = default;
};

// A piecewise linear map from `source` to `target` landmarks, extended linearly beyond the first and the last. If
// empty, it is the identity. Users state it as landmark_map<3>{.source = {0, 40, 100}, .target = {0, 50, 100}}.
template <int N>
struct landmark_map {
  static_assert(N >= 2);
  float source[N] = {}, target[N] = {};
  detail::slopes<N> slope = detail::slopes_between(source, target);
  fit_tally tally{};
  fit_status status = detail::stated_unless(detail::all_zero(source) && detail::all_zero(target));
  bool operator==(const landmark_map&) const = default;
};

namespace detail {

template <int N>
void check_fitted(const landmark_map<N>& m, const site& where) {
  check_fitted(m.status, where, "fit_landmarks", "landmark_map<3>{.source = {0, 40, 100}, .target = {0, 50, 100}}");
  if (m.status != fit_status::stated) return;
  for (int i = 0; i < N; ++i)
    require(std::isfinite(m.source[i]) && std::isfinite(m.target[i]), where, "landmark ", i,
            ": expected finite numbers, got the source ", m.source[i], " and the target ", m.target[i]);
  for (int i = 0; i + 1 < N; ++i)
    require(m.source[i] <= m.source[i + 1], where, "source: landmark ", i + 1, " is ", m.source[i + 1], ", below ",
            m.source[i], " before it; state them from low to high");
  require(m.slope == slopes_between(m.source, m.target), where,
          "the landmarks were changed after they were made; state them whole: landmark_map<", N,
          ">{.source = {...}, .target = {...}}");
}

// Computes moments from sums whose carries are propagated. `least` and `greatest` are not used if nothing was counted.
SUTURE_HD inline moments make_moments(const exact_sums& sums, const fit_tally& tally, double least, double greatest,
                                      bool is_integer, std::int32_t ddof) {
  moments m;
  m.tally = tally;
  m.ddof = ddof;
  m.status = fit_status::empty;
  if (tally.count == 0) return m;
  const central_sums s = central_sums_of(sums, tally.count, is_integer);
  const auto n = static_cast<double>(tally.count);
  m.mean = math::detail::divide(s.sum, n);
  m.minimum = least;
  m.maximum = greatest;
  const auto degrees_of_freedom = static_cast<std::int64_t>(tally.count) - ddof;
  m.standard_deviation =
      degrees_of_freedom > 0
          ? math::sqrt(math::detail::divide(math::detail::divide(s.count_times_squared_deviations, n),
                                            static_cast<double>(degrees_of_freedom)))
          : 0;
  m.status = m.standard_deviation > 0 ? fit_status::ok : fit_status::constant;
  m.center = static_cast<float>(m.mean);
  m.reciprocal = reciprocal_of_deviation(m.standard_deviation);
  return m;
}

// Returns a product that is rounded and not fused with a following addition. NumPy's interpolation rounds both, and
// percentiles must equal NumPy's.
SUTURE_FN double rounded_product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  double product = a * b;
  asm("" : "+m"(product));
  return product;
#endif
}

// The position of a percentile among sorted values: between ranks lower and lower + 1, at `fraction` of their distance.
struct percentile_place {
  std::uint64_t lower;
  double fraction;
};
SUTURE_HD inline percentile_place locate_percentile(double q, std::uint64_t count) {
  const double h = rounded_product(static_cast<double>(count - 1), math::detail::divide(q, 100.0));
  const auto lower = static_cast<std::uint64_t>(h);
  if (lower >= count - 1) return {count - 1, 0};
  return {lower, h - static_cast<double>(lower)};
}
SUTURE_HD inline double interpolate_percentile(double a, double b, double fraction) {
  const double step = b - a;
  return fraction < 0.5 ? a + rounded_product(step, fraction) : b - rounded_product(step, 1 - fraction);
}
// Returns percentile q of `count` values, where ranked(i) is value i in ascending order.
SUTURE_NO_EXEC_CHECK
template <class Ranked>
SUTURE_HD double percentile_of_ranked(double q, std::uint64_t count, const Ranked& ranked) {
  const percentile_place place = locate_percentile(q, count);
  return interpolate_percentile(ranked(place.lower), ranked(place.lower + 1 < count ? place.lower + 1 : count - 1),
                                place.fraction);
}

SUTURE_HD inline intensity_range make_range(const percentiles<2>& p) {
  intensity_range r;
  r.tally = p.tally;
  r.status = p.status;
  if (p.status == fit_status::empty) return r;
  r.low = p.value[0];
  r.high = p.value[1];
  r.status = r.low < r.high ? fit_status::ok : fit_status::constant;
  r.origin = static_cast<float>(r.low);
  r.reciprocal = reciprocal_of_range(r.low, r.high);
  return r;
}

template <int N>
SUTURE_HD landmark_map<N> make_landmark_map(const percentiles<N>& p, const double* target) {
  landmark_map<N> m;
  m.tally = p.tally;
  m.status = p.status;
  for (int i = 0; i < N; ++i) {
    m.target[i] = static_cast<float>(target[i]);
    m.source[i] = p.status == fit_status::empty ? m.target[i] : static_cast<float>(p.value[i]);
  }
  for (int i = 0; i + 1 < N; ++i) {
    const double rise = p.status == fit_status::empty ? 1 : target[i + 1] - target[i];
    const double run = p.status == fit_status::empty ? 1 : p.value[i + 1] - p.value[i];
    m.slope[i] = slope_of_line(rise, run);
  }
  return m;
}

// Returns Otsu's score of a split of n values with sum S into n1 values with sum s1 and the rest: the between-class
// variance times n^2, (n1 S - n s1)^2 / (n1 (n - n1)).
SUTURE_HD inline double otsu_score(std::uint64_t below, std::int64_t sum_below, std::uint64_t count, std::int64_t sum) {
  const int128 d = static_cast<int128>(below) * sum - static_cast<int128>(count) * sum_below;
  const double difference = to_double(static_cast<uint128>(d < 0 ? -d : d));
  const double product = static_cast<double>(below) * static_cast<double>(count - below);
  return difference * math::detail::divide(difference, product);
}

inline void check_percentile(double q, const site& where) {
  require(q >= 0 && q <= 100, where, "percentile ", q, " must be in [0, 100]");
}
template <int N, class Ranked>
percentiles<N> percentiles_of_ranked(const double (&q)[N], const fit_tally& tally, const Ranked& ranked) {
  percentiles<N> p;
  p.tally = tally;
  if (tally.count == 0) return p;
  for (int k = 0; k < N; ++k) {
    check_percentile(q[k], {"percentiles"});
    p.value[k] = percentile_of_ranked(q[k], tally.count, ranked);
  }
  p.status = ranked(0) < ranked(tally.count - 1) ? fit_status::ok : fit_status::constant;
  return p;
}

}  // namespace detail

}  // namespace suture
