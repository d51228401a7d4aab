// SPDX-License-Identifier: Apache-2.0
// Elastic deformation by a cubic B-spline control grid, random or given.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "../../base/fields.hpp"
#include "../../image/deformation.hpp"
#include "../../image/geometry_step.hpp"
#include "../../image/grid.hpp"
#include "../common/axis_values.hpp"

namespace suture {

// Extent of the mesh of control points along each axis; outside of it the displacement of its rim continues.
//   faces    the image, from face to face of its outermost voxels
//   centers  from center to center of its outermost voxels: ITK, with physical dimensions of spacing * (size - 1)
//   itk      1/8 voxel more than the image on each side: ITK's BSplineTransformInitializer
enum class mesh_span : std::int32_t { faces, centers, itk };

// elastic: one free-form deformation, x_in = x_out + u(x_out); the content moves, the grid stays.
//   Control points stand control_spacing_mm apart (rounded so that a whole number of cells, at least one, fills the
//   volume: floor(extent / spacing + 1/2) of them), or are control_points (>= 4) in number along each axis; their
//   displacements are uniform in +-max_displacement_mm along each array axis and act as B-spline coefficients
//   (approximating, no prefilter).
//   The outer locked_borders layers do not move; an axis of too few control points to leave one free is not locked.
//   An axis of a single voxel (a 2D image) is neither bent nor bent along: it has one cell, whatever its spacing. The
//   image lies in the middle of the cell and averages its four layers of control points by 1/48, 23/48, 23/48 and 1/48,
//   so that displacements have .68 of the deviation that one layer would give them.
//   control_values are displacements that are given instead of drawn: millimeters along the array axes, (component, z,
//   y, x) with x fastest, components in the order z, y, x, three for each of control_points, which then have to be
//   stated. They lie in the memory of the executor that runs, which reads them when it runs (and on the host where
//   points are moved there). They are held to +-max_displacement_mm, by which folding is judged and room is kept: state
//   their largest magnitude. NaN is 0. The locked_borders layers are not moved by them either: 0 uses all.
// Right of what turns or shears its columns share their sums over control points, which is several times as fast.
// Folding: with cells of d mm along an axis, displacements up to 0.40 d (2D: 0.48 d) can never fold space (Choi and Lee
//   2000: 0.4033 and 0.4887); beyond that the operation is refused, unless allow_folding is set, or limit_to_safe,
//   which takes that much and no more along each axis: for batches of volumes of which some are thin.
// Errors: a spacing that is not positive, a negative displacement, control points fewer than 4 or more than 2^20 along
//   an axis, a displacement that may fold, control_values of another number than three for each control point or beside
//   limit_to_safe; by `plan`, more than 2^24 control points in all, and an output that reaches more than 4194304 control
//   cells away.
// Source: ITK BSplineTransform; TorchIO v1 RandomElasticDeformation (which locks only two of the axes).
struct elastic {
  static constexpr std::string_view name = "elastic";
  static constexpr auto gives_size = output_size::alike;

  axis_values control_spacing_mm = 32;
  axis_values max_displacement_mm = 8;
  std::int32_t locked_borders = 2;
  bool allow_folding = false;
  vec3<std::int32_t> control_points{0, 0, 0};  // 0: from control_spacing_mm
  mesh_span mesh = mesh_span::faces;
  bool limit_to_safe = false;
  std::span<const float> control_values{};  // none: drawn
  random_field field{};

  static constexpr auto fields =
      named("control_spacing_mm", &elastic::control_spacing_mm, "max_displacement_mm", &elastic::max_displacement_mm);
  static constexpr auto parameters =
      named("control_spacing_mm", &elastic::control_spacing_mm, "max_displacement_mm", &elastic::max_displacement_mm,
            "locked_borders", &elastic::locked_borders, "allow_folding", &elastic::allow_folding, "control_points",
            &elastic::control_points, "mesh", &elastic::mesh, "limit_to_safe", &elastic::limit_to_safe,
            "control_values", &elastic::control_values, "field", left_out(&elastic::field));

