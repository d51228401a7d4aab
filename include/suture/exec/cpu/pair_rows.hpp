// SPDX-License-Identifier: Apache-2.0
// Interpolation between pairs of voxels, one axis after the other, row by row. A row that several others need is
// computed once.
#pragma once

#include <vector>

#include "../../evaluate/stage.hpp"

namespace suture::detail {
inline namespace SUTURE_BUILD {

// Rows y0 .. y1 - 1 of every plane, requested plane by plane.
class pair_rows {
public:
  // The pairs are those of planes, rows and lanes, of as many lanes as a row has room for; `order` says along which of
  // them each step interpolates.
  pair_rows(const std::vector<voxel_pair> (&pairs)[3], const int (&order)[3], std::int32_t y0, std::int32_t y1,
            std::size_t width)
      : pairs_(pairs),
        order_{order[0], order[1], order[2]},
        y0_(y0),
        width_(width),
        source_place_(pairs[1].size(), -1) {
    // The rows of the source that are read, numbered from 0.
    std::int32_t sources = 0;
    for (std::int32_t y = y0; y < y1; ++y)
      for (const std::int32_t row :
           {pairs[1][static_cast<std::size_t>(y)].first, pairs[1][static_cast<std::size_t>(y)].second})
        if (source_place_[static_cast<std::size_t>(row)] < 0) source_place_[static_cast<std::size_t>(row)] = sources++;
    bool rows_done = false;
    for (int step = 0; step < steps; ++step) {
      level& l = levels_[step];
      l.of_source = !rows_done;
      const auto rows = static_cast<std::size_t>(rows_done ? y1 - y0 : sources);
      for (auto& planes : l.planes) planes.assign(rows, -1);
      l.memory.resize(2 * rows * width);
      rows_done = rows_done || order_[step] == 1;
    }
    for (std::size_t x = 0; x < width; ++x)
      if (pairs[2][x].t == 0) copied_.push_back(x);
  }

  // Writes row y of plane z to `row`; read(z, y, row) fills a row of the source.
  template <class Read>
  void make(std::int32_t z, std::int32_t y, const Read& read, float* row) {
    plane_ = z;
    step_to<steps>(z, y, read, row);
  }

private:
  static constexpr int steps = 3;

  // The rows before a step: two for each number, of different planes.
  struct level {
    bool of_source;  // rows of the source, not of the result
    std::vector<std::int32_t> planes[2];
    std::vector<float> memory;
  };

  // Computes the row after `Steps` steps.
  template <int Steps, class Read>
  void step_to(std::int32_t z, std::int32_t y, const Read& read, float* out) {
    if constexpr (Steps == 0) {
      read(z, y, out);
    } else {
      const int loop = order_[Steps - 1];
      if (loop == 2) {
        const float* const in = row<Steps - 1>(z, y, read);
        const std::vector<voxel_pair>& lanes = pairs_[2];
        for (std::size_t x = 0; x < width_; ++x)
          out[x] = fma(lanes[x].t, in[lanes[x].second] - in[lanes[x].first], in[lanes[x].first]);
        for (const std::size_t x : copied_) out[x] = in[lanes[x].first];
        return;
      }
      const voxel_pair p = pairs_[loop][static_cast<std::size_t>(loop == 0 ? z : y)];
      const float* const first = loop == 0 ? row<Steps - 1>(p.first, y, read) : row<Steps - 1>(z, p.first, read);
      const float* const second = loop == 0 ? row<Steps - 1>(p.second, y, read) : row<Steps - 1>(z, p.second, read);
      for (std::size_t x = 0; x < width_; ++x) out[x] = between(first[x], second[x], p.t);
    }
  }

  // Returns the row after `Steps` steps, computed unless it is kept. It replaces the plane that is not the other one of
  // its pair.
  template <int Steps, class Read>
  const float* row(std::int32_t z, std::int32_t y, const Read& read) {
    level& l = levels_[Steps];
    const auto place = static_cast<std::size_t>(l.of_source ? source_place_[static_cast<std::size_t>(y)] : y - y0_);
    const voxel_pair& p = pairs_[0][static_cast<std::size_t>(plane_)];
    const std::int32_t other = z == p.first ? p.second : p.first;
    const std::size_t k = l.planes[0][place] == z || (l.planes[1][place] != z && l.planes[0][place] != other) ? 0 : 1;
    float* const out = l.memory.data() + (2 * place + k) * width_;
    if (l.planes[k][place] != z) {
      l.planes[k][place] = z;
      step_to<Steps>(z, y, read, out);
    }
    return out;
  }

  const std::vector<voxel_pair> (&pairs_)[3];
  const int order_[steps];
  const std::int32_t y0_;
  const std::size_t width_;
  std::vector<std::int32_t> source_place_;
  std::vector<std::size_t> copied_;  // lanes at the center of a voxel: few, written after the others
  std::int32_t plane_ = 0;           // the requested plane
  level levels_[steps];
};

}  // namespace SUTURE_BUILD
}  // namespace suture::detail
