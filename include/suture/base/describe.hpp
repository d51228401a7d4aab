// SPDX-License-Identifier: Apache-2.0
// Description of an operation's parameters for other languages: the kind of each, derived from its C++ type, and its
// default. A struct lists its own parameters (see fields.hpp); check_described compares the list with its members.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "enumerators.hpp"
#include "fields.hpp"
#include "short_list.hpp"
#include "vec.hpp"

namespace suture {

// The kind of a parameter. A name that ends with a colon is completed by `of` or `count`: choice:interval_law,
// floats:3, results:moments. `capacity` is the largest number of elements of a list, 0 where nothing limits it. The
// elements of `regions` are lists themselves, of at most `count` labels each.
struct parameter_kind {
  std::string_view name, of = {};
  std::size_t count = 0, capacity = 0;
};

// The name of a type without namespaces and template arguments.
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("T = ", text.find('[')) + 4);
  text = text.substr(0, text.find_first_of(";]<"));
  return text.substr(text.find_last_of(": ") + 1);
}

// A struct that lists its parameters.
template <class T>
concept described = requires {
  T::parameters.names;
};

// A type whose values are published under names: choices_of(pointer) has a name and a value in each element.
template <class T>
concept chosen_by_name = requires(const T* t) {
  choices_of(t);
};

namespace detail {

template <class T>
struct element_of {};
template <class T, std::size_t N>
struct element_of<std::array<T, N>> {
  using type = T;
  static constexpr std::size_t capacity = N;
};
template <class T, std::size_t N>
struct element_of<short_list<T, N>> {
  using type = T;
  static constexpr std::size_t capacity = N;
};
template <class T>
struct element_of<std::span<const T>> {
  using type = T;
};
template <class T>
concept room_for_elements = requires {
  element_of<T>::capacity;
};
template <class T>
concept given_elements = !room_for_elements<T> && requires {
  typename element_of<T>::type;
};

template <class T>
struct is_variant : std::false_type {};
template <class... Ts>
struct is_variant<std::variant<Ts...>> : std::true_type {};

// The kind of a list, by the type of its elements.
template <class T>
constexpr parameter_kind kind_of_list(std::size_t capacity) {
  if constexpr (std::is_same_v<T, float>)
    return {capacity > 0 ? "float_list" : "given_floats", {}, 0, capacity};
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return {"given_flags"};
  else if constexpr (std::is_same_v<T, extent3>)
    return {"starts"};
  else if constexpr (std::is_pointer_v<T>)
    return {"pointers:", type_name<std::remove_cv_t<std::remove_pointer_t<T>>>()};
  else if constexpr (room_for_elements<T>)
    return {"regions", {}, element_of<T>::capacity, capacity};
  else if constexpr (type_name<T>() == "hole")
    return {"holes", {}, 0, capacity};
  else if constexpr (type_name<T>() == "label_change")
    return {"label_changes", {}, 0, capacity};
  else if constexpr (std::is_class_v<T>)
    return {"results:", type_name<T>()};
  else
    return {};
}

// Returns the kind of a type; its name is empty where the type has none.
template <class T>
constexpr parameter_kind kind_of_type() {
  if constexpr (std::is_same_v<T, bool>)
    return {"flag"};
  else if constexpr (std::is_same_v<T, float>)
    return {"float32"};
  else if constexpr (std::is_same_v<T, double>)
    return {"float64"};
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return {"int32"};
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return {"int64"};
  else if constexpr (std::is_enum_v<T>)
    return {"choice:", type_name<T>()};
  else if constexpr (std::is_array_v<T> && std::is_same_v<std::remove_extent_t<T>, float>)
    return {"floats:", {}, std::extent_v<T>};
  else if constexpr (std::is_array_v<T> && std::is_enum_v<std::remove_extent_t<T>>)
    return {"choices:", type_name<std::remove_extent_t<T>>(), std::extent_v<T>};
  else if constexpr (std::is_same_v<T, point3>)
    return {"point3"};
  else if constexpr (std::is_same_v<T, extent3>)
    return {"extent3"};
  else if constexpr (std::is_same_v<T, vec3<bool>>)
    return {"flags3"};
  else if constexpr (std::is_same_v<T, vec3<float>>)
    return {"floats3"};
  else if constexpr (std::is_same_v<T, vec3<std::int32_t>>)
    return {"int3"};
  else if constexpr (std::is_same_v<T, std::optional<std::int32_t>>)
    return {"optional_int"};
  else if constexpr (std::is_same_v<T, std::string_view>)
    return {"orientation"};
  else if constexpr (chosen_by_name<T>)
    return {type_name<T>()};
  else if constexpr (is_variant<T>::value)
    return {"one_of"};
  else if constexpr (room_for_elements<T>)
    return kind_of_list<typename element_of<T>::type>(element_of<T>::capacity);
  else if constexpr (given_elements<T>)
    return kind_of_list<typename element_of<T>::type>(0);
  else if constexpr (requires { T::described_as; })
    return {T::described_as};
  else if constexpr (names_its_fields<T> || wraps_array<T>)
    return {type_name<T>()};
  else
    return {};
}

template <class Member>
struct member_type {};
template <class Owner, class T>
struct member_type<T Owner::*> {
  using type = T;
};
template <class Owner, class T, std::size_t N>
struct member_type<first_members<Owner, T, N>> {
  using type = std::array<T, N>;
};

}  // namespace detail

