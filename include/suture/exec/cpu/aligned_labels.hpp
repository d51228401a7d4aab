// SPDX-License-Identifier: Apache-2.0
// Labels of samples whose axes run along those of the source: one voxel picked, or a vote of its neighbors.
#pragma once

#include <limits>

#include "kept_axes.hpp"

namespace suture::detail {

// Label interpolations that read one voxel.
template <class L>
concept picks_a_voxel = requires {
  requires L::taps == 1;
};

// Strips of a label map, from lane x0 on, by a label interpolation L that reads one voxel.
template <class L, class Pipeline, class T>
class aligned_labels {
  using B = typename Pipeline::border_type;

public:
  aligned_labels(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel, T outside,
                 std::int32_t x0)
      : sample_(sample),
        axes_(loop_axes[sample.loops]),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        outside_(outside) {
    const int axis = axes_[2];
    x_.set<B>(sample, x0, in.extents[axis], in.stride[axis], [](coordinate c) { return L::first(c); });
  }

  // Writes the labels of the strip in row y of plane z of the loops.
  void row(std::int32_t z, std::int32_t y, T (&out)[1][strip_width]) const {
    const int plane_axis = axes_[0], row_axis = axes_[1];
    const std::int32_t source_plane = B::index(L::first(along_axis(sample_, plane_axis, z)), in_.extents[plane_axis]);
    const std::int32_t source_row = B::index(L::first(along_axis(sample_, row_axis, y)), in_.extents[row_axis]);
    if ((source_plane | source_row) >= 0) {
      const T* const p = data_ + (source_plane * in_.stride[plane_axis] + source_row * in_.stride[row_axis]);
      const T* const next = p + in_.stride[plane_axis];  // of the next plane
      for (int l = 0; l < strip_width; l += 16) __builtin_prefetch(next + x_.offset[l]);
      gather_rows<bits_of<T>>({p}, x_.offset, out);
      if constexpr (B::has_value)
        for (int l = 0; l < strip_width; ++l) out[0][l] = x_.in[l] != 0 ? out[0][l] : outside_;
    } else {
      for (int l = 0; l < strip_width; ++l) out[0][l] = outside_;
    }
  }

private:
  const sample_parameters<Pipeline>& sample_;
  const std::uint8_t (&axes_)[3];  // of planes, rows and lanes
  const T* data_;
  const source_tensor& in_;
  T outside_;
  lane_taps x_;
};

// Strips of a label map by vote, from lane x0 on in rows y0 to y1 - 1 of the loops, which are at most Rows. Pairs of
// source neighbors along the lanes are kept for the rows and planes of the output that read them again.
template <class Pipeline, class T, int Rows>
class aligned_votes {
  using B = typename Pipeline::border_type;
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::min();

public:
  aligned_votes(const sample_parameters<Pipeline>& sample, const source_tensor& in, std::int32_t channel, T outside,
                std::int32_t y0, std::int32_t y1, std::int32_t x0)
      : sample_(sample),
        axes_(loop_axes[sample.loops]),
        data_(static_cast<const T*>(in.data) + channel * in.channel_stride),
        in_(in),
        outside_(outside),
        y0_(y0),
        y1_(y1) {
    const int lane_axis = axes_[2];
    for (int j = 0; j < 2; ++j)
      x_[j].template set<B>(sample, x0, in.extents[lane_axis], in.stride[lane_axis],
                            [&](coordinate c) { return c.base + j; });
    loads_pairs_ = x_[0].all_in && x_[1].all_in && in.stride[lane_axis] == 1;
    for (int l = 0; l < strip_width; ++l)
      fraction_[lane_axis][l] = along_axis(sample, lane_axis, std::min(x0 + l, sample.extents[2] - 1)).fraction;
  }

