// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"
#include "suture/suture.cuh"

namespace suture::examples {
namespace {

constexpr std::string_view here = "brats_patches";

template <class T>
T* upload(cuda_workspace& memory, const std::vector<T>& from) {
  memory.reserve(from.size() * sizeof(T));
  auto* const to = reinterpret_cast<T*>(memory.span().data());
  check_cuda(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), here);
  return to;
}

}  // namespace

brats_patches brats_on_cuda(const brats_job& j) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  cuda_workspace image_memory, label_memory, patch_memory, target_memory, workspace;
  const float* const images_at = upload(image_memory, j.images.voxels);
  const std::uint8_t* const labels_at = upload(label_memory, j.labels.voxels);
  check_cuda(cudaDeviceSynchronize(), here);  // a copy from pageable memory may return before the device has it

  brats_patches result = run_job(
      j, images_at, labels_at,
      [&](const auto& planned, const auto& in, const auto& seg, brats_patches& made, std::size_t at, std::size_t to) {
        const auto grids = planned.output_grids();
        const std::size_t patch_count = planned.size() * brats_channels * j.voxels();
        const std::size_t target_count = planned.size() * brats_targets * j.voxels();
        patch_memory.reserve(patch_count * sizeof(suture::half));
        target_memory.reserve(target_count);
        auto* const patches_at = reinterpret_cast<suture::half*>(patch_memory.span().data());
        auto* const targets_at = reinterpret_cast<std::uint8_t*>(target_memory.span().data());
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