  deformation deform(const grid& input, const site& where) const {
    require(locked_borders >= 0, where, "locked_borders ", locked_borders, " must not be negative");
    int bent_axes = 0;
    for (int k = 0; k < 3; ++k) bent_axes += input.extents[k] > 1;
    const double bound = bent_axes == 3 ? 0.40 : 0.48;
    deformation result{};
    result.field = field;
    for (int k = 0; k < 3; ++k) {
      const auto voxels = static_cast<double>(input.extents[k]);
      const double cells = mesh_cells(k, input.extents[k], voxels * input.spacing[k], where);
      const double margin = margin_of(input.extents[k]);
      const double width = fma(2.0, margin, voxels);  // voxels the mesh covers
      result.control_points[k] = static_cast<std::int32_t>(cells) + 3;
      result.locked[k] = result.control_points[k] > 2 * std::int64_t{locked_borders} ? locked_borders : 0;
      const double scale = cells / width;
      result.to_control.linear[k][k] = scale;
      result.to_control.offset[k] = (0.5 + margin) * scale;

      double displacement = max_displacement_mm[k];
      const double cell_mm = width * input.spacing[k] / cells;
      require(std::isfinite(displacement) && displacement >= 0, where, "max_displacement_mm ", displacement,
              " must not be negative");
      if (input.extents[k] == 1) continue;
      if (limit_to_safe) displacement = std::min(displacement, bound * cell_mm);
      require(allow_folding || displacement <= bound * cell_mm, where, "max_displacement_mm ", displacement,
              " along axis ", k, " may fold space: with control points ", cell_mm, " mm apart at most ",
              bound * cell_mm,
              " mm is safe; lower it, widen control_spacing_mm, or set limit_to_safe or allow_folding");
      result.amplitude[k] = displacement / input.spacing[k];
    }
    if (!control_values.empty()) set_control_values(result, input, where);
    return result;
  }

private:
  static constexpr std::int32_t most_cells = 1 << 20;  // three axes and three components still count in 64 bits

  // Returns the voxels from the faces of the image to the ends of the mesh.
  double margin_of(std::int64_t voxels) const {
    if (mesh == mesh_span::itk) return 0.125;
    return mesh == mesh_span::centers && voxels > 1 ? -0.5 : 0;
  }

  void set_control_values(deformation& to, const grid& input, const site& where) const {
    std::size_t wanted = 3;
    for (int k = 0; k < 3; ++k) {
      require(control_points[k] != 0, where, "control_values need control_points along each axis, not ",
              control_points);
      wanted *= static_cast<std::size_t>(control_points[k]);
      to.per_mm[k] = static_cast<float>(1 / input.spacing[k]);
    }
    require(control_values.size() == wanted, where, control_values.size(), " control_values for ", control_points,
            " control points, which take ", wanted);
    require(control_values.data() != nullptr, where, "control_values is a null pointer");
    require(!limit_to_safe, where, "control_values are given, which limit_to_safe would change; scale them instead");
    to.given = control_values.data();
  }

  double mesh_cells(int axis, std::int64_t voxels, double extent_mm, const site& where) const {
    if (control_points[axis] != 0) {
      require(control_points[axis] >= 4 && control_points[axis] <= most_cells, where, "control_points ", control_points,
              " must be 4 to ", most_cells, " along each axis, or 0 to follow control_spacing_mm");
      return control_points[axis] - 3.0;
    }
    const double spacing = control_spacing_mm[axis];
    require(std::isfinite(spacing) && spacing > 0, where, "control_spacing_mm ", spacing, " must be positive");
    if (voxels == 1) return 1;
    const double cells = std::floor(extent_mm / spacing + 0.5);
    require(cells <= most_cells, where, "control_spacing_mm ", spacing, " makes ", cells, " cells over ", extent_mm,
            " mm; at most ", most_cells, " are possible");
    return cells < 1 ? 1 : cells;
  }
};

// random_elastic: an elastic whose control displacements are drawn anew (no slot: they come from the field of purpose
//   3, element ((k n_z + z) n_y + y) n_x + x for component k at control point (z, y, x)). Fields and errors as elastic.
struct random_elastic {
  static constexpr std::string_view name = "random_elastic";
  static constexpr auto gives_size = output_size::alike;
  static constexpr std::uint16_t kind = 2;

  axis_values control_spacing_mm = 32;
  axis_values max_displacement_mm = 8;
  std::int32_t locked_borders = 2;
  bool allow_folding = false;
  vec3<std::int32_t> control_points{0, 0, 0};  // 0: from control_spacing_mm
  mesh_span mesh = mesh_span::faces;
  bool limit_to_safe = false;
  float probability = 1;

  static constexpr auto parameters = named(
      "control_spacing_mm", &random_elastic::control_spacing_mm, "max_displacement_mm",
      &random_elastic::max_displacement_mm, "locked_borders", &random_elastic::locked_borders, "allow_folding",
      &random_elastic::allow_folding, "control_points", &random_elastic::control_points, "mesh", &random_elastic::mesh,
      "limit_to_safe", &random_elastic::limit_to_safe, "probability", &random_elastic::probability);

  elastic draw(draws& random, const site&) const {
    return {.control_spacing_mm = control_spacing_mm,
            .max_displacement_mm = max_displacement_mm,
            .locked_borders = locked_borders,
            .allow_folding = allow_folding,
            .control_points = control_points,
            .mesh = mesh,
            .limit_to_safe = limit_to_safe,
            .field = random.field(3)};
  }
};

}  // namespace suture
