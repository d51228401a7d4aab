// SPDX-License-Identifier: Apache-2.0
// A batch, planned and run: what the CPU and the GPU have in common.
#pragma once

#include "backend.hpp"

namespace suture::examples {

// `images` and `labels`: one view for each scan, where the executor finds them. run(plan, images, labels, made) makes
// the patches of `made`, on the views of the scans they come from.
template <class T, class Run>
patches make_batch(const recipe& r, const request& which, const std::vector<view<const T>>& images,
                   const std::vector<view<const std::uint8_t>>& labels, const Run& run) {
  std::vector<view<const T>> from;
  std::vector<view<const std::uint8_t>> labels_from;
  for (const std::size_t scan : which.scans) {
    from.push_back(images[scan]);
    labels_from.push_back(labels[scan]);
  }
  const auto plan =
      suture::plan(make_pipeline(r), from,
                   {.seed = which.seed, .epoch = which.epoch, .sample_ids = which.ids, .evaluation = which.evaluation});

  patches made;
  made.grids = plan.output_grids();
  for (std::size_t i = 0; i < plan.size(); ++i) made.regions.push_back(place_of(plan, i));
  const auto voxels = static_cast<std::size_t>(r.patch[0] * r.patch[1] * r.patch[2]);
  made.images.resize(plan.size() * voxels);
  made.labels.resize(plan.size() * voxels);
  run(plan, from, labels_from, made);
  return made;
}

}  // namespace suture::examples
