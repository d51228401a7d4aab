// SPDX-License-Identifier: Apache-2.0
// From a slide to the tiles worth reading, and the thread that reads them.
#pragma once

#include <exception>
#include <optional>
#include <thread>

#include "backend.hpp"
#include "common/bounded_queue.hpp"
#include "common/slide.hpp"

namespace suture::examples {

struct listing {
  std::int64_t size = 256;  // pixels of a tile at mpp
  std::int64_t stride = 0;  // between tiles; 0: the size
  double mpp = 0.5;
  double least_tissue = 0.5;
  bool whole = false;  // pictures that are tiles already: everything is tissue
  std::uint64_t seed = 0;
};

// A slide with its tissue and its tiles.
struct listed_slide {
  std::unique_ptr<slide> image;
  bool whole = false;      // a picture, see listing
  std::size_t number = 0;  // among those asked for: sample ids are 2^32 number + tile
  rgb_image thumbnail;
  std::vector<std::uint8_t> mask;  // of the thumbnail's pixels
  std::int32_t threshold = -1;     // gray level, as Otsu found it
  std::vector<slide_tile> tiles;   // a grid, as far as there is tissue
  std::vector<std::size_t> order;  // in which they are taken, drawn once per slide
  stain_basis stains{};
  // What became of the tiles that were read.
  std::vector<std::size_t> good, blank, blurred;
  std::string problem;  // why it was given up, if it was
};

// Thumbnail, tissue, grid and order. Throws suture::error where the slide is damaged or no tile fits.
listed_slide list_tiles(std::unique_ptr<slide> image, std::size_t number, const listing& how);

// The tile without its margin, for fits; and with it, for the pipeline: glass beyond a slide, beyond a picture its
// mirror image.
rgb_image read_plain(const listed_slide& from, std::size_t tile);
read_tile read_with_margin(const listed_slide& from, std::size_t tile, const recipe& r);

// Whether a tile is worth keeping, by the part without the margin.
tile_quality quality_of_tile(const read_tile& t, const recipe& r);

// Reads batches on a thread of its own while others are worked on: tile 0 of every slide, then tile 1, and so on, up to
// `count` in all. Blank and blurred tiles are left out. A slide that turns out damaged is given up; the others go on.
class tile_reader {
public:
  tile_reader(std::vector<listed_slide>& slides, const recipe& r, std::size_t count, std::size_t batch_size);
  ~tile_reader();
  tile_reader(const tile_reader&) = delete;
  tile_reader& operator=(const tile_reader&) = delete;

  // The next batch; none after the last. What went wrong elsewhere than in a slide is thrown here.
  std::optional<std::vector<read_tile>> next();
  // Of reading, and of waiting for it.
  double seconds_reading() const { return reading_; }
  double seconds_waiting() const { return waiting_; }

private:
  void read(std::vector<listed_slide>& slides, const recipe& r, std::size_t count, std::size_t batch_size);

  bounded_queue<std::vector<read_tile>> queue_{2};
  std::exception_ptr problem_;
  double reading_ = 0, waiting_ = 0;
  std::thread thread_;
};

}  // namespace suture::examples
