// SPDX-License-Identifier: Apache-2.0
// Interleaved color tiles in tests: made, and put through a chain of operations on the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "suture/suture.hpp"

namespace support {

// Interleaved RGB from the linear congruential generator of Numerical Recipes, the highest 8 bits of each state.
inline std::vector<std::uint8_t> noise(std::int64_t height, std::int64_t width, std::uint32_t state) {
  std::vector<std::uint8_t> v(static_cast<std::size_t>(height * width * 3));
  for (auto& b : v) {
    state = state * 1664525u + 1013904223u;
    b = static_cast<std::uint8_t>(state >> 24);
  }
  return v;
}

// Tiles (y, x, channel) as views of one batch; values and grids are referred to.
template <class T>
struct tiles {
  std::vector<std::vector<T>> values;
  std::vector<suture::grid> grids;

  void add(std::vector<T> tile, std::int64_t height, std::int64_t width) {
    values.push_back(std::move(tile));
    grids.push_back({.extents = {1, height, width}});
  }
  std::vector<suture::view<const T>> views() const {
    std::vector<suture::view<const T>> result;
    for (std::size_t i = 0; i < values.size(); ++i)
      result.push_back(suture::channels_last<const T>(values[i].data(), grids[i], 3));
    return result;
  }
};

// What an operation that keeps the grid makes of a batch, interleaved as the tiles are.
template <class Out, class In, class Operations>
std::vector<std::vector<Out>> tile_results(const Operations& operations, const tiles<In>& in,
                                           const suture::settings& settings = {}) {
  const auto views = in.views();
  const auto plan = suture::plan(operations, views, settings);
  std::vector<std::vector<Out>> result;
  std::vector<suture::view<Out>> outs;
  for (std::size_t i = 0; i < views.size(); ++i) {
    result.emplace_back(static_cast<std::size_t>(3 * plan.output_grid(i).voxels()));
    outs.push_back(suture::channels_last<Out>(result[i].data(), plan.output_grid(i), 3));
  }
  suture::run(suture::cpu{}, plan, suture::image(views, outs));
  return result;
}

// The same of one tile of height x width.
template <class Out, class In, class Operations>
std::vector<Out> tile_result(const Operations& operations, const std::vector<In>& tile, std::int64_t height,
                             std::int64_t width, const suture::settings& settings = {}) {
  tiles<In> batch;
  batch.add(tile, height, width);
  return tile_results<Out>(operations, batch, settings)[0];
}

}  // namespace support
