// SPDX-License-Identifier: Apache-2.0
// The host as a machine that rows are measured on.
#pragma once

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "suture/exec/cpu/run.hpp"
#include "timing.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A row for the planning of batches of 2, 16 and 256 samples: with_chain(samples, use) calls use(pipeline).
template <class WithChain>
void add_plan_row(const std::string& name, const suture::grid& volume, const WithChain& with_chain) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 const auto count = static_cast<std::size_t>(state.range(0));
                                 const std::vector<suture::grid> batch(count, volume);
                                 std::vector<std::uint64_t> ids(count);
                                 for (std::size_t i = 0; i < count; ++i) ids[i] = 1000 + i;
                                 with_chain(count, [&](const auto& chain) {
                                   std::uint32_t epoch = 0;
                                   for (auto _ : state) {
                                     const auto plan =
                                         suture::plan(chain, batch, {.seed = 7, .epoch = ++epoch, .sample_ids = ids});
                                     benchmark::DoNotOptimize(plan.sample(0).map.offset[0]);
                                   }
                                 });
                                 state.SetItemsProcessed(state.iterations() * state.range(0));
                               })
      ->ArgName("batch")
      ->Arg(2)
      ->Arg(16)
      ->Arg(256)
      ->MinTime(0.1)
      ->Unit(benchmark::kMicrosecond);
}

inline double processor_time() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

class cpu_machine {
public:
  static constexpr bool on_device = false;

  template <class T>
  class buffer {
  public:
    explicit buffer(std::size_t n) : n_(n), memory_(new (std::align_val_t{256}) std::byte[n * sizeof(T) + 1]) {}
    T* data() { return reinterpret_cast<T*>(memory_.get()); }
    void poison() { std::memset(memory_.get(), 0xff, n_ * sizeof(T)); }
    void assign(const T* values) { std::copy(values, values + n_, data()); }
    std::vector<T> values() { return std::vector<T>(data(), data() + n_); }

  private:
    struct release {
      void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{256}); }
    };
    std::size_t n_;
    std::unique_ptr<std::byte[], release> memory_;
  };

  cpu_machine(int threads, double seconds) : threads_(threads), seconds_(seconds) {}

  suture::cpu executor(std::span<std::byte> workspace) const { return {threads_, workspace}; }
  int workers() const {
#ifdef _OPENMP
    if (threads_ == 0) return omp_get_max_threads();
#endif
    return threads_ > 0 ? threads_ : 1;
  }
  double share_seconds(const timing& measured) const { return measured.processor_seconds / workers(); }
  double cache_bytes() const {
    const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return workers() * (size > 0 ? static_cast<double>(size) : 1 << 21);
  }
  // The best of memcpy by as many threads in parts of several sizes, of far more than the caches hold. By the time the
  // processors work, of each thread: so are the rows that are set beside it (share_seconds).
  double copy_bandwidth() {
    if (bandwidth_ > 0) return bandwidth_;
    const std::size_t n = seconds_ > 0 ? std::size_t{256} << 20 : std::size_t{4} << 20;
    buffer<std::byte> from(n), to(n);
    from.poison();
    to.poison();
    for (const std::size_t parts : {std::size_t{16}, std::size_t{64}, std::size_t{1024}}) {
      std::vector<double> samples;
      for (int i = 0; i < 7; ++i) {
        const double start = processor_time();
        suture::detail::parallel_for(threads_, static_cast<std::int64_t>(parts), [&](std::int64_t part) {
          const std::size_t first = static_cast<std::size_t>(part) * (n / parts);
          std::memcpy(to.data() + first, from.data() + first, n / parts);
        });
        samples.push_back((processor_time() - start) / workers());
      }
      bandwidth_ = std::max(bandwidth_, 2 * static_cast<double>(n) / distribution_of(samples).median);
    }
    return bandwidth_;
  }
  template <class Run>
  int launches(const Run&, int stages) const {
    return stages;
  }
  template <class Run>
  timing time(std::size_t sets, const Run& run, bool mean_of_sets) const {
    timing t;
    std::vector<double> processor;
    const std::size_t runs = mean_of_sets ? sets : 1;
    const double begin = now(), share = 1.0 / static_cast<double>(runs);
    for (std::size_t k = 0; t.seconds.size() < 5 || (now() - begin < seconds_ && t.seconds.size() < 1000); ++k) {
      const double start = now(), processor_start = processor_time();
      for (std::size_t i = 0; i < runs; ++i) run((k * runs + i) % sets);
      processor.push_back((processor_time() - processor_start) * share);
      t.seconds.push_back((now() - start) * share);
    }
    t.processor_seconds = distribution_of(processor).median;
    return t;
  }

private:
  int threads_;
  double seconds_;
  double bandwidth_ = 0;
};

// The counters of a row that Google Benchmark times itself: useful bytes and voxels of one iteration, by `threads`.
inline void count_work(benchmark::State& state, int threads, double bytes, double voxels) {
  static cpu_machine one(1, 0.2), all(0, 0.2);
  const double share = 100 / (threads == 1 ? one : all).copy_bandwidth(),
               runs = static_cast<double>(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes * runs));
  state.counters["voxels/s"] = benchmark::Counter(voxels * runs, benchmark::Counter::kIsRate);
  state.counters["pct_copy"] = benchmark::Counter(share * bytes * runs, benchmark::Counter::kIsRate);
}

}  // namespace bench
