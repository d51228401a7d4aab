// SPDX-License-Identifier: Apache-2.0
// The geometry of an oracle case, turned from each library's conventions into a map of voxel indices (z, y, x).
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "../ref/sample.hpp"
#include "../ref/volume.hpp"
#include "oracle.hpp"

namespace support {

using nlohmann::json;

inline reference::size3 size_from(const std::vector<std::int64_t>& shape) {
  if (shape.size() != 3) throw std::runtime_error("not a volume: " + std::to_string(shape.size()) + " dimensions");
  return {shape[0], shape[1], shape[2]};
}

template <class T>
reference::volume volume_from(const array<T>& a) {
  return {size_from(a.shape), a.values};
}

inline reference::point reversed(const reference::point& p) { return {p[2], p[1], p[0]}; }

// The same map with both its index orders reversed: (x, y, z) <-> (z, y, x).
inline reference::affine reversed(const reference::affine& a) {
  reference::affine r;
  for (std::size_t i = 0; i < 3; ++i) {
    r.offset[i] = a.offset[2 - i];
    for (std::size_t j = 0; j < 3; ++j) r.linear[i][j] = a.linear[2 - i][2 - j];
  }
  return r;
}

inline reference::matrix matrix_from(const json& rows_or_nine) {
  reference::matrix m{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      m[i][j] = (rows_or_nine.size() == 9 ? rows_or_nine.at(3 * i + j) : rows_or_nine.at(i).at(j)).get<double>();
  return m;
}

inline reference::outside scipy_mode(const std::string& mode) {
  using reference::outside;
  if (mode == "constant") return outside::scipy_constant;
  if (mode == "nearest" || mode == "edge") return outside::edge;
  if (mode == "reflect" || mode == "grid-mirror") return outside::reflect;
  if (mode == "mirror") return outside::mirror;
  if (mode == "grid-wrap") return outside::wrap;
  if (mode == "grid-constant") return outside::blend_constant;
  throw std::runtime_error("unknown mode " + mode);
}

inline reference::interpolation spline_order(int order) {
  using reference::interpolation;
  if (order == 0) return interpolation::nearest;
  if (order == 1) return interpolation::linear;
  if (order == 3) return interpolation::bspline;
  throw std::runtime_error("order " + std::to_string(order) + " is not among 0, 1, 3");
}

inline bool is_known_order(const json& params) {
  const int order = params.at("order");
  return order == 0 || order == 1 || order == 3;
}

inline reference::sampling scipy_sampling(const json& params) {
  return {spline_order(params.at("order")), scipy_mode(params.at("mode")), params.value("cval", 0.0)};
}

// scipy.ndimage.affine_transform: matrix and offset are the pull itself.
inline reference::affine scipy_pull(const json& params) {
  return {matrix_from(params.at("matrix")), params.at("offset").get<reference::point>()};
}

// torch: theta maps normalized output coordinates (x, y, z) to normalized input coordinates.
inline reference::affine torch_unnormalize(const reference::size3& size, bool align_corners) {
  reference::affine a;  // normalized (x, y, z) -> index (x, y, z)
  for (std::size_t k = 0; k < 3; ++k) {
    const auto n = static_cast<double>(size[2 - k]);
    a.linear[k][k] = align_corners ? (n - 1) / 2 : n / 2;
    a.offset[k] = (n - 1) / 2;
  }
  return a;
}
inline reference::affine torch_pull(const json& theta, const reference::size3& in, const reference::size3& out,
                                    bool align_corners) {
  reference::affine t{matrix_from(theta), {}};
  for (std::size_t i = 0; i < 3; ++i) t.offset[i] = theta.at(i).at(3).get<double>();
  return reversed(
      reference::composed(torch_unnormalize(in, align_corners),
                          reference::composed(t, reference::inverted(torch_unnormalize(out, align_corners)))));
}

// What torch's grid_sample reads by "mode", bicubic aside, and "padding_mode".
inline reference::sampling torch_sampling(const json& params) {
  using reference::outside;
  const bool corners = params.at("align_corners");
  return {params.at("mode") == "nearest" ? reference::interpolation::nearest_even : reference::interpolation::linear,
          params.at("padding_mode") == "zeros"    ? outside::blend_constant
          : params.at("padding_mode") == "border" ? outside::clamp_coordinate
          : corners                               ? outside::torch_reflect_centers
                                                  : outside::torch_reflect_faces,
          0};
}

// ITK: index (x, y, z) -> physical position.
inline reference::affine itk_index_to_physical(const json& spacing, const json& origin, const json& direction) {
  return {reference::product(matrix_from(direction), reference::diagonal(spacing.get<reference::point>())),
          origin.get<reference::point>()};
}

// ITK MatrixOffsetTransformBase: p -> M (p - center) + center + translation.
inline reference::affine itk_transform(const json& transform) {
  if (transform.at("type") == "identity") return {};
  const auto center = transform.at("center").get<reference::point>();
  const auto translation = transform.at("translation").get<reference::point>();
  reference::affine a = reference::about(matrix_from(transform.at("matrix")), center, center);
  for (std::size_t k = 0; k < 3; ++k) a.offset[k] += translation[k];
  return a;
}

inline reference::size3 itk_size(const json& size) {
  return {size.at(2).get<std::int64_t>(), size.at(1).get<std::int64_t>(), size.at(0).get<std::int64_t>()};
}

inline reference::affine itk_input_grid(const json& params) {
  return itk_index_to_physical(params.at("spacing"), params.at("origin"), params.at("direction"));
}
inline reference::affine itk_output_grid(const json& params) {
  return itk_index_to_physical(params.at("out_spacing"), params.at("out_origin"), params.at("out_direction"));
}

// Not for transforms of type BSplineTransform.
inline reference::affine itk_pull(const json& params) {
  return reversed(
      reference::composed(reference::inverted(itk_input_grid(params)),
                          reference::composed(itk_transform(params.at("transform")), itk_output_grid(params))));
}

// A nibabel affine (voxel i, j, k -> RAS): rows of four.
inline reference::affine nifti_affine(const json& rows) {
  reference::affine a{matrix_from(rows), {}};
  for (std::size_t i = 0; i < 3; ++i) a.offset[i] = rows.at(i).at(3).get<double>();
  return a;
}

// 1 where no coordinate comes within `margin` of a discontinuity: half-integers (nearest), or the ends of the valid
// range given by `rim` (0: scipy constant; 1/2: ITK). One that lies exactly on such an end, which is then no matter of
// rounding, counts as near unless `or_exact`.
template <class Pull>
std::vector<double> away_from_ties(const reference::size3& in, const reference::size3& out, Pull&& pull, double margin,
                                   bool half_integers, double rim, bool or_exact = false) {
  const auto at_end = [&](double distance) { return std::abs(distance) < margin && !(or_exact && distance == 0); };
  std::vector<double> mask;
  for (std::int64_t z = 0; z < out[0]; ++z)
    for (std::int64_t y = 0; y < out[1]; ++y)
      for (std::int64_t x = 0; x < out[2]; ++x) {
        const reference::point p =
            pull(reference::point{static_cast<double>(z), static_cast<double>(y), static_cast<double>(x)});
        bool clear = true;
        for (std::size_t k = 0; k < 3; ++k) {
          const double fraction = p[k] - std::floor(p[k]);
          if (half_integers && std::abs(fraction - 0.5) < margin) clear = false;
          if (at_end(p[k] + rim) || at_end(p[k] - (static_cast<double>(in[k] - 1) + rim))) clear = false;
        }
        mask.push_back(clear ? 1 : 0);
      }
  return mask;
}

}  // namespace support
