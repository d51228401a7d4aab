// SPDX-License-Identifier: Apache-2.0
// Times on a GPU, and what they mean nothing without: the clock its multiprocessors run at, a plain copy, and memory
// that holds no pattern.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "suture/exec/cuda/check_cuda.cuh"

namespace bench {

// One thread counts cycles and nanoseconds of the same chain of multiplications.
static __global__ void clock_kernel(std::int64_t* counted, int turns) {
  std::uint64_t start = 0, end = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  const std::int64_t first = clock64();
  auto x = static_cast<std::uint32_t>(first);
  for (int i = 0; i < turns; ++i) asm volatile("mad.lo.u32 %0, %0, 1664525, 1013904223;" : "+r"(x));
  counted[0] = clock64() - first;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
  counted[1] = static_cast<std::int64_t>(end - start);
  counted[2] = x;
}

// Hertz of a multiprocessor behind what was queued on the stream, over about `turns` times four cycles; 0 where the
// device has no such counters.
inline double multiprocessor_clock(cudaStream_t stream, int turns = 1 << 18) {
  using suture::check_cuda;
  std::int64_t* counted = nullptr;
  check_cuda(cudaMalloc(&counted, 3 * sizeof(std::int64_t)), "clock");
  clock_kernel<<<1, 1, 0, stream>>>(counted, turns);
  check_cuda(cudaGetLastError(), "clock");
  std::int64_t host[3] = {};
  check_cuda(cudaMemcpyAsync(host, counted, sizeof(host), cudaMemcpyDeviceToHost, stream), "clock");
  check_cuda(cudaStreamSynchronize(stream), "clock");
  check_cuda(cudaFree(counted), "clock");
  return host[1] > 0 ? 1e9 * static_cast<double>(host[0]) / static_cast<double>(host[1]) : 0;
}

// Seconds of the device that work queued on a stream takes. Waits for it; the two events are the caller's.
template <class Work>
double seconds_between(cudaEvent_t begin, cudaEvent_t end, cudaStream_t stream, const Work& work) {
  using suture::check_cuda;
  check_cuda(cudaEventRecord(begin, stream), "event");
  work();
  check_cuda(cudaEventRecord(end, stream), "event");
  check_cuda(cudaEventSynchronize(end), "event");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "event");
  return 1e-3 * static_cast<double>(milliseconds);
}

// A plain copy. Per is how many 16-byte words a thread has in flight.
template <int Per>
__global__ void copy_kernel(const uint4* __restrict__ from, uint4* __restrict__ to) {
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * Per * blockDim.x + threadIdx.x;
  uint4 v[Per];
#pragma unroll
  for (int i = 0; i < Per; ++i) v[i] = from[first + i * blockDim.x];
#pragma unroll
  for (int i = 0; i < Per; ++i) to[first + i * blockDim.x] = v[i];
}

// Words without a pattern. Memory that is all alike takes less power, and some of it may be compressed.
static __global__ void random_kernel(std::uint32_t* words, std::size_t count, std::uint32_t seed) {
  const std::size_t all = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += all) {
    auto h = static_cast<std::uint32_t>(i) * 2654435761u + seed;
    h = (h ^ h >> 16) * 0x7feb352du;
    h = (h ^ h >> 15) * 0x846ca68bu;
    words[i] = h ^ h >> 16;
  }
}
inline void fill_random(void* data, std::size_t bytes, cudaStream_t stream, std::uint32_t seed = 1) {
  random_kernel<<<256, 256, 0, stream>>>(static_cast<std::uint32_t*>(data), bytes / 4, seed);
  suture::check_cuda(cudaGetLastError(), "random data");
}

}  // namespace bench
