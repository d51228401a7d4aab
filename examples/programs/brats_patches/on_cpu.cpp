// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"
#include "job.hpp"

namespace suture::examples {

brats_statistics brats_on_cpu(const brats_job& j, const brats_use& use) {
  brats_statistics result =
      run_job(j, j.images.voxels.data(), j.labels.voxels.data(), use,
              [&](const auto& planned, const auto& in, const auto& seg, brats_patches& made, brats_statistics& spent) {
                const auto patches = batch_views(made.images.data(), made.grids, brats_channels);
                const auto targets = batch_views(made.targets.data(), made.grids, brats_targets);
                const auto images = image(in, patches);
                const auto labeled = labels(seg, targets, j.targets);
                spent.workspace_bytes = std::max(spent.workspace_bytes, workspace_bytes(planned, images, labeled));
                spent.seconds += seconds_of([&] { run(cpu{.threads = j.threads}, planned, images, labeled); });
              });
  result.device = cpu_description(j.threads);
  return result;
}

#if !defined(SUTURE_EXAMPLE_CUDA)
brats_statistics brats_on_cuda(const brats_job&, const brats_use&) { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
