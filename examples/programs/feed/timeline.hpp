// SPDX-License-Identifier: Apache-2.0
// A picture of what a feed did when: a lane for each kind of work, a bar in it for each batch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "suture/feed/feed.hpp"

namespace suture::examples {

// Throws suture::error if the file cannot be written.
void write_timeline(const std::filesystem::path& path, const std::string& title,
                    const std::vector<feed_times>& batches);

}  // namespace suture::examples
