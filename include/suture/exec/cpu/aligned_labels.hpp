// SPDX-License-Identifier: Apache-2.0
// Labels of samples that keep their axes, picked or voted for.
#pragma once

#include <limits>

#include "kept_axes.hpp"

namespace suture::detail {

// Label interpolations that read one voxel.
template <class L>
concept picks_a_voxel = requires {
  requires L::taps == 1;
};

// Rows of a label map, by a one-tap interpolation L.
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

  void row(std::int32_t z, std::int32_t y, T (&out)[1][strip_width]) const {
    const int planes = axes_[0], rows = axes_[1];
    const std::int32_t iz = B::index(L::first(along_axis(sample_, planes, z)), in_.extents[planes]);
    const std::int32_t iy = B::index(L::first(along_axis(sample_, rows, y)), in_.extents[rows]);
    if ((iz | iy) >= 0) {
      const T* const p = data_ + (iz * in_.stride[planes] + iy * in_.stride[rows]);
      const T* const next = p + in_.stride[planes];
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
  const std::uint8_t (&axes_)[3];
  const T* data_;
  const source_tensor& in_;
  T outside_;
  lane_taps x_;
};

// Rows of a label map by vote, y0 .. y0 + Rows - 1: pairs of neighbors along the lanes are kept for the rows and planes
// that need them again.
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
    const int lanes = axes_[2];
    for (int j = 0; j < 2; ++j)
      x_[j].template set<B>(sample, x0, in.extents[lanes], in.stride[lanes], [&](coordinate c) { return c.base + j; });
    pairs_ = x_[0].all_in && x_[1].all_in && in.stride[lanes] == 1;
    for (int l = 0; l < strip_width; ++l)
      fraction_[lanes][l] = along_axis(sample, lanes, std::min(x0 + l, sample.extents[2] - 1)).fraction;
  }

  void row(std::int32_t z, std::int32_t y, T (&out)[strip_width]) {
    const coordinate cz = along_axis(sample_, axes_[0], z), cy = along_axis(sample_, axes_[1], y);
    pair_of<T> pairs[4][strip_width];
    for (int a = 0; a < 2; ++a) {
      const std::int32_t plane = cz.fraction == 0 ? cz.base : cz.base + a;  // labels without weight do not matter
      hold_plane(plane);
      for (int b = 0; b < 2; ++b) copy_strip(pairs[2 * a + b], planes_[plane & 1][y - y0_][b]);
    }
    float(&of_planes)[strip_width] = fraction_[axes_[0]], (&of_rows)[strip_width] = fraction_[axes_[1]];
    for (int l = 0; l < strip_width; ++l) {
      of_planes[l] = cz.fraction;
      of_rows[l] = cy.fraction;
    }
    if (all_agree<T>(pairs, out)) return;
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

  // Loads the pairs of plane z of the source that each row reads.
  void hold_plane(std::int32_t z) {
    if (held_plane_[z & 1] == z) return;
    held_plane_[z & 1] = z;
    held_row_[0] = held_row_[1] = none;
    for (std::int32_t y = y0_; y < y1_; ++y) {
      const std::int32_t first = along_axis(sample_, axes_[1], y).base;
      for (int b = 0; b < 2; ++b) {
        hold_row(z, first + b);
        copy_strip(planes_[z & 1][y - y0_][b], rows_[(first + b) & 1][0]);
      }
    }
  }

  void hold_row(std::int32_t z, std::int32_t y) {
    if (held_row_[y & 1] == y) return;
    held_row_[y & 1] = y;
    pair_of<T>(&pairs)[1][strip_width] = rows_[y & 1];
    const int planes = axes_[0], rows = axes_[1];
    const std::int32_t iz = B::index(z, in_.extents[planes]), iy = B::index(y, in_.extents[rows]);
    if ((iz | iy) < 0) {
      for (pair_of<T>& pair : pairs[0]) pair = make_pair_of(outside_, outside_);
      return;
    }
    const T* const p = data_ + (iz * in_.stride[planes] + iy * in_.stride[rows]);
    const T* const next = p + in_.stride[planes];  // of the next plane
    for (int l = 0; l < strip_width; l += 16) __builtin_prefetch(next + x_[0].offset[l]);
    if (pairs_) {
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
  const std::uint8_t (&axes_)[3];
  const T* data_;
  const source_tensor& in_;
  T outside_;
  std::int32_t y0_, y1_;
  lane_taps x_[2];
  bool pairs_;
  std::int32_t held_plane_[2] = {none, none}, held_row_[2] = {none, none};  // even and odd rows
  alignas(lane_alignment) float fraction_[3][strip_width];
  alignas(lane_alignment) pair_of<T> rows_[2][1][strip_width];
  alignas(lane_alignment) pair_of<T> planes_[2][Rows][2][strip_width];
};

}  // namespace suture::detail
