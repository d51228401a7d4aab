// SPDX-License-Identifier: Apache-2.0
// Random value operations draw their parameter from these intervals, by a law.
#pragma once

#include <cfloat>
#include <cmath>
#include <string_view>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../rng/draw.hpp"

namespace suture {

// A range of values: `= {.7f, 1.5f}` is [.7, 1.5]; one number, `= .02f`, is that number alone.
struct interval {
  float low, high;

  static constexpr auto fields = named("low", &interval::low, "high", &interval::high);

  constexpr interval(float only) : low(only), high(only) {}
  constexpr interval(float from, float to) : low(from), high(to) {}
  friend void append_text(std::string& text, const interval& a) { append_interval(text, a.low, a.high); }
};

// The integers low .. high; one number is that number alone.
struct integer_interval {
  std::int32_t low, high;

  static constexpr auto fields = named("low", &integer_interval::low, "high", &integer_interval::high);

  constexpr integer_interval(std::int32_t only) : low(only), high(only) {}
  constexpr integer_interval(std::int32_t from, std::int32_t to) : low(from), high(to) {}
  friend void append_text(std::string& text, const integer_interval& a) { append_interval(text, a.low, a.high); }
};

// Distribution of a parameter over [low, high]:
//   uniform      every value alike
//   log_uniform  every ratio alike: 1/2 as often as 2; needs low > 0
//   mixture      below 1 in half of the cases, above 1 in the other half, uniform in each: a reduction as often as an
//                increase. What nnU-Net (batchgenerators) does. Needs low <= 1 <= high
enum class interval_law { uniform, log_uniform, mixture };

namespace detail {

inline void check_interval(const interval& range, std::string_view what, const site& where) {
  require(std::isfinite(range.low) && std::isfinite(range.high), where, what, ' ', range, " must be finite");
  require(range.low <= range.high, where, what, ' ', range, " must go from low to high");
}

inline void check_interval(const interval& range, interval_law law, std::string_view what, const site& where) {
  check_interval(range, what, where);
  if (law == interval_law::log_uniform)
    require(range.low > 0, where, what, ' ', range, " must be positive to be drawn log-uniformly");
  if (law == interval_law::mixture)
    require(range.low <= 1 && range.high >= 1, where, what, ' ', range, " must hold 1 to be drawn as a mixture");
}

// Returns the extent of a range that values are scaled by.
inline double checked_extent(const interval& range, const site& where) {
  check_interval(range, "range", where);
  const double extent = static_cast<double>(range.high) - static_cast<double>(range.low);
  require(extent >= static_cast<double>(FLT_MIN) && extent <= static_cast<double>(FLT_MAX), where, "range ", range,
          " must have an extent that is a normal float");
  return extent;
}

inline void check_interval(const integer_interval& range, std::string_view what, std::int32_t least, std::int32_t most,
                           const site& where) {
  require(least <= range.low && range.low <= range.high && range.high <= most, where, what, ' ', range,
          " must go from low to high within ", least, " .. ", most);
}

// Checks a shift that is added to values or subtracted from them: finite values must stay finite, and two infinities
// must never meet. The sum of the largest float and a shift of 2^103 or more is not finite.
inline void check_shift(float shift, std::string_view what, const site& where) {
  require(std::abs(shift) <= 1e30f, where, what, " ", shift, " must be finite, and at most 1e30 in magnitude");
}

inline void check_channel_probability(float probability, const site& where) {
  require(probability >= 0 && probability <= 1, where, "channel_probability ", probability, " is not in [0, 1]");
}

// Draws from the range; takes one slot.
inline std::int32_t draw_from(const integer_interval& range, draws& random) {
  return range.low + static_cast<std::int32_t>(random.integer(std::int64_t{range.high} - range.low + 1));
}

// Draws from the range; takes two slots whatever the law, so that choosing a law shifts no other draw.
inline float draw_from(const interval& range, interval_law law, draws& random) {
  if (law == interval_law::mixture) return random.mixture(range.low, range.high);
  const float value =
      law == interval_law::uniform ? random.uniform(range.low, range.high) : random.log_uniform(range.low, range.high);
  random.skip();
  return value;
}

// Draws each of several values from a range.
template <int N>
void draw_from(const interval& range, interval_law law, draws& random, float (&values)[N]) {
  if (law == interval_law::log_uniform) {
    for (float& value : values) value = draw_from(range, law, random);
    return;
  }
  float u[2 * N];
  random.units(u);
  const uniform_between whole(range.low, range.high), below_1(range.low, 1), above_1(1, range.high);
  SUTURE_KEEP_LOOP
  for (int i = 0; i < N; ++i) {
    const float reduced = below_1(u[2 * i + 1]), increased = above_1(u[2 * i + 1]);
    const float mixed = math::detail::select(u[2 * i] < 0.5f, reduced, increased);
    values[i] = law == interval_law::mixture ? mixed : whole(u[2 * i]);
  }
}

}  // namespace detail

}  // namespace suture
