// SPDX-License-Identifier: Apache-2.0
// Exact sums, extremes and counts of the values that the threads of a block compute, on CUDA.
#pragma once

#include "architecture.cuh"

#include "../../evaluate/stage.hpp"
#include "atomic_sums.cuh"

namespace suture::detail {

// Exact sums of at most `most` values of one thread, kept in registers.
//
// A thread has a limit 2^e. A value below it that is a multiple of the unit 2^(e - 45) is high * 2^23 + low units,
// where float additions yield the integers high and low of 23 bits. 32 bits then hold their sums, and 64 bits the sums
// of their products. Other values are added by slower code. Limits are a factor of 2^8 apart, so that most threads of a
// warp have the same one. The first is 2^5, below which normalized intensities usually lie.
class thread_moments {
public:
  static constexpr int most = 1 << 8;

  // Adds a value. NaN and infinities are only counted. Sums that the thread cannot hold go to those of the block.
  __device__ __forceinline__ void add(float value, patch_sums& block) {
    if (!try_add(value)) {
      if (!counted<float>::finite(value)) {
        ++excluded_;
        return;
      }
      add_slowly(value, block.sums);
    }
    widen(value);
  }

  // Adds the `count` values of a column, `step` elements apart. Four are loaded before the first is added.
  __device__ __forceinline__ void add_column(const float* from, std::int64_t step, std::int32_t count,
                                             patch_sums& block) {
    constexpr int group = 4;
    for (; count > 0; count -= group) {
      float values[group];
      std::uint32_t left = 0;
      if (count >= group) {
        SUTURE_UNROLL
        for (int i = 0; i < group; ++i, from += step) values[i] = *from;
        SUTURE_UNROLL
        for (int i = 0; i < group; ++i) {
          if (try_add(values[i]))
            widen(values[i]);
          else
            left |= 1u << i;
        }
      } else {
        SUTURE_UNROLL
        for (int i = 0; i < group; ++i, from += step) values[i] = i < count ? *from : 0.0f;
        left = (1u << count) - 1;
      }
      for (; left != 0; left &= left - 1) {
        float value = values[0];
        SUTURE_UNROLL
        for (int i = 1; i < group; ++i) value = (left & ((1u << i) - 1)) != 0 ? value : values[i];
        add(value, block);
      }
    }
  }

  // Adds the sums of the thread to those of the block, except for the count. All lanes of a warp call this.
  __device__ __forceinline__ void add_to(patch_sums& block) const {
    constexpr unsigned all = 0xffffffffu;
    // Each iteration adds the sums of all lanes that have the same limit.
    bool left = true;
    while (const unsigned lanes = __ballot_sync(all, left)) {
      const float limit = __shfl_sync(all, limit_, __ffs(static_cast<int>(lanes)) - 1);
      const bool now = limit_ == limit;
      left = left && !now;
      add_sums(block.sums, place_under(limit), now);
    }
    const bool any = least_ <= greatest_;
    const std::uint32_t least = __reduce_max_sync(all, any ? ~counted<float>::key(least_) : 0u);
    const std::uint32_t greatest = __reduce_max_sync(all, any ? counted<float>::key(greatest_) : 0u);
    const std::uint32_t excluded = __reduce_add_sync(all, excluded_);
    if (threadIdx.x % 32 != 0) return;
    atomicMax(&block.least_complement, least);
    atomicMax(&block.greatest, greatest);
    count_up(&block.excluded, std::uint64_t{excluded});
  }

private:
  // Biased exponents of the limits: the first is 2^5, the others are multiples of 8 away from it, in the range that
  // keeps all floats here normal numbers.
  static constexpr std::uint32_t first_exponent = 132, least_exponent = 28, greatest_exponent = 252;
  static constexpr float infinity = __builtin_inff();

  // Constants 1.5 * 2^k. Adding the first to a float below the limit rounds it to a multiple of 2^23 units; adding the
  // second to the rest rounds that to a multiple of the unit.
  __device__ __forceinline__ static float rounds(std::uint32_t exponent) {
    return float_from_bits((exponent << 23) + 0xc00000u);
  }
  __device__ __forceinline__ static float rounds_rest(std::uint32_t exponent) {
    return float_from_bits(((exponent - 22) << 23) + 0x400000u);
  }
  // Returns k for the unit 2^(k - 149); 2^-149 is the least subnormal float.
  __device__ __forceinline__ static std::int32_t place_under(float limit) {
    return static_cast<std::int32_t>(float_bits(limit) >> 23) - 23;
  }

