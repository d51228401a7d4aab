// SPDX-License-Identifier: Apache-2.0
// A batch, planned and run: what the CPU and the GPU have in common.
#pragma once

#include "backend.hpp"

namespace suture::examples {

// `stains`: one for each tile, where the executor finds them, as it does the pixels and labels of a tile at
// pixels_of(tile) and labels_of(tile), which are asked in turn. run(plan, images, labels, grids, made) makes the tiles
// of `made`.
template <class PixelsOf, class LabelsOf, class Run>
batch make_batch(const recipe& r, const std::vector<read_tile>& tiles, std::span<const stain_basis> stains,
                 const draw_options& draw, const PixelsOf& pixels_of, const LabelsOf& labels_of, const Run& run) {
  std::vector<view<const std::uint8_t>> images, labels;
  std::vector<std::uint64_t> ids;
  for (const read_tile& t : tiles) {
    images.push_back(t.pixels.view_of(t.spacing_mm));
    images.back().data = pixels_of(t);
    labels.push_back(contiguous(labels_of(t), images.back().grid));
    ids.push_back(t.id);
  }
  const auto plan =
      suture::plan(make_pipeline(r, stains), images,
                   {.seed = draw.seed, .epoch = draw.epoch, .sample_ids = ids, .evaluation = draw.evaluation});
  batch made;
  const std::size_t pixels = tiles.size() * static_cast<std::size_t>(r.size * r.size);
  made.images.resize(3 * pixels);
  made.labels.resize(pixels);
  run(plan, images, labels, plan.output_grids(), made);
  return made;
}

}  // namespace suture::examples
