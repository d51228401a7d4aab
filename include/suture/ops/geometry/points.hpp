// SPDX-License-Identifier: Apache-2.0
// Points and boxes of a planned sample, moved through exactly the map its voxels are read by.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

#include "../../core/plan.hpp"

namespace suture {

// Where a point of the source lies in the output.
struct located_point {
  point3 point;     // continuous output index; it may lie outside the output
  double residual;  // distance, in source voxels, between the point asked for and what the output reads at `point`
  bool converged;   // false where the deformation could not be inverted to 1e-6 voxel, as where it folds
};

// A box [low, high) in edge coordinates: voxel i covers [i, i + 1), so an edge is a continuous index plus 1/2, voxels
// a to b inclusive are the box {a, b + 1} and a whole image is {0, N}. A box in a 2D image is {0, 1} along z.
struct box {
  point3 low, high;
};

struct box_result {
  box clipped;     // the part within the output; of no volume where nothing is
  box unclipped;   // the axis-aligned envelope of the moved box
  double visible;  // volume of clipped / volume of unclipped
  bool converged;  // of every point of the envelope
};

// Whether a moved box is still worth keeping: at least this fraction of it is visible and it is at least this many
// voxels thick along every axis (less what the inversion of a deformation may be off).
struct box_filter {
  double least_visible = 0;
  double least_thickness = 1;

  bool keeps(const box_result& b) const {
    if (!(b.visible > 0 && b.visible >= least_visible)) return false;
    for (int k = 0; k < 3; ++k)
      if (!(b.clipped.high[k] - b.clipped.low[k] >= least_thickness - 2e-6)) return false;
    return true;
  }
};

namespace detail {

// The counterpart of cell_of in double: cell and position in it, held at the rim outside the mesh.
struct spline_cell {
  std::int32_t index;
  double t;
};
inline spline_cell spline_cell_of(double q, std::int32_t control_points) {
  const double cells = control_points - 3;
  const double held = q > 0 ? (q < cells ? q : cells) : 0;
  const double index = std::min(std::floor(held), cells - 1);
  return {static_cast<std::int32_t>(index), held - index};
}

inline void spline_weights(double t, double (&w)[4]) {
  constexpr double sixth = 1.0 / 6;
  const double s = 1 - t;
  w[0] = (s * s) * s * sixth;
  w[1] = fma(fma(0.5, t, -1.0), t * t, 2.0 / 3);
  w[2] = fma(fma(0.5, s, -1.0), s * s, 2.0 / 3);
  w[3] = (t * t) * t * sixth;
}

// u(y) of a deformation, control(component, z, y, x) giving its control values. Those of a cell are asked for once
// and kept: neighbouring points, and the iterations of one, mostly share a cell.
template <class Control>
class spline_displacement {
public:
  spline_displacement(const vec3<std::int32_t>& control_points, const affine_map& to_control, const Control& control)
      : control_points_(control_points), to_control_(to_control), control_(control) {}

  point3 operator()(const point3& y) {
    const point3 q = to_control_(y);
    vec3<std::int32_t> cell{};
    double w[3][4];
    for (int k = 0; k < 3; ++k) {
      const spline_cell c = spline_cell_of(q[k], control_points_[k]);
      cell[k] = c.index;
      spline_weights(c.t, w[k]);
    }
    const controls& v = controls_of(cell);
    point3 u{};
    for (int k = 0; k < 3; ++k) {
      const float* value = v[static_cast<std::size_t>(k)].data();
      double sum = 0;
      for (int a = 0; a < 4; ++a) {
        double plane = 0;
        for (int b = 0; b < 4; ++b) {
          double row = 0;
          for (int c = 0; c < 4; ++c) row = fma(w[2][c], static_cast<double>(*value++), row);
          plane = fma(w[1][b], row, plane);
        }
        sum = fma(w[0][a], plane, sum);
      }
      u[k] = sum;
    }
    return u;
  }

private:
  using controls = std::array<std::array<float, 64>, 3>;  // component, then the cell's control points, x fastest
  static constexpr std::size_t most_cells = 4096;         // 3 MiB

