// SPDX-License-Identifier: Apache-2.0
// Conversion of the geometry of a sample, which is in double, to the parameters that executors read.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "../base/in_place.hpp"
#include "../evaluate/sample_parameters.hpp"
#include "../image/sample_geometry.hpp"

namespace suture::detail {

// Refuses a map that takes an output voxel to coordinates beyond fixed_coordinate_limit. The corners suffice, as the map
// is affine. `what` are the coordinates and `units` what they count.
inline void check_reach(const affine_map& map, const grid& target, const site& where,
                        std::string_view what = "source index ", std::string_view units = " voxels") {
  bool near = true;  // bounds all corners
  for (int k = 0; k < 3; ++k) {
    double reach = std::abs(map.offset[k]);
    for (int j = 0; j < 3; ++j)
      reach = fma(std::abs(map.linear[k][j]), static_cast<double>(target.extents[j] - 1), reach);
    near = near && reach < 0.5 * fixed_coordinate_limit;
  }
  if (near) return;
  for (int corner = 0; corner < 8; ++corner) {
    point3 p{};
    for (int k = 0; k < 3; ++k) p[k] = (corner >> k) & 1 ? static_cast<double>(target.extents[k] - 1) : 0.0;
    const point3 q = map(p);
    for (int k = 0; k < 3; ++k)
      require(std::abs(q[k]) < fixed_coordinate_limit, where, "output voxel ", p, " maps to ", what, q, ", more than ",
              fixed_coordinate_limit, units, " away");
  }
}

// Refuses displacements that may reach fixed_coordinate_limit voxels of the source, even if the deformation is off in
// this sample: the error must not depend on chance.
inline void check_displacement(const sample_geometry& geometry, const site& where) {
  for (int k = 0; k < 3; ++k) {
    double reach = 0;
    for (int j = 0; j < 3; ++j)
      reach = fma(std::abs(geometry.to_source.linear[k][j]), geometry.drawn.amplitude[j], reach);
    require(reach < fixed_coordinate_limit, where, "displacements of up to ", reach, " voxels of the source, at most ",
            fixed_coordinate_limit, " are possible; lower max_displacement_mm");
  }
}

// Sets the control grid of an inverted deformation. Its displacement is solved for in control cells, so its vectors are
// in cells too.
inline void invert_controls(inverse_control_grid& c, const sample_geometry& geometry) {
  for (int k = 0; k < 3; ++k) {
    const double cells = geometry.drawn.to_control.linear[k][k];
    c.tolerance[k] = static_cast<float>(std::max(cells * inverse_tolerance_voxels, inverse_tolerance_cells));
    for (int i = 0; i < 3; ++i) {
      c.from_control[i][k] = static_cast<float>(geometry.to_source.linear[i][k] / cells);
      c.to_source[i][k] = i == k ? static_cast<float>(cells) : 0.0f;
    }
  }
}

// Sets the geometry in the parameters of a sample. `control_vectors` counts those of the samples before, and this
// sample's are added.
template <class Pipeline>
void set_geometry(sample_parameters<Pipeline>& out, const sample_geometry& geometry, const grid& target,
                  std::int64_t& control_vectors, const site& where) {
  for (int k = 0; k < 3; ++k) out.extents[k] = static_cast<std::int32_t>(target.extents[k]);
  const auto set_map = [&](const affine_map& map) {
    check_reach(map, target, where);
    make_at(out.map, [&] { return to_fixed(map, target.extents); });
  };
  if constexpr (Pipeline::has_deformation)
    set_map(composed(geometry.to_source, geometry.to_deformed));
  else
    set_map(geometry.to_source);
  const auto& row = out.map.linear[0];
  bool planar =
      geometry.source.extents[0] == 1 && target.extents[0] == 1 && out.map.offset[0] == 0 && row[1] == 0 && row[2] == 0;
  if (geometry.deformed) {
    const auto& z = geometry.to_source.linear[0];
    planar = planar && geometry.drawn.amplitude[0] == 0 && z[1] == 0 && z[2] == 0;
  }
  out.loops = 0;
  out.planar = planar ? 1 : 0;
  out.kind = kind_of(out.map, geometry.deformed);
  if constexpr (Pipeline::has_deformation) {
    auto& c = out.controls;
    const affine_map to_control = composed(geometry.drawn.to_control, geometry.to_deformed);
    check_reach(to_control, target, where, "position ", " control cells of elastic");
    make_at(c.to_control, [&] { return to_fixed(to_control); });
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) c.to_source[i][j] = static_cast<float>(geometry.to_source.linear[i][j]);
    if constexpr (Pipeline::inverts_deformation)
      invert_controls(c, geometry);
    else
      check_displacement(geometry, where);
    c.drawn = geometry.drawn;
    c.vectors = nullptr;
    c.on = geometry.deformed ? 1u : 0u;
    c.first = control_vectors;
    // Counted even if the deformation is off, so that the workspace does not depend on chance.
    const auto n = vec_cast<std::int64_t>(geometry.drawn.control_points);
    control_vectors += n[0] * n[1] * n[2];
  }
}

}  // namespace suture::detail
