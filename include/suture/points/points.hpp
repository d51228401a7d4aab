// SPDX-License-Identifier: Apache-2.0
// Points and boxes of a planned sample, moved between source and output by the map through which its voxels are read.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "../exec/cpu/readable.hpp"
#include "../plan/displacement.hpp"
#include "../plan/planned.hpp"
#include "../plan/point_map.hpp"

namespace suture {

namespace detail {

// The map of one sample. It caches control values of a deformation, so threads must not share it.
class sample_map {
public:
  sample_map(const cpu& exec, const sample_geometry& g, const site& where)
      : map_(forward_map(g, where)),
        displacement_(g.drawn.control_points, g.drawn.to_control, drawn_control{&g.drawn}) {
    check_memory(exec, g.drawn.given, where, "control_values of elastic: ");
  }

  // Prepares the inverse map. Call it before points are moved to the output.
  void invert(const site& where) { detail::invert(map_, where); }

  point3 to_source(const point3& output) { return map_.source_of(output, displacement_); }
  box to_source(const box& output) { return moved<box_in_source>(output).envelope; }

  template <class Result>
  Result moved(const point3& p) {
    return map_.template moved<Result>(p, displacement_);
  }
  template <class Result>
  Result moved(const box& b) {
    const lattice_surface surface = map_.template surface_of<Result>(b);
    Result r = point_map::nothing_yet<Result>();
    for (std::int32_t i = 0; i < surface.points(); ++i) map_.add_surface_point(r, b, surface, i, displacement_);
    map_.finish(r);
    return r;
  }

private:
  point_map map_;
  spline_displacement<drawn_control> displacement_;
};

inline void check_movable(const point3& p, const site& where) {
  for (int k = 0; k < 3; ++k)
    require(std::abs(p[k]) <= fixed_coordinate_limit, where, "point ", p, " must be finite and within ",
            fixed_coordinate_limit, " voxels");
}

inline void check_movable(const box& b, const site& where) {
  check_movable(b.low, where);
  check_movable(b.high, where);
  for (int k = 0; k < 3; ++k)
    require(b.low[k] < b.high[k], where, "box from ", b.low, " to ", b.high, " is empty along axis ", k);
}

// Moves points or boxes of one sample: to the source if T is Result, otherwise to the output, where results also state
// whether a value is inside.
template <class Chain, class T, class Result>
void move_each(const planned<Chain>& plan, std::size_t sample, std::span<const T> from, std::span<Result> to) {
  constexpr bool to_source = std::is_same_v<T, Result>;
  const site where{to_source ? "to_source" : "to_output", static_cast<std::int64_t>(sample)};
  require(sample < plan.size(), {where.operation}, "there is no sample ", sample, " in a plan of ", plan.size());
  sample_map map(cpu{}, plan.geometry(sample), where);
  if constexpr (!to_source) map.invert(where);
  require(from.size() == to.size(), where, from.size(), " given, room for ", to.size());
  for (const T& one : from) check_movable(one, where);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if constexpr (to_source)
      to[i] = map.to_source(from[i]);
    else
      to[i] = map.template moved<Result>(from[i]);
  }
}

}  // namespace detail

// to_source: returns the continuous source index from which a continuous output index of a planned sample is read:
//   source = to_source(y + u(y)), y = to_deformed(output). Indices are in voxels along (z, y, x); index i is the center
//   of voxel i. Computed in double, for any position. The positions at which executors sample differ by the rounding of
//   their fixed-point and float coordinates, less than 1e-4 voxel. Beyond the control points of a deformation, the
//   displacement at their rim continues.
// to_source of a box, both in edge coordinates: returns the envelope of the moved points of its surface, the same
//   points as to_output uses. It may leave the source. No map is inverted. Where a deformation folds, points inside the
//   box may move beyond the envelope.
//   Write the type of a box, `suture::box{low, high}`: bare braces mean a point.
// Errors: a sample that is not in the plan, a plan that undoes a deformation (inverse_of), a point that is not finite or
//   beyond 4194304 voxels, a box that is empty along an axis.
template <class Chain, detail::movable T = point3>
T to_source(const planned<Chain>& plan, std::size_t sample, const T& in_output) {
  T in_source{};
  detail::move_each(plan, sample, std::span<const T>(&in_output, 1), std::span<T>(&in_source, 1));
  return in_source;
}

// to_source for many points or boxes, with one result for each; another number of results is an error.
template <class Chain>
void to_source(const planned<Chain>& plan, std::size_t sample, std::span<const point3> output_indices,
               std::span<point3> source_indices) {
  detail::move_each(plan, sample, output_indices, source_indices);
}
template <class Chain>
void to_source(const planned<Chain>& plan, std::size_t sample, std::span<const box> output_boxes,
               std::span<box> source_boxes) {
  detail::move_each(plan, sample, output_boxes, source_boxes);
}

