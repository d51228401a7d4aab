// SPDX-License-Identifier: Apache-2.0
// Interpolation between pairs of voxels, one axis after the other, row by row. A row that several others need is
// computed once. Before the step along the lanes, rows consist of the voxels that this step reads.
#pragma once

#include <vector>

#include "../../base/simd.hpp"
#include "../../evaluate/stage.hpp"
#include "../../math/exponential.hpp"
#include "../common/lanes.hpp"

namespace suture::detail {
inline namespace SUTURE_BUILD {

// Rows y0 .. y1 - 1 of every plane, requested plane by plane.
class pair_rows {
public:
  // `pairs` are those of planes, rows and lanes, the latter filled up to whole strips; they must outlive this object.
  // `order` tells along which of the three each step interpolates.
  pair_rows(const std::vector<voxel_pair> (&pairs)[3], const int (&order)[3], std::int32_t y0, std::int32_t y1)
      : pairs_(pairs),
        order_{order[0], order[1], order[2]},
        y0_(y0),
        source_place_(pairs[1].size(), -1),
        source_row_(pairs[2].size()) {
    for (std::size_t x = 0; x < pairs[2].size(); ++x) {
      const voxel_pair& p = pairs[2][x];
      if (read_.empty() || read_.back() != p.first) read_.push_back(p.first);
      if (x % 8 == 0) start_.push_back(read_.size() - 1);
      which_.push_back(static_cast<std::int32_t>(read_.size() - 1 - start_.back()));
      t_.push_back(p.t);
    }
    read_.push_back(pairs[2].back().second);
    const std::size_t narrow = read_.size() + 8, wide = pairs[2].size();
    // The rows of the source that are read, numbered from 0.
    std::int32_t sources = 0;
    for (std::int32_t y = y0; y < y1; ++y)
      for (const std::int32_t row :
           {pairs[1][static_cast<std::size_t>(y)].first, pairs[1][static_cast<std::size_t>(y)].second})
        if (source_place_[static_cast<std::size_t>(row)] < 0) source_place_[static_cast<std::size_t>(row)] = sources++;
    bool rows_done = false, lanes_done = false;
    for (int step = 0; step < steps; ++step) {
      kept_rows& l = kept_[step];
      l.of_source = !rows_done;
      const auto rows = static_cast<std::size_t>(rows_done ? y1 - y0 : sources);
      for (auto& planes : l.planes) planes.assign(rows, -1);
      l.width = lanes_done ? wide : narrow;
      l.memory.resize(2 * rows * l.width);
      rows_done = rows_done || order_[step] == 1;
      lanes_done = lanes_done || order_[step] == 2;
    }
  }

  // Writes row y of plane z to `row`; read(z, y, row) fills a row of the source.
  template <class Read>
  void make(std::int32_t z, std::int32_t y, const Read& read, float* row) {
    plane_ = z;
    step_to<steps>(z, y, read, row);
  }

private:
  static constexpr int steps = 3;

  // The rows that are kept before a step: for each row index those of two planes.
  struct kept_rows {
    bool of_source;  // rows of the source, not of the result
    std::size_t width;
    std::vector<std::int32_t> planes[2];
    std::vector<float> memory;
  };

  // Computes the row after `Steps` steps.
  template <int Steps, class Read>
  void step_to(std::int32_t z, std::int32_t y, const Read& read, float* out) {
    if constexpr (Steps == 0) {
      read(z, y, source_row_.data());
      for (std::size_t i = 0; i < read_.size(); ++i) out[i] = source_row_[static_cast<std::size_t>(read_[i])];
    } else {
      const int loop = order_[Steps - 1];
      if (loop == 2) return along_lanes(row<Steps - 1>(z, y, read), out);
      const voxel_pair p = pairs_[loop][static_cast<std::size_t>(loop == 0 ? z : y)];
      const float* const first = loop == 0 ? row<Steps - 1>(p.first, y, read) : row<Steps - 1>(z, p.first, read);
      const float* const second = loop == 0 ? row<Steps - 1>(p.second, y, read) : row<Steps - 1>(z, p.second, read);
      const std::size_t width = kept_[Steps - 1].width;
      for (std::size_t x = 0; x < width; ++x) out[x] = lerp(first[x], second[x], p.t);
    }
  }

  // Interpolates along the lanes between consecutive voxels of `in`. Eight lanes read at most nine of them.
  void along_lanes(const float* in, float* out) const {
    constexpr std::size_t eights = strip_width / 8;
    for (std::size_t x = 0; x < t_.size(); x += strip_width) {
      float first[strip_width], second[strip_width];
      for (std::size_t i = 0; i < eights; ++i) {
        const float* const from = in + start_[x / 8 + i];
        simd::pick_of_eight(from, &which_[x + 8 * i], first + 8 * i);
        simd::pick_of_eight(from + 1, &which_[x + 8 * i], second + 8 * i);
      }
      const float* const t = &t_[x];
      float* const to = out + x;
      for (int l = 0; l < strip_width; ++l)
        to[l] = math::detail::select(t[l] == 0, first[l], fma(t[l], second[l] - first[l], first[l]));
    }
  }

  // Returns row y of plane z after `Steps` steps, and computes it unless it is kept. Of the two planes kept, it
  // replaces the one that does not belong to the present pair of planes.
  template <int Steps, class Read>
  const float* row(std::int32_t z, std::int32_t y, const Read& read) {
    kept_rows& l = kept_[Steps];
    const auto place = static_cast<std::size_t>(l.of_source ? source_place_[static_cast<std::size_t>(y)] : y - y0_);
    const voxel_pair& p = pairs_[0][static_cast<std::size_t>(plane_)];
    const std::int32_t other = z == p.first ? p.second : p.first;
    const std::size_t k = l.planes[0][place] == z || (l.planes[1][place] != z && l.planes[0][place] != other) ? 0 : 1;
    float* const out = l.memory.data() + (2 * place + k) * l.width;
    if (l.planes[k][place] != z) {
      l.planes[k][place] = z;
      step_to<Steps>(z, y, read, out);
    }
    return out;
  }

  const std::vector<voxel_pair> (&pairs_)[3];
  const int order_[steps];
  const std::int32_t y0_;
  std::vector<std::int32_t> source_place_;
  std::vector<std::int32_t> read_;   // the voxels of a row that lanes read, each once, in order
  std::vector<std::size_t> start_;   // for every eight lanes, the place in read_ of the voxel of the first
  std::vector<std::int32_t> which_;  // for each lane, the place in read_ of its first voxel relative to that
  std::vector<float> t_;
  std::vector<float> source_row_;
  std::int32_t plane_ = 0;  // the requested plane
  kept_rows kept_[steps];
};

}  // namespace SUTURE_BUILD
}  // namespace suture::detail
