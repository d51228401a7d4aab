// SPDX-License-Identifier: Apache-2.0
// Values as JSON, and back: numbers, lists, and structs that name their fields.
#pragma once

#include <cmath>
#include <concepts>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../base/error.hpp"
#include "../base/fields.hpp"
#include "../base/vec.hpp"
#include "../pipeline/concepts.hpp"
#include "value_text.hpp"

namespace suture::detail {

using json = nlohmann::ordered_json;

// Tests whether lists and objects of j are nested deeper than this many levels.
inline bool nests_deeper(const json& j, int levels) {
  if (!j.is_structured()) return false;
  if (levels == 0) return true;
  for (const json& each : j)
    if (nests_deeper(each, levels - 1)) return true;
  return false;
}

// Returns a value for a message. Deep nesting is left out, since writing JSON takes stack by its depth, which the file
// decides.
inline std::string shown(const json& j) {
  if (nests_deeper(j, 16)) return j.is_array() ? "[...]" : "{...}";
  const std::string text = j.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

template <class T>
json written(const T& value, const site& where, std::string_view field) {
  value_text made(&where, field);
  made.write(value);
  return json::parse(made.text);
}

// Checks that an object has exactly these fields.
template <class Names = std::initializer_list<std::string_view>>
void check_members(const json& j, const Names& names, const site& where, const std::string& path) {
  require(j.is_object(), where, path, ' ', shown(j), " is not an object");
  for (const std::string_view name : names)
    require(j.contains(std::string(name)), where, path, " has no field \"", name, '"');
  for (const auto& [key, value] : j.items()) {
    bool known = false;
    for (const std::string_view name : names) known = known || key == name;
    require(known, where, path, " has the unknown field \"", key, '"');
  }
}

template <class T>
void read_number(const json& j, T& value, const site& where, const std::string& path) {
  if constexpr (std::is_floating_point_v<T>) {
    require(j.is_number(), where, path, ' ', shown(j), " is not a number");
    const auto d = j.get<double>();
    value = static_cast<T>(d);
    require(std::isfinite(d) && std::isfinite(value), where, path, ' ', d, " is out of range");
  } else {
    require(j.is_number_integer(), where, path, ' ', shown(j), " is not an integer");
    const bool fits =
        j.is_number_unsigned() ? std::in_range<T>(j.get<std::uint64_t>()) : std::in_range<T>(j.get<std::int64_t>());
    require(fits, where, path, ' ', shown(j), " is out of range");
    value = j.get<T>();
  }
}

template <class T>
void read(const json& j, T& value, const site& where, const std::string& path);

// Reads as many elements as there is room for, unless fewer are allowed; returns their number.
template <class Array>
std::size_t read_list(const json& j, Array& values, bool fewer, const site& where, const std::string& path) {
  const std::size_t room = std::size(values);
  require(j.is_array(), where, path, ' ', shown(j), " is not a list");
  require(fewer ? j.size() <= room : j.size() == room, where, path, " has ", j.size(), " elements, not ",
          fewer ? "at most " : "", room);
  for (std::size_t i = 0; i < j.size(); ++i) read(j[i], values[i], where, path + '[' + std::to_string(i) + ']');
  return j.size();
}

template <class T>
void read(const json& j, T& value, const site& where, const std::string& path) {
  static_assert(has_json_form<T>);
  if constexpr (std::same_as<T, bool>) {
    require(j.is_boolean(), where, path, ' ', shown(j), " is not true or false");
    value = j.get<bool>();
  } else if constexpr (number<T>) {
    read_number(j, value, where, path);
  } else if constexpr (fixed_list<T>) {
    read_list(j, value, false, where, path);
  } else if constexpr (wraps_array<T>) {
    read(j, array_of(value), where, path);
  } else if constexpr (named_enum<T>) {
    constexpr auto names = names_of(T{});
    bool known = false;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (j == names[i]) {
        value = static_cast<T>(i);
        known = true;
      }
    require(known, where, path, ' ', shown(j), " is not a name of it");
  } else if constexpr (is_drawing<T>::value) {
    value.on = j != not_drawn;
    if (value.on) read(j, value.parameters, where, path);
  } else if constexpr (names_its_fields<T>) {
    check_members(j, T::fields.names, where, path);
    for_each_field<T>([&]<class Member>(std::string_view name, const Member& member) {
      const json& field = j[std::string(name)];
      const std::string inner = path + '.' + std::string(name);
      if constexpr (std::is_member_object_pointer_v<Member>)
        read(field, value.*member, where, inner);
      else
        value.*member.count = static_cast<std::int32_t>(read_list(field, value.*member.elements, true, where, inner));
    });
  }
}

}  // namespace suture::detail
