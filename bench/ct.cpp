// SPDX-License-Identifier: Apache-2.0
// The CT recipe and its parts on the CPU, on one thread and on all; and the planning of a batch.
//   ct [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
#include <thread>

#include "cpu_machine.hpp"
#include "ct_rows.hpp"

namespace {

class ct_on_host : public bench::cpu_machine {
public:
  ct_on_host(int threads, const std::vector<bench::ct_volume>& volumes, double seconds)
      : cpu_machine(threads, seconds), volumes_(volumes) {}

  suture::view<const std::int16_t> image(std::size_t i) const {
    const auto& v = volumes_[i % volumes_.size()];
    return suture::contiguous(v.image.data(), v.grid);
  }
  suture::view<const std::uint8_t> labels(std::size_t i) const {
    const auto& v = volumes_[i % volumes_.size()];
    return suture::contiguous(v.labels.data(), v.grid);
  }

private:
  const std::vector<bench::ct_volume>& volumes_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::options chosen = bench::parse(argc, argv);
  if (!chosen.good) return 2;
  const bench::scene scene = chosen.tiny ? bench::tiny_scene() : bench::scene{};
  const std::vector<bench::ct_volume> volumes(4, bench::make_ct_volume(scene.volume));

  ct_on_host one(1, volumes, chosen.seconds);
  bench::add_rows(one, scene, {2}, "/threads:1");
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  ct_on_host all(cores, volumes, chosen.seconds);
  if (cores > 1) bench::add_rows(all, scene, {2}, "/threads:" + std::to_string(cores));
  bench::add_plan_row("plan/ct", scene.volume, [patch = scene.patches.front()](std::size_t, const auto& use) {
    use(bench::ct_recipe({15, true, true, patch}));
  });

  benchmark::AddCustomContext("copy_1_thread_bytes_per_second", std::to_string(one.copy_bandwidth()));
  if (cores > 1) benchmark::AddCustomContext("copy_bytes_per_second", std::to_string(all.copy_bandwidth()));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return bench::any_failed ? 1 : 0;
}
