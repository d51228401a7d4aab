// SPDX-License-Identifier: Apache-2.0
// Exact sums of values and of their squares, for every storage type. Sums are integers, so that any order of adding and
// merging gives the same bits; they are rounded once, when a statistic is read.
#pragma once

#include <cstdint>

#include "../base/bits.hpp"
#include "../base/numeric.hpp"
#include "../base/vec.hpp"
#include "../math/root.hpp"

namespace suture {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

namespace detail {

// 2^k as a double, -1022 <= k <= 1023.
SUTURE_FN double power_of_two(int k) { return bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52); }

// Returns a magnitude of `count` limbs of 32 bits, lowest first, times 2^exponent, rounded to nearest, ties to even.
SUTURE_HD inline double limbs_to_double(const std::uint32_t* limbs, int count, int exponent) {
  int top = count - 1;
  SUTURE_NO_UNROLL
  while (top >= 0 && limbs[top] == 0) --top;
  if (top < 0) return 0;
  // Takes the 64 highest bits; the last one is also set if any lower bit is.
  const auto limb = [&](int i) { return i >= 0 ? limbs[i] : 0u; };
#if defined(__CUDA_ARCH__)
  const int shift = __clz(static_cast<int>(limbs[top]));
#else
  const int shift = __builtin_clz(limbs[top]);
#endif
  uint128 high = static_cast<uint128>(limb(top)) << 96 | static_cast<uint128>(limb(top - 1)) << 64 |
                 static_cast<uint128>(limb(top - 2)) << 32 | static_cast<uint128>(limb(top - 3));
  high <<= shift;
  auto bits = static_cast<std::uint64_t>(high >> 64);
  std::uint32_t rest = static_cast<std::uint64_t>(high) != 0 ? 1u : 0u;
  SUTURE_NO_UNROLL
  for (int i = 0; i <= top - 4; ++i) rest |= limbs[i] != 0 ? 1u : 0u;
  bits |= rest;
  return static_cast<double>(bits) * power_of_two(exponent + 32 * (top - 1) - shift);
}

SUTURE_HD inline double to_double(uint128 x) {
  const std::uint32_t limbs[4] = {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32),
                                  static_cast<std::uint32_t>(x >> 64), static_cast<std::uint32_t>(x >> 96)};
  return limbs_to_double(limbs, 4, 0);
}
SUTURE_HD inline double to_double(int128 x) {
  const double magnitude = to_double(static_cast<uint128>(x < 0 ? -x : x));
  return x < 0 ? -magnitude : magnitude;
}

// count_up adds to a counter, and raise replaces a number by a value that is larger. On a device they are atomic.
SUTURE_FN void count_up(std::uint64_t* where, std::uint64_t amount) {
#if defined(__CUDA_ARCH__)
  if (amount != 0) atomicAdd(reinterpret_cast<unsigned long long*>(where), static_cast<unsigned long long>(amount));
#else
  *where += amount;
#endif
}
SUTURE_FN void count_up(std::int64_t* where, std::int64_t amount) {
  count_up(reinterpret_cast<std::uint64_t*>(where), static_cast<std::uint64_t>(amount));
}
SUTURE_FN void raise(std::uint32_t* where, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  if (value != 0) atomicMax(where, value);
#else
  *where = *where < value ? value : *where;
#endif
}

}  // namespace detail

// The way in which statistics count the values of a storage type T.
//   key            maps values to integers of `bits` bits in the same order: key(a) < key(b) iff a < b; -0 is +0
//   value_of       the inverse of key
//   finite         false for NaN and infinities, which no statistic counts
//   by_histogram   whether each value has a counter, as for integers of 8 and 16 bits; other types are summed exactly,
//                  and ranks are found by selection on keys
// Half and bfloat16 are converted to float.
template <class T>
struct counted {
  static constexpr bool by_histogram = false;
  static constexpr bool is_integer = false;
  static constexpr int bits = 32;
  SUTURE_FN static bool finite(T value) { return (float_bits(storage<T>::load(value)) & 0x7f800000u) != 0x7f800000u; }
  SUTURE_FN static std::uint32_t key(T value) {
    const std::uint32_t u = float_bits(storage<T>::load(value) + 0.0f);
    return u ^ ((u >> 31) != 0 ? 0xffffffffu : 0x80000000u);
  }
  SUTURE_FN static double value_of(std::uint32_t key) {
    return static_cast<double>(float_from_bits(key ^ ((key >> 31) != 0 ? 0x80000000u : 0xffffffffu)));
  }
};

