// SPDX-License-Identifier: Apache-2.0
// The box of the source that a planned sample reads, so that only that box has to be loaded.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "../image/view.hpp"
#include "displacement.hpp"
#include "planned.hpp"

namespace suture {

namespace detail {

// Continuous source coordinates along each axis.
struct coordinate_range {
  point3 low, high;
};

// Offsets from floor(coordinate) to the first and the last voxel that an interpolation of the image or of labels reads
// along an axis. Voxels of weight 0 may be loaded too, so a copy also reads neighbors, unless image and labels each
// read one voxel.
template <class Interpolation>
inline constexpr int first_tap = Interpolation::taps == 4 ? -1 : 0;
template <class Interpolation>
inline constexpr int last_tap = Interpolation::taps == 4 ? 2 : 1;
template <class Interpolation, class Labels>
inline constexpr bool has_one_tap = Interpolation::taps == 1 &&
                                    (std::is_same_v<Labels, nearest> || std::is_same_v<Labels, nearest_half_even>);

inline double magnitude_of_row(const matrix3& m, int row, const point3& weights) {
  double sum = 0;
  for (int j = 0; j < 3; ++j) sum += std::abs(m[row][j]) * weights[j];
  return sum;
}

// Returns the range of the voxel centers of a grid of these extents under an affine map.
inline coordinate_range affine_range(const affine_map& map, const extent3& extents) {
  coordinate_range r{map.offset, map.offset};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const double reach = map.linear[i][j] * static_cast<double>(extents[j] - 1);
      (reach < 0 ? r.low : r.high)[i] += reach;
    }
  return r;
}

// Tests whether a map takes neighbors to neighbors, axis by axis: voxels are copied, and no others are read.
inline bool maps_voxels(const affine_map& map) {
  for (int i = 0; i < 3; ++i) {
    int axes = 0;
    for (int j = 0; j < 3; ++j) {
      const double step = std::abs(map.linear[i][j]);
      if (step != 0 && step != 1) return false;
      axes += step == 1 ? 1 : 0;
    }
    if (axes > 1 || map.offset[i] != std::floor(map.offset[i])) return false;
  }
  return true;
}

// Returns the range of the output under to_source(y + u(y)), y = to_deformed(index). The displacement u of control
// values within +- amplitude is evaluated on a lattice a quarter of a control cell apart. Between its points a
// multilinear interpolation is off by at most c^2 / 8 max |u''| along each axis, where c control cells are crossed by a
// step and |u''| is at most 4 times the amplitude; where the mesh ends, and u has a kink, by at most c / 2 max |u'|,
// |u'| at most 2 amplitudes.
inline coordinate_range deformed_range(const sample_geometry& g) {
  coordinate_range everywhere = affine_range(g.to_source * g.to_deformed, g.output.extents);
  for (int i = 0; i < 3; ++i) {
    const double reach = magnitude_of_row(g.to_source.linear, i, g.drawn.amplitude);
    everywhere.low[i] -= reach;
    everywhere.high[i] += reach;
  }
  // Given control values may lie on a device, and an inverse has no direct form: the largest displacement bounds both.
  if (g.inverted || g.drawn.given != nullptr) return everywhere;

  const affine_map to_control = g.drawn.to_control * g.to_deformed;
  vec3<int> steps{};
  double crossed[3];
  std::int64_t points = 1;
  for (int j = 0; j < 3; ++j) {
    const auto span = static_cast<double>(g.output.extents[j] - 1);
    double cells = 0;
    for (int k = 0; k < 3; ++k) cells += std::abs(to_control.linear[k][j]) * span;
    steps[j] = static_cast<int>(std::clamp(std::ceil(4 * cells), span > 0 ? 1.0 : 0.0, 24.0));
    crossed[j] = steps[j] > 0 ? cells / steps[j] : 0;
    points *= steps[j] + 1;
  }
  const coordinate_range q = affine_range(to_control, g.output.extents);
  bool has_kink = false;
  for (int k = 0; k < 3; ++k)
    has_kink = has_kink || q.low[k] < 0 || q.high[k] > static_cast<double>(g.drawn.control_points[k] - 3);
  double share = 0;  // as a share of the amplitude
  for (int j = 0; j < 3; ++j) share += has_kink ? crossed[j] : 0.5 * crossed[j] * crossed[j];
  if (share >= 1) return everywhere;

  spline_displacement u(g.drawn.control_points, g.drawn.to_control, drawn_control{&g.drawn});
  coordinate_range r{{fixed_coordinate_limit, fixed_coordinate_limit, fixed_coordinate_limit},
                     {-fixed_coordinate_limit, -fixed_coordinate_limit, -fixed_coordinate_limit}};
  for (std::int64_t p = 0; p < points; ++p) {
    std::int64_t rest = p;
    point3 index{};
    for (int j = 2; j >= 0; --j) {
      const auto at = static_cast<double>(rest % (steps[j] + 1));
      rest /= steps[j] + 1;
      index[j] = steps[j] > 0 ? at * static_cast<double>(g.output.extents[j] - 1) / steps[j] : 0;
    }
    point3 y = g.to_deformed(index);
    const point3 d = u(y);
    for (int k = 0; k < 3; ++k) y[k] += d[k];
    const point3 x = g.to_source(y);
    for (int k = 0; k < 3; ++k) {
      r.low[k] = std::min(r.low[k], x[k]);
      r.high[k] = std::max(r.high[k], x[k]);
    }
  }
  for (int i = 0; i < 3; ++i) {
    const double reach = share * magnitude_of_row(g.to_source.linear, i, g.drawn.amplitude);
    r.low[i] = std::max(r.low[i] - reach, everywhere.low[i]);
    r.high[i] = std::min(r.high[i] + reach, everywhere.high[i]);
  }
  return r;
}

struct index_range {
  std::int64_t low, high;
};
// Returns the range of voxels, on an axis of n, that the border rule reads for the indices low to high.
template <class Border>
index_range within(std::int64_t low, std::int64_t high, std::int64_t n) {
  const index_range all{0, n - 1};
  const index_range inside{std::clamp(low, all.low, all.high), std::clamp(high, all.low, all.high)};
  if (low >= 0 && high < n) return inside;
  if constexpr (std::is_same_v<Border, wrap>) return all;
  // Outside, `constant` reads no voxel and `edge` the outermost one; default_value mirrors.
  if constexpr (std::is_same_v<Border, constant> || std::is_same_v<Border, edge>) return inside;
  if (low < 1 - n || high > 2 * n - 2) return all;
  return {high >= n ? std::min(inside.low, 2 * n - 2 - high) : inside.low,
          low < 0 ? std::max(inside.high, -low) : inside.high};
}

}  // namespace detail

