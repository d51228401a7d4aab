// SPDX-License-Identifier: Apache-2.0
// Patch sampling, reassembly, tiles of slides, points, boxes and predictions on the way back on the CPU, one thread.
// bytes_per_second counts every voxel read once; reassemblies, inverses and averages also count what they write.
//   patches [--tiny] [ARGUMENTS OF GOOGLE BENCHMARK...]
#include <benchmark/benchmark.h>

#include "cpu_machine.hpp"
#include "flag.hpp"
#include "suture/fit/sharpness.hpp"
#include "suture/image/digest.hpp"
#include "suture/ops/geometry/affine.hpp"
#include "suture/ops/geometry/elastic.hpp"
#include "suture/ops/geometry/resample.hpp"
#include "suture/patch/average.hpp"
#include "suture/patch/crop_by_class.hpp"
#include "suture/patch/reassemble.hpp"
#include "suture/patch/tile_list.hpp"
#include "suture/plan/inverse.hpp"
#include "suture/points/points.hpp"

namespace {

using namespace suture;

struct volume {
  grid shape;
  std::vector<std::uint8_t> labels;
  std::vector<std::int16_t> image;

  // Three organs, boxes in a background of air and tissue.
  explicit volume(const extent3& n) : shape{.extents = n} {
    labels.resize(static_cast<std::size_t>(shape.voxels()), 0);
    image.resize(labels.size());
    std::size_t v = 0;
    for (std::int64_t z = 0; z < n[0]; ++z)
      for (std::int64_t y = 0; y < n[1]; ++y)
        for (std::int64_t x = 0; x < n[2]; ++x, ++v) {
          const bool inside = z > n[0] / 4 && z < n[0] / 2 && y > n[1] / 3 && y < n[1] / 2;
          if (inside && x % 97 < 30) labels[v] = static_cast<std::uint8_t>(1 + x / 97 % 3);
          image[v] = static_cast<std::int16_t>(x < n[2] / 5 ? -1000 : static_cast<int>(mix64(v) % 200));
        }
  }
};

void count_labels(benchmark::State& state, const volume& v) {
  const auto map = label_classes(contiguous(v.labels.data(), v.shape), 4);
  std::vector<std::uint64_t> table(class_counts_bytes(map) / 8);
  for (auto _ : state) count_classes(cpu{.threads = 1}, map, std::as_writable_bytes(std::span(table)));
  const auto voxels = static_cast<double>(v.shape.voxels());
  bench::count_work(state, 1, voxels, voxels);
}

void count_foreground(benchmark::State& state, const volume& v) {
  const auto map =
      foreground_background(contiguous(v.labels.data(), v.shape), contiguous(v.image.data(), v.shape), -500.0f);
  std::vector<std::uint64_t> table(class_counts_bytes(map) / 8);
  for (auto _ : state) count_classes(cpu{.threads = 1}, map, std::as_writable_bytes(std::span(table)));
  const auto voxels = static_cast<double>(v.shape.voxels());
  bench::count_work(state, 1, 3 * voxels, voxels);
}

void draw_patches(benchmark::State& state, const volume& v) {
  const auto map = label_classes(contiguous(v.labels.data(), v.shape), 4);
  std::vector<std::uint64_t> table(class_counts_bytes(map) / 8);
  count_classes(cpu{.threads = 1}, map, std::as_writable_bytes(std::span(table)));
  std::vector<patch_choice> choices(16);
  std::uint32_t epoch = 0;
  const std::uint64_t id = 5;
  for (auto _ : state)
    select_patches(cpu{.threads = 1}, class_balanced_patch{.size = {8, 8, 8}}, map, std::as_bytes(std::span(table)),
                   {.epoch = ++epoch, .sample_ids = {&id, 1}, .patches = 16}, choices);
  state.SetItemsProcessed(state.iterations() * 16);
}

void index_labels(benchmark::State& state, const volume& v) {
  const auto map = label_classes(contiguous(v.labels.data(), v.shape), 4);
  for (auto _ : state) benchmark::DoNotOptimize(index_classes(cpu{.threads = 1}, map));
  const auto voxels = static_cast<double>(v.shape.voxels());
  bench::count_work(state, 1, voxels, voxels);
}

// A plan of 16 patches at another spacing, by class or, to compare, anywhere.
template <bool ByClass>
void plan_crops(benchmark::State& state, const volume& v) {
  const std::vector<class_index> index =
      index_classes(cpu{.threads = 1}, label_classes(contiguous(v.labels.data(), v.shape), 4));
  const std::vector<const class_index*> cases(16, &index[0]);
  const std::vector<grid> grids(16, v.shape);
  const std::vector<std::uint64_t> ids{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  std::uint32_t epoch = 0;
  const resample finer{.spacing_mm = {.8, .9, .9}};
  for (auto _ : state) {
    const settings s{.epoch = ++epoch, .sample_ids = ids};
    if constexpr (ByClass)
      benchmark::DoNotOptimize(
          plan(finer | crop_by_class{.rule = class_balanced_patch{.size = {8, 8, 8}}, .cases = cases}, grids, s));
    else
      benchmark::DoNotOptimize(plan(finer | random_crop{.size = {8, 8, 8}}, grids, s));
  }
  state.SetItemsProcessed(state.iterations() * 16);
}

void put_together(benchmark::State& state, const extent3& image, const extent3& size) {
  const patch_grid g = sliding_window_grid(image, size);
  const patch_window w = sliding_window_gaussian(size);
  std::vector<float> patches(static_cast<std::size_t>(g.count() * size[0] * size[1] * size[2]), 1.0f);
  std::vector<float> out(static_cast<std::size_t>(image[0] * image[1] * image[2]));
  for (auto _ : state)
    reassemble(cpu{.threads = 1}, g, w, patch_tensor<float>{patches.data(), 1, 0, g.count()},
               contiguous(out.data(), grid{.extents = image}));
  bench::count_work(state, 1, static_cast<double>((patches.size() + out.size()) * sizeof(float)),
                    static_cast<double>(out.size()));
}

// The same with how much of each voxel the patches cover, a float for each.
void put_covered_together(benchmark::State& state, const extent3& image, const extent3& size) {
  const patch_grid g = sliding_window_grid(image, size);
  const patch_window w = sliding_window_gaussian(size);
  const std::vector<float> patches(static_cast<std::size_t>(g.count() * size[0] * size[1] * size[2]), 1.0f);
  const std::vector<float> coverage(patches.size(), 0.5f);
  std::vector<float> out(static_cast<std::size_t>(image[0] * image[1] * image[2]));
  for (auto _ : state)
    reassemble(cpu{.threads = 1}, g, w, patch_tensor<float>{patches.data(), 1, 0, g.count()},
               {coverage.data(), 1, 0, g.count()}, contiguous(out.data(), grid{.extents = image}));
  bench::count_work(state, 1, static_cast<double>((2 * patches.size() + out.size()) * sizeof(float)),
                    static_cast<double>(out.size()));
}

// Annotations of a batch through rotation and elastic deformation: points, or boxes of 20 voxels.
template <class Value, class Result>
void move_annotations(benchmark::State& state, std::int64_t count) {
  const std::vector<grid> batch(4, grid{.extents = {160, 192, 192}});
  const std::vector<std::uint64_t> ids{1, 2, 3, 4};
  const auto moved = plan(random_affine{.rotate_deg = 15} | random_elastic{}, batch, {.seed = 1, .sample_ids = ids});
  std::vector<Value> values;
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i <= 4; ++i) offsets.push_back(i * count);
  for (std::int64_t i = 0; i < 4 * count; ++i) {
    const std::uint64_t at = mix64(static_cast<std::uint64_t>(i));
    const point3 p{static_cast<double>(at % 150), static_cast<double>(at / 150 % 190),
                   static_cast<double>(at / 28500 % 190)};
    if constexpr (std::is_same_v<Value, box>)
      values.push_back({p, {p[0] + 20, p[1] + 20, p[2] + 20}});
    else
      values.push_back(p);
  }
  std::vector<Result> results(values.size());
  const ragged<Value> lists{values, offsets};
  for (auto _ : state)
    if constexpr (std::is_same_v<Result, source_point> || std::is_same_v<Result, box_in_source>)
      to_source(cpu{.threads = 1}, moved, lists, std::span(results));
    else
      to_output(cpu{.threads = 1}, moved, lists, std::span(results));
  state.SetItemsProcessed(state.iterations() * 4 * count);
}

// A prediction of two classes on a rotated patch, or one bent as well, on the way back.
template <class Augmentation>
void bring_back(benchmark::State& state, std::int64_t size, const Augmentation& augment) {
  const grid g{.extents = {size, size, size}};
  const std::uint64_t id = 1;
  const auto out = plan(augment, std::vector{g}, {.sample_ids = {&id, 1}});
  const auto back = plan(inverse_of(out), out.output_grids());
  std::vector<float> probabilities(static_cast<std::size_t>(2 * g.voxels()), .5f), restored(probabilities.size());
  const auto from = contiguous<const float>(probabilities.data(), g, 2);
  const auto to = contiguous(restored.data(), g, 2);
  for (auto _ : state) run(cpu{.threads = 1}, back, image(from, to));
  state.SetBytesProcessed(state.iterations() * 4 * g.voxels() * static_cast<std::int64_t>(sizeof(float)));
}

// Eight predictions of two classes and their coverages to one.
void take_mean(benchmark::State& state, std::int64_t size) {
  const grid g{.extents = {size, size, size}};
  const std::vector<float> restored(static_cast<std::size_t>(16 * g.voxels()), .5f);
  const std::vector<float> coverage(static_cast<std::size_t>(8 * g.voxels()), 1.0f);
  std::vector<float> mean(static_cast<std::size_t>(2 * g.voxels()));
  for (auto _ : state)
    average(cpu{.threads = 1}, patch_tensor<float>{restored.data(), 2, 0, 8}, {coverage.data(), 1, 0, 8},
            contiguous(mean.data(), g, 2), {.outside = 0});
  state.SetBytesProcessed(state.iterations() * 26 * g.voxels() * static_cast<std::int64_t>(sizeof(float)));
}

// RGB tiles, interleaved as readers of slides give them.
void fit_tiles(benchmark::State& state, std::int64_t count, std::int64_t size) {
  const grid g{.extents = {1, size, size}};
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * size * size * 3));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(mix64(i));
  std::vector<view<const std::uint8_t>> tiles;
  for (std::int64_t i = 0; i < count; ++i)
    tiles.push_back(channels_last<const std::uint8_t>(pixels.data() + i * size * size * 3, g, 3));
  std::vector<sharpness> results(tiles.size());
  for (auto _ : state) fit(cpu{.threads = 1}, fit_sharpness{}, tiles, everything{}, std::span(results));
  bench::count_work(state, 1, static_cast<double>(pixels.size()), static_cast<double>(pixels.size()) / 3);
}

