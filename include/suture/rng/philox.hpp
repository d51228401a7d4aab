// SPDX-License-Identifier: Apache-2.0
// Philox4x32: the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
// 3" (SC 2011). It is written here because the toolkit's generator runs only on devices; tests compare it with
// Random123's known answers and with cuRAND.
#pragma once

#include <cstdint>
#include <type_traits>

#include "../base/simd.hpp"

namespace suture {

// Four 32-bit words: a counter, or the output for one.
struct philox_block {
  std::uint32_t word[4];

  // Returns a word by selections instead of an index, so that a block stays in registers on a device.
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

// The map is a bijection of the counter for a fixed key, so distinct counters give distinct blocks.
template <int Rounds = 10>
SUTURE_FN constexpr philox_block philox4x32(philox_block counter, philox_key key) {
  if constexpr (Rounds == 0)
    return counter;
  else
    return philox4x32<Rounds - 1>(philox_round(counter, key), next_key(key));
}

// The keys of Lanes counters side by side, word by word.
template <int Lanes>
struct philox_keys {
  const std::uint32_t (&word)[4][Lanes];  // rows 0 and 1 are used
};

namespace detail {

SUTURE_INLINE philox_key key_of_lane(const philox_key& all, int) { return all; }
template <int Lanes>
SUTURE_INLINE philox_key key_of_lane(const philox_keys<Lanes>& keys, int lane) {
  return {{keys.word[0][lane], keys.word[1][lane]}};
}

#if defined(SUTURE_HAS_SIMD)
// Returns a word of the keys of the counters from `first` on, as many as a register holds.
SUTURE_INLINE simd::integers key_register(const philox_key& all, int word, int) {
  return simd::every_64(all.word[word]);
}
template <int Lanes>
SUTURE_INLINE simd::integers key_register(const philox_keys<Lanes>& keys, int word, int first) {
  return simd::widened(&keys.word[word][first]);
}
#endif

}  // namespace detail

// Computes philox4x32 of Lanes counters side by side, word by word and in place. Keys is a philox_key for all or
// philox_keys<Lanes>.
template <int Lanes, class Keys = philox_key>
SUTURE_INLINE void philox4x32_lanes(std::uint32_t (&word)[4][Lanes], const Keys& keys) {
#if defined(SUTURE_HAS_SIMD)
  // One word in each 64-bit lane: the product of the low halves is the full 64-bit product, and what remains in the
  // high halves never reaches a low one.
  if constexpr (Lanes % 8 == 0) {
    namespace simd = detail::simd;
    constexpr int groups = Lanes / simd::lanes_64, key_groups = std::is_same_v<Keys, philox_key> ? 1 : groups;
    simd::integers w[4][groups], key[2][key_groups];
    for (int i = 0; i < 4; ++i)
      for (int g = 0; g < groups; ++g) w[i][g] = simd::widened(&word[i][simd::lanes_64 * g]);
    for (int i = 0; i < 2; ++i)
      for (int g = 0; g < key_groups; ++g) key[i][g] = detail::key_register(keys, i, simd::lanes_64 * g);
    const simd::integers multiplier_a = simd::every_64(0xD2511F53), multiplier_b = simd::every_64(0xCD9E8D57);
    const simd::integers step[2] = {simd::every_64(0x9E3779B9), simd::every_64(0xBB67AE85)};
    for (int round = 0; round < 10; ++round) {
      for (int g = 0; g < groups; ++g) {
        const simd::integers a = simd::multiply_lower(w[0][g], multiplier_a),
                             b = simd::multiply_lower(w[2][g], multiplier_b);
        w[0][g] = simd::one_of(simd::shift_right_64<32>(b), w[1][g], key[0][g % key_groups]);
        w[1][g] = b;
        w[2][g] = simd::one_of(simd::shift_right_64<32>(a), w[3][g], key[1][g % key_groups]);
        w[3][g] = a;
      }
      for (int i = 0; i < 2; ++i)
        for (int g = 0; g < key_groups; ++g) key[i][g] = simd::add_32(key[i][g], step[i]);
    }
    for (int i = 0; i < 4; ++i)
      for (int l = 0; l < Lanes; l += 8) simd::eight_lower(&word[i][l], &w[i][l / simd::lanes_64]);
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
