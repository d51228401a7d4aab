// SPDX-License-Identifier: Apache-2.0
// Source coordinates of a strip, which moves from row to row. Each step is a short loop over the lanes that compilers
// vectorize; every lane does exactly the arithmetic of a single voxel.
#pragma once

#include <algorithm>

#include "../../evaluate/column.hpp"
#include "../common/lanes.hpp"
#include "../common/loop_order.hpp"
#include "displacement_lanes.hpp"
#include "displacement_rows.hpp"
#include "inverse_displacement_lanes.hpp"
#include "tuning.hpp"

namespace suture::detail {

// Source coordinates of the lanes from x0 on, as voxel index and fraction along each axis of the source. Lanes past the
// end of the row repeat its last voxel.
template <class Pipeline>
class strip {
public:
  static constexpr int width = strip_width;

  alignas(lane_alignment) std::int32_t base[3][width];
  alignas(lane_alignment) float fraction_of[3][width];
  std::int32_t lowest[3], highest[3];  // of base, over the lanes

  strip(const sample_parameters<Pipeline>& sample, std::int32_t x0) : sample_(sample), x0_(x0) {
    for (int k = 0; k < 3; ++k) {
      first_lane_[k] = scaled(sample.map.linear[k][2], x0);
      last_lane_[k] = scaled(sample.map.linear[k][2], std::min(x0 + width, sample.extents[2]) - 1);
    }
    place_lanes();
    if constexpr (Pipeline::separable_deformation) {
      if (sample.controls.on) displaced_.place(sample.controls, lane_axis(), x_);
    } else if constexpr (rotated_deformation) {
      if (sample.controls.on) displaced_.place(sample.controls, x_);
    }
  }

  // Computes the coordinates in row y of plane z of the loops.
  void locate(std::int32_t z, std::int32_t y) {
    z_ = z;
    y_ = y;
    for (int k = 0; k < 3; ++k)
      position_[k] = sample_.map.offset[k] + scaled(sample_.map.linear[k][0], z) + scaled(sample_.map.linear[k][1], y);
    if constexpr (Pipeline::has_deformation)
      if (sample_.kind == map_kind::displaced) {
        locate_deformed();
        for (int k = 0; k < 3; ++k) {
          std::int32_t low = base[k][0], high = base[k][0];
          for (int l = 0; l < width; ++l) {
            low = std::min(low, base[k][l]);
            high = std::max(high, base[k][l]);
          }
          lowest[k] = low;
          highest[k] = high;
        }
        return;
      }
    for (int k = 0; k < 3; ++k) {  // a straight line: its ends
      const std::int32_t first = whole(position_[k] + first_lane_[k]), last = whole(position_[k] + last_lane_[k]);
      lowest[k] = std::min(first, last);
      highest[k] = std::max(first, last);
    }
    locate_affine();
  }

  // Sets the distance to the strip to be prefetched. Along z and y it is rounded in the direction of the walk: voxels
  // on the other side have been read already.
  void expect(std::int32_t z, std::int32_t y, std::int32_t x) {
    const fixed_map& map = sample_.map;
    for (int k = 0; k < 3; ++k) {
      ahead_[k] = whole(scaled(map.linear[k][0], z) + scaled(map.linear[k][1], y) + scaled(map.linear[k][2], x) +
                        (k != lane_axis() && upwards(k) ? (std::uint64_t{1} << fixed_fraction_bits) - 1 : 0));
    }
  }
  // Returns the offset, in elements of the source, from the voxels of this strip to roughly those of the strip that is
  // prefetched.
  std::int64_t ahead(const std::int64_t (&stride)[3]) const {
    return ahead_[0] * stride[0] + ahead_[1] * stride[1] + ahead_[2] * stride[2];
  }

  // Returns the offset, in elements, of the one of 2 x 2 voxels across rows that ascending planes and rows reach first.
  std::int64_t leading_corner(const std::int64_t (&stride)[3]) const {
    std::int64_t offset = 0;
    for (int j = 0; j < 2; ++j) {
      const int k = loop_axes[sample_.loops][j];
      offset += upwards(k) ? stride[k] : 0;
    }
    return offset;
  }

  // Tests whether the voxels from base + first to base + last lie inside extents n for every lane.
  bool within(const std::int32_t (&n)[3], std::int32_t first, std::int32_t last) const {
    bool in = true;
    for (int k = 0; k < 3; ++k) in = in && lowest[k] + first >= 0 && highest[k] + last < n[k];
    return in;
  }

