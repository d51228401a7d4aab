// SPDX-License-Identifier: Apache-2.0
// Philox4x32: the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011). Our own because the toolkit's runs on devices only; the tests hold it against Random123's
// known answers and against cuRAND.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../base/config.hpp"

#if defined(__AVX2__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace suture {

// Four 32-bit words: a counter, or the output for one.
struct philox_block {
  std::uint32_t word[4];

  // Selects instead of an index, so that a block stays in registers on a device.
  SUTURE_FN constexpr std::uint32_t operator[](std::uint32_t i) const {
    const std::uint32_t low = (i & 1u) ? word[1] : word[0];
    const std::uint32_t high = (i & 1u) ? word[3] : word[2];
    return (i & 2u) ? high : low;
  }
};

struct philox_key {
  std::uint32_t word[2];
};

SUTURE_FN constexpr philox_block philox_round(const philox_block& counter, philox_key key) {
  const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter.word[0];
  const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter.word[2];
  return {{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key.word[0], static_cast<std::uint32_t>(b),
           static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key.word[1], static_cast<std::uint32_t>(a)}};
}

SUTURE_FN constexpr philox_key next_key(philox_key key) {
  return {{key.word[0] + 0x9E3779B9u, key.word[1] + 0xBB67AE85u}};
}

// For a fixed key a bijection of the counter, so distinct counters give distinct blocks.
template <int Rounds = 10>
SUTURE_FN constexpr philox_block philox4x32(philox_block counter, philox_key key) {
  if constexpr (Rounds == 0)
    return counter;
  else
    return philox4x32<Rounds - 1>(philox_round(counter, key), next_key(key));
}

// Keys of Lanes counters side by side, word by word, where they lie.
template <int Lanes>
struct philox_keys {
  const std::uint32_t (&word)[4][Lanes];  // the first two
};

namespace detail {

SUTURE_INLINE philox_key key_of_lane(const philox_key& all, int) { return all; }
template <int Lanes>
SUTURE_INLINE philox_key key_of_lane(const philox_keys<Lanes>& keys, int lane) {
  return {{keys.word[0][lane], keys.word[1][lane]}};
}

#if defined(__AVX2__) && !defined(__CUDACC__)
// Four counters to a register, a word in each 64-bit lane.
SUTURE_INLINE __m256i four_words(const std::uint32_t* words) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
}
SUTURE_INLINE __m256i key_register(const philox_key& all, int word, int) { return _mm256_set1_epi64x(all.word[word]); }
template <int Lanes>
SUTURE_INLINE __m256i key_register(const philox_keys<Lanes>& keys, int word, int group) {
  return four_words(&keys.word[word][4 * group]);
}
#endif

}  // namespace detail

// The same for Lanes counters side by side, word by word and in place. Keys: a philox_key for all or
// philox_keys<Lanes>.
template <int Lanes, class Keys = philox_key>
SUTURE_INLINE void philox4x32_lanes(std::uint32_t (&word)[4][Lanes], const Keys& keys) {
  // The product of a lane's low half is the whole 64-bit product, and what is left in the high halves never reaches a
  // low one.
#if defined(__AVX512F__) && !defined(__CUDACC__)
  if constexpr (Lanes % 8 == 0) {
    constexpr int exclusive_or = 0x96;
    constexpr int every_lane = 0xff;  // g++ 12 warns of what has no mask
    const auto eight_words = [](const std::uint32_t* words) {
      return _mm512_maskz_cvtepu32_epi64(every_lane, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
    };
    const __m512i multiplier_a = _mm512_set1_epi64(0xD2511F53), multiplier_b = _mm512_set1_epi64(0xCD9E8D57);
    const __m512i step[2] = {_mm512_set1_epi64(0x9E3779B9), _mm512_set1_epi64(0xBB67AE85)};
    constexpr int groups = Lanes / 8, key_groups = std::is_same_v<Keys, philox_key> ? 1 : groups;
    __m512i w[4][groups], key[2][key_groups];
    for (int i = 0; i < 4; ++i)
      for (int g = 0; g < groups; ++g) w[i][g] = eight_words(&word[i][8 * g]);
    for (int i = 0; i < 2; ++i)
      for (int g = 0; g < key_groups; ++g) {
        if constexpr (std::is_same_v<Keys, philox_key>)
          key[i][g] = _mm512_set1_epi64(keys.word[i]);
        else
          key[i][g] = eight_words(&keys.word[i][8 * g]);
      }
    for (int round = 0; round < 10; ++round) {
      for (int g = 0; g < groups; ++g) {
        const __m512i a = _mm512_maskz_mul_epu32(every_lane, w[0][g], multiplier_a),
                      b = _mm512_maskz_mul_epu32(every_lane, w[2][g], multiplier_b);
        w[0][g] = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(every_lane, b, 32), w[1][g], key[0][g % key_groups],
                                            exclusive_or);
        w[1][g] = b;
        w[2][g] = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(every_lane, a, 32), w[3][g], key[1][g % key_groups],
                                            exclusive_or);
        w[3][g] = a;
      }
      for (int i = 0; i < 2; ++i)
        for (int g = 0; g < key_groups; ++g) key[i][g] = _mm512_add_epi32(key[i][g], step[i]);
    }
    for (int i = 0; i < 4; ++i)
      for (int g = 0; g < groups; ++g)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(&word[i][8 * g]),
                            _mm512_maskz_cvtepi64_epi32(every_lane, w[i][g]));
    return;
  }
