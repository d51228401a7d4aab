// SPDX-License-Identifier: Apache-2.0
// Padding: a larger grid around the input. The border rule of the sampling fills the new voxels.
#pragma once

#include <algorithm>

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "crop.hpp"

namespace suture {

// pad: `before` voxels in front of and `after` voxels behind the input along each axis, (z, y, x).
//   out(i) = in(i - before); physical positions are kept (the origin moves).
// Errors: negative widths, an output too large for a grid.
struct pad {
  static constexpr std::string_view name = "pad";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = true;

  extent3 before{0, 0, 0};
  extent3 after{0, 0, 0};

  static constexpr auto parameters = named("before", &pad::before, "after", &pad::after);

  geometry_step step(const grid& input, const site& where) const {
    extent3 start{}, size{};
    for (int k = 0; k < 3; ++k) {
      require(before[k] >= 0 && after[k] >= 0, where, "widths ", before, " before and ", after,
              " after must not be negative");
      start[k] = -before[k];
      require(!__builtin_add_overflow(before[k], after[k], &size[k]) &&
                  !__builtin_add_overflow(size[k], input.extents[k], &size[k]),
              where, "widths ", before, " before and ", after, " after overflow 64 bits");
    }
    const geometry_step result = detail::box_step(input, {start, size});
    check(result.output, where);
    return result;
  }
};

// pad_to: to at least `size` voxels, (z, y, x); axes already as large stay. Of the d missing voxels floor(d / 2) go in
//   front and the rest behind. Source: MONAI SpatialPad(method="symmetric"), nnU-Net pad_nd_image.
// Errors: negative sizes, an output too large for a grid.
struct pad_to {
  static constexpr std::string_view name = "pad_to";
  static constexpr auto gives_size = output_size::alike;
  static constexpr bool keeps_axes = true;

  extent3 size{0, 0, 0};

  static constexpr auto parameters = named("size", &pad_to::size);

  geometry_step step(const grid& input, const site& where) const {
    pad widths{};
    for (int k = 0; k < 3; ++k) {
      require(size[k] >= 0, where, "size ", size, " must not be negative");
      const std::int64_t missing = std::max<std::int64_t>(size[k] - input.extents[k], 0);
      widths.before[k] = missing / 2;
      widths.after[k] = missing - missing / 2;
    }
    return widths.step(input, where);
  }
};

// crop_or_pad: to exactly `size` voxels, (z, y, x), along each axis as center_crop or as pad_to does.
//   Source: MONAI ResizeWithPadOrCrop. Errors: sizes that are not positive, an output too large for a grid.
struct crop_or_pad {
  static constexpr std::string_view name = "crop_or_pad";
  static constexpr auto gives_size = output_size::fixed;
  static constexpr bool keeps_axes = true;

  extent3 size{0, 0, 0};

  static constexpr auto parameters = named("size", &crop_or_pad::size);

  geometry_step step(const grid& input, const site& where) const {
    detail::refuse_one_number(size, where);
    extent3 start{};
    for (int k = 0; k < 3; ++k) {
      require(size[k] > 0, where, "size ", size, " must be positive");
      start[k] = size[k] > input.extents[k] ? -((size[k] - input.extents[k]) / 2) : input.extents[k] / 2 - size[k] / 2;
    }
    const geometry_step result = detail::box_step(input, {start, size});
    check(result.output, where);
    return result;
  }
};

}  // namespace suture
