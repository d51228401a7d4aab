// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"
#include "suture/suture.cuh"

namespace suture::examples {
namespace {

constexpr std::string_view here = "patch_embedding";

template <class T>
class device_array {
public:
  explicit device_array(std::size_t count) : size_(count), memory_(count * sizeof(T)) {}
  explicit device_array(const std::vector<T>& from) : device_array(from.size()) {
    check_cuda(cudaMemcpy(data(), from.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), here);
  }
  T* data() const { return reinterpret_cast<T*>(memory_.span().data()); }
  std::vector<T> host() const {
    std::vector<T> copy(size_);
    check_cuda(cudaMemcpy(copy.data(), data(), size_ * sizeof(T), cudaMemcpyDeviceToHost), here);
    return copy;
  }

private:
  std::size_t size_;
  cuda_workspace memory_;
};

}  // namespace

embedded embed_on_cuda(const job& j) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) fail(site{"backend"}, reason);
  std::vector<device_array<std::int16_t>> memory;
  for (const auto& scan : j.scans) memory.emplace_back(scan.voxels);
  std::vector<view<const std::int16_t>> scans;
  for (std::size_t i = 0; i < static_cast<std::size_t>(j.samples); ++i)
    scans.push_back(contiguous<const std::int16_t>(memory[i % memory.size()].data(), j.scans[i % memory.size()].grid));
  const auto plan = plan_job(j, scans);

  const embedding& e = j.layer;
  const device_array<float> weights(j.weights);
  const device_array<float> fused(j.feature_count());
  const device_array<float> stored(j.feature_count());
  const device_array<half> patches(plan.size() * static_cast<std::size_t>(plan.output_grid(0).voxels()));
  const auto patch_views = batch_views(patches.data(), plan.output_grids());
  const auto pair = image(scans, patch_views);
  embedded made;
  made.workspace_bytes = workspace_bytes(plan, pair);
  const cuda_workspace workspace(made.workspace_bytes);
  const cuda executor{.stream = cudaStreamPerThread, .workspace = workspace};

  const auto embed = [&](const auto& voxels, float* features) {
    const dim3 blocks(static_cast<unsigned>(e.tokens()), static_cast<unsigned>(j.samples));
    const auto shared = static_cast<std::size_t>(e.voxels()) * sizeof(float);
    embed_kernel<<<blocks, 128, shared, executor.stream>>>(voxels, e, weights.data(), features);
    check_cuda(cudaGetLastError(), here);
  };
  const auto timed = [&](const auto& queue) {
    check_cuda(cudaDeviceSynchronize(), here);
    return seconds_of(j.repetitions, [&] {
      queue();
      check_cuda(cudaStreamSynchronize(executor.stream), here);
    });
  };
  made.fused_seconds = timed([&] {
    const auto evaluate = prepare(executor, plan, pair);  // writes nothing to the patches
    embed(evaluate, fused.data());
  });
  made.stored_seconds = timed([&] {
    run(executor, plan, pair);
    embed(stored_patches{patches.data(), e.patch}, stored.data());
  });
  made.fused = fused.host();
  made.stored = stored.host();
  made.patches = patches.host();
  made.device = gpu_description();
  return made;
}

}  // namespace suture::examples
