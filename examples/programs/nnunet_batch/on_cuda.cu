// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "common/device.cuh"
#include "job.hpp"

namespace suture::examples {
namespace {

constexpr std::string_view here = "nnunet_batch";

// The work of a batch, captured once: what is drawn for each batch is uploaded ahead of the launch.
class captured_batch {
public:
  template <class Run>
  captured_batch(cudaStream_t stream, const Run& run) {
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), here);
    run();
    check_cuda(cudaStreamEndCapture(stream, &graph), here);
    check_cuda(cudaGraphInstantiate(&ready_, graph, 0), here);
    check_cuda(cudaGraphDestroy(graph), here);
  }
  captured_batch(const captured_batch&) = delete;
  captured_batch& operator=(const captured_batch&) = delete;
  ~captured_batch() { cudaGraphExecDestroy(ready_); }

  void launch(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(ready_, stream), here); }

private:
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace

nnunet_statistics nnunet_on_cuda(const nnunet_job& j, const nnunet_use& use) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  const std::vector<extent3> sizes = j.target_extents();
  const auto batch = static_cast<std::size_t>(j.batch_size);
  device_buffer<float> image_memory;
  device_buffer<std::int8_t> label_memory;
  device_buffer<suture::half> patch_memory;
  std::vector<device_buffer<std::int8_t>> target_memory(sizes.size());
  cuda_workspace workspace;
  const float* const image_at = image_memory.upload(j.image.voxels);
  const std::int8_t* const labels_at = label_memory.upload(j.labels.voxels);
  suture::half* const patches_at = patch_memory.reserve(batch * voxels_of(sizes[0]));
  std::vector<std::int8_t*> targets_at;
  for (std::size_t level = 0; level < sizes.size(); ++level)
    targets_at.push_back(target_memory[level].reserve(batch * voxels_of(sizes[level])));
  check_cuda(cudaDeviceSynchronize(), here);  // a copy from pageable memory may return before the device has it

  const owned_stream stream;
  std::optional<captured_batch> captured;
  std::size_t captured_for = 0;
  nnunet_statistics result = run_job(
      j, image_at, labels_at, use,
      [&](const auto& planned, const auto& in, const auto& seg, nnunet_patches& made, nnunet_statistics& spent) {
        const nnunet_outputs out(j, made.grids, patches_at, targets_at);
        const auto images = image(in, out.images);
        const auto targets = bind_targets(seg, out);
        if (captured_for != planned.size()) {  // the last batch may be smaller
          captured_for = planned.size();
          spent.workspace_bytes = std::max(spent.workspace_bytes, workspace_bytes(planned, images, targets));
          workspace.reserve(spent.workspace_bytes);
          spent.launches = std::max(spent.launches, count_kernels(stream, [&] {
                                      run(cuda{stream, workspace}, planned, images, targets);
                                    }));
          captured.emplace(stream, [&] { run_loaded(cuda{stream, workspace}, planned, images, targets); });
          ++spent.captures;
        }
        spent.seconds += seconds_of([&] {
          load(cuda{stream, workspace}, planned, images, targets);
          captured->launch(stream);
          stream.wait();
        });
        patch_memory.download(made.images);
        for (std::size_t level = 0; level < sizes.size(); ++level) target_memory[level].download(made.targets[level]);
      });
  result.device = gpu_description();
  return result;
}

}  // namespace suture::examples
