// SPDX-License-Identifier: Apache-2.0
// Functions of a request that compute grids of patches, weights of windows and lists of tiles of slides. The caller
// does not know the number of starts or tiles before: a first request with only the first result gets it, and a second
// request has memory for all results.
#pragma once

#include "../patch/patch_grid.hpp"
#include "../patch/tile_list.hpp"
#include "reader.hpp"

namespace suture::abi {

namespace detail {

// Writes the number of starts along z, y and x, and then the starts, unless the request has no further results.
inline void write_starts(reader& r, const patch_grid& grid) {
  const auto counts = r.result<std::int64_t>("counts", 3);
  const bool sizes_alone = r.results_left() == 0;  // a first request
  for (int k = 0; k < 3; ++k) {
    counts[static_cast<std::size_t>(k)] = grid.along(k);
    if (sizes_alone) continue;
    const auto starts = r.result<std::int64_t>("starts", grid.along(k));
    std::copy(grid.starts[k].begin(), grid.starts[k].end(), starts.begin());
  }
  r.finish();
}

}  // namespace detail

// Computes the patch grid of a volume. Numbers: extents of the volume, size of a patch, overlap. Results: those of
// write_starts.
inline void dense_patch_grid(const request& given) {
  reader r(given, "dense_patch_grid");
  const auto image = r.next<extent3>("image");
  const auto size = r.next<extent3>("size");
  const auto overlap = r.next<point3>("overlap");
  detail::write_starts(r, suture::dense_patch_grid(image, size, overlap));
}

// Computes the grid of a sliding window. Numbers: extents of the volume, size of a patch, step. Results: those of
// write_starts.
inline void sliding_window_grid(const request& given) {
  reader r(given, "sliding_window_grid");
  const auto image = r.next<extent3>("image");
  const auto size = r.next<extent3>("size");
  const auto step = r.next<double>("step");
  detail::write_starts(r, suture::sliding_window_grid(image, size, step));
}

enum class window_kind { constant, gaussian, nnunet };

inline patch_window window_of(window_kind kind, const extent3& size) {
  switch (kind) {
    case window_kind::gaussian:
      return gaussian_window(size);
    case window_kind::nnunet:
      return sliding_window_gaussian(size);
    default:
      return constant_window(size);
  }
}

// Computes the weights of a window, the product of one weight along each axis. Numbers: kind, size. Results: the
// weights along z, y and x; the least weight.
inline void window_weights(const request& given) {
  reader r(given, "sliding_window");
  const auto kind = r.next<window_kind>("window");
  const auto size = r.next<extent3>("size");
  for (int k = 0; k < 3; ++k)
    require(size[k] > 0 && size[k] <= (std::int64_t{1} << 21), r.where(), "size: expected 1 to 2097152, got ", size);
  const patch_window window = window_of(kind, size);
  for (int k = 0; k < 3; ++k)
    std::copy(window.weight[k].begin(), window.weight[k].end(), r.result<float>("weights", size[k]).begin());
  r.result<float>("least", 1)[0] = window.least;
  r.finish();
}

namespace detail {

template <class T>
view<T> one(const std::vector<view<T>>& views, const reader& r, std::string_view parameter) {
  require(views.size() == 1, r.where(), parameter, ": expected one array, got ", views.size());
  return views[0];
}

struct slide_and_mask {
  slide_layout slide;
  tile_options options;
  mask_area tissue;
};

// Reads a slide with its tissue mask. Numbers: micrometers per pixel of level 0, then the options. List: levels. Input:
// the mask.
inline slide_and_mask read_slide(reader& r) {
  slide_layout slide{{}, r.next<double>("mpp of the slide")};
  const auto levels = r.list<slide_level>("levels");
  slide.levels.assign(levels.begin(), levels.end());
  tile_options options;
  options.size = r.next<std::int64_t>("size");
  options.stride = r.next<std::int64_t>("stride");
  options.mpp = r.next<double>("mpp");
  options.least_tissue = r.next<double>("least_tissue");
  options.partial = r.next<bool>("partial");
  mask_area tissue(slide, one(r.input<std::uint8_t>("mask"), r, "mask"));
  return {std::move(slide), options, std::move(tissue)};
}

// Writes the number of tiles, and then the tiles, unless the request has no further result.
inline void write_tiles(reader& r, const std::vector<slide_tile>& tiles) {
  const auto count = static_cast<std::int64_t>(tiles.size());
  r.result<std::int64_t>("count", 1)[0] = count;
  if (r.results_left() > 0) std::copy(tiles.begin(), tiles.end(), r.result<slide_tile>("tiles", count).begin());
  r.finish();
}

}  // namespace detail

// Lists the tiles of a grid. The request has what read_slide reads. Results: those of write_tiles.
inline void grid_tiles(const request& given) {
  reader r(given, "grid_tiles");
  const detail::slide_and_mask s = detail::read_slide(r);
  detail::write_tiles(r, suture::grid_tiles(s.slide, s.tissue, s.options));
}

// Draws tiles from the tissue of a slide. The request has what read_slide reads, then the number of tiles to draw. Its
// one id is that of the slide. Results: those of write_tiles.
inline void random_tiles(const request& given) {
  reader r(given, "random_tiles");
  const detail::slide_and_mask s = detail::read_slide(r);
  const auto count = r.next<std::int64_t>("count");
  require(r.ids().size() == 1, r.where(), "slide_id: expected one, got ", r.ids().size());
  detail::write_tiles(r,
                      suture::random_tiles(s.slide, s.tissue, s.options, {given.seed, given.epoch, r.ids()[0], count}));
}

}  // namespace suture::abi
