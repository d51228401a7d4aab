// SPDX-License-Identifier: Apache-2.0
// Binary erosion, dilation, opening and closing of packed masks, a word of 64 voxels at a time.
#pragma once

#include "loops.hpp"
#include "structuring_element.hpp"

namespace suture {

namespace detail::masks {

// Computes a word of a dilation; or of an erosion, as the complement of the dilation of the complement.
struct dilate_words {
  bit_volume in, out;
  element_rows element;
  std::uint64_t flip;     // all ones for an erosion, 0 for a dilation: input and result are xored with it
  std::uint64_t outside;  // bits beyond the volume, all ones or 0, as they are after the xor of the input

  // Returns word w of a row of the input, complemented for an erosion, with `outside` beyond the row.
  SUTURE_FN std::uint64_t word(const std::uint64_t* row, std::int32_t w) const {
    if (w < 0 || w >= in.row_words) return outside;
    const std::uint64_t inside = in.inside(w);
    return ((row[w] ^ flip) & inside) | (outside & ~inside);
  }

  // Returns word w of a row dilated along x: bit x is set if any bit of x - half .. x + half is.
  SUTURE_FN std::uint64_t spread(const std::uint64_t* row, std::int32_t w, std::int32_t half) const {
    const std::uint64_t here = word(row, w);
    if (half == 0 || here == ~std::uint64_t{0}) return here;
    std::uint64_t up = here, below = word(row, w - 1), down = here, above = word(row, w + 1);
    for (std::int32_t reached = 0; reached < half;) {
      // Doubles the reach, but not beyond half.
      const std::int32_t step = reached + 1 < half - reached ? reached + 1 : half - reached;
      up |= up << step | below >> (64 - step);
      below |= below << step;
      down |= down >> step | above << (64 - step);
      above |= above >> step;
      reached += step;
    }
    return up | down;
  }

  SUTURE_FN void operator()(std::int32_t z, std::int32_t y, std::int32_t w) const {
    std::uint64_t any = 0;
    for (std::int32_t dz = -element.z; dz <= element.z && any != ~std::uint64_t{0}; ++dz)
      for (std::int32_t dy = -element.y; dy <= element.y; ++dy) {
        const std::int32_t half = element.half_width(dz, dy);
        if (half < 0) continue;
        const std::int32_t iz = z + dz, iy = y + dy;
        const bool is_inside = iz >= 0 && iz < in.extents[0] && iy >= 0 && iy < in.extents[1];
        any |= is_inside ? spread(in.row(iz, iy), w, half) : outside;
      }
    out.row(z, y)[w] = (any ^ flip) & out.inside(w);
  }
};

// Dilates, or erodes, a; the result is in b. A box is computed axis by axis: this overwrites the contents of a, and a
// and b may be swapped, so that b is then the memory that a was.
template <class Loops>
void dilate_of(Loops& loops, bit_volume& a, bit_volume& b, const structuring_element& e, bool erode,
               bool border_value) {
  const std::uint64_t flip = erode ? ~std::uint64_t{0} : 0;
  const std::uint64_t outside = border_value != erode ? ~std::uint64_t{0} : 0;
  const auto pass = [&](const extent3& radius) {
    loops.words(a, dilate_words{a, b, rows_of(e.shape, radius), flip, outside});
  };
  if (e.shape != element_shape::box) {
    pass(e.radius);
    return;
  }
  bool first = true;
  for (int k = 0; k < 3; ++k) {
    if (e.radius[k] == 0) continue;
    if (!first) std::swap(a, b);
    extent3 along{0, 0, 0};
    along[k] = e.radius[k];
    pass(along);
    first = false;
  }
  if (first) std::swap(a, b);
}

struct morphology_layout {
  bit_volume a, b;
  morphology_layout(arena& memory, const extent3& n) : a(memory.bits(n)), b(memory.bits(n)) {}
};

// Applies steps in order: true erodes, false dilates.
template <class Executor, class In, class Out>
void morphology(const Executor& exec, const In& in, const Out& out, std::string_view name, const structuring_element& e,
                bool border_value, std::initializer_list<bool> steps) {
  check(e, {name});
  mask_to_mask<morphology_layout>(exec, in, out, name, [&](auto& loops, const morphology_layout& l, std::size_t) {
    bit_volume a = l.a, b = l.b;
    for (const bool erode : steps) {
      dilate_of(loops, a, b, e, erode, border_value);
      std::swap(a, b);
    }
    return a;
  });
}

}  // namespace detail::masks

namespace mask_work {
// A quarter of a byte per voxel, in rows padded to 64 voxels.
using binary_erosion = needs<detail::masks::morphology_layout>;
using binary_dilation = needs<detail::masks::morphology_layout>;
using binary_opening = needs<detail::masks::morphology_layout>;
using binary_closing = needs<detail::masks::morphology_layout>;
}  // namespace mask_work

// binary_erosion: sets a voxel if every voxel of the element centered on it is set; binary_dilation: if any is. Voxels
// outside the volume are `border_value`.
//   in       views of any storage type, one channel; a voxel is set when it is not zero (a NaN is not)
//   out      uint8 masks of 0 and 1; may be the input itself, but not overlap it otherwise
// Errors: those of the element, views that do not match or overlap, more than 2^32 - 2 voxels, a workspace too small.
// Source: scipy.ndimage.binary_erosion, binary_dilation.
template <class Executor, class In, class Out>
void binary_erosion(const Executor& exec, const In& in, const Out& out, const structuring_element& element = {},
                    bool border_value = false) {
  detail::masks::morphology(exec, in, out, "binary_erosion", element, border_value, {true});
}
template <class Executor, class In, class Out>
void binary_dilation(const Executor& exec, const In& in, const Out& out, const structuring_element& element = {},
                     bool border_value = false) {
  detail::masks::morphology(exec, in, out, "binary_dilation", element, border_value, {false});
}

// binary_opening: erosion, then dilation; removes parts into which the element does not fit. binary_closing: dilation,
// then erosion; fills gaps into which it does not fit. Both steps use `border_value`, so a closing with 0 erodes what
// touches the border. Views and errors are those of binary_erosion. Source: scipy.ndimage.binary_opening,
// binary_closing.
template <class Executor, class In, class Out>
void binary_opening(const Executor& exec, const In& in, const Out& out, const structuring_element& element = {},
                    bool border_value = false) {
  detail::masks::morphology(exec, in, out, "binary_opening", element, border_value, {true, false});
}
template <class Executor, class In, class Out>
void binary_closing(const Executor& exec, const In& in, const Out& out, const structuring_element& element = {},
                    bool border_value = false) {
  detail::masks::morphology(exec, in, out, "binary_closing", element, border_value, {false, true});
}

}  // namespace suture
