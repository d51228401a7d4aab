// SPDX-License-Identifier: Apache-2.0
// Expected results made by other libraries: finds the folder of oracle vectors and reads its cases.
//
// The folder is $SUTURE_ORACLE_DIR at run time, else what the build system was told (the macro of the same name), else
// SUTURE_SOURCE_DIR/../shared/oracles. The vectors are not part of the repository; a test that needs them starts with
// SUTURE_NEEDS_ORACLES("group") and is skipped where they are absent. Sample images are found the same way:
// SUTURE_DATA_DIR, else SUTURE_SOURCE_DIR/../shared/data.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "npy.hpp"

#if !defined(SUTURE_SOURCE_DIR)
#define SUTURE_SOURCE_DIR "."
#endif
#if !defined(SUTURE_ORACLE_DIR)
#define SUTURE_ORACLE_DIR SUTURE_SOURCE_DIR "/../shared/oracles"
#endif
#if !defined(SUTURE_DATA_DIR)
#define SUTURE_DATA_DIR SUTURE_SOURCE_DIR "/../shared/data"
#endif

namespace support {

inline std::filesystem::path folder_from(const char* variable, const char* built_in) {
  const char* set = std::getenv(variable);
  return set != nullptr && *set != '\0' ? set : built_in;
}

inline std::filesystem::path oracle_folder() { return folder_from("SUTURE_ORACLE_DIR", SUTURE_ORACLE_DIR); }
inline std::filesystem::path data_folder() { return folder_from("SUTURE_DATA_DIR", SUTURE_DATA_DIR); }

inline bool has_oracles(const std::string& group) {
  return std::filesystem::exists(oracle_folder() / group / "cases.json");
}

// One call of a third-party library: its parameters, and the files of its inputs and outputs by role.
struct oracle_case {
  std::string name;
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
};

inline std::vector<oracle_case> oracle_cases(const std::string& group) {
  const std::filesystem::path folder = oracle_folder() / group;
  std::ifstream stream(folder / "cases.json");
  if (!stream) throw std::runtime_error((folder / "cases.json").string() + ": cannot be opened");
  const nlohmann::json document = nlohmann::json::parse(stream);
  std::vector<oracle_case> cases;
  for (const nlohmann::json& c : document.at("cases"))
    cases.push_back({c.at("name"), c.at("op"), c.at("params"), c.value("expected", nlohmann::json()),
                     c.value("inputs", nlohmann::json::object()), c.value("outputs", nlohmann::json::object()),
                     folder});
  return cases;
}

inline oracle_case find_case(const std::string& group, const std::string& name) {
  for (const oracle_case& c : oracle_cases(group))
    if (c.name == name) return c;
  throw std::runtime_error(group + ": no case " + name);
}

}  // namespace support

#define SUTURE_NEEDS_ORACLES(group)                                                                \
  if (!support::has_oracles(group))                                                                \
  GTEST_SKIP() << "no oracle vectors '" << (group) << "' in " << support::oracle_folder().string() \
               << "; set SUTURE_ORACLE_DIR"
