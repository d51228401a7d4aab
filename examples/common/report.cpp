// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "suture/base/error.hpp"
#include "whole_file.hpp"

namespace suture::examples {
namespace {
constexpr site here{"output"};
namespace fs = std::filesystem;
}  // namespace

std::string hexadecimal(std::uint64_t digest) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

void require_writable_folder(const fs::path& folder) {
  std::error_code status;
  fs::create_directories(folder, status);
  require(!status, here, folder.string(), ": the folder cannot be made: ", status.message());
  require(fs::is_directory(folder), here, folder.string(), ": is not a folder");
  const fs::path probe = folder / (".probe" + std::to_string(getpid()));
  errno = 0;
  const bool ok = std::ofstream(probe).good();
  const int reason = errno;
  fs::remove(probe, status);
  require(ok, here, folder.string(), ": cannot be written: ", std::strerror(reason));
}

void write_report(const fs::path& path, const report& result) {
  write_whole(here, path, result.dump(2) + '\n');
  std::cout << result.dump() << std::endl;
}

}  // namespace suture::examples
