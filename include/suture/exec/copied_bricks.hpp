// SPDX-License-Identifier: Apache-2.0
// Bricks of rows that stand on voxels in a row of the source, as after crops and flips, and so are copied: what linear
// interpolation would make of them, looked at once for a brick and not for every voxel.
#pragma once

#include "strip_writer.hpp"

namespace suture::detail {

// Linear interpolation copies a value unless it has to mix it with a neighbour that is too large to be subtracted, or
// to settle the sign of a zero. False where there is such a one among `count` values.
template <class T>
SUTURE_INLINE bool are_copied(const T* from, int count) {
  std::uint32_t largest = 0, positive = 1;
  const auto look = [&](float v) {
    const std::uint32_t bits = float_bits(v);
    largest = std::max(largest, bits & 0x7fffffffu);
    positive &= bits != 0x80000000u ? 1u : 0u;
  };
  int x = 0;
  for (; x + strip_width <= count; x += strip_width)
    for (int l = 0; l < strip_width; ++l) look(storage<T>::load(from[x + l]));
  for (; x < count; ++x) look(storage<T>::load(from[x]));
  return largest < 0x7e800000u && positive != 0;  // 2^126
}

// Such a brick, rows y0 .. y1 - 1 of planes z0 .. z1 - 1 of one sample.
template <class Evaluator>
class copied_brick {
  using P = typename Evaluator::pipeline_type;
  using record = typename Evaluator::record_type;

public:
  static constexpr bool possible =
      P::has_geometry && !P::is_colour && std::is_same_v<typename P::interpolation_type, linear> && P::taps::size == 0;

  copied_brick(const Evaluator& e, const record& r, int direction, std::int32_t z0, std::int32_t z1, std::int32_t y0,
               std::int32_t y1)
      : e_(e), r_(r), direction_(direction), z0_(z0), z1_(z1), y0_(y0), y1_(y1) {
    for (int k = 0; k < 3; ++k) {
      std::int32_t corners[8];
      for (int i = 0; i < 8; ++i)
        corners[i] = whole(along(r.sample.map, k, i & 4 ? z1 - 1 : z0, i & 2 ? y1 - 1 : y0, 0) +
                           scaled(r.sample.map.linear[k][2], i & 1 ? r.sample.extents[2] - 1 : 0));
      low_[k] = *std::min_element(corners, corners + 8);
      high_[k] = *std::max_element(corners, corners + 8);
    }
  }

