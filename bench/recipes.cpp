// SPDX-License-Identifier: Apache-2.0
// Whole recipes on the CPU, on one thread and on all, and the planning of a batch for nnU-Net. Volumes that are
// resampled are a quarter of those on a device, and there are 16 tiles.
//   recipes [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
#include <thread>

#include "cpu_machine.hpp"
#include "recipe_rows.hpp"

int main(int argc, char** argv) {
  const bench::options chosen = bench::parse(argc, argv);
  if (!chosen.good) return 2;
  bench::recipe_scene scene = chosen.tiny ? bench::tiny_recipe_scene() : bench::recipe_scene{};
  if (!chosen.tiny) {
    scene.whole.extents[0] = 200;
    scene.tiles = 16;
  }
  bench::cpu_machine one(1, chosen.seconds);
  bench::recipe_inputs<bench::cpu_machine> all_inputs(scene);
  bench::add_recipe_rows(one, all_inputs, "/threads:1");
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  bench::cpu_machine all(cores, chosen.seconds);
  if (cores > 1) bench::add_recipe_rows(all, all_inputs, "/threads:" + std::to_string(cores));
  bench::add_plan_row("plan/nnunet", {.extents = {160, 192, 192}}, [](std::size_t samples, const auto& use) {
    const std::vector<suture::extent3> starts(samples, suture::extent3{-3, 5, 7});
    use(suture::nnunet_v2_8({.shape = {{128, 128, 128}}, .starts = starts}) | suture::cast<suture::half>{});
  });

  benchmark::AddCustomContext("copy_1_thread_bytes_per_second", std::to_string(one.copy_bandwidth()));
  if (cores > 1) benchmark::AddCustomContext("copy_bytes_per_second", std::to_string(all.copy_bandwidth()));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return bench::any_failed ? 1 : 0;
}
