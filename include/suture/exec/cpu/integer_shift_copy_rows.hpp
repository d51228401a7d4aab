// SPDX-License-Identifier: Apache-2.0
// A path of the CPU executor for rows whose voxels coincide with voxels of a source row or lie outside the source, as
// after crops, flips and quarter turns. They are copied through the operations before the geometry, which gives the
// result of nearest and linear interpolation. Where the source has a smaller stride across the rows than along them,
// squares of voxels are read in the order of memory and transposed. Pixels of three channels are copied whole, also
// with interpolations of more voxels, unless rows are transposed for later operations. Prefiltered interpolation is
// excluded.
#pragma once

#include <algorithm>
#include <string_view>

#include "copied_pixels.hpp"

namespace suture::detail {

// Brick of a copy shifted by whole voxels. If Processed, images are read from record::processed: floats to which the
// operations before the geometry were already applied. Label maps are read as they are.
template <bool Processed, class Evaluator>
class integer_shift_brick {
  using P = typename Evaluator::pipeline_type;
  using border = typename P::border_type;
  template <std::size_t B>
  static constexpr bool is_label = Evaluator::template binding_type<B>::is_label;

public:
  integer_shift_brick(const brick_work<Evaluator>& work, lane_direction along)
      : work_(work),
        sample_(work.r.sample),
        direction_(along.sign),
        axes_{along.axis == 0 ? 1 : 0, along.axis == 2 ? 1 : 2, along.axis} {
    each_pair<Evaluator>([&]<std::size_t B>() {
      dense_loop_[B] = dense_loop(source<B>());
      next_rows_[B] = source_rows_ahead * step_along(1, source<B>());
    });
  }

  template <bool WithLabels, class Stages>
  void write(Stages& stages) const {
    const bool transposes = transposes_strips(sample_);
    for (std::int32_t z = work_.z0; z < work_.z1; ++z)
      for (std::int32_t y = work_.y0; y < work_.y1; ++y)
        each_pair<Evaluator, WithLabels>([&]<std::size_t B>() {
          if (!transposes || !is_label<B>) write_at<B>(stages, transposes, z, y);
        });
    if (transposes && WithLabels)  // row by row: neighboring planes mostly lie closer in memory than rows along x
      for (std::int32_t y = work_.y0; y < work_.y1; ++y)
        for (std::int32_t z = work_.z0; z < work_.z1; ++z)
          each_pair<Evaluator>([&]<std::size_t B>() {
            if constexpr (is_label<B>) write_at<B>(stages, transposes, z, y);
          });
  }

private:
  // Writes row (z, y). If several rows are read together, the first one writes them all, and the others do nothing.
  template <std::size_t B, class Stages>
  SUTURE_INLINE void write_at(Stages& stages, bool transposes, std::int32_t z, std::int32_t y) const {
    if constexpr (may_be_pixels<B, Evaluator> && !Processed) {
      if (P::is_color || (work_.r.in[B].channels == 3 && !transposes)) {
        if ((y - work_.y0) % strip_width == 0) write_pixel_rows<B>(stages, z, y);
        return;
      }
    }
    if constexpr (is_label<B> || !P::is_color) {
      if (dense_loop_[B] == 2 && (is_label<B> || !transposes))
        write_row<B>(stages, z, y);
      else if ((dense_loop_[B] == 0 ? z - work_.z0 : y - work_.y0) % strip_width == 0)
        write_square_rows<B>(stages, z, y);
    }
  }

  static constexpr bool has_outside = reads_outside<border>;

  // The tensor that the rows of a binding are read from, and the type of its elements.
  template <std::size_t B>
  static constexpr bool is_processed = Processed && !is_label<B>;
  template <std::size_t B>
  using source_type = std::conditional_t<is_processed<B>, float, typename Evaluator::template binding_type<B>::input>;
  template <std::size_t B>
  const source_tensor& source() const {
    if constexpr (is_processed<B>)
      return work_.r.processed[B];
    else
      return work_.r.in[B];
  }

