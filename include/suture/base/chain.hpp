// SPDX-License-Identifier: Apache-2.0
// a | b | c: an ordered list of operations. A flat tuple of our own, because a deep std::tuple costs seconds of
// compile time per file.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "config.hpp"

namespace suture {

namespace detail {
template <std::size_t I, class T>
struct leaf {
  T value;
};

template <class Indices, class... Ts>
struct pack_base;
template <std::size_t... I, class... Ts>
struct pack_base<std::index_sequence<I...>, Ts...> : leaf<I, Ts>... {};

template <std::size_t I, class T>
T leaf_type(const leaf<I, T>*);
}  // namespace detail

// A flat, trivially copyable (when its members are) tuple.
template <class... Ts>
struct pack : detail::pack_base<std::index_sequence_for<Ts...>, Ts...> {
  static constexpr std::size_t size = sizeof...(Ts);
};

template <std::size_t I, class T>
SUTURE_HD constexpr T& get(detail::leaf<I, T>& member) {
  return member.value;
}
template <std::size_t I, class T>
SUTURE_HD constexpr const T& get(const detail::leaf<I, T>& member) {
  return member.value;
}

template <std::size_t I, class Pack>
using element_t = decltype(detail::leaf_type<I>(static_cast<const Pack*>(nullptr)));

inline namespace SUTURE_BUILD {

template <class... Ops>
struct chain {
  static constexpr std::size_t size = sizeof...(Ops);
  pack<Ops...> operations;
};

template <class T>
struct is_chain : std::false_type {};
template <class... Ops>
struct is_chain<chain<Ops...>> : std::true_type {};

template <class Op>
constexpr auto as_chain(const Op& op) {
  if constexpr (is_chain<Op>::value)
    return op;
  else
    return chain<Op>{{{{op}}}};
}

}  // namespace SUTURE_BUILD

namespace detail {
template <class... A, std::size_t... I, class... B, std::size_t... J>
constexpr chain<A..., B...> join(const chain<A...>& a, std::index_sequence<I...>, const chain<B...>& b,
                                 std::index_sequence<J...>) {
  return {{{{get<I>(a.operations)}..., {get<J>(b.operations)}...}}};
}
}  // namespace detail

}  // namespace suture
