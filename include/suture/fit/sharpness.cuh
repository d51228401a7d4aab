// SPDX-License-Identifier: Apache-2.0
// fit_sharpness on a CUDA device. Results remain in device memory; nothing is allocated, synchronized or copied back.
#pragma once

#include <concepts>

#include "../exec/cuda/warp_sums.cuh"
#include "launch.cuh"
#include "sharpness.hpp"

namespace suture {

namespace detail {

inline constexpr std::int32_t sharpness_rows = 32;  // of a block

// A thread walks down a column and keeps the gray levels above, at and below; a block sums a strip of rows.
template <int Channels>
__global__ void __launch_bounds__(fit_threads)
    sharpness_kernel(const fit_record* records, std::int64_t first_tile, gray_sums* sums) {
  const std::int64_t tile = first_tile + blockIdx.y;
  const fit_record& r = records[tile];
  const std::int32_t height = r.extents[1], width = r.extents[2];
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * sharpness_rows;
  if (begin >= height) return;
  const auto first = static_cast<std::int32_t>(begin);
  const std::int32_t last = first + sharpness_rows < height ? first + sharpness_rows : height;
  const auto* data = static_cast<const std::uint8_t*>(r.data);
  const gray_reader gray{r.stride[2], r.channel_stride, Channels == 3};
  const auto row = [&](std::int32_t y) { return data + mirrored(y, height) * r.stride[1]; };
  std::int64_t part[4] = {0, 0, 0, 0};
  for (auto x = static_cast<std::int32_t>(threadIdx.x); x < width; x += fit_threads) {
    const std::int32_t left = mirrored(x - 1, width), right = mirrored(x + 1, width);
    std::int32_t up = gray(row(first - 1), x), at = gray(row(first), x);
    for (std::int32_t y = first; y < last; ++y) {
      const std::int32_t down = gray(row(y + 1), x);
      const std::int32_t l = up + down + gray(row(y), left) + gray(row(y), right) - 4 * at;
      part[0] += l;
      part[1] += l * l;
      part[2] += at;
      part[3] += at * at;
      up = at;
      at = down;
    }
  }
  for (int k = 0; k < 4; ++k) part[k] = warp_sum(part[k]);
  if (threadIdx.x % 32 != 0) return;
  if (threadIdx.x == 0 && blockIdx.x == 0)
    sums[tile].pixels = static_cast<std::uint64_t>(height) * static_cast<std::uint64_t>(width);
  count_up(&sums[tile].laplacian, part[0]);
  count_up(&sums[tile].laplacian_squares, part[1]);
  count_up(&sums[tile].gray, part[2]);
  count_up(&sums[tile].gray_squares, part[3]);
}

}  // namespace detail

template <std::same_as<std::uint8_t> T>
std::size_t fit_workspace_bytes(const fit_sharpness&, std::span<const view<const T>> tiles) {
  return detail::record_bytes(tiles.size()) + detail::aligned(tiles.size() * sizeof(detail::gray_sums));
}

// All tiles have the same number of channels. Only programs that call this have its kernels, since it is a template.
template <std::same_as<std::uint8_t> T>
void fit_on_device(const cuda& exec, const fit_sharpness& settings, std::span<const view<const T>> tiles,
                   const everything&, std::span<sharpness> results) {
  using namespace detail;
  constexpr std::string_view name = fit_sharpness::name;
  check_sharpness(tiles, results.size());
  if (tiles.empty()) return;
  for (std::size_t i = 1; i < tiles.size(); ++i)
    require(tiles[i].channels == tiles[0].channels, {name, static_cast<std::int64_t>(i)}, tiles[i].channels,
            " channels, ", tiles[0].channels, " in the first tile");
  const std::size_t state_bytes = aligned(tiles.size() * sizeof(gray_sums));
  const fit_launcher launcher = start_fit(exec, name, tiles, everything{}, results, 1, true, state_bytes,
                                          [](std::int32_t) { return sharpness_rows; });
  auto* const sums = reinterpret_cast<gray_sums*>(launcher.states);
  launcher.clear(sums, state_bytes);
  const auto* const records = launcher.grouping.records;
  launcher.over_groups([&](dim3 grid, const fit_grouping& grouping) {
    if (tiles[0].channels == 3)
      sharpness_kernel<3><<<grid, fit_threads, 0, exec.stream>>>(records, grouping.first_group, sums);
    else
      sharpness_kernel<1><<<grid, fit_threads, 0, exec.stream>>>(records, grouping.first_group, sums);
  });
  launcher.finish(sums, settings, results.data());
}

}  // namespace suture
