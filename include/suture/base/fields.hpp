// SPDX-License-Identifier: Apache-2.0
// A struct lists the names of its members once, for code that writes and reads them by name:
//   static constexpr auto fields = named("factor", &contrast::factor);
// A struct of drawn parameters lists the members that are drawn at random; the pipeline determines the others.
//
// An operation also lists all of its members in the order of declaration, with notes on what their types do not say:
//   static constexpr auto parameters = named("factor", required(&contrast::factor), "pivot", &contrast::pivot);
// describe.hpp derives from this list what other languages know of the operation.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "chain.hpp"

namespace suture {

template <class... Members>
struct named_members {
  std::array<std::string_view, sizeof...(Members)> names;
  pack<Members...> members;  // pointers to members, or first_members
};

// A list that two members of T make up: the first `count` elements of an array.
template <class T, class E, std::size_t N>
struct first_members {
  using list = std::array<E, N> T::*;
  using number = std::int32_t T::*;
  list elements;
  number count;

  std::span<const E> of(const T& t) const {
    return std::span<const E>(t.*elements).first(static_cast<std::size_t>(t.*count));
  }
};
template <class T, class E, std::size_t N>
constexpr first_members<T, E, N> first_of(std::array<E, N> T::*elements, std::int32_t T::*count) {
  return {elements, count};
}

// A note says what the type of a member does not.
//   required     it has no default
//   multiplies   it is a range of factors: a single number could mean a factor or half a width, so both ends are given
//   left_out     it follows from other members or from chance: nobody sets it
//   orders_axes  its numbers are array axes
enum class note { required, multiplies, left_out, orders_axes };

template <class Member, note Note>
struct noted_member {
  Member member;
};

namespace detail {
template <class Member>
struct plain_member {
  using type = Member;
};
template <class Member, note Note>
struct plain_member<noted_member<Member, Note>> {
  using type = Member;
};

// Attaches a note to a member: required(&T::member).
template <note Note>
struct noting {
  template <class Member>
  constexpr noted_member<Member, Note> operator()(const Member& member) const {
    return {member};
  }
};
}  // namespace detail

inline constexpr detail::noting<note::required> required;
inline constexpr detail::noting<note::multiplies> multiplies;
inline constexpr detail::noting<note::left_out> left_out;
inline constexpr detail::noting<note::orders_axes> orders_axes;

// Whether a member has the note.
template <class Member, note Note>
inline constexpr bool is_noted = false;
template <class Member, note Note>
inline constexpr bool is_noted<noted_member<Member, Note>, Note> = true;

// The member without its note.
template <class Member>
constexpr const Member& without_note(const Member& member) {
  return member;
}
template <class Member, note Note>
constexpr const Member& without_note(const noted_member<Member, Note>& member) {
  return member.member;
}

namespace detail {
template <std::size_t... I, class... Arguments>
constexpr auto named_from(std::index_sequence<I...>, const pack<Arguments...>& a) {
  return named_members<element_t<2 * I + 1, pack<Arguments...>>...>{{{std::string_view(get<2 * I>(a))...}},
                                                                    {{{get<2 * I + 1>(a)}...}}};
}
}  // namespace detail

// Returns the list of members from alternating names and members: named("a", &T::a, "b", &T::b).
template <class... Arguments>
constexpr auto named(const Arguments&... names_and_members) {
  static_assert(sizeof...(Arguments) % 2 == 0, "suture: named takes a name and a member in turn");
  return detail::named_from(std::make_index_sequence<sizeof...(Arguments) / 2>{},
                            pack<std::decay_t<const Arguments&>...>{{{names_and_members}...}});
}

// Types whose values are written and read as text.
namespace detail {

template <class T>
concept number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T>
concept fixed_list = std::is_array_v<T> || requires {
  std::tuple_size<T>::value;
};
template <class T>
concept wraps_array = std::is_class_v<T> &&(
    requires(T& t) { t.v; } || requires(T & t) { t.m; });
template <class T>
concept named_enum = std::is_enum_v<T> && requires(T t) {
  names_of(t);
};
template <class T>
concept names_its_fields = requires {
  T::fields.names;
};

// The array that a vector or a matrix wraps.
template <wraps_array T>
constexpr auto& array_of(T& t) {
  if constexpr (requires { t.v; })
    return t.v;
  else
    return t.m;
}

// Calls f(name, member) for each field, where a member is a pointer to one, or a first_members.
template <names_its_fields T, class F>
constexpr void for_each_field(const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(T::fields.names[I], without_note(get<I>(T::fields.members))), ...);
  }
  (std::make_index_sequence<T::fields.names.size()>{});
}

}  // namespace detail

}  // namespace suture
