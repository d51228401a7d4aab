// SPDX-License-Identifier: Apache-2.0
// Boxes of an image that are lost.
#pragma once

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <string_view>

#include "../../base/fields.hpp"
#include "../../base/vec.hpp"
#include "../../base/voxel.hpp"
#include "../../image/grid.hpp"
#include "../common/interval.hpp"

namespace suture {

namespace detail {
inline constexpr std::int32_t most_holes = 32;
}

// Voxels in any of `count` boxes read `fill`: one value, or {low, high} for one drawn uniformly per voxel and channel
// from `field`. With `keep_holes` it is the voxels outside all of them. Boxes are voxels of the grid the operation
// stands on and may reach beyond it.
// Errors: a count outside 0 .. 32, a negative size, fill not from low to high, a number that is not finite.
struct coarse_dropout {
  struct hole {
    std::int32_t start[3], size[3];  // z, y, x
    static constexpr auto fields = named("start", &hole::start, "size", &hole::size);

    void check(std::int32_t hole_number, std::int32_t most, const site& where) const {
      for (int axis = 0; axis < 3; ++axis) {
        require(size[axis] >= 0 && size[axis] <= most, where, "hole ", hole_number, " has the size ", size[axis]);
        require(std::abs(std::int64_t{start[axis]}) <= (1 << 24), where, "hole ", hole_number, " starts at ",
                start[axis]);
      }
    }
  };

  std::array<hole, detail::most_holes> holes;
  std::int32_t count;
  interval fill = 0;
  bool keep_holes = false;
  random_field field = {};

  static constexpr std::string_view name = "coarse_dropout";
  static constexpr auto fields = named("holes", first_of(&coarse_dropout::holes, &coarse_dropout::count));
  static constexpr auto parameters =
      named("holes", required(first_of(&coarse_dropout::holes, &coarse_dropout::count)), "fill", &coarse_dropout::fill,
            "keep_holes", &coarse_dropout::keep_holes, "field", left_out(&coarse_dropout::field));

  struct functor {
    hole holes[detail::most_holes];
    std::int32_t count;
    float low, extent;  // of the fill
    bool keep_holes;
    random_field field;

    SUTURE_FN float operator()(float x, const voxel& at) const {
      bool inside = false;
      for (std::int32_t n = 0; n < count; ++n)
        inside = inside || (within(holes[n], 0, at.z) && within(holes[n], 1, at.y) && within(holes[n], 2, at.x));
      if (inside == keep_holes) return x;
      return extent > 0 ? fma(field.uniform(at.element), extent, low) : low;
    }

    // operator() for voxels side by side along x.
    template <int Count>
    SUTURE_INLINE void apply_row(float (&values)[Count], const voxel& first) const {
      float filling[Count];
      bool lost[Count];
      if (!find_lost<2>(first, lost)) return;
      if (extent > 0) {
        field.uniform_row(first.element, filling);
        for (int l = 0; l < Count; ++l) filling[l] = fma(filling[l], extent, low);
      } else {
        for (int l = 0; l < Count; ++l) filling[l] = low;
      }
      for (int l = 0; l < Count; ++l) values[l] = lost[l] ? filling[l] : values[l];
    }

    // operator() for voxels side by side along any axis. Rows along x are preferred where most voxels may draw, since
    // the draws of a row share blocks.
    bool needs_strips_along_x() const { return extent > 0 && keep_holes; }
    template <int Count>
    SUTURE_INLINE void apply_line(float (&values)[Count], const voxel& first, int axis,
                                  std::uint64_t element_step) const {
      bool lost[Count];
      const bool any = axis == 0   ? find_lost<0>(first, lost)
                       : axis == 1 ? find_lost<1>(first, lost)
                                   : find_lost<2>(first, lost);
      if (!any) return;
      if (extent > 0) {
        for (int l = 0; l < Count; ++l)
          if (lost[l])
            values[l] = fma(field.uniform(first.element + static_cast<std::uint64_t>(l) * element_step), extent, low);
      } else {
        for (int l = 0; l < Count; ++l) values[l] = lost[l] ? low : values[l];
      }
    }

    // Finds which of Count neighbors along an axis are lost. Returns false only if none is, and then writes nothing.
    template <int Axis, int Count>
    SUTURE_INLINE bool find_lost(const voxel& first, bool (&lost)[Count]) const {
      constexpr int i = Axis == 0 ? 1 : 0, j = Axis == 2 ? 1 : 2;
      const std::int32_t at[3] = {first.z, first.y, first.x};
      bool any = keep_holes;
      if (any)
        for (bool& one : lost) one = true;
      for (std::int32_t n = 0; n < count; ++n) {
        if (!within(holes[n], i, at[i]) || !within(holes[n], j, at[j])) continue;
        if (!any)
          for (bool& one : lost) one = false;
        any = true;
        for (int l = 0; l < Count; ++l)
          if (within(holes[n], Axis, at[Axis] + l)) lost[l] = !keep_holes;
      }
      return any;
    }

