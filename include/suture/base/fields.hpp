// SPDX-License-Identifier: Apache-2.0
// The names of a struct's members, said once, in the struct itself, for what writes and reads it by name:
//   static constexpr auto fields = named<&contrast::factor>;
// A struct of drawn parameters names what chance decides; the rest of it is the pipeline's.
//
// An operation also lists all of its members, in the order of declaration, with what their types do not say:
//   static constexpr auto parameters = named<required<&contrast::factor>, &contrast::pivot>;
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
first_members(std::array<E, N> T::*, std::int32_t T::*) -> first_members<T, E, N>;
template <auto Elements, auto Count>
inline constexpr first_members first_of{Elements, Count};

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
}  // namespace detail

template <auto Member>
inline constexpr noted_member<std::remove_const_t<decltype(Member)>, note::required> required{Member};
template <auto Member>
inline constexpr noted_member<std::remove_const_t<decltype(Member)>, note::multiplies> multiplies{Member};
template <auto Member>
inline constexpr noted_member<std::remove_const_t<decltype(Member)>, note::left_out> left_out{Member};
template <auto Member>
inline constexpr noted_member<std::remove_const_t<decltype(Member)>, note::orders_axes> orders_axes{Member};

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

// The pointer whose member gives the name.
template <class T, class Owner>
constexpr auto naming(T Owner::*member) {
  return member;
}
template <class T, class E, std::size_t N>
constexpr auto naming(const first_members<T, E, N>& members) {
  return members.elements;
}
template <class Member, note Note>
constexpr auto naming(const noted_member<Member, Note>& noted) {
  return naming(noted.member);
}

// The name of a member. GCC, Clang and the front end of nvcc end __PRETTY_FUNCTION__ with
// "Member = &suture::contrast::factor]".
template <auto Member>
constexpr auto member_name() {
  const char* const end = __PRETTY_FUNCTION__ + sizeof __PRETTY_FUNCTION__ - 2;
  const char* begin = end;
  while (begin[-1] != ':') --begin;
  return std::string_view(begin, static_cast<std::size_t>(end - begin));
}

}  // namespace detail

// Members by the names that they have, which are computed on first use.
template <auto... Members>
struct named_members {
  static constexpr std::array<std::string_view, sizeof...(Members)> names{
      detail::member_name<detail::naming(Members)>()...};
  static constexpr pack<std::remove_const_t<decltype(Members)>...> members{{{Members}...}};
};
template <auto... Members>
inline constexpr named_members<Members...> named;

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
    (f(T::fields.names[I], without_note(get<I>(T::fields.members))), ...);
  }
  (std::make_index_sequence<T::fields.names.size()>{});
}

}  // namespace detail

}  // namespace suture