// The type of the member that a list of parameters names; for a first_members, the type of its array.
template <class Member>
using parameter_type = typename detail::member_type<typename detail::plain_member<Member>::type>::type;

template <class Member>
constexpr parameter_kind kind_of_parameter() {
  if constexpr (is_noted<Member, note::orders_axes>)
    return {"axis_order"};
  else
    return detail::kind_of_type<parameter_type<Member>>();
}

// Calls f(name, member) for each parameter of T, in order; `member` may carry a note.
template <described T, class F>
constexpr void for_each_parameter(const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (f(T::parameters.names[I], get<I>(T::parameters.members)), ...); }
  (std::make_index_sequence<T::parameters.names.size()>{});
}

// Compile-time check that a list of parameters names exactly the members of its struct.
namespace detail {

// Converts to a T and to nothing else.
template <class T>
struct becomes {
  operator T() const;
};
// Converts to any type.
struct becomes_anything {
  template <class T>
  operator T() const;
};

// The initializers of some members: an array takes one initializer for each element.
template <class... Ts>
struct initializers {
  template <class T>
  static constexpr bool make = requires {
    T{becomes<Ts>{}...};
  };
  template <class T>
  static constexpr bool make_with_one_more = requires {
    T{becomes<Ts>{}..., {}};
  }
  || requires { T{becomes<Ts>{}..., becomes_anything{}}; };
};

template <class... A, class... B>
initializers<A..., B...> operator+(initializers<A...>, initializers<B...>);

template <class T>
struct initializers_of_type {
  using type = initializers<T>;
};
template <class T, std::size_t N>
struct initializers_of_type<T[N]> {
  template <std::size_t... I>
  static initializers<std::enable_if_t<(I < N), T>...> repeated(std::index_sequence<I...>);
  using type = decltype(repeated(std::make_index_sequence<N>{}));
};
template <class Member>
struct initializers_of_member : initializers_of_type<typename member_type<Member>::type> {};
template <class Owner, class T, std::size_t N>
struct initializers_of_member<first_members<Owner, T, N>> {
  using type = initializers<std::array<T, N>, std::int32_t>;
};

template <class... Members>
auto initializers_of(const named_members<Members...>&)
    -> decltype((initializers<>{} + ... +
                 typename initializers_of_member<typename plain_member<Members>::type>::type{}));

template <class T, auto Member>
constexpr bool parameter_has_kind() {
  using member = std::remove_cvref_t<decltype(Member)>;
  if constexpr (!is_noted<member, note::left_out>) {
    constexpr bool is_described = !kind_of_parameter<member>().name.empty();
    static_assert(is_described,
                  "suture: the parameter Member of T has a type that is not described: see kind_of_type in "
                  "base/describe.hpp");
    return is_described;
  } else {
    return true;
  }
}

}  // namespace detail

// Checks that T::parameters lists every member of T in the order of declaration, and that each has a kind.
template <described T>
constexpr bool check_described() {
  using listed = decltype(detail::initializers_of(T::parameters));
  static_assert(
      listed::template make<T>,
      "suture: T::parameters lists members of T that are not its own, or in another order than T declares them");
#if !defined(__CUDACC__)  // nvcc takes more initializers than there are members
  static_assert(!listed::template make_with_one_more<T>,
                "suture: T has a member that T::parameters does not list: add it, with left_out() if nobody sets it");
#endif
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (detail::parameter_has_kind<T, get<I>(T::parameters.members)>() && ...);
  }
  (std::make_index_sequence<T::parameters.names.size()>{});
}

namespace detail {

// Initializes a member without a default by 0.
struct unset {
  template <class T>
  requires std::is_constructible_v<T, int>
  constexpr operator T() const { return T(0); }
};

// Returns a T whose first members are initialized by `first`. The others have their defaults, or are 0.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
template <class T, class... Unset>
constexpr T with_defaults(Unset... first) {
  if constexpr (requires { T{first...}; })
    return T{first...};
  else {
    static_assert(sizeof...(Unset) < 8, "suture: members without a default that are not first, or cannot be made of 0");
    return with_defaults<T>(first..., unset{});
  }
}

#pragma GCC diagnostic pop

}  // namespace detail

// Returns a T with its defaults; members without a default are 0.
template <described T>
constexpr T with_defaults() {
  return detail::with_defaults<T>();
}

}  // namespace suture
