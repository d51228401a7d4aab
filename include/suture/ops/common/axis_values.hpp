// SPDX-License-Identifier: Apache-2.0
// Parameter types that take one number for all axes, or one per axis in the order (z, y, x).
#pragma once

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"

namespace suture {

// One value per axis: `= 32` sets all three, `= {40, 32, 32}` each.
struct axis_values {
  double v[3];

  constexpr axis_values(double all) : v{all, all, all} {}
  constexpr axis_values(double z, double y, double x) : v{z, y, x} {}
  constexpr double operator[](int axis) const { return v[axis]; }
};

// An interval to draw from: `= 15` is [-15, 15], `= {.85f, 1.25f}` is [.85, 1.25].
struct value_range {
  float low, high;

  static constexpr auto fields = named("low", &value_range::low, "high", &value_range::high);

  constexpr value_range(float half_width) : low(-half_width), high(half_width) {}
  constexpr value_range(float from, float to) : low(from), high(to) {}
  friend constexpr bool operator==(const value_range& a, const value_range& b) {
    return a.low == b.low && a.high == b.high;
  }
  friend void append_text(std::string& text, const value_range& a) { append_interval(text, a.low, a.high); }
};

// One interval per axis: `= 15` is [-15, 15] on every axis, `= {.85f, 1.25f}` that interval on every axis,
// `= {30, 15, 15}` half widths for z, y, x, and `= {{-30, 30}, {0, 0}, {-5, 15}}` any three intervals.
struct axis_ranges {
  value_range z, y, x;

  static constexpr auto fields = named("z", &axis_ranges::z, "y", &axis_ranges::y, "x", &axis_ranges::x);

  constexpr axis_ranges(float half_width) : z(half_width), y(half_width), x(half_width) {}
  constexpr axis_ranges(float from, float to) : z(from, to), y(from, to), x(from, to) {}
  constexpr axis_ranges(value_range along_z, value_range along_y, value_range along_x)
      : z(along_z), y(along_y), x(along_x) {}
  constexpr const value_range& operator[](int axis) const { return axis == 0 ? z : axis == 1 ? y : x; }
};

}  // namespace suture
