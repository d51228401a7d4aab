// SPDX-License-Identifier: Apache-2.0
// Points and boxes through the maps of a plan that another module made, as rows of doubles.
#pragma once

#include <span>
#include <string_view>

#include "../points/points.hpp"
#include "geometry.hpp"
#include "reader.hpp"

namespace suture::abi {

namespace detail {

inline void write_row(const located_point& r, double* row) {
  for (int k = 0; k < 3; ++k) row[k] = r.point[k];
  row[3] = r.residual;
  row[4] = r.converged ? 1 : 0;
  row[5] = r.valid ? 1 : 0;
}
inline void write_row(const source_point& r, double* row) {
  for (int k = 0; k < 3; ++k) row[k] = r.point[k];
  row[3] = 0;
  row[4] = row[5] = r.valid ? 1 : 0;
}
inline void write_row(const box_result& r, double* row) {
  for (int k = 0; k < 3; ++k) {
    row[k] = r.clipped.low[k];
    row[3 + k] = r.clipped.high[k];
    row[6 + k] = r.unclipped.low[k];
    row[9 + k] = r.unclipped.high[k];
  }
  row[12] = r.visible;
  row[13] = r.converged ? 1 : 0;
  row[14] = r.valid ? 1 : 0;
}
inline void write_row(const box_in_source& r, double* row) {
  for (int k = 0; k < 3; ++k) {
    row[k] = row[6 + k] = r.envelope.low[k];
    row[3 + k] = row[9 + k] = r.envelope.high[k];
  }
  row[12] = 1;
  row[13] = row[14] = r.valid ? 1 : 0;
}

inline point3 read_row(const double* row, const point3*) { return {row[0], row[1], row[2]}; }
inline box read_row(const double* row, const box*) { return {{row[0], row[1], row[2]}, {row[3], row[4], row[5]}}; }

}  // namespace detail

// Rows offsets[i] .. offsets[i + 1] - 1 belong to sample i. From is point3 or box.
template <class Result, class From>
void move_rows(const geometry& maps, std::span<const double> rows, std::span<const std::int64_t> offsets,
               std::string_view name, double* out) {
  constexpr std::size_t columns = sizeof(From) / sizeof(double);
  constexpr std::size_t written = std::is_same_v<From, box> ? 15 : 6;
  const auto plan = geometry_of(maps);
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const site where{name, static_cast<std::int64_t>(i)};
    suture::detail::sample_map map(cpu{}, plan[i], where);
    if constexpr (!suture::detail::goes_to_source<Result>) map.invert(where);
    for (auto k = static_cast<std::size_t>(offsets[i]); k < static_cast<std::size_t>(offsets[i + 1]); ++k) {
      const From given = detail::read_row(rows.data() + k * columns, static_cast<const From*>(nullptr));
      if constexpr (std::is_same_v<From, box>)
        suture::detail::check_box(given, where);
      else
        suture::detail::check_point(given, where);
      detail::write_row(map.template moved<Result>(given), out + k * written);
    }
  }
}

}  // namespace suture::abi
