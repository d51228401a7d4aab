// SPDX-License-Identifier: Apache-2.0
// Simulated low resolution.
#pragma once

#include <cmath>
#include <string_view>

#include "../../base/error.hpp"
#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../image/grid.hpp"
#include "../../math/root.hpp"
#include "../../pipeline/stage_schedule.hpp"
#include "../../rng/draw.hpp"
#include "../common/axis_values.hpp"
#include "../common/interval.hpp"

namespace suture {

// Rule by which coarse voxel j = 0 .. n - 1 picks one of N voxels:
//   nearest_exact   floor((j + 1/2) N / n): the voxel whose center is nearest. torch nearest-exact; batchgeneratorsv2.
//   nearest_lower   floor(j N / n), half a coarse voxel too low. torch nearest; MONAI RandSimulateLowResolution.
enum class coarse_pick { nearest_exact, nearest_lower };

// The low resolution of one sample: extents of the coarse patch by channel.
struct low_resolution_filter {
  coarse_pick pick;
  std::int32_t coarse[most_channels][3];  // those of the patch if the channel is unchanged
  std::uint32_t changes;                  // bit c: channel c

  SUTURE_FN bool active(std::int32_t channel) const { return (changes >> parameter_channel(channel) & 1u) != 0; }

  SUTURE_FN voxel_pair pair_at(int axis, std::int32_t i, std::int32_t n, std::int32_t channel) const {
    const std::int32_t coarse_n = coarse[parameter_channel(channel)][axis];
    // (i + 1/2) n' / n - 1/2 = ((2 i + 1) n' - n) / 2 n, held at 0.
    const std::int32_t above = (2 * i + 1) * coarse_n - n;
    const std::int32_t position = above > 0 ? above : 0;
    const std::int32_t j = position / (2 * n);
    const float t = math::detail::divide(static_cast<float>(position - j * (2 * n)), static_cast<float>(2 * n));
    const std::int32_t next = j + 1 < coarse_n ? j + 1 : coarse_n - 1;
    return {picked(j, n, coarse_n), picked(next, n, coarse_n), t};
  }
  SUTURE_FN std::int32_t picked(std::int32_t j, std::int32_t n, std::int32_t coarse_n) const {
    return pick == coarse_pick::nearest_exact ? (2 * j + 1) * n / (2 * coarse_n) : j * n / coarse_n;
  }
};

namespace detail {

// Returns round(n zoom), ties to even, at least 1.
inline std::int32_t coarse_extent(double n, double zoom) {
  const auto rounded = static_cast<std::int32_t>(std::rint(n * zoom));
  return rounded < 1 ? 1 : rounded;
}

}  // namespace detail

// Some channels, each with probability channel_probability, as if acquired with fewer voxels: reduced to round(n zoom)
// voxels along each axis (ties to even) by `pick`, then enlarged linearly (torch interpolate, align_corners = False).
// The zoom is drawn uniformly from `zoom` for every channel, the same along the axes in `axes`; other axes keep their
// resolution. nnU-Net v2: {.zoom = {.5f, 1}, .channel_probability = .5f, .probability = .25f}; dummy 2D: .axes =
// {false, true, true}. Errors: zoom not from low to high or not in (0, 1], channel_probability not in [0, 1], a patch
// of more than 16384 voxels along an axis. Source: batchgeneratorsv2 SimulateLowResolutionTransform.
struct random_low_resolution {
  interval zoom = {.5f, 1};
  coarse_pick pick = coarse_pick::nearest_exact;
  vec3<bool> axes{true, true, true};
  float channel_probability = 1;
  float probability = 1;

  static constexpr std::string_view name = "random_low_resolution";
  static constexpr std::uint16_t kind = 113;
  static constexpr auto parameters =
      named("zoom", &random_low_resolution::zoom, "pick", &random_low_resolution::pick, "axes",
            &random_low_resolution::axes, "channel_probability", &random_low_resolution::channel_probability,
            "probability", &random_low_resolution::probability);

  struct drawn {
    coarse_pick pick;
    vec3<bool> axes;
    extent3 patch;
    float zoom[most_channels];  // 1: the channel is unchanged

    static constexpr auto fields = named("zoom", &drawn::zoom);

    auto prepare(const site& where) const {
      drawn_for_channels<random_low_resolution, low_resolution_filter> f{};
      f.pick = pick;
      for (const float own : zoom) require(own > 0 && own <= 1, where, "zoom ", own, " is not in (0, 1]");
      for (int axis = 0; axis < 3; ++axis) {
        require(patch[axis] <= 16384, where, "patch of ", patch, " voxels, at most 16384 along an axis are possible");
        const auto n = static_cast<std::int32_t>(patch[axis]);
        std::int32_t coarse[most_channels];
        SUTURE_KEEP_LOOP
        for (int channel = 0; channel < most_channels; ++channel) {
          const double own = axes[axis] ? static_cast<double>(zoom[channel]) : 1.0;
          coarse[channel] = detail::coarse_extent(static_cast<double>(n), own);
          f.changes |= (coarse[channel] != n ? 1u : 0u) << channel;
        }
        for (int channel = 0; channel < most_channels; ++channel) f.coarse[channel][axis] = coarse[channel];
      }
      return f;
    }
  };

  void check(const site& where) const {
    detail::check_interval(zoom, "zoom", where);
    require(zoom.low > 0 && zoom.high <= 1, where, "zoom ", zoom, " is not in (0, 1]");
    detail::check_channel_probability(channel_probability, where);
  }

  drawn draw(draws& random, const grid& patch, const site&) const {
    drawn result{.pick = pick, .axes = axes, .patch = patch.extents, .zoom = {}};
    float u[2 * most_channels];
    random.units(u);
    const uniform_between factor(zoom.low, zoom.high);
    SUTURE_KEEP_LOOP
    for (int channel = 0; channel < most_channels; ++channel)
      result.zoom[channel] =
          math::detail::select(u[2 * channel] < channel_probability, factor(u[2 * channel + 1]), 1.0f);
    return result;
  }
};

}  // namespace suture
