// SPDX-License-Identifier: Apache-2.0
// What each path of the CPU executor brings, on one thread: pipelines that it serves with all paths, and with this one
// left out. A path whose two rows do not differ brings nothing.
//   paths [ARGUMENTS OF GOOGLE BENCHMARK...]
#include <benchmark/benchmark.h>

#include <string>

#include "ct_volume.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

const bench::ct_volume& scan() {
  static const bench::ct_volume volume = bench::make_ct_volume({.extents = {160, 192, 192}, .spacing = {1.5, 1, 1}});
  return volume;
}

template <class Paths, class Pipeline>
void measure(benchmark::State& state, const Pipeline& pipeline) {
  const auto ct = contiguous(scan().image.data(), scan().grid);
  const auto seg = contiguous(scan().labels.data(), scan().grid);
  const std::uint64_t ids[] = {1};
  const auto p = plan(pipeline, ct, {.seed = 7, .sample_ids = ids});
  const grid& to = p.output_grid(0);
  std::vector<float> image_out(static_cast<std::size_t>(to.voxels()));
  std::vector<std::uint8_t> labels_out(image_out.size());
  const auto a = image(ct, contiguous(image_out.data(), to));
  const auto b = labels(seg, contiguous(labels_out.data(), to));
  for (auto _ : state) {
    detail::run_by<Paths>(cpu{.threads = 1}, p, a, b);
    benchmark::DoNotOptimize(image_out.data());
  }
  state.SetItemsProcessed(state.iterations() * to.voxels());
}

// The paths of a list but one.
template <class Left, class Kept, class... Others>
struct without_path;
template <class Left, class... Kept>
struct without_path<Left, detail::path_list<Kept...>> {
  using type = detail::path_list<Kept...>;
};
template <class Left, class... Kept, class Path, class... Others>
struct without_path<Left, detail::path_list<Kept...>, Path, Others...>
    : without_path<
          Left,
          std::conditional_t<std::is_same_v<Left, Path>, detail::path_list<Kept...>, detail::path_list<Kept..., Path>>,
          Others...> {};
template <class Left, class... Paths>
auto without(detail::path_list<Paths...>) {
  return typename without_path<Left, detail::path_list<>, Paths...>::type{};
}

// A pipeline without Path, for which the next path of the list takes over, and with it.
template <class Path, class Pipeline>
void add(const std::string& what, const Pipeline& pipeline) {
  using others = decltype(without<Path>(detail::cpu_paths{}));
  const std::string row = std::string(Path::name) + "/" + what;
  benchmark::RegisterBenchmark((row + "/with").c_str(), [=](benchmark::State& s) {
    measure<detail::cpu_paths>(s, pipeline);
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark((row + "/without").c_str(), [=](benchmark::State& s) {
    measure<others>(s, pipeline);
  })->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  const auto patch = crop{.start = {20, 30, 33}, .size = {96, 96, 96}};
  add<detail::integer_shift_copy_rows>("crop_flip", patch | flip{{true, false, true}});
  add<detail::integer_shift_copy_rows>("window_crop_flip",
                                       window{.center = 40, .width = 400} | patch | flip{{true, false, true}});
  add<detail::integer_shift_copy_rows>(
      "dropout_crop_flip",
      random_coarse_dropout{.holes = {1, 4}, .size = {20, 20, 20}} | patch | flip{{true, false, true}});
  add<detail::axis_aligned_rows>("resample", resample{.spacing_mm = {1, 1.2, 1.2}} | sampling<linear, edge, vote>{});
  add<detail::axis_aligned_rows>("resample_cubic",
                                 resample{.spacing_mm = {1, 1.2, 1.2}} | sampling<catmull_rom, edge, nearest>{});
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
