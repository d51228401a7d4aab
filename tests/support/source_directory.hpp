// SPDX-License-Identifier: Apache-2.0
// Where this repository lies. The path is compiled into one file of the build (cmake/testing.cmake), so that the object
// files of tests are the same in every clone.
#pragma once

#include <filesystem>

namespace support {
std::filesystem::path source_directory();
}
