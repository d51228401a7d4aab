// SPDX-License-Identifier: Apache-2.0
// The sampling grid of an image: extents, spacing, origin, direction. Index i is the center of voxel i;
// physical position of an index p is origin + direction * (spacing * p), millimeters, axes in order (z, y, x).
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "../base/error.hpp"
#include "../base/fields.hpp"
#include "../base/vec.hpp"

namespace suture {

struct grid {
  extent3 extents{1, 1, 1};  // voxels
  point3 spacing{1, 1, 1};   // mm
  point3 origin{0, 0, 0};    // mm, LPS: the center of voxel (0, 0, 0)
  matrix3 direction{};       // column k: unit vector of array axis k, components (z, y, x)

  static constexpr auto fields = named("extents", &grid::extents, "spacing", &grid::spacing, "origin", &grid::origin,
                                       "direction", &grid::direction);

  std::int64_t voxels() const { return extents[0] * extents[1] * extents[2]; }
  point3 center() const {
    return {0.5 * static_cast<double>(extents[0] - 1), 0.5 * static_cast<double>(extents[1] - 1),
            0.5 * static_cast<double>(extents[2] - 1)};
  }
  affine_map index_to_physical() const { return {scaled_columns(direction, spacing), origin}; }
  affine_map physical_to_index() const { return inverse(index_to_physical()); }
};

// The voxels first .. first + size - 1 along z, y, x.
struct voxel_box {
  extent3 first, size;

  std::int64_t voxels() const { return size[0] * size[1] * size[2]; }
  bool contains(const voxel_box& inner) const {
    for (int k = 0; k < 3; ++k)
      if (inner.first[k] < first[k] || inner.first[k] + inner.size[k] > first[k] + size[k]) return false;
    return true;
  }
};

// The grid of an image given in ITK / DICOM order: origin, spacing and size as (x, y, z), direction row-major
// with columns for the x, y, z index axes, positions in LPS.
inline grid grid_from_itk(const std::int64_t (&size)[3], const double (&spacing)[3], const double (&origin)[3],
                          const double (&direction)[9]) {
  grid g;
  for (int i = 0; i < 3; ++i) {
    g.extents[i] = size[2 - i];
    g.spacing[i] = spacing[2 - i];
    g.origin[i] = origin[2 - i];
    for (int j = 0; j < 3; ++j) g.direction[i][j] = direction[(2 - i) * 3 + (2 - j)];
  }
  return g;
}

namespace detail {

// Tests extents at once. Almost every grid is valid, so the common path has one branch.
inline bool sound(const extent3& extents) {
  constexpr auto most = std::uint64_t{1} << 21;
  bool good = true;
  for (int k = 0; k < 3; ++k) good = good && static_cast<std::uint64_t>(extents[k]) - 1 < most;
  const auto voxels = static_cast<std::uint64_t>(extents[0]) * static_cast<std::uint64_t>(extents[1]) *
                      static_cast<std::uint64_t>(extents[2]);
  return good && voxels <= std::uint64_t{1} << 56;
}
inline bool finite(const point3& p) {
  return std::abs(p[0]) <= DBL_MAX && std::abs(p[1]) <= DBL_MAX && std::abs(p[2]) <= DBL_MAX;
}
// Tests all but the direction.
inline bool sound(const grid& g) {
  return sound(g.extents) && g.spacing[0] > 0 && g.spacing[1] > 0 && g.spacing[2] > 0 && finite(g.spacing) &&
         finite(g.origin);
}

// Throws for an invalid grid, with a message for each kind of fault.
SUTURE_NOINLINE inline void check_apart(const grid& g, const site& where, std::string_view role = "") {
  std::int64_t voxels = 1;
  for (int k = 0; k < 3; ++k) {
    require(g.extents[k] > 0, where, role, "extents ", g.extents, " must be positive");
    // 2^56 leaves a factor of 2^7 for channels, bytes and strides.
    require(!__builtin_mul_overflow(voxels, g.extents[k], &voxels) && voxels <= (std::int64_t{1} << 56), where, role,
            "extents ", g.extents, " have more than 2^56 voxels");
  }
  for (int k = 0; k < 3; ++k) {
    require(g.extents[k] <= (std::int64_t{1} << 21), where, role, "extents ", g.extents,
            " exceed 2097152 along an axis");
    require(std::isfinite(g.spacing[k]) && g.spacing[k] > 0, where, role, "spacing ", g.spacing,
            " must be positive and finite");
    require(std::isfinite(g.origin[k]), where, role, "origin ", g.origin, " must be finite");
  }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double dot = 0;
      for (int k = 0; k < 3; ++k) dot = fma(g.direction[k][i], g.direction[k][j], dot);
      if (i == j)
        require(std::abs(dot - 1) < 1e-3, where, role, "direction is not orthonormal: column ", i, " has length ",
                std::sqrt(dot));
      else
        require(std::abs(dot) < 1e-3, where, role, "direction is not orthonormal: columns ", i, " and ", j,
                " have inner product ", dot);
    }
}

// Tests whether axes are equal, where whole axes may be reversed. The test uses bits and has no branch, since an axis
// may have been flipped at random.
inline bool same_axes(const matrix3& a, const matrix3& b) {
  std::uint64_t difference = 0;
  for (int j = 0; j < 3; ++j) {
    std::uint64_t changed[3];
    for (int i = 0; i < 3; ++i)
      changed[i] = __builtin_bit_cast(std::uint64_t, a[i][j]) ^ __builtin_bit_cast(std::uint64_t, b[i][j]);
    difference |= changed[0] << 1 | (changed[0] ^ changed[1]) | (changed[0] ^ changed[2]);
  }
  return difference == 0;
}

}  // namespace detail

// Tests whether grids are equal bit for bit.
inline bool identical(const grid& a, const grid& b) {
  constexpr std::size_t words = sizeof(grid) / sizeof(std::uint64_t);
  static_assert(words == 18 && std::is_trivially_copyable_v<grid>);
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t of_a, of_b;
    std::memcpy(&of_a, reinterpret_cast<const char*>(&a) + i * sizeof of_a, sizeof of_a);
    std::memcpy(&of_b, reinterpret_cast<const char*>(&b) + i * sizeof of_b, sizeof of_b);
    difference |= of_a ^ of_b;
  }
  return difference == 0;
}

// Throws for an invalid grid. `known`, if given, is a valid grid: axes equal to its axes are not checked again.
// `role` is a word for messages, such as "output: ".
inline void check(const grid& g, const site& where, const grid* known = nullptr, std::string_view role = "") {
  if (known && detail::sound(g) && detail::same_axes(g.direction, known->direction)) return;
  detail::check_apart(g, where, role);
}

}  // namespace suture
