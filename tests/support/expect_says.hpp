// SPDX-License-Identifier: Apache-2.0
// EXPECT_SAYS(statement, words): the statement throws suture::error and its message holds the words; and the message
// itself, for tests that look at more of it.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "suture/base/error.hpp"

template <class F>
std::string message(const F& f) {
  try {
    f();
  } catch (const suture::error& e) {
    return e.what();
  }
  return "no error";
}

inline void expect_parts(const std::string& said, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(said.find(part), std::string::npos) << part << " in: " << said;
}

#define EXPECT_SAYS(statement, words)                       \
  do {                                                      \
    const std::string said = message([&] { statement; });   \
    EXPECT_NE(said.find(words), std::string::npos) << said; \
  } while (false)
