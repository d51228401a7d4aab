// SPDX-License-Identifier: Apache-2.0
// Lists of the tiles of a slide to read: tiles of a grid or at random positions with enough tissue, or tiles around
// pixels of an annotation. Here a tile is a square part of a slide.
#pragma once

#include "../rng/distribution.hpp"
#include "../rng/stream.hpp"
#include "mask_area.hpp"
#include "select_patches.hpp"

namespace suture {

// Tiles are squares of `size` pixels at `mpp`; `stride` pixels at `mpp` lie between neighbors of a grid.
//   stride        0 means `size`, so that tiles touch; with less they overlap
//   least_tissue  share of a tile that must be tissue, 0..1; 0 keeps all tiles
//   partial       whether tiles of a grid may reach beyond the far edges; the reader fills what is outside
struct tile_options {
  std::int64_t size = 256;
  std::int64_t stride = 0;
  double mpp = 0.5;
  double least_tissue = 0.5;
  bool partial = false;
};

// A tile of a list.
//   region  what to read, at the level that level_for_mpp chooses
//   tissue  its share of tissue
struct slide_tile {
  tile_region region;
  double tissue = 0;
};

namespace detail {

// Returns the level-0 pixels of a tile along an axis: floor(size mpp / slide.mpp + 1/2), at least 1.
inline std::int64_t tile_extent(const slide_layout& slide, const tile_options& o) {
  return std::max<std::int64_t>(1, round_half_up(field_of(slide, static_cast<double>(o.size), o.mpp)));
}

inline std::int64_t check_tiles(const slide_layout& slide, const tile_options& o, bool partial, const site& where) {
  check_slide(slide, where);
  check_mpp(o.mpp, where);
  check_tile_size(slide, o.size, o.mpp, where);
  require(o.stride >= 0 && o.stride <= (std::int64_t{1} << 21), where, "stride ", o.stride, " must be in 0..2097152");
  require(o.least_tissue >= 0 && o.least_tissue <= 1, where, "least_tissue ", o.least_tissue, " is not in [0, 1]");
  const std::int64_t extent = tile_extent(slide, o);
  const slide_level& base = slide.levels[0];
  require(partial || (extent <= base.height && extent <= base.width), where, "a tile of ", o.size, " pixels at ", o.mpp,
          " micrometers spans ", extent, " pixels of level 0 and does not fit the slide of ", base.height, " by ",
          base.width);
  return extent;
}

inline std::vector<std::int64_t> starts_of_grid(double step, std::int64_t extent, std::int64_t end, bool partial) {
  std::vector<std::int64_t> starts;
  for (std::int64_t k = 0;; ++k) {
    const auto start = static_cast<std::int64_t>(std::floor(fma(static_cast<double>(k), step, 0.5)));
    if (partial ? start >= end : start + extent > end) return starts;
    starts.push_back(start);
  }
}

// Adds the tile that begins at level-0 pixel (y, x) if it has enough tissue, and returns whether it has.
inline bool add_tile(std::vector<slide_tile>& tiles, const slide_layout& slide, const mask_area& tissue,
                     const tile_options& o, std::int64_t extent, std::int64_t y, std::int64_t x) {
  const double share = tissue.share(y, x, extent, extent);
  if (share < o.least_tissue) return false;
  tiles.push_back({region_at(slide, y, x, o.size, o.mpp), share});
  return true;
}

}  // namespace detail

// Returns the tiles of a grid that have enough tissue, row by row. Tile k along an axis begins at level-0 pixel floor(k
// step + 1/2), where step = stride mpp / slide.mpp, and spans floor(size mpp / slide.mpp + 1/2) of these pixels.
// Errors: those of level_for_mpp; a size that is not positive; a stride below a pixel of level 0; least_tissue outside
// [0, 1]; a tile larger than the slide where not `partial`.
inline std::vector<slide_tile> grid_tiles(const slide_layout& slide, const mask_area& tissue,
                                          const tile_options& options = {}) {
  const std::int64_t extent = detail::check_tiles(slide, options, options.partial, {"grid_tiles"});
  const std::int64_t stride = options.stride > 0 ? options.stride : options.size;
  const double step = detail::field_of(slide, static_cast<double>(stride), options.mpp);
  require(step >= 1, {"grid_tiles"}, "stride ", stride, " at ", options.mpp,
          " micrometers is less than a pixel of level 0");
  const auto ys = detail::starts_of_grid(step, extent, slide.levels[0].height, options.partial);
  const auto xs = detail::starts_of_grid(step, extent, slide.levels[0].width, options.partial);
  std::vector<slide_tile> tiles;
  for (const std::int64_t y : ys)
    for (const std::int64_t x : xs) detail::add_tile(tiles, slide, tissue, options, extent, y, x);
  return tiles;
}

// The random draws of tiles. Each (seed, epoch, slide id) has a stream of random numbers; tile p does not depend on how
// many are drawn.
struct tile_draws {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint64_t slide_id = 0;  // the same in every run of a training, as a sample id
  std::int64_t count = 1;
};

// Returns tiles around positions that are uniform over the tissue; tiles at the edges of the slide are moved inside. If
// a tile has too little tissue, its position is drawn again, with 64 attempts in all. There may therefore be fewer
// tiles than `count`, and none for an empty mask.
//   Attempt a of tile p uses block 64 p + a of the stream: words 0 and 1 for the pixel of the mask, 2 and 3 for the
//   position within it along y and x.
// Errors: those of grid_tiles with `partial` off, a negative count.
inline std::vector<slide_tile> random_tiles(const slide_layout& slide, const mask_area& tissue,
                                            const tile_options& options, const tile_draws& draws) {
  constexpr int attempts = 64;
  const site where{"random_tiles"};
  const std::int64_t extent = detail::check_tiles(slide, options, false, where);
  require(draws.count >= 0 && draws.count <= (std::int64_t{1} << 40), where, "count ", draws.count,
          " must not be negative");
  std::vector<slide_tile> tiles;
  if (tissue.pixels() == 0) return tiles;
  // Purpose 1 of the stream id; select_patches has purpose 0.
  const stream random({draws.seed, draws.epoch, draws.slide_id, detail::patch_kind * 16, 1});
  const slide_level& base = slide.levels[0];
  const auto start = [&](std::int64_t pixel, std::uint32_t word, std::int64_t pixels, std::int64_t length) {
    const double size = static_cast<double>(length) / static_cast<double>(pixels);
    const double place = fma(static_cast<double>(word), 0x1p-32, static_cast<double>(pixel)) * size;
    const std::int64_t at = static_cast<std::int64_t>(place) - extent / 2;
    return std::min(std::max<std::int64_t>(at, 0), length - extent);
  };
  for (std::int64_t p = 0; p < draws.count; ++p)
    for (int a = 0; a < attempts; ++a) {
      const philox_block words = random.block(static_cast<std::uint64_t>(p * attempts + a));
      const std::uint64_t word = (std::uint64_t{words.word[0]} << 32) | words.word[1];
      const auto rank = detail::high_product(word, static_cast<std::uint64_t>(tissue.pixels()));
      const std::int64_t pixel = tissue.ranked(static_cast<std::int64_t>(rank));
      const std::int64_t y = start(pixel / tissue.width(), words.word[2], tissue.height(), base.height);
      const std::int64_t x = start(pixel % tissue.width(), words.word[3], tissue.width(), base.width);
      if (detail::add_tile(tiles, slide, tissue, options, extent, y, x)) break;
    }
  return tiles;
}

// Returns tiles around pixels of an annotation of the thumbnail, for class-balanced sampling. Draw the pixels with
// select_patches, class_balanced_patch{.size = {1, 1, 1}} and label_classes(annotation, n). A tile is centered on its
// pixel and moved inside at the edges of the slide; tiles with too little tissue are left out.
//   extents  {1, h, w} of the annotation, which covers the whole slide
// Choices without a voxel (status `empty` or `anywhere`) give no tile. Errors: those of grid_tiles with `partial` off,
// those of mask_area for the extents, a voxel beyond these.
inline std::vector<slide_tile> tiles_about(const slide_layout& slide, const mask_area& tissue, const extent3& extents,
                                           std::span<const patch_choice> choices, const tile_options& options = {}) {
  const site where{"tiles_about"};
  const std::int64_t extent = detail::check_tiles(slide, options, false, where);
  detail::check_mask_shape(slide, extents, where);
  const slide_level& base = slide.levels[0];
  const auto start = [&](std::int64_t pixel, std::int64_t pixels, std::int64_t length) {
    const std::int64_t middle = (2 * pixel + 1) * length / (2 * pixels);
    return std::min(std::max<std::int64_t>(middle - extent / 2, 0), length - extent);
  };
  std::vector<slide_tile> tiles;
  for (const patch_choice& c : choices) {
    if (c.voxel < 0) continue;
    require(c.voxel < extents[1] * extents[2], where, "pixel ", c.voxel, " is beyond extents ", extents);
    const std::int64_t y = start(c.voxel / extents[2], extents[1], base.height);
    const std::int64_t x = start(c.voxel % extents[2], extents[2], base.width);
    detail::add_tile(tiles, slide, tissue, options, extent, y, x);
  }
  return tiles;
}

}  // namespace suture
