// SPDX-License-Identifier: Apache-2.0
// The nnU-Net training recipe and its filters on the CPU, one thread: one patch a sample, over many sample ids, so that
// every operation is as frequent as in training. "every_step" lets all of them happen in every sample.
//   nnunet [ARGUMENTS OF GOOGLE BENCHMARK...]
#include <benchmark/benchmark.h>

#include <suture/recipe/nnunet.hpp>

#include "cpu_machine.hpp"
#include "ct_volume.hpp"
#include "suture/suture.hpp"

namespace {

using namespace suture;

const nnunet_shape shape{{96, 96, 96}};

struct scene {
  std::vector<float> image;
  std::vector<std::int8_t> classes;
  grid volume;

  scene() {
    bench::ct_volume ct = bench::make_ct_volume({.extents = {160, 192, 192}});
    volume = ct.grid;
    image.assign(ct.image.begin(), ct.image.end());
    for (float& v : image) v = (v - 80) / 120;
    classes.assign(ct.labels.begin(), ct.labels.end());
  }
};

const scene& shown() {
  static const scene s;
  return s;
}

template <class Pipeline>
void measure(benchmark::State& state, const Pipeline& pipeline) {
  const scene& s = shown();
  const std::vector in{contiguous<const float>(s.image.data(), s.volume)};
  const std::vector seg{contiguous<const std::int8_t>(s.classes.data(), s.volume)};
  std::vector<half> patch(static_cast<std::size_t>(shape.patch[0] * shape.patch[1] * shape.patch[2]));
  std::vector<std::int8_t> labeled(patch.size());
  std::uint64_t id = 0;
  for (auto _ : state) {
    const std::uint64_t ids[] = {id++};
    const auto planned = plan(pipeline, in, {.seed = 1, .sample_ids = ids});
    const auto grids = planned.output_grids();
    const auto out = batch_views(patch.data(), grids);
    const auto out_seg = batch_views(labeled.data(), grids);
    run(cpu{.threads = 1}, planned, image(in, out), labels(seg, out_seg));
  }
  const auto voxels = static_cast<double>(patch.size());
  bench::count_work(state, 1, voxels * (4 + 1 + 2 + 1), voxels);
}

const std::vector<extent3> starts{{3, 7, 11}};
const center_crop crop{shape.patch};

void nnunet(benchmark::State& state) { measure(state, nnunet_v2_8({.shape = shape, .starts = starts}) | cast<half>{}); }
void every_step(benchmark::State& state) {
  measure(state, crop | random_affine{.rotate_deg = 30, .scale = {.7f, 1.4f}} | random_flip{} |
                     sampling<linear, constant, vote>{} | gaussian_noise{.sigma = {0, .1f}} |
                     random_gaussian_blur{.kernel = blur_kernel::nnunet} | random_brightness_factor{} |
                     random_patch_contrast{} | random_low_resolution{} | random_patch_gamma{.invert = true} |
                     random_patch_gamma{} | cast<half>{});
}
void blur(benchmark::State& state) { measure(state, crop | gaussian_blur{.sigma = 1} | cast<half>{}); }
void low_resolution(benchmark::State& state) { measure(state, crop | random_low_resolution{} | cast<half>{}); }
void median(benchmark::State& state) { measure(state, crop | median_filter{} | cast<half>{}); }
void shuffle(benchmark::State& state) {
  measure(state, crop | random_coarse_shuffle{.holes = 8, .size = {16, 32, 32}} | cast<half>{});
}
void gibbs(benchmark::State& state) { measure(state, crop | gibbs_ringing{.alpha = .6f} | cast<half>{}); }
void spike(benchmark::State& state) { measure(state, crop | random_kspace_spike{} | cast<half>{}); }
void sharpening(benchmark::State& state) { measure(state, crop | sharpen{} | cast<half>{}); }
void patch_contrast(benchmark::State& state) { measure(state, crop | random_patch_contrast{} | cast<half>{}); }
void patch_gamma(benchmark::State& state) { measure(state, crop | random_patch_gamma{} | cast<half>{}); }

BENCHMARK(nnunet)->Unit(benchmark::kMillisecond)->Iterations(200);
BENCHMARK(every_step)->Unit(benchmark::kMillisecond);
BENCHMARK(blur)->Unit(benchmark::kMillisecond);
BENCHMARK(low_resolution)->Unit(benchmark::kMillisecond);
BENCHMARK(median)->Unit(benchmark::kMillisecond);
BENCHMARK(shuffle)->Unit(benchmark::kMillisecond);
BENCHMARK(gibbs)->Unit(benchmark::kMillisecond);
BENCHMARK(spike)->Unit(benchmark::kMillisecond);
BENCHMARK(sharpening)->Unit(benchmark::kMillisecond);
BENCHMARK(patch_contrast)->Unit(benchmark::kMillisecond);
BENCHMARK(patch_gamma)->Unit(benchmark::kMillisecond);

}  // namespace
