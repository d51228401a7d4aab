// SPDX-License-Identifier: Apache-2.0
// Expected results made by other libraries: reads a set of oracle vectors (tests/oracles/README.md says how one looks).
//
// The set is tests/oracles, or the folder that the environment variable SUTURE_ORACLES names when a test runs. A test
// picks its cases by what they say they are, the call (op) and its arguments (params), never by name or number, so that
// another set of the same format can be laid in place:
//
//   SUTURE_ORACLE_TEST(OracleFilter, TakesTheMedianOfScipy, support::calls("scipy.ndimage.median_filter")) {
//     const auto x = c.input<float>("x");  // c is the case; the body runs for each
//   }
//
// A test that finds no case fails for the repository's own set and is skipped for another. Which case no test serves,
// and why, is what oracle_coverage_test.cpp holds against the list of reasons there.
//
// Whole images that cases name lie in examples/data, or in the folder that SUTURE_DATA_DIR names, or beside a set that
// SUTURE_ORACLES names (../data).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "npy.hpp"
#include "source_directory.hpp"

namespace support {

inline std::string environment(const char* variable) {
  const char* set = std::getenv(variable);
  return set != nullptr ? set : "";
}

// Whether the set is the repository's own, in which every test must find a case.
inline bool own_oracles() { return environment("SUTURE_ORACLES").empty(); }

inline std::filesystem::path oracle_folder() {
  return own_oracles() ? source_directory() / "tests" / "oracles"
                       : std::filesystem::path(environment("SUTURE_ORACLES"));
}

inline std::filesystem::path data_folder() {
  if (const std::string set = environment("SUTURE_DATA_DIR"); !set.empty()) return set;
  if (!own_oracles())
    if (const auto beside = oracle_folder() / ".." / "data"; std::filesystem::exists(beside)) return beside;
  return source_directory() / "examples" / "data";
}

// One call of a third-party library: its arguments, and the files of its inputs and outputs by role.
struct oracle_case {
  std::string group;  // the folder, for messages
  std::string name;   // for messages
  std::string op;
  nlohmann::json params;
  nlohmann::json expected;  // small results given inline; null if none
  nlohmann::json inputs;
  nlohmann::json outputs;
  std::filesystem::path folder;

  template <class T>
  array<T> input(const std::string& role) const {
    return read_npy<T>(folder / inputs.at(role).get<std::string>());
  }
  template <class T>
  array<T> output(const std::string& role) const {
    return read_npy<T>(folder / outputs.at(role).get<std::string>());
  }
  // The stored type of an input, such as "<i2" or "|u1".
  std::string input_type(const std::string& role) const {
    return npy_type(folder / inputs.at(role).get<std::string>());
  }
  // Whether an argument is there and equal.
  template <class T>
  bool has(const char* param, const T& value) const {
    return params.contains(param) && params.at(param) == value;
  }
  std::string title() const { return group + "/" + name; }
};

// Every case of the set, by folder.
inline const std::vector<oracle_case>& all_oracles() {
  static const std::vector<oracle_case> cases = [] {
    std::vector<oracle_case> result;
    std::vector<std::filesystem::path> folders;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(oracle_folder(), unreadable))
      if (std::filesystem::exists(entry.path() / "cases.json")) folders.push_back(entry.path());
    std::sort(folders.begin(), folders.end());
    for (const std::filesystem::path& folder : folders) {
      std::ifstream stream(folder / "cases.json");
      const nlohmann::json document = nlohmann::json::parse(stream);
      for (const nlohmann::json& c : document.at("cases"))
        result.push_back({folder.filename().string(), c.at("name"), c.at("op"), c.at("params"),
                          c.value("expected", nlohmann::json()), c.value("inputs", nlohmann::json::object()),
                          c.value("outputs", nlohmann::json::object()), folder});
    }
    if (result.empty()) throw std::runtime_error(oracle_folder().string() + ": holds no folder with a cases.json");
    return result;
  }();
  return cases;
}

using oracle_filter = std::function<bool(const oracle_case&)>;

// The cases of a call, all or those whose arguments a further rule accepts.
inline oracle_filter calls(std::string op, oracle_filter also = {}) {
  return [=](const oracle_case& c) { return c.op == op && (!also || also(c)); };
}
inline oracle_filter calls_one_of(std::vector<std::string> ops, oracle_filter also = {}) {
  return [=](const oracle_case& c) { return std::ranges::count(ops, c.op) > 0 && (!also || also(c)); };
}

// Cases that could not be compared, each with its reason: data of another set that are not there.
inline std::map<std::string, std::string>& left_out() {
  static std::map<std::string, std::string> cases;
  return cases;
}
inline void leave_out(const oracle_case& c, const std::string& reason) { left_out()[c.title()] = reason; }

// Binary morphology as the library has it: one iteration with zeros outside, by faces, boxes or balls.
inline bool is_plain_morphology(const oracle_case& c) {
  const nlohmann::json& structure = c.params.at("structure");
  const bool known = structure.is_string() ? structure.get<std::string>().starts_with("skimage.morphology.ball(")
                                           : structure == 6 || structure == 26;
  return known && c.params.value("iterations", 1) == 1 && c.params.value("border_value", 0) == 0;
}

// Calls f for every case of the set that the filter accepts. Where no case could be compared the test is skipped.
template <class F>
void for_each_oracle(const oracle_filter& filter, const F& f) {
  int seen = 0, without_data = 0;
  for (const oracle_case& c : all_oracles()) {
    if (!filter(c)) continue;
    SCOPED_TRACE(c.title());
    left_out().erase(c.title());
    f(c);
    if (const auto found = left_out().find(c.title()); found != left_out().end()) {
      std::cout << found->first << " is not compared: " << found->second << '\n';
      ++without_data;
    } else {
      ++seen;
    }
  }
  if (seen > 0) return;
  if (without_data > 0) GTEST_SKIP() << "the data of all " << without_data << " cases are absent";
  if (own_oracles()) {
    FAIL() << "no case of this call in " << oracle_folder().string();
  } else {
    GTEST_SKIP() << "no case of this call in " << oracle_folder().string();
  }
}

// The tests of this program and the cases they serve.
struct oracle_test {
  std::string name;
  oracle_filter serves;
};
inline std::vector<oracle_test>& oracle_tests() {
  static std::vector<oracle_test> tests;
  return tests;
}
inline bool register_oracle_test(const char* name, oracle_filter serves) {
  oracle_tests().push_back({name, std::move(serves)});
  return true;
}

}  // namespace support

// SUTURE_ORACLE_TEST(suite, name, filter) { ... c ... }: the body runs for every case that the filter accepts.
#define SUTURE_ORACLE_TEST(suite, name, ...)                                                      \
  static void suite##_##name##_body(const support::oracle_case& c);                               \
  static const support::oracle_filter suite##_##name##_serves = __VA_ARGS__;                      \
  [[maybe_unused]] static const bool suite##_##name##_registered =                                \
      support::register_oracle_test(#suite "." #name, suite##_##name##_serves);                   \
  TEST(suite, name) { support::for_each_oracle(suite##_##name##_serves, suite##_##name##_body); } \
  static void suite##_##name##_body(const support::oracle_case& c)
