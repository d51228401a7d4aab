// SPDX-License-Identifier: Apache-2.0
#include "whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

namespace suture::examples {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view mark = ".part";

// Brings a file, or the names in a folder, to the disk.
bool reaches_disk(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool ok = fsync(file) == 0 || errno == EINVAL;  // a file system without it
  close(file);
  return ok;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

void write_whole(const site& where, const fs::path& path, const file_writer& write) {
  std::error_code status;
  const fs::path temporary = path.string() + std::string(mark) + std::to_string(getpid());
  std::string problem;
  try {
    problem = write(temporary);
    if (problem.empty() && !reaches_disk(temporary)) problem = std::strerror(errno);
    if (problem.empty()) {
      fs::rename(temporary, path, status);
      if (status) problem = status.message();
    }
    if (problem.empty() && !reaches_disk(folder_of(path))) problem = std::strerror(errno);
  } catch (...) {
    fs::remove(temporary, status);
    throw;
  }
  if (problem.empty()) return;
  fs::remove(temporary, status);
  fail(where, path.string(), ": cannot be written: ", problem);
}

void write_whole(const site& where, const fs::path& path, std::string_view text) {
  write_whole(where, path, [&](const fs::path& temporary) -> std::string {
    errno = 0;
    std::ofstream file(temporary, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    return file ? "" : std::strerror(errno);
  });
}

void remove_unfinished(const fs::path& folder) {
  std::error_code status;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const std::string name = entry.path().filename().string();
    const auto at = name.rfind(mark);
    if (at == name.npos || at + mark.size() == name.size()) continue;
    if (name.find_first_not_of("0123456789", at + mark.size()) == name.npos) unfinished.push_back(entry.path());
  }
  for (const fs::path& path : unfinished) fs::remove(path, status);
}

void remove_whole(const fs::path& path) {
  std::error_code status;
  if (fs::remove(path, status)) reaches_disk(folder_of(path));
}

}  // namespace suture::examples
