// SPDX-License-Identifier: Apache-2.0
// The result of an example as JSON: a file to keep, and one line as the last of standard output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace suture::examples {

// Keys keep the order they were given in.
using report = nlohmann::ordered_json;

// 16 hexadecimal digits: JSON numbers do not carry 64 bits everywhere.
std::string hexadecimal(std::uint64_t digest);

// Throws suture::error if a file cannot be made there; makes the folder.
void require_writable_folder(const std::filesystem::path& folder);

// Writes the file whole or not at all, then prints the report in one line on standard output.
void write_report(const std::filesystem::path& path, const report& result);

}  // namespace suture::examples
