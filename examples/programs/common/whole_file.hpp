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
// nothing is left and a file that had the name before is untouched. Where an output_folder is open around the file, the
// temporary name is on its list before the file is made.
using file_writer = std::function<std::string(const std::filesystem::path& temporary)>;
void write_whole(const site& where, const std::filesystem::path& path, const file_writer& write);
void write_whole(const site& where, const std::filesystem::path& path, std::string_view text);

// The beginning of every temporary name; random digits and the number of the process follow.
inline constexpr std::string_view unfinished_mark = ".suture-unfinished-";
// Makes an empty file of such a name, and of this ending, in a folder and tells its path, or sets the problem. Nothing
// that was there before is opened.
std::filesystem::path make_unfinished(const std::filesystem::path& folder, std::string& problem,
                                      std::string_view ending = {});

// Throws suture::error saying that the file cannot be opened, and why, where it is no regular file.
void require_file_to_open(const site& where, const std::filesystem::path& path);
// Throws suture::error naming the file where reading it would not come to an end, or not be reading a file: folders,
// pipes, sockets, devices. What is not there at all is for the reader to report.
void require_regular_file(const site& where, const std::filesystem::path& path);
// "a pipe" and so on, of what is there and no regular file; else nothing.
std::string other_than_file(const std::filesystem::path& path);

// Removes a file, if it is there, for good: not to come back when the machine stops.
void remove_whole(const std::filesystem::path& path);
// Brings a file, or the names in a folder, to the disk.
bool reaches_disk(const std::filesystem::path& path);

}  // namespace suture::examples
