// SPDX-License-Identifier: Apache-2.0
// The bounding box of the foreground of an image, and the crop to it.
#pragma once

#include "../ops/geometry/crop.hpp"
#include "loops.hpp"

namespace suture {

// A box of voxels first .. last along (z, y, x), both inclusive. If empty, first is {0, 0, 0} and last is {-1, -1, -1}.
struct bounding_box_result {
  mask_status status;
  std::int32_t first[3], last[3];
};

namespace detail::masks {

// Extends the box of a sample by a row of voxels; called once for each row. The box is six numbers, all raised by
// maxima: the complements of its first indices along (z, y, x), then its last indices.
struct grow_box {
  bit_volume bits;
  std::uint32_t* box;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t) const {
    const std::uint64_t* const row = bits.row(z, y);
    std::int32_t first = 0, last = bits.row_words - 1;
    while (first < last && row[first] == 0) ++first;
    while (last > first && row[last] == 0) --last;
    if (row[first] == 0) return;
    const std::int32_t at[3][2] = {
        {z, z}, {y, y}, {first * 64 + trailing_zeros(row[first]), last * 64 + 63 - leading_zeros(row[last])}};
    for (int k = 0; k < 3; ++k) {
      raise_to(box + k, ~static_cast<std::uint32_t>(at[k][0]));
      raise_to(box + 3 + k, static_cast<std::uint32_t>(at[k][1]));
    }
  }
};
struct report_box {
  const std::uint32_t* box;
  bounding_box_result* result;
  SUTURE_FN void operator()(std::int64_t) const {
    const bool found = box[0] != 0;
    result->status = found ? mask_status::ok : mask_status::empty;
    for (int k = 0; k < 3; ++k) {
      result->first[k] = found ? static_cast<std::int32_t>(~box[k]) : 0;
      result->last[k] = found ? static_cast<std::int32_t>(box[3 + k]) : -1;
    }
  }
};

struct box_layout {
  bit_volume bits;
  std::uint32_t* box;
  box_layout(arena& memory, const extent3& n) : bits(memory.bits(n)), box(memory.allocate<std::uint32_t>(6)) {}
};

}  // namespace detail::masks

namespace mask_work {
// One bit per voxel, in rows padded to 64 voxels.
using bounding_box = needs<detail::masks::box_layout>;
}  // namespace mask_work

// bounding_box: finds the smallest box that contains every voxel with any channel above `threshold` (a NaN is not).
//   in       views of any storage type and number of channels
//   results  one per sample, in memory that the executor writes (device memory for cuda)
// Errors: invalid views, more than 2^32 - 2 voxels, a threshold that is not a number, a workspace too small.
// Source: scipy.ndimage.find_objects, MONAI generate_spatial_bounding_box.
template <class Executor, class In>
void bounding_box(const Executor& exec, const In& inputs, std::span<bounding_box_result> results, float threshold = 0) {
  using namespace detail::masks;
  constexpr std::string_view name = "bounding_box";
  using T = std::remove_const_t<view_element_t<In>>;
  const auto in = as_views(inputs);
  check_mask_inputs(in, name, false);
  check_mask_results(exec, results, in, name);
  require(!std::isnan(threshold), {name}, "threshold must be a number");
  for_masks<box_layout>(exec, in, name, [&](auto& loops, const box_layout& l, std::size_t i) {
    const strided<const T> from = strided_of<const T>(in[i]);
    if (from.channels == 1)
      loops.pack(from, is_above<T>{threshold}, l.bits);
    else
      loops.pack(from, any_above<T>{{threshold}, from.channels, from.channel_stride}, l.bits);
    loops.each(6, set_zero<std::uint32_t>{l.box});
    const std::int32_t rows[3] = {l.bits.extents[0], l.bits.extents[1], 1};
    loops.voxels(rows, grow_box{l.bits, l.box});
    loops.each(1, report_box{l.box, results.data() + i});
  });
}

// box_crop: crops to the box of `size` voxels, along (z, y, x), that begins at input index `start`. Voxels outside the
// input are filled by the border rule.
//   out(i) = in(start + i); physical positions are kept (the origin moves).
// Errors: a size that is not positive, a start beyond +-2^22.
struct box_crop {
  static constexpr std::string_view name = "box_crop";
  static constexpr bool keeps_axes = true;

  extent3 start{0, 0, 0};
  extent3 size{0, 0, 0};

  geometry_step step(const grid& input, const site& where) const {
    for (int k = 0; k < 3; ++k) {
      require(size[k] > 0, where, "size ", size, " must be positive");
      require(start[k] >= -(std::int64_t{1} << 22) && start[k] <= std::int64_t{1} << 22, where, "start ", start,
              " is further than 2^22 voxels away");
    }
    const geometry_step result = detail::box_step(input, {start, size});
    check(result.output, where);
    return result;
  }
};

// crop_foreground: turns a bounding box into the crop of an image.
//   margin         voxels added on both sides
//   allow_smaller  whether the box, with its margin, is cut at the faces of the image; otherwise it may leave the image
//   divisible_by   each size is raised to a multiple of this; floor(d / 2) of d added voxels are at the low side. The
//                  box may then leave the image. 0 or 1: any size
// An empty bounding box gives the whole image. Source: MONAI CropForeground.
// Errors: a margin or divisor outside 0 .. 2^21, a bounding box outside the extents.
struct crop_foreground {
  static constexpr std::string_view name = "crop_foreground";

  extent3 margin{0, 0, 0};
  extent3 divisible_by{1, 1, 1};
  bool allow_smaller = true;

  box_crop placed(const bounding_box_result& found, const grid& input, const site& where = {name}) const {
    box_crop box{.start = {0, 0, 0}, .size = input.extents};
    for (int k = 0; k < 3; ++k) {
      const std::int64_t n = input.extents[k];
      require(margin[k] >= 0 && margin[k] <= std::int64_t{1} << 21, where, "margin ", margin, " must be in 0..2^21");
      require(divisible_by[k] >= 0 && divisible_by[k] <= std::int64_t{1} << 21, where, "divisor ", divisible_by,
              " must be in 0..2^21");
      if (found.status == mask_status::empty) continue;
      require(found.first[k] >= 0 && found.first[k] <= found.last[k] && found.last[k] < n, where, "box of ",
              found.first[k], "..", found.last[k], " leaves the extents ", input.extents);
      std::int64_t first = found.first[k] - margin[k], end = found.last[k] + 1 + margin[k];
      if (allow_smaller) {
        first = std::max<std::int64_t>(first, 0);
        end = std::min(end, n);
      }
      const std::int64_t unit = std::max<std::int64_t>(divisible_by[k], 1);
      const std::int64_t size = (end - first + unit - 1) / unit * unit;
      box.start[k] = first - (size - (end - first)) / 2;
      box.size[k] = size;
    }
    return box;
  }
};

}  // namespace suture
