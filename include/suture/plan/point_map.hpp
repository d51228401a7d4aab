// SPDX-License-Identifier: Apache-2.0
// Moves a point or a box of one planned sample, by the same code on host and device. The caller passes the displacement
// of a deformation as a functor u(y).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "../base/coordinate.hpp"
#include "../base/error.hpp"
#include "../image/sample_geometry.hpp"
#include "../math/root.hpp"

namespace suture {

// Position of a source point in the output.
struct located_point {
  point3 point;       // continuous output index; it may lie outside the output
  double residual;    // distance, in source voxels, between the requested point and what the output reads at `point`
  bool converged;     // false where the deformation could not be inverted to 1e-6 voxel, as where it folds
  bool valid = true;  // false in a batch if the input is no position or is in no list; all else is 0 then
};

// Source position of an output point, as batches of lists return it.
struct source_point {
  point3 point;       // continuous source index; it may lie outside the source
  bool valid = true;  // false: it could not be moved
};

// A box [low, high) in edge coordinates: voxel i covers [i, i + 1), so an edge is a continuous index plus 1/2, voxels
// a to b inclusive are the box {a, b + 1} and a whole image is {0, N}. A box in a 2D image is {0, 1} along z.
struct box {
  point3 low, high;
};

// Position of a source box in the output.
struct box_result {
  box clipped;        // the part within the output, possibly empty
  box unclipped;      // the axis-aligned envelope of the moved box
  double visible;     // volume of clipped / volume of unclipped
  bool converged;     // of every point of the envelope
  bool valid = true;  // false in a batch if the input is no box or is in no list; all else is 0 then
};

// Source position of an output box, as batches of lists return it.
struct box_in_source {
  box envelope;       // axis-aligned; it may leave the source
  bool valid = true;  // false: it could not be moved
};

// The boxes to keep after a move: at least this fraction of a box is visible, and its visible part is at least this
// many voxels thick along every axis (less the error of inverting a deformation). `axes` is 2 for boxes in 2D images,
// which are one voxel thick along z: thickness along z then does not count.
struct box_filter {
  double least_visible = 0;
  double least_thickness = 1;
  int axes = 3;

  SUTURE_HD bool keeps(const box_result& b) const {
    if (!(b.visible > 0 && b.visible >= least_visible)) return false;
    for (int k = axes == 2 ? 1 : 0; k < 3; ++k)
      if (!(b.clipped.high[k] - b.clipped.low[k] >= least_thickness - 2e-6)) return false;
    return true;
  }
};

namespace detail {

template <class T>
concept movable = std::is_same_v<T, point3> || std::is_same_v<T, box>;

// Results of points and of boxes.
template <movable T>
using in_source = std::conditional_t<std::is_same_v<T, box>, box_in_source, source_point>;
template <movable T>
using in_output = std::conditional_t<std::is_same_v<T, box>, box_result, located_point>;

// The direction that a result belongs to.
template <class Result>
inline constexpr bool goes_to_source = std::is_same_v<Result, source_point> || std::is_same_v<Result, box_in_source>;

// The counterpart of cell_of in double: the control cell and the position in it, clamped to the control grid.
struct spline_cell {
  std::int32_t index;
  double t;
};
SUTURE_HD inline spline_cell spline_cell_of(double q, std::int32_t control_points) {
  const std::int32_t cells = control_points - 3;
  const double clamped = q > 0 ? (q < cells ? q : static_cast<double>(cells)) : 0;
  const auto index = static_cast<std::int32_t>(clamped);
  const std::int32_t inner = index < cells ? index : cells - 1;
  return {inner, clamped - static_cast<double>(inner)};
}

SUTURE_HD inline void spline_weights(double t, double (&w)[4]) {
  constexpr double sixth = 1.0 / 6;
  const double s = 1 - t;
  w[0] = (s * s) * s * sixth;
  w[1] = fma(fma(0.5, t, -1.0), t * t, 2.0 / 3);
  w[2] = fma(fma(0.5, s, -1.0), s * s, 2.0 / 3);
  w[3] = (t * t) * t * sixth;
}

// Solves y + u(y) = x by y <- x - u(y), which contracts wherever u does not fold space.
struct undisplaced {
  point3 y;
  bool converged;
};
SUTURE_NO_EXEC_CHECK template <class Displacement>
SUTURE_HD undisplaced undisplace(const point3& x, Displacement&& u) {
  constexpr int most_iterations = 64;
  constexpr double tolerance = 1e-6;  // voxels of the deformed grid
  point3 y = x;
  for (int i = 0; i < most_iterations; ++i) {
    const point3 d = u(y);
    double moved = 0;
    for (int k = 0; k < 3; ++k) {
      const double next = x[k] - d[k];
      const double step = next < y[k] ? y[k] - next : next - y[k];
      moved = step > moved ? step : moved;
      y[k] = next;
    }
    if (moved < tolerance) return {y, true};
  }
  return {y, false};
}

SUTURE_HD inline bool is_position(const point3& p) {
  for (int k = 0; k < 3; ++k)
    if (!(p[k] >= -fixed_coordinate_limit && p[k] <= fixed_coordinate_limit)) return false;
  return true;
}

SUTURE_HD inline bool is_box(const box& b) {
  if (!is_position(b.low) || !is_position(b.high)) return false;
  for (int k = 0; k < 3; ++k)
    if (!(b.low[k] < b.high[k])) return false;
  return true;
}

// The surface of a lattice of steps + 1 points along each axis.
struct lattice_surface {
  vec3<std::int32_t> steps;

