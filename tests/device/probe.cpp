// SPDX-License-Identifier: Apache-2.0
// Succeeds where the CUDA runtime sees a GPU.
#include <cuda_runtime_api.h>

int main() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 ? 0 : 1;
}
