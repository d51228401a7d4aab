// SPDX-License-Identifier: Apache-2.0
// Mirroring along array axes, deterministic and random.
#pragma once

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "../../rng/draw.hpp"
#include "relabel.hpp"

namespace suture {

// flip: reverses the array axes set in `axes`, (z, y, x): out(i) = in(N - 1 - i).
//   The array is mirrored, the physical place of every voxel is kept: origin and direction follow (as MONAI Flip and
//   nibabel do). Errors: none.
struct flip {
  static constexpr std::string_view name = "flip";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = true;

  vec3<bool> axes{false, false, false};

  static constexpr auto fields = named("axes", &flip::axes);
  static constexpr auto parameters = fields;

  reversed_axes picked(const grid&, const site&) const { return {axes}; }
  geometry_step step(const grid& input, const site&) const {
    return detail::axis_relabeling{.reversed = axes}.step(input);
  }
};

// random_flip: reverses each array axis with its own probability, (z, y, x), independently (three slots).
//   Source: nnU-Net v2 MirrorTransform (0.5 each). Errors: an axis probability outside [0, 1].
struct random_flip {
  static constexpr std::string_view name = "random_flip";
  static constexpr auto gives_size = output_size::alike;
  static constexpr std::uint16_t kind = 4;

  vec3<float> axis_probability{0.5f, 0.5f, 0.5f};
  float probability = 1;

  static constexpr auto parameters =
      named("axis_probability", &random_flip::axis_probability, "probability", &random_flip::probability);

  void check(const site& where) const {
    for (int k = 0; k < 3; ++k)
      require(axis_probability[k] >= 0 && axis_probability[k] <= 1, where, "axis_probability ", axis_probability,
              " must lie in [0, 1]");
  }

  flip draw(draws& random, const site&) const {
    flip drawn{};
    for (int k = 0; k < 3; ++k) drawn.axes[k] = random.bernoulli(axis_probability[k]);
    return drawn;
  }
};

}  // namespace suture
