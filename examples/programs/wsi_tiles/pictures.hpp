// SPDX-License-Identifier: Apache-2.0
// PNGs to look at: where on a slide the tiles lie, and what was done to some of them.
#pragma once

#include "tiles.hpp"

namespace suture::examples {

// The thumbnail with a scale, the outline of the tissue and every tile: gray those listed, green those used, dashed in
// red those left out as blank or blurred.
void write_overview(const std::filesystem::path& path, const listed_slide& shown);

struct sheet_entry {
  std::string caption;
  rgb_image original, normalized, augmented;
  std::vector<std::uint8_t> labels;  // of `augmented`
};

// Two entries to a row: as scanned, normalized, augmented, and the last with its labels painted over it. `tile_width`
// is in micrometers.
void write_sheet(const std::filesystem::path& path, const std::string& title,
                 const std::vector<std::string>& label_names, const std::vector<sheet_entry>& entries,
                 double tile_width);

// The middle of a tile that was read with a margin, at the size of the recipe: linear interpolation.
rgb_image plain(const read_tile& t, const recipe& r);

// Tile `i` of a batch as a picture.
rgb_image picture_of(const batch& from, std::size_t i, std::int64_t size);

}  // namespace suture::examples
