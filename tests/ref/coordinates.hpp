// SPDX-License-Identifier: Apache-2.0
// Coordinate maps of resampling along one axis (output index -> input index), the sizes that go with them, and
// nearest-neighbor indices.
#pragma once

#include <algorithm>
#include <cmath>

#include "volume.hpp"

namespace reference {

// torch align_corners=False, skimage resize, SciPy zoom(grid_mode=True), nnU-Net.
inline double half_pixel(double out, integer n_in, integer n_out) {
  return (out + 0.5) * static_cast<double>(n_in) / static_cast<double>(n_out) - 0.5;
}

// torch align_corners=True: 0 where the output has one voxel.
inline double align_corners(double out, integer n_in, integer n_out) {
  return n_out == 1 ? 0.0 : out * static_cast<double>(n_in - 1) / static_cast<double>(n_out - 1);
}

// MONAI Spacing: voxel 0 stays where it was.
inline double origin_preserving(double out, double spacing_in, double spacing_out) {
  return out * spacing_out / spacing_in;
}

// TorchIO Resample: the center of the image stays where it was.
inline double center_preserving(double out, integer n_in, integer n_out, double spacing_in, double spacing_out) {
  return (out - 0.5 * static_cast<double>(n_out - 1)) * spacing_out / spacing_in + 0.5 * static_cast<double>(n_in - 1);
}

inline integer round_half_even(double x) {
  const double low = std::floor(x);
  const double rest = x - low;
  const auto i = static_cast<integer>(low);
  if (rest < 0.5) return i;
  if (rest > 0.5) return i + 1;
  return i % 2 == 0 ? i : i + 1;
}
inline integer round_half_up(double x) { return static_cast<integer>(std::floor(x + 0.5)); }

inline integer nnunet_size(integer n, double spacing_in, double spacing_out) {
  return round_half_even(spacing_in / spacing_out * static_cast<double>(n));
}
inline integer monai_size(integer n, double spacing_in, double spacing_out) {
  return round_half_even(static_cast<double>(n - 1) * spacing_in / spacing_out + 1.0);
}
inline integer torchio_size(integer n, double spacing_in, double spacing_out) {
  return n == 1 ? 1 : static_cast<integer>(std::floor(static_cast<double>(n) * spacing_in / spacing_out));
}

// torch interpolate, mode = nearest (no half voxel) and nearest-exact.
inline integer torch_nearest(integer out, integer n_in, integer n_out) {
  const double scale = static_cast<double>(n_in) / static_cast<double>(n_out);
  return std::min(static_cast<integer>(std::floor(static_cast<double>(out) * scale)), n_in - 1);
}
inline integer torch_nearest_exact(integer out, integer n_in, integer n_out) {
  const double scale = static_cast<double>(n_in) / static_cast<double>(n_out);
  return std::min(static_cast<integer>(std::floor((static_cast<double>(out) + 0.5) * scale)), n_in - 1);
}

// Standard deviation, in input voxels, of the Gaussian that precedes a reduction by `factor`.
inline double antialias_skimage(double factor) { return std::max(0.0, (factor - 1) / 2); }
inline double antialias_cardoso(double factor) {
  return factor <= 1 ? 0.0 : std::sqrt(factor * factor - 1) / (2 * std::sqrt(2 * std::log(2.0)));
}

}  // namespace reference