    SUTURE_FN static bool within(const hole& box, int axis, std::int32_t index) {
      return static_cast<std::uint32_t>(index - box.start[axis]) < static_cast<std::uint32_t>(box.size[axis]);
    }
  };

  functor prepare(const site& where) const {
    require(count >= 0 && count <= detail::most_holes, where, "count ", count, " is not in 0 .. ", detail::most_holes);
    detail::check_interval(fill, "fill", where);
    const double extent = static_cast<double>(fill.high) - static_cast<double>(fill.low);
    require(extent <= static_cast<double>(FLT_MAX), where, "fill ", fill, " is too wide");
    functor f{{}, count, fill.low, static_cast<float>(extent), keep_holes, field};
    for (std::int32_t n = 0; n < count; ++n) {
      f.holes[n] = holes[static_cast<std::size_t>(n)];
      f.holes[n].check(n, std::numeric_limits<std::int32_t>::max(), where);
    }
    return f;
  }
};

// coarse_dropout with boxes drawn for each sample, the same for all channels: their number from `holes`, the size of
// each along each axis uniform between `size` and `max_size`, the place uniform among those inside the grid. Sizes are
// voxels; 0 is the whole axis, a `max_size` of 0 is `size`, and along an axis shorter than a size the box takes it
// whole. With `may_leave` the center is any voxel, and what of the box lies outside is cut off.
// Errors: holes outside 0 .. 32, a negative size, size above max_size, a max_size where size is 0 or above 2^31 - 1;
// those of coarse_dropout.
// Source: MONAI RandCoarseDropout; Cutout, DeVries and Taylor 2017 (`may_leave`).
struct random_coarse_dropout {
  integer_interval holes;
  extent3 size;
  extent3 max_size = {0, 0, 0};
  interval fill = 0;
  bool keep_holes = false;
  bool may_leave = false;
  float probability = 1;

  static constexpr std::string_view name = "random_coarse_dropout";
  static constexpr std::uint16_t kind = 41;
  static constexpr auto parameters =
      named("holes", required(&random_coarse_dropout::holes), "size", required(&random_coarse_dropout::size),
            "max_size", &random_coarse_dropout::max_size, "fill", &random_coarse_dropout::fill, "keep_holes",
            &random_coarse_dropout::keep_holes, "may_leave", &random_coarse_dropout::may_leave, "probability",
            &random_coarse_dropout::probability);

  void check(const site& where) const {
    detail::check_interval(holes, "holes", 0, detail::most_holes, where);
    for (int axis = 0; axis < 3; ++axis) {
      require(size[axis] >= 0 && (max_size[axis] == 0 || max_size[axis] >= size[axis]), where, "sizes from ", size,
              " to ", max_size, " must not be negative nor in the wrong order");
      require(size[axis] > 0 || max_size[axis] == 0, where, "max_size: expected 0 along axis ", axis, ", got ",
              max_size[axis], ". A size of 0 is the whole axis; give a least size there");
      require(max_size[axis] <= std::numeric_limits<std::int32_t>::max(), where, "max_size ", max_size,
              " must be at most 2147483647");
    }
  }

  // 193 slots whatever the number of holes.
  coarse_dropout draw(draws& random, const grid& g, const site&) const {
    coarse_dropout drawn{.holes = {},
                         .count = detail::draw_from(holes, random),
                         .fill = fill,
                         .keep_holes = keep_holes,
                         .field = random.field(1)};
    for (coarse_dropout::hole& box : drawn.holes)
      for (int axis = 0; axis < 3; ++axis) {
        const std::int64_t n = g.extents[axis];
        const std::int64_t least = size[axis] == 0 ? n : size[axis];
        const std::int64_t most = size[axis] == 0 ? n : std::max(least, max_size[axis]);
        const std::int64_t side = std::min(least + random.integer(most - least + 1), n);
        const std::int64_t place = random.integer(may_leave ? n : n - side + 1);
        box.size[axis] = static_cast<std::int32_t>(side);
        box.start[axis] = static_cast<std::int32_t>(may_leave ? place - side / 2 : place);
      }
    return drawn;
  }
};

}  // namespace suture