  SUTURE_HD std::int32_t points() const { return 2 * face() + (steps[0] - 1) * ring(); }
  SUTURE_HD vec3<std::int32_t> at(std::int32_t i) const {
    const std::int32_t row = steps[2] + 1, all = face();
    if (i < 2 * all) return {i < all ? 0 : steps[0], i % all / row, i % row};
    const std::int32_t a = 1 + (i - 2 * all) / ring(), j = (i - 2 * all) % ring();
    if (j < 2 * row) return {a, j < row ? 0 : steps[1], j % row};
    return {a, 1 + (j - 2 * row) / 2, (j & 1) != 0 ? steps[2] : 0};
  }

private:
  SUTURE_HD std::int32_t face() const { return (steps[1] + 1) * (steps[2] + 1); }
  SUTURE_HD std::int32_t ring() const { return 2 * (steps[1] + steps[2]); }
};

inline constexpr std::uint64_t point_map_mark = 0x9d1c6f3be0a75482;

// The map of one sample in both directions.
struct point_map {
  affine_map to_deformed, to_source;      // output index -> deformed grid -> source index
  affine_map from_source, from_deformed;  // their inverses
  matrix3 source_cells, output_cells;     // voxels of the source, of the output -> control cells
  deformation drawn;
  vec3<double> extents;                    // of the output
  std::int32_t single_voxel[3], deformed;  // flags
  std::uint64_t mark;                      // distinguishes an uploaded map from uninitialized memory

  SUTURE_NO_EXEC_CHECK template <class Displacement>
  SUTURE_HD point3 source_of(const point3& output, Displacement&& u) const {
    point3 y = to_deformed(output);
    if (deformed) {
      const point3 d = u(y);
      for (int k = 0; k < 3; ++k) y[k] += d[k];
    }
    return to_source(y);
  }

  SUTURE_NO_EXEC_CHECK template <class Displacement>
  SUTURE_HD undisplaced undeformed(const point3& source, Displacement&& u) const {
    const point3 displaced = from_source(source);
    return deformed ? undisplace(displaced, u) : undisplaced{displaced, true};
  }

