// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include "suture/base/error.hpp"

#if defined(SUTURE_EXAMPLE_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace suture::examples {

#if defined(SUTURE_EXAMPLE_CUDA)
std::string why_no_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  int device = 0, capability = 0;
  const bool there = status == cudaSuccess && count > 0 && cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess;
  if (there && capability >= 8) return {};
  cudaGetLastError();  // not to be found by a later check
  return std::string("no GPU can be used: ") + (there                   ? "it is of compute capability below 8.0"
                                                : status == cudaSuccess ? "there is none"
                                                                        : cudaGetErrorString(status));
}

std::string gpu_description() {
  int device = 0;
  cudaDeviceProp properties{};
  const bool ok = cudaGetDevice(&device) == cudaSuccess && cudaGetDeviceProperties(&properties, device) == cudaSuccess;
  require(ok, site{"backend"}, cudaGetErrorString(cudaGetLastError()));
  return properties.name;
}
#else
std::string why_no_cuda() { return "this program was built without a CUDA compiler"; }
std::string gpu_description() { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
