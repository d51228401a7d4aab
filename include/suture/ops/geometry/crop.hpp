// SPDX-License-Identifier: Apache-2.0
// Crops: a box of voxels of the input, chosen by its start, about the center, or at random.
#pragma once

#include "../../base/fields.hpp"
#include "../../image/geometry_step.hpp"
#include "../../rng/draw.hpp"

namespace suture {

namespace detail {

// Returns the step from a grid to that of a box of it.
inline geometry_step box_step(const grid& input, const voxel_box& box) {
  geometry_step result{input, affine_map{matrix3{}, vec_cast<double>(box.first)}};
  result.output.extents = box.size;
  result.output.origin = input.index_to_physical()(result.pull.offset);
  return result;
}

// Refuses one number in place of three, as in `.size = 8`, which compiles: C++ makes it (8, 0, 0).
inline void refuse_one_number(const extent3& size, const site& where) {
  const std::int64_t n = size[0];
  require(n <= 0 || size[1] != 0 || size[2] != 0, where, "size ", size, ": give three numbers, {", n, ", ", n, ", ", n,
          "}, or {1, ", n, ", ", n, "} for a tile");
}
inline void check_size(const extent3& size, const site& where) {
  refuse_one_number(size, where);
  for (int k = 0; k < 3; ++k)
    require(size[k] > 0, where, "patch ", size, " must be positive; sizes are (z, y, x), those of a tile (1, y, x)");
}
inline void check_patch(const extent3& size, const grid& input, const site& where) {
  check_size(size, where);
  for (int k = 0; k < 3; ++k)
    require(size[k] <= input.extents[k], where, "patch ", size, " is larger than the volume ", input.extents,
            "; pad the volume first (pad_to, crop_or_pad)");
}

}  // namespace detail

// crop: the box of `size` voxels that begins at input index `start`.
//   out(i) = in(start + i); voxels along (z, y, x); physical positions are kept (the origin moves).
// Errors: a size that is not positive, a box that leaves the volume.
struct crop {
  static constexpr std::string_view name = "crop";
  static constexpr auto gives_size = output_size::fixed;
  static constexpr bool keeps_axes = true;

  extent3 start{0, 0, 0};
  extent3 size{0, 0, 0};

  static constexpr auto fields = named("start", &crop::start);
  static constexpr auto parameters = named("start", &crop::start, "size", &crop::size);

  voxel_box picked(const grid& input, const site& where) const {
    detail::check_patch(size, input, where);
    for (int k = 0; k < 3; ++k)
      require(start[k] >= 0 && start[k] <= input.extents[k] - size[k], where, "box from ", start, " of size ", size,
              " leaves the volume ", input.extents);
    return {start, size};
  }
  geometry_step step(const grid& input, const site& where) const {
    return detail::box_step(input, picked(input, where));
  }
};

// center_crop: the box of `size` voxels in the middle, start = floor(N / 2) - floor(size / 2).
// Source: MONAI CenterSpatialCrop, nnU-Net v2 (the same start). Errors: as crop.
struct center_crop {
  static constexpr std::string_view name = "center_crop";
  static constexpr auto gives_size = output_size::fixed;
  static constexpr bool keeps_axes = true;
  static constexpr bool depends_on_grid_alone = true;

  extent3 size{0, 0, 0};

  static constexpr auto parameters = named("size", &center_crop::size);

  voxel_box picked(const grid& input, const site& where) const {
    const crop box = placed(input, where);
    return {box.start, box.size};
  }
  geometry_step step(const grid& input, const site& where) const {
    return detail::box_step(input, picked(input, where));
  }

  // Returns the equivalent crop on one grid.
  crop placed(const grid& input, const site& where) const {
    detail::check_patch(size, input, where);
    crop box{.size = size};
    for (int k = 0; k < 3; ++k) box.start[k] = input.extents[k] / 2 - size[k] / 2;
    return box;
  }
};

// random_crop: a box of `size` voxels, its start uniform over the integers 0 .. N - size along each axis
// (three slots, z first). Evaluation takes the center crop. Errors: as crop.
struct random_crop {
  static constexpr std::string_view name = "random_crop";
  static constexpr auto gives_size = output_size::fixed;
  static constexpr std::uint16_t kind = 3;

  extent3 size{0, 0, 0};
  float probability = 1;

  static constexpr auto parameters = named("size", &random_crop::size, "probability", &random_crop::probability);

  crop draw(draws& random, const grid& input, const site& where) const {
    detail::check_patch(size, input, where);
    crop box{.size = size};
    for (int k = 0; k < 3; ++k) box.start[k] = random.integer(input.extents[k] - size[k] + 1);
    return box;
  }

  crop evaluation(const grid& input, const site& where) const { return center_crop{size}.placed(input, where); }
};

}  // namespace suture
