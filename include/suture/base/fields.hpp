// SPDX-License-Identifier: Apache-2.0
// The names of a struct's members, said once, in the struct itself, for what writes and reads it by name:
//   static constexpr auto fields = named("factor", &contrast::factor);
// A struct of drawn parameters names what chance decides; the rest of it is the pipeline's.
//
// An operation also lists all of its members, in the order of declaration, with what their types do not say:
//   static constexpr auto parameters = named("factor", required(&contrast::factor), "pivot", &contrast::pivot);
// describe.hpp derives from it what other languages know of the operation.
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

// The first `count` elements of an array, as one list.
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

// A member and what is to be known of it.
//   required     it has no default
//   multiplies   it is a range of factors: a single number could mean a factor or half a width, so both ends are given
//   left_out     it follows from other members or from chance: nobody sets it
//   orders_axes  its numbers are array axes
enum class note : unsigned { required = 1, multiplies = 2, left_out = 4, orders_axes = 8 };

template <class Member, unsigned Notes>
struct noted_member {
  Member member;
};

namespace detail {
template <class Member>
struct notes_of_member {
  using type = Member;
  static constexpr unsigned notes = 0;
};
template <class Member, unsigned Notes>
struct notes_of_member<noted_member<Member, Notes>> {
  using type = Member;
  static constexpr unsigned notes = Notes;
};

template <note Note, class Member>
constexpr auto with_note(const Member& member) {
  using before = notes_of_member<Member>;
  constexpr unsigned notes = before::notes | static_cast<unsigned>(Note);
  if constexpr (before::notes == 0)
    return noted_member<Member, notes>{member};
  else
    return noted_member<typename before::type, notes>{member.member};
}
}  // namespace detail

template <class Member>
constexpr auto required(const Member& member) {
  return detail::with_note<note::required>(member);
}
template <class Member>
constexpr auto multiplies(const Member& member) {
  return detail::with_note<note::multiplies>(member);
}
template <class Member>
constexpr auto left_out(const Member& member) {
  return detail::with_note<note::left_out>(member);
}
template <class Member>
constexpr auto orders_axes(const Member& member) {
  return detail::with_note<note::orders_axes>(member);
}

// Whether a member has the note.
template <class Member, note Note>
inline constexpr bool is_noted = (detail::notes_of_member<Member>::notes & static_cast<unsigned>(Note)) != 0;

// The member without its notes.
template <class Member>
constexpr const Member& without_notes(const Member& member) {
  return member;
}
template <class Member, unsigned Notes>
constexpr const Member& without_notes(const noted_member<Member, Notes>& member) {
  return member.member;
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

// The forms in which values are written and read: numbers, and these.
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

// f(name, member) for each field, where a member is a pointer to one, or first_members.
template <names_its_fields T, class F>
constexpr void for_each_field(const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(T::fields.names[I], without_notes(get<I>(T::fields.members))), ...);
  }
  (std::make_index_sequence<T::fields.names.size()>{});
}

}  // namespace detail

}  // namespace suture
