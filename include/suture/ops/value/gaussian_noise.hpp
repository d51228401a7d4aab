// SPDX-License-Identifier: Apache-2.0
// Gaussian noise, independent in every voxel and channel.
#pragma once

#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../base/voxel.hpp"
#include "../../rng/normal_at.hpp"
#include "../common/interval.hpp"

namespace suture {

// y = x + mean + sigma n, n standard normal at the voxel's element of the field.
struct additive_noise {
  float mean;
  float sigma;
  random_field field;

  static constexpr std::string_view name = "additive_noise";
  static constexpr int normals = 1;
  static constexpr auto fields = named("sigma", &additive_noise::sigma);

  void check(const site& where) const {
    require(std::isfinite(sigma) && sigma >= 0, where, "sigma ", sigma, " must not be negative");
    detail::check_shift(sigma, "sigma", where);
    detail::check_shift(mean, "mean", where);
  }

  SUTURE_FN const random_field& normal_field(int) const { return field; }
  SUTURE_FN float operator()(float x, const voxel& at) const { return fma(normal_at(field, at), sigma, x + mean); }

  // operator() for voxels side by side along x.
  template <int Count>
  SUTURE_INLINE void apply_row(float (&values)[Count], const voxel& first) const {
    float n[Count];
    field.normal_row(first.element, n);
    for (int i = 0; i < Count; ++i) values[i] = fma(n[i], sigma, values[i] + mean);
  }
};

// Adds noise of standard deviation `sigma`, in the units of the image: one number, or an interval to draw it from
// uniformly for each sample. `= {0, .1f}` is nnU-Net's (its "noise variance" is a standard deviation) and MONAI's
// RandGaussianNoise(std = .1).
// Errors: sigma below 0 or not from low to high, a number that is not finite.
struct gaussian_noise {
  interval sigma = .02f;
  float mean = 0;
  float probability = 1;

  static constexpr std::string_view name = "gaussian_noise";
  static constexpr std::uint16_t kind = 33;
  static constexpr auto parameters = named("sigma", &gaussian_noise::sigma, "mean", &gaussian_noise::mean,
                                           "probability", &gaussian_noise::probability);

  void check(const site& where) const {
    detail::check_interval(sigma, "sigma", where);
    require(sigma.low >= 0, where, "sigma ", sigma, " must not be negative");
    detail::check_shift(sigma.high, "sigma", where);
    detail::check_shift(mean, "mean", where);
  }

  additive_noise draw(draws& random, const site&) const {
    return {mean, random.uniform(sigma.low, sigma.high), random.field(1)};
  }
};

}  // namespace suture