// Returns why a sample of the plan needs its whole source, or an empty text.
template <class Chain>
std::string_view needs_whole_source(const planned<Chain>&) {
  if constexpr (planned<Chain>::pipeline_type::prefiltered)
    return "cubic_bspline computes its coefficients from all voxels";
  else
    return "";
}

namespace detail {

// Computes source_box.
template <class Chain>
voxel_box box_of_sample(const planned<Chain>& plan, std::size_t i) {
  using pipeline = typename planned<Chain>::pipeline_type;
  using interpolation = typename pipeline::interpolation_type;
  const sample_geometry& g = plan.geometry(i);
  if (!needs_whole_source(plan).empty()) return {{0, 0, 0}, g.source.extents};
  const affine_map map = g.to_source * g.to_deformed;
  const bool copies = !g.deformed && !g.inverted && maps_voxels(map);
  // Coordinates are rounded to 2^-40 a step, displacements to float32.
  const double rounding = copies ? 0 : g.deformed || g.inverted ? 1.0 / 256 : 1.0 / 4096;
  const bool is_one_tap = copies && has_one_tap<interpolation, typename pipeline::label_type>;
  const auto range = g.deformed || g.inverted ? deformed_range(g) : affine_range(map, g.output.extents);
  voxel_box b{};
  for (int k = 0; k < 3; ++k) {
    const auto low = static_cast<std::int64_t>(std::floor(range.low[k] - rounding));
    const auto high = static_cast<std::int64_t>(std::floor(range.high[k] + rounding));
    const auto in =
        within<typename pipeline::border_type>(is_one_tap ? low : low + first_tap<interpolation>,
                                               is_one_tap ? high : high + last_tap<interpolation>, g.source.extents[k]);
    b.first[k] = in.low;
    b.size[k] = in.high - in.low + 1;
  }
  return b;
}

}  // namespace detail

// Returns a box of the source that holds every voxel that sample i of a plan may read, of images and label maps alike.
// It is inside the source, has at least one voxel, and is little larger than needed. With cubic_bspline it is the whole
// source; needs_whole_source says why. The borders reflect and mirror add the voxels that they repeat; wrap adds the
// whole axis. An elastic deformation is bounded by its displacement on a lattice and by its curvature, in some .4 ms a
// sample. One with given control values, and an inverted one, is bounded by its largest displacement. The first call
// computes the boxes of all samples, which the plan keeps; run() checks partial views against them. A sample that is not
// in the plan is an error.
template <class Chain>
voxel_box source_box(const planned<Chain>& plan, std::size_t i) {
  require(i < plan.size(), {"source_box"}, "there is no sample ", i, " in a plan of ", plan.size());
  return plan.kept_boxes([&] {
    std::vector<voxel_box> boxes;
    boxes.reserve(plan.size());
    for (std::size_t j = 0; j < plan.size(); ++j) boxes.push_back(detail::box_of_sample(plan, j));
    return boxes;
  })[i];
}

}  // namespace suture
