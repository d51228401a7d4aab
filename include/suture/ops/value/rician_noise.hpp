// SPDX-License-Identifier: Apache-2.0
// Rician noise of magnitude images such as MRI.
#pragma once

#include <cfloat>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/numeric.hpp"
#include "../../base/vec.hpp"
#include "../../base/voxel.hpp"
#include "../../math/elementary.hpp"
#include "../../rng/normal_at.hpp"
#include "../common/interval.hpp"

namespace suture {

// y = sqrt((x + n1)^2 + n2^2), n1 and n2 normal with mean and sigma at the voxel's element of two fields.
struct magnitude_noise {
  float mean;
  float sigma;
  random_field in_phase;
  random_field quadrature;

  static constexpr std::string_view name = "magnitude_noise";
  static constexpr int normals = 2;
  static constexpr auto fields = named("sigma", &magnitude_noise::sigma);

  void check(const site& where) const {
    require(std::isfinite(sigma) && sigma >= 0, where, "sigma ", sigma, " must not be negative");
    detail::check_shift(sigma, "sigma", where);
    detail::check_shift(mean, "mean", where);
  }

  SUTURE_FN const random_field& normal_field(int number) const { return number == 0 ? in_phase : quadrature; }
  SUTURE_FN float operator()(float x, const voxel& at) const {
    const float real = fma(normal_at(in_phase, at), sigma, x + mean);
    const float imaginary = fma(normal_at(quadrature, at, 1), sigma, mean);
    const float square = fma(real, real, imaginary * imaginary);
    return square <= FLT_MAX ? math::sqrt(square) : magnitude_of_large(real, imaginary);
  }
  // Computes the magnitude where the squares overflow.
  SUTURE_FN static float magnitude_of_large(float real, float imaginary) {
    const float a = fma(real, 0x1p-64f, 0.0f), b = fma(imaginary, 0x1p-64f, 0.0f);
    return fma(math::sqrt(fma(a, a, b * b)), 0x1p64f, 0.0f);
  }

  // operator() for voxels side by side along x.
  template <int Count>
  SUTURE_INLINE void apply_row(float (&values)[Count], const voxel& first) const {
    float n[Count], m[Count];
    in_phase.normal_row(first.element, n);
    quadrature.normal_row(first.element, m);
    std::uint32_t largest = 0;
    for (int i = 0; i < Count; ++i) {
      n[i] = fma(n[i], sigma, values[i] + mean);
      m[i] = fma(m[i], sigma, mean);
      const float square = fma(n[i], n[i], m[i] * m[i]);
      const std::uint32_t bits = float_bits(square) & 0x7fffffffu;
      largest = bits > largest ? bits : largest;
      values[i] = math::sqrt(square);
    }
    if (largest < 0x7f800000u) return;
    for (int i = 0; i < Count; ++i)
      if (!(fma(n[i], n[i], m[i] * m[i]) <= FLT_MAX)) values[i] = magnitude_of_large(n[i], m[i]);
  }
};

// The magnitude of a complex image of real value x after noise of standard deviation `sigma` in both parts, in the
// units of the image; sigma is one number, or an interval to draw it from uniformly for each sample. The result is
// never negative, so apply it before a z-score. MONAI RandRicianNoise.
// Errors: sigma below 0 or not from low to high, a number that is not finite.
struct rician_noise {
  interval sigma = .02f;
  float mean = 0;
  float probability = 1;

  static constexpr std::string_view name = "rician_noise";
  static constexpr std::uint16_t kind = 34;
  static constexpr auto parameters =
      named("sigma", &rician_noise::sigma, "mean", &rician_noise::mean, "probability", &rician_noise::probability);

  magnitude_noise draw(draws& random, const site& where) const {
    detail::check_interval(sigma, "sigma", where);
    require(sigma.low >= 0, where, "sigma ", sigma, " must not be negative");
    detail::check_shift(sigma.high, "sigma", where);
    detail::check_shift(mean, "mean", where);
    return {mean, random.uniform(sigma.low, sigma.high), random.field(1), random.field(2)};
  }
};

}  // namespace suture
