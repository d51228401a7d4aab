// SPDX-License-Identifier: Apache-2.0
// Patches of four MRI channels with three overlapping target regions, on the CPU or a GPU.
#pragma once

#include <algorithm>
#include <functional>
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

// Some patches that follow each other, dense (patch, channel, z, y, x), and where each was taken.
struct brats_patches {
  std::size_t first = 0;
  std::vector<grid> grids, places;
  std::vector<half> images;
  std::vector<std::uint8_t> targets;
};

struct brats_statistics {
  double seconds = 0;  // of the runs alone
  std::size_t workspace_bytes = 0;
  int stages = 0;
  std::string device;
};

// Makes the patches of a job and hands them to `use`, batch by batch: there is memory for one batch, whatever the
// count.
using brats_use = std::function<void(const brats_patches&)>;
brats_statistics brats_on_cpu(const brats_job& j, const brats_use& use);
brats_statistics brats_on_cuda(const brats_job& j, const brats_use& use);

// Runs the job in batches. make(plan, images, labels, made, spent) runs one of them, on views of `images` and `labels`
// as often as it has samples, and brings its results to `made`.
template <class Make>
brats_statistics run_job(const brats_job& j, const float* images, const std::uint8_t* labels, const brats_use& use,
                         const Make& make) {
  brats_statistics spent;
  brats_patches made;
  for (std::int64_t first = 0; first < j.count; first += j.batch_size) {
    const auto n = static_cast<std::size_t>(std::min(j.batch_size, j.count - first));
    const std::vector in(n, contiguous(images, j.images.grid, brats_channels));
    const std::vector seg(n, contiguous(labels, j.labels.grid));
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < n; ++i) ids.push_back(static_cast<std::uint64_t>(first) + i);
    const auto planned = plan(monai_brats(j.patch) | cast<suture::half>{}, in,
                              {.seed = j.seed, .epoch = j.epoch, .sample_ids = ids, .evaluation = j.evaluation});
    made.first = static_cast<std::size_t>(first);
    made.grids = planned.output_grids();
    made.places.clear();
    for (std::size_t i = 0; i < n; ++i) made.places.push_back(place_of(planned, i));
    made.images.resize(n * brats_channels * j.voxels());
    made.targets.resize(n * brats_targets * j.voxels());
    spent.stages = planned.stages();
    make(planned, in, seg, made, spent);
    use(made);
  }
  return spent;
}

}  // namespace suture::examples
