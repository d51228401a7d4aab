// SPDX-License-Identifier: Apache-2.0
// Interpolated values of samples that keep their axes, where lanes run along x and rows along y. Neighboring rows of
// the output read the same rows of the source, so sums along x, and then along y, are computed once for all that need
// them.
#pragma once

#include <limits>

#include "kept_axes.hpp"

namespace suture::detail {

// One column of strips, from x0 on, of one channel of an image, in rows y0 to y1 - 1, which are at most Rows.
template <class Pipeline, class T, int Rows>
class aligned_values {
  using I = typename Pipeline::interpolation_type;
  using B = typename Pipeline::border_type;
  static constexpr int taps = I::taps;
  static_assert((taps & (taps - 1)) == 0);
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::min();
  // Returns the slot of a source row or plane in a ring buffer of the last `taps` of them.
  static constexpr std::int32_t slot_of(std::int32_t i) { return i & (taps - 1); }

public:
  aligned_values(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel,
                 const B& border, std::int32_t y0, std::int32_t y1, std::int32_t x0)
      : sample_(sample),
        border_(border),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        y0_(y0),
        y1_(y1) {
    bool all_in = true;
    for (int j = 0; j < taps; ++j) {
      x_[j].template set<B>(sample, x0, in.extents[2], in.stride[2], [&](coordinate c) { return first_tap(c) + j; });
      all_in = all_in && x_[j].all_in;
      plane_in_slot_[j] = row_in_slot_[j] = none;
    }
    pairs_ = taps == 2 && all_in && in.stride[2] == 1;
    for (int l = 0; l < strip_width; ++l) {
      float w[taps];
      I::weights(along_axis(sample, 2, std::min(x0 + l, sample.extents[2] - 1)).fraction, w);
      for (int j = 0; j < taps; ++j) weights_[j][l] = w[j];
    }
  }

  // The interpolated values of row (z, y).
  void row(std::int32_t z, std::int32_t y, float (&v)[strip_width]) {
    const coordinate c = along_axis(sample_, 0, z);
    const std::int32_t first = first_tap(c);
    for (int a = 0; a < taps; ++a) keep_plane(first + a);
    combine(
        c.fraction, v, [&](int a) -> const auto& { return planes_[slot_of(first + a)][y - y0_]; });
  }

private:
  static std::int32_t first_tap(const coordinate& c) { return I::first(c) + Pipeline::padding; }

  // Interpolates, lane by lane, between the strips of(0) to of(taps - 1).
  template <class Of>
  static void combine(float fraction, float (&out)[strip_width], const Of& of) {
    float w[taps];
    I::weights(fraction, w);
    const float* from[taps];
    for (int j = 0; j < taps; ++j) from[j] = of(j);
    for (int l = 0; l < strip_width; ++l) {
      float v[taps];
      SUTURE_UNROLL
      for (int j = 0; j < taps; ++j) v[j] = from[j][l];
      out[l] = I::combine(v, w);
    }
  }

  // Interpolates plane z of the source along x and y for every row of the column, unless it is kept.
  void keep_plane(std::int32_t z) {
    if (plane_in_slot_[slot_of(z)] == z) return;
    plane_in_slot_[slot_of(z)] = z;
    for (std::int32_t& row : row_in_slot_) row = none;
    for (std::int32_t y = y0_; y < y1_; ++y) {
      const coordinate c = along_axis(sample_, 1, y);
      const std::int32_t first = first_tap(c);
      for (int b = 0; b < taps; ++b) keep_row(z, first + b);
      combine(
          c.fraction, planes_[slot_of(z)][y - y0_], [&](int b) -> const auto& { return rows_[slot_of(first + b)]; });
    }
  }

  // Interpolates row (z, y) of the source along x, unless it is kept.
  void keep_row(std::int32_t z, std::int32_t y) {
    if (row_in_slot_[slot_of(y)] == y) return;
    row_in_slot_[slot_of(y)] = y;
    float(&out)[strip_width] = rows_[slot_of(y)];
    const std::int32_t iz = B::index(z, in_.extents[0]), iy = B::index(y, in_.extents[1]);
    const auto functors = source_functors_of(sample_);
    if ((iz | iy) >= 0) {
      const T* const p = data_ + (iz * in_.stride[0] + iy * in_.stride[1]);
      const T* const next = p + in_.stride[0];  // of the next plane
      for (int l = 0; l < strip_width; l += 8) __builtin_prefetch(next + x_[0].offset[l]);
      if constexpr (taps == 2)
        if (pairs_) {
          alignas(lane_alignment) pair_of<T> pairs[1][strip_width];
          gather_rows<pair_of<T>>({p}, x_[0].offset, pairs);
          for (int l = 0; l < strip_width; ++l) {
            const float v[2] = {apply(functors, first_value_of<T>(pairs[0][l]), voxel{}),
                                apply(functors, second_value_of<T>(pairs[0][l]), voxel{})};
            const float w[2] = {weights_[0][l], weights_[1][l]};
            out[l] = I::combine(v, w);
          }
          return;
        }
      float v[taps][strip_width];
      for (int j = 0; j < taps; ++j) {
        alignas(lane_alignment) T raw[1][strip_width];
        gather_rows<bits_of<T>>({p}, x_[j].offset, raw);
        for (int l = 0; l < strip_width; ++l) v[j][l] = storage<T>::load(raw[0][l]);
        apply_lanes(functors, v[j], nowhere{}, [](const float(&)[strip_width]) {});
        if constexpr (B::has_value)
          for (int l = 0; l < strip_width; ++l) v[j][l] = x_[j].in[l] != 0 ? v[j][l] : border_.value;
      }
      combine_axis<I>(v, weights_, out);
    } else if constexpr (B::has_value) {
      float v[taps][strip_width];
      for (int j = 0; j < taps; ++j)
        for (int l = 0; l < strip_width; ++l) v[j][l] = border_.value;
      combine_axis<I>(v, weights_, out);
    }
  }

  const sample_parameters<Pipeline>& sample_;
  const B& border_;
  const T* data_;
  const source_tensor& in_;
  std::int32_t y0_, y1_;
  lane_taps x_[taps];
  bool pairs_;
  std::int32_t plane_in_slot_[taps], row_in_slot_[taps];
  alignas(lane_alignment) float weights_[taps][strip_width];
  alignas(lane_alignment) float rows_[taps][strip_width];
  alignas(lane_alignment) float planes_[taps][Rows][strip_width];
};

}  // namespace suture::detail