  // Tests whether the sample is planar and the 2 x 2 voxels that each lane reads lie inside extents n.
  bool within_plane(const std::int32_t (&n)[3]) const {
    return sample_.planar != 0 && lowest[1] >= 0 && highest[1] + 1 < n[1] && lowest[2] >= 0 && highest[2] + 1 < n[2];
  }

  void lane(int l, coordinate (&c)[3]) const {
    for (int k = 0; k < 3; ++k) c[k] = {base[k][l], fraction_of[k][l]};
  }

private:
  static constexpr bool rotated_deformation =
      Pipeline::has_deformation && !Pipeline::inverts_deformation && !Pipeline::separable_deformation;

  int lane_axis() const { return loop_axes[sample_.loops][2]; }
  // Tests whether the source is walked upwards along axis k if the output is.
  bool upwards(int k) const { return whole(sample_.map.linear[k][loop_along(sample_.loops, k)]) >= 0; }

  void place_lanes() {
    for (int l = 0; l < width; ++l) x_[l] = std::min(x0_ + l, sample_.extents[2] - 1);
    for (int k = 0; k < 3; ++k) {
      const std::uint64_t step_x = sample_.map.linear[k][2];
      for (int i = 0; i < width; ++i)
        lane_offset_[k][i] = scaled(step_x, std::min(x0_ + lane_at(i), sample_.extents[2] - 1));
    }
  }

  // The lane whose offset is at index i before locate_affine moves it to its place.
  static constexpr int lane_at(int i) {
#if defined(SUTURE_HAS_SIMD)
    return simd::lane_of_word(i);
#else
    return i;
#endif
  }

  void locate_affine() {
    for (int k = 0; k < 3; ++k) {
      const std::uint64_t row = position_[k];
      const std::uint64_t* const offset = lane_offset_[k];
#if defined(SUTURE_HAS_SIMD)
      const simd::integers first = simd::every_64(row);
      const simd::floats one = simd::every_float(1.0f);
      for (int l = 0; l < width; l += simd::lanes_32) {
        const simd::integers a = simd::add_64(first, simd::load(offset + l)),
                             b = simd::add_64(first, simd::load(offset + l + simd::lanes_64));
        constexpr int whole_above = fixed_fraction_bits - 23;
        const simd::floats high = simd::words_of<simd::upper_words>(a, b),
                           low = simd::words_of<simd::lower_words>(simd::shift_right_64<whole_above>(a),
                                                                   simd::shift_right_64<whole_above>(b));
        const simd::integers mantissa = simd::both(simd::as_integers(low), simd::every_32(0x007fffff));
        const simd::floats above_one = simd::as_floats(simd::either(mantissa, simd::as_integers(one)));
        simd::store(&base[k][l], simd::shift_right_signed_32<fixed_fraction_bits - 32>(simd::as_integers(high)));
        simd::store(&fraction_of[k][l], simd::subtract(above_one, one));
      }
#else
      for (int l = 0; l < width; ++l) {
        const coordinate c = split(row + offset[l]);
        base[k][l] = c.base;
        fraction_of[k][l] = c.fraction;
      }
#endif
    }
  }

  void locate_deformed() {
    const auto& g = sample_.controls;
    if constexpr (Pipeline::inverts_deformation) {
      locate_affine();
      static_assert(width % undo_width == 0);
      for (int first = 0; first < width; first += undo_width) {
        inverse_displacement_lanes lanes(g, z_, y_, x_ + first);
        lanes.solve();
        for (int k = 0; k < 3; ++k)
          for (int l = 0; l < undo_width; ++l) {
            const coordinate c = lanes.undone({base[k][first + l], fraction_of[k][first + l]}, k, l);
            base[k][first + l] = c.base;
            fraction_of[k][first + l] = c.fraction;
          }
      }
    } else {
      locate_affine();
      displaced_.set(g, z_, y_);
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < width; ++l) {
          const coordinate m = moved({base[k][l], fraction_of[k][l]}, displaced_.u[k][l]);
          base[k][l] = m.base;
          fraction_of[k][l] = m.fraction;
        }
    }
  }

  const sample_parameters<Pipeline>& sample_;
  std::int32_t x0_, z_ = 0, y_ = 0;
  std::int32_t ahead_[3] = {};
  std::int32_t x_[width];
  std::uint64_t position_[3];                                    // of the first voxel of the row
  alignas(lane_alignment) std::uint64_t lane_offset_[3][width];  // from that voxel to each lane
  std::uint64_t first_lane_[3], last_lane_[3];
  std::conditional_t<rotated_deformation, displacement_lanes<>,
                     std::conditional_t<Pipeline::separable_deformation, displacement_rows<>, no_controls>>
      displaced_;
};

}  // namespace suture::detail
