// SPDX-License-Identifier: Apache-2.0
// The draws of a plan as JSON text, without a library for JSON.
#pragma once

#include <charconv>
#include <string>

#include "../plan/plan.hpp"

namespace suture::abi {

namespace detail {

using namespace suture::detail;

template <class T>
void write(const T& value, std::string& text);

// Elements between brackets.
template <class List>
void write_list(const List& list, std::string& text) {
  const char* between = "[";
  for (const auto& each : list) {
    text += between;
    write(each, text);
    between = ", ";
  }
  text += std::size(list) == 0 ? "[]" : "]";
}

template <class T>
void write(const T& value, std::string& text) {
  if constexpr (std::is_same_v<T, bool>) {
    text += value ? "true" : "false";
  } else if constexpr (number<T>) {
    char digits[40];
    if (value - value == 0)
      text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    else
      text += value != value ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
  } else if constexpr (named_enum<T>) {
    text += '"';
    text += names_of(value)[static_cast<std::size_t>(value)];
    text += '"';
  } else if constexpr (fixed_list<T>) {
    write_list(value, text);
  } else if constexpr (wraps_array<T>) {
    write(array_of(value), text);
  } else if constexpr (is_drawing<T>::value) {
    if (value.on)
      write(value.parameters, text);
    else
      text += "\"not drawn\"";
  } else {
    const char* between = "{\"";
    for_each_field<T>([&]<class Member>(std::string_view name, const Member& member) {
      text += between;
      text += name;
      text += "\": ";
      if constexpr (std::is_member_object_pointer_v<Member>)
        write(value.*member, text);
      else
        write_list(member.of(value), text);
      between = ", \"";
    });
    text += T::fields.names.size() == 0 ? "{}" : "}";
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
      if constexpr (detail::recorded<Op>) {
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
