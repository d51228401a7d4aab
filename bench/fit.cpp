// SPDX-License-Identifier: Apache-2.0
// Fits of one CT volume on the CPU, int16 as it is stored and float as it is in training, by threads. bytes_per_second
// counts the voxels once for every pass over them.
#include <benchmark/benchmark.h>

#include <suture/suture.hpp>
#include <thread>

#include "cpu_machine.hpp"
#include "ct_volume.hpp"

namespace {

const bench::ct_volume& volume() {
  static const bench::ct_volume v =
      bench::make_ct_volume({.extents = {200, 512, 512}, .spacing = {2, .8, .8}, .origin = {0, 0, 0}});
  return v;
}

template <class T>
const std::vector<T>& voxels() {
  static const std::vector<T> v(volume().image.begin(), volume().image.end());
  return v;
}

template <class T, class Fit, class Selection>
void fit_row(benchmark::State& state, const Fit& how, const Selection& selection, int passes) {
  const auto image = suture::contiguous(voxels<T>().data(), volume().grid);
  std::vector<typename Fit::result> result(1);
  for (auto _ : state) {
    suture::fit(suture::cpu{static_cast<int>(state.range(0))}, how, image, selection, std::span(result));
    benchmark::DoNotOptimize(result.data());
  }
  const auto count = static_cast<double>(voxels<T>().size());
  bench::count_work(state, static_cast<int>(state.range(0)), passes * count * sizeof(T), count);
}

void fingerprint_row(benchmark::State& state) {
  const auto image = suture::contiguous(volume().image.data(), volume().grid);
  const auto labels = suture::contiguous(volume().labels.data(), volume().grid);
  for (auto _ : state) {
    suture::cohort_fingerprint f;
    f.add(suture::cpu{static_cast<int>(state.range(0))}, "case", image, labels);
    benchmark::DoNotOptimize(f.intensities(0));
  }
  const auto count = static_cast<double>(volume().image.size());
  bench::count_work(state, static_cast<int>(state.range(0)), count * 3, count);
}

template <class T>
void add_rows(const std::string& type, int percentile_passes) {
  const auto add = [&](const std::string& name, const auto& row) {
    auto* b = benchmark::RegisterBenchmark((name + "/" + type).c_str(), row);
    b->ArgName("threads")->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();
    if (const auto cores = std::thread::hardware_concurrency(); cores > 1) b->Arg(cores);
  };
  const suture::everything all;
  add("moments", [=](benchmark::State& s) { fit_row<T>(s, suture::fit_moments{}, all, 1); });
  add("moments_nonzero", [=](benchmark::State& s) { fit_row<T>(s, suture::fit_moments{}, suture::nonzero{}, 1); });
  add("percentiles", [=](benchmark::State& s) {
    fit_row<T>(s, suture::fit_percentiles<3>{{.5, 50, 99.5}}, all, percentile_passes);
  });
  add("otsu", [=](benchmark::State& s) { fit_row<T>(s, suture::fit_otsu{}, all, percentile_passes == 1 ? 1 : 2); });
}

}  // namespace

int main(int argc, char** argv) {
  add_rows<std::int16_t>("int16", 1);
  add_rows<float>("float", 3);
  benchmark::RegisterBenchmark("fingerprint/int16", fingerprint_row)
      ->ArgName("threads")
      ->Arg(1)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
