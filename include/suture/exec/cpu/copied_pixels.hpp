// SPDX-License-Identifier: Apache-2.0
// A path of the CPU executor: pixels of three channels that stand on pixels of the source, as after crops, flips, pads
// and quarter turns. Every pixel is read once, all channels together, and passes once through the operations left of
// the geometry: interpolation copies what they make of it.
#pragma once

#include <string_view>

#include "lane_direction.hpp"

namespace suture::detail {

// Brick of copied pixels.
template <class Evaluator>
class copied_brick {
  using P = typename Evaluator::pipeline_type;
  using border = typename P::border_type;
  using record = typename Evaluator::record_type;
  template <std::size_t B>
  using binding = typename Evaluator::template binding_type<B>;

public:
  copied_brick(const brick_work<Evaluator>& work, lane_direction along)
      : e_(work.evaluate), r_(work.r), sample_index_(work.sample_index), along_(along) {}

  template <bool WithLabels, class Stages>
  void write(const brick_work<Evaluator>& work, Stages& stages) const {
    const auto one = [&]<std::size_t B>() {
      if constexpr (WithLabels || !binding<B>::is_label) write_rows<B>(work, stages);
    };
    [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
  }

private:
  static constexpr bool has_outside = reads_outside<border>;

  // Positions in the source of the lanes of a strip, of which `count` are in the row; those behind repeat the last.
  struct places {
    const std::int32_t (&extents)[3];
    lane_direction along;
    std::int32_t sample_index, channel;
    std::int32_t at[3];  // of the first lane; on the other axes an index of the source
    int count;

    std::int32_t of_lane(int l) const { return at[along.axis] + along.sign * std::min(l, count - 1); }
    bool has(int l) const { return inside(of_lane(l), extents[along.axis]); }
    // The nearest voxel in place of one outside, which is dropped: it is in memory, also where only a box is.
    std::int32_t readable(int l) const {
      const std::int32_t n = extents[along.axis], i = index_of_voxel<border>(of_lane(l), n);
      return i < 0 ? std::clamp(of_lane(l), 0, n - 1) : i;
    }
    // Whether a full strip stands in the source, and whether all of one stands beyond it.
    bool is_inside() const { return count == strip_width && has(0) && has(strip_width - 1); }
    bool is_beyond() const {
      const std::int32_t first = of_lane(0), last = of_lane(strip_width - 1);
      return std::max(first, last) < 0 || std::min(first, last) >= extents[along.axis];
    }

    SUTURE_INLINE voxel operator()(int l) const {
      std::int32_t i[3] = {at[0], at[1], at[2]};
      i[along.axis] = readable(l);
      return voxel_at(extents, {sample_index, channel, i[0], i[1], i[2]});
    }
    SUTURE_INLINE places in_channel(std::int32_t c) const {
      places other = *this;
      other.channel = c;
      return other;
    }
  };

  // Rows y0 .. y1 - 1 of planes z0 .. z1 - 1. Where lanes stand far apart in the source, as after a quarter turn, rows
  // share its lines: they are written strip below strip.
  template <std::size_t B, class Stages>
  void write_rows(const brick_work<Evaluator>& work, Stages& stages) const {
    const std::int64_t apart = r_.in[B].stride[along_.axis];
    const std::int32_t width = r_.sample.extents[2], columns = apart < -4 || apart > 4 ? strip_width : width;
    for (std::int32_t z = work.z0; z < work.z1; ++z)
      for (std::int32_t x0 = 0; x0 < width; x0 += columns)
        for (std::int32_t y = work.y0; y < work.y1; ++y)
          write_strips<B>(stages, z, y, x0, std::min(x0 + columns, width));
  }

  // Strips of a row from x0 on, before x1.
  template <std::size_t B, class Stages>
  void write_strips(Stages& stages, std::int32_t z, std::int32_t y, std::int32_t x0, std::int32_t x1) const {
    using In = typename binding<B>::input;
    const source_tensor& in = r_.in[B];
    const In* row = static_cast<const In*>(in.data);
    places p{in.extents, along_, sample_index_, 0, {}, strip_width};
    for (int k = 0; k < 3; ++k) {
      const std::int32_t i = whole(suture::along(r_.sample.map, k, z, y, x0));
      p.at[k] = k == along_.axis ? i : index_of_voxel<border>(i, in.extents[k]);
      if (row != nullptr && k != along_.axis) row = p.at[k] < 0 ? nullptr : row + p.at[k] * in.stride[k];
    }
    for (; x0 < x1; x0 += strip_width, p.at[along_.axis] += along_.sign * strip_width) {
      p.count = std::min(strip_width, r_.sample.extents[2] - x0);
      const In* const strip_row = has_outside && p.is_beyond() ? nullptr : row;
      if constexpr (binding<B>::is_label)
        write_labels_of<B>(strip_row, p, z, y, x0);
      else
        write_pixels_of<B>(strip_row, p, stages, z, y, x0);
    }
  }

  // The pixels of a strip as the operations left of the geometry leave them; no row: all of them are outside.
  template <class In>
  SUTURE_INLINE void read_pixels(const In* row, const source_tensor& in, const places& p,
                                 float (&v)[3][strip_width]) const {
    float outside = 0;
    if constexpr (has_outside) outside = e_.rule.border.value;
    const std::int64_t stride = in.stride[along_.axis];
    if (row == nullptr) {
      for (auto& channel : v)
        for (float& x : channel) x = outside;
    } else if (p.is_inside()) {
      load_pixel_row(row + p.of_lane(0) * stride, in.channel_stride, along_.sign * stride, v);
      apply_taps(p, v);
    } else {
      std::int64_t offset[strip_width];
      for (int l = 0; l < strip_width; ++l) offset[l] = p.readable(l) * stride;
      load_pixels(row, in.channel_stride, offset, v);
      apply_taps(p, v);
      if constexpr (has_outside)
        for (int l = 0; l < strip_width; ++l)
          for (auto& channel : v) channel[l] = p.has(l) ? channel[l] : outside;
    }
  }

  SUTURE_INLINE void apply_taps(const places& p, float (&v)[3][strip_width]) const {
    if constexpr (P::is_color) {
      apply_pixel_lanes(r_.sample.taps, v, p, [](const float(&)[3][strip_width]) {});
    } else {
      for (std::int32_t channel = 0; channel < 3; ++channel)
        apply_lanes(r_.sample.taps, v[channel], p.in_channel(channel), [](const float(&)[strip_width]) {});
    }
  }

  template <std::size_t B, class In, class Stages>
  SUTURE_INLINE void write_pixels_of(const In* row, const places& p, Stages& stages, std::int32_t z, std::int32_t y,
                                     std::int32_t x0) const {
    alignas(lane_alignment) float v[3][strip_width];
    read_pixels(row, r_.in[B], p, v);
    if constexpr (P::is_color) {
      with_place<typename P::outputs>(r_.sample, {sample_index_, 0, z, y, x0}, [&](const auto& place) {
        apply_pixel_lanes(r_.sample.outputs, v, place, [&]<class R>(R(&finished)[3][strip_width]) {
          write_pixels<B, Evaluator>(r_, stages, finished, z, y, x0);
        });
      });
    } else {
      typename P::fused_type pixels[3][strip_width];
      for (std::int32_t channel = 0; channel < 3; ++channel)
        with_place<typename P::outputs>(r_.sample, {sample_index_, channel, z, y, x0}, [&](const auto& place) {
          apply_lanes(r_.sample.outputs, v[channel], place,
                      [&](const auto& finished) { copy_strip(pixels[channel], finished); });
        });
      write_pixels<B, Evaluator>(r_, stages, pixels, z, y, x0);
    }
  }

  template <std::size_t B, class In>
  SUTURE_INLINE void write_labels_of(const In* row, const places& p, std::int32_t z, std::int32_t y,
                                     std::int32_t x0) const {
    const source_tensor& in = r_.in[B];
    const std::int64_t stride = in.stride[along_.axis];
    const auto outside = static_cast<In>(e_.rule.label_outside);
    for (std::int32_t channel = 0; channel < in.channels; ++channel) {
      In v[strip_width];
      const In* const labels = row == nullptr ? row : row + channel * in.channel_stride;
      if (row == nullptr) {
        for (In& label : v) label = outside;
      } else if (p.is_inside() && along_.sign * stride == 1) {
        copy_strip(v, labels + p.of_lane(0));
      } else {
        for (int l = 0; l < strip_width; ++l)
          v[l] = has_outside && !p.has(l) ? outside : labels[p.readable(l) * stride];
      }
      finish_labels<B>(e_, r_, v, channel, z, y, x0);
    }
  }

  const Evaluator& e_;
  const record& r_;
  const std::int32_t sample_index_;
  const lane_direction along_;
};

struct copied_pixels {
  static constexpr std::string_view name = "copied_pixels";

private:
  // Calls with<B>() for every image.
  template <class Evaluator, class With>
  static constexpr void each_image(const With& with) {
    const auto one = [&]<std::size_t B>() {
      if constexpr (!Evaluator::template binding_type<B>::is_label) with.template operator()<B>();
    };
    [&]<std::size_t... B>(std::index_sequence<B...>) { (one.template operator()<B>(), ...); }
    (std::make_index_sequence<Evaluator::pairs>{});
  }

public:
  // Pixels of operations on color, and images of bytes, which may be pixels.
  template <class Evaluator>
  static constexpr bool possible = [] {
    using P = typename Evaluator::pipeline_type;
    bool has_pixels = P::is_color;
    each_image<Evaluator>([&]<std::size_t B>() {
      has_pixels |= std::is_same_v<typename Evaluator::template binding_type<B>::input, std::uint8_t>;
    });
    return has_pixels && P::has_geometry && !P::prefiltered;
  }();
  static constexpr bool serves_all = false;

  template <class Parameters>
  static bool serves(const Parameters& sample) {
    return direction_of_lanes(sample).sign != 0;
  }
  // That of the path which takes images of other channels.
  template <class Parameters>
  static brick_shape shape(const Parameters& sample, std::int32_t depth) {
    if (direction_in_memory(sample) != 0) return shape_in_memory_order(sample, depth);
    using P = typename Parameters::pipeline_type;
    return {depth, P::is_color || P::interpolation_type::taps <= 2 ? strip_width : brick_rows};
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static bool make(const brick_work<Evaluator>& work, Stages& stages) {
    bool are_pixels = true;
    each_image<Evaluator>([&]<std::size_t B>() { are_pixels &= work.r.in[B].channels == 3; });
    if (!are_pixels || turns_over(work.r.sample)) return false;
    if constexpr (taps_ask_where<typename Evaluator::pipeline_type>)
      if (any_on_needs_voxel(work.r.sample.taps)) return false;  // see tapped_sources.hpp
    copied_brick<Evaluator>(work, direction_of_lanes(work.r.sample)).template write<WithLabels>(work, stages);
    return true;
  }
};

}  // namespace suture::detail
