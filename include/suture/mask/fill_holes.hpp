// SPDX-License-Identifier: Apache-2.0
// Hole filling: background that is not connected to the outside of the volume becomes part of the mask.
#pragma once

#include "components.hpp"

namespace suture {

namespace detail::masks {

// Unites background runs that touch, and joins those at the border to slot 0, the outside.
struct unite_background {
  run_forest forest;
  bool planar;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    unite_runs{forest, 1, planar}(z, y, w);
    const std::int32_t(&n)[3] = forest.bits.extents;
    const std::uint64_t a = forest.word(z, y, w);
    if (y == 0 || y == n[1] - 1 || (!planar && (z == 0 || z == n[0] - 1))) {
      for_runs(forest, z, y, w, [&](std::int32_t, std::uint32_t slot) { forest.unite(slot, 0); });
      return;
    }
    if (w == 0 && (a & 1) != 0) forest.unite(forest.slot(z, y, 0), 0);
    const std::int32_t last = n[2] - 1;
    if (w == last / 64 && (a >> (last % 64) & 1) != 0) forest.unite(forest.slot_of(z, y, last), 0);
  }
};

// Writes a word of the mask and its holes: background runs whose root is not the outside.
struct close_holes {
  run_forest forest;
  bit_volume out;
  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    const std::uint64_t holes = runs_that_pass(forest, z, y, w, [](std::uint32_t root) { return root != 0; });
    out.row(z, y)[w] = forest.bits.row(z, y)[w] | holes;
  }
};

// Sets b to a with its holes filled. `parent` has a slot for each run; `planar` fills slice by slice.
template <class Loops>
void fill_holes_of(Loops& loops, std::uint32_t* parent, const bit_volume& a, const bit_volume& b, bool planar) {
  const run_forest forest{a, ~std::uint64_t{0}, parent};
  loops.words(a, plant_runs{forest});
  loops.words(a, unite_background{forest, planar});
  loops.words(a, close_holes{forest, b});
}

struct fill_layout {
  bit_volume a, b;
  std::uint32_t* parent;

  fill_layout(arena& memory, const extent3& n)
      : a(memory.bits(n)), b(memory.bits(n)), parent(memory.allocate<std::uint32_t>(run_slots(n))) {}
};

}  // namespace detail::masks

// Directions in which a hole must be enclosed.
enum class hole_filling : std::int32_t {
  volume,  // background enclosed in all directions
  slices,  // background enclosed within its axial slice
};

namespace mask_work {
// About 2.3 bytes a voxel, if rows have a multiple of 64 voxels.
using fill_holes = needs<detail::masks::fill_layout>;
}  // namespace mask_work

// fill_holes: fills the background that no face-connected path of background voxels connects to the outside of the
// volume, or of the slice. In a volume of one slice every voxel is at the outside, so fill it by slices.
// Views: those of keep_largest_component. Errors: those of label_components.
// Source: scipy.ndimage.binary_fill_holes, per slice for `slices`.
template <class Executor, class In, class Out>
void fill_holes(const Executor& exec, const In& in, const Out& out, hole_filling enclosed = hole_filling::volume) {
  using namespace detail::masks;
  mask_to_mask<fill_layout>(exec, in, out, "fill_holes", [&](auto& loops, const fill_layout& l, std::size_t) {
    fill_holes_of(loops, l.parent, l.a, l.b, enclosed == hole_filling::slices);
    return l.b;
  });
}

}  // namespace suture
