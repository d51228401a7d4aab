// SPDX-License-Identifier: Apache-2.0
// CUDA's own 16-bit floats as storage types, bit for bit suture::half and suture::bfloat16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "numeric.hpp"

namespace suture {

template <>
struct storage<__half> {
  static constexpr std::string_view name = "float16";
  SUTURE_FN static float load(__half value) { return storage<half>::load({__half_as_ushort(value)}); }
  SUTURE_FN static __half store(float x) { return __ushort_as_half(storage<half>::store(x).bits); }
};
template <>
struct storage<__nv_bfloat16> {
  static constexpr std::string_view name = "bfloat16";
  SUTURE_FN static float load(__nv_bfloat16 value) { return storage<bfloat16>::load({__bfloat16_as_ushort(value)}); }
  SUTURE_FN static __nv_bfloat16 store(float x) { return __ushort_as_bfloat16(storage<bfloat16>::store(x).bits); }
};

}  // namespace suture
