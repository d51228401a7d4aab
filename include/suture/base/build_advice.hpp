// SPDX-License-Identifier: Apache-2.0
// Tells whether a file was compiled for speed. Results do not depend on it, so nothing else would show it.
#pragma once

#include <string>

#include "config.hpp"

namespace suture {

// Lists what slows down CPU runs in the calling file, one sentence a line, with the missing compiler flags; empty when
// nothing does. The function is static because each file may be compiled with other flags.
static inline std::string build_advice() {
  std::string advice;
  [[maybe_unused]] const auto add = [&](const char* sentence) {
    if (!advice.empty()) advice += '\n';
    advice += sentence;
  };
#if (defined(__GNUC__) || defined(__clang__)) && !defined(__OPTIMIZE__)
  add("suture: compiled without optimization, which makes the CPU more than ten times slower; add -O3");
#endif
#if (defined(__x86_64__) || defined(__i386__)) && !defined(__FMA__)
  add("suture: compiled without hardware fma, which makes the CPU about ten times slower; add -march=x86-64-v3 or "
      "newer");
#endif
#if !defined(_OPENMP)
  add("suture: compiled without OpenMP, so the CPU runs one thread; add -fopenmp, to the linker's flags as well");
#endif
  return advice;
}

}  // namespace suture
