// SPDX-License-Identifier: Apache-2.0
// Weighted sums of separable filters along the planes, rows and lanes of a patch: its outer, middle and innermost loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../../evaluate/stage.hpp"
#include "../common/lanes.hpp"

namespace suture::detail {
inline namespace SUTURE_BUILD {

// Returns the floats that a row of `lanes` voxels takes in whole strips.
inline std::size_t whole_strips(std::int32_t lanes) {
  return static_cast<std::size_t>((lanes + strip_width - 1) / strip_width) * strip_width;
}

// Selects how a plane is filtered: across its rows, and along its lanes before or after that.
struct sums_in_plane {
  bool rows, lanes_before, lanes_after;
};

// The sums of a separable filter in one channel. The filter and `extents` must outlive them.
template <class Filter>
class separable_sums {
public:
  // Planes, rows and lanes run along `axes` (0 is z, 1 is y, 2 is x); their numbers are `extents`.
  separable_sums(const Filter& filter, const std::int32_t (&extents)[3], const std::uint8_t (&axes)[3],
                 std::int32_t channel)
      : filter_(filter), n_(extents) {
    for (int j = 0; j < 3; ++j) {
      of_[j].radius = filter.radius(axes[j], channel);
      filter.weights_along(axes[j], channel, of_[j].weights);
    }
  }

  // Filters rows y0 to y1 - 1 of a plane as `loops` selects. make(y, row) writes an input row; use(sum, y, x0) receives
  // each strip of results. A sum over rows also makes the rows around y0 to y1 - 1, each once.
  template <class Make, class Use>
  void plane(const sums_in_plane& loops, std::int32_t y0, std::int32_t y1, const Make& make, const Use& use) const {
    const std::size_t width = whole_strips(n_[2]), reach = static_cast<std::size_t>(of_[2].radius);
    std::vector<float> memory(2 * (width + reach));
    float* const row = memory.data() + reach;
    float* const sums = row + width + reach;
    std::unique_ptr<float[]> kept;
    if (loops.rows) {
      kept.reset(new float[static_cast<std::size_t>(n_[1]) * width]);
      std::vector<bool> made(static_cast<std::size_t>(n_[1]));
      for (std::int32_t tap = y0 - of_[1].radius; tap < y1 + of_[1].radius; ++tap) {
        const std::int32_t y = filter_.index(tap, n_[1]);
        if (y < 0 || made[static_cast<std::size_t>(y)]) continue;
        made[static_cast<std::size_t>(y)] = true;
        float* const to = kept.get() + static_cast<std::size_t>(y) * width;
        std::fill(to + n_[2], to + width, 0.0f);
        make(y, loops.lanes_before ? row : to);
        if (loops.lanes_before) sum_lanes(row, to);
      }
    }
    for (std::int32_t y = y0; y < y1; ++y) {
      if (!loops.rows) make(y, row);
      for (std::int32_t x0 = 0; x0 < n_[2] && loops.rows; x0 += strip_width) {
        float sum[strip_width];
        across(1, y, kept.get(), static_cast<std::int64_t>(width), x0, sum, true);
        if (loops.lanes_after)
          copy_strip(row + x0, sum);
        else
          use(sum, y, x0);
      }
      if (loops.rows && !loops.lanes_after) continue;
      if (loops.lanes_after) sum_lanes(row, sums);
      for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
        float v[strip_width];
        copy_strip(v, (loops.lanes_after ? sums : row) + x0);
        use(v, y, x0);
      }
    }
  }

  // Computes a strip of the weighted sum of planes (`loop` 0) or rows (1) around index i, from lane x0 on. Index 0
  // begins at `rows`, the next one `step` floats further. `padded`: memory holds whole strips. Otherwise nothing behind
  // the last lane is read, and lanes behind it repeat it.
  void across(int loop, std::int32_t i, const float* rows, std::int64_t step, std::int32_t x0,
              float (&sum)[strip_width], bool padded = false) const {
    const axis_sum& of = of_[loop];
    const std::int32_t r = of.radius;
    const float* taps[2 * largest_radius + 1];
    float weights[2 * largest_radius + 1];
    std::int32_t tap_count = 0;
    for (std::int32_t k = -r; k <= r; ++k) {
      const std::int32_t j = filter_.index(i + k, n_[loop]);
      if (j < 0) continue;
      weights[tap_count] = of.weights[k + r];
      taps[tap_count++] = rows + j * step + x0;
    }
    if (padded || x0 + strip_width <= n_[2]) {
      weighted_sum(weights, taps, tap_count, sum);
      return;
    }
    for (int l = 0; l < strip_width; ++l) {
      sum[l] = 0;
      for (std::int32_t k = 0; k < tap_count; ++k)
        sum[l] = fma(weights[k], taps[k][std::min(l, n_[2] - x0 - 1)], sum[l]);
    }
  }

private:
  struct axis_sum {
    std::int32_t radius;
    float weights[2 * largest_radius + 1];
  };

  // Computes the sums along a row. Before and behind its voxels, `row` has room for as many as the radius, which are
  // written by the rule of the filter.
  void sum_lanes(float* row, float* sums) const {
    const axis_sum& of = of_[2];
    for (std::int32_t x = 1; x <= of.radius; ++x) {
      const std::int32_t before = filter_.index(-x, n_[2]), after = filter_.index(n_[2] - 1 + x, n_[2]);
      row[-x] = before < 0 ? 0.0f : row[before];
      row[n_[2] - 1 + x] = after < 0 ? 0.0f : row[after];
    }
    for (std::int32_t x0 = 0; x0 < n_[2]; x0 += strip_width) {
      const float* taps[2 * largest_radius + 1];
      for (std::int32_t c = 0; c <= 2 * of.radius; ++c) taps[c] = row + x0 + c - of.radius;
      float sum[strip_width];
      weighted_sum(of.weights, taps, 2 * of.radius + 1, sum);
      copy_strip(sums + x0, sum);
    }
  }

  // Adds N weighted inputs in one loop over the lanes, so that the sums stay in registers.
  template <int N>
  static void add_weighted(const float* w, const float* const* taps, float (&sum)[strip_width]) {
    for (int l = 0; l < strip_width; ++l) {
      float s = sum[l];
      SUTURE_UNROLL
      for (int k = 0; k < N; ++k) s = fma(w[k], taps[k][l], s);
      sum[l] = s;
    }
  }
  static void weighted_sum(const float* w, const float* const* taps, std::int32_t tap_count,
                           float (&sum)[strip_width]) {
    for (int l = 0; l < strip_width; ++l) sum[l] = 0;
    for (; tap_count >= 4; tap_count -= 4, w += 4, taps += 4) add_weighted<4>(w, taps, sum);
    if (tap_count == 3) add_weighted<3>(w, taps, sum);
    if (tap_count == 2) add_weighted<2>(w, taps, sum);
    if (tap_count == 1) add_weighted<1>(w, taps, sum);
  }

  const Filter& filter_;
  const std::int32_t (&n_)[3];
  axis_sum of_[3];
};

}  // namespace SUTURE_BUILD
}  // namespace suture::detail
