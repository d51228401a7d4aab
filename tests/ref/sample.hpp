// SPDX-License-Identifier: Apache-2.0
// The value of a volume at a continuous index: every interpolation with every rule for what lies outside.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>

#include "border.hpp"
#include "coordinates.hpp"
#include "spline.hpp"
#include "volume.hpp"

namespace reference {

enum class interpolation {
  nearest,       // floor(x + 1/2)
  nearest_even,  // half to even: torch grid_sample
  linear,
  catmull_rom,
  torch_cubic,
  bspline,  // of a volume of coefficients: prefilter first
};

enum class outside {
  edge,  // neighbors by index map ...
  reflect,
  mirror,
  wrap,
  blend_constant,        // a missing neighbor is the constant: SciPy grid-constant; torch zeros
  scipy_constant,        // any coordinate below 0 or above n - 1 gives the constant; inside, mirrored neighbors
  half_voxel_constant,   // ITK: constant beyond half a voxel from the outermost centers; edge (cubics: mirror) inside
  clamp_coordinate,      // torch border
  torch_reflect_faces,   // torch reflection, align_corners = False
  torch_reflect_centers  // torch reflection, align_corners = True
};

struct sampling {
  interpolation how = interpolation::linear;
  outside rule = outside::edge;
  double constant = 0;
};

struct axis_taps {
  integer first = 0;
  int count = 1;
  weights4 weight{1, 0, 0, 0};
};

inline axis_taps taps(interpolation how, double x) {
  if (how == interpolation::nearest) return {round_half_up(x), 1, {1}};
  if (how == interpolation::nearest_even) return {round_half_even(x), 1, {1}};
  const double base = std::floor(x);
  const double t = x - base;
  const auto i = static_cast<integer>(base);
  if (how == interpolation::linear) return {i, 2, {1 - t, t}};
  if (how == interpolation::catmull_rom) return {i - 1, 4, keys_weights(t, -0.5)};
  if (how == interpolation::torch_cubic) return {i - 1, 4, keys_weights(t, -0.75)};
  return {i - 1, 4, bspline_weights(t)};
}

inline bool has_four_taps(interpolation how) {
  return how == interpolation::catmull_rom || how == interpolation::torch_cubic || how == interpolation::bspline;
}

// Calls visit(weight, value) for every voxel, or constant, that the sample at p is made of.
template <class Visit>
void for_each_tap(const volume& v, point p, const sampling& s, Visit&& visit) {
  border map = border::edge;
  for (std::size_t k = 0; k < 3; ++k) {
    const auto last = static_cast<double>(v.size[k] - 1);
    switch (s.rule) {
      case outside::edge:
      case outside::blend_constant:
        break;
      case outside::reflect:
        map = border::reflect;
        break;
      case outside::mirror:
        map = border::mirror;
        break;
      case outside::wrap:
        map = border::wrap;
        break;
      case outside::scipy_constant:
        if (p[k] < 0 || p[k] > last) return visit(1.0, s.constant);
        map = border::mirror;
        break;
      case outside::half_voxel_constant:
        if (p[k] < -0.5 || p[k] >= last + 0.5) return visit(1.0, s.constant);
        map = has_four_taps(s.how) ? border::mirror : border::edge;
        break;
      case outside::clamp_coordinate:
        p[k] = std::clamp(p[k], 0.0, last);
        break;
      case outside::torch_reflect_faces:
        p[k] = torch_reflection(p[k], v.size[k], false);
        break;
      case outside::torch_reflect_centers:
        p[k] = torch_reflection(p[k], v.size[k], true);
        break;
    }
  }
  const std::array<axis_taps, 3> t{taps(s.how, p[0]), taps(s.how, p[1]), taps(s.how, p[2])};
  for (integer a = 0; a < t[0].count; ++a)
    for (integer b = 0; b < t[1].count; ++b)
      for (integer c = 0; c < t[2].count; ++c) {
        const double weight = t[0].weight[static_cast<std::size_t>(a)] * t[1].weight[static_cast<std::size_t>(b)] *
                              t[2].weight[static_cast<std::size_t>(c)];
        size3 i{t[0].first + a, t[1].first + b, t[2].first + c};
        bool missing = false;
        for (std::size_t k = 0; k < 3; ++k) {
          missing = missing || i[k] < 0 || i[k] >= v.size[k];
          i[k] = border_index(map, i[k], v.size[k]);
        }
        visit(weight, missing && s.rule == outside::blend_constant ? s.constant : v.at(i[0], i[1], i[2]));
      }
}

inline double sample(const volume& v, const point& p, const sampling& s) {
  double sum = 0;
  for_each_tap(v, p, s, [&](double weight, double value) { sum += weight * value; });
  return sum;
}

// A label map at a continuous index by vote: every label has the sum of the linear weights of its corners, the
// largest sum wins, ties go to the lowest label. `weight`, if asked for, is the winning sum.
inline double vote(const volume& labels, const point& p, outside rule, double constant, double* weight = nullptr) {
  std::map<double, double> sums;  // by ascending label
  for_each_tap(labels, p, {interpolation::linear, rule, constant}, [&](double w, double label) { sums[label] += w; });
  const auto winner =
      std::max_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (weight != nullptr) *weight = winner->second;
  return winner->first;
}

// A volume made ready for sampling as SciPy does: B-spline coefficients where the interpolation needs them, and 12
// voxels of padding on every side where its mode has no filter of its own. `shift` is to be added to coordinates.
struct prepared {
  volume data;
  double shift = 0;

  double operator()(const point& p, const sampling& s) const {
    return sample(data, {p[0] + shift, p[1] + shift, p[2] + shift}, s);
  }
};

inline volume padded(const volume& v, integer margin, outside rule, double constant) {
  volume r({v.size[0] + 2 * margin, v.size[1] + 2 * margin, v.size[2] + 2 * margin});
  for (integer z = 0; z < r.size[0]; ++z)
    for (integer y = 0; y < r.size[1]; ++y)
      for (integer x = 0; x < r.size[2]; ++x)
        r.at(z, y, x) = sample(
            v, {static_cast<double>(z - margin), static_cast<double>(y - margin), static_cast<double>(x - margin)},
            {interpolation::nearest, rule, constant});
  return r;
}

inline prepared prepare(const volume& v, const sampling& s) {
  if (s.how != interpolation::bspline) return {v, 0};
  if (s.rule == outside::edge || s.rule == outside::clamp_coordinate)
    return {bspline_prefilter(padded(v, 12, outside::edge, 0), border::reflect), 12};
  if (s.rule == outside::blend_constant)
    return {bspline_prefilter(padded(v, 12, s.rule, s.constant), border::mirror), 12};
  if (s.rule == outside::reflect || s.rule == outside::torch_reflect_faces)
    return {bspline_prefilter(v, border::reflect), 0};
  if (s.rule == outside::wrap) return {bspline_prefilter(v, border::wrap), 0};
  return {bspline_prefilter(v, border::mirror), 0};
}

// Every voxel of an output grid: pull maps its index to a continuous index of `in`.
template <class Pull>
volume resampled(const volume& in, const size3& size, Pull&& pull, const sampling& s) {
  const prepared source = prepare(in, s);
  volume out(size);
  for (integer z = 0; z < size[0]; ++z)
    for (integer y = 0; y < size[1]; ++y)
      for (integer x = 0; x < size[2]; ++x)
        out.at(z, y, x) =
            source(pull(point{static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)}), s);
  return out;
}

}  // namespace reference
