// SPDX-License-Identifier: Apache-2.0
// Binary volumes of one bit per voxel, on which all mask operations work. A word of 64 bits holds 64 voxels of a row.
// The bit and atomic instructions that host and device spell differently are here too.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../base/config.hpp"

namespace suture::detail::masks {

// A binary volume in memory that it does not own. Every row along x begins a word: voxel x is bit x % 64 of word x / 64
// of its row. Bits beyond the end of a row are 0.
struct bit_volume {
  std::uint64_t* words;
  std::int32_t extents[3];  // z, y, x
  std::int32_t row_words;

  SUTURE_FN std::uint64_t* row(std::int32_t z, std::int32_t y) const {
    return words + (static_cast<std::int64_t>(z) * extents[1] + y) * row_words;
  }
  // Returns the bits of word w of a row that are voxels.
  SUTURE_FN std::uint64_t inside(std::int32_t w) const {
    const std::int32_t left = extents[2] - w * 64;
    return left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
  }
};

// These count zero bits from the lowest and from the highest bit on. The argument must not be 0.
SUTURE_FN std::int32_t trailing_zeros(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(x)) - 1;
#else
  return __builtin_ctzll(x);
#endif
}
SUTURE_FN std::int32_t leading_zeros(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(x));
#else
  return __builtin_clzll(x);
#endif
}

// Relaxed atomic accesses of the threads of one loop over a volume. The end of the loop makes them visible to the next
// one, and the outcomes that are used do not depend on their order.
template <class T>
SUTURE_FN T load_relaxed(const T* p) {
#if defined(__CUDA_ARCH__)
  return *const_cast<const volatile T*>(p);
#else
  return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}
SUTURE_FN void store_relaxed(std::uint32_t* p, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  *const_cast<volatile std::uint32_t*>(p) = value;
#else
  __atomic_store_n(p, value, __ATOMIC_RELAXED);
#endif
}
SUTURE_FN void add_relaxed(std::uint32_t* p, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  atomicAdd(p, value);
#else
  __atomic_fetch_add(p, value, __ATOMIC_RELAXED);
#endif
}
// Replaces `expected` by `value` and returns what was there before.
SUTURE_FN std::uint32_t exchange_if(std::uint32_t* p, std::uint32_t expected, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  return atomicCAS(p, expected, value);
#else
  __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
#endif
}
// Sets *p to the maximum of *p and a value. It reads first, since most calls change nothing.
template <class T>
SUTURE_FN void raise_to(T* p, T value) {
  T now = load_relaxed(p);
#if defined(__CUDA_ARCH__)
  using counter = std::conditional_t<sizeof(T) == 8, unsigned long long, T>;
  if (now < value) atomicMax(reinterpret_cast<counter*>(p), static_cast<counter>(value));
#else
  while (now < value && !__atomic_compare_exchange_n(p, &now, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
#endif
}

}  // namespace suture::detail::masks
