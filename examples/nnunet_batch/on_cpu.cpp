// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"
#include "job.hpp"

namespace suture::examples {

nnunet_patches nnunet_on_cpu(const nnunet_job& j) {
  const std::vector<extent3> sizes = j.target_extents();
  nnunet_patches result =
      run_job(j, j.image.voxels.data(), j.labels.voxels.data(),
              [&](const auto& planned, const auto& in, const auto& seg, nnunet_patches& made, std::size_t first) {
                std::vector<std::int8_t*> targets_at;
                for (std::size_t level = 0; level < sizes.size(); ++level)
                  targets_at.push_back(made.targets[level].data() + first * voxels_of(sizes[level]));
                const nnunet_outputs out(j, planned.output_grids(), made.images.data() + first * voxels_of(sizes[0]),
                                         targets_at);
                const auto images = image(in, out.images);
                const auto targets = bind_targets(seg, out);
                made.workspace_bytes = std::max(made.workspace_bytes, workspace_bytes(planned, images, targets));
                made.seconds += seconds_of([&] { run(cpu{.threads = j.threads}, planned, images, targets); });
              });
  result.device = cpu_description(j.threads);
  return result;
}

#if !defined(SUTURE_EXAMPLE_CUDA)
nnunet_patches nnunet_on_cuda(const nnunet_job&) { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
