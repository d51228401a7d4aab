// SPDX-License-Identifier: Apache-2.0
// Kernels whose machine code is inspected: limits.txt bounds their registers and forbids stack and spills.
#include <suture/core/vec.hpp>

extern "C" __global__ void multiply_add(const float* in, float* out, int count, float scale, float shift) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = suture::fma(in[i], scale, shift);
}
