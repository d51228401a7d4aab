// SPDX-License-Identifier: Apache-2.0
// Geometry by its definitions: each operation says where a voxel comes from, and what becomes of the grid; positions go
// through them one by one, nothing is composed.
#pragma once

#include "bounded.hpp"
#include "ref/elastic.hpp"

namespace fuzz {

using reference::affine;
using reference::point;

inline point in_order(const suture::point3& p) { return {p[0], p[1], p[2]}; }
inline reference::matrix in_order(const suture::matrix3& m) {
  reference::matrix r{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) r[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = m[i][j];
  return r;
}
// Index to millimeters of the patient.
inline affine placed(const suture::grid& g) {
  return {reference::product(in_order(g.direction), reference::diagonal(in_order(g.spacing))), in_order(g.origin)};
}
inline void pull_by(sample_reference& r, const affine& pull) {
  r.pulls.push_back([pull](const point& p) { return pull(p); });
}
// The content moves, the grid stays.
inline void move_content(sample_reference& r, const affine& about_center) {
  const point c = reference::volume(r.size()).center();
  affine pull = reference::about(about_center.linear, c, c);
  for (std::size_t k = 0; k < 3; ++k) pull.offset[k] += about_center.offset[k];
  pull_by(r, pull);
}
// Voxels get another index and keep their place.
inline void keep_place(sample_reference& r, const affine& pull, const suture::extent3& extents) {
  const affine whole = reference::composed(placed(r.grid), pull);
  r.grid.extents = extents;
  for (std::size_t j = 0; j < 3; ++j) {
    double square = 0;
    for (std::size_t i = 0; i < 3; ++i) square += whole.linear[i][j] * whole.linear[i][j];
    const int axis = static_cast<int>(j);
    r.grid.spacing[axis] = std::sqrt(square);
    for (std::size_t i = 0; i < 3; ++i)
      r.grid.direction[static_cast<int>(i)][axis] = whole.linear[i][j] / std::sqrt(square);
    r.grid.origin[axis] = whole.offset[j];
  }
  pull_by(r, pull);
}
inline void take_box(sample_reference& r, const suture::extent3& start, const suture::extent3& size) {
  keep_place(r,
             {reference::identity(),
              {static_cast<double>(start[0]), static_cast<double>(start[1]), static_cast<double>(start[2])}},
             size);
}

inline void reference_of(sample_reference&, const suture::identity&, const operation_fields&) {}
inline void reference_of(sample_reference& r, const suture::crop& o, const operation_fields&) {
  take_box(r, o.start, o.size);
}
inline void reference_of(sample_reference& r, const suture::crop_from& o, const operation_fields&) {
  take_box(r, o.start, o.size);
}
inline void reference_of(sample_reference& r, const suture::center_crop& o, const operation_fields&) {
  const auto& n = r.grid.extents;
  take_box(r, {n[0] / 2 - o.size[0] / 2, n[1] / 2 - o.size[1] / 2, n[2] / 2 - o.size[2] / 2}, o.size);
}
inline void reference_of(sample_reference& r, const suture::pad& o, const operation_fields&) {
  const auto& n = r.grid.extents;
  take_box(r, {-o.before[0], -o.before[1], -o.before[2]},
           {n[0] + o.before[0] + o.after[0], n[1] + o.before[1] + o.after[1], n[2] + o.before[2] + o.after[2]});
}
inline void reference_of(sample_reference& r, const suture::pad_to& o, const operation_fields&) {
  suture::extent3 start{}, size{};
  for (int k = 0; k < 3; ++k) {
    size[k] = std::max(o.size[k], r.grid.extents[k]);
    start[k] = -((size[k] - r.grid.extents[k]) / 2);
  }
  take_box(r, start, size);
}
inline void reference_of(sample_reference& r, const suture::crop_or_pad& o, const operation_fields&) {
  suture::extent3 start{};
  for (int k = 0; k < 3; ++k)
    start[k] =
        o.size[k] > r.grid.extents[k] ? -((o.size[k] - r.grid.extents[k]) / 2) : r.grid.extents[k] / 2 - o.size[k] / 2;
  take_box(r, start, o.size);
}
// Output axis k is input axis source[k], read backwards where reversed[k].
inline void relabel(sample_reference& r, const int (&source)[3], const bool (&reversed)[3]) {
  affine pull{{}, {0, 0, 0}};
  suture::extent3 size{};
  for (int k = 0; k < 3; ++k) {
    const auto from = static_cast<std::size_t>(source[k]);
    size[k] = r.grid.extents[source[k]];
    pull.linear[from][static_cast<std::size_t>(k)] = reversed[k] ? -1 : 1;
    if (reversed[k]) pull.offset[from] = static_cast<double>(size[k] - 1);
  }
  keep_place(r, pull, size);
}
inline void reference_of(sample_reference& r, const suture::flip& o, const operation_fields&) {
  relabel(r, {0, 1, 2}, {o.axes[0], o.axes[1], o.axes[2]});
}
inline void reference_of(sample_reference& r, const suture::permute& o, const operation_fields&) {
  relabel(r, {o.order[0], o.order[1], o.order[2]}, {false, false, false});
}
// numpy.rot90, one quarter turn after the other: out(i, j) = in(j, N - 1 - i).
inline void reference_of(sample_reference& r, const suture::rot90& o, const operation_fields&) {
  for (int turn = 0; turn < ((o.quarter_turns % 4) + 4) % 4; ++turn) {
    const auto first = static_cast<std::size_t>(o.axes.first), second = static_cast<std::size_t>(o.axes.second);
    affine pull{reference::identity(), {0, 0, 0}};
    pull.linear[first] = pull.linear[second] = {0, 0, 0};
    pull.linear[first][second] = 1;
    pull.linear[second][first] = -1;
    pull.offset[second] = static_cast<double>(r.grid.extents[o.axes.second] - 1);
    suture::extent3 size = r.grid.extents;
    std::swap(size[o.axes.first], size[o.axes.second]);
    keep_place(r, pull, size);
  }
}
// Only for directions whose axes stand far from diagonals, as all here do: each array axis has one patient axis.
inline void reference_of(sample_reference& r, const suture::orient& o, const operation_fields&) {
  const char* const positive = "SPL";  // towards which z, y and x of the patient grow
  const char* const negative = "IAR";
  int source[3] = {};
  bool reversed[3] = {};
  for (int k = 0; k < 3; ++k) {
    const char letter = o.to[static_cast<std::size_t>(2 - k)];
    for (int patient = 0; patient < 3; ++patient) {
      if (letter != positive[patient] && letter != negative[patient]) continue;
      for (int axis = 0; axis < 3; ++axis) {
        const double along = r.grid.direction[patient][axis];
        if (std::abs(along) < .75) continue;
        source[k] = axis;
        reversed[k] = (along > 0) != (letter == positive[patient]);
      }
    }
  }
  bool whole = source[0] + source[1] + source[2] == 3 && source[0] != source[1] && source[1] != source[2];
  if (!whole) {
    r.known = r.places_known = false;  // axes half way between
    r.without = "orient of an oblique grid";
    return;
  }
  relabel(r, source, reversed);
}

inline void resample_to_extents(sample_reference& r, suture::coordinate_map map, const suture::extent3& size,
                                const suture::point3& spacing) {
  affine pull{};
  suture::grid to = r.grid;
  to.extents = size;
  for (int k = 0; k < 3; ++k) {
    const auto axis = static_cast<std::size_t>(k);
    const std::int64_t n = r.grid.extents[k], m = size[k];
    const double from = r.grid.spacing[k], width = static_cast<double>(n) * from;
    const auto at = [&](double i) {
      switch (map) {
        case suture::coordinate_map::half_pixel:
          return reference::half_pixel(i, n, m);
        case suture::coordinate_map::align_corners:
          return m == 1 ? i : reference::align_corners(i, n, m);
        case suture::coordinate_map::origin_preserving:
          return reference::origin_preserving(i, from, spacing[k]);
        case suture::coordinate_map::center_preserving:
          return reference::center_preserving(i, n, m, from, spacing[k]);
        case suture::coordinate_map::physical:
          break;
      }
      return (i + .5) * spacing[k] / from - .5;
    };
    pull.offset[axis] = at(0);
    pull.linear[axis][axis] = at(1) - at(0);
    to.spacing[k] = map == suture::coordinate_map::half_pixel ? width / static_cast<double>(m)
                    : map == suture::coordinate_map::align_corners
                        ? (m == 1 ? from : from * static_cast<double>(n - 1) / static_cast<double>(m - 1))
                        : spacing[k];
  }
  const point origin = placed(r.grid)(pull.offset);
  for (int k = 0; k < 3; ++k) to.origin[k] = origin[static_cast<std::size_t>(k)];
  r.grid = to;
  pull_by(r, pull);
}
inline void reference_of(sample_reference& r, const suture::resample& o, const operation_fields&) {
  suture::extent3 size = o.extents;
  suture::point3 spacing = o.spacing_mm;
  for (int k = 0; k < 3; ++k) {
    const double from = r.grid.spacing[k];
    if (spacing[k] == 0) spacing[k] = from;
    if (size[k] != 0) continue;
    const std::int64_t n = r.grid.extents[k];
    const bool nnunet = o.map == suture::coordinate_map::half_pixel || o.map == suture::coordinate_map::physical;
    size[k] = nnunet                                               ? reference::nnunet_size(n, from, spacing[k])
              : o.map == suture::coordinate_map::center_preserving ? reference::torchio_size(n, from, spacing[k])
                                                                   : reference::monai_size(n, from, spacing[k]);
  }
  resample_to_extents(r, o.map, size, spacing);
}
inline void reference_of(sample_reference& r, const suture::resize& o, const operation_fields&) {
  suture::extent3 size = o.extents;
  for (int k = 0; k < 3; ++k)
    if (size[k] == 0) size[k] = r.grid.extents[k];
  resample_to_extents(r, o.map, size, r.grid.spacing);
}
inline void reference_of(sample_reference& r, const suture::resample_to& o, const operation_fields&) {
  pull_by(r, reference::composed(reference::inverted(placed(r.grid)), placed(o.target)));
  r.grid = o.target;
}
inline void reference_of(sample_reference& r, const suture::affine_matrix& o, const operation_fields&) {
  const affine given{in_order(o.linear), in_order(o.translation)};
  if (o.about_center)
    move_content(r, given);
  else
    pull_by(r, given);
}

// (x, y, z) for (z, y, x), and back.
inline point turned_about(const point& p) { return {p[2], p[1], p[0]}; }
inline affine turned_about(const affine& a) {
  affine r{};
  for (std::size_t i = 0; i < 3; ++i) {
    r.offset[i] = a.offset[2 - i];
    for (std::size_t j = 0; j < 3; ++j) r.linear[i][j] = a.linear[2 - i][2 - j];
  }
  return r;
}
// The rotation by |v| degrees about v, right-handed.
inline reference::matrix about_vector(const point& v) {
  const double degrees = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  if (degrees == 0) return reference::identity();
  const double a = degrees * std::acos(-1.0) / 180;
  const point u{v[0] / degrees, v[1] / degrees, v[2] / degrees};
  const reference::matrix k{{{0, -u[2], u[1]}, {u[2], 0, -u[0]}, {-u[1], u[0], 0}}}, kk = reference::product(k, k);
  reference::matrix r = reference::identity();
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) r[i][j] += std::sin(a) * k[i][j] + (1 - std::cos(a)) * kk[i][j];
  return r;
}
inline void reference_of(sample_reference& r, const suture::affine& o, const operation_fields&) {
  const double radians = std::acos(-1.0) / 180;
  const point angles{o.rotate_deg[0] * radians, o.rotate_deg[1] * radians, o.rotate_deg[2] * radians};
  const point scale = in_order(o.scale), shift = in_order(o.translate);
  const std::array<double, 6> shear{o.shear.v[0], o.shear.v[1], o.shear.v[2], o.shear.v[3], o.shear.v[4], o.shear.v[5]};
  const reference::matrix sheared{{{1, shear[0], shear[1]}, {shear[2], 1, shear[3]}, {shear[4], shear[5], 1}}};
  const reference::matrix last_first =
      reference::product(reference::product(reference::rotation_2(angles[2]), reference::rotation_1(angles[1])),
                         reference::rotation_0(angles[0]));
  const auto in_voxels = [&](const affine& mm, const reference::matrix& axes) {  // of a pull in millimeters
    const affine to_mm{axes, {0, 0, 0}};
    return reference::composed(reference::inverted(to_mm), reference::composed(mm, to_mm));
  };
  const reference::matrix patient = placed(r.grid).linear;
  switch (o.convention) {
    case suture::affine_convention::suture:
      return move_content(
          r, in_voxels(
                 reference::inverted(affine{
                     reference::product(last_first, reference::product(sheared, reference::diagonal(scale))), shift}),
                 reference::diagonal(in_order(r.grid.spacing))));
    case suture::affine_convention::monai:
      return move_content(r, reference::monai_affine(angles, shear, shift, scale));
    case suture::affine_convention::monai_xyz: {
      // MONAI's own matrix for components x, y, z, seen from z, y, x.
      const std::array<double, 6> turned_shear = {shear[5], shear[4], shear[3], shear[2], shear[1], shear[0]};
      return move_content(r, turned_about(reference::monai_affine(turned_about(angles), turned_shear,
                                                                  turned_about(shift), turned_about(scale))));
    }
    case suture::affine_convention::nnunet:
      return move_content(r, {reference::product(last_first, reference::diagonal(scale)), {0, 0, 0}});
    case suture::affine_convention::itk:
      return move_content(
          r, in_voxels(turned_about(affine{reference::itk_euler(angles[2], angles[1], angles[0]), turned_about(shift)}),
                       patient));
    case suture::affine_convention::torchio:
      return move_content(
          r, in_voxels(turned_about(reference::inverted(reference::torchio_forward(
                           turned_about(in_order(o.rotate_deg)), turned_about(scale), turned_about(shift)))),
                       patient));
    case suture::affine_convention::kornia:
      break;
  }
  const point v = turned_about(in_order(o.rotate_deg));
  const reference::matrix turn = about_vector({-v[0], -v[1], -v[2]});
  move_content(r, turned_about(reference::inverted(affine{
                      reference::product(turn, reference::diagonal(turned_about(scale))), turned_about(shift)})));
}

// At control coordinates q; outside of the control grid that of its border.
inline point displacement_at(const std::array<reference::volume, 3>& control, point q) {
  for (std::size_t k = 0; k < 3; ++k) q[k] = std::clamp(q[k], 0., static_cast<double>(control[0].size[k] - 3));
  return {reference::bspline_field(control[0], q), reference::bspline_field(control[1], q),
          reference::bspline_field(control[2], q)};
}
// From the faces of the image to the ends of the mesh.
inline double margin_of(suture::mesh_span mesh, std::int64_t voxels) {
  switch (mesh) {
    case suture::mesh_span::itk:
      return .125;
    case suture::mesh_span::centers:
      return voxels == 1 ? 0 : -.5;
    case suture::mesh_span::faces:
      break;
  }
  return 0;
}
inline void reference_of(sample_reference& r, const suture::elastic& o, const operation_fields& f) {
  const auto& n = r.grid.extents;
  const int bent = (n[0] > 1) + (n[1] > 1) + (n[2] > 1);
  std::array<reference::integer, 3> points{}, locked{};
  std::array<double, 3> amplitude{}, margins{};
  for (int k = 0; k < 3; ++k) {
    const auto axis = static_cast<std::size_t>(k);
    const double voxels = static_cast<double>(n[k]), mm = r.grid.spacing[k];
    const double margin = margins[axis] = margin_of(o.mesh, n[k]);
    double cells = std::fmax(1, std::floor(voxels * mm / o.control_spacing_mm[k] + .5));
    if (n[k] == 1) cells = 1;
    if (o.control_points[k] != 0) cells = o.control_points[k] - 3;
    points[axis] = static_cast<reference::integer>(cells) + 3;
    locked[axis] = points[axis] > 2 * o.locked_borders ? o.locked_borders : 0;
    const double safe = (bent == 3 ? .40 : .48) * (voxels + 2 * margin) * mm / cells;
    amplitude[axis] =
        n[k] == 1 ? 0 : (o.limit_to_safe ? std::fmin(o.max_displacement_mm[k], safe) : o.max_displacement_mm[k]) / mm;
  }
  const auto words = f.field(3);
  std::array<reference::volume, 3> control;
  std::uint64_t element = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    control[k] = reference::volume({points[0], points[1], points[2]});
    for (reference::integer z = 0; z < points[0]; ++z)
      for (reference::integer y = 0; y < points[1]; ++y)
        for (reference::integer x = 0; x < points[2]; ++x, ++element) {
          const reference::integer at[3] = {z, y, x};
          bool held = false;
          for (std::size_t j = 0; j < 3; ++j) held = held || at[j] < locked[j] || at[j] >= points[j] - locked[j];
          control[k].at(z, y, x) = held ? 0 : amplitude[k] * (2 * reference::element_uniform(words, element) - 1);
        }
  }
  r.pulls.push_back([control, size = r.size(), margins](const point& p) {
    point q{};
    for (std::size_t k = 0; k < 3; ++k)
      q[k] = reference::control_position(p[k], size[k], control[k].size[k], margins[k]);
    const point u = displacement_at(control, q);
    return point{p[0] + u[0], p[1] + u[1], p[2] + u[2]};
  });
}

