// SPDX-License-Identifier: Apache-2.0
// A file opened for reading at any position, by several threads at once.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "../base/error.hpp"

namespace suture::detail {

// The destructor closes the file. Errors name the file: one that is not regular, cannot be opened or read, or ends
// before the requested bytes.
class input_file {
public:
  // Opens the file. If it does not exist, the constructor throws, or with may_be_missing is_open() returns false.
  explicit input_file(std::string_view reader, std::filesystem::path path, bool may_be_missing = false)
      : reader_(reader), path_(std::move(path)) {
    descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would block until it has a writer
    if (descriptor_ < 0 && may_be_missing && (errno == ENOENT || errno == ENOTDIR)) return;
    if (descriptor_ < 0) refuse("cannot be opened: ", std::strerror(errno));
    struct stat status {};
    const bool known = fstat(descriptor_, &status) == 0;
    if (!known || !S_ISREG(status.st_mode)) {
      close(descriptor_);
      refuse("expected a file, got ", S_ISDIR(status.st_mode) ? "a folder" : "something else");
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  ~input_file() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  bool is_open() const { return descriptor_ >= 0; }
  std::uint64_t size() const { return size_; }

  void read(std::uint64_t offset, void* to, std::size_t bytes) const {
    if (offset > size_ || bytes > size_ - offset)
      refuse("truncated: expected ", bytes, " bytes from byte ", offset, ", the file has ", size_);
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = pread(descriptor_, at, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse("cannot be read: ", std::strerror(errno));
      if (got == 0) refuse("truncated while it was read, at byte ", offset);
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
  }

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail({reader_}, path_.string(), ": ", parts...);
  }

private:
  std::string_view reader_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace suture::detail
