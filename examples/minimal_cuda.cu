// SPDX-License-Identifier: Apache-2.0
// The program of minimal.cpp on a GPU: it prints the same digests. One CUDA graph is captured and serves every epoch.
//   nvcc -std=c++20 -O3 -arch=native -Iinclude examples/minimal_cuda.cu -o minimal_cuda && ./minimal_cuda
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#include <cstdint>
#include <cstdio>
#include <suture/suture.cuh>
#include <vector>

namespace {

// A made-up scan: fat (-100 HU), in the middle an organ (60 HU) with label 1. Arrays are (z, y, x) with x fastest.
struct scan {
  suture::grid grid;
  std::vector<std::int16_t> voxels;
  std::vector<std::uint8_t> labels;

  explicit scan(const suture::grid& g) : grid(g) {
    for (std::int64_t z = 0; z < g.extents[0]; ++z)
      for (std::int64_t y = 0; y < g.extents[1]; ++y)
        for (std::int64_t x = 0; x < g.extents[2]; ++x) {
          const bool organ = z > g.extents[0] / 3 && z < g.extents[0] * 2 / 3 && y > g.extents[1] / 3 &&
                             y < g.extents[1] * 2 / 3 && x > g.extents[2] / 3 && x < g.extents[2] * 2 / 3;
          voxels.push_back(organ ? 60 : -100);
          labels.push_back(organ ? 1 : 0);
        }
  }
};

}  // namespace

int main() try {
  // Extents in voxels and spacing in mm, both (z, y, x).
  const std::vector<scan> scans{scan({.extents = {60, 256, 256}, .spacing = {2.5, .8, .8}}),
                                scan({.extents = {110, 160, 180}, .spacing = {1.5, 1, 1}})};
  const std::vector<std::uint64_t> ids{0, 1};  // the place of each scan in the data set
  cudaStream_t stream;
  suture::check_cuda(cudaStreamCreate(&stream), "stream");

  // Scans stay on the device, where many patches are cut from them.
  std::vector<suture::resident_volume<std::int16_t>> volumes;
  std::vector<suture::resident_volume<std::uint8_t>> maps;
  std::vector<suture::view<const std::int16_t>> ct;
  std::vector<suture::view<const std::uint8_t>> seg;
  for (const scan& s : scans) {
    ct.push_back(volumes.emplace_back(suture::contiguous(s.voxels.data(), s.grid), stream).view());
    seg.push_back(maps.emplace_back(suture::contiguous(s.labels.data(), s.grid), stream).view());
  }

  const auto train = suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = {1, 1, 1}} |
                     suture::random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}} |
                     suture::random_crop{.size = {96, 96, 96}} | suture::random_gamma{.range = {.7f, 1.5f}} |
                     suture::gaussian_noise{.sigma = .02f};
  const auto plan_of = [&](std::uint32_t epoch) {
    return suture::plan(train, ct, {.seed = 42, .epoch = epoch, .sample_ids = ids});
  };

  const std::size_t patch_voxels = 96 * 96 * 96;
  thrust::device_vector<float> images(ct.size() * patch_voxels);  // (sample, z, y, x), as a tensor
  thrust::device_vector<std::uint8_t> label_maps(images.size());
  const auto first = plan_of(0);
  const auto patches = suture::batch_views(thrust::raw_pointer_cast(images.data()), first.output_grids());
  const auto patch_labels = suture::batch_views(thrust::raw_pointer_cast(label_maps.data()), first.output_grids());
  const auto image = suture::image(ct, patches);
  const auto labels = suture::labels(seg, patch_labels);

  // The graph is captured once. `load` gives it the plan of an epoch before each launch.
  const suture::cuda_workspace workspace(suture::workspace_bytes(first, image, labels));
  const suture::cuda device{stream, workspace};
  cudaGraph_t graph;
  cudaGraphExec_t step;
  suture::check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  const auto captured = suture::run_loaded(device, first, image, labels);
  suture::check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  suture::check_cuda(cudaGraphInstantiate(&step, graph, 0), "instantiate");

  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const auto plan = plan_of(epoch);
    suture::load(device, captured, plan, image, labels);
    suture::check_cuda(cudaGraphLaunch(step, stream), "launch");
    suture::check_cuda(cudaStreamSynchronize(stream), "run");  // training waits for an event instead

    const thrust::host_vector<float> made = images;
    const thrust::host_vector<std::uint8_t> made_labels = label_maps;
    const auto on_host = suture::batch_views(made.data(), plan.output_grids());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::size_t organ = 0;
      for (std::size_t v = i * patch_voxels; v < (i + 1) * patch_voxels; ++v) organ += made_labels[v];
      std::printf("epoch %u, scan %zu: %6zu voxels of the organ, first voxel %.3f, digest %016llx\n", epoch, i, organ,
                  static_cast<double>(made[i * patch_voxels]),
                  static_cast<unsigned long long>(suture::digest(on_host[i])));
    }
  }
  cudaGraphExecDestroy(step);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
} catch (const suture::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
