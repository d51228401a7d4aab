// SPDX-License-Identifier: Apache-2.0
// What a plan drew, as JSON text, without a library for JSON.
#pragma once

#include <charconv>
#include <cmath>
#include <string>

#include "../plan/plan.hpp"

namespace suture::abi {

namespace detail {

template <class T>
constexpr bool is_drawing_v = false;
template <class Drawn>
constexpr bool is_drawing_v<drawing<Drawn>> = true;

template <class T>
void write_number(T value, std::string& text) {
  char buffer[40];
  text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

template <class T>
void write(const T& value, std::string& text);

// Elements between brackets, or members between braces.
template <class List>
void write_list(const List& list, std::size_t count, std::string& text) {
  text += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    write(list[i], text);
  }
  text += ']';
}

template <class T>
void write(const T& value, std::string& text) {
  if constexpr (std::is_same_v<T, bool>) {
    text += value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    text += '"';
    text += names_of(value)[static_cast<std::size_t>(value)];
    text += '"';
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(value))
      write_number(value, text);
    else
      text += value != value ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
  } else if constexpr (std::is_arithmetic_v<T>) {
    write_number(value, text);
  } else if constexpr (std::is_array_v<T>) {
    write_list(value, std::size(value), text);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    write_list(value, std::tuple_size<T>::value, text);
  } else if constexpr (requires { value.v; }) {
    write(value.v, text);
  } else if constexpr (requires { value.m; }) {
    write(value.m, text);
  } else if constexpr (is_drawing_v<T>) {
    if (value.on)
      write(value.parameters, text);
    else
      text += "\"not drawn\"";
  } else {
    text += '{';
    const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      const auto& member = get<I>(T::fields.members);
      if constexpr (I > 0) text += ", ";
      text += '"';
      text += T::fields.names[I];
      text += "\": ";
      if constexpr (std::is_member_object_pointer_v<std::decay_t<decltype(member)>>)
        write(value.*member, text);
      else
        write_list(value.*member.elements, static_cast<std::size_t>(value.*member.count), text);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (one(std::integral_constant<std::size_t, I>{}), ...); }
    (std::make_index_sequence<T::fields.names.size()>{});
    text += '}';
  }
}

}  // namespace detail

// [[{"name": "random_affine", "parameters": {...} or "not drawn"}, ...], ...]: for each sample, of every operation that
// is random or chosen for it, what was drawn. Numbers are the shortest that read back as the same bits.
template <class... Ops>
std::string drawn_text(const planned<chain<Ops...>>& plan) {
  std::string text = "[";
  for (std::size_t i = 0; i < plan.size(); ++i) {
    text += i > 0 ? ", [" : "[";
    bool first = true;
    const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
      using Op = element_t<I, decltype(chain<Ops...>::operations)>;
      if constexpr (random_operation<Op> || chosen_operation<Op>) {
        text += first ? "{\"name\": \"" : ", {\"name\": \"";
        text += name_of<Op>();
        text += "\", \"parameters\": ";
        detail::write(plan.template drawn<I>(i), text);
        text += '}';
        first = false;
      }
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) { (one(std::integral_constant<std::size_t, I>{}), ...); }
    (std::index_sequence_for<Ops...>{});
    text += ']';
  }
  text += ']';
  return text;
}

}  // namespace suture::abi
