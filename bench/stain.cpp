// SPDX-License-Identifier: Apache-2.0
// Stain fits and normalization of a batch of tiles on the CPU, by threads. items_per_second counts tiles,
// bytes_per_second each tile read once by a fit, and read and written once by an operation.
#include <benchmark/benchmark.h>

#include <suture/suture.hpp>
#include <thread>

#include "cpu_machine.hpp"
#include "stained_tile.hpp"

namespace {

using namespace suture;

constexpr std::size_t batch = 8;

struct tiles_on_host {
  grid shape{.extents = {1, 512, 512}};
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<std::vector<half>> results;
  std::vector<view<const std::uint8_t>> in;
  std::vector<view<half>> out;

  tiles_on_host() {
    for (std::size_t i = 0; i < batch; ++i) {
      pixels.push_back(bench::stained_tile(shape, i));
      results.emplace_back(pixels[i].size());
    }
    for (std::size_t i = 0; i < batch; ++i) {
      in.push_back(channels_last<const std::uint8_t>(pixels[i].data(), shape, 3));
      out.push_back(contiguous(results[i].data(), shape, 3));
    }
  }
};

tiles_on_host& tiles() {
  static tiles_on_host t;
  return t;
}

void count_work(benchmark::State& state, std::int64_t bytes_per_value) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch));
  const double pixels = static_cast<double>(batch) * 512 * 512;
  bench::count_work(state, static_cast<int>(state.range(0)), 3 * pixels * static_cast<double>(bytes_per_value), pixels);
}

void fit_row(benchmark::State& state, const fit_macenko& how) {
  std::vector<stain_basis> fitted(how.together ? 1 : batch);
  for (auto _ : state) {
    fit(cpu{static_cast<int>(state.range(0))}, how, tiles().in, everything{}, std::span(fitted));
    benchmark::DoNotOptimize(fitted.data());
  }
  count_work(state, 1);
}

void normalize_row(benchmark::State& state, const macenko_mode& mode, bool with_fit) {
  const cpu exec{static_cast<int>(state.range(0))};
  std::vector<stain_basis> fitted(batch);
  fit(exec, mode.fit, tiles().in, everything{}, std::span(fitted));
  const auto recipe = plan(mode.normalize(fitted) | rescale{.slope = 1 / 255.0f} | cast<half>{}, tiles().in);
  for (auto _ : state) {
    if (with_fit) fit(exec, mode.fit, tiles().in, everything{}, std::span(fitted));
    run(exec, recipe, image(tiles().in, tiles().out));
    benchmark::DoNotOptimize(tiles().out.data());
  }
  count_work(state, 3);
}

const bool registered = [] {
  const auto add = [](const char* name, const auto& row) {
    auto* b = benchmark::RegisterBenchmark(name, row);
    b->ArgName("threads")->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();
    if (const auto cores = std::thread::hardware_concurrency(); cores > 1) b->Arg(cores);
  };
  add("macenko_fit", [](benchmark::State& s) { fit_row(s, macenko::standard.fit); });
  add("macenko_fit_torchstain", [](benchmark::State& s) { fit_row(s, macenko::torchstain.fit); });
  add("macenko_fit_tiatoolbox", [](benchmark::State& s) { fit_row(s, macenko::tiatoolbox.fit); });
  add("macenko_fit_together", [](benchmark::State& s) { fit_row(s, {.together = true}); });
  add("vahadane_fit", [](benchmark::State& s) { fit_row(s, macenko::vahadane.fit); });
  add("macenko_normalize", [](benchmark::State& s) { normalize_row(s, macenko::standard, false); });
  add("macenko_normalize_lasso", [](benchmark::State& s) { normalize_row(s, macenko::staintools, false); });
  add("macenko_fit_and_normalize", [](benchmark::State& s) { normalize_row(s, macenko::standard, true); });
  return true;
}();

}  // namespace
