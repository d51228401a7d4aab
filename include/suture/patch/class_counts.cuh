// SPDX-License-Identifier: Apache-2.0
// The function count_classes on a device. It writes the same table as on the host, in one pass over the voxels.
#pragma once

#include "../exec/cuda/run.cuh"
#include "class_counts.hpp"

namespace suture {

namespace detail {

// Arguments of the kernels for one sample.
template <class Reader>
struct count_record {
  Reader reader;
  std::int32_t extents[3];
  std::int64_t blocks;
  std::uint64_t* totals;
  std::uint32_t* counts;
};
template <class Reader>
struct count_chunk {
  static constexpr int capacity = 3600 / static_cast<int>(sizeof(count_record<Reader>));
  count_record<Reader> records[capacity];
};

inline constexpr int count_threads = 256;

// Block b of the grid counts block b of count_block linear indices of a sample. Neighboring lanes read neighboring
// voxels.
template <class Reader>
__global__ void __launch_bounds__(count_threads)
    count_kernel(const __grid_constant__ count_chunk<Reader> chunk, std::int32_t classes) {
  __shared__ std::uint32_t local[max_classes + 2];
  const count_record<Reader>& r = chunk.records[blockIdx.y];
  const auto block = static_cast<std::int64_t>(blockIdx.x);
  if (block >= r.blocks) return;
  const auto rows = static_cast<unsigned>(classes + 2);
  for (unsigned c = threadIdx.x; c < rows; c += count_threads) local[c] = 0;
  __syncthreads();

  const std::int32_t nz = r.extents[0], ny = r.extents[1], nx = r.extents[2];
  const std::int64_t first = block * count_block + threadIdx.x;
  auto x = static_cast<std::int32_t>(first % nx);
  auto y = static_cast<std::int32_t>(first / nx % ny);
  auto z = static_cast<std::int32_t>(first / nx / ny);
  // count_threads as a difference of indices, so that a step of a thread is three additions with carry.
  const std::int32_t dx = count_threads % nx, dy = count_threads / nx % ny, dz = count_threads / nx / ny;
  std::int32_t current = 0;
  std::uint32_t run = 0;
  for (int k = 0; k < count_block / count_threads && z < nz; ++k) {
    const weighted_class c = r.reader(z, y, x);
    if (c.of_class != current) {
      if (run != 0) atomicAdd(&local[current], run);
      current = c.of_class;
      run = 0;
    }
    run += c.weight;
    x += dx;
    y += dy;
    z += dz;
    if (x >= nx) {
      x -= nx;
      ++y;
    }
    if (y >= ny) {
      y -= ny;
      ++z;
    }
  }
  if (run != 0) atomicAdd(&local[current], run);
  __syncthreads();

  for (unsigned c = threadIdx.x; c < rows; c += count_threads) {
    const std::uint32_t count = local[c];
    if (c < static_cast<unsigned>(classes)) r.counts[c * r.blocks + block] = count;
    if (count != 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(r.totals + c), static_cast<unsigned long long>(count));
  }
}

}  // namespace detail

// Queues the count on the stream of the executor. Views and counts are in device memory. No workspace is needed.
template <class Classes>
void count_classes(const cuda& exec, const Classes& map, std::span<std::byte> counts) {
  const detail::count_layout l = detail::check_count(map, counts);
  using Reader = decltype(map.reader(0));
  using Chunk = detail::count_chunk<Reader>;
  for (std::size_t i = 0; i < map.samples(); ++i)
    require(l.blocks[i] <= 2147483647, {"count_classes", static_cast<std::int64_t>(i)}, "extents ", map.grid(i).extents,
            " exceed the grid of a kernel");
  detail::check_for_earlier_error(exec);
  detail::check_classes_memory(detail::memory_check(exec), map, "count_classes", counts.data());
  check_cuda(cudaMemsetAsync(counts.data(), 0, l.totals_bytes, exec.stream), "count_classes", exec.at);
  for (std::size_t first = 0; first < map.samples(); first += Chunk::capacity) {
    const std::size_t n = std::min<std::size_t>(Chunk::capacity, map.samples() - first);
    Chunk chunk;
    std::int64_t most = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t i = first + j;
      const extent3& e = map.grid(i).extents;
      chunk.records[j] = {
          map.reader(i),
          {static_cast<std::int32_t>(e[0]), static_cast<std::int32_t>(e[1]), static_cast<std::int32_t>(e[2])},
          l.blocks[i],
          l.totals(counts.data(), i),
          reinterpret_cast<std::uint32_t*>(counts.data() + l.counts[i])};
      most = std::max(most, l.blocks[i]);
    }
    detail::count_kernel<Reader>
        <<<dim3(static_cast<unsigned>(most), static_cast<unsigned>(n)), detail::count_threads, 0, exec.stream>>>(
            chunk, l.classes);
    check_cuda(cudaGetLastError(), "count_classes", exec.at);
  }
}

}  // namespace suture