  // Whether every image and label map of the sample can be copied here.
  template <bool WithLabels>
  bool can_be_copied() const {
    return [&]<std::size_t... B>(std::index_sequence<B...>) { return (can_copy<WithLabels, B>() && ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
  }

  template <bool WithLabels, class Stages>
  void write(std::int32_t number, Stages& stages) const {
    const auto one = [&]<std::size_t B>(std::int32_t z, std::int32_t y) {
      if constexpr (!Evaluator::template binding_type<B>::is_label)
        write_image_row<B>(number, stages, z, y);
      else if constexpr (WithLabels)
        write_label_row<B>(z, y);
    };
    for (std::int32_t z = z0_; z < z1_; ++z)
      for (std::int32_t y = y0_; y < y1_; ++y) [&]<std::size_t... B>(std::index_sequence<B...>) {
          (one.template operator()<B>(z, y), ...);
        }
    (std::make_index_sequence<Evaluator::pairs>{});
  }

private:
  template <bool WithLabels, std::size_t B>
  bool can_copy() const {
    using Binding = typename Evaluator::template binding_type<B>;
    if constexpr (Binding::is_label && !WithLabels) {
      return true;
    } else {
      const source_tensor& in = r_.in[B];
      const std::int32_t beyond = Binding::is_label ? 0 : 1;
      for (int k = 0; k < 3; ++k)
        if (low_[k] < 0 || high_[k] + beyond >= in.extents[k]) return false;
      if constexpr (!Binding::is_label) {
        using In = typename Binding::input;
        if constexpr (std::is_integral_v<In>) return true;
        if (in.stride[2] != 1) return false;
        for (std::int32_t channel = 0; channel < in.channels; ++channel)
          for (std::int32_t z = low_[0]; z <= high_[0] + 1; ++z)
            for (std::int32_t y = low_[1]; y <= high_[1] + 1; ++y)
              if (!are_copied(static_cast<const In*>(in.data) + channel * in.channel_stride + z * in.stride[0] +
                                  y * in.stride[1] + low_[2],
                              high_[2] + 2 - low_[2]))
                return false;
      }
      return true;
    }
  }

  // Voxel (z, y, 0) in the source of B.
  template <std::size_t B>
  const auto* row(std::int32_t channel, std::int32_t z, std::int32_t y) const {
    using In = typename Evaluator::template binding_type<B>::input;
    const source_tensor& in = r_.in[B];
    const In* p = static_cast<const In*>(in.data) + channel * in.channel_stride;
    for (int k = 0; k < 3; ++k) p += whole(along(r_.sample.map, k, z, y, 0)) * in.stride[k];
    return p;
  }

  // Asks for the row of the brick that comes next which stands where this one does.
  template <std::size_t B>
  void prefetch_next(std::int32_t channel, std::int32_t z, std::int32_t y) const {
    const bool is_last = y1_ == r_.sample.extents[1];
    const auto* const next = row<B>(channel, is_last ? z + (z1_ - z0_) : z, is_last ? y - y0_ : y + brick_rows);
    const std::int64_t step = direction_ * r_.in[B].stride[2];
    constexpr auto line = static_cast<std::int32_t>(64 / sizeof(*next));
    for (std::int32_t x = 0; x < r_.sample.extents[2] + line; x += line) __builtin_prefetch(next + x * step, 0, 2);
  }

  // `count` values from x0 on, in the order of the output; the lanes behind repeat the last.
  template <class In>
  SUTURE_INLINE void load(const In* row, std::int64_t stride, std::int32_t x0, int count, In (&v)[strip_width]) const {
    if (stride == 1 && count == strip_width && direction_ > 0) {
      copy_strip(v, row + x0);
    } else if (stride == 1 && count == strip_width) {
      const In* const last = row - x0 - (strip_width - 1);
      for (int l = 0; l < strip_width; ++l) v[l] = last[strip_width - 1 - l];
    } else {
      const std::int64_t step = direction_ * stride;
      for (int l = 0; l < strip_width; ++l) v[l] = row[(x0 + std::min(l, count - 1)) * step];
    }
  }

  template <std::size_t B, class Stages>
  SUTURE_INLINE void write_image_row(std::int32_t number, Stages& stages, std::int32_t z, std::int32_t y) const {
    using In = typename Evaluator::template binding_type<B>::input;
    const source_tensor& in = r_.in[B];
    const std::int32_t width = r_.sample.extents[2];
    for (std::int32_t channel = 0; channel < in.channels; ++channel) {
      const In* const from = row<B>(channel, z, y);
      prefetch_next<B>(channel, z, y);
      for (std::int32_t x0 = 0; x0 < width; x0 += strip_width) {
        In raw[strip_width];
        load(from, in.stride[2], x0, std::min(strip_width, width - x0), raw);
        float v[strip_width];
        if constexpr (std::is_same_v<In, float>)
          copy_strip(v, raw);
        else
          for (int l = 0; l < strip_width; ++l) v[l] = storage<In>::load(raw[l]);
        finish_values<B>(e_, r_, number, stages, v, channel, z, y, x0);
      }
    }
  }

  template <std::size_t B>
  SUTURE_INLINE void write_label_row(std::int32_t z, std::int32_t y) const {
    using In = typename Evaluator::template binding_type<B>::input;
    const source_tensor& in = r_.in[B];
    const std::int32_t width = r_.sample.extents[2];
    for (std::int32_t channel = 0; channel < in.channels; ++channel) {
      const In* const from = row<B>(channel, z, y);
      prefetch_next<B>(channel, z, y);
      for (std::int32_t x0 = 0; x0 < width; x0 += strip_width) {
        In v[strip_width];
        load(from, in.stride[2], x0, std::min(strip_width, width - x0), v);
        finish_labels<B>(e_, r_, v, channel, z, y, x0);
      }
    }
  }

  const Evaluator& e_;
  const record& r_;
  const int direction_;
  const std::int32_t z0_, z1_, y0_, y1_;
  std::int32_t low_[3], high_[3];  // of the source voxels that are copied
};

}  // namespace suture::detail
