// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "common/whole_file.hpp"
#include "suture/image/digest.hpp"

namespace suture::examples {
namespace {

namespace fs = std::filesystem;

std::uint64_t digest_of(std::string_view bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
    sum += digest_term(i, word);
  }
  return mix64(sum + bytes.size());
}

}  // namespace

folder_lock::folder_lock(const fs::path& folder) {
  const fs::path path = folder / ".lock";
  file_ = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  require(file_ >= 0, site{"--out"}, path.string(), ": cannot be made: ", std::strerror(errno));
  if (flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  close(file_);
  fail(site{"--out"}, folder.string(), ": ",
       reason == EWOULDBLOCK ? "another run is at work there" : std::strerror(reason));
}

folder_lock::~folder_lock() { close(file_); }

std::string file_digest(const fs::path& path) {
  const site here{"input"};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  require(file.good(), here, path.string(), ": cannot be read: ", std::strerror(errno));
  std::vector<char> piece(std::size_t{1} << 22);
  std::uint64_t sum = 0, size = 0;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto got = static_cast<std::size_t>(file.gcount());
    if (got == 0) break;
    sum = combine_digest(sum, size, digest_of({piece.data(), got}));
    size += got;
  }
  require(file.eof(), here, path.string(), ": cannot be read: ", std::strerror(errno));
  return hexadecimal(mix64(sum + size));
}

std::string key_of(const report& document) { return hexadecimal(digest_of(document.dump())); }

std::optional<report> find_record(const fs::path& folder, const fs::path& record, const std::string& key) {
  try {
    std::ifstream file(record);
    if (!file.good()) return {};
    report content = report::parse(file);
    if (content.at("key") != key) return {};
    if (content.contains("files"))
      for (const auto& [name, bytes] : content.at("files").items())
        if (bytes != fs::file_size(folder / name)) return {};
    return content;
  } catch (const std::exception&) {  // damaged, or files that are gone: as if there were none
    return {};
  }
}

void write_record(const fs::path& record, const report& content) {
  write_whole({"record"}, record, content.dump() + '\n');
}

}  // namespace suture::examples
