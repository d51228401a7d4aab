// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "common/program.hpp"
#include "job.hpp"

namespace suture::examples {
embedded embed_on_cpu(const job& j) {
  std::vector<view<const std::int16_t>> scans;
  for (std::size_t i = 0; i < static_cast<std::size_t>(j.samples); ++i) {
    const auto& scan = j.scans[i % j.scans.size()];
    scans.push_back(contiguous(scan.voxels.data(), scan.grid));
  }
  const auto plan = plan_job(j, scans);

  embedded made;
  made.fused.resize(j.feature_count());
  made.stored.resize(j.feature_count());
  made.patches.resize(plan.size() * static_cast<std::size_t>(plan.output_grid(0).voxels()));
  const auto patch_views = batch_views(made.patches.data(), plan.output_grids());
  const auto pair = image(scans, patch_views);
  made.workspace_bytes = workspace_bytes(plan, pair);
  const auto release = [](std::byte* p) { ::operator delete (p, std::align_val_t{256}); };
  const std::unique_ptr<std::byte, decltype(release)> memory(
      static_cast<std::byte*>(::operator new (made.workspace_bytes, std::align_val_t{256})));
  const cpu executor{.workspace = {memory.get(), made.workspace_bytes}};

  made.fused_seconds = seconds_of(j.repetitions, [&] {
    const auto evaluate = prepare(executor, plan, pair);  // writes nothing to the patches
    embed(evaluate, j.layer, j.samples, j.weights.data(), made.fused.data());
  });
  made.stored_seconds = seconds_of(j.repetitions, [&] {
    run(executor, plan, pair);
    embed(stored_patches{made.patches.data(), j.layer.patch}, j.layer, j.samples, j.weights.data(), made.stored.data());
  });
  made.device = cpu_description(0);
  return made;
}

#if !defined(SUTURE_EXAMPLE_CUDA)
embedded embed_on_cuda(const job&) { fail(site{"backend"}, why_no_cuda()); }
#endif

}  // namespace suture::examples
