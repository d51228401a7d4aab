// SPDX-License-Identifier: Apache-2.0
// Gibbs ringing: k-space limited to a ball.
#pragma once

#include <algorithm>
#include <string_view>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../image/grid.hpp"
#include "../../math/root.hpp"
#include "../../pipeline/stage_schedule.hpp"
#include "../common/interval.hpp"

namespace suture {

// Part of k-space that is kept, by channel: array indices i whose squared distance from the middle of the array, in
// half voxels, is at most `limit`.
struct gibbs_mask {
  std::int32_t limit[most_channels];
  std::uint32_t channels;  // bit c: channel c; channels beyond the last use its bit

  SUTURE_FN bool active(std::int32_t channel) const { return (channels >> parameter_channel(channel) & 1u) != 0; }
  SUTURE_FN float weight(const std::int32_t (&n)[3], std::int32_t z, std::int32_t y, std::int32_t x,
                         std::int32_t channel) const {
    const std::int32_t dz = 2 * z - (n[0] - 1), dy = 2 * y - (n[1] - 1), dx = 2 * x - (n[2] - 1);
    return dz * dz + dy * dy + dx * dx <= limit[parameter_channel(channel)] ? 1.0f : 0.0f;
  }
};

namespace detail {

inline void check_lines(const extent3& patch, const site& where) {
  for (int k = 0; k < 3; ++k)
    require(patch[k] <= longest_line, where, "patch of ", patch, " voxels, at most ", longest_line,
            " along an axis can be transformed");
  require(patch[0] * patch[1] * patch[2] <= 2147483647, where, "patch of ", patch,
          " voxels, at most 2147483647 can be transformed");
}

// Returns the largest limit with sqrt(limit) / 2 <= radius.
inline std::int32_t ball_limit(double alpha, const extent3& n, const site& where) {
  require(alpha >= 0 && alpha <= 1, where, "alpha ", alpha, " is not in [0, 1]");
  const auto longest = static_cast<double>(std::max({n[0], n[1], n[2]}));
  const double radius = (1 - alpha) * longest * 1.4142135623730951 / 2.0;
  auto limit = static_cast<std::int32_t>(4 * radius * radius);
  while (math::sqrt(static_cast<double>(limit + 1)) / 2 <= radius) ++limit;
  while (math::sqrt(static_cast<double>(limit)) / 2 > radius) --limit;
  return limit;
}

}  // namespace detail

// y = the real part of the inverse transform of M F x, F x the discrete Fourier transform of the patch with frequency 0
// at index N / 2 of each axis, M 1 where the index is at most (1 - alpha) max(N) sqrt(2) / 2 away from the middle
// (N - 1) / 2 of the array and 0 elsewhere; N the extents, a patch of one slice is transformed in its plane. alpha = 0
// keeps all of a plane but not the corners of a volume. With alpha = 1 only the middle itself is kept: the mean where
// all extents are odd, and nothing, y = 0, otherwise. A voxel that is not finite makes the whole channel so.
// Errors: alpha not in [0, 1], a patch of more than 2048 voxels along an axis.
// Source: MONAI GibbsNoise.
struct gibbs_ringing {
  float alpha = .5f;

  static constexpr std::string_view name = "gibbs_ringing";
  static constexpr auto parameters = named("alpha", &gibbs_ringing::alpha);

  gibbs_mask prepare(const grid& patch, const site& where) const {
    detail::check_lines(patch.extents, where);
    gibbs_mask mask{{}, ~0u};
    for (std::int32_t& limit : mask.limit) limit = detail::ball_limit(static_cast<double>(alpha), patch.extents, where);
    return mask;
  }
};

// gibbs_ringing with alpha uniform in `alpha`, the same for all channels with `one_alpha`, for some channels, each with
// probability channel_probability.
// Errors: those of gibbs_ringing, alpha not from low to high, channel_probability not in [0, 1].
// Source: MONAI RandGibbsNoise.
struct random_gibbs_ringing {
  interval alpha = {0, 1};
  bool one_alpha = true;
  float channel_probability = 1;
  float probability = 1;

  static constexpr std::string_view name = "random_gibbs_ringing";
  static constexpr std::uint16_t kind = 119;
  static constexpr auto parameters =
      named("alpha", &random_gibbs_ringing::alpha, "one_alpha", &random_gibbs_ringing::one_alpha, "channel_probability",
            &random_gibbs_ringing::channel_probability, "probability", &random_gibbs_ringing::probability);

  struct drawn {
    bool channels[most_channels];
    float alpha[most_channels];

    static constexpr auto fields = named("channels", &drawn::channels, "alpha", &drawn::alpha);

    auto prepare(const grid& patch, const site& where) const {
      detail::check_lines(patch.extents, where);
      drawn_for_channels<random_gibbs_ringing, gibbs_mask> mask{};
      for (int channel = 0; channel < most_channels; ++channel) {
        if (channels[channel]) mask.channels |= 1u << channel;
        mask.limit[channel] = detail::ball_limit(static_cast<double>(alpha[channel]), patch.extents, where);
      }
      return mask;
    }
  };

  drawn draw(draws& random, const site& where) const {
    detail::check_interval(alpha, "alpha", where);
    require(alpha.low >= 0 && alpha.high <= 1, where, "alpha ", alpha, " is not in [0, 1]");
    detail::check_channel_probability(channel_probability, where);
    drawn result{};
    for (int channel = 0; channel < most_channels; ++channel) {
      result.channels[channel] = random.bernoulli(channel_probability);
      const float own = random.uniform(alpha.low, alpha.high);
      result.alpha[channel] = one_alpha && channel > 0 ? result.alpha[0] : own;
    }
    return result;
  }
};

}  // namespace suture
