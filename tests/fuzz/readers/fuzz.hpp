// SPDX-License-Identifier: Apache-2.0
// What the harnesses of libFuzzer share. A reader may throw suture::error; whatever else happens is a finding.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "suture/base/error.hpp"

namespace fuzz {

// Bytes as a file, without a disk.
class memory_file {
public:
  memory_file(const std::uint8_t* data, std::size_t size) : file_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (file_ < 0 || write(file_, data, size) != static_cast<ssize_t>(size)) {
      std::perror("memory_file");
      std::abort();
    }
  }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() { close(file_); }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

private:
  int file_;
};

// What must hold of whatever was accepted.
inline void must_hold(bool holds, const char* sentence) {
  if (holds) return;
  std::fprintf(stderr, "property violated: %s\n", sentence);
  std::abort();
}

// Calls f, which may refuse its input; whether it did not.
template <class F>
bool accepted(const F& f) {
  try {
    f();
    return true;
  } catch (const suture::error&) {
    return false;
  }
}

}  // namespace fuzz
