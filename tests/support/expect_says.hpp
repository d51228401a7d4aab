// SPDX-License-Identifier: Apache-2.0
// EXPECT_SAYS(statement, words): the statement throws suture::error and its message holds the words.
#pragma once

#include <gtest/gtest.h>

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

#define EXPECT_SAYS(statement, words)                       \
  do {                                                      \
    const std::string said = message([&] { statement; });   \
    EXPECT_NE(said.find(words), std::string::npos) << said; \
  } while (false)
