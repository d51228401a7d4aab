// SPDX-License-Identifier: Apache-2.0
// The shortest whole program: two scans of different size and spacing become a batch of augmented patches of one size,
// with their labels, anew in every epoch. It needs a compiler and nothing else:
//   c++ -std=c++20 -O3 -march=native -mtune=generic -fno-math-errno -fopenmp -Iinclude examples/minimal.cpp -o minimal && ./minimal
#include <cstdint>
#include <cstdio>
#include <suture/suture.hpp>
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
  if (const std::string advice = suture::build_advice(); !advice.empty()) std::fprintf(stderr, "%s\n", advice.c_str());

  // Extents in voxels and spacing in mm, both (z, y, x).
  const std::vector<scan> scans{scan({.extents = {60, 256, 256}, .spacing = {2.5, .8, .8}}),
                                scan({.extents = {110, 160, 180}, .spacing = {1.5, 1, 1}})};
  const std::vector<std::uint64_t> ids{0, 1};  // the place of each scan in the data set
  std::vector<suture::view<const std::int16_t>> ct;
  std::vector<suture::view<const std::uint8_t>> seg;
  for (const scan& s : scans) {
    ct.push_back(suture::contiguous(s.voxels.data(), s.grid));
    seg.push_back(suture::contiguous(s.labels.data(), s.grid));
  }

  const auto train = suture::window{.center = 40, .width = 400} | suture::resample{.spacing_mm = {1, 1, 1}} |
                     suture::random_affine{.rotate_deg = 15, .scale = {.85f, 1.25f}} |
                     suture::random_crop{.size = {96, 96, 96}} | suture::random_gamma{.range = {.7f, 1.5f}} |
                     suture::gaussian_noise{.sigma = .02f};

  const std::size_t patch_voxels = 96 * 96 * 96;
  std::vector<float> images(ct.size() * patch_voxels);  // (sample, z, y, x), as a tensor of a training framework
  std::vector<std::uint8_t> label_maps(images.size());
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    const auto plan = suture::plan(train, ct, {.seed = 42, .epoch = epoch, .sample_ids = ids});
    const auto patches = suture::batch_views(images.data(), plan.output_grids());
    const auto patch_labels = suture::batch_views(label_maps.data(), plan.output_grids());
    suture::run(suture::cpu{}, plan, suture::image(ct, patches), suture::labels(seg, patch_labels));

    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::size_t organ = 0;
      for (std::size_t v = i * patch_voxels; v < (i + 1) * patch_voxels; ++v) organ += label_maps[v];
      std::printf("epoch %u, scan %zu: %6zu voxels of the organ, first voxel %.3f, digest %016llx\n", epoch, i, organ,
                  static_cast<double>(images[i * patch_voxels]),
                  static_cast<unsigned long long>(suture::digest(patches[i])));
    }
  }
} catch (const suture::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
