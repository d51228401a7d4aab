// SPDX-License-Identifier: Apache-2.0
// ITK's B-spline transforms of oracle cases, as the library's elastic deformations.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "../ref/elastic.hpp"
#include "oracle.hpp"
#include "oracle_geometry.hpp"
#include "suture/ops/geometry/elastic.hpp"
#include "suture/suture.hpp"

namespace support {

inline oracle_filter itk_bsplines_with(const char* interpolator) {
  return calls("itk.ResampleImageFilter", [=](const oracle_case& c) {
    return c.params.at("transform").at("type") == "BSplineTransform" && c.has("interpolator", interpolator);
  });
}

// The B-spline transform of a case as an elastic deformation, to be given `values` in the memory of the executor.
struct itk_bspline {
  suture::grid grid;
  suture::elastic how;
  std::vector<float> values;                   // (component, z, y, x), millimeters along the axes of the array
  std::array<reference::volume, 3> in_double;  // the same, a component each
  reference::size3 size;

  explicit itk_bspline(const oracle_case& c) {
    const nlohmann::json &p = c.params, &transform = p.at("transform");
    std::int64_t extents[3];
    double spacing[3], origin[3], direction[9];
    for (std::size_t k = 0; k < 3; ++k)
      extents[k] = p.at("size").at(k), spacing[k] = p.at("spacing").at(k), origin[k] = p.at("origin").at(k);
    for (std::size_t k = 0; k < 9; ++k) direction[k] = p.at("direction").at(k);
    grid = suture::grid_from_itk(extents, spacing, origin, direction);
    size = itk_size(p.at("size"));
    const reference::size3 mesh = itk_size(transform.at("mesh_size"));
    const reference::size3 points{mesh[0] + 3, mesh[1] + 3, mesh[2] + 3};
    // All displacements along x, then y, then z of the patient; an array axis points along a column of the direction.
    const std::vector<double> given = c.input<double>("coefs").values;
    const std::size_t count = given.size() / 3;
    double largest[3];
    how = {.locked_borders = 0, .allow_folding = true, .mesh = suture::mesh_span::centers};
    for (std::size_t k = 0; k < 3; ++k) {
      in_double[k] = reference::volume(points);
      double most = 0;
      for (std::size_t i = 0; i < count; ++i) {
        double along = 0;
        for (std::size_t r = 0; r < 3; ++r) along += direction[3 * r + 2 - k] * given[r * count + i];
        in_double[k].values[i] = along;
        values.push_back(static_cast<float>(along));
        most = std::max(most, std::abs(along));
      }
      largest[k] = most;
      how.control_points[static_cast<int>(k)] = static_cast<std::int32_t>(points[k]);
    }
    how.max_displacement_mm = {largest[0], largest[1], largest[2]};
  }

  // Where a voxel is read, in double.
  reference::point pull(const reference::point& v) const {
    reference::point q{}, result{};
    for (std::size_t k = 0; k < 3; ++k)
      q[k] = v[k] * static_cast<double>(in_double[0].size[k] - 3) / static_cast<double>(size[k] - 1);
    for (std::size_t k = 0; k < 3; ++k)
      result[k] = v[k] + reference::bspline_field(in_double[k], q) / grid.spacing[static_cast<int>(k)];
    return result;
  }

  // 1 but where rounding decides: on the faces of the domain whether ITK moves a point at all, at the rim of the image,
  // and, of the nearest, between two voxels.
  std::vector<double> clear(bool half_integers) const {
    const auto stay = [](const reference::point& v) { return v; };
    const auto move = [&](const reference::point& v) { return pull(v); };
    std::vector<double> mask = away_from_ties(size, size, stay, 1e-9, false, 0);
    const std::vector<double> moved = away_from_ties(size, size, move, 1e-4, half_integers, .5);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] *= moved[i];
    return mask;
  }
};

}  // namespace support
