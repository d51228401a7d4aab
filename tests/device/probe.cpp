// SPDX-License-Identifier: Apache-2.0
// Succeeds where the CUDA runtime sees a GPU that the library is for.
#include <cuda_runtime_api.h>

int main() {
  int devices = 0, capability = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 1;
  if (cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess) return 1;
  return capability >= 8 ? 0 : 1;
}
