// SPDX-License-Identifier: Apache-2.0
// Class-balanced patches of several volumes at one spacing, which docs/operations.md points to, for either executor.
#pragma once

#include <suture/suture.hpp>

#include <vector>

namespace support {

// clang-format off
// A case that stays where the executor reads it, and what is kept of its labels on the host.
struct training_case {
  suture::view<const std::int16_t> ct;
  suture::view<const std::uint8_t> seg;
  suture::class_index classes;
};

// One step: a patch for each id of the batch, of whatever cases these are of, at 1 mm. An id is that of a patch,
// patches per case * case + patch.
template <class Executor>
void training_step(const Executor& exec, std::span<const training_case> cases, std::uint64_t patches_per_case,
                   std::span<const std::uint64_t> ids, std::uint32_t epoch, const suture::extent3& size,
                   suture::half* images, std::uint8_t* targets) {
  std::vector<suture::view<const std::int16_t>> ct;
  std::vector<suture::view<const std::uint8_t>> seg;
  std::vector<const suture::class_index*> classes;
  for (const std::uint64_t id : ids) {
    const training_case& c = cases[id / patches_per_case];
    ct.push_back(c.ct);
    seg.push_back(c.seg);
    classes.push_back(&c.classes);
  }
  // [chain]
  const float ratios[] = {1, 2, 2};  // background, organ, lesion
  const auto train = suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = {1, 1, 1}} |
                     suture::pad_to{.size = size} |
                     suture::crop_by_class{.rule = suture::class_balanced_patch{.size = size, .ratios = ratios},
                                           .cases = classes} |
                     suture::random_affine{.rotate_deg = 15} | suture::random_flip{} |
                     suture::random_gamma{.range = {.7f, 1.5f}} | suture::cast<suture::half>{};
  // [/chain]
  const auto plan = suture::plan(train, ct, {.seed = 42, .epoch = epoch, .sample_ids = ids});
  const std::vector<suture::grid> grids = plan.output_grids();
  suture::run(exec, plan, suture::image(ct, suture::batch_views(images, grids)),
              suture::labels(seg, suture::batch_views(targets, grids)));
}
// clang-format on

}  // namespace support