// What undoes a plan: its map is taken as it is, checked where it stands in a chain itself, and inverted here.
inline affine in_order(const suture::affine_map& m) { return {in_order(m.linear), in_order(m.offset)}; }
inline void reference_of(sample_reference& r, const suture::inverse_affine& o, const operation_fields&,
                         std::size_t sample) {
  const auto& g = o.plan[sample];
  pull_by(r, reference::inverted(reference::composed(in_order(g.to_source), in_order(g.to_deformed))));
  r.grid = g.source;
}
inline void reference_of(sample_reference& r, const suture::inverse_elastic& o, const operation_fields&,
                         std::size_t sample) {
  const auto& g = o.plan[sample];
  pull_by(r, reference::inverted(in_order(g.to_deformed)));
  if (g.deformed) {
    std::array<reference::volume, 3> control;
    const auto& n = g.drawn.control_points;
    for (int k = 0; k < 3; ++k) {
      auto& c = control[static_cast<std::size_t>(k)];
      c = reference::volume({n[0], n[1], n[2]});
      for (std::int32_t z = 0; z < n[0]; ++z)
        for (std::int32_t y = 0; y < n[1]; ++y)
          for (std::int32_t x = 0; x < n[2]; ++x)
            c.at(z, y, x) = static_cast<double>(suture::control_value(g.drawn, k, z, y, x));
    }
    const affine to_control = in_order(g.drawn.to_control);
    r.pulls.push_back([control, to_control](const point& x) {
      point v = x;
      for (int turn = 0; turn < 500; ++turn) {
        const point u = displacement_at(control, to_control(v));
        double moved = 0;
        for (std::size_t k = 0; k < 3; ++k) {
          const double next = x[k] - u[k];
          moved = std::fmax(moved, std::abs(next - v[k]));
          v[k] = next;
        }
        if (moved < 1e-9) break;
      }
      return v;
    });
    r.place_error += 2e-4;
  }
  pull_by(r, reference::inverted(in_order(g.to_source)));
  r.grid = g.source;
}

}  // namespace fuzz
