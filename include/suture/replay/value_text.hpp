// SPDX-License-Identifier: Apache-2.0
// Values and the draws of a plan as JSON text, without a library for JSON: numbers, lists, and structs that name their
// fields.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "../plan/planned.hpp"

#if !defined(__cpp_lib_to_chars)  // libc++ before version 20: std::from_chars reads no floating-point numbers
#include <locale>
#include <sstream>
#endif

namespace suture {

namespace detail {

// Returns the double nearest to a decimal number, whatever the locale.
inline double read_double(std::string_view digits) {
  double read = 0;
#if defined(__cpp_lib_to_chars)
  std::from_chars(digits.data(), digits.data() + digits.size(), read);
#else
  std::istringstream in{std::string(digits)};
  in.imbue(std::locale::classic());
  in >> read;
#endif
  return read;
}

inline constexpr std::string_view not_drawn = "not drawn";

template <class T>
concept has_json_form = std::is_arithmetic_v<T> || fixed_list<T> || wraps_array<T> || named_enum<T> ||
    is_drawing<T>::value || names_its_fields<T>;

// Appends values to a text. Numbers are the shortest that read back as the same bits; floats have a point or an
// exponent.
class value_text {
public:
  // With `where` a number that is not finite is refused by the name of its field; otherwise it is written as "nan",
  // "inf" or "-inf".
  explicit value_text(const site* where = nullptr, std::string_view field = {}) : where_(where), field_(field) {}

  std::string text;

  template <class T>
  void write(const T& value) {
    static_assert(has_json_form<T>,
                  "suture: parameters without names: a struct that a random operation draws names what is drawn, "
                  "static constexpr auto fields = named(\"factor\", &contrast::factor); an enum has names_of");
    if constexpr (std::is_same_v<T, bool>)
      text += value ? "true" : "false";
    else if constexpr (std::is_floating_point_v<T>)
      write_real(value);
    else if constexpr (number<T>)
      write_digits(value);
    else if constexpr (named_enum<T>)
      write_quoted(names_of(value)[static_cast<std::size_t>(value)]);
    else if constexpr (fixed_list<T>)
      write_list(value);
    else if constexpr (wraps_array<T>)
      write(array_of(value));
    else if constexpr (is_drawing<T>::value)
      value.on ? write(value.parameters) : write_quoted(not_drawn);
    else if constexpr (names_its_fields<T>)
      write_fields(value);
  }

private:
  template <class T>
  std::string_view write_digits(T value) {
    char digits[40];
    const std::size_t begin = text.size();
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    return std::string_view(text).substr(begin);
  }
  template <class T>
  void write_real(T value) {
    if (!std::isfinite(value)) {
      if (where_ != nullptr) fail(*where_, field_, ' ', value, " is not finite");
      return write_quoted(value != value ? "nan" : value > 0 ? "inf" : "-inf");
    }
    std::string_view digits = write_digits(value);
    // JSON is read as double: the shortest decimal of a float may lie so near the middle of two that it becomes the
    // other one.
    if constexpr (std::same_as<T, float>) {
      if (static_cast<float>(read_double(digits)) != value) {
        text.resize(text.size() - digits.size());
        digits = write_digits(static_cast<double>(value));
      }
    }
    if (digits.find_first_of(".e") == digits.npos) text += ".0";
  }
  void write_quoted(std::string_view name) { ((text += '"') += name) += '"'; }
  template <class List>
  void write_list(const List& list) {
    const char* between = "";
    text += '[';
    for (const auto& each : list) {
      text += between;
      write(each);
      between = ", ";
    }
    text += ']';
  }
  template <class T>
  void write_fields(const T& value) {
    const char* between = "";
    text += '{';
    for_each_field<T>([&]<class Member>(std::string_view name, const Member& member) {
      text += between;
      write_quoted(field_ = name);
      text += ": ";
      if constexpr (std::is_member_object_pointer_v<Member>)
        write(value.*member);
      else
        write_list(member.of(value));
      between = ", ";
    });
    text += '}';
  }

  const site* where_;
  std::string_view field_;
};

// [{"name": "random_affine", "parameters": {...} or "not drawn"}, ...]: what was drawn for a sample, for every operation
// that is random or chosen for each sample.
template <class... Ops>
std::string drawn_text(const planned<chain<Ops...>>& plan, std::size_t sample, bool finite) {
  std::string text = "[";
  const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    using Op = element_t<I, decltype(chain<Ops...>::operations)>;
    if constexpr (recorded<Op>) {
      const site where{name_of<Op>(), static_cast<std::int64_t>(sample)};
      value_text parameters(finite ? &where : nullptr);
      parameters.write(plan.template drawn<I>(sample));
      text += text.size() > 1 ? ", {\"name\": \"" : "{\"name\": \"";
      ((text += name_of<Op>()) += "\", \"parameters\": ") += parameters.text;
      text += '}';
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) { (one(std::integral_constant<std::size_t, I>{}), ...); }
  (std::index_sequence_for<Ops...>{});
  return text += ']';
}

}  // namespace detail

// Returns the draws of every sample as a JSON list, an entry for each sample.
template <class Chain>
std::string drawn_text(const planned<Chain>& plan) {
  std::string text = "[";
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (i > 0) text += ", ";
    text += detail::drawn_text(plan, i, false);
  }
  return text += ']';
}

}  // namespace suture
