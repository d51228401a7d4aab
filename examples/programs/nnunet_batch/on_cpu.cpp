// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"
#include "job.hpp"

namespace suture::examples {

nnunet_statistics nnunet_on_cpu(const nnunet_job& j, const nnunet_use& use) {
  nnunet_statistics result = run_job(
      j, j.image.voxels.data(), j.labels.voxels.data(), use,
      [&](const auto& planned, const auto& in, const auto& seg, nnunet_patches& made, nnunet_statistics& spent) {
        std::vector<std::int8_t*> targets_at;
        for (auto& targets : made.targets) targets_at.push_back(targets.data());
        const nnunet_outputs out(j, made.grids, made.images.data(), targets_at);
        const auto images = image(in, out.images);
        const auto targets = bind_targets(seg, out);
        spent.workspace_bytes = std::max(spent.workspace_bytes, workspace_bytes(planned, images, targets));
        spent.seconds += seconds_of([&] { run(cpu{.threads = j.threads}, planned, images, targets); });
      });
  result.device = cpu_description(j.threads);
  return result;
}

#if !defined(SUTURE_EXAMPLE_CUDA)
nnunet_statistics nnunet_on_cuda(const nnunet_job&, const nnunet_use&) { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
