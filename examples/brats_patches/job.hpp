// SPDX-License-Identifier: Apache-2.0
// Patches of four MRI channels with three overlapping target regions, on the CPU or a GPU.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "common/gpu.hpp"
#include "common/planned_patch.hpp"
#include "common/volume.hpp"
#include "suture/recipe/monai_brats.hpp"
#include "suture/suture.hpp"

namespace suture::examples {

inline constexpr std::int64_t brats_channels = 4, brats_targets = 3;  // T1, T1C, T2, FLAIR; core, whole, enhancing

// One patient; patch i of the job has the persistent id i.
struct brats_job {
  volume<float> images;  // four channels, one after the other
  label_volume labels;
  regions targets = brats_regions_1_2_3;
  extent3 patch{96, 96, 96};
  std::int64_t count = 12, batch_size = 4;
  int threads = 0;
  std::uint64_t seed = 7;
  std::uint32_t epoch = 0;
  bool evaluation = false;

  std::size_t voxels() const { return static_cast<std::size_t>(patch[0] * patch[1] * patch[2]); }
};

// All patches, dense (patch, channel, z, y, x), and where each was taken.
struct brats_patches {
  std::vector<grid> grids, places;
  std::vector<half> images;
  std::vector<std::uint8_t> targets;
  double seconds = 0;  // of the runs alone
  std::size_t workspace_bytes = 0;
  int stages = 0;
  std::string device;
};

brats_patches brats_on_cpu(const brats_job& j);
brats_patches brats_on_cuda(const brats_job& j);

// Runs the job in batches. make(plan, images, labels, image_out, target_out) runs one of them, on views of `images` and
// `labels` as often as it has samples, and brings its results to image_out and target_out.
template <class Make>
brats_patches run_job(const brats_job& j, const float* images, const std::uint8_t* labels, const Make& make) {
  brats_patches made;
  made.images.resize(static_cast<std::size_t>(j.count * brats_channels) * j.voxels());
  made.targets.resize(static_cast<std::size_t>(j.count * brats_targets) * j.voxels());
  for (std::int64_t first = 0; first < j.count; first += j.batch_size) {
    const auto n = static_cast<std::size_t>(std::min(j.batch_size, j.count - first));
    const std::vector in(n, contiguous(images, j.images.grid, brats_channels));
    const std::vector seg(n, contiguous(labels, j.labels.grid));
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < n; ++i) ids.push_back(static_cast<std::uint64_t>(first) + i);
    const auto planned = plan(monai_brats(j.patch) | cast<suture::half>{}, in,
                              {.seed = j.seed, .epoch = j.epoch, .sample_ids = ids, .evaluation = j.evaluation});
    for (std::size_t i = 0; i < n; ++i) {
      made.grids.push_back(planned.output_grid(i));
      made.places.push_back(place_of(planned, i));
    }
    made.stages = planned.stages();
    make(planned, in, seg, made, static_cast<std::size_t>(first * brats_channels) * j.voxels(),
         static_cast<std::size_t>(first * brats_targets) * j.voxels());
  }
  return made;
}

}  // namespace suture::examples