  __device__ __forceinline__ static std::int32_t difference(float rounded, float rounds) {
    return static_cast<std::int32_t>(float_bits(rounded) - float_bits(rounds));
  }
  __device__ __forceinline__ static std::int64_t product(std::int32_t a, std::int32_t b) {
    return static_cast<std::int64_t>(a) * b;
  }

  __device__ __forceinline__ void widen(float value) {
    least_ = fminf(least_, value);
    greatest_ = fmaxf(greatest_, value);
  }

  // Adds a value to the thread's sums, or returns false: it is beyond the limit, no multiple of the unit, or not
  // finite.
  __device__ __forceinline__ bool try_add(float value) {
    const float rounded = value + rounds_, rest = value - (rounded - rounds_);
    const float rounded_rest = rest + rounds_rest_;
    if (!(fabsf(value) < limit_ && rounded_rest - rounds_rest_ == rest)) return false;
    const std::int32_t high = difference(rounded, rounds_), low = difference(rounded_rest, rounds_rest_);
    high_ += high;
    low_ += low;
    high_high_ += product(high, high);
    high_low_ += product(high, low);
    low_low_ += product(low, low);
    return true;
  }

  // Adds a value that try_add refuses. If the value needs a higher limit, or a lower one while the sums are still zero,
  // the thread's sums go to the block and new ones begin under that limit. Otherwise the value alone goes to the block.
  __device__ __forceinline__ void add_slowly(float value, exact_sums& wide) {
    const std::uint32_t magnitude = float_bits(value) & 0x7fffffffu;
    const std::uint32_t exponent = (magnitude / 0x800000u + 4) / 8 * 8 + 4, own = float_bits(limit_) >> 23;
    const bool empty = (high_high_ | low_low_) == 0;
    const bool anew =
        exponent >= least_exponent && exponent <= greatest_exponent && (exponent > own || (exponent < own && empty));
    const std::uint32_t subnormal = magnitude < 0x800000u ? 1 : 0;
    const auto mantissa = static_cast<std::int32_t>((magnitude & 0x7fffffu) + (subnormal != 0 ? 0u : 0x800000u));
    const auto place = static_cast<std::int32_t>((magnitude >> 23) + subnormal) - 1;
    add_alone(&wide, anew ? place_under(limit_) : place, anew ? high_ : 0,
              anew ? low_ : (value < 0 ? -mantissa : mantissa), anew ? high_high_ : 0, anew ? high_low_ : 0,
              anew ? low_low_ : product(mantissa, mantissa));
    if (!anew) return;
    limit_ = float_from_bits(exponent << 23);
    rounds_ = rounds(exponent);
    rounds_rest_ = rounds_rest(exponent);
    const float rounded = value + rounds_;
    high_ = difference(rounded, rounds_);
    low_ = difference(value - (rounded - rounds_) + rounds_rest_, rounds_rest_);
    high_high_ = product(high_, high_);
    high_low_ = product(high_, low_);
    low_low_ = product(low_, low_);
  }

  // Adds limb k (0, 1 or 2) of amount * 2^place to the limbs of a sum.
  __device__ __forceinline__ static void add_limb(std::int64_t* limbs, std::int32_t place, std::int64_t amount, int k) {
    const int shift = place & 31;
    const auto low = static_cast<std::int64_t>(static_cast<std::uint64_t>(amount) << shift) & 0xffffffff;
    const std::int64_t above = amount >> (32 - shift);
    count_up(limbs + (place >> 5) + k, k == 0 ? low : k == 1 ? above & 0xffffffff : above >> 32);
  }

  __device__ __forceinline__ static std::int64_t sum(std::int32_t high, std::int32_t low) {
    return static_cast<std::int64_t>(high) * (1 << 23) + low;
  }

