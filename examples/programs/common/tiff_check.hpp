// SPDX-License-Identifier: Apache-2.0
// What a TIFF says of its own sizes, against what the file holds, before a library trusts it: a file of 400 bytes can
// announce tiles of 33 GB.
#pragma once

#include <cstddef>
#include <filesystem>

namespace suture::examples {

// Checks the first `pages` pages of a TIFF or BigTIFF; other formats pass, and so does Hamamatsu's NDPI, whose offsets
// are not those of a TIFF. Throws suture::error naming the file, the page, what it declares and the value: a page or the
// values of any tag beyond the end of the file, pages in a circle, a width, length or number of samples that is 0, tiles
// or strips too large to be read at once, fewer tiles than the page has, tiles beyond the end of the file.
void check_tiff(const std::filesystem::path& path, std::size_t pages = static_cast<std::size_t>(-1));

}  // namespace suture::examples
