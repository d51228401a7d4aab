// SPDX-License-Identifier: Apache-2.0
// The mask of the body in a CT volume.
#pragma once

#include "fill_holes.hpp"
#include "morphology.hpp"

namespace suture {

// The body mask is the patient without the air around; an opening also removes table and clothes if they touch the skin
// at few voxels. It is computed by these steps:
//   x > threshold -> binary_opening by a cross of `opening_radius` (0: none) -> largest 6-connected component ->
//   holes filled within every axial slice (axis z)
//   threshold       HU
//   opening_radius  voxels, 0..63
// Errors: a threshold that is not finite, a radius outside its range. Source: common practice, every step as in
// scipy.ndimage (label, binary_opening, binary_fill_holes).
struct body_mask_options {
  float threshold = -300;
  std::int64_t opening_radius = 0;
};

namespace mask_work {
// About 4.3 bytes a voxel, if rows have a multiple of 64 voxels.
using body_mask = needs<detail::masks::component_layout>;
}  // namespace mask_work

// Writes the body masks of CT volumes.
//   in       views of any storage type, one channel, HU; a NaN is not body
//   out      uint8 masks of 0 and 1; may be the input itself
//   results  one per sample, in memory that the executor writes (device memory for cuda): the voxels of the component
//            before its holes are filled. If no voxel is above the threshold after the opening, the status is `empty`
//            and the mask is 0
// Errors: those of the options, views that do not match or overlap, more than 2^32 - 2 voxels, a workspace too small.
template <class Executor, class In, class Out>
void body_mask(const Executor& exec, const In& inputs, const Out& outputs, std::span<largest_component_result> results,
               const body_mask_options& options = {}) {
  using namespace detail::masks;
  using T = std::remove_const_t<view_element_t<In>>;
  constexpr std::string_view name = "body_mask";
  static_assert(std::is_same_v<view_element_t<Out>, std::uint8_t>, "suture: a mask is written as std::uint8_t");
  const auto in = as_views(inputs);
  const auto out = as_views(outputs);
  const std::int64_t r = options.opening_radius;
  const structuring_element opening{element_shape::cross, {r, r, r}};
  require(std::isfinite(options.threshold), {name}, "threshold ", options.threshold, " must be finite");
  detail::masks::check(opening, {name});
  check_mask_views(in, out, name, true);
  mask_loops<Executor>::check_memory_of(exec, out, {name}, "output: ");
  check_mask_results(exec, results, in, name);
  for_masks<component_layout>(exec, in, name, [&](auto& loops, const component_layout& l, std::size_t i) {
    bit_volume a = l.a, b = l.b;
    loops.pack(strided_of<const T>(in[i]), is_above<T>{options.threshold}, a);
    if (r > 0) {
      dilate_of(loops, a, b, opening, true, false);
      dilate_of(loops, b, a, opening, false, false);
    }
    largest_of(loops, l, a, b, connectivity::faces);
    loops.each(1, report_largest{l.best, results.data() + i});
    fill_holes_of(loops, l.parent, b, a, true);
    loops.unpack(a, strided_of(out[i]));
  });
}

}  // namespace suture
