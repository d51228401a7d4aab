// SPDX-License-Identifier: Apache-2.0
// What tells a run how far earlier runs came. A record is a JSON file that is written when everything it speaks of is
// on the disk; its key is a digest of all that the result depends on, so that a record of other settings, other input
// or another version is no record.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "common/report.hpp"

namespace suture::examples {

// A digest of the bytes of a file. Throws suture::error naming the file if it cannot be read.
std::string file_digest(const std::filesystem::path& path);

// A digest of the text of a document.
std::string key_of(const report& document);

// The files that may be made of a case, relative to --out: labels, image, contact sheet.
std::array<std::string, 3> result_names(const std::string& name);

// What lies where a record would: the record, or why it is none, or nothing.
struct found_record {
  std::optional<report> content;
  std::string damage;
};
// Of a case whose results are finished; of the fingerprint of a case.
found_record read_case_record(const std::filesystem::path& path, const std::string& name);
found_record read_fingerprint_record(const std::filesystem::path& path, const std::string& name);

// Replaces a record, and nothing else: a file of its name that is no record is set aside as NAME.damaged.
void write_record(const std::filesystem::path& path, const report& content, const found_record& there);

}  // namespace suture::examples
