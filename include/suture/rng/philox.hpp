// SPDX-License-Identifier: Apache-2.0
// Philox4x32: the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011). Our own because the toolkit's runs on devices only; the tests hold it against Random123's
// known answers and against cuRAND.
#pragma once

#include <cstdint>

#include "../core/config.hpp"

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

// For a fixed key a bijection of the counter, so distinct counters give distinct blocks.
template <int Rounds = 10>
SUTURE_FN constexpr philox_block philox4x32(philox_block counter, philox_key key) {
  std::uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
  std::uint32_t k0 = key.word[0], k1 = key.word[1];
  SUTURE_UNROLL
  for (int round = 0; round < Rounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace suture
