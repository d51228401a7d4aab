// SPDX-License-Identifier: Apache-2.0
// Kernels refuse to be compiled without IEEE arithmetic.
#pragma once

#if defined(__CUDA_ARCH__)
extern "C" __device__ int __nvvm_reflect(const char*);
extern "C" __device__ void suture_needs_ieee_arithmetic__compile_without_use_fast_math();
#endif

namespace suture {

namespace detail {
// Makes assembling or linking fail under --use_fast_math, -ftz=true or -prec-sqrt=false, for which nvcc defines no
// macro: the kernel then calls an undefined function, whose name in the error says why.
__device__ __forceinline__ void require_ieee_arithmetic() {
#if defined(__CUDA_ARCH__)
  if (__nvvm_reflect("__CUDA_FTZ") != 0) suture_needs_ieee_arithmetic__compile_without_use_fast_math();
  if (__nvvm_reflect("__CUDA_PREC_SQRT") == 0) suture_needs_ieee_arithmetic__compile_without_use_fast_math();
#endif
}
}  // namespace detail

}  // namespace suture
