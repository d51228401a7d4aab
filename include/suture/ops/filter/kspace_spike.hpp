// SPDX-License-Identifier: Apache-2.0
// Spikes in k-space, seen as stripes over the whole patch.
#pragma once

#include <cmath>
#include <string_view>

#include "../../base/fields.hpp"
#include "../common/interval.hpp"
#include "gibbs_ringing.hpp"

namespace suture {

struct kspace_spikes {
  spike_of_channel spikes[most_channels];
  std::uint32_t channels;  // bit c: channel c; channels beyond the last use its bit

  SUTURE_FN bool active(std::int32_t channel) const { return (channels >> parameter_channel(channel) & 1u) != 0; }
  SUTURE_FN spike_of_channel spike(std::int32_t channel) const { return spikes[parameter_channel(channel)]; }
};

namespace detail {

inline spike_of_channel checked_spike(const extent3& location, float intensity, bool relative, const extent3& patch,
                                      const site& where) {
  require(std::isfinite(intensity), where, "intensity ", intensity, " must be finite");
  spike_of_channel spike{{}, intensity, relative};
  for (int k = 0; k < 3; ++k) {
    require(location[k] >= 0 && location[k] < patch[k], where, "location ", location, " is outside a patch of ", patch,
            " voxels");
    spike.at[k] = static_cast<std::int32_t>(location[k]);
  }
  return spike;
}

}  // namespace detail

// y = x + Re(D exp(2 pi i sum of k j / N)) / V: one frequency of the discrete Fourier transform X of the patch gets a
// new magnitude in its own phase (phase 0 where it is 0) and the real part is taken back, D the difference. `location`
// is its array index (z, y, x) with frequency 0 at N / 2, so k = location - N / 2; N are the extents, V the voxels, j
// the index of a voxel. The new magnitude is exp(intensity), or, where `relative`, exp(intensity m), m the mean over
// all frequencies of ln(|X| + 1e-10); log-magnitudes above 80 count as 80. A voxel that is not finite makes the whole
// channel so.
// Errors: a location outside the patch, an intensity that is not finite, a patch of more than 2048 voxels along an
// axis. Source: MONAI KSpaceSpikeNoise, whose rounding of every other magnitude is left out.
struct kspace_spike {
  extent3 location;
  float intensity = 2.5f;
  bool relative = true;

  static constexpr std::string_view name = "kspace_spike";
  static constexpr auto parameters = named("location", required(&kspace_spike::location), "intensity",
                                           &kspace_spike::intensity, "relative", &kspace_spike::relative);

  kspace_spikes prepare(const grid& patch, const site& where) const {
    detail::check_lines(patch.extents, where);
    kspace_spikes f{{}, ~0u};
    for (spike_of_channel& each : f.spikes)
      each = detail::checked_spike(location, intensity, relative, patch.extents, where);
    return f;
  }
};

// kspace_spike at a frequency drawn uniformly, of an intensity uniform in `intensity`, for every channel its own or,
// with `one_spike`, the same; for some channels, each with probability channel_probability. Errors: those of
// kspace_spike, intensity not from low to high, channel_probability not in [0, 1]. Source: MONAI RandKSpaceSpikeNoise:
// 2.5 times .95 to 1.1 times the mean of the log-magnitudes.
struct random_kspace_spike {
  interval intensity = {2.375f, 2.75f};
  bool relative = true;
  bool one_spike = false;
  float channel_probability = 1;
  float probability = 1;

  static constexpr std::string_view name = "random_kspace_spike";
  static constexpr std::uint16_t kind = 120;
  static constexpr auto parameters =
      named("intensity", &random_kspace_spike::intensity, "relative", &random_kspace_spike::relative, "one_spike",
            &random_kspace_spike::one_spike, "channel_probability", &random_kspace_spike::channel_probability,
            "probability", &random_kspace_spike::probability);

  struct drawn {
    bool relative;
    bool channels[most_channels];
    extent3 location[most_channels];
    float intensity[most_channels];

    static constexpr auto fields =
        named("channels", &drawn::channels, "location", &drawn::location, "intensity", &drawn::intensity);

    auto prepare(const grid& patch, const site& where) const {
      detail::check_lines(patch.extents, where);
      drawn_for_channels<random_kspace_spike, kspace_spikes> f{};
      for (int channel = 0; channel < most_channels; ++channel) {
        if (channels[channel]) f.channels |= 1u << channel;
        f.spikes[channel] =
            detail::checked_spike(location[channel], intensity[channel], relative, patch.extents, where);
      }
      return f;
    }
  };

  drawn draw(draws& random, const grid& patch, const site& where) const {
    detail::check_interval(intensity, "intensity", where);
    detail::check_channel_probability(channel_probability, where);
    drawn result{};
    result.relative = relative;
    for (int channel = 0; channel < most_channels; ++channel) {
      result.channels[channel] = random.bernoulli(channel_probability);
      for (int k = 0; k < 3; ++k) result.location[channel][k] = random.integer(patch.extents[k]);
      result.intensity[channel] = random.uniform(intensity.low, intensity.high);
      if (one_spike) {
        result.location[channel] = result.location[0];
        result.intensity[channel] = result.intensity[0];
      }
    }
    return result;
  }
};

}  // namespace suture
