// SPDX-License-Identifier: Apache-2.0
// Geometry that inverts the geometry of a plan, as test-time augmentation needs it.
#pragma once

#include <algorithm>
#include <type_traits>

#include "../base/fields.hpp"
#include "planned.hpp"
#include "point_map.hpp"

namespace suture {

namespace detail {

// Returns the geometry of sample `where` in the plan to be inverted. Refuses a missing sample, an input of another size
// than the plan's output, and a singular map.
inline const sample_geometry& find_undone(const geometry_list& plan, const grid& input, const site& where) {
  require(where.sample >= 0 && static_cast<std::size_t>(where.sample) < plan.size(), where,
          "there is no such sample in the plan of ", plan.size(), " that is undone");
  const sample_geometry& g = plan[static_cast<std::size_t>(where.sample)];
  require(input.extents == g.output.extents, where, "extents ", input.extents, " differ from ", g.output.extents,
          ", which the plan that is undone puts out");
  require(invertible(g.to_source.linear) && invertible(g.to_deformed.linear), where,
          "the map from output to source has determinant ",
          determinant(g.to_source.linear) * determinant(g.to_deformed.linear), " and cannot be undone");
  return g;
}

// Bounds the factor by which a step of v <- x - u(v) changes distances in control cells; below 1 the iteration
// converges. It is the greatest displacement times the supremum of the summed slopes of B-splines with coefficients in
// [-1, 1] (Choi and Lee 2000).
inline double contraction(const deformation& d) {
  double cells = 0;
  int bent_axes = 0;
  for (int k = 0; k < 3; ++k) {
    cells = std::max(cells, d.amplitude[k] * d.to_control.linear[k][k]);
    bent_axes += has_single_voxel(d, k) ? 0 : 1;
  }
  return cells * (bent_axes == 3 ? 2.4794723332 : 2.0463926742);
}

}  // namespace detail

// Result of `inverse_of` for a plan without an elastic deformation.
struct inverse_affine {
  static constexpr std::string_view name = "inverse_of";
  static constexpr auto gives_size = output_size::varying;
  static constexpr bool keeps_axes = false;

  detail::geometry_list plan;

  static constexpr auto parameters = named("plan", required(&inverse_affine::plan));

  geometry_step step(const grid& input, const site& where) const {
    const detail::sample_geometry& g = detail::find_undone(plan, input, where);
    return {g.source, inverse(g.to_source * g.to_deformed)};
  }
};

// Result of `inverse_of` for a plan with an elastic deformation.
struct inverse_elastic {
  static constexpr std::string_view name = "inverse_of";
  static constexpr auto gives_size = output_size::varying;

  detail::geometry_list plan;

  static constexpr auto parameters = named("plan", required(&inverse_elastic::plan));

  detail::sample_geometry undone(const grid& input, const site& where) const {
    const detail::sample_geometry& g = detail::find_undone(plan, input, where);
    detail::sample_geometry back;
    back.output = g.source;
    back.drawn = g.drawn;
    back.deformed = g.deformed;
    if (g.deformed) {
      const double factor = detail::contraction(g.drawn);
      require(factor < 1, where, "displacements of ", g.drawn.amplitude, " voxels may fold space, by a factor of ",
              factor, ", and cannot be undone; lower max_displacement_mm or widen control_spacing_mm");
      back.to_deformed = inverse(g.to_source);
      back.to_source = inverse(g.to_deformed);
    } else {
      back.to_source = inverse(g.to_source * g.to_deformed);
    }
    return back;
  }
};

// inverse_of: geometry that resamples images on the output grids of a plan to its source grids, sample by sample.
//   The input has the grid of the plan's output, the output that of its source, and index x of the output is read at
//     to_deformed^-1(v),  v + u(v) = to_source^-1(x),
//   the maps inverted in double, v found by v <- x - u(v), which contracts for every deformation that cannot fold,
//   until it moves by less than 1e-4 voxel of the grid that was deformed (control cells wider than 250 voxels: 4e-7 of
//   a cell). The remaining error of v + u(v) - x is less than that. Flips, quarter turns, permutations, crops and pads
//   are inverted exactly. As with other geometry, `sampling` sets interpolation and border, here outside the patch, and
//   more geometry may follow, as a crop of the source. A volume of ones that is inverted too tells how far the patch
//   covers each voxel. The plan must live until the plan that contains this operation has been made.
// Errors: a sample that is not in the plan, another size, a map that cannot be inverted, a displacement that may fold.
template <class Chain>
auto inverse_of(const planned<Chain>& plan) {
  using P = typename planned<Chain>::pipeline_type;
  static_assert(!P::inverts_deformation, "suture: inverse_of takes the plan that went out, not one that comes back");
  return std::conditional_t<P::has_deformation, inverse_elastic, inverse_affine>{plan.geometry()};
}
// A temporary plan gets an error message.
template <class Chain>
auto inverse_of(const planned<Chain>&& plan) {
  static_assert(!is_chain<Chain>::value,
                "suture: inverse_of: expected a plan with a name, got a temporary one, which is gone before the way "
                "back is planned. Keep it: const auto out = suture::plan(...); then inverse_of(out)");
  return inverse_of(plan);
}

}  // namespace suture
