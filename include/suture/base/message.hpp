// SPDX-License-Identifier: Apache-2.0
// append_text appends a value to a message. Types of the library that occur in messages have overloads of their own.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "config.hpp"

namespace suture {

inline void append_text(std::string& text, std::string_view part) { text += part; }
inline void append_text(std::string& text, const char* part) { text += part; }
inline void append_text(std::string& text, char part) { text += part; }

template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>  // no concept: C++17 gets one error, of config.hpp
SUTURE_NOINLINE void append_text(std::string& text, T number) {
  text += std::to_string(number);
}

// All digits of a whole number up to 2^53, and six significant digits of others.
SUTURE_NOINLINE inline void append_text(std::string& text, double number) {
  constexpr double most = 9007199254740992.0;
  const bool is_whole =
      number >= -most && number <= most && number == static_cast<double>(static_cast<std::int64_t>(number));
  char digits[32];
  const auto format = is_whole ? std::chars_format::fixed : std::chars_format::general;
  const auto end = std::to_chars(digits, digits + sizeof digits, number, format, is_whole ? 0 : 6).ptr;
  text.append(digits, end);
}

inline void append_text(std::string& text, const void* address) {
  char digits[2 * sizeof address];
  const auto end = std::to_chars(digits, digits + sizeof digits, reinterpret_cast<std::uintptr_t>(address), 16).ptr;
  text += "0x";
  text.append(digits, end);
}

template <class T>
void append_interval(std::string& text, const T& low, const T& high) {
  append_text(text, '[');
  append_text(text, low);
  append_text(text, ", ");
  append_text(text, high);
  append_text(text, ']');
}

}  // namespace suture
