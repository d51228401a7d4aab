// SPDX-License-Identifier: Apache-2.0
#include "common/device.cuh"
#include "job.hpp"

namespace suture::examples {
namespace {
constexpr std::string_view here = "brats_patches";
}

brats_statistics brats_on_cuda(const brats_job& j, const brats_use& use) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  device_buffer<float> image_memory;
  device_buffer<std::uint8_t> label_memory, target_memory;
  device_buffer<suture::half> patch_memory;
  cuda_workspace workspace;
  const float* const images_at = image_memory.upload(j.images.voxels);
  const std::uint8_t* const labels_at = label_memory.upload(j.labels.voxels);
  check_cuda(cudaDeviceSynchronize(), here);  // a copy from pageable memory may return before the device has it

  brats_statistics result =
      run_job(j, images_at, labels_at, use,
              [&](const auto& planned, const auto& in, const auto& seg, brats_patches& made, brats_statistics& spent) {
                const auto patches = batch_views(patch_memory.reserve(made.images.size()), made.grids, brats_channels);
                const auto targets = batch_views(target_memory.reserve(made.targets.size()), made.grids, brats_targets);
                const auto images = image(in, patches);
                const auto labeled = labels(seg, targets, j.targets);
                spent.workspace_bytes = std::max(spent.workspace_bytes, workspace_bytes(planned, images, labeled));
                workspace.reserve(spent.workspace_bytes);
                spent.seconds += seconds_of([&] {
                  run(cuda{cudaStreamPerThread, workspace}, planned, images, labeled);
                  check_cuda(cudaStreamSynchronize(cudaStreamPerThread), here);
                });
                patch_memory.download(made.images);
                target_memory.download(made.targets);
              });
  result.device = gpu_description();
  return result;
}

}  // namespace suture::examples
