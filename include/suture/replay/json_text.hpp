// SPDX-License-Identifier: Apache-2.0
// JSON from text or a stream, of bounded depth. Not part of suture.hpp: it needs nlohmann/json 3.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "../base/error.hpp"

namespace suture {

// The largest depth to which lists and objects may be nested. JSON that the library writes has 8 levels.
inline constexpr int most_json_levels = 64;

// parse_json: nlohmann's parse of a text or a stream. Its memory is bounded by the text, its stack by the levels:
// without a bound a file of brackets makes nlohmann's objects copy themselves until the stack overflows.
// Errors: what is not JSON, with nlohmann's words; lists and objects more than most_json_levels deep.
template <class Input>
nlohmann::ordered_json parse_json(Input&& input, const site& where = {"parse_json"}) {
  using json = nlohmann::ordered_json;
  const auto bounded = [&](int level, json::parse_event_t event, const json&) {
    const bool opens = event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    require(!opens || level < most_json_levels, where, "lists and objects are nested more than ", most_json_levels,
            " levels deep");
    return true;
  };
  try {
    return json::parse(std::forward<Input>(input), bounded);
  } catch (const json::exception& problem) {
    fail(where, problem.what());
  }
}

}  // namespace suture
