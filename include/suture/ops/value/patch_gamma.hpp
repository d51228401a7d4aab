// SPDX-License-Identifier: Apache-2.0
// Gamma curves over the range of the patch.
#pragma once

#include <string_view>

#include "../../base/bits.hpp"
#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../base/voxel.hpp"
#include "../../math/elementary.hpp"
#include "../../pipeline/stage_schedule.hpp"
#include "../../stats/statistics.hpp"
#include "../common/interval.hpp"

namespace suture {

// Applies a gamma curve to each channel of a patch; m is its minimum and r its range at this point of the chain:
//   y = ((x - m) / max(r, 1e-7))^exponent r + m, or the same of -x, negated back, where `invert`;
// where retain_statistics, y is then shifted back to the mean that x had and scaled by the deviation of x over max(that
// of y, 1e-7), which takes a pass over the patch. A constant patch stays as it is; one of a range of about 1e-7 or less
// loses part of its deviation, as in batchgeneratorsv2: scale its values first.
struct patch_gamma_functor {
  float exponent[most_channels];
  bool invert, retain_statistics;

  static constexpr double least_deviation = 1e-7;  // that the curve is scaled by

  // The curve of one channel, with constants from the moments of the patch. `end` stays fixed: it is the minimum, or
  // with `invert` the maximum. `range` leads from there to the other end, and `inverse` is its reciprocal.
  struct with_moments {
    float end, range, inverse, exponent;
    // Returns the bits, without the sign, of (x - end) / range. In the patch this share is negative only as -0.
    SUTURE_FN std::uint32_t bits_of_part(float x) const {
      return bit_cast<std::uint32_t>((x - end) * inverse) & 0x7fffffffu;
    }
    SUTURE_FN float operator()(float x) const {
      const std::uint32_t part = bits_of_part(x);
      const float n = bit_cast<float>(part);
      const float y =
          fma(part <= math::detail::largest_fraction ? math::detail::power_of_fraction(n, exponent) : n, range, end);
      return part < 0x7f800000u ? y : x;  // infinities and NaN stay as they are
    }

    // operator() for voxels side by side along x.
    template <int Count>
    SUTURE_INLINE void apply_row(float (&values)[Count], const voxel&) const {
      const with_moments f = *this;
      float part[Count];
      std::uint32_t largest = 0;
      for (int i = 0; i < Count; ++i) {
        const std::uint32_t bits = f.bits_of_part(values[i]);
        part[i] = bit_cast<float>(bits);
        largest = bits > largest ? bits : largest;
      }
      if (largest <= math::detail::largest_fraction)
        for (int i = 0; i < Count; ++i)
          values[i] = fma(math::detail::power_of_fraction(part[i], f.exponent), f.range, f.end);
      else
        for (int i = 0; i < Count; ++i) values[i] = f(values[i]);
    }
  };
  // Scales and shifts the values of the curve, so that they have the mean and deviation from before it.
  struct restoring_moments {
    float from, scale, to;
    SUTURE_FN float operator()(float y) const { return fma(y - from, scale, to); }
  };

  SUTURE_FN bool active(std::int32_t) const { return true; }
  SUTURE_FN bool restores(std::int32_t) const { return retain_statistics; }
  SUTURE_FN with_moments with(const moments& patch, std::int32_t channel) const {
    const auto low = static_cast<float>(patch.minimum), high = static_cast<float>(patch.maximum);
    const float range = high - low, divisor = range > 1e-7f ? range : 1e-7f;
    const float own = exponent[parameter_channel(channel)];
    return {invert ? high : low, invert ? -range : range, math::detail::divide(invert ? -1.0f : 1.0f, divisor),
            own < math::detail::largest_exponent ? own : math::detail::largest_exponent};  // larger ones give the same
  }
  SUTURE_FN restoring_moments restoring(const moments& before, const moments& after, std::int32_t) const {
    const double divisor = after.standard_deviation > least_deviation ? after.standard_deviation : least_deviation;
    return {after.center, static_cast<float>(math::detail::divide(before.standard_deviation, divisor)), before.center};
  }
  SUTURE_FN moments restored(const moments& before, const moments& after, std::int32_t channel) const {
    if (!retain_statistics) return after;
    const restoring_moments f = restoring(before, after, channel);
    moments m = before;
    if (after.standard_deviation <= least_deviation) {
      m.standard_deviation = fma(after.standard_deviation, static_cast<double>(f.scale), 0.0);
      m.reciprocal = detail::reciprocal_of_deviation(m.standard_deviation);
    }
    m.minimum = static_cast<double>(f(static_cast<float>(after.minimum)));
    m.maximum = static_cast<double>(f(static_cast<float>(after.maximum)));
    return m;
  }
};

// Applies the curve of patch_gamma with an exponent drawn from `range`, for each channel or, with one_exponent, for
// all. nnU-Net v2: {.law = interval_law::mixture, .invert = true, .probability = .1f}, then once more without invert
// and with .probability = .3f. Images of a range below about 1e-7 lose deviation even with retain_statistics, as there.
// Errors: range not positive or not from low to high, or unfit for its law. Source: batchgeneratorsv2 GammaTransform.
struct random_patch_gamma {
  interval range = {.7f, 1.5f};
  interval_law law = interval_law::uniform;
  bool invert = false;
  bool retain_statistics = true;
  bool one_exponent = false;
  float probability = 1;

  static constexpr std::string_view name = "random_patch_gamma";
  static constexpr std::uint16_t kind = 115;
  static constexpr auto parameters =
      named("range", multiplies(&random_patch_gamma::range), "law", &random_patch_gamma::law, "invert",
            &random_patch_gamma::invert, "retain_statistics", &random_patch_gamma::retain_statistics, "one_exponent",
            &random_patch_gamma::one_exponent, "probability", &random_patch_gamma::probability);

  struct drawn : patch_gamma_functor {
    static constexpr auto fields = named("exponent", &drawn::exponent);
    auto prepare(const site& where) const {
      for (const float e : exponent) require(std::isfinite(e) && e > 0, where, "exponent ", e, " must be positive");
      return drawn_for_channels<random_patch_gamma, patch_gamma_functor>{*this};
    }
  };

  void check(const site& where) const {
    detail::check_interval(range, law, "range", where);
    require(range.low > 0, where, "range ", range, " must be positive");
  }

  drawn draw(draws& random, const site&) const {
    drawn result{};
    result.invert = invert;
    result.retain_statistics = retain_statistics;
    detail::draw_from(range, law, random, result.exponent);
    if (one_exponent)
      for (float& e : result.exponent) e = result.exponent[0];
    return result;
  }
};

}  // namespace suture
