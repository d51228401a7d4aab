// SPDX-License-Identifier: Apache-2.0
// Vector instructions of x86 processors, named by what they do. Without AVX2, and in files that nvcc compiles, callers
// use plain loops with the same results.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "config.hpp"

#if defined(__AVX__) && !defined(__CUDACC__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace suture::detail::simd {

// Rounds x to the nearest integer, ties to even, without a call.
inline std::int64_t rounded(double x) {
#if defined(__SSE2__)
  return _mm_cvtsd_si64(_mm_set_sd(x));
#else
  return std::llrint(x);
#endif
}

// Copies Bytes, a multiple of 32, in whole registers. A compiler may copy by halves, and a load of the whole register
// then waits for both stores.
template <std::size_t Bytes>
SUTURE_INLINE void copy(void* to, const void* from) {
#if defined(__AVX__) && !defined(__CUDACC__)
  for (std::size_t i = 0; i < Bytes; i += sizeof(__m256i))
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(static_cast<char*>(to) + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(from) + i)));
#else
  std::memcpy(to, from, Bytes);
#endif
}

// Picks eight of eight floats: to[k] = from[which[k]].
SUTURE_INLINE void pick_of_eight(const float* from, const std::int32_t* which, float* to) {
#if defined(__AVX2__) && !defined(__CUDACC__)
  _mm256_storeu_ps(
      to, _mm256_permutevar8x32_ps(_mm256_loadu_ps(from), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(which))));
#else
  for (int k = 0; k < 8; ++k) to[k] = from[which[k]];
#endif
}

#if defined(__SSE2__)
// Interleaves the elements of the lower halves of two registers, and of the upper halves.
template <std::size_t Size>
SUTURE_INLINE void interleave(__m128i a, __m128i b, __m128i& lower, __m128i& upper) {
  if constexpr (Size == 1) {
    lower = _mm_unpacklo_epi8(a, b);
    upper = _mm_unpackhi_epi8(a, b);
  } else if constexpr (Size == 2) {
    lower = _mm_unpacklo_epi16(a, b);
    upper = _mm_unpackhi_epi16(a, b);
  } else {
    lower = _mm_unpacklo_epi32(a, b);
    upper = _mm_unpackhi_epi32(a, b);
  }
}
SUTURE_INLINE void load(const void* from, __m128i& to) { to = _mm_loadu_si128(static_cast<const __m128i*>(from)); }
template <class T>
SUTURE_INLINE void store_halves(T* to, std::ptrdiff_t, __m128i from) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), from);
}
#if defined(__AVX2__) && !defined(__CUDACC__)
template <std::size_t Size>
SUTURE_INLINE void interleave(__m256i a, __m256i b, __m256i& lower, __m256i& upper) {
  if constexpr (Size == 1) {
    lower = _mm256_unpacklo_epi8(a, b);
    upper = _mm256_unpackhi_epi8(a, b);
  } else if constexpr (Size == 2) {
    lower = _mm256_unpacklo_epi16(a, b);
    upper = _mm256_unpackhi_epi16(a, b);
  } else {
    lower = _mm256_unpacklo_epi32(a, b);
    upper = _mm256_unpackhi_epi32(a, b);
  }
}
SUTURE_INLINE void load(const void* from, __m256i& to) { to = _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
template <class T>
SUTURE_INLINE void store_halves(T* to, std::ptrdiff_t apart, __m256i from) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(from));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + apart), _mm256_extracti128_si256(from, 1));
}
using squares = __m256i;
#else
using squares = __m128i;
#endif