#elif defined(__AVX2__) && !defined(__CUDACC__)
  if constexpr (Lanes % 8 == 0) {
    constexpr int groups = Lanes / 4, key_groups = std::is_same_v<Keys, philox_key> ? 1 : groups;
    __m256i w[4][groups], key[2][key_groups];
    for (int i = 0; i < 4; ++i)
      for (int g = 0; g < groups; ++g) w[i][g] = detail::four_words(&word[i][4 * g]);
    for (int i = 0; i < 2; ++i)
      for (int g = 0; g < key_groups; ++g) key[i][g] = detail::key_register(keys, i, g);
    const __m256i multiplier_a = _mm256_set1_epi64x(0xD2511F53), multiplier_b = _mm256_set1_epi64x(0xCD9E8D57);
    const __m256i step[2] = {_mm256_set1_epi64x(0x9E3779B9), _mm256_set1_epi64x(0xBB67AE85)};
    for (int round = 0; round < 10; ++round) {
      for (int g = 0; g < groups; ++g) {
        const __m256i a = _mm256_mul_epu32(w[0][g], multiplier_a), b = _mm256_mul_epu32(w[2][g], multiplier_b);
        const __m256i key_0 = key[0][g % key_groups], key_1 = key[1][g % key_groups];
        w[0][g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(b, 32), w[1][g]), key_0);
        w[1][g] = b;
        w[2][g] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), w[3][g]), key_1);
        w[3][g] = a;
      }
      for (int i = 0; i < 2; ++i)
        for (int g = 0; g < key_groups; ++g) key[i][g] = _mm256_add_epi32(key[i][g], step[i]);
    }
    for (int i = 0; i < 4; ++i)
      for (int g = 0; g < groups; g += 2) {
        // The low halves of two registers in order, stored as one: loads of eight words need not wait for two stores.
        const __m256i mixed = _mm256_castps_si256(
            _mm256_shuffle_ps(_mm256_castsi256_ps(w[i][g]), _mm256_castsi256_ps(w[i][g + 1]), 0x88));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(&word[i][4 * g]), _mm256_permute4x64_epi64(mixed, 0xd8));
      }
    return;
  }
#endif
  for (std::uint32_t round = 0; round < 10; ++round) {
    SUTURE_KEEP_LOOP
    for (int l = 0; l < Lanes; ++l) {
      const philox_key first = detail::key_of_lane(keys, l);
      const philox_key key{{first.word[0] + round * 0x9E3779B9u, first.word[1] + round * 0xBB67AE85u}};
      const philox_block next = philox_round({{word[0][l], word[1][l], word[2][l], word[3][l]}}, key);
      for (int i = 0; i < 4; ++i) word[i][l] = next.word[i];
    }
  }
}

}  // namespace suture
