// SPDX-License-Identifier: Apache-2.0
// The function reassemble on a device. Every voxel gathers the patches that cover it.
#pragma once

#include "../exec/cuda/run.cuh"
#include "reassemble.hpp"

namespace suture {

namespace detail {

// Arguments of the kernels.
struct reassembly {
  reassembly_axis axis[3];
  float least, outside;
  std::int32_t first_plane;
  std::int32_t extents[3];
  std::int64_t first_patch, channels;
  std::int64_t stride[3], channel_stride;
};

inline constexpr int reassembly_threads = 128;

// Returns the weighted mean of the patches at a voxel of a channel. `coverage` is null unless Covered.
template <bool Covered, class T>
__device__ __forceinline__ float reassembled(const reassembly& r, const T* patches, const float* coverage,
                                             std::int64_t channel, std::int32_t plane, std::int32_t y, std::int32_t x) {
  const std::int32_t z = r.first_plane + plane;
  const std::int64_t row = r.axis[2].size, slice = row * r.axis[1].size, volume = slice * r.axis[0].size;
  const std::int32_t first_x = r.axis[2].first(x), last_x = r.axis[2].last(x);
  const std::int32_t first_y = r.axis[1].first(y), last_y = r.axis[1].last(y);
  const std::int32_t first_z = r.axis[0].first(z), last_z = r.axis[0].last(z);
  float sum = 0, weights = 0;
  for (std::int32_t iz = first_z; iz < last_z; ++iz)
    for (std::int32_t iy = first_y; iy < last_y; ++iy) {
      const std::int32_t pz = z - r.axis[0].starts[iz], py = y - r.axis[1].starts[iy];
      const float wzy = product(r.axis[0].weight[pz], r.axis[1].weight[py]);
      const std::int64_t first_of_row = (static_cast<std::int64_t>(iz) * r.axis[1].patches + iy) * r.axis[2].patches;
      const std::int64_t patch = first_of_row - r.first_patch, in_patch = pz * slice + py * row;
      const T* rows = patches + (patch * r.channels + channel) * volume + in_patch;
      for (std::int32_t ix = first_x; ix < last_x; ++ix) {
        const std::int32_t px = x - r.axis[2].starts[ix];
        float weight = window_weight(wzy, r.axis[2].weight[px], r.least);
        if constexpr (Covered) weight = covered_weight(weight, coverage[(patch + ix) * volume + in_patch + px]);
        if (!Covered || weight > 0) sum = fma(weight, storage<T>::load(rows[ix * r.channels * volume + px]), sum);
        weights += weight;
      }
    }
  return !Covered || weights > 0 ? math::detail::divide(sum, weights) : r.outside;
}

// Reassembles outputs whose smallest stride is that of x. A thread computes a voxel, a block a part of a row, and
// blockIdx.y is the channel.
template <bool Covered, class T, class Out>
__global__ void __launch_bounds__(reassembly_threads)
    reassemble_kernel(const __grid_constant__ reassembly r, const T* patches, const float* coverage, Out* out) {
  require_ieee_arithmetic();
  const std::int32_t parts = (r.extents[2] + reassembly_threads - 1) / reassembly_threads;
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t x = block % parts * reassembly_threads + static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t y = block / parts % r.extents[1];
  const std::int32_t plane = block / parts / r.extents[1];
  if (x >= r.extents[2]) return;
  const auto channel = static_cast<std::int64_t>(blockIdx.y);
  out[channel * r.channel_stride + plane * r.stride[0] + y * r.stride[1] + x * r.stride[2]] =
      storage<Out>::store(reassembled<Covered>(r, patches, coverage, channel, plane, y, x));
}

// Rows along x that a block computes if z or y has the smallest stride, so that it stores whole sectors of 32 bytes.
template <class Out>
inline constexpr std::int32_t rows_across = 32 / static_cast<std::int32_t>(sizeof(Out));

// Reassembles outputs whose smallest stride is that of axis `across`, z or y. A block computes a few rows that are
// adjacent along that axis, transposes them in shared memory and stores them along it.
template <bool Covered, class T, class Out>
__global__ void __launch_bounds__(reassembly_threads)
    reassemble_across_kernel(const __grid_constant__ reassembly r, const T* patches, const float* coverage, Out* out,
                             int across) {
  require_ieee_arithmetic();
  constexpr std::int32_t rows = rows_across<Out>;
  __shared__ Out made[rows][reassembly_threads + 1];
  const auto thread = static_cast<std::int32_t>(threadIdx.x), block = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t parts = (r.extents[2] + reassembly_threads - 1) / reassembly_threads;
  const std::int32_t x0 = block % parts * reassembly_threads, width = min(r.extents[2] - x0, reassembly_threads);
  const std::int32_t other = block / parts % r.extents[1 - across];
  const std::int32_t first = block / parts / r.extents[1 - across] * rows;
  const std::int32_t count = min(r.extents[across] - first, rows);
  const auto channel = static_cast<std::int64_t>(blockIdx.y);
  if (thread < width)
    for (std::int32_t i = 0; i < count; ++i)
      made[i][thread] =
          storage<Out>::store(reassembled<Covered>(r, patches, coverage, channel, across == 0 ? first + i : other,
                                                   across == 0 ? other : first + i, x0 + thread));
  __syncthreads();
  Out* const to = out + (channel * r.channel_stride + other * r.stride[1 - across]);
  for (std::int32_t e = thread; e < rows * width; e += reassembly_threads) {
    const std::int32_t i = e % rows, x = e / rows;
    if (i < count) to[(first + i) * r.stride[across] + (x0 + x) * r.stride[2]] = made[i][x];
  }
}

inline std::size_t reassembly_words(const patch_grid& g) {
  std::size_t words = 0;
  for (int k = 0; k < 3; ++k) words += static_cast<std::size_t>(g.along(k)) + static_cast<std::size_t>(g.size[k]);
  return words;
}

}  // namespace detail

// Returns the bytes of workspace of a reassembly on a device, which holds starts and weights along each axis.
inline std::size_t workspace_bytes(const patch_grid& g) {
  return detail::aligned(detail::reassembly_words(g) * sizeof(std::uint32_t));
}

namespace detail {

template <bool Covered, class T, class Out>
void put_together(const cuda& exec, const patch_grid& g, const patch_window& window, const patch_tensor<T>& patches,
                  const float* coverage, const view<Out>& out, std::int64_t first_plane, float outside) {
  check_device_workspace(exec, workspace_bytes(g), {"reassemble"}, "workspace: ");
  each_reassembly_pointer(memory_check(exec), patches, coverage, out);
  const extent3& n = out.grid.extents;
  const std::int64_t parts = (n[2] + reassembly_threads - 1) / reassembly_threads;
  require(parts * n[1] <= 2147483647 / n[0], {"reassemble"}, "extents ", n, " exceed the grid of a kernel");

  std::vector<std::uint32_t> table;
  auto* memory = reinterpret_cast<std::uint32_t*>(exec.workspace.data());
  reassembly r{};
  for (int k = 0; k < 3; ++k) {
    r.axis[k].weight = reinterpret_cast<const float*>(memory + table.size());
    for (const float w : window.weight[k]) table.push_back(float_bits(w));
    r.axis[k].starts = reinterpret_cast<const std::int32_t*>(memory + table.size());
    for (const std::int64_t s : g.starts[k]) table.push_back(static_cast<std::uint32_t>(s));
    r.axis[k].patches = static_cast<std::int32_t>(g.along(k));
    r.axis[k].size = static_cast<std::int32_t>(g.size[k]);
    r.extents[k] = static_cast<std::int32_t>(n[k]);
    r.stride[k] = out.stride[k];
  }
  r.least = window.least;
  r.outside = outside;
  r.first_plane = static_cast<std::int32_t>(first_plane);
  r.first_patch = patches.first;
  r.channels = patches.channels;
  r.channel_stride = out.channel_stride;
  upload_list(exec, "reassemble", table, memory);
  const int densest = loop_axes[loops_in_memory({r.stride[0], r.stride[1], r.stride[2]}, {n[0], n[1], n[2]})][2];
  const auto channels = static_cast<unsigned>(patches.channels);
  if (densest == 2) {
    reassemble_kernel<Covered, T, Out>
        <<<dim3(static_cast<unsigned>(parts * n[1] * n[0]), channels), reassembly_threads, 0, exec.stream>>>(
            r, patches.data, coverage, out.data);
  } else {
    const std::int64_t groups = (n[densest] + rows_across<Out> - 1) / rows_across<Out>;
    reassemble_across_kernel<Covered, T, Out>
        <<<dim3(static_cast<unsigned>(parts * n[1 - densest] * groups), channels), reassembly_threads, 0,
           exec.stream>>>(r, patches.data, coverage, out.data, densest);
  }
  check_cuda(cudaGetLastError(), "reassemble", exec.at);
}

}  // namespace detail

// Queues the reassembly on the stream of the executor. Patches and output are in device memory.
template <class T, class Out>
void reassemble(const cuda& exec, const patch_grid& g, const patch_window& window, const patch_tensor<T>& patches,
                const view<Out>& out, std::int64_t first_plane = 0) {
  detail::check_reassembly(g, window, patches, out, first_plane);
  detail::put_together<false>(exec, g, window, patches, nullptr, out, first_plane, 0);
}

// Queues the reassembly of patches with a coverage, which is in device memory too.
template <class T, class Out>
void reassemble(const cuda& exec, const patch_grid& g, const patch_window& window, const patch_tensor<T>& patches,
                const patch_tensor<float>& coverage, const view<Out>& out, std::int64_t first_plane = 0,
                float outside = 0) {
  detail::check_reassembly(g, window, patches, out, first_plane);
  detail::check_coverage(g, patches, coverage, out, outside);
  detail::put_together<true>(exec, g, window, patches, coverage.data, out, first_plane, outside);
}

}  // namespace suture