  // Returns the step of the source to the next plane (0) or row (1) of the output, in elements.
  std::int64_t step_along(int loop, const source_tensor& in) const {
    std::int64_t step = 0;
    for (int k = 0; k < 3; ++k) step += whole(sample_.map.linear[k][loop]) * in.stride[k];
    return step;
  }
  // Returns the loop along which the source has the smallest stride: lanes (2), or planes (0) or rows (1) if their
  // stride is smaller, not 0, and they are at least half a strip long. Planes are excluded where transposes_strips()
  // holds, as rows_along_x takes squares of rows.
  int dense_loop(const source_tensor& in) const {
    const auto apart = [](std::int64_t step) { return step < 0 ? -step : step; };
    int loop = 2;
    std::int64_t least = apart(in.stride[axes_[2]]);
    for (const int other : {0, 1}) {
      const std::int64_t step = apart(step_along(other, in));
      if (sample_.extents[other] < strip_width / 2 || step == 0 || step >= least) continue;
      if (other == 0 && transposes_strips(sample_)) continue;
      least = step;
      loop = other;
    }
    return loop;
  }

  // A row of the source, null if it lies outside, and the position on it of the first voxel of an output row.
  template <class In>
  struct source_row {
    const In* data;
    std::int32_t first;
  };
  template <std::size_t B>
  auto row(std::int32_t channel, std::int32_t z, std::int32_t y) const {
    using In = source_type<B>;
    const source_tensor& in = source<B>();
    std::int32_t at[3];
    for (int k = 0; k < 3; ++k) at[k] = whole(along(sample_.map, k, z, y, 0));
    const int planes = axes_[0], rows = axes_[1], lanes = axes_[2];
    const std::int32_t p = index_of_voxel<border>(at[planes], in.extents[planes]),
                       r = index_of_voxel<border>(at[rows], in.extents[rows]);
    if ((p | r) < 0) return source_row<In>{nullptr, at[lanes]};
    return source_row<In>{
        static_cast<const In*>(in.data) + channel * in.channel_stride + p * in.stride[planes] + r * in.stride[rows],
        at[lanes]};
  }

  // Reads `count` voxels of an output row from x0 on and applies `before` to those inside the source; the others become
  // `outside`. Lanes from `count` on are unspecified.
  template <class In, class V, class Before>
  SUTURE_INLINE void read_strip(const source_row<In>& row, const source_tensor& in, V outside, const Before& before,
                                std::int32_t x0, int count, V (&v)[strip_width]) const {
    const std::int64_t step = in.stride[axes_[2]];
    const lanes_on_row<border> lanes{row.first + direction_ * x0, direction_, in.extents[axes_[2]], count};
    if (row.data == nullptr || (has_outside && lanes.is_beyond())) {
      for (V& lane : v) lane = outside;
      return;
    }
    const bool inside = step == 1 && lanes.is_inside();
    In raw[strip_width];
    if (inside && direction_ > 0)
      copy_strip(raw, row.data + lanes.first);
    else if (inside)
      for (int l = 0; l < strip_width; ++l) raw[l] = row.data[lanes.first - l];
    else if (has_outside && step == 1 && direction_ > 0) {
      const int begin = std::max(0, -lanes.first), end = std::min(count, in.extents[axes_[2]] - lanes.first);
      for (In& lane : raw) lane = {};
      for (int l = begin; l < end; ++l) raw[l] = row.data[lanes.first + l];
    } else
      for (int l = 0; l < strip_width; ++l) raw[l] = row.data[lanes.readable(l) * step];
    load_strip(raw, 1, strip_width, v);
    before(v);
    if constexpr (has_outside)
      if (!inside)
        for (int l = 0; l < strip_width; ++l) v[l] = lanes.has(l) ? v[l] : outside;
  }

  void apply_source_functors(float (&v)[strip_width]) const {
    if constexpr (!Processed) apply_lanes(sample_.source_functors, v, nowhere{}, [](const float(&)[strip_width]) {});
  }

  template <std::size_t B, class Stages, class Row>
  SUTURE_INLINE void write_strip_of(Stages& stages, const Row& from, const voxel_index& at) const {
    const source_tensor& in = source<B>();
    const int count = work_.lanes_from(at.x);
    const auto& rule = work_.evaluate.rule;
    if constexpr (is_label<B>) {
      using In = source_type<B>;
      In v[strip_width];
      read_strip(
          from, in, static_cast<In>(rule.label_outside), [](In(&)[strip_width]) {}, at.x, count, v);
      finish_labels<B>(work_, v, at);
    } else {
      float outside = 0;
      if constexpr (has_outside) outside = rule.border.value;
      float v[strip_width];
      read_strip(
          from, in, outside, [&](float(&lanes)[strip_width]) { apply_source_functors(lanes); }, at.x, count, v);
      finish_values<B>(work_, stages, v, at);
    }
  }