// Transposes a square by interleaving the first half of its rows with the second, log2(Count) times.
template <class T, int Done, class Register, int Count>
SUTURE_INLINE void interleave_rows(const Register (&rows)[Count], T* to, std::ptrdiff_t to_row) {
  Register next[Count];
  SUTURE_UNROLL
  for (int i = 0; i < Count / 2; ++i) interleave<sizeof(T)>(rows[i], rows[i + Count / 2], next[2 * i], next[2 * i + 1]);
  if constexpr (2 * Done < Count) {
    interleave_rows<T, 2 * Done>(next, to, to_row);
  } else {
    SUTURE_UNROLL
    for (int i = 0; i < Count; i += 2)
      for (int k = i; k < i + 2; ++k) store_halves(to + k * to_row, Count * to_row, next[k]);
  }
}

// Transposes rows to columns in squares: rows as many as elements fit 16 bytes, columns as many as fit a register.
// Returns false if there are fewer rows or columns.
template <class Register, class T>
SUTURE_INLINE bool transpose_squares(const T* from, std::ptrdiff_t from_row, int rows, int columns, T* to,
                                     std::ptrdiff_t to_row) {
  constexpr int count = 16 / sizeof(T), width = sizeof(Register) / sizeof(T);
  if (rows < count || columns < width) return false;
  for (int i = 0; i < rows; i += count)
    for (int j = 0; j < columns; j += width) {
      // The last squares overlap those before them.
      const std::ptrdiff_t row = std::min(i, rows - count), column = std::min(j, columns - width);
      const T* const first = from + row * from_row + column;
      Register lines[count];
      SUTURE_UNROLL
      for (int k = 0; k < count; k += 2)
        for (int l = k; l < k + 2; ++l) load(first + l * from_row, lines[l]);
      interleave_rows<T, 1>(lines, to + column * to_row + row, to_row);
    }
  return true;
}
#endif

// Transposes rows to columns: element j of row i becomes element i of row j. The strides of the rows are in elements.
template <class T>
SUTURE_INLINE void transpose(const T* from, std::ptrdiff_t from_row, int rows, int columns, T* to,
                             std::ptrdiff_t to_row) {
#if defined(__SSE2__)
  if constexpr (sizeof(T) <= 4)
    if (transpose_squares<squares>(from, from_row, rows, columns, to, to_row) ||
        transpose_squares<__m128i>(from, from_row, rows, columns, to, to_row))
      return;
#endif
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
}

// Transposes a square.
template <class T, int Count>
SUTURE_INLINE void transpose(const T (&from)[Count][Count], T (&to)[Count][Count]) {
  transpose(from[0], Count, Count, Count, to[0], Count);
}

// Copies Bytes, a multiple of 32, by stores that bypass the caches, for results too large to stay in them. `to` is
// aligned to stream_alignment bytes. A thread calls finish_streams after its last copy.
inline constexpr std::int32_t stream_alignment = 32;
template <std::size_t Bytes>
SUTURE_INLINE void stream(void* to, const void* from) {
#if defined(__AVX__) && !defined(__CUDACC__)
  for (std::size_t i = 0; i < Bytes; i += sizeof(__m256i))
    _mm256_stream_si256(reinterpret_cast<__m256i*>(static_cast<char*>(to) + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(from) + i)));
#else
  std::memcpy(to, from, Bytes);
#endif
}
SUTURE_INLINE void finish_streams() {
#if defined(__AVX__) && !defined(__CUDACC__)
  _mm_sfence();
#endif
}

#if defined(__AVX2__) && !defined(__CUDACC__)
#define SUTURE_HAS_SIMD 1

