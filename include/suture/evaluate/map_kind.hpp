// SPDX-License-Identifier: Apache-2.0
// Kind of the map from the output of a sample to its source, by which executors choose how they read it.
#pragma once

#include <cstdint>

#include "../base/coordinate.hpp"

namespace suture {

// Each kind except the first is a special case of affine; keeps_axes is one of keeps_planes, and shifted of keeps_axes.
enum class map_kind : std::uint8_t {
  displaced,     // by a deformation
  affine,        // any other
  along_y,       // keeps_planes after CUDA swapped axes z and y of the source (set_columns_along_y)
  keeps_planes,  // planes of the output lie in planes of the source, columns along its columns: rotations about z
  keeps_axes,    // each axis of the source depends on that of the output alone: resampling
  shifted        // by whole voxels, along an axis or against it: crops and flips
};

namespace detail {

inline map_kind kind_of(const fixed_map& map, bool displaced) {
  constexpr std::uint64_t one = std::uint64_t{1} << fixed_fraction_bits;
  const auto& m = map.linear;
  if (displaced) return map_kind::displaced;
  if ((m[0][1] | m[0][2] | m[1][0] | m[2][0]) != 0) return map_kind::affine;
  if ((m[1][2] | m[2][1]) != 0) return map_kind::keeps_planes;
  for (int k = 0; k < 3; ++k)
    if ((m[k][k] != one && m[k][k] != 0 - one) || map.offset[k] % one != 0) return map_kind::keeps_axes;
  return map_kind::shifted;
}

}  // namespace detail

}  // namespace suture
