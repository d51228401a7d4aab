// SPDX-License-Identifier: Apache-2.0
#include "whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "output_folder.hpp"
#include "report.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

std::string random_digits() {
  std::random_device source;
  return hexadecimal(std::uint64_t{source()} << 32 | source());
}

}  // namespace

bool reaches_disk(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool ok = fsync(file) == 0 || errno == EINVAL;  // a file system without it
  close(file);
  return ok;
}

fs::path make_unfinished(const fs::path& folder, std::string& problem, std::string_view ending) {
  fs::path path;
  do {
    path = folder / std::string(unfinished_mark).append(random_digits()).append("-").append(std::to_string(getpid()));
    path += ending;
    output_folder::list_unfinished(path);
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file >= 0) {
      close(file);
      return path;
    }
  } while (errno == EEXIST);
  problem = std::strerror(errno);
  return path;
}

void write_whole(const site& where, const fs::path& path, const file_writer& write) {
  std::error_code status;
  std::string problem;
  const fs::path temporary = make_unfinished(folder_of(path), problem);
  if (!problem.empty()) fail(where, path.string(), ": cannot be written: ", problem);
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

std::string other_than_file(const fs::path& path) {
  std::error_code status;
  switch (fs::status(path, status).type()) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return {};
  }
}

void require_file_to_open(const site& where, const fs::path& path) {
  std::error_code status;
  if (fs::is_regular_file(path, status)) return;
  const std::string other = other_than_file(path);
  fail(where, path.string(), ": cannot be opened: ", other.empty() ? "there is no such file" : "it is " + other);
}

void require_regular_file(const site& where, const fs::path& path) {
  const std::string other = other_than_file(path);
  require(other.empty(), where, path.string(), ": is ", other, ", not a file");
}

void remove_whole(const fs::path& path) {
  std::error_code status;
  if (fs::remove(path, status)) reaches_disk(folder_of(path));
}

}  // namespace suture::examples
