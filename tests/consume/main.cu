// SPDX-License-Identifier: Apache-2.0
#include <suture/base/vec.hpp>

__global__ void multiply_add(float* result) { *result = suture::fma(*result, 3.0f, 4.0f); }

int main() {
  float* result = nullptr;
  float value = 2.0f;
  if (cudaMalloc(&result, sizeof value) != cudaSuccess) return 1;
  cudaMemcpy(result, &value, sizeof value, cudaMemcpyHostToDevice);
  multiply_add<<<1, 1>>>(result);
  if (cudaMemcpy(&value, result, sizeof value, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
  cudaFree(result);
  return value == 10.0f ? 0 : 3;
}
