// SPDX-License-Identifier: Apache-2.0
// The function average on a device: the weighted mean of several predictions of one volume.
#pragma once

#include "../exec/cuda/run.cuh"
#include "average.hpp"

namespace suture {

namespace detail {

// Arguments of the kernel. covered is null if the weights of the mean are not wanted.
struct averaging {
  std::int64_t count, channels, extents[3];
  std::int64_t stride[3], channel_stride;
  float* covered;
  std::int64_t covered_stride[3];
  covered_mean rule;
};

inline constexpr int averaging_threads = 256;

// Computes the mean. One thread per voxel computes all channels.
template <class T, class Out>
__global__ void __launch_bounds__(averaging_threads)
    average_kernel(const __grid_constant__ averaging a, const T* restored, const float* coverage, Out* out) {
  require_ieee_arithmetic();
  const std::int64_t voxels = a.extents[0] * a.extents[1] * a.extents[2];
  const std::int64_t v = static_cast<std::int64_t>(blockIdx.x) * averaging_threads + threadIdx.x;
  if (v >= voxels) return;
  float weight = 0;
  for (std::int64_t i = 0; i < a.count; ++i) weight += coverage[i * voxels + v];
  const std::int64_t row = v / a.extents[2], z = row / a.extents[1], y = row % a.extents[1], x = v % a.extents[2];
  if (a.covered != nullptr)
    a.covered[z * a.covered_stride[0] + y * a.covered_stride[1] + x * a.covered_stride[2]] =
        weight_of_mean(weight, a.rule);
  Out* to = out + z * a.stride[0] + y * a.stride[1] + x * a.stride[2];
  for (std::int64_t c = 0; c < a.channels; ++c, to += a.channel_stride) {
    float sum = 0;
    for (std::int64_t i = 0; i < a.count; ++i) sum += storage<T>::load(restored[(i * a.channels + c) * voxels + v]);
    *to = storage<Out>::store(mean_of(sum, weight, a.rule));
  }
}

}  // namespace detail

// Queues average (average.hpp) on the stream of the executor, as one kernel. All views and tensors must be in memory
// that the device can access: device, managed, or pinned or registered host memory. It needs no workspace.
template <class T, class Out>
void average(const cuda& exec, const patch_tensor<T>& restored, const patch_tensor<float>& coverage,
             const view<Out>& out, const covered_mean& rule, const view<float>& covered = {}) {
  detail::check_average(restored, coverage, out, rule, covered);
  detail::check_for_earlier_error(exec);
  detail::each_average_pointer(detail::memory_check(exec), restored, coverage, out, covered);
  detail::averaging a{};
  for (int k = 0; k < 3; ++k) {
    a.extents[k] = out.grid.extents[k];
    a.stride[k] = out.stride[k];
    a.covered_stride[k] = covered.stride[k];
  }
  a.count = restored.count;
  a.channels = restored.channels;
  a.channel_stride = out.channel_stride;
  a.covered = covered.data;
  a.rule = rule;
  const std::int64_t blocks = (out.grid.voxels() + detail::averaging_threads - 1) / detail::averaging_threads;
  require(blocks <= 2147483647, {"average"}, "extents ", out.grid.extents, " exceed the grid of a kernel");
  detail::average_kernel<T, Out><<<static_cast<unsigned>(blocks), detail::averaging_threads, 0, exec.stream>>>(
      a, restored.data, coverage.data, out.data);
  check_cuda(cudaGetLastError(), "average", exec.at);
}

}  // namespace suture
