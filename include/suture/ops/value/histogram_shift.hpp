// SPDX-License-Identifier: Apache-2.0
// Intensities redistributed by a piecewise linear curve that never falls.
#pragma once

#include <array>
#include <cfloat>
#include <cstdint>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../base/voxel.hpp"
#include "../../math/elementary.hpp"
#include "../common/interval.hpp"

namespace suture {

namespace detail {
inline constexpr std::int32_t most_control_points = 32;

// Returns how many of `count` control points, spread over a range, a unit of the image has.
inline float control_points_per_unit(std::int32_t count, const interval& range, const site& where) {
  const double per_unit = (count - 1) / checked_extent(range, where);
  require(per_unit <= static_cast<double>(FLT_MAX), where, "range ", range, " is too narrow for ", count,
          " control points");
  return static_cast<float>(per_unit);
}
}  // namespace detail

// The curve through `count` control points: the one that is k / (count - 1) of the way from range.low to range.high
// goes to floating[k] of the way, straight lines between. Values outside the range stay as they are, NaN too. The range
// is in the units of the image. Errors: a count outside 2 .. 32, control points that do not rise from 0 to 1 (equal
// ones may follow each other), a range whose extent is not a normal float or too small for the count, a number that is
// not finite. Source: MONAI
// RandHistogramShift.
struct histogram_shift {
  std::array<float, detail::most_control_points> floating;
  std::int32_t count;
  interval range = {0, 1};

  static constexpr std::string_view name = "histogram_shift";
  static constexpr auto fields = named("floating", first_of(&histogram_shift::floating, &histogram_shift::count));
  static constexpr auto parameters =
      named("floating", required(first_of(&histogram_shift::floating, &histogram_shift::count)), "range",
            &histogram_shift::range);

  struct functor {
    float low, high, per_unit;  // control points per unit of the image
    std::int32_t lines;
    float value[detail::most_control_points];  // at the control points

    SUTURE_FN float operator()(float x) const {
      const bool inside = x >= low && x <= high;
      const float place = inside ? fma(x - low, per_unit, 0.0f) : 0.0f;
      const auto whole = static_cast<std::int32_t>(place);
      const std::int32_t k = whole < lines ? whole : lines - 1;
      const float y = fma(place - static_cast<float>(k), value[k + 1] - value[k], value[k]);
      return inside ? y : x;
    }

    // operator() for voxels side by side: table values are gathered between two loops without branches.
    template <int Count>
    SUTURE_INLINE void apply_row(float (&values)[Count], const voxel&) const {
      float place[Count], from[Count], rise[Count];
      std::int32_t line[Count];
      const float first = low, last = high, scale = per_unit;
      const std::int32_t last_line = lines - 1;
      for (int l = 0; l < Count; ++l) {
        const float x = values[l];
        const bool inside = (x >= first) & (x <= last);
        const float at = math::detail::select(inside, fma(x - first, scale, 0.0f), 0.0f);
        const auto whole = static_cast<std::int32_t>(at);
        line[l] = whole < last_line ? whole : last_line;
        place[l] = at - static_cast<float>(line[l]);
      }
      for (int l = 0; l < Count; ++l) {
        from[l] = value[line[l]];
        rise[l] = value[line[l] + 1] - from[l];
      }
      for (int l = 0; l < Count; ++l) {
        const float x = values[l];
        const bool inside = (x >= first) & (x <= last);
        values[l] = math::detail::select(inside, fma(place[l], rise[l], from[l]), x);
      }
    }
  };

  functor prepare(const site& where) const {
    require(count >= 2 && count <= detail::most_control_points, where, "count ", count, " is not in 2 .. ",
            detail::most_control_points);
    const float per_unit = detail::control_points_per_unit(count, range, where);
    const double low = static_cast<double>(range.low), extent = static_cast<double>(range.high) - low;
    const auto last = static_cast<std::size_t>(count - 1);
    require(floating[0] == 0 && floating[last] == 1, where, "control points must go from 0 to 1, not from ",
            floating[0], " to ", floating[last]);
    functor f{range.low, range.high, per_unit, count - 1, {}};
    for (std::size_t k = 0; k <= last; ++k) {
      require(k == 0 || floating[k] >= floating[k - 1], where, "control point ", k, " at ", floating[k],
              " is below the one before");
      f.value[k] = static_cast<float>(fma(static_cast<double>(floating[k]), extent, low));
    }
    return f;
  }
};

// histogram_shift with a number of control points from `control_points`, the inner ones moved one after the other: each
// uniformly between where the one before went and where the one behind still is. `value_range` is what stays in place.
// Errors: control points outside 3 .. 32; those of histogram_shift.
struct random_histogram_shift {
  integer_interval control_points = 10;
  interval value_range = {0, 1};
  float probability = 1;

  static constexpr std::string_view name = "random_histogram_shift";
  static constexpr std::uint16_t kind = 40;
  static constexpr auto parameters =
      named("control_points", &random_histogram_shift::control_points, "value_range",
            &random_histogram_shift::value_range, "probability", &random_histogram_shift::probability);

  void check(const site& where) const {
    detail::check_interval(control_points, "control_points", 3, detail::most_control_points, where);
    detail::control_points_per_unit(control_points.high, value_range, where);
  }

  // 31 slots whatever the number of control points.
  histogram_shift draw(draws& random, const site&) const {
    histogram_shift shift{.floating = {}, .count = detail::draw_from(control_points, random), .range = value_range};
    const auto last = static_cast<std::size_t>(shift.count - 1);
    const double lines = static_cast<double>(last);
    for (std::size_t k = 1; k + 1 < shift.floating.size(); ++k) {
      const float next = static_cast<float>(static_cast<double>(k + 1) / lines);
      const float drawn = random.uniform(shift.floating[k - 1], next);
      if (k < last) shift.floating[k] = drawn;
    }
    shift.floating[last] = 1;
    return shift;
  }
};

}  // namespace suture