// Every tile of a slide of 100,000 x 80,000 pixels against its thumbnail.
void list_tiles(benchmark::State& state, std::int64_t height, std::int64_t width) {
  const slide_layout slide{{{64 * height, 64 * width, 1}}, 0.25};
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(height * width));
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = mix64(i / 200) % 3 == 0;
  std::size_t tiles = 0;
  for (auto _ : state) {
    const mask_area tissue(slide, contiguous(mask.data(), {.extents = {1, height, width}}));
    tiles = grid_tiles(slide, tissue, {.size = 256, .least_tissue = 0.3}).size();
    benchmark::DoNotOptimize(tiles);
  }
  state.SetItemsProcessed(state.iterations() * height * width / 64);
}

}  // namespace

int main(int argc, char** argv) {
  const bool tiny = bench::take_flag(argc, argv, "--tiny");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const volume v(tiny ? extent3{20, 24, 400} : extent3{160, 320, 320});
  const extent3 image = tiny ? extent3{20, 24, 40} : extent3{160, 192, 192};
  const extent3 size = tiny ? extent3{8, 8, 16} : extent3{64, 96, 96};
  benchmark::RegisterBenchmark("count_classes/labels", count_labels, std::cref(v))->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("count_classes/foreground", count_foreground, std::cref(v))
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("select_patches/16", draw_patches, std::cref(v))->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("index_classes/labels", index_labels, std::cref(v))->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("crop_by_class/16", plan_crops<true>, std::cref(v))->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("random_crop/16", plan_crops<false>, std::cref(v))->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("reassemble/gaussian", put_together, image, size)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("reassemble/covered", put_covered_together, image, size)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("grid_tiles/slide", list_tiles, tiny ? 125 : 1250, tiny ? 157 : 1563)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("fit_sharpness/rgb", fit_tiles, tiny ? 2 : 16, tiny ? 64 : 512)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("to_source/points", move_annotations<point3, source_point>, tiny ? 4 : 256)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("to_source/boxes", move_annotations<box, box_in_source>, tiny ? 2 : 16)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("to_output/points", move_annotations<point3, located_point>, tiny ? 4 : 256)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("to_output/boxes", move_annotations<box, box_result>, tiny ? 2 : 16)
      ->Unit(benchmark::kMillisecond);
  const random_affine turn{.rotate_deg = 15};
  benchmark::RegisterBenchmark("inverse_of/affine", bring_back<random_affine>, tiny ? 32 : 96, turn)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("inverse_of/elastic", bring_back<decltype(turn | random_elastic{})>, tiny ? 32 : 96,
                               turn | random_elastic{})
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("average/8", take_mean, tiny ? 16 : 96)->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
