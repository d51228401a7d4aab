// SPDX-License-Identifier: Apache-2.0
// What tells a run how far earlier runs came. A record is a JSON file that is written when everything it speaks of is
// on the disk; its key is a digest of all that the result depends on, so that a record of other settings, other input
// or another version is no record.
#pragma once

#include <optional>

#include "cohort.hpp"
#include "common/report.hpp"

namespace suture::examples {

// One run at a time in a folder: throws suture::error where another is at work. Ends with the object or the program.
class folder_lock {
public:
  explicit folder_lock(const std::filesystem::path& folder);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

private:
  int file_;
};

// A digest of the bytes of a file. Throws suture::error naming the file if it cannot be read.
std::string file_digest(const std::filesystem::path& path);

// A digest of the text of a document.
std::string key_of(const report& document);

// The record in the file, if it is whole, has this key, and the files it lists under "files" (name below `folder`:
// bytes) are there and have their size.
std::optional<report> find_record(const std::filesystem::path& folder, const std::filesystem::path& record,
                                  const std::string& key);

void write_record(const std::filesystem::path& record, const report& content);

}  // namespace suture::examples