  // Adds the sums of those lanes of a warp whose `now` is set. Each quarter of the warp gathers one of the four sums,
  // and three of its lanes add a limb of it each.
  __device__ __forceinline__ void add_sums(exact_sums& wide, std::int32_t place, bool now) const {
    constexpr unsigned all = 0xffffffffu;
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t a = now ? sum(high_, low_) : 0, b = now ? low_low_ : 0;
    const std::int64_t c = now ? high_low_ : 0, d = now ? high_high_ : 0;
    const bool second_half = (lane & 16) != 0, second_quarter = (lane & 8) != 0;
    const std::int64_t first = (second_half ? c : a) + __shfl_xor_sync(all, second_half ? a : c, 16);
    const std::int64_t second = (second_half ? d : b) + __shfl_xor_sync(all, second_half ? b : d, 16);
    std::int64_t amount = (second_quarter ? second : first) + __shfl_xor_sync(all, second_quarter ? first : second, 8);
    for (int step = 4; step > 0; step /= 2) amount += __shfl_xor_sync(all, amount, step);
    const int k = lane & 7;
    if (k > 2) return;
    const bool squares = lane >= 8;
    const std::int32_t at = !squares ? place : 2 * place + (!second_half ? 0 : second_quarter ? 46 : 24);
    add_limb(squares ? wide.square : wide.sum, at, amount, k);
  }

  // Adds the sums of one thread, or of one value, to exact ones by that thread alone. The loop is not unrolled, since
  // few values need it.
  __device__ __forceinline__ static void add_alone(exact_sums* wide, std::int32_t place, std::int32_t high,
                                                   std::int32_t low, std::int64_t high_high, std::int64_t high_low,
                                                   std::int64_t low_low) {
    SUTURE_NO_UNROLL
    for (int i = 0; i < 12; ++i) {
      const int of = i / 3;
      add_limb(of == 0 ? wide->sum : wide->square,
               of == 0   ? place
               : of == 1 ? 2 * place
                         : 2 * place + (of == 2 ? 24 : 46),
               of == 0   ? sum(high, low)
               : of == 1 ? low_low
               : of == 2 ? high_low
                         : high_high,
               i % 3);
    }
  }

  float limit_ = float_from_bits(first_exponent << 23);
  float rounds_ = rounds(first_exponent), rounds_rest_ = rounds_rest(first_exponent);
  std::int32_t high_ = 0, low_ = 0;  // sums of the integers and of their products
  std::int64_t high_high_ = 0, high_low_ = 0, low_low_ = 0;
  float least_ = infinity, greatest_ = -infinity;
  std::uint32_t excluded_ = 0;
};

// Computes moments from sums. Not inlined, so that its many registers do not count for the whole kernel.
__device__ SUTURE_DEVICE_NOINLINE void finish_moments(patch_sums* sums, moments* result) {
  *result = moments_of(*sums);
}

// Adds the sums of a block's `voxels` voxels to those of the channel. The last of `parts` blocks to do so computes the
// moments of the channel. All threads of the block call this.
__device__ inline void merge_moments(const thread_moments& mine, std::int32_t voxels, patch_sums& block,
                                     patch_sums& total, std::uint32_t parts, moments& result) {
  mine.add_to(block);
  __syncthreads();
  const std::uint32_t lane = threadIdx.x;
  if (lane >= 32) return;
  add_sums(total.sums, block.sums);
  if (lane == 0) {
    count_up(&total.count, static_cast<std::uint64_t>(voxels) - block.excluded);
    count_up(&total.excluded, block.excluded);
    atomicMax(&total.least_complement, block.least_complement);
    atomicMax(&total.greatest, block.greatest);
  }
  __threadfence();
  __syncwarp();
  std::uint32_t done = 0;
  if (lane == 0) done = atomicAdd(&total.parts, 1u) + 1;
  if (__shfl_sync(0xffffffffu, done, 0) != parts) return;
  __threadfence();
  for (std::uint32_t i = lane; i < sizeof(patch_sums) / 4; i += 32)
    reinterpret_cast<std::uint32_t*>(&block)[i] = reinterpret_cast<const std::uint32_t*>(&total)[i];
  __syncwarp();
  if (lane == 0) finish_moments(&block, &result);
}

}  // namespace suture::detail
