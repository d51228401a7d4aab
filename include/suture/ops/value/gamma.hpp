// SPDX-License-Identifier: Apache-2.0
// Gamma curves over a stated range of values.
#pragma once

#include <string_view>

#include "../../base/bits.hpp"
#include "../../base/fields.hpp"
#include "../../base/voxel.hpp"
#include "../../math/elementary.hpp"
#include "../common/interval.hpp"

namespace suture {

// y = sign(n) |n|^exponent (high - low) + low with n = (x - low) / (high - low), [low, high] = range. Both ends stay
// where they are; values below the range keep their sign, as in TorchIO RandomGamma, values above follow the curve on.
// Above 1 the exponent darkens, below 1 it brightens, and 1 changes nothing. The range is in the units of the image.
// Inside it the power is right to 2^-23.5, outside to 3.6 ulp; one beyond float is infinite.
// Errors: exponent not above 0, range not from low to high, a number that is not finite.
struct gamma {
  float exponent;
  interval range = {0, 1};

  static constexpr std::string_view name = "gamma";
  static constexpr auto fields = named("exponent", &gamma::exponent);
  static constexpr auto parameters = named("exponent", required(&gamma::exponent), "range", &gamma::range);

  struct functor {
    float exponent, low, extent, inverse_extent;
    bool is_short;  // the power of values inside the range has a short form

    SUTURE_FN float part_of(float x) const { return (x - low) * inverse_extent; }
    SUTURE_FN static std::uint32_t magnitude_bits(float part) { return bit_cast<std::uint32_t>(part) & 0x7fffffffu; }
    SUTURE_FN float with_sign_of(float part, float curve) const {
      return fma(math::detail::select(part < 0, -curve, curve), extent, low);
    }
    SUTURE_FN float operator()(float x) const {
      const float part = part_of(x);
      const std::uint32_t bits = magnitude_bits(part);
      const float magnitude = bit_cast<float>(bits);
      const bool fits = is_short & (bits <= math::detail::largest_fraction);
#if defined(__CUDA_ARCH__)  // lanes of a warp rarely differ; elsewhere a branch would keep loops from being vectorized
      const float curve = fits ? math::detail::power_of_fraction(magnitude, exponent) : math::pow(magnitude, exponent);
#else
      const float curve = math::detail::select(fits, math::detail::power_of_fraction(magnitude, exponent),
                                               math::pow(magnitude, exponent));
#endif
      return with_sign_of(part, curve);
    }

    // operator() for voxels side by side along x.
    template <int Count>
    SUTURE_INLINE void apply_row(float (&values)[Count], const voxel&) const {
      const functor f = *this;
      float part[Count];
      std::uint32_t largest = 0;
      for (int i = 0; i < Count; ++i) {
        part[i] = f.part_of(values[i]);
        const std::uint32_t bits = magnitude_bits(part[i]);
        largest = bits > largest ? bits : largest;
      }
      if (f.is_short && largest <= math::detail::largest_fraction)
        for (int i = 0; i < Count; ++i) {
          const float magnitude = bit_cast<float>(magnitude_bits(part[i]));
          values[i] = f.with_sign_of(part[i], math::detail::power_of_fraction(magnitude, f.exponent));
        }
      else
        for (int i = 0; i < Count; ++i) values[i] = f(values[i]);
    }
  };

  functor prepare(const site& where) const {
    require(std::isfinite(exponent) && exponent > 0, where, "exponent ", exponent, " must be positive");
    const double extent = detail::checked_extent(range, where);
    detail::check_shift(range.low, "the low end of range", where);
    return {exponent, range.low, static_cast<float>(extent), static_cast<float>(1 / extent),
            exponent <= math::detail::largest_exponent && exponent != 1};
  }
};

// gamma with an exponent drawn from `range`; `value_range` is what the curve leaves in place.
// Errors: range not positive or not from low to high, a range without 1 for the law mixture; those of gamma.
struct random_gamma {
  interval range = {.7f, 1.5f};
  interval value_range = {0, 1};
  interval_law law = interval_law::uniform;
  float probability = 1;

  static constexpr std::string_view name = "random_gamma";
  static constexpr std::uint16_t kind = 32;
  static constexpr auto parameters =
      named("range", multiplies(&random_gamma::range), "value_range", &random_gamma::value_range, "law",
            &random_gamma::law, "probability", &random_gamma::probability);

  gamma draw(draws& random, const site& where) const {
    detail::check_interval(range, law, "range", where);
    require(range.low > 0, where, "range ", range, " must be positive");
    return {.exponent = detail::draw_from(range, law, random), .range = value_range};
  }
};

}  // namespace suture
