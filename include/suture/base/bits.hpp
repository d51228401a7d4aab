// SPDX-License-Identifier: Apache-2.0
// Reinterpretation of bits, for host and device.
#pragma once

#include "config.hpp"

namespace suture {

template <class To, class From>
SUTURE_FN constexpr To bit_cast(const From& value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

}  // namespace suture
