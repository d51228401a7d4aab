// SPDX-License-Identifier: Apache-2.0
// Files that are there whole or not at all, even if the program or the machine stops at any moment.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "suture/base/error.hpp"

namespace suture::examples {

// Has `write` fill a file of a temporary name in the same folder, brings that file to the disk and gives it its name.
// `write` returns nothing, or the reason why it could not. Throws suture::error naming the file and the reason; then
// nothing is left and a file that had the name before is untouched.
using file_writer = std::function<std::string(const std::filesystem::path& temporary)>;
void write_whole(const site& where, const std::filesystem::path& path, const file_writer& write);
void write_whole(const site& where, const std::filesystem::path& path, std::string_view text);

// Removes the temporary files that killed runs left in a folder. No run may be at work there.
void remove_unfinished(const std::filesystem::path& folder);

// Removes a file, if it is there, for good: not to come back when the machine stops.
void remove_whole(const std::filesystem::path& path);

}  // namespace suture::examples
