// SPDX-License-Identifier: Apache-2.0
// source_directory() returns the folder of this repository. One file of the build has the path (cmake/testing.cmake), so
// that the object files of tests are the same in every clone.
#pragma once

#include <filesystem>

namespace support {
std::filesystem::path source_directory();
}
