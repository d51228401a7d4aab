// SPDX-License-Identifier: Apache-2.0
// average on a device.
#pragma once

#include "../exec/cuda/run.cuh"
#include "average.hpp"

namespace suture {

namespace detail {

struct averaging {
  std::int64_t count, channels, extents[3];
  std::int64_t stride[3], channel_stride;
  covered_mean rule;
};

inline constexpr int averaging_threads = 256;

// A thread per voxel, all channels.
template <class T, class Out>
__global__ void __launch_bounds__(averaging_threads)
    average_kernel(const __grid_constant__ averaging a, const T* restored, const float* coverage, Out* out) {
  require_ieee_arithmetic();
  const std::int64_t voxels = a.extents[0] * a.extents[1] * a.extents[2];
  const std::int64_t v = static_cast<std::int64_t>(blockIdx.x) * averaging_threads + threadIdx.x;
  if (v >= voxels) return;
  float covered = 0;
  for (std::int64_t i = 0; i < a.count; ++i) covered += coverage[i * voxels + v];
  const std::int64_t row = v / a.extents[2];
  Out* to = out + row / a.extents[1] * a.stride[0] + row % a.extents[1] * a.stride[1] + v % a.extents[2] * a.stride[2];
  for (std::int64_t c = 0; c < a.channels; ++c, to += a.channel_stride) {
    float sum = 0;
    for (std::int64_t i = 0; i < a.count; ++i) sum += storage<T>::load(restored[(i * a.channels + c) * voxels + v]);
    *to = storage<Out>::store(mean_of(sum, covered, a.rule));
  }
}

}  // namespace detail

// Queues the mean on a stream: one kernel; all pointers are device memory. No workspace.
template <class T, class Out>
void average(const cuda& exec, const patch_tensor<T>& restored, const patch_tensor<float>& coverage,
             const view<Out>& out, const covered_mean& rule = {}) {
  detail::check_average(restored, coverage, out, rule);
  detail::averaging a{};
  for (int k = 0; k < 3; ++k) {
    a.extents[k] = out.grid.extents[k];
    a.stride[k] = out.stride[k];
  }
  a.count = restored.count;
  a.channels = restored.channels;
  a.channel_stride = out.channel_stride;
  a.rule = rule;
  const std::int64_t blocks = (out.grid.voxels() + detail::averaging_threads - 1) / detail::averaging_threads;
  require(blocks <= 2147483647, {"average"}, "extents ", out.grid.extents, " exceed the grid of a kernel");
  detail::average_kernel<T, Out><<<static_cast<unsigned>(blocks), detail::averaging_threads, 0, exec.stream>>>(
      a, restored.data, coverage.data, out.data);
  check_cuda(cudaGetLastError(), "average", exec.at);
}

}  // namespace suture
