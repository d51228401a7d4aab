// SPDX-License-Identifier: Apache-2.0
// Storage types: what an image may be stored as, and how each is read as float and written from float. Conversions use
// integer operations, and float operations whose rounding IEEE 754 fixes. The bits therefore do not depend on compiler,
// flags or processor.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "bits.hpp"
#include "config.hpp"
#include "simd.hpp"

namespace suture {

// IEEE 754 binary16, stored only; arithmetic is in float, which it converts to exactly. Same layout as __half and
// _Float16.
struct half {
  std::uint16_t bits;
  SUTURE_FN operator float() const;
};

// The upper half of an IEEE 754 binary32, stored only; it converts to float exactly. Same layout as __nv_bfloat16.
struct bfloat16 {
  std::uint16_t bits;
  SUTURE_FN operator float() const;
};

SUTURE_FN std::uint32_t float_bits(float x) { return bit_cast<std::uint32_t>(x); }
SUTURE_FN float float_from_bits(std::uint32_t bits) { return bit_cast<float>(bits); }

// `storage<T>` reads and writes values of type T.
//   load   the value as float; exact, except integers beyond 2^24, which round to nearest even.
//   store  rounds to nearest, ties to even. Integers saturate and NaN becomes 0; half and bfloat16 keep subnormals and
//          overflow to infinity. A NaN is stored as the one a GPU writes, all bits set but the sign (0x7fff,
//          0x7fffffff), whatever its payload was: NaN payloads differ between processors, stored bits must not.
// The default rounding mode is assumed. Only types with a specialization are storage types; numeric_cuda.cuh adds
// CUDA's.
template <class T>
struct storage;

namespace detail {

// Host code selects by masks and not by ?: where a float operation depends on the condition. Under the default
// -ftrapping-math a compiler may not move such an operation ahead of the branch, so the loop would not be vectorized.

// Returns all ones if a < b, else 0; both are below 2^31.
SUTURE_FN std::uint32_t mask_less(std::uint32_t a, std::uint32_t b) { return 0u - ((a - b) >> 31); }
SUTURE_FN std::uint32_t blend(std::uint32_t mask, std::uint32_t a, std::uint32_t b) { return (a & mask) | (b & ~mask); }
SUTURE_FN std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

// Nearest int32, ties to even, saturating, NaN -> 0.
SUTURE_FN std::int32_t nearest_int32(float x) {
#if defined(__CUDA_ARCH__)
  return __float2int_rn(x);
#else
  const std::uint32_t bits = float_bits(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::int32_t sign = static_cast<std::int32_t>(bits) >> 31;
  const std::uint32_t inside = smaller(magnitude, 0x4effffffu);  // the largest float below 2^31
  // The last bit of floats in [2^23, 2^24) is worth 1, so that adding 2^23 rounds to an integer. From 2^23 on all
  // floats are integers.
  const float shift = float_from_bits(0x4b000000u & mask_less(inside, 0x4b000000u));
  const float rounded = (float_from_bits(inside) + shift) - shift;
  const std::int32_t nearest = (static_cast<std::int32_t>(rounded) ^ sign) - sign;
  const std::uint32_t saturated = blend(mask_less(magnitude, 0x4f000000u), static_cast<std::uint32_t>(nearest),
                                        static_cast<std::uint32_t>(INT32_MAX ^ sign));
  return static_cast<std::int32_t>(saturated & mask_less(magnitude, 0x7f800001u));
#endif
}

// Nearest integer within [low, high], ties to even, NaN -> 0; |low| and |high| below 2^21.
template <class T, std::int32_t low, std::int32_t high>
SUTURE_FN T nearest_small(float x) {
  static_assert(low > -(1 << 21) && low <= 0 && high >= 0 && high < (1 << 21));
#if defined(__CUDA_ARCH__)
  const std::int32_t nearest = __float2int_rn(x);
  return static_cast<T>(nearest < low ? low : nearest > high ? high : nearest);
#else
  const std::uint32_t bits = float_bits(x);
  std::uint32_t inside = 0;
  if constexpr (low == 0) {  // the bits of positive floats are ordered as the floats are
    inside = smaller(bits & (0u - static_cast<std::uint32_t>(x > 0)), float_bits(static_cast<float>(high)));
  } else {
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    inside = (smaller(magnitude, 0x4a000000u) | (bits & 0x80000000u)) &  // within 2^21
             mask_less(magnitude, 0x7f800001u);
  }
  const float shifted = float_from_bits(inside) + 0x1.8p23f;  // the last bit of floats in [2^23, 2^24) is worth 1
  const std::int32_t nearest = static_cast<std::int32_t>(float_bits(shifted)) - 0x4b400000;
  if constexpr (low == 0) return static_cast<T>(nearest);
  return static_cast<T>(nearest < low ? low : nearest > high ? high : nearest);
#endif
}

template <class T, std::int32_t low, std::int32_t high>
struct small_integer_storage {
  SUTURE_FN static float load(T value) { return static_cast<float>(value); }
  SUTURE_FN static T store(float x) { return nearest_small<T, low, high>(x); }
};

SUTURE_FN float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const std::uint32_t subnormal = mask_less(magnitude, 1u << 23);
  const std::uint32_t finite = mask_less(magnitude, 31u << 23);
  // A subnormal becomes the normal number 2^-14 + value, from which 2^-14 is subtracted exactly. Infinity and NaN add
  // the difference of the exponent biases twice, which sets all bits of the exponent.
  const std::uint32_t bias = blend(subnormal, 113u << 23, blend(finite, 112u << 23, 224u << 23));
  const float excess = float_from_bits((113u << 23) & subnormal);
  return float_from_bits(sign | float_bits(float_from_bits(magnitude + bias) - excess));
}

SUTURE_FN std::uint16_t float_to_half(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
  return result;
#else
  const std::uint32_t bits = float_bits(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  // The last bit of floats in [1/2, 1) is worth 2^-24, as much as that of a subnormal half.
  const std::uint32_t subnormal = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t finite = blend(mask_less(magnitude, 113u << 23), subnormal, normal);
  const std::uint32_t bounded = blend(mask_less(magnitude, 143u << 23), finite, 0x7c00u);
  return static_cast<std::uint16_t>(blend(mask_less(magnitude, 0x7f800001u), sign | bounded, 0x7fffu));
#endif
}

SUTURE_FN float bfloat16_to_float(std::uint16_t bits) {
  return float_from_bits(static_cast<std::uint32_t>(bits) << 16);
}

SUTURE_FN std::uint16_t float_to_bfloat16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint16_t result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
  return result;
#else
  const std::uint32_t bits = float_bits(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
#endif
}

}  // namespace detail

template <>
struct storage<std::int8_t> : detail::small_integer_storage<std::int8_t, -128, 127> {
  static constexpr std::string_view name = "int8";
};
template <>
struct storage<std::uint8_t> : detail::small_integer_storage<std::uint8_t, 0, 255> {
  static constexpr std::string_view name = "uint8";
};
template <>
struct storage<std::int16_t> : detail::small_integer_storage<std::int16_t, -32768, 32767> {
  static constexpr std::string_view name = "int16";
};
template <>
struct storage<std::uint16_t> : detail::small_integer_storage<std::uint16_t, 0, 65535> {
  static constexpr std::string_view name = "uint16";
};
template <>
struct storage<std::int32_t> {
  static constexpr std::string_view name = "int32";
  SUTURE_FN static float load(std::int32_t value) { return static_cast<float>(value); }
  SUTURE_FN static std::int32_t store(float x) { return detail::nearest_int32(x); }
};
template <>
struct storage<float> {
  static constexpr std::string_view name = "float32";
  SUTURE_FN static float load(float value) { return value; }
  SUTURE_FN static float store(float x) {
    const std::uint32_t bits = float_bits(x);
    return float_from_bits((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits);
  }
};
template <>
struct storage<half> {
  static constexpr std::string_view name = "float16";
  SUTURE_FN static float load(half value) { return detail::half_to_float(value.bits); }
  SUTURE_FN static half store(float x) { return {detail::float_to_half(x)}; }
};
template <>
struct storage<bfloat16> {
  static constexpr std::string_view name = "bfloat16";
  SUTURE_FN static float load(bfloat16 value) { return detail::bfloat16_to_float(value.bits); }
  SUTURE_FN static bfloat16 store(float x) { return {detail::float_to_bfloat16(x)}; }
};

SUTURE_FN half::operator float() const { return storage<half>::load(*this); }
SUTURE_FN bfloat16::operator float() const { return storage<bfloat16>::load(*this); }

// int64 is for labels and masks: label maps may be stored as int64, which some losses want, and masks may be read from
// it. Stored values fit 32 bits: store saturates as for int32.
template <>
struct storage<std::int64_t> {
  static constexpr std::string_view name = "int64";
  SUTURE_FN static float load(std::int64_t value) { return static_cast<float>(value); }
  SUTURE_FN static std::int64_t store(float x) { return detail::nearest_int32(x); }
};

namespace detail {

// Tests whether a number is finite and stays so when it is stored as T, a floating-point type.
template <class T>
bool finite_as(double value) {
  return std::isfinite(storage<T>::load(storage<T>::store(static_cast<float>(value))));
}

}  // namespace detail

// Storage types of images, and of label maps that are read. int64 has a storage<> but is not one of them.
template <class T>
inline constexpr bool is_image_storage_v = requires {
  sizeof(storage<T>);
};
template <>
inline constexpr bool is_image_storage_v<std::int64_t> = false;
// Types that label maps may be stored as.
template <class T>
inline constexpr bool is_label_storage_v = is_image_storage_v<T> || std::is_same_v<T, std::int64_t>;

template <class T>
constexpr std::string_view storage_name() {
  return storage<T>::name;
}

namespace detail {
// Stores a row of values on the host.
template <class T>
SUTURE_INLINE void store_row(const float* values, T* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = storage<T>::store(values[i]);
}

#if defined(SUTURE_HAS_SIMD_HALF)
// The processor's conversion differs from storage<half>::store only for NaN, which is rare: 32 values are tested at
// once.
SUTURE_INLINE void store_row(const float* values, half* out, int count) {
  int i = 0;
  for (; i + 32 <= count; i += 32) {
    if (simd::any_nan_of_32(values + i)) [[unlikely]] {
      for (int j = i; j < i + 32; ++j) out[j] = storage<half>::store(values[j]);
      continue;
    }
    simd::sixteen_halves(out + i, values + i);
    simd::sixteen_halves(out + i + 16, values + i + 16);
  }
  for (; i < count; ++i) out[i] = storage<half>::store(values[i]);
}
#endif
}  // namespace detail

}  // namespace suture
