// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"
#include "job.hpp"

namespace suture::examples {

brats_patches brats_on_cpu(const brats_job& j) {
  brats_patches result = run_job(
      j, j.images.voxels.data(), j.labels.voxels.data(),
      [&](const auto& planned, const auto& in, const auto& seg, brats_patches& made, std::size_t at, std::size_t to) {
        const auto grids = planned.output_grids();
        const auto patches = batch_views(made.images.data() + at, grids, brats_channels);
        const auto targets = batch_views(made.targets.data() + to, grids, brats_targets);
        const auto images = image(in, patches);
        const auto labelled = labels(seg, targets, j.targets);
        made.workspace_bytes = std::max(made.workspace_bytes, workspace_bytes(planned, images, labelled));
        made.seconds += seconds_of([&] { run(cpu{.threads = j.threads}, planned, images, labelled); });
      });
  result.device = cpu_description(j.threads);
  return result;
}

#if !defined(SUTURE_EXAMPLE_CUDA)
brats_patches brats_on_cuda(const brats_job&) { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
