// SPDX-License-Identifier: Apache-2.0
// The CT recipe and its parts on the CPU, on one thread and on all; and the planning of a batch.
//   ct [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <new>
#include <thread>

#include "ct_rows.hpp"

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double processor_time() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

class cpu_backend {
public:
  static constexpr bool on_device = false;

  template <class T>
  class buffer {
  public:
    explicit buffer(std::size_t n) : n_(n), memory_(new (std::align_val_t{256}) std::byte[n * sizeof(T) + 1]) {}
    T* data() { return reinterpret_cast<T*>(memory_.get()); }
    void poison() { std::memset(memory_.get(), 0xff, n_ * sizeof(T)); }
    std::vector<T> values() { return std::vector<T>(data(), data() + n_); }

  private:
    struct release {
      void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{256}); }
    };
    std::size_t n_;
    std::unique_ptr<std::byte[], release> memory_;
  };

  cpu_backend(int threads, const std::vector<bench::ct_volume>& volumes, double seconds)
      : threads_(threads), volumes_(volumes), seconds_(seconds) {}

  suture::view<const std::int16_t> image(std::size_t i) const {
    const auto& v = volumes_[i % volumes_.size()];
    return suture::contiguous(v.image.data(), v.grid);
  }
  suture::view<const std::uint8_t> labels(std::size_t i) const {
    const auto& v = volumes_[i % volumes_.size()];
    return suture::contiguous(v.labels.data(), v.grid);
  }
  suture::cpu executor(std::span<std::byte> workspace) const { return {threads_, workspace}; }
  double cache_bytes() const {
    const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return threads_ * (size > 0 ? static_cast<double>(size) : 1 << 21);
  }
  // memcpy by as many threads, far more than the caches hold.
  double copy_bandwidth() {
    if (bandwidth_ > 0) return bandwidth_;
    const std::size_t n = seconds_ > 0 ? std::size_t{256} << 20 : std::size_t{4} << 20, parts = 64;
    buffer<std::byte> from(n), to(n);
    from.poison();
    to.poison();
    std::vector<double> samples;
    for (int i = 0; i < 9; ++i) {
      const double start = now();
      suture::detail::parallel_for(threads_, parts, [&](std::int64_t part) {
        const std::size_t first = static_cast<std::size_t>(part) * (n / parts);
        std::memcpy(to.data() + first, from.data() + first, n / parts);
      });
      samples.push_back(now() - start);
    }
    return bandwidth_ = 2 * static_cast<double>(n) / bench::distribution_of(samples).median;
  }
  template <class Run>
  int launches(const Run&, int stages) const {
    return stages;
  }
  template <class Run>
  bench::timing time(std::size_t sets, const Run& run) const {
    bench::timing t;
    std::vector<double> processor;
    const double begin = now();
    for (std::size_t k = 0; t.seconds.size() < 5 || (now() - begin < seconds_ && t.seconds.size() < 1000); ++k) {
      const double start = now(), processor_start = processor_time();
      run(k % sets);
      processor.push_back(processor_time() - processor_start);
      t.seconds.push_back(now() - start);
    }
    t.processor_seconds = bench::distribution_of(processor).median;
    return t;
  }

private:
  int threads_;
  const std::vector<bench::ct_volume>& volumes_;
  double seconds_;
  double bandwidth_ = 0;
};

void plan_row(benchmark::State& state, const suture::grid& volume, std::int64_t patch) {
  const std::vector<suture::grid> batch(static_cast<std::size_t>(state.range(0)), volume);
  std::vector<std::uint64_t> ids(batch.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = 1000 + i;
  const auto chain = bench::ct_recipe({15, true, true, patch});
  std::uint32_t epoch = 0;
  for (auto _ : state) {
    const auto plan = suture::plan(chain, batch, {.seed = 7, .epoch = ++epoch, .sample_ids = ids});
    benchmark::DoNotOptimize(plan.sample(0).map.offset[0]);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

}  // namespace

int main(int argc, char** argv) {
  bench::scene scene;
  if (!bench::parse(argc, argv, scene)) return 2;
  const std::vector<bench::ct_volume> volumes(4, bench::make_ct_volume(scene.volume));

  cpu_backend one(1, volumes, scene.seconds);
  bench::add_rows(one, scene, {2}, "/threads:1");
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_backend all(cores, volumes, scene.seconds);
  if (cores > 1) bench::add_rows(all, scene, {2}, "/threads:" + std::to_string(cores));
  benchmark::RegisterBenchmark("plan", plan_row, scene.volume, scene.patches.front())
      ->ArgName("batch")
      ->Arg(2)
      ->Arg(16)
      ->Arg(256)
      ->MinTime(0.1)
      ->Unit(benchmark::kMicrosecond);

  benchmark::AddCustomContext("copy_1_thread_bytes_per_second", std::to_string(one.copy_bandwidth()));
  if (cores > 1) benchmark::AddCustomContext("copy_bytes_per_second", std::to_string(all.copy_bandwidth()));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return bench::any_failed ? 1 : 0;
}
