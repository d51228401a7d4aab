// SPDX-License-Identifier: Apache-2.0
// This header has square root and division, correctly rounded even if the compiler was allowed approximate ones.
#pragma once

#include "../base/config.hpp"

namespace suture::math {

SUTURE_FN float sqrt(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

SUTURE_FN double sqrt(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}

namespace detail {

SUTURE_FN float divide(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

SUTURE_FN double divide(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __ddiv_rn(a, b);
#else
  return a / b;
#endif
}

}  // namespace detail

}  // namespace suture::math