namespace detail {
template <class T, int Bits, std::int64_t Least>
struct counted_integer {
  static constexpr bool by_histogram = Bits <= 16;
  static constexpr bool is_integer = true;
  static constexpr int bits = Bits;
  static constexpr std::int64_t least = Least;
  SUTURE_FN static bool finite(T) { return true; }
  SUTURE_FN static std::uint32_t key(T value) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(value) - Least);
  }
  SUTURE_FN static double value_of(std::uint32_t key) {
    return static_cast<double>(static_cast<std::int64_t>(key) + Least);
  }
};
}  // namespace detail

template <>
struct counted<std::uint8_t> : detail::counted_integer<std::uint8_t, 8, 0> {};
template <>
struct counted<std::int8_t> : detail::counted_integer<std::int8_t, 8, -128> {};
template <>
struct counted<std::uint16_t> : detail::counted_integer<std::uint16_t, 16, 0> {};
template <>
struct counted<std::int16_t> : detail::counted_integer<std::int16_t, 16, -32768> {};
template <>
struct counted<std::int32_t> : detail::counted_integer<std::int32_t, 32, -2147483648ll> {};

// Partial sums of a thread, which are added to exact_sums later. The lowest bits of all their values belong to the same
// limb of 32 bits.
struct partial_sums {
  int128 sum = 0;
  uint128 square = 0;
  std::int32_t limb = 0;   // of sum; that of square is twice this
  std::int32_t terms = 0;  // added since the last flush
};

// Exact sums of up to 2^40 values and of their squares. The unit of `sum` is 2^-149, the least subnormal, for floats
// and 1 for integers; that of `square` is its square. Limb i counts 2^(32 i) units and may exceed 32 bits until
// `propagate_carries`.
struct exact_sums {
  static constexpr int sum_limbs = 12, square_limbs = 20;
  std::int64_t sum[sum_limbs] = {};
  std::int64_t square[square_limbs] = {};

  // Propagates carries: every limb but the highest is then in [0, 2^32), so equal sums have equal limbs.
  SUTURE_HD void propagate_carries() {
    propagate_carries(sum, sum_limbs);
    propagate_carries(square, square_limbs);
  }
  SUTURE_HD void merge(const exact_sums& other) {
    for (int i = 0; i < sum_limbs; ++i) sum[i] += other.sum[i];
    for (int i = 0; i < square_limbs; ++i) square[i] += other.square[i];
    propagate_carries();
  }
  SUTURE_FN void add(const partial_sums& p) { add(p.sum, p.limb, p.square, 2 * p.limb); }
  // Adds `amount` to `sum` from limb `limb` on, and `squares` to `square` from limb `square_limb` on.
  SUTURE_FN void add(int128 amount, std::int32_t limb, uint128 squares, std::int32_t square_limb) {
    const auto low = static_cast<std::uint64_t>(static_cast<uint128>(amount));
    const auto high = static_cast<std::uint64_t>(static_cast<uint128>(amount) >> 64);
    detail::count_up(sum + limb, static_cast<std::int64_t>(low & 0xffffffffu));
    detail::count_up(sum + limb + 1, static_cast<std::int64_t>(low >> 32));
    detail::count_up(sum + limb + 2, static_cast<std::int64_t>(high & 0xffffffffu));
    detail::count_up(sum + limb + 3, static_cast<std::int64_t>(high) >> 32);
    for (int i = 0; i < 4; ++i)
      detail::count_up(square + square_limb + i,
                       static_cast<std::int64_t>(static_cast<std::uint64_t>(squares >> (32 * i)) & 0xffffffffu));
  }

private:
  SUTURE_HD static void propagate_carries(std::int64_t* limbs, int count) {
    SUTURE_NO_UNROLL
    for (int i = 0; i + 1 < count; ++i) {
      const std::int64_t carry = limbs[i] >> 32;
      limbs[i] &= 0xffffffff;
      limbs[i + 1] += carry;
    }
  }
};

