// SPDX-License-Identifier: Apache-2.0
// Masks of a CT on the CPU, one thread. bytes_per_second counts the image read once and the result written once;
// workspace is in bytes.
//   masks [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
#include <benchmark/benchmark.h>

#include <memory>

#include "cpu_machine.hpp"
#include "ct_volume.hpp"
#include "flag.hpp"
#include "suture/mask/body_mask.hpp"
#include "suture/mask/bounding_box.hpp"
#include "suture/mask/gray_morphology.hpp"
#include "suture/mask/label_perturbation.hpp"
#include "suture/mask/mask_image.hpp"

namespace {

using namespace suture;

struct scene {
  bench::ct_volume ct;
  std::vector<std::uint8_t> mask, out;
  std::vector<std::int32_t> labels;
  std::vector<std::int16_t> filtered;
  view<const std::int16_t> image;

  explicit scene(const grid& g)
      : ct(bench::make_ct_volume(g)),
        mask(ct.image.size()),
        out(ct.image.size()),
        labels(ct.image.size()),
        filtered(ct.image.size()),
        image(contiguous<const std::int16_t>(ct.image.data(), ct.grid)) {
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = ct.image[i] > 0;
  }
  view<std::uint8_t> mask_view() { return contiguous(mask.data(), ct.grid); }
  view<std::uint8_t> out_view() { return contiguous(out.data(), ct.grid); }
};

// operation(cpu) with `workspace` bytes ready, over `bytes` a voxel in and out.
template <class Operation>
void measure(benchmark::State& state, const scene& s, std::size_t workspace, std::int64_t bytes,
             const Operation& operation) {
  std::vector<std::byte> memory(workspace + 256);
  void* start = memory.data();
  std::size_t space = memory.size();
  std::align(256, workspace, start, space);
  const cpu exec{1, {static_cast<std::byte*>(start), space}};
  for (auto _ : state) operation(exec);
  const auto voxels = static_cast<double>(s.ct.grid.voxels());
  bench::count_work(state, 1, voxels * static_cast<double>(bytes), voxels);
  state.counters["workspace"] = static_cast<double>(workspace);
}

void add_rows(scene& s) {
  const auto add = [&](const char* name, std::size_t workspace, std::int64_t bytes, auto operation) {
    benchmark::RegisterBenchmark(name, [&s, workspace, bytes, operation](benchmark::State& state) {
      measure(state, s, workspace, bytes, operation);
    })->Unit(benchmark::kMillisecond);
  };
  for (const std::int64_t radius : {0, 1})
    add(radius == 0 ? "body_mask" : "body_mask/opening", workspace_bytes(mask_work::body_mask{}, s.image), 3,
        [&s, radius](const cpu& exec) {
          largest_component_result result{};
          body_mask(exec, s.image, s.out_view(), {&result, 1}, {.opening_radius = radius});
          benchmark::DoNotOptimize(result.voxels);
        });
  add("label_components/6", workspace_bytes(mask_work::label_components{}, s.image), 5, [&s](const cpu& exec) {
    std::uint32_t count = 0;
    label_components(exec, s.mask_view(), contiguous(s.labels.data(), s.ct.grid), connectivity::faces, {&count, 1});
    benchmark::DoNotOptimize(count);
  });
  add("fill_holes/volume", workspace_bytes(mask_work::fill_holes{}, s.image), 2,
      [&s](const cpu& exec) { fill_holes(exec, s.mask_view(), s.out_view()); });
  add("binary_opening/cross1", workspace_bytes(mask_work::binary_opening{}, s.image), 2,
      [&s](const cpu& exec) { binary_opening(exec, s.mask_view(), s.out_view()); });
  add("binary_dilation/ball5", workspace_bytes(mask_work::binary_opening{}, s.image), 2, [&s](const cpu& exec) {
    binary_dilation(exec, s.mask_view(), s.out_view(), {element_shape::ball, {5, 5, 5}});
  });
  const auto disturb = [&s](const cpu& exec, const auto& rule) {
    const std::int32_t label = 1;
    const std::uint64_t id = 7;
    const auto map = s.out_view();
    std::copy(s.mask.begin(), s.mask.end(), map.data);
    auto every_time = rule;
    every_time.labels = {&label, 1};
    every_time.probability = every_time.label_probability = 1;
    disturb_labels(exec, every_time, map, {.sample_ids = {&id, 1}});
  };
  add("disturb_labels/ball4", workspace_bytes(mask_work::disturb_labels{}, s.image), 4, [disturb](const cpu& exec) {
    disturb(exec, random_binary_operation{.smallest_radius = 4, .largest_radius = 4});
  });
  add("disturb_labels/component", workspace_bytes(mask_work::disturb_labels{}, s.image), 4,
      [disturb](const cpu& exec) { disturb(exec, random_component_removal{}); });
  const structuring_element cube{element_shape::box, {1, 1, 1}};
  add("gray_erosion/box1", workspace_bytes(mask_work::gray_erosion{cube}, s.image), 4,
      [&s, cube](const cpu& exec) { gray_erosion(exec, s.image, contiguous(s.filtered.data(), s.ct.grid), cube); });
  add("mask_image", 0, 3, [&s](const cpu& exec) {
    mask_image(exec, s.mask_view(), contiguous(s.filtered.data(), s.ct.grid), {.below = 1});
  });
  add("bounding_box", workspace_bytes(mask_work::bounding_box{}, s.image), 2, [&s](const cpu& exec) {
    bounding_box_result result{};
    bounding_box(exec, s.image, {&result, 1}, -300);
    benchmark::DoNotOptimize(result.last[0]);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bool tiny = bench::take_flag(argc, argv, "--tiny");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  scene s({.extents = tiny ? extent3{40, 48, 48} : extent3{160, 512, 512}, .spacing = {1.5625, .8, .8}});
  add_rows(s);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
