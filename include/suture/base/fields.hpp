// SPDX-License-Identifier: Apache-2.0
// The names of a struct's members, said once, in the struct itself, for what writes and reads it by name:
//   static constexpr auto fields = named("factor", &contrast::factor);
// A struct of drawn parameters names what chance decides; the rest of it is the pipeline's.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "chain.hpp"

namespace suture {

template <class... Members>
struct named_members {
  std::array<std::string_view, sizeof...(Members)> names;
  pack<Members...> members;  // pointers to members, or first_members
};

// The first `count` elements of an array, as one list.
template <class T, class E, std::size_t N>
struct first_members {
  using list = std::array<E, N> T::*;
  using number = std::int32_t T::*;
  list elements;
  number count;
};
template <class T, class E, std::size_t N>
constexpr first_members<T, E, N> first_of(std::array<E, N> T::*elements, std::int32_t T::*count) {
  return {elements, count};
}

namespace detail {
template <std::size_t... I, class... Arguments>
constexpr auto named_from(std::index_sequence<I...>, const pack<Arguments...>& a) {
  return named_members<element_t<2 * I + 1, pack<Arguments...>>...>{{{std::string_view(get<2 * I>(a))...}},
                                                                    {{{get<2 * I + 1>(a)}...}}};
}
}  // namespace detail

// A name and a member in turn.
template <class... Arguments>
constexpr auto named(const Arguments&... names_and_members) {
  static_assert(sizeof...(Arguments) % 2 == 0, "suture: named takes a name and a member in turn");
  return detail::named_from(std::make_index_sequence<sizeof...(Arguments) / 2>{},
                            pack<std::decay_t<const Arguments&>...>{{{names_and_members}...}});
}

}  // namespace suture
