// SPDX-License-Identifier: Apache-2.0
// A flag of our own on a command line that is otherwise Google Benchmark's.
#pragma once

#include <algorithm>
#include <string_view>

namespace bench {

// Whether it was given; taken off the command line.
inline bool take_flag(int& argc, char** argv, std::string_view flag) {
  char** const end = std::remove_if(argv + 1, argv + argc, [&](const char* argument) { return argument == flag; });
  const bool given = end != argv + argc;
  argc = static_cast<int>(end - argv);
  return given;
}

}  // namespace bench