  template <std::size_t B, class Stages>
  SUTURE_INLINE void write_row(Stages& stages, std::int32_t z, std::int32_t y) const {
    for (std::int32_t channel = 0; channel < source<B>().channels; ++channel) {
      const auto from = row<B>(channel, z, y);
      for (std::int32_t x0 = 0; x0 < sample_.extents[2]; x0 += strip_width) {
        prefetch_below<B>(from, x0);
        write_strip_of<B>(stages, from, {work_.sample_index, channel, z, y, x0});
      }
    }
  }

  // Prefetches a strip of a later row. Rows of a crop out of a large source lie too far apart for the processor to
  // predict them.
  template <std::size_t B, class Row>
  SUTURE_INLINE void prefetch_below(const Row& from, std::int32_t x0) const {
    if (from.data == nullptr || source<B>().extents[axes_[2]] == 1) return;  // an axis of one voxel has any stride
    const std::int64_t step = source<B>().stride[axes_[2]];
    const auto* const to = from.data + (next_rows_[B] + (from.first + direction_ * x0) * step);
    constexpr int line = 64 / sizeof(*to);
    for (int l = 0; l < strip_width; l += line) __builtin_prefetch(to + direction_ * l * step);
  }

  // Writes the pixels of plane z in up to 32 rows from y on. Where neighboring lanes are far apart in the source, as
  // after a quarter turn, rows share cache lines of the source, so one strip of each row is written before the next.
  template <std::size_t B, class Stages>
  SUTURE_INLINE void write_pixel_rows(Stages& stages, std::int32_t z, std::int32_t y) const {
    const std::int64_t apart = work_.r.in[B].stride[axes_[2]];
    const std::int32_t width = sample_.extents[2], columns = apart < -4 || apart > 4 ? strip_width : width;
    const copied_pixels<B, Evaluator> pixels(work_, {axes_[2], direction_});
    for (std::int32_t x0 = 0; x0 < width; x0 += columns)
      for (std::int32_t row = y; row < std::min(y + strip_width, work_.y1); ++row)
        pixels.write(stages, z, row, x0, std::min(x0 + columns, width));
  }

  // Tests whether the strip from x0 on is inside the source in rows y[0] to y[1] of planes z[0] to z[1].
  bool is_inside(const source_tensor& in, const std::int32_t (&z)[2], const std::int32_t (&y)[2],
                 std::int32_t x0) const {
    const std::int32_t x[2] = {x0, std::min(x0 + strip_width, sample_.extents[2]) - 1};
    bool all = true;
    for (int k = 0; k < 3; ++k)
      for (int corner = 0; corner < 8; ++corner)
        all =
            all && inside(whole(along(sample_.map, k, z[corner / 4], y[corner / 2 % 2], x[corner % 2])), in.extents[k]);
    return all;
  }
  std::int64_t offset_of(const source_tensor& in, std::int32_t z, std::int32_t y, std::int32_t x) const {
    std::int64_t offset = 0;
    for (int k = 0; k < 3; ++k) offset += whole(along(sample_.map, k, z, y, x)) * in.stride[k];
    return offset;
  }