// A register of 64-bit integers or of floats. AVX-512 instructions are used in their masked form with all lanes on,
// because g++ 12 warns about the unmasked ones.
#if defined(__AVX512F__)
using integers = __m512i;
using floats = __m512;
SUTURE_INLINE integers every_64(std::uint64_t x) { return _mm512_set1_epi64(static_cast<long long>(x)); }
SUTURE_INLINE integers every_32(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
SUTURE_INLINE floats every_float(float x) { return _mm512_set1_ps(x); }
SUTURE_INLINE integers load(const std::uint64_t* from) { return _mm512_loadu_si512(from); }
SUTURE_INLINE void store(std::int32_t* to, integers v) { _mm512_storeu_si512(to, v); }
SUTURE_INLINE void store(float* to, floats v) { _mm512_storeu_ps(to, v); }
SUTURE_INLINE floats as_floats(integers v) { return _mm512_castsi512_ps(v); }
SUTURE_INLINE integers as_integers(floats v) { return _mm512_castps_si512(v); }
SUTURE_INLINE integers add_64(integers a, integers b) { return _mm512_add_epi64(a, b); }
SUTURE_INLINE integers add_32(integers a, integers b) { return _mm512_add_epi32(a, b); }
SUTURE_INLINE floats subtract(floats a, floats b) { return _mm512_sub_ps(a, b); }
SUTURE_INLINE floats load(const float* from) { return _mm512_loadu_ps(from); }
// These return a < b ? a : b, a > b ? a : b, and b where b is NaN, else a.
SUTURE_INLINE floats least(floats a, floats b) { return _mm512_maskz_min_ps(0xffff, a, b); }
SUTURE_INLINE floats greatest(floats a, floats b) { return _mm512_maskz_max_ps(0xffff, a, b); }
SUTURE_INLINE floats second_if_nan(floats a, floats b) {
  return _mm512_mask_mov_ps(a, _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q), b);
}
SUTURE_INLINE integers both(integers a, integers b) { return _mm512_and_si512(a, b); }
SUTURE_INLINE integers either(integers a, integers b) { return _mm512_or_si512(a, b); }
SUTURE_INLINE integers one_of(integers a, integers b, integers c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
SUTURE_INLINE integers multiply_lower(integers a, integers b) { return _mm512_maskz_mul_epu32(0xff, a, b); }
template <int Bits>
SUTURE_INLINE integers shift_right_64(integers v) {
  return _mm512_maskz_srli_epi64(0xff, v, Bits);
}
template <int Bits>
SUTURE_INLINE integers shift_right_signed_32(integers v) {
  return _mm512_maskz_srai_epi32(0xffff, v, Bits);
}
template <int Which>
SUTURE_INLINE floats words_of(integers a, integers b) {
  return _mm512_maskz_shuffle_ps(0xffff, as_floats(a), as_floats(b), Which);
}
// widened reads words into 64-bit lanes. eight_lower stores the lower words of eight lanes, which are one register with
// AVX-512 and two without.
SUTURE_INLINE integers widened(const std::uint32_t* words) {
  return _mm512_maskz_cvtepu32_epi64(0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
}
SUTURE_INLINE void eight_lower(std::uint32_t* to, const integers* v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_cvtepi64_epi32(0xff, v[0]));
}
#else
using integers = __m256i;
using floats = __m256;
SUTURE_INLINE integers every_64(std::uint64_t x) { return _mm256_set1_epi64x(static_cast<long long>(x)); }
SUTURE_INLINE integers every_32(std::uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
SUTURE_INLINE floats every_float(float x) { return _mm256_set1_ps(x); }
SUTURE_INLINE integers load(const std::uint64_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
SUTURE_INLINE void store(std::int32_t* to, integers v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
SUTURE_INLINE void store(float* to, floats v) { _mm256_storeu_ps(to, v); }
SUTURE_INLINE floats as_floats(integers v) { return _mm256_castsi256_ps(v); }
SUTURE_INLINE integers as_integers(floats v) { return _mm256_castps_si256(v); }
SUTURE_INLINE integers add_64(integers a, integers b) { return _mm256_add_epi64(a, b); }
SUTURE_INLINE integers add_32(integers a, integers b) { return _mm256_add_epi32(a, b); }
SUTURE_INLINE floats subtract(floats a, floats b) { return _mm256_sub_ps(a, b); }
SUTURE_INLINE floats load(const float* from) { return _mm256_loadu_ps(from); }
SUTURE_INLINE floats least(floats a, floats b) { return _mm256_min_ps(a, b); }
SUTURE_INLINE floats greatest(floats a, floats b) { return _mm256_max_ps(a, b); }
SUTURE_INLINE floats second_if_nan(floats a, floats b) {
  return _mm256_blendv_ps(a, b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
}
SUTURE_INLINE integers both(integers a, integers b) { return _mm256_and_si256(a, b); }
SUTURE_INLINE integers either(integers a, integers b) { return _mm256_or_si256(a, b); }
SUTURE_INLINE integers one_of(integers a, integers b, integers c) {
  return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
SUTURE_INLINE integers multiply_lower(integers a, integers b) { return _mm256_mul_epu32(a, b); }
template <int Bits>
SUTURE_INLINE integers shift_right_64(integers v) {
  return _mm256_srli_epi64(v, Bits);
}
template <int Bits>
SUTURE_INLINE integers shift_right_signed_32(integers v) {
  return _mm256_srai_epi32(v, Bits);
}
template <int Which>
SUTURE_INLINE floats words_of(integers a, integers b) {
  return _mm256_shuffle_ps(as_floats(a), as_floats(b), Which);
}
SUTURE_INLINE integers widened(const std::uint32_t* words) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
}
// Combines two registers into one store, so that a load of all eight words does not wait for two stores.
SUTURE_INLINE void eight_lower(std::uint32_t* to, const integers* v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_permute4x64_epi64(as_integers(words_of<0x88>(v[0], v[1])), 0xd8));
}
#endif
inline constexpr int lanes_64 = sizeof(integers) / 8, lanes_32 = sizeof(integers) / 4;
// Arguments of words_of, which returns the upper or the lower 32-bit words of the 64-bit lanes of two registers. The
// words of the two registers alternate by pairs: word i comes from lane lane_of_word(i) of both.
inline constexpr int upper_words = 0xdd, lower_words = 0x88;
constexpr int lane_of_word(int i) {
  if constexpr (lanes_32 == 16)
    return (i & ~15) | (i & 8) >> 2 | (i & 6) << 1 | (i & 1);
  else
    return (i & ~7) | (i & 4) >> 1 | (i & 2) << 1 | (i & 1);
}

#if defined(__F16C__)
#define SUTURE_HAS_SIMD_HALF 1
// any_nan_of_32 tests whether any of 32 floats is NaN; sixteen_halves converts 16 floats to half. One store writes the
// halves, so that a load of a whole register does not wait for two.
SUTURE_INLINE bool any_nan_of_32(const float* v) {
#if defined(__AVX512F__)
  return _mm512_cmp_ps_mask(_mm512_loadu_ps(v), _mm512_loadu_ps(v + 16), _CMP_UNORD_Q) != 0;
#else
  const auto two = [&](int i) {
    return _mm256_cmp_ps(_mm256_loadu_ps(v + i), _mm256_loadu_ps(v + i + 8), _CMP_UNORD_Q);
  };
  return _mm256_movemask_ps(_mm256_or_ps(two(0), two(16))) != 0;
#endif
}
SUTURE_INLINE void sixteen_halves(void* to, const float* v) {
  constexpr int to_nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
#if defined(__AVX512F__)
  const __m256i halves = _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(v), to_nearest);
#else
  const __m256i halves = _mm256_setr_m128i(_mm256_cvtps_ph(_mm256_loadu_ps(v), to_nearest),
                                           _mm256_cvtps_ph(_mm256_loadu_ps(v + 8), to_nearest));
#endif
  _mm256_storeu_si256(static_cast<__m256i*>(to), halves);
}
#endif

// Returns p, and keeps the numbers that it points to in memory. Compilers would extract them from vector registers one
// by one, at several times the cost of loads.
template <class T>
SUTURE_INLINE const T* stays_in_memory(const T* p) {
  asm volatile("" : "+r"(p) : : "memory");
  return p;
}

// Loads 16 bytes of elements U, from p + offset[l]. Elements are inserted one after the other: compilers that load all
// of them first run out of registers.
template <class U, class T, class Offset>
SUTURE_INLINE __m128i half_register_of(const T* p, const Offset* offset) {
  const auto at = [&](int l) {
    U element;
    std::memcpy(&element, p + offset[l], sizeof element);
    if constexpr (sizeof(U) == 1)
      return static_cast<char>(element);
    else if constexpr (sizeof(U) == 2)
      return static_cast<short>(element);
    else if constexpr (sizeof(U) == 4)
      return static_cast<int>(element);
    else
      return static_cast<long long>(element);
  };
  if constexpr (sizeof(U) == 1) {
    const auto eight = [&](int l) {
      __m128i v = _mm_cvtsi32_si128(at(l));
      v = _mm_insert_epi8(v, at(l + 1), 1);
      v = _mm_insert_epi8(v, at(l + 2), 2);
      v = _mm_insert_epi8(v, at(l + 3), 3);
      v = _mm_insert_epi8(v, at(l + 4), 4);
      v = _mm_insert_epi8(v, at(l + 5), 5);
      v = _mm_insert_epi8(v, at(l + 6), 6);
      return _mm_insert_epi8(v, at(l + 7), 7);
    };
    return _mm_unpacklo_epi64(eight(0), eight(8));
  } else if constexpr (sizeof(U) == 2) {
    const auto four = [&](int l) {
      __m128i v = _mm_cvtsi32_si128(at(l));
      v = _mm_insert_epi16(v, at(l + 1), 1);
      v = _mm_insert_epi16(v, at(l + 2), 2);
      return _mm_insert_epi16(v, at(l + 3), 3);
    };
    return _mm_unpacklo_epi64(four(0), four(4));
  } else if constexpr (sizeof(U) == 4) {
    const auto two = [&](int l) { return _mm_insert_epi32(_mm_cvtsi32_si128(at(l)), at(l + 1), 1); };
    return _mm_unpacklo_epi64(two(0), two(2));
  } else {
    return _mm_set_epi64x(at(1), at(0));
  }
}

// Loads elements U at p[row] + offsets, for the Count lanes from `begin` on. Each row is stored in whole registers, as
// wide as any load that follows: a load waits for narrower stores. Rows alternate, so that an offset is read once.
template <class U, int Count, int Width, std::size_t Rows, class T, class Offset, class To>
SUTURE_INLINE void gather(const T* const (&p)[Rows], const Offset (&offsets)[Width], To (&out)[Rows][Width],
                          int begin) {
  constexpr int lanes = 16 / sizeof(U);
#if defined(__AVX512F__)
  constexpr int parts = lanes * 4 <= Count ? 4 : 2;
#else
  constexpr int parts = 2;
#endif
  static_assert(Count % (parts * lanes) == 0);
  for (int first = begin; first < begin + Count; first += parts * lanes) {
    __m128i part[parts][Rows];
    SUTURE_UNROLL
    for (int i = 0; i < parts; ++i) {
      const Offset* const offset = stays_in_memory(&offsets[first + i * lanes]);
      SUTURE_UNROLL
      for (std::size_t row = 0; row < Rows; ++row) part[i][row] = half_register_of<U>(p[row], offset);
    }
    SUTURE_UNROLL
    for (std::size_t row = 0; row < Rows; ++row) {
      const __m256i low = _mm256_setr_m128i(part[0][row], part[1][row]);
#if defined(__AVX512F__)
      if constexpr (parts == 4) {
        const __m256i high = _mm256_setr_m128i(part[2][row], part[3][row]);
        _mm512_storeu_si512(&out[row][first], _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1));
        continue;
      }
#endif
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(&out[row][first]), low);
    }
  }
}
#endif

}  // namespace suture::detail::simd
