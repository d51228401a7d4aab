// SPDX-License-Identifier: Apache-2.0
#include "common/device.cuh"
#include "job.hpp"

namespace suture::examples {
namespace {
constexpr std::string_view here = "brats_patches";
}

brats_patches brats_on_cuda(const brats_job& j) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  device_buffer<float> image_memory;
  device_buffer<std::uint8_t> label_memory, target_memory;
  device_buffer<suture::half> patch_memory;
  cuda_workspace workspace;
  const float* const images_at = image_memory.upload(j.images.voxels);
  const std::uint8_t* const labels_at = label_memory.upload(j.labels.voxels);
  check_cuda(cudaDeviceSynchronize(), here);  // a copy from pageable memory may return before the device has it

  brats_patches result = run_job(
      j, images_at, labels_at,
      [&](const auto& planned, const auto& in, const auto& seg, brats_patches& made, std::size_t at, std::size_t to) {
        const auto grids = planned.output_grids();
        const std::size_t patch_count = planned.size() * brats_channels * j.voxels();
        const std::size_t target_count = planned.size() * brats_targets * j.voxels();
        suture::half* const patches_at = patch_memory.reserve(patch_count);
        std::uint8_t* const targets_at = target_memory.reserve(target_count);
        const auto patches = batch_views(patches_at, grids, brats_channels);
        const auto targets = batch_views(targets_at, grids, brats_targets);
        const auto images = image(in, patches);
        const auto labelled = labels(seg, targets, j.targets);
        made.workspace_bytes = std::max(made.workspace_bytes, workspace_bytes(planned, images, labelled));
        workspace.reserve(made.workspace_bytes);
        made.seconds += seconds_of([&] {
          run(cuda{cudaStreamPerThread, workspace}, planned, images, labelled);
          check_cuda(cudaStreamSynchronize(cudaStreamPerThread), here);
        });
        check_cuda(
            cudaMemcpy(made.images.data() + at, patches_at, patch_count * sizeof(suture::half), cudaMemcpyDeviceToHost),
            here);
        check_cuda(cudaMemcpy(made.targets.data() + to, targets_at, target_count, cudaMemcpyDeviceToHost), here);
      });
  result.device = gpu_description();
  return result;
}

}  // namespace suture::examples
