// SPDX-License-Identifier: Apache-2.0
// Label maps of smaller grids for deep supervision on CUDA, copied from the full output after the kernel that writes
// it. They have few voxels, and a kernel of their own saves registers and instructions in the fused kernel.
#pragma once

#include <algorithm>

#include "../../evaluate/evaluator.hpp"
#include "check_cuda.cuh"
#include "ieee.cuh"

namespace suture::detail {

inline constexpr int level_threads = 256, level_rows = level_threads / 32;

// Writes level blockIdx.z of pair B of sample blockIdx.y. Each warp copies whole rows.
template <std::size_t B, class Evaluator>
__global__ void __launch_bounds__(level_threads, 4) level_kernel(const __grid_constant__ Evaluator evaluate) {
  require_ieee_arithmetic();
  using Out = typename Evaluator::template binding_type<B>::output;
  const auto& r = evaluate.records[blockIdx.y];
  if (r.mark != evaluate.mark) return;
  const level_list& list = r.levels[Evaluator::template levels_of<B>];
  if (static_cast<std::int32_t>(blockIdx.z) >= list.count) return;
  const level_tensor& level = list.levels[blockIdx.z];
  const target_tensor &full = r.out[B], &to = level.to;
  const std::int32_t channels = evaluate.template label_channels<B>(r);
  const auto picked = [&](int k, std::uint32_t i) {
    const level_axis axis{static_cast<std::uint32_t>(level.extents[k]),
                          static_cast<std::uint32_t>(r.sample.extents[k])};
    return static_cast<std::int64_t>(axis.picked(i)) * full.stride[k];
  };
  const auto height = static_cast<std::uint32_t>(level.extents[1]),
             width = static_cast<std::uint32_t>(level.extents[2]);
  const std::uint32_t rows = static_cast<std::uint32_t>(level.extents[0]) * height;
  for (std::uint32_t row = blockIdx.x * level_rows + threadIdx.x / 32; row < rows; row += gridDim.x * level_rows) {
    const std::uint32_t z = row / height, y = row - z * height;
    const Out* const from = static_cast<const Out*>(full.data) + (picked(0, z) + picked(1, y));
    Out* const out = static_cast<Out*>(to.data) + (z * to.stride[0] + y * to.stride[1]);
    for (std::uint32_t x = threadIdx.x % 32; x < width; x += 32) {
      const Out* p = from + picked(2, x);
      Out* q = out + x * to.stride[2];
      for (std::int32_t channel = 0; channel < channels; ++channel, p += full.channel_stride, q += to.channel_stride)
        *q = *p;
    }
  }
}

// Queues the kernels of levels: one for each pair of label maps that has levels.
template <class Exec, class Evaluator, class... Bindings>
void queue_levels(const Exec& exec, const Evaluator& e, const Bindings&... bindings) {
  const auto one = [&]<std::size_t B, class Binding>(const Binding& bound) {
    if constexpr (Binding::has_levels) {
      if (bound.levels.count == 0) return;
      std::int64_t rows = 1;
      for (std::size_t l = 0; l < bound.levels.count; ++l)
        for (std::size_t i = 0; i < bound.samples(); ++i) {
          const extent3& n = bound.levels.views[l][i].grid.extents;
          rows = std::max(rows, n[0] * n[1]);
        }
      constexpr std::int64_t most_blocks = 1024;  // of a level
      const dim3 blocks(static_cast<unsigned>(std::min((rows + level_rows - 1) / level_rows, most_blocks)),
                        static_cast<unsigned>(bound.samples()), static_cast<unsigned>(bound.levels.count));
      level_kernel<B, Evaluator><<<blocks, level_threads, 0, exec.stream>>>(e);
      check_cuda(cudaGetLastError(), "run", exec.at);
    }
  };
  each_binding(one, bindings...);
}

}  // namespace suture::detail
