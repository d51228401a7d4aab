// SPDX-License-Identifier: Apache-2.0
// Color operations on a batch of 16 stained tiles of 512 x 512 on the CPU, interleaved uint8 to planar uint8, by
// threads. "read_write" is the same without an operation on color.
#include <benchmark/benchmark.h>

#include <string>
#include <suture/suture.hpp>
#include <thread>
#include <vector>

#include "cpu_machine.hpp"

namespace {

constexpr std::size_t count = 16;
const suture::grid tile_grid{.extents = {1, 512, 512}};

struct tiles {
  std::vector<std::uint8_t> in, out;
  std::vector<suture::view<const std::uint8_t>> ins;
  std::vector<suture::view<std::uint8_t>> outs;
  std::vector<std::uint64_t> ids;
  std::vector<suture::color_moments<suture::lab>> in_lab;
  std::vector<suture::color_moments<suture::ruderman>> in_ruderman;
  std::vector<suture::moments> channels;

  // Purple on white, by the bits of a counter.
  tiles() : in(count * 3 * static_cast<std::size_t>(tile_grid.voxels())), out(in.size()) {
    for (std::size_t i = 0; i < in.size(); i += 3) {
      const std::uint64_t bits = suture::mix64(i);
      const std::uint64_t stain = i / 999 % 90 + bits % 32;
      for (std::size_t c = 0; c < 3; ++c)
        in[i + c] =
            static_cast<std::uint8_t>(235 - stain * (c == 1 ? 16 : 11 - 2 * c) / 10 + (bits >> (8 * c + 8)) % 16);
    }
    const std::size_t n = in.size() / count;
    for (std::size_t i = 0; i < count; ++i) {
      ins.push_back(suture::channels_last<const std::uint8_t>(in.data() + i * n, tile_grid, 3));
      outs.push_back(suture::contiguous(out.data() + i * n, tile_grid, 3));
      ids.push_back(i);
    }
    in_lab.resize(count);
    in_ruderman.resize(count);
    channels.resize(3 * count);
    const suture::everything all;
    suture::fit(suture::cpu{}, suture::fit_color_moments<suture::lab>{}, ins, all, std::span(in_lab));
    suture::fit(suture::cpu{}, suture::fit_color_moments<suture::ruderman>{}, ins, all, std::span(in_ruderman));
    suture::fit(suture::cpu{}, suture::fit_moments{}, ins, all, std::span(channels));
  }
};

tiles& data() {
  static tiles t;
  return t;
}

template <class Pipeline>
void apply_row(benchmark::State& state, const Pipeline& pipeline) {
  tiles& t = data();
  const auto plan = suture::plan(pipeline | suture::cast<std::uint8_t>{}, t.ins, {.seed = 1, .sample_ids = t.ids});
  for (auto _ : state) {
    suture::run(suture::cpu{static_cast<int>(state.range(0))}, plan, suture::image(t.ins, t.outs));
    benchmark::ClobberMemory();
  }
  const auto bytes = static_cast<double>(t.in.size());
  bench::count_work(state, static_cast<int>(state.range(0)), 2 * bytes, bytes / 3);
}

template <class Fit>
void fit_row(benchmark::State& state, const Fit& how) {
  tiles& t = data();
  std::vector<typename Fit::result> results(count);
  for (auto _ : state) {
    suture::fit(suture::cpu{static_cast<int>(state.range(0))}, how, t.ins, suture::everything{}, std::span(results));
    benchmark::DoNotOptimize(results.data());
  }
  const auto bytes = static_cast<double>(t.in.size());
  bench::count_work(state, static_cast<int>(state.range(0)), bytes, bytes / 3);
}

template <class Row>
void add(const std::string& name, const Row& row) {
  auto* b = benchmark::RegisterBenchmark(name.c_str(), row);
  b->ArgName("threads")->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();
  if (const auto cores = std::thread::hardware_concurrency(); cores > 1) b->Arg(cores);
}
template <class Pipeline>
void add_pipeline(const std::string& name, const Pipeline& pipeline) {
  add(name, [=](benchmark::State& s) { apply_row(s, pipeline); });
}

}  // namespace

int main(int argc, char** argv) {
  using namespace suture;
  add_pipeline("read_write", rescale{.intercept = .25f});
  add_pipeline("channel_normalize", channel_normalize{});
  add_pipeline("random_grayscale", random_grayscale{.probability = 1});
  add_pipeline("random_hed_jitter", random_hed_jitter{});
  add_pipeline("random_stain_jitter", random_stain_jitter{});
  add_pipeline("random_hsv_jitter", random_hsv_jitter{});
  add_pipeline("random_color_jitter", random_color_jitter{});
  add_pipeline("random_color_jitter_fitted", random_color_jitter{.fitted = data().channels, .random_order = true});
  add_pipeline("reinhard_lab", reinhard<lab>{.fitted = data().in_lab, .target = data().in_lab[3]});
  add_pipeline("reinhard_ruderman", reinhard<ruderman>{.fitted = data().in_ruderman, .target = data().in_ruderman[3]});
  add_pipeline("rotation_hed_jitter_color_jitter", random_affine{.rotate_deg = {180, 0, 0}} |
                                                       sampling<linear, reflect>{} | random_hed_jitter{} |
                                                       random_color_jitter{});
  add("fit_color_moments_lab", [](benchmark::State& s) { fit_row(s, fit_color_moments<lab>{}); });
  add("fit_color_moments_ruderman", [](benchmark::State& s) { fit_row(s, fit_color_moments<ruderman>{}); });
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