namespace detail {

inline constexpr std::int32_t terms_before_flush = 1 << 15;

// Adds one finite value to partial sums. They go to `wide` first if they might overflow or belong to another limb.
template <class T>
SUTURE_FN void add_value(partial_sums& p, T value, exact_sums& wide) {
  if constexpr (counted<T>::is_integer) {
    const auto v = static_cast<std::int64_t>(value);
    p.sum += v;
    p.square += static_cast<std::uint64_t>(v * v);
  } else {
    const std::uint32_t u = float_bits(storage<T>::load(value));
    const std::uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude == 0) return;
    const std::uint32_t exponent = magnitude >> 23;
    const std::uint64_t mantissa = (magnitude & 0x7fffffu) | (exponent != 0 ? 0x800000u : 0u);
    const auto place = static_cast<std::int32_t>(exponent != 0 ? exponent - 1 : 0u);
    if (place >> 5 != p.limb || p.terms == terms_before_flush) {
      if (p.terms != 0) wide.add(p);
      p = {0, 0, place >> 5, 0};
    }
    const std::uint64_t shifted = mantissa << (place & 31);  // 55 bits
    p.sum += (u >> 31) != 0 ? -static_cast<int128>(shifted) : static_cast<int128>(shifted);
    p.square += static_cast<uint128>(shifted) * shifted;  // 110 bits
    ++p.terms;
  }
}

// The sum, and the sum of squared differences from the mean times the count: n sum(x^2) - sum(x)^2. Both are computed
// exactly, from sums whose carries are propagated, and rounded once.
struct central_sums {
  double sum, count_times_squared_deviations;
};

SUTURE_HD inline central_sums central_sums_of(const exact_sums& s, std::uint64_t count, bool is_integer) {
  constexpr int n = exact_sums::sum_limbs, wide = 2 * n, square_limbs = exact_sums::square_limbs;
  static_assert(wide >= square_limbs + 2);
  std::uint32_t magnitude[n], total[wide] = {}, squared[wide] = {};
  const bool negative = s.sum[n - 1] < 0;
  std::int64_t carry = 0;
  // Limbs first .. end - 1 are all that are not 0. Shorter loops matter: on a device one thread does this while others
  // wait.
  int first = n, end = 0;
  SUTURE_NO_UNROLL
  for (int i = 0; i < n; ++i) {
    const std::int64_t limb = (negative ? -s.sum[i] : s.sum[i]) + carry;
    magnitude[i] = static_cast<std::uint32_t>(limb & 0xffffffff);
    carry = limb >> 32;
    if (magnitude[i] == 0) continue;
    if (first == n) first = i;
    end = i + 1;
  }
  SUTURE_NO_UNROLL
  for (int i = first; i < end; ++i) {
    std::uint64_t c = 0;
    SUTURE_NO_UNROLL
    for (int j = first; j < end; ++j) {
      c += static_cast<std::uint64_t>(magnitude[i]) * magnitude[j] + squared[i + j];
      squared[i + j] = static_cast<std::uint32_t>(c);
      c >>= 32;
    }
    squared[i + end] = static_cast<std::uint32_t>(c);
  }
  const std::uint32_t factor[2] = {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count >> 32)};
  int from = 0, to = square_limbs;
  SUTURE_NO_UNROLL
  while (from < square_limbs && s.square[from] == 0) ++from;
  SUTURE_NO_UNROLL
  while (to > from && s.square[to - 1] == 0) --to;
  SUTURE_NO_UNROLL
  for (int i = 0; i < 2; ++i) {
    std::uint64_t c = 0;
    SUTURE_NO_UNROLL
    for (int j = from; j < to; ++j) {
      c += static_cast<std::uint64_t>(factor[i]) * static_cast<std::uint32_t>(s.square[j]) + total[i + j];
      total[i + j] = static_cast<std::uint32_t>(c);
      c >>= 32;
    }
    total[i + to] = static_cast<std::uint32_t>(c);
  }
  std::int64_t borrow = 0;
  SUTURE_NO_UNROLL
  for (int i = 0; i < wide; ++i) {
    const std::int64_t limb = static_cast<std::int64_t>(total[i]) - squared[i] + borrow;
    total[i] = static_cast<std::uint32_t>(limb & 0xffffffff);
    borrow = limb >> 32;
  }
  const double sum = limbs_to_double(magnitude, n, is_integer ? 0 : -149);
  return {negative ? -sum : sum, limbs_to_double(total, wide, is_integer ? 0 : -298)};
}

}  // namespace detail

}  // namespace suture
