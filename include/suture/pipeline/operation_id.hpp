// SPDX-License-Identifier: Apache-2.0
// Numbers of operations in a chain: the id from which their random numbers derive, and counts of operations before one.
#pragma once

#include <array>
#include <cstdint>

#include "concepts.hpp"

namespace suture::detail {

template <class Op>
constexpr int kind_of() {
  if constexpr (random_operation<Op>)
    return Op::kind;
  else
    return -1;
}

// 16-bit id of operation I of a chain: its kind and its ordinal among its kind, so that inserting an operation of
// another kind changes no draw.
template <std::size_t I, class... Ops>
constexpr std::uint16_t operation_id() {
  constexpr std::array<int, sizeof...(Ops)> kinds{kind_of<Ops>()...};
  int ordinal = 0;
  for (std::size_t j = 0; j != I; ++j) ordinal += kinds[j] == kinds[I] ? 1 : 0;
  return static_cast<std::uint16_t>(kinds[I] * 16 + ordinal);
}

// Counts the true values among the first I.
template <std::size_t I, bool... Is>
inline constexpr std::size_t count_before = [] {
  constexpr std::array<bool, sizeof...(Is)> all{Is...};
  std::size_t n = 0;
  for (std::size_t i = 0; i != I; ++i) n += all[i] ? 1 : 0;
  return n;
}();

// Tests that ids are distinct: at most 16 random operations of a kind, and kinds below 4096.
template <class... Ops>
constexpr bool operation_ids_distinct() {
  constexpr std::array<int, sizeof...(Ops)> kinds{kind_of<Ops>()...};
  for (int kind : kinds) {
    int count = 0;
    for (int other : kinds) count += other == kind && kind >= 0 ? 1 : 0;
    if (count > 16 || kind > 4095) return false;
  }
  return true;
}

}  // namespace suture::detail