// to_output: returns the continuous output index at which a continuous source index appears, the inverse of to_source.
//   Affine maps are inverted directly. A deformation is inverted by iterating y <- x - u(y) until y moves by less than
//   1e-6 voxel, at most 64 times, which suffices for what random_elastic draws without allow_folding. The result may
//   lie outside the output.
// to_output of a box, both in edge coordinates: returns the axis-aligned envelope of the moved box, and its part within
//   the output. For an affine map the envelope is exact (all eight corners). For a deformation it is that of points on
//   the surface: two per control cell along every edge, at least 5 and at most 33.
// Errors: those of to_source, and a map that cannot be inverted.
template <class Chain, detail::movable T = point3>
detail::in_output<T> to_output(const planned<Chain>& plan, std::size_t sample, const T& in_source) {
  detail::in_output<T> result{};
  detail::move_each(plan, sample, std::span<const T>(&in_source, 1), std::span(&result, 1));
  return result;
}

template <class Chain>
void to_output(const planned<Chain>& plan, std::size_t sample, std::span<const point3> source_indices,
               std::span<located_point> output_indices) {
  detail::move_each(plan, sample, source_indices, output_indices);
}
template <class Chain>
void to_output(const planned<Chain>& plan, std::size_t sample, std::span<const box> source_boxes,
               std::span<box_result> output_boxes) {
  detail::move_each(plan, sample, source_boxes, output_boxes);
}

// The points or boxes of every sample of a batch, one list after the other: those of sample i are values[offsets[i]] ..
// values[offsets[i + 1] - 1], so there is one offset more than samples. Values before the first or after the last list
// are ignored.
template <class T>
struct ragged {
  std::span<const T> values;
  std::span<const std::int64_t> offsets;
};

namespace detail {

SUTURE_HD inline bool can_move(const point3& p) { return is_position(p); }
SUTURE_HD inline bool can_move(const box& b) { return is_box(b); }

template <class T, class Result>
void check_lists(std::size_t samples, const ragged<T>& lists, std::span<Result> results) {
  const site where{mover<Result>};
  require(lists.offsets.size() == samples + 1, where, lists.offsets.size(), " offsets for ", samples,
          " samples; one more than samples is needed");
  require(results.size() == lists.values.size(), where, lists.values.size(), " given, room for ", results.size());
}

// Calls visit(pointer, where, role) for the lists of a batch and their results.
template <class Visit, class T, class Result>
void each_list_pointer(const Visit& visit, const ragged<T>& lists, std::span<Result> results) {
  const site where{mover<Result>};
  visit(lists.values.data(), where, std::is_same_v<T, box> ? "boxes: " : "points: ");
  visit(lists.offsets.data(), where, "offsets: ");
  visit(results.data(), where, "results: ");
}

template <class T, class Result>
void move_lists(const cpu& exec, const geometry_list& plan, const ragged<T>& lists, std::span<Result> results) {
  check_lists(plan.size(), lists, results);
  each_list_pointer(memory_check(exec), lists, results);
  std::vector<sample_map> maps;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const site where{mover<Result>, static_cast<std::int64_t>(i)};
    const std::int64_t begin = lists.offsets[i], end = lists.offsets[i + 1];
    require(begin >= 0 && begin <= end && end <= static_cast<std::int64_t>(lists.values.size()), where, "offsets ",
            begin, " and ", end, " must be in order and within ", lists.values.size(), " values");
    maps.emplace_back(exec, plan[i], where);
    if constexpr (!goes_to_source<Result>) maps.back().invert(where);
  }
  const auto first = static_cast<std::size_t>(lists.offsets.front());
  const auto last = static_cast<std::size_t>(lists.offsets.back());
  for (std::size_t i = 0; i < results.size(); ++i)
    if (i < first || i >= last) results[i] = not_moved<Result>();
  parallel_for(exec.threads, static_cast<std::int64_t>(plan.size()), [&](std::int64_t sample) {
    const auto s = static_cast<std::size_t>(sample);
    const auto end = static_cast<std::size_t>(lists.offsets[s + 1]);
    for (auto i = static_cast<std::size_t>(lists.offsets[s]); i < end; ++i)
      results[i] = can_move(lists.values[i]) ? maps[s].moved<Result>(lists.values[i]) : not_moved<Result>();
  });
}

}  // namespace detail

// Both functions for the lists of a whole batch, with the same numbers; points.cuh has them on a device. Results of
//   values that cannot be moved (not finite, beyond 4194304 voxels, an empty box) and of values in no list are not
//   `valid`; these are no errors.
// Errors: a plan that undoes a deformation, a number of offsets other than samples + 1, offsets that descend or leave
//   the values, a number of results other than that of the values; for to_output, a map that cannot be inverted.
template <class Chain, class T>
void to_source(const cpu& exec, const planned<Chain>& plan, const ragged<T>& lists,
               std::span<detail::in_source<T>> results) {
  detail::move_lists(exec, plan.geometry(), lists, results);
}
template <class Chain, class T>
void to_output(const cpu& exec, const planned<Chain>& plan, const ragged<T>& lists,
               std::span<detail::in_output<T>> results) {
  detail::move_lists(exec, plan.geometry(), lists, results);
}

}  // namespace suture
