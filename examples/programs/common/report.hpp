// SPDX-License-Identifier: Apache-2.0
// The result of an example as JSON: a file to keep, and one line as the last of standard output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "suture/base/error.hpp"

namespace suture::examples {

// Keys keep the order they were given in.
using report = nlohmann::ordered_json;

// 16 hexadecimal digits: JSON numbers do not carry 64 bits everywhere.
std::string hexadecimal(std::uint64_t digest);

// Makes the folder, if it is not there. Throws suture::error if it cannot be made, or is none.
void make_folder(const std::filesystem::path& folder);
// The same, and throws suture::error if a file cannot be made there.
void require_writable_folder(const std::filesystem::path& folder);

// A JSON file, of bounded depth. Throws suture::error naming the file if it cannot be read or is none.
report read_report(const site& where, const std::filesystem::path& path);

// A text in which each byte that is not UTF-8, as the name of a file may have, is U+FFFD.
std::string as_utf8(const std::string& text);

// Writes the file whole or not at all, then prints the report in one line on standard output, its texts as UTF-8.
void write_report(const std::filesystem::path& path, const report& result);

}  // namespace suture::examples