  const controls& controls_of(const vec3<std::int32_t>& cell) {
    const std::int64_t number = (std::int64_t{cell[0]} * control_points_[1] + cell[1]) * control_points_[2] + cell[2];
    if (number == last_) return *last_controls_;
    if (cells_.size() == most_cells && !cells_.contains(number)) cells_.clear();
    const auto [entry, is_new] = cells_.try_emplace(number);
    if (is_new)
      for (std::int32_t k = 0; k < 3; ++k)
        for (std::int32_t i = 0; i < 64; ++i)
          entry->second[static_cast<std::size_t>(k)][static_cast<std::size_t>(i)] =
              control_(k, cell[0] + (i >> 4), cell[1] + ((i >> 2) & 3), cell[2] + (i & 3));
    last_ = number;
    last_controls_ = &entry->second;
    return *last_controls_;
  }

  vec3<std::int32_t> control_points_;
  affine_map to_control_;
  Control control_;
  std::unordered_map<std::int64_t, controls> cells_;
  std::int64_t last_ = -1;
  const controls* last_controls_ = nullptr;
};

struct drawn_control {
  const deformation* drawn;
  float operator()(std::int32_t component, std::int32_t z, std::int32_t y, std::int32_t x) const {
    return control_value(*drawn, component, z, y, x);
  }
};

// Solves y + u(y) = x by y <- x - u(y), which contracts wherever u does not fold space.
struct undisplaced {
  point3 y;
  bool converged;
};
template <class Displacement>
undisplaced undisplace(const point3& x, Displacement&& u) {
  constexpr int most_iterations = 64;
  constexpr double tolerance = 1e-6;  // voxels of the deformed grid
  point3 y = x;
  for (int i = 0; i < most_iterations; ++i) {
    const point3 d = u(y);
    double moved = 0;
    for (int k = 0; k < 3; ++k) {
      const double next = x[k] - d[k];
      moved = std::max(moved, std::abs(next - y[k]));
      y[k] = next;
    }
    if (moved < tolerance) return {y, true};
  }
  return {y, false};
}

// False where a row is a combination of the others up to rounding; the scale of the map does not matter.
inline bool invertible(const matrix3& a) {
  double bound = 1;
  for (int i = 0; i < 3; ++i) bound *= std::max({std::abs(a[i][0]), std::abs(a[i][1]), std::abs(a[i][2])});
  const double d = std::abs(determinant(a));
  return std::isfinite(d) && d > 1e-12 * bound;
}

// The map of one sample in both directions. Refers to the geometry it was made from.
class sample_map {
public:
  explicit sample_map(const sample_geometry& g)
      : geometry_(g), displacement_(g.drawn.control_points, g.drawn.to_control, drawn_control{&g.drawn}) {
    for (int k = 0; k < 3 && g.deformed; ++k)
      single_voxel_[k] = static_cast<double>(g.drawn.control_points[k] - 3) < 1.5 * g.drawn.to_control.linear[k][k];
  }

  point3 to_source(const point3& output) {
    const point3 y = geometry_.to_deformed(output);
    return geometry_.to_source(geometry_.deformed ? sum(y, displacement_(y)) : y);
  }

  // Needed before to_output.
  void invert(const site& where) {
    const bool possible = invertible(geometry_.to_source.linear) && invertible(geometry_.to_deformed.linear);
    require(possible, where, "the map from output to source has determinant ",
            determinant(geometry_.to_source.linear) * determinant(geometry_.to_deformed.linear),
            " and cannot be inverted");
    from_source_ = inverse(geometry_.to_source);
    from_deformed_ = inverse(geometry_.to_deformed);
  }

  located_point to_output(const point3& source) {
    const undisplaced found = undeformed(source, [this](const point3& y) { return displacement_(y); });
    const point3 output = from_deformed_(found.y);
    const point3 read = to_source(output);
    const point3 off{read[0] - source[0], read[1] - source[1], read[2] - source[2]};
    return {output, std::sqrt(fma(off[0], off[0], fma(off[1], off[1], off[2] * off[2]))), found.converged};
  }