  SUTURE_NO_EXEC_CHECK template <class Displacement>
  SUTURE_HD located_point output_of(const point3& source, Displacement&& u) const {
    const undisplaced found = undeformed(source, u);
    const point3 output = from_deformed(found.y);
    const point3 read = source_of(output, u);
    const point3 off{read[0] - source[0], read[1] - source[1], read[2] - source[2]};
    return {output, math::sqrt(fma(off[0], off[0], fma(off[1], off[1], off[2] * off[2]))), found.converged};
  }

  // Returns source_of or output_of, whichever has this result.
  SUTURE_NO_EXEC_CHECK template <class Result, class Displacement>
  SUTURE_HD Result moved(const point3& p, Displacement&& u) const {
    if constexpr (goes_to_source<Result>)
      return {source_of(p, u), true};
    else
      return output_of(p, u);
  }

  // Returns the lattice of points whose envelope is the result for a box: its corners if the map is affine. Of a
  // deformation it has at least five points along every edge and two per control cell, but at most 33.
  template <class Result>
  SUTURE_HD lattice_surface surface_of(const box& given) const {
    if (!deformed) return {{1, 1, 1}};
    const matrix3& to_cells = goes_to_source<Result> ? output_cells : source_cells;
    vec3<std::int32_t> steps{};
    for (int j = 0; j < 3; ++j) {
      double cells = 0;  // an edge along axis j crosses at most this many control cells along an axis
      for (int i = 0; i < 3; ++i) {
        const double crossed = to_cells[i][j] * (given.high[j] - given.low[j]);
        const double many = crossed < 0 ? -crossed : crossed;
        cells = many > cells ? many : cells;
      }
      const double twice = 2 * cells < 32 ? 2 * cells : 32;
      const auto whole = static_cast<std::int32_t>(twice);
      const std::int32_t up = static_cast<double>(whole) < twice ? whole + 1 : whole;
      steps[j] = up < 4 ? 4 : up;
    }
    return {steps};
  }

  template <class Result>
  SUTURE_HD static Result nothing_yet() {
    const double most = fixed_coordinate_limit * fixed_coordinate_limit;
    const box nothing{{most, most, most}, {-most, -most, -most}};
    if constexpr (goes_to_source<Result>)
      return {nothing};
    else
      return {{}, nothing, 0, true};
  }

  // Widens r by point i of the surface.
  SUTURE_NO_EXEC_CHECK template <class Result, class Displacement>
  SUTURE_HD void add_surface_point(Result& r, const box& given, const lattice_surface& surface, std::int32_t i,
                                   Displacement& u) const {
    const vec3<std::int32_t> at = surface.at(i);
    point3 p{};
    for (int k = 0; k < 3; ++k) {
      const double w = math::detail::divide(static_cast<double>(at[k]), static_cast<double>(surface.steps[k]));
      // low (1 - w) + high w, exact at both ends; the index half a voxel below the edge.
      p[k] = fma(w, given.high[k], fma(-w, given.low[k], given.low[k])) - 0.5;
    }
    point3 q{};
    if constexpr (goes_to_source<Result>) {
      q = source_of(p, in_plane<Displacement>{*this, u});
    } else {
      const undisplaced found = undeformed(p, in_plane<Displacement>{*this, u});
      q = from_deformed(found.y);
      r.converged = r.converged && found.converged;
    }
    for (int k = 0; k < 3; ++k) q[k] += 0.5;
    widen(envelope_of(r), {q, q});
  }

  SUTURE_HD static void join(box_result& a, const box_result& b) {
    a.converged = a.converged && b.converged;
    widen(a.unclipped, b.unclipped);
  }
  SUTURE_HD static void join(box_in_source& a, const box_in_source& b) { widen(a.envelope, b.envelope); }

