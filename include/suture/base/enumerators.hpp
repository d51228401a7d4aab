// SPDX-License-Identifier: Apache-2.0
// The names of an enumeration's values, as the compiler spells them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace suture {

namespace detail {

// The compiler's spelling of Value, or an empty text where no enumerator has it. GCC, Clang and the front end of nvcc
// write "Value = ...::linear" into __PRETTY_FUNCTION__ for an enumerator, and "(E)7" or "7" for another number.
template <auto Value>
constexpr std::string_view enumerator_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("Value", text.find('[')));
  text = text.substr(0, text.find_first_of(";]"));
  const std::size_t before = text.find_last_of(":)= -");
  const std::string_view name = text.substr(before + 1);
  return name.empty() || (name[0] >= '0' && name[0] <= '9') ? std::string_view{} : name;
}

// The number of the first value: 0, or 1 where none is 0.
template <class Enum>
inline constexpr int first_enumerator = enumerator_name<static_cast<Enum>(0)>().empty() ? 1 : 0;

template <class Enum, int Number>
constexpr int enumerator_end() {
  static_assert(Number < 64, "suture: an enumeration that is described has fewer than 64 values");
  if constexpr (enumerator_name<static_cast<Enum>(Number)>().empty())
    return Number;
  else
    return enumerator_end<Enum, Number + 1>();
}

}  // namespace detail

// Names of the values of Enum, which count up by one from 0 or 1.
template <class Enum>
constexpr auto enumerators() {
  static_assert(std::is_enum_v<Enum>);
  constexpr int first = detail::first_enumerator<Enum>;
  constexpr int count = detail::enumerator_end<Enum, first>() - first;
  static_assert(count > 0, "suture: the values of an enumeration that is described begin with 0 or 1");
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, sizeof...(I)>{
        detail::enumerator_name<static_cast<Enum>(static_cast<int>(I) + first)>()...};
  }
  (std::make_index_sequence<static_cast<std::size_t>(count)>{});
}

}  // namespace suture