  // The envelope of the moved surface: of the corners alone where the map is affine, of a lattice of points on the
  // surface where it is deformed.
  box_result to_output(const box& source) {
    const vec3<int> steps = lattice(source);
    const double most = fixed_coordinate_limit * fixed_coordinate_limit;
    box_result r{{}, {{most, most, most}, {-most, -most, -most}}, 0, true};
    for (int a = 0; a <= steps[0]; ++a)
      for (int b = 0; b <= steps[1]; ++b) {
        const bool inner = a != 0 && a != steps[0] && b != 0 && b != steps[1];
        for (int c = 0; c <= steps[2]; c += inner ? steps[2] : 1) {
          const int at[3] = {a, b, c};
          point3 p{};
          for (int k = 0; k < 3; ++k) {
            const double w = static_cast<double>(at[k]) / steps[k];
            // low (1 - w) + high w, exact at both ends; the index half a voxel below the edge.
            p[k] = fma(w, source.high[k], fma(-w, source.low[k], source.low[k])) - 0.5;
          }
          const undisplaced found = undeformed(p, [this](const point3& y) { return flat_displacement(y); });
          const point3 q = from_deformed_(found.y);
          r.converged = r.converged && found.converged;
          for (int k = 0; k < 3; ++k) {
            r.unclipped.low[k] = std::min(r.unclipped.low[k], q[k] + 0.5);
            r.unclipped.high[k] = std::max(r.unclipped.high[k], q[k] + 0.5);
          }
        }
      }
    double part = 1, whole = 1;
    for (int k = 0; k < 3; ++k) {
      const auto voxels = static_cast<double>(geometry_.output.extents[k]);
      r.clipped.low[k] = std::clamp(r.unclipped.low[k], 0.0, voxels);
      r.clipped.high[k] = std::clamp(r.unclipped.high[k], 0.0, voxels);
      part *= r.clipped.high[k] - r.clipped.low[k];
      whole *= r.unclipped.high[k] - r.unclipped.low[k];
    }
    r.visible = part / whole;
    return r;
  }

private:
  static point3 sum(const point3& a, const point3& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }

  template <class Displacement>
  undisplaced undeformed(const point3& source, Displacement&& u) const {
    const point3 displaced = from_source_(source);
    return geometry_.deformed ? undisplace(displaced, u) : undisplaced{displaced, true};
  }

  // An axis of a single voxel is sampled at the voxel's centre alone, so a box moves there as its middle plane does.
  point3 flat_displacement(point3 y) {
    for (int k = 0; k < 3; ++k)
      if (single_voxel_[k]) y[k] = 0;
    return displacement_(y);
  }

  // Steps between the points of a box's surface: where deformed at least four, and two per control cell, along each
  // axis.
  vec3<int> lattice(const box& source) const {
    if (!geometry_.deformed) return {1, 1, 1};
    vec3<int> steps{};
    const matrix3 to_control = geometry_.drawn.to_control.linear * from_source_.linear;
    for (int j = 0; j < 3; ++j) {
      double cells = 0;  // an edge along axis j crosses at most this many control cells along an axis
      for (int i = 0; i < 3; ++i)
        cells = std::max(cells, std::abs(to_control[i][j] * (source.high[j] - source.low[j])));
      steps[j] = static_cast<int>(std::clamp(std::ceil(2 * cells), 4.0, 32.0));
    }
    return steps;
  }

