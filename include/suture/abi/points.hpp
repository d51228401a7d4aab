// SPDX-License-Identifier: Apache-2.0
// Functions of a request that move points and boxes by the coordinate maps of a plan of another module.
#pragma once

#include "../points/points.hpp"
#include "geometry.hpp"
#include "reader.hpp"

namespace suture::abi {

// Moves the points or boxes of each sample in this thread, and refuses those that cannot be moved. Lists: the maps of
// the plan, one abi::geometry; the values of all samples, one after the other; the offset of each sample's first value,
// and as a last one the number of values. Result: a moved value for each.
template <class Result, class From>
void move_values(const request& given) {
  reader r(given, suture::detail::mover<Result>);
  const auto maps = r.list<geometry>("plan");
  require(maps.size() == 1, r.where(), "plan: expected one, got ", maps.size());
  const auto plan = geometry_of(maps[0]);
  const auto values = r.list<From>("values");
  const auto offsets = r.list<std::int64_t>("offsets");
  const auto results = r.result<Result>("results", static_cast<std::int64_t>(values.size()));
  r.finish();
  require(offsets.size() == plan.size() + 1 && offsets.front() == 0 &&
              offsets.back() == static_cast<std::int64_t>(values.size()) &&
              std::is_sorted(offsets.begin(), offsets.end()),
          r.where(), "offsets: expected ", plan.size() + 1, " from 0 to ", values.size(), " in order");
  for (std::size_t i = 0; i < plan.size(); ++i)
    for (std::int64_t k = offsets[i]; k < offsets[i + 1]; ++k)
      suture::detail::check_movable(values[static_cast<std::size_t>(k)],
                                    {r.where().operation, static_cast<std::int64_t>(i)});
  suture::detail::move_lists(cpu{.threads = 1}, plan, ragged<From>{values, offsets}, results);
}

inline constexpr auto& points_to_output = move_values<located_point, point3>;
inline constexpr auto& points_to_source = move_values<source_point, point3>;
inline constexpr auto& boxes_to_output = move_values<box_result, box>;
inline constexpr auto& boxes_to_source = move_values<box_in_source, box>;

// Callers in other languages rely on these sizes.
static_assert(sizeof(located_point) == 40 && sizeof(source_point) == 32 && sizeof(box) == 48 &&
              sizeof(box_result) == 112 && sizeof(box_in_source) == 56);

}  // namespace suture::abi
