// SPDX-License-Identifier: Apache-2.0
// The linear parts of the affine augmentations of MONAI, batchgeneratorsv2 / nnU-Net, TorchIO and ITK.
#pragma once

#include <cmath>

#include "volume.hpp"

namespace reference {

// Rotation about the first, second, third component of whatever triple the matrix acts on.
inline matrix rotation_0(double a) {
  return {{{1, 0, 0}, {0, std::cos(a), -std::sin(a)}, {0, std::sin(a), std::cos(a)}}};
}
inline matrix rotation_1(double a) {
  return {{{std::cos(a), 0, std::sin(a)}, {0, 1, 0}, {-std::sin(a), 0, std::cos(a)}}};
}
inline matrix rotation_2(double a) {
  return {{{std::cos(a), -std::sin(a), 0}, {std::sin(a), std::cos(a), 0}, {0, 0, 1}}};
}

// MONAI Affine: A = R Sh T S, homogeneous, R = Rx Ry Rz with angle k about array axis k (radians); shear is
// (01, 02, 10, 12, 20, 21); translation in voxels, inside R Sh; scale multiplies coordinates. Relative to centers.
inline affine monai_affine(const point& angles, const std::array<double, 6>& shear, const point& translation,
                           const point& scale) {
  const matrix rotation = product(product(rotation_0(angles[0]), rotation_1(angles[1])), rotation_2(angles[2]));
  const matrix sheared{{{1, shear[0], shear[1]}, {shear[2], 1, shear[3]}, {shear[4], shear[5], 1}}};
  const matrix front = product(rotation, sheared);
  return {product(front, diagonal(scale)), product(front, translation)};
}

// The two-dimensional form of the same, on (row, column): shear (s0, s1) stands at (0,1) and (1,0).
inline affine monai_affine_2d(double angle, const std::array<double, 2>& shear,
                              const std::array<double, 2>& translation, const std::array<double, 2>& scale) {
  const matrix rotation = rotation_0(angle);
  const matrix sheared{{{1, 0, 0}, {0, 1, shear[0]}, {0, shear[1], 1}}};
  const matrix front = product(rotation, sheared);
  return {product(front, diagonal({1, scale[0], scale[1]})), product(front, point{0, translation[0], translation[1]})};
}

// batchgeneratorsv2 since 2026-07: A = Rz Ry Rx S, angle k about array axis k (radians).
inline matrix nnunet_linear(const point& angles, double scale) {
  return product(product(product(rotation_2(angles[2]), rotation_1(angles[1])), rotation_0(angles[0])),
                 diagonal({scale, scale, scale}));
}

// batchgenerators v1: A = s (Rx Ry Rz)^T.
inline matrix batchgenerators_linear(const point& angles, double scale) {
  return product(transposed(product(product(rotation_0(angles[0]), rotation_1(angles[1])), rotation_2(angles[2]))),
                 diagonal({scale, scale, scale}));
}

// ITK Euler3D: Rz Rx Ry acting on physical (x, y, z), radians.
inline matrix itk_euler(double angle_x, double angle_y, double angle_z) {
  return product(product(rotation_2(angle_z), rotation_0(angle_x)), rotation_1(angle_y));
}

// TorchIO 1.x RandomAffine, forward map about the image center, acting on LPS millimeters (x, y, z):
// p' = S (R (p - c) + t) + c. Angles in degrees and translation in RAS, so the first two change sign.
inline affine torchio_forward(const point& degrees, const point& scale, const point& translation) {
  const double radians = std::acos(-1.0) / 180;
  const matrix rotation = itk_euler(-degrees[0] * radians, -degrees[1] * radians, degrees[2] * radians);
  const matrix s = diagonal(scale);
  return {product(s, rotation), product(s, point{-translation[0], -translation[1], translation[2]})};
}

// Side of the patch to read so that a rotation by at most the given angles (clamped to 90 degrees) and a zoom to
// `smallest_scale` stay inside: the extents get_patch_size of nnU-Net asks for.
inline size3 nnunet_initial_patch(const size3& patch, const point& angles, double smallest_scale) {
  const double right = std::acos(-1.0) / 2;
  const point p{static_cast<double>(patch[0]), static_cast<double>(patch[1]), static_cast<double>(patch[2])};
  point largest = p;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double a = std::fmin(std::abs(angles[axis]), right);
    const matrix r = axis == 0 ? rotation_0(a) : axis == 1 ? rotation_1(a) : rotation_2(a);
    const point turned = product(transposed(r), p);  // the row vector p R
    for (std::size_t k = 0; k < 3; ++k) largest[k] = std::fmax(largest[k], std::abs(turned[k]));
  }
  size3 result{};
  for (std::size_t k = 0; k < 3; ++k) result[k] = static_cast<integer>(largest[k] / smallest_scale);
  return result;
}

}  // namespace reference