  // Computes what needs the whole envelope: its part inside the output, and how much of it that is.
  SUTURE_HD void finish(box_result& r) const {
    double part = 1, whole = 1;
    for (int k = 0; k < 3; ++k) {
      r.clipped.low[k] = clipped(r.unclipped.low[k], extents[k]);
      r.clipped.high[k] = clipped(r.unclipped.high[k], extents[k]);
      part *= r.clipped.high[k] - r.clipped.low[k];
      whole *= r.unclipped.high[k] - r.unclipped.low[k];
    }
    r.visible = math::detail::divide(part, whole);
  }
  SUTURE_HD void finish(box_in_source&) const {}

private:
  // The displacement for boxes: along an axis of a single voxel, all points have that of the center of the voxel.
  template <class Displacement>
  struct in_plane {
    const point_map& map;
    Displacement& u;
    SUTURE_NO_EXEC_CHECK SUTURE_HD point3 operator()(point3 y) const {
      for (int k = 0; k < 3; ++k)
        if (map.single_voxel[k]) y[k] = 0;
      return u(y);
    }
  };
  SUTURE_HD static box& envelope_of(box_result& r) { return r.unclipped; }
  SUTURE_HD static box& envelope_of(box_in_source& r) { return r.envelope; }
  SUTURE_HD static void widen(box& b, const box& by) {
    for (int k = 0; k < 3; ++k) {
      b.low[k] = by.low[k] < b.low[k] ? by.low[k] : b.low[k];
      b.high[k] = by.high[k] > b.high[k] ? by.high[k] : b.high[k];
    }
  }
  SUTURE_HD static double clipped(double edge, double extent) { return edge < 0 ? 0 : edge > extent ? extent : edge; }
};

// Returns false if a row is a combination of the others up to rounding; the scale of the map does not matter.
inline bool invertible(const matrix3& a) {
  double bound = 1;
  for (int i = 0; i < 3; ++i) bound *= std::max({std::abs(a[i][0]), std::abs(a[i][1]), std::abs(a[i][2])});
  const double d = std::abs(determinant(a));
  return std::isfinite(d) && d > 1e-12 * bound;
}

// Returns the map of a sample without the inverses, which do not exist for every map.
inline point_map forward_map(const sample_geometry& g, const site& where) {
  require(!(g.deformed && g.inverted), where,
          "the plan undoes a deformation; move points the other way, by the plan that is undone");
  point_map map{};
  map.mark = point_map_mark;
  map.to_deformed = g.to_deformed;
  map.to_source = g.to_source;
  map.drawn = g.drawn;
  map.extents = vec_cast<double>(g.output.extents);
  map.deformed = g.deformed ? 1 : 0;
  if (g.deformed) map.output_cells = g.drawn.to_control.linear * g.to_deformed.linear;
  for (int k = 0; k < 3 && g.deformed; ++k) map.single_voxel[k] = has_single_voxel(g.drawn, k) ? 1 : 0;
  return map;
}

// Adds the inverses; refuses a map that has none.
inline void invert(point_map& map, const site& where) {
  const bool possible = invertible(map.to_source.linear) && invertible(map.to_deformed.linear);
  require(possible, where, "the map from output to source has determinant ",
          determinant(map.to_source.linear) * determinant(map.to_deformed.linear), " and cannot be inverted");
  map.from_source = inverse(map.to_source);
  map.from_deformed = inverse(map.to_deformed);
  if (map.deformed) map.source_cells = map.drawn.to_control.linear * map.from_source.linear;
}

// Name of the function that returns results of this type.
template <class Result>
inline constexpr std::string_view mover = goes_to_source<Result> ? "to_source" : "to_output";

template <class Result>
SUTURE_HD Result not_moved() {
  Result r{};
  r.valid = false;
  return r;
}

// Returns the list that holds element i: list s holds elements offsets[s] to offsets[s + 1] - 1. It is -1 if none does.
SUTURE_HD inline std::int64_t list_of(const std::int64_t* offsets, std::int64_t samples, std::int64_t i) {
  std::int64_t low = 0, high = samples;  // the offsets of [0, low) are at most i, those of [high, samples) are not
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (offsets[middle] <= i)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && i < offsets[low] ? low - 1 : -1;
}

}  // namespace detail
}  // namespace suture
