// SPDX-License-Identifier: Apache-2.0
// Reads memory that nothing has written, and exchanges values between warps without a barrier. It succeeds by itself:
// what has to object are the strict modes of device tests.
#include <cuda_runtime.h>

__global__ void faulty(const int* never_written, int* out) {
  __shared__ int values[64];
  values[threadIdx.x] = never_written[threadIdx.x];
  out[threadIdx.x] = values[63 - threadIdx.x];
}

int main() {
  int* memory = nullptr;
  if (cudaMalloc(&memory, 128 * sizeof(int)) != cudaSuccess) return 1;
  faulty<<<1, 64>>>(memory, memory + 64);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
