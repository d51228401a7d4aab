// SPDX-License-Identifier: Apache-2.0
// What tests of geometry operations share: grids, places in physical space, volumes resampled by the references.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "expect_says.hpp"
#include "oracle.hpp"
#include "ref/coordinates.hpp"
#include "ref/sample.hpp"
#include "suture/image/geometry_step.hpp"

namespace support {

using suture::extent3;
using suture::geometry_step;
using suture::grid;
using suture::matrix3;
using suture::point3;

inline const suture::site here{"operation", 7};
inline const double degree = std::acos(-1.0) / 180;

inline grid oblique_grid(const extent3& extents) {
  const std::int64_t size[3] = {extents[2], extents[1], extents[0]};
  return suture::grid_from_itk(size, {2.732, 0.9, 5.0}, {10.0, -20.0, 30.0},
                               {0.9393727128473788, -0.33606268070212925, -0.06812327793826828, 0.34289780745545134,
                                0.920647799997774, 0.18662454822852997, 0.0, -0.19866933079506124, 0.9800665778412417});
}

inline grid plain_grid(const extent3& extents, const point3& spacing = {1, 1, 1}) {
  return {.extents = extents, .spacing = spacing};
}

inline void expect_near(const point3& actual, const point3& expected, double tolerance, const std::string& what = "") {
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(actual[k], expected[k], tolerance) << what << " component " << k;
}

inline void expect_near(const matrix3& actual, const reference::matrix& expected, double tolerance) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      EXPECT_NEAR(actual[i][j], expected[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)], tolerance)
          << i << ',' << j;
}

inline std::vector<point3> corners(const grid& g) {
  std::vector<point3> result;
  for (int i = 0; i < 8; ++i) {
    point3 p{};
    for (int k = 0; k < 3; ++k) p[k] = (i >> k & 1) != 0 ? static_cast<double>(g.extents[k] - 1) : 0.0;
    result.push_back(p);
  }
  return result;
}

// The output's description of physical space and the pull tell the same place.
inline void expect_place_kept(const grid& input, const geometry_step& s, const std::string& what) {
  const auto to_input = input.index_to_physical(), to_output = s.output.index_to_physical();
  for (const point3& p : corners(s.output)) expect_near(to_output(p), to_input(s.pull(p)), 1e-9, what);
  EXPECT_NO_THROW(suture::check(s.output, here)) << what;
}

#define EXPECT_REFUSED(expression, part)                                              \
  do {                                                                                \
    const std::string text = message([&] { (void)(expression); });                    \
    EXPECT_NE(text.find("suture: operation: sample 7: "), std::string::npos) << text; \
    EXPECT_NE(text.find(part), std::string::npos) << text;                            \
  } while (false)

inline reference::point to_reference(const point3& p) { return {p[0], p[1], p[2]}; }

inline reference::volume resampled(const reference::volume& in, const geometry_step& s,
                                   const reference::sampling& how) {
  return reference::resampled(
      in, {s.output.extents[0], s.output.extents[1], s.output.extents[2]},
      [&](const reference::point& p) {
        return to_reference(s.pull({p[0], p[1], p[2]}));
      },
      how);
}

inline reference::volume load(const support::array<double>& a) {
  return {{a.shape[0], a.shape[1], a.shape[2]}, a.values};
}

// An array in NIfTI order (i, j, k), k fastest, as the volume (z, y, x) = (k, j, i).
inline reference::volume load_nifti(const support::array<double>& a) {
  reference::volume v({a.shape[2], a.shape[1], a.shape[0]});
  for (std::int64_t i = 0, n = 0; i < a.shape[0]; ++i)
    for (std::int64_t j = 0; j < a.shape[1]; ++j)
      for (std::int64_t k = 0; k < a.shape[2]; ++k) v.at(k, j, i) = a.values[static_cast<std::size_t>(n++)];
  return v;
}

inline void expect_same(const reference::volume& actual, const reference::volume& expected, double tolerance,
                        const std::string& what) {
  ASSERT_EQ(actual.size, expected.size) << what;
  double worst = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    worst = std::max(worst, std::abs(actual.values[i] - expected.values[i]));
  EXPECT_LE(worst, tolerance) << what;
}

// The grid of a NIfTI affine (index i, j, k -> RAS mm).
inline grid grid_from_nifti(const nlohmann::json& affine, const std::vector<std::int64_t>& shape) {
  std::int64_t size[3];
  double spacing[3], origin[3], direction[9];
  for (int c = 0; c < 3; ++c) {
    const auto at = [&](int r, int column) {
      return affine[static_cast<std::size_t>(r)][static_cast<std::size_t>(column)].get<double>();
    };
    size[c] = shape[static_cast<std::size_t>(c)];
    spacing[c] = std::sqrt(at(0, c) * at(0, c) + at(1, c) * at(1, c) + at(2, c) * at(2, c));
    origin[c] = c < 2 ? -at(c, 3) : at(c, 3);
    for (int r = 0; r < 3; ++r) direction[r * 3 + c] = (r < 2 ? -at(r, c) : at(r, c)) / spacing[c];
  }
  return suture::grid_from_itk(size, spacing, origin, direction);
}

inline grid grid_from_json(const nlohmann::json& p, const std::string& prefix) {
  std::int64_t size[3];
  double spacing[3], origin[3], direction[9];
  for (std::size_t i = 0; i < 3; ++i) {
    size[i] = p.at(prefix + "size")[i];
    spacing[i] = p.at(prefix + "spacing")[i];
    origin[i] = p.at(prefix + "origin")[i];
  }
  for (std::size_t i = 0; i < 9; ++i) direction[i] = p.at(prefix + "direction")[i];
  return suture::grid_from_itk(size, spacing, origin, direction);
}

inline void expect_same_grid(const grid& actual, const grid& expected, double tolerance, const std::string& what) {
  EXPECT_EQ(actual.extents, expected.extents) << what;
  expect_near(actual.spacing, expected.spacing, tolerance, what + " spacing");
  expect_near(actual.origin, expected.origin, tolerance, what + " origin");
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(actual.direction[i][j], expected.direction[i][j], tolerance) << what;
}

// Values 100 z + 10 y + x of a volume read through a relabeling.
inline std::vector<double> read(const geometry_step& s, const extent3& extents) {
  reference::volume v({extents[0], extents[1], extents[2]});
  for (std::int64_t z = 0; z < extents[0]; ++z)
    for (std::int64_t y = 0; y < extents[1]; ++y)
      for (std::int64_t x = 0; x < extents[2]; ++x) v.at(z, y, x) = static_cast<double>(100 * z + 10 * y + x);
  return resampled(v, s, {reference::interpolation::nearest, reference::outside::blend_constant, -1}).values;
}

}  // namespace support
