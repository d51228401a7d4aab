// SPDX-License-Identifier: Apache-2.0
// Gamma curves over a stated range of values.
#pragma once

#include <cfloat>
#include <string_view>

#include "../../core/fields.hpp"
#include "../../core/voxel.hpp"
#include "../../math/bits.hpp"
#include "../../math/elementary.hpp"
#include "interval.hpp"

namespace suture {

// y = sign(n) |n|^exponent (high - low) + low with n = (x - low) / (high - low), [low, high] = range. Both ends stay
// where they are; values below the range keep their sign, as in TorchIO RandomGamma, values above follow the curve on.
// Above 1 the exponent darkens, below 1 it brightens. The range is in the units of the image.
// Errors: exponent not above 0, range not from low to high, a number that is not finite.
struct gamma {
  float exponent;
  interval range = {0, 1};

  static constexpr std::string_view name = "gamma";
  static constexpr auto fields = named("exponent", &gamma::exponent);

  struct functor {
    float exponent, low, extent, inverse_extent;

    SUTURE_FN float operator()(float x) const {
      const float n = (x - low) * inverse_extent;
      const float magnitude = bit_cast<float>(bit_cast<std::uint32_t>(n) & 0x7fffffffu);
      const float curve = math::detail::pow_with_branch(magnitude, exponent);
      return fma(n < 0 ? -curve : curve, extent, low);
    }

    // The same for a row of voxels along x: by the short power where every voxel is at `low` or away from it, but not
    // far.
    template <int Count>
    SUTURE_INLINE void apply_row(float (&values)[Count], const voxel&) const {
      const functor f = *this;
      float part[Count], curve[Count];
      for (int i = 0; i < Count; ++i) {
        part[i] = (values[i] - f.low) * f.inverse_extent;
        curve[i] = bit_cast<float>(bit_cast<std::uint32_t>(part[i]) & 0x7fffffffu);
      }
      if (math::detail::pow_of_row(curve, f.exponent))
        for (int i = 0; i < Count; ++i)
          values[i] = fma(math::detail::select(part[i] < 0, -curve[i], curve[i]), f.extent, f.low);
      else
        for (int i = 0; i < Count; ++i) values[i] = f(values[i]);
    }
  };

  functor prepare(const site& where) const {
    require(std::isfinite(exponent) && exponent > 0, where, "exponent ", exponent, " must be positive");
    detail::check_interval(range, "range", where);
    const double extent = static_cast<double>(range.high) - static_cast<double>(range.low);
    require(extent >= static_cast<double>(FLT_MIN) && extent <= static_cast<double>(FLT_MAX), where, "range ", range,
            " must have an extent that is a normal float");
    return {exponent, range.low, static_cast<float>(extent), static_cast<float>(1 / extent)};
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

  gamma draw(draws& random, const site& where) const {
    detail::check_interval(range, law, "range", where);
    require(range.low > 0, where, "range ", range, " must be positive");
    return {.exponent = detail::draw_from(range, law, random), .range = value_range};
  }
};

}  // namespace suture
