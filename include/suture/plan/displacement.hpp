// SPDX-License-Identifier: Apache-2.0
// The displacement of a deformation at single points, in double, on the host.
#pragma once

#include <array>
#include <cstdint>
#include <new>
#include <unordered_map>
#include <utility>

#include "point_map.hpp"

namespace suture::detail {

// The displacement u(y) of a deformation in voxels of the deformed grid. control(component, z, y, x) returns a control
// value. Those of a cell are computed once and kept: neighboring points, and the iterations of one, mostly share a
// cell. Not for several threads at once.
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
    const std::int64_t cell_index =
        (std::int64_t{cell[0]} * control_points_[1] + cell[1]) * control_points_[2] + cell[2];
    if (cell_index == last_) return *last_controls_;
    if (cells_.size() == most_cells && !cells_.contains(cell_index)) cells_.clear();
    const auto [made, is_new] = place_of(cell_index);
    if (is_new)
      for (std::int32_t k = 0; k < 3; ++k)
        for (std::int32_t i = 0; i < 64; ++i)
          (*made)[static_cast<std::size_t>(k)][static_cast<std::size_t>(i)] =
              control_(k, cell[0] + (i >> 4), cell[1] + ((i >> 2) & 3), cell[2] + (i & 3));
    last_ = cell_index;
    last_controls_ = made;
    return *made;
  }

  // Returns where the control values of a cell are or go, and true if they are not there yet. Without memory for another
  // cell they are not kept: an exception would end the program where OpenMP runs this.
  std::pair<controls*, bool> place_of(std::int64_t cell_index) {
    try {
      const auto [entry, is_new] = cells_.try_emplace(cell_index);
      return {&entry->second, is_new};
    } catch (const std::bad_alloc&) {
      return {&not_kept_, true};
    }
  }

  vec3<std::int32_t> control_points_;
  affine_map to_control_;
  Control control_;
  std::unordered_map<std::int64_t, controls> cells_;
  controls not_kept_{};
  std::int64_t last_ = -1;
  const controls* last_controls_ = nullptr;
};

struct drawn_control {
  const deformation* drawn;
  float operator()(std::int32_t component, std::int32_t z, std::int32_t y, std::int32_t x) const {
    return control_value(*drawn, component, z, y, x);
  }
};

}  // namespace suture::detail
