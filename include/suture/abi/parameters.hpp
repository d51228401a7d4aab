// SPDX-License-Identifier: Apache-2.0
// The reading of operations from the numbers and lists of a request, parameter by parameter in the order of their
// structs. The table in planned_chain.hpp states how each type of parameter is passed.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "../base/describe.hpp"
#include "geometry.hpp"
#include "reader.hpp"

namespace suture {
template <class Operation>
struct per_channel_operation;
}

namespace suture::abi {

namespace detail {

using namespace suture::detail;

// The form in which a request passes a hole: its start and its size along (z, y, x).
using hole_row = std::array<std::int64_t, 6>;

template <class T>
void read_parameter(reader& r, std::string_view parameter, T& value);

// Reads the parameters of an operation, in order.
template <class T>
void read_parameters(reader& r, T& value);

// Reads the next list and refuses more than `capacity` elements.
template <class T>
std::span<const T> list_of_at_most(reader& r, std::string_view parameter, std::size_t capacity) {
  const auto given = r.template list<T>(parameter);
  require(given.size() <= capacity, r.where(), parameter, ": expected at most ", capacity, " elements, got ",
          given.size());
  return given;
}

// Reads the next list into the front of an array and sets the other elements to 0. Returns the length of the list.
template <class T, std::size_t N>
std::int32_t read_elements(reader& r, std::string_view parameter, std::array<T, N>& values) {
  values = {};
  if constexpr (std::is_arithmetic_v<T>) {
    const auto given = list_of_at_most<T>(r, parameter, N);
    std::copy(given.begin(), given.end(), values.begin());
    return static_cast<std::int32_t>(given.size());
  } else {
    static_assert(type_name<T>() == "hole", "suture: no list of this type crosses the ABI");
    const auto given = list_of_at_most<hole_row>(r, parameter, N);
    for (std::size_t i = 0; i < given.size(); ++i)
      for (std::size_t k = 0; k < 6; ++k) {
        const std::int64_t number = given[i][k];
        require(
            number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max(),
            r.where(), parameter, ": expected a whole number of 32 bits, got ", number);
        (k < 3 ? values[i].start[k] : values[i].size[k - 3]) = static_cast<std::int32_t>(number);
      }
    return static_cast<std::int32_t>(given.size());
  }
}

// Reads sets of labels from one list: the number of sets, then for each set the number of labels and the labels.
template <class Sets>
void read_sets(reader& r, std::string_view parameter, Sets& sets) {
  using set = typename element_of<Sets>::type;
  const auto flat = r.template list<std::int32_t>(parameter);
  std::size_t at = 0;
  const auto count_of = [&](std::size_t capacity, const char* what) {
    require(at < flat.size(), r.where(), parameter, ": expected more than ", flat.size(), " elements");
    const std::int32_t count = flat[at++];
    require(count >= 0 && static_cast<std::size_t>(count) <= capacity, r.where(), parameter, ": expected 0 to ",
            capacity, ' ', what, ", got ", count);
    return static_cast<std::size_t>(count);
  };
  sets = {};
  for (std::size_t left = count_of(Sets::capacity, "sets"); left > 0; --left) {
    const std::size_t count = count_of(set::capacity, "labels");
    require(count <= flat.size() - at, r.where(), parameter, ": expected ", count, " labels, got ", flat.size() - at);
    sets.push_back(set(flat.subspan(at, count)));
    at += count;
  }
  require(at == flat.size(), r.where(), parameter, ": expected ", at, " elements, got ", flat.size());
}

template <class T>
void read_parameter(reader& r, std::string_view parameter, T& value) {
  if constexpr (std::is_same_v<T, geometry_list>) {
    const auto given = r.template list<geometry>(parameter);
    require(given.size() == 1, r.where(), parameter, ": expected the maps of one plan, got ", given.size());
    value = geometry_of(given[0]);
  } else if constexpr (std::is_array_v<T>) {
    for (auto& each : value) read_parameter(r, parameter, each);
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    const auto letters = r.template list<char>(parameter);
    value = {letters.data(), letters.size()};
  } else if constexpr (chosen_by_name<T>) {
    const auto choices = choices_of(static_cast<const T*>(nullptr));
    const auto index = static_cast<std::size_t>(r.template next<std::uint32_t>(parameter));
    require(index < choices.size(), r.where(), parameter, ": expected a number below ", choices.size(), ", got ",
            index);
    value = choices[index].table;
  } else if constexpr (is_variant<T>::value) {
    const auto index = static_cast<std::size_t>(r.template next<std::uint32_t>(parameter));
    require(index < std::variant_size_v<T>, r.where(), parameter, ": expected a number below ", std::variant_size_v<T>,
            ", got ", index);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((index == I ? read_parameters(r, value.template emplace<I>()) : void()), ...);
    }
    (std::make_index_sequence<std::variant_size_v<T>>{});
  } else if constexpr (room_for_elements<T>) {
    if constexpr (room_for_elements<typename element_of<T>::type>)
      read_sets(r, parameter, value);
    else if constexpr (fixed_list<T>)
      read_elements(r, parameter, value);
    else
      value = T(list_of_at_most<typename element_of<T>::type>(r, parameter, T::capacity));
  } else if constexpr (names_its_fields<T>) {
    for_each_field<T>([&](std::string_view, auto member) { read_parameter(r, parameter, value.*member); });
    if constexpr (requires { value.state(); }) value.state();  // computes the constants of color_moments
  } else if constexpr (wraps_array<T>) {
    read_parameter(r, parameter, array_of(value));
  } else {
    value = r.template next<T>(parameter);
  }
}

template <class T>
void read_parameters(reader& r, T& value) {
  for_each_parameter<T>([&]<class Member>(std::string_view name, const Member& member) {
    if constexpr (!is_noted<Member, note::left_out>) {
      const auto& plain = without_note(member);
      if constexpr (requires { plain.count; })
        value.*plain.count = read_elements(r, name, value.*plain.elements);
      else
        read_parameter(r, name, value.*plain);
    }
  });
}

}  // namespace detail

// Reads any type that lists its parameters: an operation, a label conversion, a rule for choosing patches.
template <described T>
struct codec<T> {
  static T read(reader& r, std::string_view) {
    if constexpr (check_described<T>()) {
      T made = with_defaults<T>();
      detail::read_parameters(r, made);
      return made;
    } else {  // check_described has refused the type at compile time
      return T{};
    }
  }
};

// Reads the operation, then `probability` and `synchronized`.
template <class Operation>
struct codec<per_channel_operation<Operation>> {
  static per_channel_operation<Operation> read(reader& r, std::string_view parameter) {
    per_channel_operation<Operation> made{r.template next<Operation>(parameter), {}};
    detail::read_parameters(r, made.channels);
    return made;
  }
};

}  // namespace suture::abi