  // Writes the labels of the strip in row y of plane z of the loops.
  void row(std::int32_t z, std::int32_t y, T (&out)[strip_width]) {
    const coordinate cz = along_axis(sample_, axes_[0], z), cy = along_axis(sample_, axes_[1], y);
    pair_of<T> pairs[4][strip_width];
    for (int a = 0; a < 2; ++a) {
      const std::int32_t plane = cz.fraction == 0 ? cz.base : cz.base + a;  // the second has no weight
      load_plane(plane);
      for (int b = 0; b < 2; ++b) copy_strip(pairs[2 * a + b], plane_pairs_[plane & 1][y - y0_][b]);
    }
    float(&of_planes)[strip_width] = fraction_[axes_[0]], (&of_rows)[strip_width] = fraction_[axes_[1]];
    for (int l = 0; l < strip_width; ++l) {
      of_planes[l] = cz.fraction;
      of_rows[l] = cy.fraction;
    }
    if (all_agree<T>(pairs, out)) return;
    // Lanes run along x in order 0 alone: axis_aligned_rows does not serve the other one, {1, 0, 2}.
    if (sample_.loops != 0) pair_along_x(pairs);
    vote_lanes<T>(pairs, fraction_, out);
  }

private:
  // Converts pairs along the lanes, z or y, into pairs along x, as rows (z, y), (z, y + 1), (z + 1, y), (z + 1, y + 1).
  void pair_along_x(pair_of<T> (&pairs)[4][strip_width]) const {
    const int next_x = axes_[0] == 2 ? 2 : 1, next_other = 3 - next_x;
    const int next_lane = axes_[2] == 0 ? 2 : 1;
    pair_of<T> along_x[4][strip_width];
    for (int other = 0; other < 2; ++other) {
      const auto &p = pairs[other * next_other], &q = pairs[other * next_other + next_x];
      auto &first = along_x[other * (3 - next_lane)], &second = along_x[other * (3 - next_lane) + next_lane];
      for (int l = 0; l < strip_width; ++l) cross_pairs<T>(p[l], q[l], first[l], second[l]);
    }
    for (int row = 0; row < 4; ++row) copy_strip(pairs[row], along_x[row]);
  }

  // Loads the pairs that rows y0_ to y1_ - 1 of the output read in plane `plane` of the source.
  void load_plane(std::int32_t plane) {
    if (loaded_plane_[plane & 1] == plane) return;
    loaded_plane_[plane & 1] = plane;
    loaded_row_[0] = loaded_row_[1] = none;
    for (std::int32_t y = y0_; y < y1_; ++y) {
      const std::int32_t first = along_axis(sample_, axes_[1], y).base;
      for (int b = 0; b < 2; ++b) {
        load_row(plane, first + b);
        copy_strip(plane_pairs_[plane & 1][y - y0_][b], row_pairs_[(first + b) & 1][0]);
      }
    }
  }

  // Loads the pairs of one row of the source, which may lie outside.
  void load_row(std::int32_t plane, std::int32_t row) {
    if (loaded_row_[row & 1] == row) return;
    loaded_row_[row & 1] = row;
    pair_of<T>(&pairs)[1][strip_width] = row_pairs_[row & 1];
    const int plane_axis = axes_[0], row_axis = axes_[1];
    const std::int32_t source_plane = B::index(plane, in_.extents[plane_axis]);
    const std::int32_t source_row = B::index(row, in_.extents[row_axis]);
    if ((source_plane | source_row) < 0) {
      for (pair_of<T>& pair : pairs[0]) pair = make_pair_of(outside_, outside_);
      return;
    }
    const T* const p = data_ + (source_plane * in_.stride[plane_axis] + source_row * in_.stride[row_axis]);
    const T* const next = p + in_.stride[plane_axis];  // of the next plane
    for (int l = 0; l < strip_width; l += 16) __builtin_prefetch(next + x_[0].offset[l]);
    if (loads_pairs_) {
      gather_rows<pair_of<T>>({p}, x_[0].offset, pairs);
      return;
    }
    alignas(lane_alignment) T t[2][1][strip_width];
    for (int j = 0; j < 2; ++j) {
      gather_rows<bits_of<T>>({p}, x_[j].offset, t[j]);
      if constexpr (B::has_value)
        for (int l = 0; l < strip_width; ++l) t[j][0][l] = x_[j].in[l] != 0 ? t[j][0][l] : outside_;
    }
    for (int l = 0; l < strip_width; ++l) pairs[0][l] = make_pair_of(t[0][0][l], t[1][0][l]);
  }

  const sample_parameters<Pipeline>& sample_;
  const std::uint8_t (&axes_)[3];  // of planes, rows and lanes
  const T* data_;
  const source_tensor& in_;
  T outside_;
  std::int32_t y0_, y1_;
  lane_taps x_[2];
  bool loads_pairs_;  // one load reads both neighbors
  // The source planes and rows whose pairs are kept: the last even and the last odd one.
  std::int32_t loaded_plane_[2] = {none, none}, loaded_row_[2] = {none, none};
  alignas(lane_alignment) float fraction_[3][strip_width];
  alignas(lane_alignment) pair_of<T> row_pairs_[2][1][strip_width];
  alignas(lane_alignment) pair_of<T> plane_pairs_[2][Rows][2][strip_width];  // of each row of the output
};

}  // namespace suture::detail
