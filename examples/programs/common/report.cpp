// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "suture/base/error.hpp"
#include "suture/replay/json_text.hpp"
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

void make_folder(const fs::path& folder) {
  std::error_code status;
  fs::create_directories(folder, status);
  require(!status, here, folder.string(), ": the folder cannot be made: ", status.message());
  require(fs::is_directory(folder), here, folder.string(), ": is not a folder");
}

void require_writable_folder(const fs::path& folder) {
  make_folder(folder);
  std::error_code status;
  std::string problem;
  const fs::path probe = make_unfinished(folder, problem);
  require(problem.empty(), here, folder.string(), ": cannot be written: ", problem);
  fs::remove(probe, status);
}

report read_report(const site& where, const fs::path& path) {
  require_regular_file(where, path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  require(file.good(), where, path.string(), ": cannot be read: ", std::strerror(errno));
  const std::string named = std::string(where.operation) + ": " + path.string();
  return parse_json(file, site{named});
}

std::string as_utf8(const std::string& text) {
  return report::parse(report(text).dump(-1, ' ', false, report::error_handler_t::replace));
}

void write_report(const fs::path& path, const report& result) {
  constexpr auto replace = report::error_handler_t::replace;  // a sentence may name a file
  write_whole(here, path, result.dump(2, ' ', false, replace) + '\n');
  std::cout << result.dump(-1, ' ', false, replace) << std::endl;
}

}  // namespace suture::examples
