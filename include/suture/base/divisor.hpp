// SPDX-License-Identifier: Apache-2.0
// Division by a fixed number.
#pragma once

#include <cstdint>

#include "config.hpp"

namespace suture::detail {

// floor(a / d) for a below 2^31 and a fixed d from 1 to 2^31, without a division: the reciprocal rounded up has enough
// bits for every such a (Granlund and Montgomery 1994).
struct divisor {
  std::uint32_t reciprocal;
  std::int32_t shift;

  static divisor of(std::uint32_t d) {
    std::int32_t bits = 0;
    while ((1u << bits) < d) ++bits;
    const std::uint64_t power = std::uint64_t{1} << (31 + bits);
    return {static_cast<std::uint32_t>((power + d - 1) / d), 31 + bits};
  }
  SUTURE_FN std::uint32_t operator()(std::uint32_t a) const {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * reciprocal) >> shift);
  }
};

}  // namespace suture::detail
