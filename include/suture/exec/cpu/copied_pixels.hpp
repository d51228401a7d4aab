// SPDX-License-Identifier: Apache-2.0
// Pixels of three channels that coincide with pixels of the source, as after crops, flips, pads and quarter turns.
// Every pixel is read once, all channels together, and passes once through the operations before the geometry:
// interpolation copies their result.
#pragma once

#include "sample_map.hpp"

namespace suture::detail {

// Tells whether pair B may hold such pixels: an image of a color pipeline, or one of 8 bits, if it has three channels.
template <std::size_t B, class Evaluator>
inline constexpr bool may_be_pixels =
    !Evaluator::template binding_type<B>::is_label && !Evaluator::pipeline_type::prefiltered &&
    (Evaluator::pipeline_type::is_color ||
     std::is_same_v<typename Evaluator::template binding_type<B>::input, std::uint8_t>);

// The pixels of one bound image.
template <std::size_t B, class Evaluator>
class copied_pixels {
  using P = typename Evaluator::pipeline_type;
  using border = typename P::border_type;
  using In = typename Evaluator::template binding_type<B>::input;

public:
  copied_pixels(const brick_work<Evaluator>& work, lane_direction along)
      : work_(work), sample_(work.r.sample), in_(work.r.in[B]), along_(along) {
    for (int k = 0; k < 3; ++k) next_rows_ += source_rows_ahead * whole(sample_.map.linear[k][1]) * in_.stride[k];
  }

  // Writes the strips of row (z, y) that begin at x0 and before x1.
  template <class Stages>
  SUTURE_INLINE void write(Stages& stages, std::int32_t z, std::int32_t y, std::int32_t x0, std::int32_t x1) const {
    const In* row = static_cast<const In*>(in_.data);
    source_positions p{{}, in_.extents, along_.axis, work_.sample_index, 0, {}};
    for (int k = 0; k < 3; ++k) {
      const std::int32_t i = whole(suture::along(sample_.map, k, z, y, x0));
      if (k == along_.axis) {
        p.lanes = {i, along_.sign, in_.extents[k], strip_width};
      } else {
        p.at[k] = index_of_voxel<border>(i, in_.extents[k]);
        if (row != nullptr) row = p.at[k] < 0 ? nullptr : row + p.at[k] * in_.stride[k];
      }
    }
    for (; x0 < x1; x0 += strip_width, p.lanes.first += along_.sign * strip_width) {
      p.lanes.count = work_.lanes_from(x0);
      if (row != nullptr && in_.extents[along_.axis] > 1) prefetch_below(row + p.lanes.first * in_.stride[along_.axis]);
      alignas(lane_alignment) float v[3][strip_width];
      read(reads_outside<border> && p.lanes.is_beyond() ? nullptr : row, p, v);
      finish(v, stages, {work_.sample_index, 0, z, y, x0});
    }
  }

private:
  // Positions in the source of the lanes of a strip.
  struct source_positions {
    lanes_on_row<border> lanes;
    const std::int32_t (&extents)[3];
    int axis;
    std::int32_t sample_index, channel;
    std::int32_t at[3];  // on the other axes

    SUTURE_INLINE voxel operator()(int l) const {
      std::int32_t i[3] = {at[0], at[1], at[2]};
      i[axis] = lanes.readable(l);
      return voxel_at(extents, {sample_index, channel, i[0], i[1], i[2]});
    }
    SUTURE_INLINE source_positions in_channel(std::int32_t c) const {
      source_positions other = *this;
      other.channel = c;
      return other;
    }
  };

  // Prefetches a strip of a later row, given the first pixel of the strip.
  SUTURE_INLINE void prefetch_below(const In* first) const {
    const std::int64_t last = (strip_width - 1) * along_.sign * in_.stride[along_.axis];
    for (int channel = 0; channel < 3; ++channel) {
      const In* const to = first + (next_rows_ + channel * in_.channel_stride);
      __builtin_prefetch(to);
      __builtin_prefetch(to + last);
    }
  }

  // Reads the pixels of a strip and applies the operations before the geometry. If `row` is null, all are outside.
  SUTURE_INLINE void read(const In* row, const source_positions& p, float (&v)[3][strip_width]) const {
    float outside = 0;
    if constexpr (reads_outside<border>) outside = work_.evaluate.rule.border.value;
    const std::int64_t stride = in_.stride[along_.axis];
    if (row == nullptr) {
      for (auto& channel : v)
        for (float& x : channel) x = outside;
    } else if (p.lanes.is_inside()) {
      load_pixel_row(row + p.lanes.first * stride, in_.channel_stride, along_.sign * stride, v);
      apply_source_functors(p, v);
    } else {
      load_pixels<In>(
          in_.channel_stride, [&](int l) { return row + p.lanes.readable(l) * stride; }, v);
      apply_source_functors(p, v);
      if constexpr (reads_outside<border>)
        for (int l = 0; l < strip_width; ++l)
          for (auto& channel : v) channel[l] = p.lanes.has(l) ? channel[l] : outside;
    }
  }

  SUTURE_INLINE void apply_source_functors(const source_positions& p, float (&v)[3][strip_width]) const {
    if constexpr (P::is_color) {
      apply_pixel_lanes(sample_.source_functors, v, p, [](const float(&)[3][strip_width]) {});
    } else {
      for (std::int32_t channel = 0; channel < 3; ++channel)
        apply_lanes(sample_.source_functors, v[channel], p.in_channel(channel), [](const float(&)[strip_width]) {});
    }
  }

  template <class Stages>
  SUTURE_INLINE void finish(float (&v)[3][strip_width], Stages& stages, const voxel_index& at) const {
    if constexpr (P::is_color) {
      finish_pixels<B>(work_, stages, v, at);
    } else {
      typename P::fused_type pixels[3][strip_width];
      for (std::int32_t channel = 0; channel < 3; ++channel)
        with_place<typename P::output_functors>(
            sample_, {at.sample, channel, at.z, at.y, at.x}, [&](const auto& place) {
              apply_lanes(sample_.output_functors, v[channel], place,
                          [&](const auto& finished) { copy_strip(pixels[channel], finished); });
            });
      write_pixels<B>(work_, stages, pixels, at);
    }
  }

  const brick_work<Evaluator>& work_;
  const sample_parameters<P>& sample_;
  const source_tensor& in_;
  const lane_direction along_;
  std::int64_t next_rows_ = 0;  // from a row to the one that is prefetched, in elements of the source
};

}  // namespace suture::detail
