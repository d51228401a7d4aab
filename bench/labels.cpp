// SPDX-License-Identifier: Apache-2.0
// What label maps become on their way out, on the CPU, one thread: a turned patch stored as it is, renumbered, as
// regions, one-hot, and to smaller grids. For each voxel of the patch bytes_per_second counts one label read and its
// output written, without the smaller grids.
//   labels [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
#include <benchmark/benchmark.h>

#include "cpu_machine.hpp"
#include "flag.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

struct scene {
  grid volume;
  extent3 patch;
  std::vector<std::int8_t> map;

  // Boxes of tissue, label 0 to 3, in a volume of ignored voxels, -1.
  explicit scene(const extent3& n) : volume{.extents = n}, patch{n[0] * 2 / 3, n[1] * 2 / 3, n[2] * 2 / 3} {
    map.reserve(static_cast<std::size_t>(volume.voxels()));
    for (std::int64_t z = 0; z < n[0]; ++z)
      for (std::int64_t y = 0; y < n[1]; ++y)
        for (std::int64_t x = 0; x < n[2]; ++x)
          map.push_back(static_cast<std::int8_t>(x < n[2] / 8 ? -1 : (z / 20 + y / 17 + x / 23) % 4));
  }
};

// what(full output): the conversion, the levels or both.
template <class Out, class What>
void turned(benchmark::State& state, const scene& s, std::int64_t channels, const What& what) {
  const auto in = contiguous(s.map.data(), s.volume);
  const std::vector<grid> grids{s.volume};
  const auto p =
      plan(affine{.rotate_deg = {15, 15, 15}} | center_crop{s.patch} | sampling<>{.label_outside = -1}, grids);
  std::vector<Out> memory(static_cast<std::size_t>(channels * p.output_grid(0).voxels()));
  const auto out = contiguous(memory.data(), p.output_grid(0), channels);
  for (auto _ : state) what([&](const auto&... bound) { run(cpu{.threads = 1}, p, labels(in, out, bound...)); }, out);
  const std::int64_t bytes = 1 + channels * static_cast<std::int64_t>(sizeof(Out));
  const auto voxels = static_cast<double>(p.output_grid(0).voxels());
  bench::count_work(state, 1, voxels * static_cast<double>(bytes), voxels);
}

template <class Out, class... Conversion>
void add(const char* name, const scene& s, std::int64_t channels, const Conversion&... conversion) {
  benchmark::RegisterBenchmark(name, [&s, channels, conversion...](benchmark::State& state) {
    turned<Out>(state, s, channels, [&](const auto& run, const auto&) { run(conversion...); });
  })->Unit(benchmark::kMillisecond);
}

template <class Out, class... Conversion>
void add_with_levels(const char* name, const scene& s, std::int64_t channels, const Conversion&... conversion) {
  benchmark::RegisterBenchmark(name, [&s, channels, conversion...](benchmark::State& state) {
    std::vector<std::vector<Out>> memory;
    std::vector<std::vector<view<Out>>> levels;
    turned<Out>(state, s, channels, [&](const auto& run, const view<Out>& out) {
      for (double scale = .5; levels.size() < 4; scale /= 2) {
        const grid g = level_grid(out.grid, level_extents(out.grid.extents, {scale, scale, scale}));
        memory.emplace_back(static_cast<std::size_t>(channels * g.voxels()));
        levels.push_back({contiguous(memory.back().data(), g, channels)});
      }
      run(conversion..., deep_supervision(levels));
    });
  })->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  const bool tiny = bench::take_flag(argc, argv, "--tiny");
  const scene s(tiny ? extent3{48, 48, 48} : extent3{192, 192, 192});
  add<std::int8_t>("labels/kept", s, 1);
  add<std::int8_t>("labels/remap", s, 1, remap{{{-1, 0}}});
  add<half>("labels/regions_half", s, 3, brats_regions_1_2_3);
  add<std::uint8_t>("labels/one_hot_uint8", s, 3, one_hot{.classes = 4, .background = false});
  add_with_levels<std::int8_t>("labels/kept_4_levels", s, 1);
  add_with_levels<half>("labels/regions_half_4_levels", s, 3, brats_regions_1_2_3);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
