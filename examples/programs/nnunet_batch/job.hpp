// SPDX-License-Identifier: Apache-2.0
// Training batches of nnU-Net from one preprocessed case, with the targets of deep supervision, on the CPU or a GPU.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/gpu.hpp"
#include "common/planned_patch.hpp"
#include "common/volume.hpp"
#include "suture/recipe/nnunet.hpp"
#include "suture/suture.hpp"

namespace suture::examples {

// One case; patch i of the job has the persistent id i.
struct nnunet_job {
  volume<float> image;  // normalized and resampled
  volume<std::int8_t> labels;
  nnunet_shape shape;
  std::vector<point3> scales;  // of the smaller targets
  std::int64_t count = 8, batch_size = 2;
  int threads = 0;
  std::uint64_t seed = 7;
  std::uint32_t epoch = 0;
  bool evaluation = false;

  // The sizes of the targets, that of the patch first.
  std::vector<extent3> target_extents() const {
    std::vector<extent3> all{shape.patch};
    for (const point3& scale : scales) all.push_back(level_extents(shape.patch, scale));
    return all;
  }
};

inline std::size_t voxels_of(const extent3& n) { return static_cast<std::size_t>(n[0] * n[1] * n[2]); }

// Some patches that follow each other, dense (patch, z, y, x), and where each was taken.
struct nnunet_patches {
  std::size_t first = 0;
  std::vector<grid> grids, places;
  std::vector<patch_choice> choices;
  std::vector<half> images;
  std::vector<std::vector<std::int8_t>> targets;  // by size
};

struct nnunet_statistics {
  double seconds = 0;  // of the runs alone
  std::size_t workspace_bytes = 0;
  int stages = 0;
  int launches = 0, captures = 0;  // on a GPU: kernels of a batch, graphs captured for all batches
  std::string device;
};

// Makes the patches of a job and hands them to `use`, batch by batch. Memory is held for one batch, and for the place of
// each patch of the job.
using nnunet_use = std::function<void(const nnunet_patches&)>;
nnunet_statistics nnunet_on_cpu(const nnunet_job& j, const nnunet_use& use);
nnunet_statistics nnunet_on_cuda(const nnunet_job& j, const nnunet_use& use);

// Where the results of one batch go: the memory of who computes, by size of the target.
struct nnunet_outputs {
  std::vector<view<half>> images;
  std::vector<view<std::int8_t>> targets;
  std::vector<std::vector<view<std::int8_t>>> smaller;

  nnunet_outputs(const nnunet_job& j, std::span<const grid> grids, half* images_at,
                 std::span<std::int8_t* const> targets_at)
      : images(batch_views(images_at, grids)), targets(batch_views(targets_at[0], grids)) {
    const std::vector<extent3> sizes = j.target_extents();
    for (std::size_t level = 1; level < sizes.size(); ++level) {
      std::vector<grid> level_grids;
      for (const grid& g : grids) level_grids.push_back(level_grid(g, sizes[level]));
      smaller.push_back(batch_views(targets_at[level], level_grids));
    }
  }
};

// Outside the volume the label is -1; the loss sees background there.
inline auto bind_targets(const std::vector<view<const std::int8_t>>& seg, const nnunet_outputs& out) {
  return labels(seg, out.targets, remap{{{-1, 0}}}, deep_supervision(out.smaller));
}

// Runs the job in batches. make(plan, images, labels, made, spent) runs one of them, on views of `images` and `labels`
// as often as it has samples, and brings its results to `made`.
template <class Make>
nnunet_statistics run_job(const nnunet_job& j, const float* images, const std::int8_t* classes, const nnunet_use& use,
                          const Make& make) {
  const auto count = static_cast<std::size_t>(j.count);
  const std::int32_t highest = *std::max_element(j.labels.voxels.begin(), j.labels.voxels.end());
  const auto labeled = label_classes(contiguous(j.labels.voxels.data(), j.labels.grid), highest + 1);
  std::vector<std::uint64_t> memory(class_counts_bytes(labeled) / sizeof(std::uint64_t));
  const auto counts = std::as_writable_bytes(std::span(memory));
  count_classes(cpu{.threads = j.threads}, labeled, counts);
  const std::uint64_t of_case = 0;
  std::vector<patch_choice> choices(count);
  select_patches(
      cpu{.threads = j.threads}, oversampled_patch{.size = j.shape.enlarged(), .margin = j.shape.margin()}, labeled,
      counts,
      {.seed = j.seed, .epoch = j.epoch, .sample_ids = {&of_case, 1}, .patches = static_cast<std::int32_t>(j.count)},
      choices);
  const std::vector<extent3> starts = patch_starts(choices);
  const std::vector<extent3> sizes = j.target_extents();

  nnunet_statistics spent;
  nnunet_patches made;
  made.targets.resize(sizes.size());
  for (std::size_t first = 0; first < count; first += static_cast<std::size_t>(j.batch_size)) {
    const std::size_t n = std::min(static_cast<std::size_t>(j.batch_size), count - first);
    std::vector<std::uint64_t> ids;
    for (std::size_t i = 0; i < n; ++i) ids.push_back(first + i);
    const std::vector in(n, contiguous(images, j.image.grid));
    const std::vector seg(n, contiguous(classes, j.labels.grid));
    const auto recipe = nnunet_v2_8({.shape = j.shape, .starts = std::span(starts).subspan(first, n)});
    const auto planned = plan(recipe | cast<suture::half>{}, in,
                              {.seed = j.seed, .epoch = j.epoch, .sample_ids = ids, .evaluation = j.evaluation});
    made.first = first;
    made.grids = planned.output_grids();
    made.places.clear();
    for (std::size_t i = 0; i < n; ++i) made.places.push_back(place_of(planned, i));
    made.choices.assign(choices.begin() + static_cast<std::ptrdiff_t>(first),
                        choices.begin() + static_cast<std::ptrdiff_t>(first + n));
    made.images.resize(n * voxels_of(sizes[0]));
    for (std::size_t level = 0; level < sizes.size(); ++level) made.targets[level].resize(n * voxels_of(sizes[level]));
    spent.stages = planned.stages();
    make(planned, in, seg, made, spent);
    use(made);
  }
  return spent;
}

}  // namespace suture::examples
