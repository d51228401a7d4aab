// SPDX-License-Identifier: Apache-2.0
// Reinterpretation of bits, for host and device, and bits gathered from bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include "config.hpp"

namespace suture {

template <class To, class From>
SUTURE_FN constexpr To bit_cast(const From& value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

namespace detail {

// Returns a word whose bit i is byte i, which is 0 or 1.
SUTURE_INLINE std::uint64_t word_of_bytes(const std::uint8_t (&bytes)[64]) {
  std::uint64_t word = 0;
  for (int k = 0; k < 8; ++k) {
    std::uint64_t eight;  // the product gathers the lowest bits of eight bytes in its highest byte
    std::memcpy(&eight, bytes + 8 * k, 8);
    word |= ((eight * 0x0102040810204080u) >> 56) << (8 * k);
  }
  return word;
}

}  // namespace detail

}  // namespace suture