  const sample_geometry& geometry_;
  affine_map from_source_, from_deformed_;
  spline_displacement<drawn_control> displacement_;
  vec3<bool> single_voxel_{false, false, false};
};

template <class Chain>
sample_map map_of(const planned<Chain>& plan, std::size_t sample, std::string_view name) {
  require(sample < plan.size(), {name}, "there is no sample ", sample, " in a plan of ", plan.size());
  return sample_map(plan.geometry(sample));
}

inline void check_point(const point3& p, const site& where) {
  for (int k = 0; k < 3; ++k)
    require(std::abs(p[k]) <= fixed_coordinate_limit, where, "point ", p, " must be finite and within ",
            fixed_coordinate_limit, " voxels");
}

inline void check_box(const box& b, const site& where) {
  check_point(b.low, where);
  check_point(b.high, where);
  for (int k = 0; k < 3; ++k)
    require(b.low[k] < b.high[k], where, "box from ", b.low, " to ", b.high, " is empty along axis ", k);
}

template <class From, class To, class Check, class Move>
void move_each(std::span<const From> from, std::span<To> to, const site& where, const Check& valid, const Move& move) {
  require(from.size() == to.size(), where, from.size(), " given, room for ", to.size());
  for (const From& each : from) valid(each, where);
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = move(from[i]);
}

}  // namespace detail

// to_source: the continuous source index that a continuous output index of a planned sample is read from,
//   source = to_source(y + u(y)), y = to_deformed(output); voxels, (z, y, x), index i the centre of voxel i.
//   In double and for any position, voxel or not; what the executors sample differs by the rounding of their
//   fixed-point and float coordinates, below 1e-4 voxel. Beyond the mesh of a deformation the displacement of its rim
//   continues.
// Errors: a sample that is not in the plan, a point that is not finite or beyond 4194304 voxels.
template <class Chain>
point3 to_source(const planned<Chain>& plan, std::size_t sample, const point3& output_index) {
  detail::sample_map map = detail::map_of(plan, sample, "to_source");
  detail::check_point(output_index, {"to_source", static_cast<std::int64_t>(sample)});
  return map.to_source(output_index);
}

// The same for many points, one result each. Also an error: as many results as points.
template <class Chain>
void to_source(const planned<Chain>& plan, std::size_t sample, std::span<const point3> output_indices,
               std::span<point3> source_indices) {
  detail::sample_map map = detail::map_of(plan, sample, "to_source");
  detail::move_each(output_indices, source_indices, {"to_source", static_cast<std::int64_t>(sample)},
                    detail::check_point, [&](const point3& p) { return map.to_source(p); });
}

// to_output: the continuous output index at which a continuous source index appears, the inverse of to_source. Affine
//   maps are inverted directly; a deformation by y <- x - u(y) until y moves by less than 1e-6 voxel, at most 64 times,
//   which suffices for what random_elastic draws without allow_folding. The result may lie outside the output.
// Errors: as to_source, and a map that cannot be inverted.
template <class Chain>
located_point to_output(const planned<Chain>& plan, std::size_t sample, const point3& source_index) {
  const site where{"to_output", static_cast<std::int64_t>(sample)};
  detail::sample_map map = detail::map_of(plan, sample, "to_output");
  map.invert(where);
  detail::check_point(source_index, where);
  return map.to_output(source_index);
}

template <class Chain>
void to_output(const planned<Chain>& plan, std::size_t sample, std::span<const point3> source_indices,
               std::span<located_point> output_indices) {
  const site where{"to_output", static_cast<std::int64_t>(sample)};
  detail::sample_map map = detail::map_of(plan, sample, "to_output");
  map.invert(where);
  detail::move_each(source_indices, output_indices, where, detail::check_point,
                    [&](const point3& p) { return map.to_output(p); });
}

// to_output of a box, edge coordinates in and out: the axis-aligned envelope of the moved box and its part within the
//   output. The envelope is exact where the map is affine (all eight corners); where it is deformed it is that of
//   points on the surface, at least five along every edge and two per control cell up to 33.
//   Give a box by its type, `suture::box{low, high}`: bare braces mean a point.
// Errors: as to_output of a point, and a box that is empty along an axis.
template <class Chain, std::same_as<box> Box>
box_result to_output(const planned<Chain>& plan, std::size_t sample, const Box& source_box) {
  const site where{"to_output", static_cast<std::int64_t>(sample)};
  detail::sample_map map = detail::map_of(plan, sample, "to_output");
  map.invert(where);
  detail::check_box(source_box, where);
  return map.to_output(source_box);
}

template <class Chain>
void to_output(const planned<Chain>& plan, std::size_t sample, std::span<const box> source_boxes,
               std::span<box_result> output_boxes) {
  const site where{"to_output", static_cast<std::int64_t>(sample)};
  detail::sample_map map = detail::map_of(plan, sample, "to_output");
  map.invert(where);
  detail::move_each(source_boxes, output_boxes, where, detail::check_box,
                    [&](const box& b) { return map.to_output(b); });
}

}  // namespace suture
