// SPDX-License-Identifier: Apache-2.0
// Rotation by quarter turns, deterministic and random: no interpolation, the extents change places.
#pragma once

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "../../rng/draw.hpp"
#include "relabel.hpp"

namespace suture {

// The two array axes of a quarter turn; 0, 1, 2 are z, y, x.
struct axis_pair {
  std::int32_t first, second;

  static constexpr auto fields = named("first", &axis_pair::first, "second", &axis_pair::second);
};

// rot90: quarter_turns turns by 90 degrees from the first of `axes` towards the second, as numpy.rot90; any integer.
//   One turn: out(i, j) = in(j, N_second - 1 - i). The physical place of every voxel is kept: origin, spacing and
//   direction follow (as MONAI Rotate90 does). Errors: axes that are not two different ones of 0, 1, 2.
struct rot90 {
  static constexpr std::string_view name = "rot90";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = false;

  axis_pair axes{1, 2};
  std::int32_t quarter_turns = 1;

  static constexpr auto fields = named("quarter_turns", &rot90::quarter_turns);
  static constexpr auto parameters = named("axes", &rot90::axes, "quarter_turns", &rot90::quarter_turns);

  void check(const site& where) const {
    const auto [a, b] = axes;
    require(a >= 0 && a < 3 && b >= 0 && b < 3 && a != b, where, "axes (", a, ", ", b,
            ") must be two different ones of 0, 1, 2");
  }

  geometry_step step(const grid& input, const site& where) const {
    check(where);
    const auto [a, b] = axes;
    const int turns = ((quarter_turns % 4) + 4) % 4;
    detail::axis_relabeling to{};
    if (turns % 2 == 1) {
      to.source[a] = b;
      to.source[b] = a;
    }
    to.reversed[a] = turns == 1 || turns == 2;
    to.reversed[b] = turns == 2 || turns == 3;
    return to.step(input);
  }
};

// random_rot90: 1 to max_quarter_turns turns, each as likely (one slot). Where the two extents differ an odd number of
//   turns changes the shape of the output; crop to a cube-shaped patch first for outputs of one shape.
//   Source: MONAI RandRotate90 (max_k = 3). Errors: max_quarter_turns outside 1 .. 3; as rot90.
struct random_rot90 {
  static constexpr std::string_view name = "random_rot90";
  static constexpr auto gives_size = output_size::varying;
  static constexpr std::uint16_t kind = 5;

  axis_pair axes{1, 2};
  std::int32_t max_quarter_turns = 3;
  float probability = 1;

  static constexpr auto parameters = named("axes", &random_rot90::axes, "max_quarter_turns",
                                           &random_rot90::max_quarter_turns, "probability", &random_rot90::probability);

  void check(const site& where) const {
    require(max_quarter_turns >= 1 && max_quarter_turns <= 3, where, "max_quarter_turns ", max_quarter_turns,
            " must be 1, 2 or 3");
    rot90{.axes = axes}.check(where);
  }

  rot90 draw(draws& random, const grid&, const site&) const {
    return {.axes = axes, .quarter_turns = 1 + static_cast<std::int32_t>(random.integer(max_quarter_turns))};
  }
};

}  // namespace suture