  // Writes a row of squares of up to 32 x 32 voxels: the rows from y on of plane z or, if the source has its smallest
  // stride along planes, row y of the planes from z on.
  template <std::size_t B, class Stages>
  void write_square_rows(Stages& stages, std::int32_t z, std::int32_t y) const {
    using In = source_type<B>;
    using V = std::conditional_t<is_label<B>, In, float>;
    const source_tensor& in = source<B>();
    const bool across_planes = dense_loop_[B] == 0, along_lanes = dense_loop_[B] == 2;
    const std::int32_t count = std::min(strip_width, across_planes ? work_.z1 - z : work_.y1 - y);
    const std::int32_t z_last = across_planes ? z + count - 1 : z, y_last = across_planes ? y : y + count - 1;
    const std::int64_t lane_step = direction_ * in.stride[axes_[2]], row_step = step_along(across_planes ? 0 : 1, in);
    // Lines, `apart` from each other, are read forwards in memory. If the output runs backwards, results are reversed.
    const std::int64_t step = along_lanes ? lane_step : row_step, apart = along_lanes ? row_step : lane_step;
    const std::int64_t ahead = across_planes ? step_along(1, in) : along_lanes ? step_along(0, in) : strip_width * step;
    const bool backwards = step < 0;
    for (std::int32_t channel = 0; channel < in.channels; ++channel)
      for (std::int32_t x0 = 0; x0 < sample_.extents[2]; x0 += strip_width) {
        if (!is_inside(in, {z, z_last}, {y, y_last}, x0)) {
          for (std::int32_t at_z = z; at_z <= z_last; ++at_z)
            for (std::int32_t at_y = y; at_y <= y_last; ++at_y)
              write_strip_of<B>(stages, row<B>(channel, at_z, at_y), {work_.sample_index, channel, at_z, at_y, x0});
          continue;
        }
        const int lanes = work_.lanes_from(x0);
        const int lines = along_lanes ? count : lanes, length = along_lanes ? lanes : count;
        const In* const from = static_cast<const In*>(in.data) + channel * in.channel_stride + offset_of(in, z, y, x0) +
                               (backwards ? (length - 1) * step : 0);
        alignas(lane_alignment) V read[strip_width][strip_width];
        alignas(lane_alignment) V transposed[strip_width][strip_width];
        for (int i = 0; i < strip_width; ++i) {
          const In* const line = from + std::min(i, lines - 1) * apart;
          load_strip(line, backwards ? -step : step, length, read[i]);
          __builtin_prefetch(line + ahead);
        }
        if (!along_lanes) simd::transpose(read, transposed);
        for (int i = 0; i < count; ++i) {
          V(&v)[strip_width] = along_lanes ? read[i] : transposed[backwards ? count - 1 - i : i];
          if (along_lanes && backwards) std::reverse(v, v + lanes);
          const voxel_index at{work_.sample_index, channel, across_planes ? z + i : z, across_planes ? y : y + i, x0};
          if constexpr (is_label<B>) {
            finish_labels<B>(work_, v, at);
          } else {
            apply_source_functors(v);
            finish_values<B>(work_, stages, v, at);
          }
        }
      }
  }

  const brick_work<Evaluator>& work_;
  const sample_parameters<P>& sample_;
  const int direction_;
  const int axes_[3];  // axes of the source; lanes run along the last one
  int dense_loop_[Evaluator::pairs];
  std::int64_t next_rows_[Evaluator::pairs];  // from a row to the one that is prefetched, in elements of the source
};

struct integer_shift_copy_rows {
  static constexpr std::string_view name = "integer_shift_copy_rows";

private:
  // States whether images of any number of channels are copied. With interpolation of more than two voxels along an
  // axis only pixels of three channels are: axis_aligned_rows makes other images faster, as its rows share sums.
  template <class P>
  static constexpr bool copies_all = P::is_color || P::interpolation_type::taps <= 2;

public:
  template <class Evaluator>
  static constexpr bool possible = [] {
    using P = typename Evaluator::pipeline_type;
    bool any = copies_all<P>;
    each_pair<Evaluator, false>([&]<std::size_t B>() { any = any || may_be_pixels<B, Evaluator>; });
    return any && P::has_geometry && !P::prefiltered;
  }();

  template <class Parameters>
  static bool serves(const Parameters& sample) {
    return direction_of_lanes(sample).sign != 0;
  }
  template <class Parameters>
  static brick_shape shape(const Parameters& sample, std::int32_t depth) {
    if (direction_in_memory(sample) != 0) return shape_in_memory_order(sample, depth);
    if (!copies_all<typename Parameters::pipeline_type>) return {depth, brick_rows};  // for axis_aligned_rows
    return {strip_width, strip_width};  // whole squares, whatever the number of threads
  }

  template <bool WithLabels, class Evaluator, class Stages>
  static bool make(const brick_work<Evaluator>& work, Stages& stages) {
    using P = typename Evaluator::pipeline_type;
    bool processed = false;
    if constexpr (source_functors_need_voxel<P>)
      processed = any_on_needs_voxel(work.r.sample.source_functors);  // see processed_sources.hpp
    if constexpr (!copies_all<P>) {
      bool are_pixels = !processed && !transposes_strips(work.r.sample);
      each_pair<Evaluator, false>([&]<std::size_t B>() {
        are_pixels = are_pixels && may_be_pixels<B, Evaluator> && work.r.in[B].channels == 3;
      });
      if (!are_pixels) return false;
    }
    const auto write = [&]<bool Processed>(std::bool_constant<Processed>) {
      integer_shift_brick<Processed, Evaluator>(work, direction_of_lanes(work.r.sample))
          .template write<WithLabels>(stages);
    };
    if constexpr (source_functors_need_voxel<P> && copies_all<P>)
      if (processed) return write(std::true_type{}), true;
    return write(std::false_type{}), true;
  }
};

}  // namespace suture::detail
