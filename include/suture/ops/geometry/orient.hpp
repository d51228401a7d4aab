// SPDX-License-Identifier: Apache-2.0
// Reorientation to anatomical axis codes such as RAS or LPS.
#pragma once

#include <cmath>
#include <utility>

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "relabel.hpp"

namespace suture {

// orient: flips and reorders the array axes so that they run as closely as possible in the anatomical directions of
//   `to`. Its three letters name where the x, y and z index (fastest first, as NIfTI, ITK and 3D Slicer list them)
//   increases towards: R or L, A or P, S or I, one of each pair. Each array axis is matched to the nearest patient
//   axis, the best match first; nothing is interpolated, so an oblique image stays oblique. The physical place of every
//   voxel is kept. Physical positions are LPS millimeters, as in DICOM and ITK (see grid_from_itk). Source: nibabel
//   io_orientation, MONAI Orientation. Errors: other letters, a direction named twice.
struct orient {
  static constexpr std::string_view name = "orient";
  static constexpr auto gives_size = output_size::varying;
  static constexpr bool keeps_axes = false;

  std::string_view to = "LPS";  // refers to text that must outlive the operation, as a literal does

  static constexpr auto parameters = named("to", &orient::to);

  geometry_step step(const grid& input, const site& where) const {
    require(to.size() == 3, where, "orientation \"", to, "\" must have three letters");
    const vec3<int> nearest = nearest_patient_axes(input.direction);
    detail::axis_relabeling relabeling{};
    int seen = 0;
    for (int k = 0; k < 3; ++k) {
      // Patient axes in (z, y, x) order, each as the letter it increases towards in LPS and the opposite one.
      static constexpr std::string_view letters = "SIPALR";
      const auto letter = letters.find(to[static_cast<std::size_t>(2 - k)]);
      require(letter != std::string_view::npos, where, "orientation \"", to,
              "\" must consist of R or L, A or P, S or I");
      const int patient_axis = static_cast<int>(letter / 2);
      seen |= 1 << patient_axis;
      for (int from = 0; from < 3; ++from)
        if (nearest[from] == patient_axis) relabeling.source[k] = from;
      const bool runs_negative = input.direction[patient_axis][relabeling.source[k]] < 0;
      relabeling.reversed[k] = runs_negative != (letter % 2 == 1);
    }
    require(seen == 7, where, "orientation \"", to, "\" must have one letter of each of R/L, A/P, S/I");
    return relabeling.step(input);
  }

private:
  // Returns for each array axis the patient axis it runs along; the axis with the clearest match chooses first.
  static vec3<int> nearest_patient_axes(const matrix3& direction) {
    const auto largest = [&](int axis) {
      return std::fmax(std::abs(direction[0][axis]),
                       std::fmax(std::abs(direction[1][axis]), std::abs(direction[2][axis])));
    };
    vec3<int> order{2, 1, 0};  // x first among equals, as nibabel
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i < 2; ++i)
        if (largest(order[i + 1]) > largest(order[i])) std::swap(order[i], order[i + 1]);
    vec3<int> nearest{};
    bool taken[3] = {};
    for (int axis : order.v) {
      int best = -1;
      for (int patient = 2; patient >= 0; --patient)
        if (!taken[patient] && (best < 0 || std::abs(direction[patient][axis]) > std::abs(direction[best][axis])))
          best = patient;
      nearest[axis] = best;
      taken[best] = true;
    }
    return nearest;
  }
};

}  // namespace suture
